"""Of an array that a step of a loop has for itself, only those elements are computed that the step reads.

    for i < n: x[i] = f(i);  for i < n: y[i] = x[i] / x[t] if t <= i else 0
        ->  for i < t: x[i] = 0;  for i < n - t: x[t + i] = f(t + i);  for i < n: ...

Which elements are read is known from where the number of the step stands: an element of its own, or those on one side
of it, in choices by position. A reduction for each element, as in the columns of a triangular factor, is half of the
work then. The others are 0: lanes of a vector that choose otherwise read them, and drop what they read.
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
    """The kernels of a step, whose sums that nobody reads are left out; `own` are the arrays of the step alone."""
    result = list(kernels)
    for number, kernel in enumerate(kernels):
        found = _product(kernel.body)
        if found is None or found.buffer not in own:
            continue
        others = [other.body for other in kernels if other is not kernel]
        if all(_reads_elements(s, found.buffer) for s in others):
            result[number] = kernel.with_body(_clipped(FreshLoops(kernel), found, others) or kernel.body)
    return result


@attrs.frozen
class _Product:
    """A nest that makes an array and stores to nothing else. Its first loop is the position along `axis`."""

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
    own = {part.buffer for part in walk(s) if isinstance(part, Alloc)}
    stores = [part for part in walk(s) if isinstance(part, Store) and part.buffer not in own]
    if len(stores) != 1 or stores[0].reduce is not None or stores[0].buffer.space is not Space.SCRATCH:
        return None
    (store,) = stores
    axes = [axis for axis, p in enumerate(store.index) if p is of(head.loop)]
    if len(axes) != 1 or store.buffer in effects(s).reads or store.buffer.shape[axes[0]] is not head.loop.extent:
        return None
    return _Product(s, store.buffer, axes[0])


def _reads_elements(s: Stmt, buffer: Buffer) -> bool:
    """Whether a statement does nothing with a buffer but read elements in the values that it stores."""
    if buffer not in effects(s).touched:
        return True
    if buffer in effects(s).writes:
        return False
    for part in walk(s):
        if isinstance(part, Store):
            inner = {load for load in loads(part) if load.buffer is buffer}
            if inner - {e for e in walk_expr((part.value,)) if isinstance(e, Load)}:
                return False
        elif not isinstance(part, (Nest, Alloc, Seq)) and buffer in _own(part):
            return False
    return True


def _own(s: Stmt) -> Iterable[Buffer]:
    """What a statement itself uses; of a branch, what its conditions read."""
    return {load.buffer for load in loads(s)} if isinstance(s, If) else effects(s).touched


def _clipped(fresh: FreshLoops, found: _Product, readers: Sequence[Stmt]) -> Stmt | None:
    """The nest for the elements from the first one on that is needed, or up to the last one."""
    values = [part.value for s in readers for part in walk(s) if isinstance(part, Store)]
    values = [value for value in values if any(load.buffer is found.buffer for load in value_loads(value))]
    end = found.loop.extent
    for edge in dict.fromkeys(_edges(found, values)):
        if not nonnegative(edge) or not nonnegative(end - 1 - edge):
            continue
        if all(_within(found, value, edge, 1, {}) for value in values):
            return sequence([_zeros(fresh, found, ZERO, edge), _part(found, edge, end - edge)])
        if all(_within(found, value, edge, -1, {}) for value in values):
            return sequence([_part(found, ZERO, edge + 1), _zeros(fresh, found, edge + 1, end - edge - 1)])
    return None


def _edges(found: _Product, values: Sequence[Expr]) -> Iterator[Index]:
    """Places that the number of the step says: of elements that are read, and in choices."""
    for value in values:
        reads = [load.index[found.axis] for load in value_loads(value) if load.buffer is found.buffer]
        bounds = [p for e in walk_expr((value,)) for p in _implied(e, True)]
        for read in reads:
            yield from (p for p in (read, *(read - bound for bound in bounds)) if _is_of_step(p))


def _is_of_step(p: Index) -> bool:
    return not loops_in(p) and any(isinstance(atom, Counter) for atom in depends_on(p))


def _within(found: _Product, e: Expr, edge: Index, sign: int, known: dict[Expr, bool]) -> bool:
    """Whether a value needs only elements on one side of the edge, or at it."""
    if e not in known:
        if isinstance(e, Load):
            known[e] = e.buffer is not found.buffer or nonnegative((e.index[found.axis] - edge) * sign)
        elif isinstance(e, Apply) and e.op is Op.SELECT:
            condition, *choices = e.operands
            inside = [_within(found, part, edge, sign, known) for part in e.operands]
            sides = zip(choices, inside[1:], (True, False), strict=True)
            known[e] = inside[0] and all(
                fits or _follows(found, condition, holds, part, edge, sign) for part, fits, holds in sides
            )
        else:
            parts = e.operands if isinstance(e, Apply) else ()
            known[e] = all(_within(found, part, edge, sign, known) for part in parts)
    return known[e]


def _follows(found: _Product, condition: Expr, holds: bool, part: Expr, edge: Index, sign: int) -> bool:
    """Whether all that a choice reads of the array is on that side wherever it is made."""
    reads = [load for load in value_loads(part) if load.buffer is found.buffer]
    return all(_implies(condition, holds, (load.index[found.axis] - edge) * sign) for load in reads)


def _implies(condition: Expr, holds: bool, goal: Index) -> bool:
    """Whether goal >= 0 where the condition holds, or does not."""
    if nonnegative(goal) or not isinstance(condition, Apply):
        return nonnegative(goal)
    if condition.op is Op.NOT:
        return _implies(condition.operands[0], not holds, goal)
    if condition.op in (Op.AND, Op.OR):
        parts = (_implies(part, holds, goal) for part in condition.operands)
        return any(parts) if (condition.op is Op.AND) == holds else all(parts)
    return any(nonnegative(goal - p) for p in _implied(condition, holds))


def _implied(e: Expr, holds: bool) -> tuple[Index, ...]:
    """What is >= 0 where a comparison of positions holds, or does not."""
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


def _part(found: _Product, start: Index, count: Index) -> Stmt:
    """The nest for `count` elements from `start` on."""
    loop = Loop(found.loop.axis, count)
    heads = (For(loop), *found.nest.heads[1:])
    return Nest(heads, renamed(found.nest.body, {found.loop: start + of(loop)}))


def _zeros(fresh: FreshLoops, found: _Product, start: Index, count: Index) -> Stmt:
    """These elements set to 0."""
    heads: list[For] = []
    index: list[Index] = []
    for axis, extent in enumerate(found.buffer.shape):
        head, position = fresh.loop(count if axis == found.axis else extent)
        heads += head
        index.append(position + start if axis == found.axis else position)
    return nest(heads, Store(found.buffer, tuple(index), const(0, found.buffer.dtype)))
