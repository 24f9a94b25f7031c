"""Loop fusion: kernels over the same positions become one, and intermediate values become variables.

    for i, j: a[i, j] = f(x[i, j])     ->  for i, j { a[i, j] = f(x[i, j]); b[i, j] = g(a[i, j]) }
    for i, j: b[i, j] = g(a[i, j])

    for i { m = max over j of x[i, j]; a[i] = m }
    for i { s = sum over j of exp(x[i, j] - a[i]); b[i] = s }
    for i, j: y[i, j] = exp(x[i, j] - a[i])/b[i]
        ->  for i { a = max of x[i, :]; b = sum of ...; for j: y[i, j] = ... }     (a row stays in cache)

A kernel joins an earlier one under common outer loops if each iteration reads only those results of the earlier one
that the same iteration stored. It joins only if that saves memory traffic: if it reads a buffer that the earlier one
reads or stores. Kernels whose loops `harp.lower.pipeline` will interchange are joined by elementwise work on their
results only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from harp.locks import cached_property
from harp.lower.cost_model import code_size
from harp.lower.loopir.effects import Effects, effects, indices, used_whole
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    For,
    Kernel,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.nests import (
    FreshLoops,
    Renaming,
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
from harp.lower.loopir.products import is_contraction
from harp.lower.reductions.scan import is_running
from harp.lower.schedule.build import Built, holds
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, Indirect, indirect_in, loops_in, of
from harp.trace.scalar.expr import Expr, rewrite, select

# The number of earlier kernels that a kernel may join.
_LOOK_BACK = 8
# The most code, stored buffers, reductions and variables of a kernel: registers and pages are few, compile time grows
# faster than the code, and variables nest.
_CODE, _STORES, _REDUCTIONS, _VARIABLES = 400, 8, 16, 48


def fuse(built: Built) -> Built:
    """Join kernels, and drop scratch buffers that are no longer needed."""
    joined: list[_Candidate] = []
    for kernel in built.kernels:
        _add(joined, _Candidate(kernel))
    users: dict[Buffer, list[int]] = {}
    for number, candidate in enumerate(joined):
        for buffer in candidate.stored | candidate.read:
            users.setdefault(buffer, []).append(number)
    kernels = [candidate.kernel for candidate in joined]
    scratch: list[Buffer] = []
    for buffer in built.scratch:
        using = users.get(buffer, [])
        alone = len(using) == 1 and not joined[using[0]].repeats
        kept = _kept_inside(kernels[using[0]].body, buffer) if alone else None
        if kept is None:
            scratch.append(buffer)
        else:
            kernels[using[0]] = kernels[using[0]].with_body(kept)
    return attrs.evolve(built, kernels=tuple(kernels), scratch=tuple(scratch))


def _add(joined: list[_Candidate], kernel: _Candidate) -> None:
    """Append the kernel, or join it with the last kernel that it can follow without passing one that it depends on."""
    for place in range(len(joined) - 1, max(len(joined) - 1 - _LOOK_BACK, -1), -1):
        joined_kernel = _join(joined[place], kernel)
        if joined_kernel is not None:
            joined[place] = _Candidate(joined_kernel)
            return
        if kernel.read & joined[place].stored or kernel.stored & (joined[place].stored | joined[place].read):
            break
    joined.append(kernel)


# --- joining two kernels


@attrs.frozen(repr=False)
class Form:
    """A kernel's parts: variables that are computed once, with the statements that fill them, and nested loops."""

    variables: tuple[tuple[Buffer, Stmt], ...]
    heads: tuple[For, ...]
    body: Stmt


