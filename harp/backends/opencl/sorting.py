"""Sorting rows by many launches: runs first, then passes of merges between two sets of arrays."""

from __future__ import annotations

from collections.abc import Callable

from harp.backends.opencl.buffers import ClMemory
from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.opencl.host_calls import Launch, Run, take
from harp.trace.graph.row_functions import RowOp

# Elements of a run that a work-item of a wide device sorts, by insertion, and of a part of two runs that it merges.
_RUN, _PART = 16, 4
# Elements that a core merges, or takes by their places.
_BLOCK = 1 << 14

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
    width, block = _lengths(run.device, n)
    runs = -(-n // width)
    merges = (runs - 1).bit_length()
    sets = _arrays(run, RowOp(function), rows * n, itemsize, target)
    here, there = sets[merges % 2], sets[1 - merges % 2]  # so that the last pass ends in the first set
    _put(run, launch, launched[0], (runs, rows), (keys, *here, there[-1]), (rows, n, width, 0))
    for number in range(merges):
        merged = width << number
        parts = -(-n // (2 * merged)) * -(-2 * merged // block)
        arrays = tuple(array for both in zip(here, there, strict=True) for array in both)
        _put(run, launch, launched[1], (parts, rows), arrays, (rows, n, merged, block))
        here, there = there, here
    if values:
        _put(run, launch, launched[2], (-(-n // block), rows), (values[0], here[-1], target), (rows, n, 0, block))


def _lengths(device: OpenCLDevice, n: int) -> tuple[int, int]:
    """The length of the first runs of a row, and how many elements a work-item merges: few for each lane of a wide
    device, else a run for each core."""
    if device.is_wide:
        return _RUN, _PART
    return -(-n // (1 << (device.cores - 1).bit_length())), _BLOCK


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
    numbers: tuple[int, int, int, int],
) -> None:
    launch(run, launched, grid, tuple(b for b, _ in arrays), (*(at for _, at in arrays), *numbers))
