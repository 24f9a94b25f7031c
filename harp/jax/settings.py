"""JAX's settings: those that harp has, and those that ask for what it does anyway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harp.config import compile_functions, settings
from harp.errors import ArgumentError
from harp.trace.source_locations import where

# Settings of JAX, and the values of them that say what harp does anyway.
_ACCEPTED: dict[str, tuple[object, ...]] = {
    "jax_enable_x64": (True,),
    "jax_platform_name": ("cpu", None),
    "jax_platforms": ("cpu", None),
    "jax_debug_nans": (False,),
}


class _Config:
    """JAX's settings."""

    jax_enable_x64 = True

    @property
    def jax_disable_jit(self) -> bool:
        """Whether jitted functions run as Python."""
        return not settings.jit

    def update(self, name: str, value: object) -> None:
        """Raises ArgumentError for a setting that harp does not have, or has otherwise."""
        if name == "jax_disable_jit":
            compile_functions(not value)
            return
        if value not in _ACCEPTED.get(name, ()):
            hint = _INSTEAD.get(name, "see docs/from-jax.md")
            raise ArgumentError(f"harp has no setting {name}={value!r}: {hint}{where()}")


_INSTEAD = {
    "jax_enable_x64": "float64 is there always; pass float32 arrays to compute in float32",
    "jax_debug_nans": "write `with harp.debug.nans():`",
}
config = _Config()


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Within it, in all threads, jitted functions run as Python, with arrays that have numbers; loops are loops still.

    >>> import harp
    >>> seen = []
    >>> with disable_jit():
    ...     harp.jit(lambda x: seen.append(float(x)) or x)(1.0)
    1.0
    >>> seen
    [1.0]
    """
    before = settings.jit
    compile_functions(not disable)
    try:
        yield
    finally:
        compile_functions(before)


@contextmanager
def checking_leaks() -> Iterator[None]:
    """Changes nothing, for an array of a function being traced that is used outside of it is an error always."""
    yield


@contextmanager
def log_compiles(value: bool = True) -> Iterator[None]:
    """Changes nothing: the logger "harp" has a line of the level INFO for each program that is compiled."""
    yield


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """Changes nothing, for float64 is there always. Raises ArgumentError for False."""
    config.update("jax_enable_x64", new_val)
    yield
