"""Rows that all work-items sort together: short runs by one work-item each, and then runs merged in pairs.

An element knows its place in the merged run: its own place, and how many elements of the other run come before it,
which a binary search finds. Equal elements stay in the order of their runs, so the result is that of every stable sort.

__kernel void harp_launch0(keys, to_keys, to_places, given)                                 runs of RUN elements
__kernel void harp_launch1(from_keys, from_places, to_keys, to_places, given)               runs of given.width, merged
__kernel void harp_launch2(values, places, to, given)                                       values by their places

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

_RUNS = """\
    const int64_t first = {RUN} * column, length = min((int64_t){RUN}, given.n - first);
    if (length <= 0) return;
    keys += first;
    to_keys += first;
    for (int64_t i = 0; i < length; ++i) {{
        const {KEY} here = keys[i];
        int64_t j = i;
        for (; j > 0 && {IS_AFTER}(to_keys[j - 1], here, {REVERSE}); --j) {{
            to_keys[j] = to_keys[j - 1];
            {PLACES}to_places[first + j] = to_places[first + j - 1];
        }}
        to_keys[j] = here;
        {PLACES}to_places[first + j] = first + i;
    }}"""

_MERGED = """\
    if (column >= given.n) return;
    const int64_t run = column / given.width, other = (run ^ 1) * given.width;
    const int64_t start = min(other, given.n), end = min(other + given.width, given.n);
    const {KEY} here = from_keys[column];
    int64_t low = start, high = end;
    while (low < high) {{
        const int64_t middle = (low + high) / 2;
        const {KEY} there = from_keys[middle];
        const int is_before = run & 1 ? !{IS_AFTER}(there, here, {REVERSE}) : {IS_AFTER}(here, there, {REVERSE});
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }}
    const int64_t at = (run & 1 ? column - given.width : column) + low - start;
    to_keys[at] = here;
    {PLACES}to_places[at] = from_places[column];"""

_TAKEN = """\
    if (column < given.n) to[column] = values[places[column]];"""


def launches(row: Row, number: int) -> tuple[LaunchCode, ...]:
    """The functions that sort runs, merge them, and take values."""
    keys, moves = row.sources[0].dtype, row.function is not RowOp.SORT
    key = f"uint{8 * keys.itemsize}_t"
    words = {
        "RUN": RUN,
        "KEY": key,
        "IS_AFTER": f"harp_is_after_{keys.name}",
        "REVERSE": int(row.reverse),
        "PLACES": "" if moves else "// ",
    }
    own = {f"{name}_keys": key for name in ("from", "to")} | {f"{name}_places": "int64_t" for name in ("from", "to")}
    merged = ("from_keys", "from_places", "to_keys", "to_places") if moves else ("from_keys", "to_keys")
    given = ("keys", *(name for name in merged if name.startswith("to")))
    header = includes([sort("sort", keys)])
    codes = [
        _launch(number, header, {name: own.get(name, key) for name in given}, _RUNS.format(**words)),
        _launch(number + 1, header, {name: own[name] for name in merged}, _MERGED.format(**words)),
    ]
    if row.function is RowOp.SORT_BY:
        element = TYPES[row.target.dtype]
        codes.append(_launch(number + 2, [], {"values": element, "places": "int64_t", "to": element}, _TAKEN))
    return tuple(codes)


def _launch(number: int, header: Sequence[str], arrays: dict[str, str], body: str) -> LaunchCode:
    """A function of a grid of rows and columns; arrays that are not stored to are constant."""
    name = f"harp_launch{number}"
    fields = [*(f"{array}_at" for array in arrays), "n", "width"]
    kinds = {array: "" if array.startswith("to") else "const " for array in arrays}
    parameters = [f"__global {kinds[array]}{element} *{array}" for array, element in arrays.items()]
    text = [
        *header,
        f"struct {name} {{ {' '.join(f'int64_t {field};' for field in fields)} }};",
        f"__kernel void {name}({', '.join(parameters)}, const struct {name} given)",
        "{",
        "    const int64_t column = get_global_id(0), row = get_global_id(1) * given.n;",
        *(f"    {array} += given.{array}_at + row;" for array in arrays),
        body,
        "}",
    ]
    grid = (ZERO, ZERO)  # the host says how large it is
    return LaunchCode(name, grid, (), (), (), "\n".join(text), (ZERO,) * len(fields))
