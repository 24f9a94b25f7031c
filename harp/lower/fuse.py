"""Kernels that run over the same positions become one, and what only passes from one to the other stays inside.

    for i, j: a[i, j] = f(x[i, j])     ->  for i, j { a[i, j] = f(x[i, j]); b[i, j] = g(a[i, j]) }
    for i, j: b[i, j] = g(a[i, j])

    for i { m = max over j of x[i, j]; a[i] = m }
    for i { s = sum over j of exp(x[i, j] - a[i]); b[i] = s }
    for i, j: y[i, j] = exp(x[i, j] - a[i])/b[i]
        ->  for i { a = max of x[i, :]; b = sum of ...; for j: y[i, j] = ... }     (a row stays in cache)

A kernel joins an earlier one under their common outer loops if each iteration reads, of what the earlier one stores,
only what the same iteration stored. It joins where that saves a trip through memory: where it reads a buffer that the
earlier one reads or stores. Kernels whose loops `harp.lower.tile` will interchange keep them for themselves; what joins
those is elementwise work on their results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from harp.lower.build import Built
from harp.lower.cost import count_operations, mentioned
from harp.lower.loops import Alloc, Buffer, For, Kernel, Load, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.prefix import is_running
from harp.lower.products import is_contraction
from harp.lower.rewrite import (
    Numbers,
    accumulations,
    loads,
    nest,
    reads,
    rebuilt,
    renamed,
    score,
    sequence,
    with_loops,
)
from harp.lower.rows import rows_in
from harp.lower.uses import indices
from harp.trace.expr import Expr, rewrite
from harp.trace.index import Atom, Index, Pick, of, picks_in

# How many kernels are looked at, backwards, for one to join.
_LOOK_BACK = 8
# Operations, stored buffers and reductions of one kernel: registers and pages are few, and compilers not linear.
_OPERATIONS, _STORES, _REDUCTIONS = 400, 8, 16


def fuse(built: Built) -> Built:
    """Join kernels, and drop the scratch buffers that are not needed any more."""
    joined: list[Kernel] = []
    for kernel in built.kernels:
        _add(joined, kernel)
    scratch: list[Buffer] = []
    for buffer in built.scratch:
        users = [k for k, kernel in enumerate(joined) if buffer in _stored(kernel.body) | _read(kernel.body)]
        kept = _kept_inside(joined[users[0]].body, buffer) if len(users) == 1 else None
        if kept is None:
            scratch.append(buffer)
        else:
            joined[users[0]] = Kernel(joined[users[0]].name, kept)
    return attrs.evolve(built, kernels=tuple(joined), scratch=tuple(scratch))


def _add(kernels: list[Kernel], kernel: Kernel) -> None:
    """Append the kernel, or join it with the last one that it can follow without passing one that it reads."""
    reads = _read(kernel.body)
    for place in range(len(kernels) - 1, max(len(kernels) - 1 - _LOOK_BACK, -1), -1):
        found = _join(kernels[place], kernel)
        if found is not None:
            kernels[place] = found
            return
        if reads & _stored(kernels[place].body):
            break
    kernels.append(kernel)


# --- joining two kernels


@attrs.frozen
class _Form:
    """A kernel's parts: variables that are computed once, with the statements that fill them, and nested loops."""

    variables: tuple[tuple[Buffer, Stmt], ...]
    heads: tuple[For, ...]
    body: Stmt


def _form(s: Stmt) -> _Form:
    """v = a; for i: b  ->  its parts"""
    if isinstance(s, Alloc) and isinstance(s.body, Seq) and not isinstance(s.body.parts[-1], Store):
        rest = _form(s.body.parts[-1])
        return attrs.evolve(rest, variables=((s.buffer, sequence(s.body.parts[:-1])), *rest.variables))
    heads = tuple(h for h in s.heads if isinstance(h, For)) if isinstance(s, Nest) else ()
    return _Form((), heads, s.body if isinstance(s, Nest) else s)


def _whole(form: _Form) -> Stmt:
    """The parts as a statement again."""
    result = nest(form.heads, form.body)
    for buffer, fill in reversed(form.variables):
        result = Alloc(buffer, sequence((fill, result)))
    return result


def _join(first: Kernel, second: Kernel) -> Kernel | None:
    """Both in one, under as many common loops as can be. Kernels of rows stay alone."""
    if any(True for kernel in (first, second) for _ in rows_in(kernel.body)):
        return None
    a, b = _form(first.body), _form(second.body)
    depth = 0
    while depth < min(len(a.heads), len(b.heads)) and a.heads[depth].loop.extent is b.heads[depth].loop.extent:
        depth += 1
    while depth and not _stays_in_iteration(first.body, b, a.heads[:depth]):
        depth -= 1
    if not depth or not _is_worth_it(first.body, second.body, depth):
        return None
    numbers = Numbers(first)
    places: dict[Atom, Index] = {q.loop: of(p.loop) for p, q in zip(a.heads[:depth], b.heads[:depth], strict=True)}
    more = with_loops(numbers, nest(b.heads[depth:], b.body), places)
    variables = (*a.variables, *((v, with_loops(numbers, f, {})) for v, f in b.variables))
    heads = tuple(
        For(p.loop, LoopKind.ORDERED if LoopKind.ORDERED in (p.kind, q.kind) else p.kind)
        for p, q in zip(a.heads[:depth], b.heads[:depth], strict=True)
    )
    body = _whole(_Form(variables, heads, _then(nest(a.heads[depth:], a.body), more)))
    name = "_".join(dict.fromkeys(f"{first.name}_{second.name}".split("_")))
    return Kernel(name, body)