class _Candidate:
    """A kernel, with properties that are asked for repeatedly and cached."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @cached_property
    def form(self) -> Form:
        return form_of(self.kernel.body)

    @cached_property
    def stores(self) -> list[Store]:
        """All its stores; an array that is changed in place has several."""
        return list(_stores(self.kernel.body))

    @cached_property
    def whole(self) -> Effects:
        """The buffers that it uses as a whole, not by elements."""
        return used_whole(self.kernel.body)

    @cached_property
    def stored(self) -> set[Buffer]:
        """The buffers outside of the kernel that it stores to."""
        stored = {store.buffer for store in self.stores} | self.whole.writes
        return {buffer for buffer in stored if buffer.space in (Space.OUTPUT, Space.SCRATCH)}

    @cached_property
    def loads(self) -> list[Load]:
        return list(reads(self.form.body))

    @cached_property
    def read(self) -> set[Buffer]:
        return {load.buffer for load in reads(self.kernel.body)} | self.whole.reads

    @cached_property
    def filled_from(self) -> set[Buffer]:
        """The buffers that are read before the loops."""
        return {load.buffer for _, fill in self.form.variables for load in reads(fill)}

    @cached_property
    def code(self) -> int:
        return sum(code_size(part.value) for part in _stores(self.kernel.body))

    @cached_property
    def reductions(self) -> int:
        return sum(1 for _ in accumulations(self.kernel.body))

    @cached_property
    def variables(self) -> int:
        return sum(isinstance(part, Alloc) for part in walk(self.kernel.body))

    @cached_property
    def interchanges(self) -> bool:
        return _interchanges(self.kernel.body)

    @cached_property
    def is_scatter(self) -> bool:
        return _is_scatter(self.kernel.body)

    @cached_property
    def is_alone(self) -> bool:
        """Whether it shares no loops with others, as functions of rows and iterations."""
        return self.repeats or bool(self.whole.touched)

    @cached_property
    def repeats(self) -> bool:
        return any(isinstance(part, Repeat) for part in walk(self.kernel.body))


def form_of(s: Stmt) -> Form:
    """v = a; for i: b  ->  its parts"""
    if isinstance(s, Alloc) and isinstance(s.body, Seq) and not isinstance(s.body.parts[-1], Store):
        rest = form_of(s.body.parts[-1])
        return attrs.evolve(rest, variables=((s.buffer, sequence(s.body.parts[:-1])), *rest.variables))
    heads = tuple(h for h in s.heads if isinstance(h, For)) if isinstance(s, Nest) else ()
    return Form((), heads, s.body if isinstance(s, Nest) else s)


def whole(form: Form) -> Stmt:
    """The statement of these parts."""
    result = nest(form.heads, form.body)
    for buffer, fill in reversed(form.variables):
        result = Alloc(buffer, sequence((fill, result)))
    return result


def _join(first: _Candidate, second: _Candidate) -> Kernel | None:
    """Both kernels as one, under as many common loops as possible; None if they do not join."""
    if first.is_alone or second.is_alone:
        return None
    a, b = first.form, second.form
    depth = 0
    while depth < min(len(a.heads), len(b.heads)) and a.heads[depth].loop.extent is b.heads[depth].loop.extent:
        depth += 1
    while depth and not _stays_in_iteration(first, second, depth):
        depth -= 1
    if not depth or not _is_worth_it(first, second, depth):
        return None
    fresh = FreshLoops(first.kernel)
    places: dict[Atom, Index] = {q.loop: of(p.loop) for p, q in zip(a.heads[:depth], b.heads[:depth], strict=True)}
    more = with_loops(fresh, nest(b.heads[depth:], b.body), places)
    variables = (*a.variables, *((v, with_loops(fresh, f, {})) for v, f in b.variables))
    heads = tuple(
        For(p.loop, LoopKind.SEQUENTIAL if LoopKind.SEQUENTIAL in (p.kind, q.kind) else p.kind)
        for p, q in zip(a.heads[:depth], b.heads[:depth], strict=True)
    )
    body = whole(Form(variables, heads, _then(nest(a.heads[depth:], a.body), more)))
    return Kernel(joined_name((first.kernel, second.kernel)), body)


def joined_name(kernels: Iterable[Kernel]) -> str:
    """The name of joined kernels: each word of their names once."""
    return "_".join(dict.fromkeys("_".join(kernel.name for kernel in kernels).split("_")))


def _then(s: Stmt, more: Stmt) -> Stmt:
    """One statement after the other; a store goes into the allocation that ends the first statement."""
    if isinstance(s, Alloc) and isinstance(more, Store):
        return Alloc(s.buffer, _then(s.body, more))
    return sequence((s, more))


def _stays_in_iteration(first: _Candidate, second: _Candidate, depth: int) -> bool:
    """Whether each iteration of the common loops reads only those results of `first` that it stored itself, and
    `second` stores only to elements that the same iteration of `first` read or stored, as in an update in place."""
    if any(store.buffer in second.filled_from for store in first.stores):
        return False
    common = list(zip(first.form.heads[:depth], second.form.heads, strict=False))
    pairs = [(s.index, load.index) for s in first.stores for load in second.loads if load.buffer is s.buffer]
    pairs += [(load.index, s.index) for s in second.stores for load in first.loads if load.buffer is s.buffer]
    pairs += [(a.index, b.index) for a in first.stores for b in second.stores if a.buffer is b.buffer]
    return all(
        any(p is of(a.loop) and q is of(b.loop) for p, q in zip(*pair, strict=True))
        for pair in pairs
        for a, b in common
    )


def _is_worth_it(first: _Candidate, second: _Candidate, depth: int) -> bool:
    follows = bool(first.stored & second.read)
    shares = follows or bool(first.read & second.read)
    fits = len(first.stored | second.stored) <= _STORES and first.code + second.code <= _CODE
    fits = fits and first.variables + second.variables <= _VARIABLES
    if not (shares and fits and first.reductions + second.reductions <= _REDUCTIONS):
        return False
    if not follows and (_copies_elsewhere(first, second) or _copies_elsewhere(second, first)):
        return False
    if second.interchanges or first.is_scatter or second.is_scatter:
        return False
    if first.interchanges:
        return follows and not second.reductions and depth == len(first.form.heads) == len(second.form.heads)
    return True


def _copies_elsewhere(copy: _Candidate, other: _Candidate) -> bool:
    """Whether `copy` copies an array of which `other` reads other elements in the same iteration. A copied result can
    often live in the array's memory if they are not joined."""
    body = copy.form.body
    if not isinstance(body, Store) or not isinstance(body.value, Load):
        return False
    outer = zip(copy.form.heads[:1], other.form.heads[:1], strict=True)
    same = [(of(p.loop), of(q.loop)) for p, q in outer]
    loads = [load for load in other.loads if load.buffer is body.value.buffer]
    at = body.value.index
    shared = [any(a is p and b is q for a, b in zip(at, load.index, strict=True) for p, q in same) for load in loads]
    return not shared or not all(shared)


