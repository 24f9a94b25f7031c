"""One row times a matrix whose rows lie along memory: which loop nests are that, and the function behind the call.

    for k, l: c[l] = fma(a[k], b[k, l], c[l])  ->  harp_stream_f32(columns, depth, &a, a_step, &b, b_step, &c)

The function takes four rows of b at a time. Like that of `harp.backends.c.update` it is compiled once for a machine.
"""

from __future__ import annotations

from functools import partial
from string import Template
from typing import NamedTuple

from harp.backends.c.scalar import TYPES
from harp.backends.c.shared import Shared
from harp.backends.c.update import Access, Print, access
from harp.backends.protocol import Unit
from harp.lower.cost import mentioned
from harp.lower.loops import For, Load, Nest, Store
from harp.trace.dtypes import DType, f32, f64
from harp.trace.expr import Apply
from harp.trace.index import Index
from harp.trace.ops import Op

_DTYPES = (f32, f64)


class Stream(NamedTuple):
    """A nest that is such a product."""

    name: str
    columns: Index
    depth: Index
    a: Access
    b: Access
    c: Access


def match(stmt: Nest) -> Stream | None:
    """The product that a nest is, if it is one."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 2 or len(stmt.heads) != 2 or store.reduce is not None:
        return None
    value, dtype = store.value, store.buffer.dtype
    if not isinstance(value, Apply) or value.op is not Op.FMA or dtype not in _DTYPES:
        return None
    found = [e for e in value.args if isinstance(e, Load) and not e.conditions]
    if len(found) < 3 or found[2].buffer is not store.buffer or found[2].index != store.index:
        return None
    k, lane = loops
    left, right, sums = found
    if any(lane in mentioned(p) for p in left.index):
        left, right = right, left
    a, b, c = access(left, loops, k, k), access(right, loops, k, lane), access(sums, loops, lane, lane)
    if a is None or b is None or c is None or store.buffer in (a.buffer, b.buffer):
        return None
    if not (b.is_along and c.is_along):
        return None
    return Stream(name(dtype), lane.extent, k.extent, a, b, c)


def call(stream: Stream, prints: Print) -> str:
    """The call."""
    a, b, c = stream.a, stream.b, stream.c
    extents = f"{prints.number(stream.columns)}, {prints.number(stream.depth)}"
    left = f"{prints.pointer(a)}, {prints.offset(a.buffer, a.step)}"
    right = f"{prints.pointer(b)}, {prints.offset(b.buffer, b.row)}"
    return f"{stream.name}({extents}, {left}, {right}, {prints.pointer(c)});"


def name(dtype: DType) -> str:
    """What the function is called."""
    return f"harp_stream_{dtype.name}"


def _declaration(dtype: DType) -> str:
    t = TYPES[dtype]
    return (
        f"void {name(dtype)}(int64_t columns, int64_t depth,\n"
        f"    const {t} *a, int64_t a_step, const {t} *b, int64_t b_step, {t} *c)"
    )


# sums[l] = fma(a[k], b[k, l], sums[l]) for all of `columns`, four k at a time, in the order of k.
LOOPS = """\
    for (; depth >= 4; depth -= 4, a += 4*a_step, b += 4*b_step) {
        const $t a0 = a[0], a1 = a[a_step], a2 = a[2*a_step], a3 = a[3*a_step];
        const $t *const b1 = b + b_step, *const b2 = b + 2*b_step, *const b3 = b + 3*b_step;
        for (int64_t l = 0; l < columns; ++l) {
            $t sum = sums[l];
            sum += a0*b[l];
            sum += a1*b1[l];
            sum += a2*b2[l];
            sum += a3*b3[l];
            sums[l] = sum;
        }
    }
    for (; depth > 0; --depth, a += a_step, b += b_step)
        for (int64_t l = 0; l < columns; ++l) sums[l] += a[0]*b[l];
"""
_UNIT = Template(
    """\
/* c[l] = fma(a[k], b[k, l], c[l]) over all k, in the order of k; contraction to a fused multiply-add is asked for by
   the flags of this unit. */
#include <stdint.h>

$declaration
{
    $t *restrict const sums = c;
"""
    + LOOPS
    + "}\n"
)


def _unit(dtype: DType) -> Unit:
    text = _UNIT.substitute(t=TYPES[dtype], declaration=_declaration(dtype))
    return Unit(text, ("-ffp-contract=fast",), shared=True)


SHARED = {name(dtype): Shared(_declaration(dtype), partial(_unit, dtype)) for dtype in _DTYPES}
