"""Functions of whole rows in C: the calls of the kernels that sort and search.

out[row, :] = sort_by(keys[row, :], values[row, :])
    ->  status |= harp_argsort_f32(n, &keys[row*n], &work[n], work, 0, harp_parallel);
        harp_take_row(n, &work[n], &values[row*n], &out[row*n]);
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from harp.backends.c_family.library_routines import sort
from harp.lower.loopir.loops import Buffer, Row
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ZERO, Index


class RowPrinter(NamedTuple):
    """How an index, an element and the memory for a row are printed."""

    text: Callable[[Index], str]
    element: Callable[[Buffer, tuple[Index, ...]], str]
    name: Callable[[Buffer], str]


def kernel(row: Row) -> str:
    """The kernel that is called."""
    return sort(_STEMS[row.function], row.sources[0].dtype)


def call(row: Row, prints: RowPrinter) -> list[str]:
    """The lines for one row."""
    return _CALLS[row.function](row, prints)


def _pointer(row: Row, buffer: Buffer, prints: RowPrinter, start: Index = ZERO) -> str:
    return f"&{prints.element(buffer, (*row.at_of(buffer), start))}"


def _keys(row: Row, prints: RowPrinter, target: str) -> str:
    """The call of a function that sorts keys."""
    assert row.work is not None
    keys, room = row.sources[0], prints.name(row.work)
    length = prints.text(row.lane.extent)
    given = f"{length}, {_pointer(row, keys, prints)}, {target}, {room}, {int(row.reverse)}, harp_parallel"
    return f"status |= {kernel(row)}({given});"


def _sort(row: Row, prints: RowPrinter) -> list[str]:
    return [_keys(row, prints, _pointer(row, row.target, prints))]


def _order(row: Row, prints: RowPrinter) -> list[str]:
    return [_keys(row, prints, _pointer(row, row.target, prints))]


def _sort_by(row: Row, prints: RowPrinter) -> list[str]:
    assert row.work is not None
    length = prints.text(row.lane.extent)
    places = f"harp_places(&{prints.element(row.work, (row.lane.extent,))})"
    values, target = (_pointer(row, buffer, prints) for buffer in (row.sources[1], row.target))
    taken = f"harp_take_row({length}, {places}, {values}, {target});"
    return [_keys(row, prints, places), "if (status == 0)", f"    {taken}"]


def _search(row: Row, prints: RowPrinter) -> list[str]:
    table, values = row.sources
    rows = f"{prints.text(table.shape[-1])}, {_pointer(row, table, prints)}"
    part = f"{prints.text(row.lane.extent)}, {_pointer(row, values, prints, row.start)}"
    target = _pointer(row, row.target, prints, row.start)
    return [f"{kernel(row)}({rows}, {part}, {target}, {int(row.reverse)});"]


_STEMS: Mapping[RowOp, str] = {
    RowOp.SORT: "sort",
    RowOp.ORDER: "argsort",
    RowOp.SORT_BY: "argsort",
    RowOp.SEARCH: "searchsorted",
}
_CALLS: Mapping[RowOp, Callable[[Row, RowPrinter], list[str]]] = {
    RowOp.SORT: _sort,
    RowOp.ORDER: _order,
    RowOp.SORT_BY: _sort_by,
    RowOp.SEARCH: _search,
}
