"""`closure_convert`: what a function closes over, as further arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harp.trace.array.array import Array
from harp.transforms.closures import closed_over, standing_for


@attrs.frozen
class _Closed:
    """A function and what it closes over, out of the sight of those who look for that."""

    function: Callable[..., Any]
    arrays: tuple[Array, ...]


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Array]]:
    """The function with further arguments behind its own, for what is being traced that it closes over; and these.

    These are arrays of floats. Where a function with derivatives of its own takes a function, derivatives reach what
    that closes over in this way. Outside of a trace nothing that it closes over has a derivative. `example_args` are
    JAX's, and are not needed.

    >>> import harp
    >>> def scaled(a):
    ...     converted, closed = closure_convert(lambda x: a * x, 1.0)
    ...     return converted(2.0, *(3 * c for c in closed))
    >>> harp.grad(scaled)(5.0)
    Array(6.)
    """
    found = tuple(array for array in closed_over(fun) if array.kind.is_inexact)
    closed = _Closed(fun, found)

    def converted(*args: Any) -> Any:
        own, given = args[: len(args) - len(found)], args[len(args) - len(found) :]
        with standing_for(closed.arrays, given):
            return closed.function(*own)

    return converted, list(found)
