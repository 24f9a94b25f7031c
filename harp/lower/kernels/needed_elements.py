"""Of an array that is private to a step of a loop, only the elements that the step reads are computed. With t for the
number of the step:

    for i < n: x[i] = f(i);  for i < n: y[i] = x[i] / x[t] if t <= i else 0
        ->  for i < t: x[i] = 0;  for i < n - t: x[t + i] = f(t + i);  for i < n: ...

Which elements are read follows from t in indices: element t, or those on one side of t in selects by position. That
halves the work of a reduction for each element, as in the columns of a triangular factor. The other elements become 0:
they are loaded by vectors whose other lanes need their neighbours, and then not chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import attrs

from harp.lower.loopir.effects import effects, loads, value_loads
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Kernel, Load, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import FreshLoops, accumulations, nest, renamed, sequence
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ZERO, Counter, Index, Loop, as_index, depends_on, loops_in, of
from harp.trace.scalar.expr import Apply, Const, Expr, Position, const
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op


def only_needed(kernels: Sequence[Kernel], own: Collection[Buffer]) -> Sequence[Kernel]:
    """The kernels of a step, which compute only those sums that are read; `own` are the private arrays of the step."""
    result = list(kernels)
    for number, kernel in enumerate(kernels):
        product = _product(kernel.body)
        if product is None or product.buffer not in own:
            continue
        others = [other.body for other in kernels if other is not kernel]
        if all(_reads_elements(s, product.buffer) for s in others):
            result[number] = kernel.with_body(_clipped(FreshLoops(kernel), product, others) or kernel.body)
    return result


@attrs.frozen(repr=False)
class _Product:
    """A nest that makes an array and stores to nothing else. Its first loop is the index along `axis`."""

    nest: Nest
    buffer: Buffer
    axis: int

    @property
    def loop(self) -> Loop:
        head = self.nest.heads[0]
        assert isinstance(head, For)
        return head.loop


def _product(s: Stmt) -> _Product | None:
    if not isinstance(s, Nest) or not any(True for _ in accumulations(s.body)):
        return None
    head = s.heads[0]
    plain = all(isinstance(part, (Nest, Alloc, Seq, Store)) for part in walk(s))
    if not plain or not isinstance(head, For) or head.kind is not LoopKind.PLAIN:
        return None
    private = {part.buffer for part in walk(s) if isinstance(part, Alloc)}
    stores = [part for part in walk(s) if isinstance(part, Store) and part.buffer not in private]
    if len(stores) != 1 or stores[0].reduce is not None or stores[0].buffer.space is not Space.SCRATCH:
        return None
    (store,) = stores
    axes = [axis for axis, p in enumerate(store.index) if p is of(head.loop)]
    if len(axes) != 1 or store.buffer in effects(s).reads or store.buffer.shape[axes[0]] is not head.loop.extent:
        return None
    return _Product(s, store.buffer, axes[0])


def _reads_elements(s: Stmt, buffer: Buffer) -> bool:
    """Whether a statement uses a buffer only by loads in the values that it stores."""
    if buffer not in effects(s).touched:
        return True
    if buffer in effects(s).writes:
        return False
    for part in walk(s):
        if isinstance(part, Store):
            inner = {load for load in loads(part) if load.buffer is buffer}
            if inner - {e for e in walk_expr((part.value,)) if isinstance(e, Load)}:
                return False
        elif not isinstance(part, (Nest, Alloc, Seq)) and buffer in _used(part):
            return False
    return True


def _used(s: Stmt) -> Iterable[Buffer]:
    """The buffers that a statement itself uses; for a branch, those in its conditions."""
    return {load.buffer for load in loads(s)} if isinstance(s, If) else effects(s).touched


def _clipped(fresh: FreshLoops, product: _Product, readers: Sequence[Stmt]) -> Stmt | None:
    """The nest for the elements from the first needed one on, or up to the last needed one."""
    values = [part.value for s in readers for part in walk(s) if isinstance(part, Store)]
    values = [value for value in values if any(load.buffer is product.buffer for load in value_loads(value))]
    end = product.loop.extent
    for edge in dict.fromkeys(_edges(product, values)):
        if not nonnegative(edge) or not nonnegative(end - 1 - edge):
            continue
        if all(_within(product, value, edge, 1, {}) for value in values):
            return sequence([_zeros(fresh, product, ZERO, edge), _slice(product, edge, end - edge)])
        if all(_within(product, value, edge, -1, {}) for value in values):
            return sequence([_slice(product, ZERO, edge + 1), _zeros(fresh, product, edge + 1, end - edge - 1)])
    return None


def _edges(product: _Product, values: Sequence[Expr]) -> Iterator[Index]:
    """Indices of elements that are read, and bounds in selects, that depend on the step's number."""
    for value in values:
        reads = [load.index[product.axis] for load in value_loads(value) if load.buffer is product.buffer]
        bounds = [p for e in walk_expr((value,)) for p in _implied(e, True)]
        for read in reads:
            yield from (p for p in (read, *(read - bound for bound in bounds)) if _is_of_step(p))


