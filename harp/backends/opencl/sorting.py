"""Sorting of rows by all work-items, in several launches: each work-item sorts a short run, then passes merge pairs of
runs, back and forth between two sets of arrays.

A work-item merges a part of a pair of runs, whose beginning a binary search finds in both. Equal elements stay in the
order of their runs, so the sort is stable.

__kernel void harp_launch0(keys, to_keys, to_places, room, given)                runs of given.run elements
__kernel void harp_launch1(from_keys, to_keys, from_places, to_places, given)    runs of given.run, merged in pairs
__kernel void harp_launch2(values, places, to, given)                            values by their places

A work-item does given.block elements of the last two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.backends.c_family.library import kernel
from harp.backends.c_family.scalar import TYPES
from harp.backends.c_family.values import code
from harp.backends.opencl.buffers import ClMemory
from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.opencl.emit.render import DOUBLES, LaunchCode, includes
from harp.backends.opencl.host_calls import Launch, Run, take
from harp.lower.loopir.loops import Row
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ZERO

# On a wide device: elements of a run that a work-item sorts by insertion, and of the part of two runs that it merges.
_RUN, _PART = 16, 4
# Elements that a core merges, or gathers.
_BLOCK = 1 << 14

# A buffer, and the offset of an array in it, in elements.
Place = tuple[ClMemory, int]


def launches(row: Row, number: int) -> tuple[LaunchCode, ...]:
    """The functions that sort runs, merge them, and take values."""
    keys, moves = row.sources[0].dtype, row.function is not RowOp.SORT
    key, name, reverse = f"uint{8 * keys.itemsize}_t", keys.name, int(row.reverse)
    header = includes([kernel("sort", keys)])
    room = {"to_places": "int64_t", "to_room": "int64_t"} if moves else {"to_room": key}
    runs = {"keys": key, "to_keys": key} | room
    merged = {"from_keys": key, "to_keys": key} | ({"from_places": "int64_t", "to_places": "int64_t"} if moves else {})
    to, places = ("to_places", "from_places") if moves else ("0", "0")
    first = "given.run * column"
    run = f"harp_sort_run_{name}(given.n, given.run, {first}, keys, to_keys, {to}, to_room, {reverse});"
    merged_by = f"from_keys, {places}, to_keys, {to}, {reverse}"
    merge = f"harp_merge_part_{name}(given.n, given.run, given.block, column, {merged_by});"
    codes = [
        _launch(number, header, runs, f"{first} < given.n", run),
        _launch(number + 1, header, merged, "", merge),
    ]
    if row.function is RowOp.SORT_BY:
        element = TYPES[row.target.dtype]
        arrays = {"values": element, "places": "int64_t", "to": element}
        end = "min(given.n, (column + 1) * given.block)"
        take = f"for (int64_t i = column * given.block; i < {end}; ++i) to[i] = values[places[i]];"
        moved = _launch(number + 2, [], arrays, "", take)
        codes.append(moved._replace(doubles=row.target.dtype in DOUBLES))
    return tuple(codes)


def _launch(number: int, header: Sequence[str], arrays: dict[str, str], test: str, call: str) -> LaunchCode:
    """A function of a grid of rows and columns, which returns if there is no such row or `test` is false: there may be
    more work-items. Arrays that are not stored to are constant."""
    name = f"harp_launch{number}"
    fields = [*(f"{array}_at" for array in arrays), "rows", "n", "run", "block"]
    kinds = {array: "" if array.startswith("to") else "const " for array in arrays}
    parameters = [f"__global {kinds[array]}{element} *{array}" for array, element in arrays.items()]
    text = [
        *header,
        f"struct {name} {{ {' '.join(f'int64_t {field};' for field in fields)} }};",
        f"__kernel void {name}({', '.join(parameters)}, const struct {name} given)",
        "{",
        "    const int64_t column = get_global_id(0), row = get_global_id(1);",
        f"    if (harp_is_beyond(row, given.rows){f' || !({test})' if test else ''}) return;",
        *(f"    {array} += given.{array}_at + row * given.n;" for array in arrays),
        f"    {call}",
        "}",
    ]
    grid = (ZERO, ZERO)  # the host knows its size
    return LaunchCode(name, grid, (), (), (), tuple(code("\n".join(text))), len(fields))


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
    """Enqueue a sort of rows of n keys of this size; `RowOp` says what it computes."""
    if rows <= 0 or n <= 0:
        return
    (target,), (keys, *values) = targets, sources
    width, block = _lengths(run.device, n)
    runs = -(-n // width)
    merges = (runs - 1).bit_length()
    sets = _arrays(run, RowOp(function), rows * n, itemsize, target)
    here, there = sets[merges % 2], sets[1 - merges % 2]  # so that the last pass ends in the first set
    _enqueue(run, launch, launched[0], (runs, rows), (keys, *here, there[-1]), (rows, n, width, 0))
    for number in range(merges):
        merged = width << number
        parts = -(-n // (2 * merged)) * -(-2 * merged // block)
        arrays = tuple(array for both in zip(here, there, strict=True) for array in both)
        _enqueue(run, launch, launched[1], (parts, rows), arrays, (rows, n, merged, block))
        here, there = there, here
    if values:
        _enqueue(run, launch, launched[2], (-(-n // block), rows), (values[0], here[-1], target), (rows, n, 0, block))


def _lengths(device: OpenCLDevice, n: int) -> tuple[int, int]:
    """The length of the first runs, and the number of elements that a work-item merges: few per lane on a wide device,
    else a run for each core."""
    if device.is_wide:
        return _RUN, _PART
    return -(-n // (1 << (device.cores - 1).bit_length())), _BLOCK


def _arrays(run: Run, function: RowOp, count: int, itemsize: int, target: Place) -> tuple[tuple[Place, ...], ...]:
    """Two sets of arrays: keys, and indices if they are asked for. The result is in the first set."""

    def fresh(size: int) -> Place:
        return take(run, count * size), 0

    if function is RowOp.SORT:
        return (target,), (fresh(itemsize),)
    first = target if function is RowOp.ORDER else fresh(8)
    return (fresh(itemsize), first), (fresh(itemsize), fresh(8))


def _enqueue(
    run: Run,
    launch: Callable[..., object],
    launched: Launch,
    grid: tuple[int, int],
    arrays: tuple[Place, ...],
    numbers: tuple[int, int, int, int],
) -> None:
    launch(run, launched, grid, tuple(b for b, _ in arrays), (*(at for _, at in arrays), *numbers))
