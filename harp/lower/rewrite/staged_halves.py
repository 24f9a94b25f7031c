"""float16 in memory is converted to float32 by blocks: machines have vector instructions for that, which compilers do
not use in loops.

    for simd i: out[i] = cast<f16>(f(cast<f32>(x[i])))
        ->  for ib { for simd l: x'[l] = cast<f32>(x[ib*BLOCK + l]);
                     for simd l: out'[l] = f(x'[l]);
                     for simd l: out[ib*BLOCK + l] = cast<f16>(out'[l]) }

The first and the last loop then become calls of the library (`harp.lower.library`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harp.lower.loopir.loops import MEMORY, Alloc, Buffer, For, Load, LoopKind, Nest, Space, Stmt, Store, walk
from harp.lower.loopir.nests import is_straight, nest, rebuilt, renamed, sequence, stride
from harp.lower.rewrite.loop_fission import reads_what_it_stores
from harp.lower.rewrite.loop_primitives import Context, split
from harp.trace.index.polynomial import Loop, as_index, indirect_in
from harp.trace.scalar.dtypes import DType, f16, f32
from harp.trace.scalar.expr import Apply, Expr, apply, cast
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

# Elements of a block; the fewest elements for which it pays; and the most arrays of a block, for the L1 cache.
_BLOCK, _FEW, _MOST = 512, 32, 8


def staged_halves(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or not is_straight(s.body):
        return None
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    count = last.loop.extent.constant
    if len(outer) + 1 < len(s.heads) or last.kind is not LoopKind.SIMD or (count is not None and count <= _FEW):
        return None
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    narrowed = [store for store in stores if _is_narrowed(store, last.loop)]
    widened = [e for e in walk_expr(store.value for store in stores) if _is_widened(e, last.loop)]
    if not 0 < len(narrowed) + len(widened) <= _MOST or _only_converts(s.body) or reads_what_it_stores(stores):
        return None
    blocks = split(context.fresh, last.loop.extent, _BLOCK)
    head, lane = context.fresh.loop(blocks.length, LoopKind.SIMD)
    room = (as_index(_BLOCK),)
    copies = {e: Load(Buffer(f"wide{n}", f32, room, Space.LOCAL), (lane,)) for n, e in enumerate(widened)}
    results = {
        store.buffer: Load(Buffer(f"result{n}", f32, room, Space.LOCAL), (lane,)) for n, store in enumerate(narrowed)
    }
    before = [Store(copy.buffer, copy.index, e) for e, copy in copies.items()]
    after = [Store(store.buffer, store.index, cast(results[store.buffer], f16)) for store in narrowed]
    parts = (*before, _over_copies(s.body, copies, results), *after)
    whole = sequence(nest(head, renamed(part, {last.loop: blocks.start + lane})) for part in parts)
    for load in (*copies.values(), *results.values()):
        whole = Alloc(load.buffer, whole)
    return nest((*outer, *blocks.heads), whole)


def _is_cast(e: Expr, to: DType, source: DType) -> bool:
    return isinstance(e, Apply) and e.op is Op.CAST and e.dtype is to and e.operands[0].dtype is source


def _is_widened(e: Expr, loop: Loop) -> bool:
    """Whether it is an element of a row of float16 in memory, converted to float32."""
    return _is_cast(e, f32, f16) and _is_along(e.args[0], loop)


def _is_narrowed(store: Store, loop: Loop) -> bool:
    """Whether it stores float32, rounded, to a row of float16 in memory."""
    return _is_cast(store.value, f16, f32) and _is_along(Load(store.buffer, store.index), loop)


def _is_along(e: Expr, loop: Loop) -> bool:
    if not isinstance(e, Load) or e.conditions or e.buffer.space not in MEMORY or any(map(indirect_in, e.index)):
        return False
    return stride(e, loop) == 1


def _only_converts(body: Stmt) -> bool:
    """Whether the loop is only a conversion."""
    value = body.value if isinstance(body, Store) else None
    return isinstance(value, Apply) and value.op is Op.CAST and isinstance(value.args[0], Load)


def _over_copies(s: Stmt, copies: Mapping[Expr, Load], results: Mapping[Buffer, Load]) -> Stmt:
    """The statement with loads of copies in place of conversions, and stores to buffers of float32."""
    if not isinstance(s, Store):
        return rebuilt(s, lambda part: _over_copies(part, copies, results))
    new: dict[Expr, Expr] = {}
    for e in walk_expr((s.value,)):
        copy = copies.get(e)
        new[e] = copy or (apply(e.op, *(new[a] for a in e.args), cast_to=e.dtype) if isinstance(e, Apply) else e)
    result = results.get(s.buffer)
    if result is None:
        return attrs.evolve(s, value=new[s.value])
    return Store(result.buffer, result.index, new[s.value.args[0]])
