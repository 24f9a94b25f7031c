"""Running sums, products and extrema go along their axis once.

    for rows, i, columns { acc = id; for k: acc += x[k] where i - k >= 0; out[i] = f(acc) }
        ->  for rows, columns { acc = id; for i { acc += x[i]; out[i] = f(acc) } }

With k - i in place of i - k, i runs backwards. It holds where the extents of i and k are the same, x depends on i by
the condition alone, and what the condition leaves out is the identity. Elements are added in the order of i, whatever
the sizes.

A chain of additions waits for each of them, so `side_by_side` takes several chains at once: rows, if the axis is the
last one, else a vector of columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from harp.lower.cost import mentioned
from harp.lower.loops import Alloc, For, Kernel, Load, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.rewrite import Tile, distribute, is_plain, loads, nest, rebuilt, renamed, score, sequence, start
from harp.lower.strips import Context, strips
from harp.trace.division import floordiv
from harp.trace.expr import Apply, Const, Expr, Position, const, rewrite
from harp.trace.expr import walk as walk_expr
from harp.trace.index import ZERO, Index, Loop, of
from harp.trace.ops import Op

# Rows side by side: as many additions as are begun before the first one is done.
ROWS = 8


def prefix(kernel: Kernel) -> Kernel:
    """The kernel, with running reductions in linear time."""
    return kernel.with_body(_once(kernel.body))


def _once(s: Stmt) -> Stmt:
    if isinstance(s, Nest) and is_plain(s):
        for place, head in enumerate(h for h in s.heads if isinstance(h, For)):
            others = (*s.heads[:place], *s.heads[place + 1 :])
            for backward in (False, True):
                sums: list[Store] = []
                body = _steps(s.body, head.loop, backward, sums)
                if sums:
                    return nest(others, _run(_without_starts(body, sums), head, backward, sums))
    return rebuilt(s, _once)


def _run(body: Stmt, head: For, backward: bool, sums: list[Store]) -> Stmt:
    """acc = id; for i { body }"""
    if backward:
        body = renamed(body, {head.loop: head.loop.extent - 1 - of(head.loop)})
    result = nest((head,), body)
    for step in reversed(sums):
        assert step.reduce is not None
        result = Alloc(step.buffer, sequence((start(step.buffer, step.reduce), result)))
    return result


def _steps(s: Stmt, i: Loop, backward: bool, sums: list[Store]) -> Stmt:
    """The body of the loop over i with one step, which goes to `sums`, in place of each running reduction."""
    if isinstance(s, Nest):
        step = _step(s, i, backward)
        if step is not None:
            sums.append(step)
        return s if step is None else step
    return rebuilt(s, lambda part: _steps(part, i, backward, sums)) if isinstance(s, (Alloc, Seq)) else s


def _without_starts(s: Stmt, sums: list[Store]) -> Stmt:
    """acc; acc = id; acc += x[i]; rest  ->  acc += x[i]; rest"""
    own = {step.buffer for step in sums}
    if isinstance(s, Alloc) and s.buffer in own:
        return _without_starts(s.body, sums)
    if isinstance(s, Seq):
        kept = (p for p in s.parts if not (isinstance(p, Store) and p.buffer in own and p.reduce is None))
        return sequence(_without_starts(part, sums) for part in kept)
    return rebuilt(s, lambda part: _without_starts(part, sums))


def _step(s: Nest, i: Loop, backward: bool) -> Store | None:
    """for k: acc += x[k] where i - k >= 0  ->  acc += x[i]"""
    head, store = s.heads[0], s.body
    if len(s.heads) > 1 or not isinstance(store, Store) or store.reduce is None or store.buffer.space is not Space.REG:
        return None
    if not isinstance(head, For) or head.loop.extent is not i.extent:
        return None
    k = head.loop
    condition = of(k) - of(i) if backward else of(i) - of(k)
    if not _only_compared(store.value, condition):
        return None
    identity = const(store.reduce.identity(store.buffer.dtype), store.buffer.dtype)
    value = _given(store.value, condition, True)
    if _given(store.value, condition, False) is not identity or any(i in mentioned(p) for p in _indices(value)):
        return None
    step = renamed(Store(store.buffer, (), value, store.reduce), {k: of(i)})
    assert isinstance(step, Store)
    return step


def _only_compared(value: Expr, condition: Index) -> bool:
    """Whether all that is asked about `condition`, where it is a value, is whether it is below 0."""
    users = [e for e in walk_expr((value,)) if isinstance(e, Apply) and any(_is(a, condition) for a in e.operands)]
    return not _is(value, condition) and all(
        e.op is Op.LT
        and _is(e.operands[0], condition)
        and isinstance(e.operands[1], Const)
        and e.operands[1].value == 0
        for e in users
    )


def _is(e: Expr, condition: Index) -> bool:
    return isinstance(e, Position) and e.index is condition


def _given(value: Expr, condition: Index, holds: bool) -> Expr:
    """The value where the condition holds, or where it does not."""

    def leaf(e: Expr) -> Expr:
        if isinstance(e, Position) and e.index is condition:
            return const(0 if holds else -1, e.dtype)
        if isinstance(e, Load) and condition in e.conditions:
            if not holds:
                return e.fill if e.fill is not None else e
            left = tuple(c for c in e.conditions if c is not condition)
            return Load(e.buffer, e.index, left, e.fill if left else None)
        return e

    return rewrite((value,), leaf)[0]


def _indices(value: Expr) -> Iterator[Index]:
    for e in walk_expr((value,)):
        if isinstance(e, Position):
            yield e.index
        elif isinstance(e, Load):
            yield from (*e.index, *e.conditions)


# --- several chains side by side


def side_by_side(context: Context, s: Stmt) -> Stmt | None:
    """The second rule, for `harp.lower.tile`.

    for row { acc = id; for i { acc += x[row, i]; out[row, i] = acc } }
        ->  for rb { acc[R] = id; for i { for unroll r: acc[r] += x[rb*R + r, i]; ... } }; for row (what is left) ...
    for column { acc = id; for i { acc += x[i, column]; out[i, column] = acc } }
        ->  for jb { acc[W] = id; for i { for simd l: acc[l] += x[i, jb*W + l]; ... } }
    """
    if not isinstance(s, Nest) or not is_running(s.body):
        return None
    *outer, row = [h for h in s.heads if isinstance(h, For)]
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    accesses = [load for store in stores for load in loads(store.value)]
    if score(accesses, row.loop) > 0:
        return nest(outer, strips(context, s.body, row.loop))
    whole = floordiv(row.loop.extent, ROWS)
    parts: list[Stmt] = []
    if whole is not ZERO:
        block, position = context.numbers.loop(whole)
        lane, r = context.numbers.loop(ROWS)
        tile = Tile(lane, (ROWS,), unroll=True)
        parts.append(nest(block, distribute(renamed(s.body, {row.loop: position * ROWS + r}), tile)))
    left = row.loop.extent - whole * ROWS
    if left is not ZERO:
        single, position = context.numbers.loop(left)
        parts.append(nest(single, renamed(s.body, {row.loop: whole * ROWS + position})))
    return nest(outer, sequence(parts))


def is_running(s: Stmt) -> bool:
    """Whether it is one loop that stores, and adds to variables from outside it."""
    inside = list(walk(s))
    nests = [part for part in inside if isinstance(part, Nest)]
    if isinstance(s, Nest) or len(nests) != 1 or len(nests[0].heads) != 1:
        return False
    steps = [part for part in walk(nests[0].body) if isinstance(part, Store) and part.reduce is not None]
    plain = all(isinstance(part, (Nest, Alloc, Seq, Store)) for part in inside)
    return plain and bool(steps) and isinstance(nests[0].body, Seq)
