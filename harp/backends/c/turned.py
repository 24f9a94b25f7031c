"""A part of a matrix turned over: which loop nests are that, and the function behind the call.

    for r, k: piece[k, r] = b[r, k]  ->  harp_turned_32_x16(rows, columns, &b, b_row, &piece, width)

Elements are moved as they are, so there is one function for all dtypes of a size. Like that of
`harp.backends.c.update` it is compiled once for a machine.
"""

from __future__ import annotations

from functools import partial
from string import Template
from typing import NamedTuple

from harp.backends.c import turn
from harp.backends.c.scalar import TYPES
from harp.backends.c.shared import Shared
from harp.backends.c.update import LANES, Access, Print, access
from harp.backends.protocol import Unit
from harp.lower.across import VECTORS
from harp.lower.loops import For, Load, Nest, Space, Store
from harp.trace.dtypes import DType
from harp.trace.index import Index

# By bytes of an element, a dtype of that size.
_BY_SIZE = {dtype.itemsize: dtype for dtype in LANES}


class Turned(NamedTuple):
    """A nest that copies rows of `b` to columns of `c`."""

    name: str
    rows: Index
    columns: Index
    b: Access
    c: Access


def match(stmt: Nest) -> Turned | None:
    """The part that a nest turns over, if it does that."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 2 or len(stmt.heads) != 2 or store.reduce is not None:
        return None
    value, piece = store.value, store.buffer
    if not isinstance(value, Load) or value.conditions or piece.space is not Space.TILE or len(piece.shape) != 2:
        return None
    dtype, lanes = _BY_SIZE.get(piece.dtype.itemsize), (piece.shape[-1].constant or 0) // VECTORS
    if dtype is None or lanes not in LANES[dtype] or value.buffer is piece:
        return None
    r, k = loops
    b, c = access(value, loops, r, k), access(Load(piece, store.index), loops, k, r)
    if b is None or c is None or not (b.is_along and c.is_along):
        return None
    return Turned(name(dtype, lanes), r.extent, k.extent, b, c)


def call(found: Turned, prints: Print) -> str:
    """The call."""
    extents = f"{prints.number(found.rows)}, {prints.number(found.columns)}"
    b, c = (f"{prints.pointer(x)}, {prints.offset(x.buffer, x.row)}" for x in (found.b, found.c))
    return f"{found.name}({extents}, {b}, {c});"


def name(dtype: DType, lanes: int) -> str:
    """What the function is called."""
    return f"harp_turned_{8 * dtype.itemsize}_x{lanes}"


def _declaration(dtype: DType, lanes: int) -> str:
    places = "const void *b, int64_t b_row, void *c, int64_t c_row"
    return f"void {name(dtype, lanes)}(int64_t rows, int64_t columns, {places})"


_UNIT = Template("""\
/* c[k, r] = b[r, k] for all rows and columns of b, by squares in registers; the last ones overlap those before. */
#include <stdint.h>

$turn
typedef $element element __attribute__((may_alias));

$declaration
{
    const element *const from = b;
    element *const to = c;
    if (rows < LANES || columns < LANES) {
        for (int64_t k = 0; k < columns; ++k)
            for (int64_t r = 0; r < rows; ++r) to[k*c_row + r] = from[r*b_row + k];
        return;
    }
    for (int64_t row = 0; row < rows; row += LANES)
        for (int64_t column = 0; column < columns; column += LANES) {
            const int64_t r = row < rows - LANES ? row : rows - LANES;
            const int64_t k = column < columns - LANES ? column : columns - LANES;
            vector turned[LANES];
            turn((const $t *)(from + r*b_row + k), b_row, turned);
            for (int64_t j = 0; j < LANES; ++j) *(vector *)(to + (k + j)*c_row + r) = turned[j];
        }
}
""")


def _unit(dtype: DType, lanes: int) -> Unit:
    fields = {
        "t": TYPES[dtype], "element": f"int{8 * dtype.itemsize}_t", "turn": turn.text(dtype, lanes),
        "declaration": _declaration(dtype, lanes),
    }  # fmt: skip
    return Unit(_UNIT.substitute(fields), turn.FLAGS, shared=True)


_KINDS = [(dtype, lanes) for dtype in _BY_SIZE.values() for lanes in LANES[dtype]]
SHARED = {name(*kind): Shared(_declaration(*kind), partial(_unit, *kind)) for kind in _KINDS}
