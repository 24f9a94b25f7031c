"""Rows that all work-items sort together: short runs by one work-item each, and then runs merged in pairs.

An element knows its place in the merged run: its own place, and how many elements of the other run come before it,
which a binary search finds. Equal elements stay in the order of their runs, so the result is that of every stable sort.

__kernel void harp_launch0(keys, to_keys, to_places, given)                      runs of RUN elements
__kernel void harp_launch1(from_keys, to_keys, from_places, to_places, given)    runs of given.width, merged
__kernel void harp_launch2(values, places, to, given)                            values by their places

Source: N. Satish, M. Harris, M. Garland: "Designing efficient sorting algorithms for manycore GPUs", 2009.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.backends.c.emit.calls.library_routines import sort
from harp.backends.c.emit.scalar import TYPES
from harp.backends.opencl.emit.includes import includes
from harp.backends.opencl.emit.render import LaunchCode
from harp.lower.loopir.loops import Row
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ZERO

# Elements of a run that one work-item sorts by insertion.
RUN = 32


def launches(row: Row, number: int) -> tuple[LaunchCode, ...]:
    """The functions that sort runs, merge them, and take values."""
    keys, moves = row.sources[0].dtype, row.function is not RowOp.SORT
    key, name, reverse = f"uint{8 * keys.itemsize}_t", keys.name, int(row.reverse)
    header = includes([sort("sort", keys)])
    runs = {"keys": key, "to_keys": key} | ({"to_places": "int64_t"} if moves else {})
    merged = {"from_keys": key, "to_keys": key} | ({"from_places": "int64_t", "to_places": "int64_t"} if moves else {})
    to, places = ("to_places", "from_places") if moves else ("0", "0")
    run = f"harp_sort_run_{name}(given.n, {RUN}, {RUN} * column, keys, to_keys, {to}, {reverse});"
    merge = f"harp_merge_element_{name}(given.n, given.width, column, from_keys, {places}, to_keys, {to}, {reverse});"
    codes = [
        _launch(number, header, runs, f"{RUN} * column", run),
        _launch(number + 1, header, merged, "column", merge),
    ]
    if row.function is RowOp.SORT_BY:
        element = TYPES[row.target.dtype]
        arrays = {"values": element, "places": "int64_t", "to": element}
        codes.append(_launch(number + 2, [], arrays, "column", "to[column] = values[places[column]];"))
    return tuple(codes)


def _launch(number: int, header: Sequence[str], arrays: dict[str, str], first: str, call: str) -> LaunchCode:
    """A function of a grid of rows and columns, which does something where the row is there, and `first` is in it;
    there may be more work-items. Arrays that are not stored to are constant."""
    name = f"harp_launch{number}"
    fields = [*(f"{array}_at" for array in arrays), "rows", "n", "width"]
    kinds = {array: "" if array.startswith("to") else "const " for array in arrays}
    parameters = [f"__global {kinds[array]}{element} *{array}" for array, element in arrays.items()]
    text = [
        *header,
        f"struct {name} {{ {' '.join(f'int64_t {field};' for field in fields)} }};",
        f"__kernel void {name}({', '.join(parameters)}, const struct {name} given)",
        "{",
        "    const int64_t column = get_global_id(0), row = get_global_id(1);",
        f"    if (row >= given.rows || {first} >= given.n) return;",
        *(f"    {array} += given.{array}_at + row * given.n;" for array in arrays),
        f"    {call}",
        "}",
    ]
    grid = (ZERO, ZERO)  # the host says how large it is
    return LaunchCode(name, grid, (), (), (), "\n".join(text), (ZERO,) * len(fields))
