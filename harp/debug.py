"""What helps to find mistakes in numerical programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harp.config import search_results, settings


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