def _then(s: Stmt, more: Stmt) -> Stmt:
    """One after the other; a store goes next to the last store of what it follows."""
    if isinstance(s, Alloc) and isinstance(more, Store):
        return Alloc(s.buffer, _then(s.body, more))
    return sequence((s, more))


def _stays_in_iteration(first: Stmt, second: _Form, outer: Sequence[For]) -> bool:
    """Whether each iteration of the common loops reads, of what `first` stores, what the same iteration stores."""
    stored = {s.buffer: s.index for s in _stores(first)}  # a kernel stores to a buffer at one place
    if any(_read(fill) & stored.keys() for _, fill in second.variables):
        return False
    for load in reads(second.body):
        index = stored.get(load.buffer)
        if index is None:
            continue
        for a, b in zip(outer, second.heads, strict=False):
            if not any(p is of(a.loop) and q is of(b.loop) for p, q in zip(index, load.index, strict=True)):
                return False
    return True


def _is_worth_it(first: Stmt, second: Stmt, depth: int) -> bool:
    a, b = _stored(first), _stored(second)
    follows = bool(a & _read(second))
    shares = follows or bool(_read(first) & _read(second))
    fits = len(a | b) <= _STORES and _count(first) + _count(second) <= _OPERATIONS
    if not (shares and fits and len([*accumulations(first), *accumulations(second)]) <= _REDUCTIONS):
        return False
    if _interchanges(second) or _is_scatter(first) or _is_scatter(second):
        return False
    if _interchanges(first):
        elementwise = not any(True for _ in accumulations(second))
        return follows and elementwise and depth == len(_form(first).heads) == len(_form(second).heads)
    return True


def _interchanges(s: Stmt) -> bool:
    """Whether the outer loops change places with the reductions inside them."""
    form = _form(s)
    if is_contraction(nest(form.heads, form.body)) or is_running(form.body):
        return True
    accesses = [load for _, store in accumulations(form.body) for load in loads(store.value)]
    return bool(form.heads) and bool(accesses) and score(accesses, form.heads[-1].loop) > 0


# --- what a statement reads and stores


def _stores(s: Stmt) -> Iterator[Store]:
    return (part for part in walk(s) if isinstance(part, Store))


def _stored(s: Stmt) -> set[Buffer]:
    """The buffers outside the kernel that it stores to."""
    stored = {part.buffer for part in _stores(s)} | {row.target for row in rows_in(s)}
    return {buffer for buffer in stored if buffer.space in (Space.OUTPUT, Space.SCRATCH)}


def _read(s: Stmt) -> set[Buffer]:
    return {load.buffer for load in reads(s)} | {source for row in rows_in(s) for source in row.sources}


def _is_scatter(s: Stmt) -> bool:
    """Whether it stores at places that are data: several iterations may meet in an element, also of what was there."""
    return any(picks_in(p) for store in _stores(s) for p in store.index)


def _count(s: Stmt) -> int:
    return sum(count_operations(part.value) for part in _stores(s))


# --- scratch that nobody else needs


def _own_axes(body: Stmt, buffer: Buffer) -> int:
    """Over how many leading axes each iteration of the outer loops has a part of the buffer for itself; 0 if not."""
    accesses = [load for load in reads(body) if load.buffer is buffer]
    stored = [s.index for s in _stores(body) if s.buffer is buffer]
    outside = {head.loop for head in _form(body).heads}
    if len(stored) != 1:
        return 0
    (index,) = stored
    own = 0
    while own < len(index) and mentioned(index[own]) <= outside and all(a.index[own] is index[own] for a in accesses):
        own += 1
    if {loop for p in index[:own] for loop in mentioned(p)} != outside:
        return 0  # several iterations share what is stored
    in_register = own == len(index)
    return 0 if in_register and any(load.conditions for load in accesses) else own


def _kept_inside(body: Stmt, buffer: Buffer) -> Stmt | None:
    """What each iteration has for itself needs no other memory. None if it has not, or if the loops change places then.

    for i { a[i] = v; b[i] = f(a[i]) }  ->  for i { a = v; b[i] = f(a) }
    for i { for j: a[i, j] = v; for j: b[i, j] = f(a[i, j]) }  ->  for i { for j: a[j] = v; for j: b[i, j] = f(a[j]) }
    """
    axes = _own_axes(body, buffer)
    if not axes:
        return None
    shape = buffer.shape[axes:]
    kept = Buffer(buffer.name, buffer.dtype, shape, Space.THREAD if shape else Space.REG)

    def value(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer is buffer:
            return Load(kept, e.index[axes:], e.conditions, e.fill)
        return e

    def statement(s: Stmt) -> Stmt:
        if isinstance(s, Store):
            (result,) = rewrite((s.value,), value)
            return Store(kept, s.index[axes:], result) if s.buffer is buffer else attrs.evolve(s, value=result)
        return rebuilt(s, statement)

    form = _form(body)
    picks = {pick for part in walk(body) for p in indices(part) for pick in picks_in(p) if buffer == pick.array}
    inner: dict[Atom, Index] = {pick: of(Pick(kept, pick.at[axes:], pick.size, pick.misses)) for pick in picks}
    inside = Alloc(kept, statement(renamed(form.body, inner)))
    return None if shape and _interchanges(nest(form.heads, inside)) else _whole(attrs.evolve(form, body=inside))
