"""Sorting rows by many launches: runs first, then passes of merges between two sets of arrays."""

from __future__ import annotations

from collections.abc import Callable

from harp.backends.opencl.buffers import ClMemory
from harp.backends.opencl.emit.sorted_rows import RUN
from harp.backends.opencl.host_calls import Launch, Run, take
from harp.trace.graph.row_functions import RowOp

# A buffer, and where an array begins in it, in elements.
Place = tuple[ClMemory, int]


def sort_rows(
    run: Run,
    launch: Callable[..., object],
    launched: tuple[Launch, ...],
    function: str,
    rows: int,
    n: int,
    itemsize: int,
    sources: tuple[Place, ...],
    targets: tuple[Place, ...],
) -> None:
    """Launch a sort of rows of n keys of this size; see `RowOp` for what it makes of them."""
    if rows <= 0 or n <= 0:
        return
    (target,), (keys, *values) = targets, sources
    runs, merges = -(-n // RUN), max(-(-n // RUN) - 1, 0).bit_length()
    sets = _arrays(run, RowOp(function), rows * n, itemsize, target)
    here = sets[merges % 2]  # so that the last pass ends in the first set
    _put(run, launch, launched[0], (runs, rows), (keys, *here), (rows, n, RUN))
    for number in range(merges):
        there = sets[(merges - number - 1) % 2]
        arrays = tuple(array for both in zip(here, there, strict=True) for array in both)
        _put(run, launch, launched[1], (n, rows), arrays, (rows, n, RUN << number))
        here = there
    if values:
        _put(run, launch, launched[2], (n, rows), (values[0], here[-1], target), (rows, n, 0))


def _arrays(run: Run, function: RowOp, count: int, itemsize: int, target: Place) -> tuple[tuple[Place, ...], ...]:
    """Two sets of arrays: keys, and places where they are asked for. The result is one of the first set."""

    def fresh(size: int) -> Place:
        return take(run, count * size), 0

    if function is RowOp.SORT:
        return (target,), (fresh(itemsize),)
    first = target if function is RowOp.ORDER else fresh(8)
    return (fresh(itemsize), first), (fresh(itemsize), fresh(8))


def _put(
    run: Run,
    launch: Callable[..., object],
    launched: Launch,
    grid: tuple[int, int],
    arrays: tuple[Place, ...],
    numbers: tuple[int, int, int],
) -> None:
    launch(run, launched, grid, tuple(b for b, _ in arrays), (*(at for _, at in arrays), *numbers))
