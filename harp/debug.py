"""What helps to find mistakes in numerical programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from string import Formatter

import numpy as np

from harp.config import search_results, settings
from harp.errors import ArgumentError, FormatError
from harp.trace.array.host_calls import call_python, is_array, taking_arrays
from harp.trace.array.primitives import as_array
from harp.trace.source_locations import where
from harp.trace.trees import Tree

__all__ = ["callback", "nans", "print"]


@contextmanager
def nans(infinities: bool = False) -> Iterator[None]:
    """Within it, a NaN in a result is an error that says where it comes from; with `infinities` these are, too.

    Of functions that were jitted and of functions of arrays, results are searched; if one has a NaN, the graph is run
    once more, node by node, back to what made it of numbers that are none: a formula, its operands, the step of a loop,
    and the line of the user, in the derivative that of what was differentiated. What a result does not show, such as a
    NaN that `harp.numpy.where` does not choose, is no error, and neither is one that the arguments have.

    It holds for all threads. Functions are traced once more within it; calls outside are as fast as ever.

    Raises NotFiniteError.

    >>> import harp, harp.numpy as hnp
    >>> try:
    ...     with nans():
    ...         harp.jit(lambda x: hnp.log(x) - 1)(-1.0)
    ... except harp.errors.NotFiniteError as error:
    ...     print(str(error).splitlines()[0])
    nan is computed as log(x0) of x0 = -1.0
    """
    before = settings.nans, settings.infinities
    search_results(True, infinities)
    try:
        yield
    finally:
        search_results(*before)


def callback(function: Callable[..., object], *args: Tree, ordered: bool = True, **kwargs: Tree) -> None:
    """Call `function(*args, **kwargs)` whenever the program gets here, with NumPy arrays in place of arrays.

    Arguments are trees; what is no array or number in them is passed as it is. The arrays are copies, with the sizes
    and dtypes that they have in the program. What the function returns is ignored. Calls keep their order: also in
    loops, of which each step calls, and in branches, where only the one that is taken does. Of a batch each example
    calls, one after the other, those that have ended or do not take a branch left out. A function that is
    differentiated calls in its forward pass, and not where it is computed again. `ordered` is JAX's, and changes
    nothing.

    What the function raises is raised by the call of the program, which has no result then, and calls nothing more.
    It may call jitted functions itself. Raises ArgumentError if the first argument cannot be called.

    >>> import harp
    >>> seen = []
    >>> def step(total, x):
    ...     callback(lambda total, x: seen.append((float(total), float(x))), total, x)
    ...     return total + x, None
    >>> total, _ = harp.jit(lambda xs: harp.scan(step, 0.0, xs))(np.array([1.0, 2.0]))
    >>> seen
    [(0.0, 1.0), (1.0, 2.0)]
    """
    if not callable(function):
        raise ArgumentError(f"callback takes a function first, not a {type(function).__name__}{where()}")
    call_python(*taking_arrays(function, args, kwargs))


def print(fmt: str, *args: Tree, ordered: bool = True, **kwargs: Tree) -> None:
    """Print `fmt.format(*args, **kwargs)` whenever the program gets here, with NumPy arrays in place of arrays.

    It goes to `sys.stdout` at once, in the order in which the program computes; see `callback`, also for
    `ordered`.

    Raises FormatError, when the function is traced, for a placeholder without an argument, or with a format that its
    argument does not have.

    >>> import harp
    >>> @harp.jit
    ... def root(c):
    ...     def step(x):
    ...         print("x = {:.4f}", x)
    ...         return 0.5 * (x + c / x)
    ...
    ...     return harp.while_loop(lambda x: abs(x * x - c) > 1e-3, step, c)
    >>> float(root(2.0)) > 1.4
    x = 2.0000
    x = 1.5000
    x = 1.4167
    True
    """
    if not isinstance(fmt, str):
        raise ArgumentError(f"debug.print takes a format first, as in str.format, not a {type(fmt).__name__}{where()}")
    require_format(fmt, args, kwargs)

    def show(*values: object, **named: object) -> None:
        sys.stdout.write(fmt.format(*values, **named) + "\n")
        sys.stdout.flush()

    callback(show, *args, ordered=ordered, **kwargs)


def require_format(fmt: str, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> None:
    """Raise FormatError for what `str.format` cannot do with these arguments."""
    number = 0
    try:
        fields = [field for field in Formatter().parse(fmt) if field[1] is not None]
    except ValueError as error:
        raise FormatError(f"the format {fmt!r} is none of str.format: {error}{where()}") from None
    for _, name, spec, conversion in fields:
        assert name is not None and spec is not None
        first = name.split(".")[0].split("[")[0]
        if not first:
            first, number = str(number), number + 1
        numbered = first.isdecimal()  # as `str.format` has it
        if numbered and (len(first) > 9 or int(first) >= len(args)):
            raise FormatError(
                f"the placeholder {{{name}}} of {fmt!r} is for argument {first}, but there are {len(args)}{where()}"
            )
        if not numbered and first not in kwargs:
            raise FormatError(f"the placeholder {{{name}}} of {fmt!r} has no argument {first!r}{where()}")
        whole = name in ("", first) and not conversion and spec and "{" not in spec
        if whole:
            _check_spec(fmt, name, spec, args[int(first)] if numbered else kwargs[first])


def _check_spec(fmt: str, name: str, spec: str, argument: Tree) -> None:
    """Raise FormatError for a format that NumPy does not have for such an array."""
    if not is_array(argument):
        return
    array = as_array(argument)
    try:
        format(np.ones((1,) * array.ndim, array.dtype), spec)
    except (TypeError, ValueError) as error:
        advice = "; print an array as it is, or a number of it" if array.ndim else ""
        raise FormatError(
            f"the placeholder {{{name}:{spec}}} of {fmt!r} is for {array.dtype} with {array.ndim} axes: "
            f"{error}{advice}{where()}"
        ) from None