def _interchanges(s: Stmt) -> bool:
    """Whether the outer loops will be interchanged with the reductions inside of them."""
    form = form_of(s)
    if is_contraction(nest(form.heads, form.body)) or is_running(form.body):
        return True
    accesses = [load for _, store in accumulations(form.body) for load in loads(store.value)]
    return bool(form.heads) and bool(accesses) and score(accesses, form.heads[-1].loop) > 0


# --- reads and stores of a statement


def _stores(s: Stmt) -> Iterator[Store]:
    return (part for part in walk(s) if isinstance(part, Store))


def _is_scatter(s: Stmt) -> bool:
    """Whether it stores at indices that are data, so that several iterations may change one element."""
    return any(indirect_in(p) for store in _stores(s) for p in store.index)


# --- scratch memory that one kernel uses


def _own_axes(body: Stmt, buffer: Buffer) -> int:
    """The number of leading axes along which iterations of the outer loops have parts of their own; 0 if shared."""
    accesses = [load for load in reads(body) if load.buffer is buffer]
    stored = [s.index for s in _stores(body) if s.buffer is buffer]
    outside = {head.loop for head in form_of(body).heads}
    if len(stored) != 1:
        return 0
    (index,) = stored
    own = 0
    while own < len(index) and loops_in(index[own]) <= outside and all(a.index[own] is index[own] for a in accesses):
        own += 1
    if {loop for p in index[:own] for loop in loops_in(p)} != outside:
        return 0  # several iterations share the stored elements
    # A variable's conditions are all evaluated, but one that reads an index array may depend on those before it.
    asks = own == len(index) and any(indirect_in(c) for load in accesses for c in load.conditions)
    return 0 if asks else own