def _is_of_step(p: Index) -> bool:
    return not loops_in(p) and any(isinstance(atom, Counter) for atom in depends_on(p))


def _within(product: _Product, e: Expr, edge: Index, sign: int, known: dict[Expr, bool]) -> bool:
    """Whether a value needs only the element at the edge, and elements on one side of it."""
    if e not in known:
        if isinstance(e, Load):
            known[e] = e.buffer is not product.buffer or nonnegative((e.index[product.axis] - edge) * sign)
        elif isinstance(e, Apply) and e.op is Op.SELECT:
            condition, *choices = e.operands
            inside = [_within(product, part, edge, sign, known) for part in e.operands]
            sides = zip(choices, inside[1:], (True, False), strict=True)
            known[e] = inside[0] and all(
                fits or _follows(product, condition, holds, part, edge, sign) for part, fits, holds in sides
            )
        else:
            parts = e.operands if isinstance(e, Apply) else ()
            known[e] = all(_within(product, part, edge, sign, known) for part in parts)
    return known[e]


def _follows(product: _Product, condition: Expr, holds: bool, part: Expr, edge: Index, sign: int) -> bool:
    """Whether the elements that a branch of a select reads are on that side wherever it is chosen."""
    reads = [load for load in value_loads(part) if load.buffer is product.buffer]
    return all(_implies(condition, holds, (load.index[product.axis] - edge) * sign) for load in reads)


def _implies(condition: Expr, holds: bool, goal: Index) -> bool:
    """Whether goal >= 0 follows from the condition, or from its negation."""
    if nonnegative(goal) or not isinstance(condition, Apply):
        return nonnegative(goal)
    if condition.op is Op.NOT:
        return _implies(condition.operands[0], not holds, goal)
    if condition.op in (Op.AND, Op.OR):
        parts = (_implies(part, holds, goal) for part in condition.operands)
        return any(parts) if (condition.op is Op.AND) == holds else all(parts)
    return any(nonnegative(goal - p) for p in _implied(condition, holds))


def _implied(e: Expr, holds: bool) -> tuple[Index, ...]:
    """Indices that are >= 0 if a comparison of positions holds, or does not hold."""
    if not isinstance(e, Apply) or e.op not in (Op.LT, Op.EQ):
        return ()
    a, b = (_index(side) for side in e.operands)
    if a is None or b is None:
        return ()
    if e.op is Op.LT:
        return (b - a - 1,) if holds else (a - b,)
    return (b - a, a - b) if holds else ()


def _index(e: Expr) -> Index | None:
    if isinstance(e, Position):
        return e.index
    return as_index(int(e.value)) if isinstance(e, Const) and e.dtype.is_integer else None


def _slice(product: _Product, start: Index, count: Index) -> Stmt:
    """The nest for `count` elements from `start` on."""
    loop = Loop(product.loop.axis, count)
    heads = (For(loop), *product.nest.heads[1:])
    return Nest(heads, renamed(product.nest.body, {product.loop: start + of(loop)}))


def _zeros(fresh: FreshLoops, product: _Product, start: Index, count: Index) -> Stmt:
    """Set these elements to 0."""
    heads: list[For] = []
    index: list[Index] = []
    for axis, extent in enumerate(product.buffer.shape):
        head, position = fresh.loop(count if axis == product.axis else extent)
        heads += head
        index.append(position + start if axis == product.axis else position)
    return nest(heads, Store(product.buffer, tuple(index), const(0, product.buffer.dtype)))
