"""Compiler options of a program."""

from __future__ import annotations

from typing import cast

import attrs

from harp.errors import ArgumentError


def _check_optimize(_: object, __: object, value: object) -> None:
    if type(value) is not int or not 0 <= value <= 3:
        raise ArgumentError(f"CompileOptions: optimize is 0, 1, 2 or 3, not {value!r}")


def _check_debug(_: object, __: object, value: object) -> None:
    if not isinstance(value, bool):
        raise ArgumentError(f"CompileOptions: debug is True or False, not {value!r}")


# With these gcc links start-up code that sets flush-to-zero for the whole process when the library is loaded.
_UNSAFE = frozenset(("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-mdaz-ftz"))
# These say what the compiler makes, and where, which harp decides.
_OURS = frozenset(("-c", "-S", "-E", "--compile", "--assemble", "--preprocess", "--output"))


def _check_flags(_: object, __: object, value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(flag, str) for flag in cast(tuple[object, ...], value)):
        raise ArgumentError(f'CompileOptions: extra_flags is a tuple of str, as in ("-funroll-loops",), not {value!r}')
    for flag in cast(tuple[str, ...], value):
        if "\0" in flag:
            raise ArgumentError(f"CompileOptions: a flag cannot contain a null byte: {flag!r}")
        if flag in _OURS or flag.startswith(("-o", "--output=")):
            raise ArgumentError(f"CompileOptions: leave out {flag!r}; harp says what the compiler makes, and where")
        if flag in _UNSAFE:
            raise ArgumentError(
                f"CompileOptions: leave out {flag!r}; it changes the arithmetic of the whole process, also NumPy's; "
                "ask for parts of it, such as -fno-signed-zeros"
            )
        if flag.endswith("=native"):
            raise ArgumentError(
                f"CompileOptions: leave out {flag!r}; harp names this machine's instruction set itself, so that a "
                "cache that is shared between machines stays right"
            )


@attrs.frozen
class CompileOptions:
    """How a function is compiled: `harp.jit(f, options=harp.CompileOptions(...))`.

    `optimize` is the level, 0 to 3, `debug` asks for debug information, and `extra_flags` is a tuple of further flags
    for the C compiler. Programs with other options are other entries of the cache. Raises ArgumentError for wrong
    values.

    >>> import harp
    >>> f = harp.jit(lambda x: x + 1, options=harp.CompileOptions(optimize=3, extra_flags=("-funroll-loops",)))
    >>> f(1.0)
    Array(2.)
    """

    optimize: int = attrs.field(default=2, validator=_check_optimize)
    debug: bool = attrs.field(default=False, validator=_check_debug)
    extra_flags: tuple[str, ...] = attrs.field(default=(), validator=_check_flags)

    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for these options."""
        return (f"-O{self.optimize}", *(("-g",) if self.debug else ()), *self.extra_flags)
