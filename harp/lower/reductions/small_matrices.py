"""Products of very small matrices, one for each element of a batch, have a version for each size, without inner loops.

    for b, i < n, j < n { acc = 0; for k < n: acc += x[b, i, k]*y[b, k, j]; out[b, i, j] = acc }
        ->  if n == 2 { for b { for unroll i < 2, j < 2 { ...; for unroll k < 2 } } } else if n == 3 ... else as it was

The sizes are known at run time only, and loops of two iterations cost more than what is in them. A sum is one chain of
multiply-adds in the order of k in all versions, so they have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.lower.cost_model import weigh
from harp.lower.loopir.loops import For, LoopKind, Nest, Stmt, Store, parts, walk
from harp.lower.loopir.nests import Tile, accumulations, is_sequential, is_straight, nest, privatise, rebuilt, renamed
from harp.lower.loopir.products import moving
from harp.lower.rewrite.loop_primitives import Context, specialise
from harp.trace.index.polynomial import Atom, Index, Loop, as_index, loops_in, of
from harp.trace.scalar.expr import Apply
from harp.trace.scalar.ops import Op

# The sizes that have versions, and the most statements and loops that are written out so.
_SIZES, _STATEMENTS, _LOOPS = (1, 2, 3, 4, 8), 8, 4
# The same for elementwise work.
_MATRICES, _OPERATIONS = (2, 3, 4), 8
# The size from which on a row of a matrix is a vector.
_VECTOR = 4


def small_products(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or isinstance(s.body, Nest) or len(s.heads) < 2:
        return None
    heads = [h for h in s.heads if isinstance(h, For)]
    found = list(accumulations(s.body))
    inside = (h for part in walk(s.body) if isinstance(part, Nest) for h in part.heads if isinstance(h, For))
    loops = [*(h.loop for h in heads[1:]), *(h.loop for h in inside)]  # a version writes out all of them
    batch = heads[0].loop
    statements = sum(isinstance(part, Store) for part in walk(s.body))
    fits = statements <= _STATEMENTS and _depth(s) - 1 <= _LOOPS
    if not found or not fits or not all(_is_of_batch(store, batch) for _, store in found):
        return None
    if any(loops_in(loop.extent) for loop in loops) or any(map(is_sequential, walk(s.body))):
        return None
    return _versions(heads, s, [loop.extent for loop in loops], _SIZES)


def _depth(s: Stmt) -> int:
    """How many loops stand in each other."""
    own = len(s.heads) if isinstance(s, Nest) else 0
    return own + max(map(_depth, parts(s)), default=0)


def _versions(heads: Sequence[For], s: Nest, extents: Sequence[Index], sizes: Sequence[int]) -> Stmt | None:
    """The nest with versions for these sizes; None if it can have none of them."""
    extents = list(dict.fromkeys(extents))
    result: Stmt = s
    for size in reversed(sizes):
        conditions = _equal(extents, size)
        if conditions is not None:
            version = nest(heads[:1], _version(heads[1:], s.body, size))
            result = specialise(conditions, version, result)
    return None if result is s else result


def small_matrices(context: Context, s: Stmt) -> Stmt | None:
    """Elementwise work on a batch of very small matrices, whose loops cannot be one: the same versions.

    for b, i < n, j < n: out[b, i, j] = x[b, i, j]*w[b, j]  ->  if n == 2 { for b, unroll i < 2, j < 2: ... } ...
    """
    if not isinstance(s, Nest) or len(s.heads) != 3 or not is_straight(s.body):
        return None
    heads = [h for h in s.heads if isinstance(h, For) and h.kind is LoopKind.PLAIN]
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    if len(heads) < 3 or any(loops_in(h.loop.extent) for h in heads) or sum(map(_weight, stores)) > _OPERATIONS:
        return None
    return _versions(heads, s, [h.loop.extent for h in heads[1:]], _MATRICES)


def _weight(store: Store) -> int:
    return 1 + weigh(store.value)


def _is_of_batch(store: Store, batch: Loop) -> bool:
    """Whether each element of the batch has its own factors."""
    value = store.value
    product = isinstance(value, Apply) and value.op is Op.FMA and store.reduce is None
    return product and all(batch in moving(factor) for factor in value.args[:2])


def _equal(extents: Sequence[Index], size: int) -> tuple[Index, ...] | None:
    """What is >= 0 if all of the extents are of this size; None if one of them has another."""
    if any(e.constant not in (None, size) for e in extents):
        return None
    return tuple(p for e in extents if e.constant is None for p in (e - size, size - e))


def _version(heads: Sequence[For], body: Stmt, size: int) -> Stmt:
    """The loops of one element of the batch, written out; from a vector's length on with a vector along the columns."""
    if size < _VECTOR:
        return _unrolled(nest(heads, body), size)
    *outer, last = (_fixed(head, size) for head in heads)
    tile = Tile((*outer[-1:], For(last.loop, LoopKind.SIMD)), (size,) * len((*outer[-1:], last)), unroll=True)
    places: dict[Atom, Index] = {head.loop: of(new.loop) for head, new in zip(heads, (*outer, last), strict=True)}
    return nest(outer[:-1], privatise(_unrolled(renamed(body, places), size), tile))


def _fixed(head: For, size: int) -> For:
    return For(Loop(head.loop.axis, as_index(size)), LoopKind.UNROLL)


def _unrolled(s: Stmt, size: int) -> Stmt:
    """The statement with loops of this size, written out."""
    if not isinstance(s, Nest):
        return rebuilt(s, lambda part: _unrolled(part, size))
    heads = [_fixed(head, size) for head in s.heads if isinstance(head, For)]
    places: dict[Atom, Index] = {
        head.loop: of(new.loop) for head, new in zip(s.heads, heads, strict=True) if isinstance(head, For)
    }
    return nest(heads, _unrolled(renamed(s.body, places), size))