def _kept_inside(body: Stmt, buffer: Buffer) -> Stmt | None:
    """Contract a buffer that is private to an iteration; None if it is shared, or the nest is interchanged later.

    for i { a[i] = v; b[i] = f(a[i]) }  ->  for i { a = v; b[i] = f(a) }
    for i { for j: a[i, j] = v; for j: b[i, j] = f(a[i, j]) }  ->  for i { for j: a[j] = v; for j: b[i, j] = f(a[j]) }
    """
    axes = _own_axes(body, buffer)
    if not axes:
        return None
    shape = buffer.shape[axes:]
    kept = Buffer(buffer.name, buffer.dtype, shape, Space.THREAD if shape else Space.REG)

    def value(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.buffer is not buffer:
            return e
        if e.fill is None or shape:
            return Load(kept, e.index[axes:], e.conditions, e.fill)
        return select(holds(e.conditions), Load(kept, ()), e.fill)  # a variable can be read anywhere

    def statement(s: Stmt) -> Stmt:
        if isinstance(s, Store):
            (result,) = rewrite((s.value,), value)
            return Store(kept, s.index[axes:], result) if s.buffer is buffer else attrs.evolve(s, value=result)
        return rebuilt(s, statement)

    form = form_of(body)
    indirects = {
        indirect
        for part in walk(body)
        for p in indices(part)
        for indirect in indirect_in(p)
        if buffer == indirect.array
    }
    inner: dict[Atom, Index] = {
        indirect: of(Indirect(kept, indirect.at[axes:], indirect.size, indirect.misses)) for indirect in indirects
    }
    inside = Alloc(kept, _computed_in(kept, statement(renamed(form.body, inner))))
    return None if shape and _interchanges(nest(form.heads, inside)) else whole(attrs.evolve(form, body=inside))


def _computed_in(variable: Buffer, s: Stmt) -> Stmt:
    """{ sum = 0; for k: sum += a[k]; variable = sum }  ->  variable = 0; for k: variable += a[k]"""
    if isinstance(s, Alloc) and isinstance(s.body, Seq) and s.buffer.shape == variable.shape == ():
        *parts, last = s.body.parts
        value = last.value if isinstance(last, Store) and last.buffer is variable else None
        if (
            isinstance(value, Load)
            and value.buffer is s.buffer
            and not any(variable in effects(part).touched for part in parts)
        ):
            return Renaming(Substitution({}), {s.buffer: (variable, ())}).statement(sequence(parts))
    return rebuilt(s, lambda part: _computed_in(variable, part))


# --- variables that are read once


def inlined(built: Built) -> Built:
    """Variables that are read once, by the next statement, become parts of its value."""
    return attrs.evolve(built, kernels=tuple(k.with_body(_inlined(k.body)) for k in built.kernels))


def _inlined(s: Stmt) -> Stmt:
    """v = a[i]; b[i] = f(v)  ->  b[i] = f(a[i])"""
    if isinstance(s, Store):
        return s
    s = rebuilt(s, _inlined)
    if not isinstance(s, Alloc) or not isinstance(s.body, Seq) or s.buffer.shape:
        return s
    variable, parts = s.buffer, s.body.parts
    using = [k for k, part in enumerate(parts) if variable in effects(part).touched]
    if len(using) != 2 or using[1] != using[0] + 1:
        return s
    first, second = (parts[k] for k in using)
    if not isinstance(first, Store) or first.buffer is not variable or first.reduce:
        return s
    if not isinstance(second, Store) or second.buffer is variable:
        return s
    if any(map(indirect_in, indices(second))):
        return s
    (value,) = rewrite((second.value,), lambda e: first.value if isinstance(e, Load) and e.buffer is variable else e)
    return sequence([*parts[: using[0]], attrs.evolve(second, value=value), *parts[using[1] + 1 :]])
