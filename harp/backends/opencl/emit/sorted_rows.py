"""Rows that all work-items sort together: short runs by one work-item each, and then runs merged in pairs.

A part of a merged pair begins where a binary search finds it in both runs. Equal elements stay in the order of their
runs, so the result is that of every stable sort.

__kernel void harp_launch0(keys, to_keys, to_places, room, given)                runs of given.run elements
__kernel void harp_launch1(from_keys, to_keys, from_places, to_places, given)    runs of given.run, merged in pairs
__kernel void harp_launch2(values, places, to, given)                            values by their places

A work-item does given.block elements of the last two.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.backends.c_family.library_routines import sort
from harp.backends.c_family.scalar import TYPES
from harp.backends.opencl.emit.includes import includes
from harp.backends.opencl.emit.render import LaunchCode
from harp.lower.loopir.loops import Row
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ZERO


def launches(row: Row, number: int) -> tuple[LaunchCode, ...]:
    """The functions that sort runs, merge them, and take values."""
    keys, moves = row.sources[0].dtype, row.function is not RowOp.SORT
    key, name, reverse = f"uint{8 * keys.itemsize}_t", keys.name, int(row.reverse)
    header = includes([sort("sort", keys)])
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
        codes.append(_launch(number + 2, [], arrays, "", take))
    return tuple(codes)


def _launch(number: int, header: Sequence[str], arrays: dict[str, str], test: str, call: str) -> LaunchCode:
    """A function of a grid of rows and columns, which does something where the row is there, and `test` is true; there
    may be more work-items. Arrays that are not stored to are constant."""
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
    grid = (ZERO, ZERO)  # the host says how large it is
    return LaunchCode(name, grid, (), (), (), "\n".join(text), (ZERO,) * len(fields))
