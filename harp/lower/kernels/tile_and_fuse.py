"""Products and operations on their rows run together, by blocks of rows, so that intermediates stay in the L2 cache.

    for i, j { acc = 0; for k: acc += q[i, k]*w[j, k]; s[i, j] = acc }
    for i { m = max of s[i, :]; for j: p[i, j] = exp(s[i, j] - m) }
    for i, d { acc = 0; for j: acc += p[i, j]*v[j, d]; out[i, d] = acc }
        ->  for ib { s'[ROWS, n]; p'[ROWS, n];
                     for r, j { ...; s'[r, j] = acc }; for r { ... }; for r, d { ...; out[ib*ROWS + r, d] = acc } }

A group is a product, operations on rows of its result, some of which reduce them, and perhaps a second product; each
reads only the same rows of the others' results. It pays if an intermediate grows faster than everything else that the
first product touches: the scores of attention have n*n elements, their factors only n. Each row is computed by the same
loops in the same order, with the same bits: a block holds whole rows of scores, and nothing is rescaled. (The name is
that of MLIR; M. Rabe and C. Staats: "Self-attention does not need O(n^2) memory", 2021.)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial

import attrs

from harp.lower.kernels.fuse import Form, form_of, joined_name, whole
from harp.lower.loopir.effects import effects, indices, value_loads
from harp.lower.loopir.loops import MEMORY, Alloc, Buffer, Kernel, LoopKind, Space, Stmt, Store, walk
from harp.lower.loopir.nests import FreshLoops, accumulations, is_plain, nest, reads, sequence, with_loops
from harp.lower.loopir.products import Match, match
from harp.lower.rewrite.digits import over_digits
from harp.lower.rewrite.loop_primitives import shrink, split
from harp.lower.schedule.build import Built
from harp.lower.target import Target
from harp.trace.index.polynomial import Atom, Index, Loop, as_index, indirect_in, product

# The number of kernels that a group may span.
_NEAR = 12


@attrs.frozen(repr=False)
class _Member:
    """A kernel of a group: its number, its loops over the shared rows, and its product, if it is one."""

    kernel: Kernel
    place: int
    form: Form
    rows: tuple[Loop, ...]
    product: Match | None

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores to memory outside of the kernel."""
        return tuple(_stores(self.form.body))


def tile_and_fuse(built: Built, target: Target) -> Built:
    """The kernels, with groups fused, and the scratch buffers that remain."""
    last = {b: number for number, kernel in enumerate(built.kernels) for b in effects(kernel.body).touched}
    kernels, scratch = list[Kernel | None](built.kernels), set(built.scratch)
    for at in range(len(kernels)):
        members = _group(kernels, at)
        while len(members) > 1:
            inside = _intermediates(members, scratch, last)
            if _pays(members, inside):
                for member in members:
                    kernels[member.place] = None
                kernels[members[-1].place] = _fused(members, inside, target.block_rows)
                scratch -= inside
                break
            members = members[:-1]
    if not any(kernel is None for kernel in kernels):
        return built
    remaining = tuple(kernel for kernel in kernels if kernel is not None)
    return attrs.evolve(built, kernels=remaining, scratch=tuple(b for b in built.scratch if b in scratch))


# --- the search for groups


def _group(kernels: Sequence[Kernel | None], at: int) -> list[_Member]:
    """The longest group that begins with this kernel, if it is a product. Other kernels between its members read none
    of their results, so they may precede all of them."""
    first = _first(kernels[at], at)
    if first is None:
        return []
    members, stored = [first], {s.buffer for s in first.stores}
    for place in range(at + 1, min(at + _NEAR, len(kernels))):
        kernel = kernels[place]
        if kernel is None or not stored & {*effects(kernel.body).touched}:
            continue
        member = _member(kernel, place, stored)
        if member is None or not _shares_rows(members, member):
            break
        members.append(member)
        if member.product is not None:
            break
        stored |= {s.buffer for s in member.stores}
    return members


def _first(kernel: Kernel | None, place: int) -> _Member | None:
    """The kernel as first member, with its loops over rows, if it is a product whose result is scratch memory."""
    form = form_of(kernel.body) if kernel is not None else None
    if kernel is None or form is None or not (product := match(nest(form.heads, form.body))):
        return None
    stores = _stores(form.body)
    rows = _common(_leading(s.index, form) for s in stores if s.buffer.space is Space.SCRATCH)
    member = _Member(kernel, place, form, rows, product)
    return member if rows and rows[-1] is product.row and _is_simple(member) else None


def _member(kernel: Kernel, place: int, stored: Set[Buffer]) -> _Member | None:
    """The kernel as member, with its loops over the rows that it reads of these buffers; None if it does not fit."""
    form = form_of(kernel.body)
    read = [load for load in reads(form.body) if load.buffer in stored]
    if any(not _leading(load.index, form) for load in read):
        form = form_of(over_digits(FreshLoops(kernel), kernel.body))
        read = [load for load in reads(form.body) if load.buffer in stored]
    rows = _common(_leading(load.index, form) for load in read)
    before = {load.buffer for _, fill in form.variables for load in reads(fill)}
    member = _Member(kernel, place, form, rows, match(nest(form.heads, form.body)))
    return member if rows and not before & stored and _is_simple(member) else None


def _is_simple(member: _Member) -> bool:
    """Whether it consists of loops in any order, with indices that are not data."""
    body = nest(member.form.heads, member.form.body)
    simple = is_plain(body) and all(h.kind is LoopKind.PLAIN for h in member.form.heads)
    return simple and not any(indirect_in(p) for s in walk(body) for p in indices(s))


def _shares_rows(members: Sequence[_Member], more: _Member) -> bool:
    """Whether a kernel reads only the same rows of the members' results, and stores to rows of its own."""
    first, depth = members[0].rows, len(members[0].rows)
    if len(more.rows) < depth or any(a.extent is not b.extent for a, b in zip(first, more.rows, strict=False)):
        return False
    rows = more.rows[:depth]
    if more.product is not None and more.product.row is not rows[-1]:
        return False
    read = {load.buffer for load in reads(more.form.body)}
    for member in members:
        places = [s.index for s in member.stores if s.buffer in read]
        if any(_leading(index, member.form)[:depth] != member.rows[:depth] for index in places):
            return False
    return all({p.atom for p in s.index} >= {rows[-1]} and s.reduce is None for s in more.stores)


def _leading(index: Sequence[Index], form: Form) -> tuple[Loop, ...]:
    """The loops of the kernel that are the indices of the first axes."""
    heads, leading = {h.loop for h in form.heads}, list[Loop]()
    for p in index[:-1]:
        if not isinstance(p.atom, Loop) or p.atom not in heads or p.atom in leading:
            break
        leading.append(p.atom)
    return tuple(leading)


def _common(rows: Iterator[tuple[Loop, ...]]) -> tuple[Loop, ...]:
    """The longest common prefix."""
    result = next(rows, ())
    for other in rows:
        same = [a is b for a, b in zip(result, other, strict=False)]
        result = result[: same.index(False) if False in same else len(same)]
    return result


def _intermediates(members: Sequence[_Member], scratch: Set[Buffer], last: Mapping[Buffer, int]) -> set[Buffer]:
    """The intermediates of the group: buffers that no later kernel reads."""
    stored = {s.buffer for member in members for s in member.stores}
    return {b for b in stored & scratch if last[b] <= members[-1].place}


def _pays(members: Sequence[_Member], inside: Set[Buffer]) -> bool:
    """Whether the first product stores an array that grows faster than everything else that it touches, and another
    member reduces its rows."""
    first, *others = members
    touched = {*effects(first.kernel.body).touched}
    factors = [monomial for b in touched - inside for monomial, _ in product(b.shape).terms]
    large = {
        b
        for b in touched & inside
        if any(not any(_divides(size, other) for other in factors) for size, _ in product(b.shape).terms)
    }
    reduced = {
        load.buffer
        for member in others
        if member.product is None
        for _, store in accumulations(member.form.body)
        for load in value_loads(store.value)
    }
    return bool(large & reduced)


def _divides(a: Sequence[Atom], b: Sequence[Atom]) -> bool:
    return all(list(a).count(atom) <= list(b).count(atom) for atom in a)


# --- the fused kernel


def _fused(members: Sequence[_Member], inside: Set[Buffer], height: int) -> Kernel:
    """The members, one after the other in a loop over blocks of rows of this height."""
    fresh = FreshLoops(Kernel("", sequence([member.kernel.body for member in members])))
    *outer, row = (loop.extent for loop in members[0].rows)
    loops = [fresh.loop(extent) for extent in outer]
    blocks = split(fresh, row, height)
    depth = len(members[0].rows)
    members = [attrs.evolve(member, rows=member.rows[:depth]) for member in members]
    copies = {
        b: Buffer(b.name, b.dtype, (as_index(height), *b.shape[depth:]), Space.THREAD)
        for member in members
        for b in dict.fromkeys(s.buffer for s in member.stores)
        if b in inside
    }
    parts, variables = list[Stmt](), list[tuple[Buffer, Stmt]]()
    for member in members:
        head, r = fresh.loop(blocks.length)
        places: dict[Atom, Index] = dict(zip(member.rows, [*(p for _, p in loops), blocks.start + r], strict=True))
        rest = [h for h in member.form.heads if h.loop not in member.rows]
        body = shrink(nest(rest, member.form.body), copies, partial(_in_block, depth, r))
        parts.append(nest(head, with_loops(fresh, body, places)))
        variables += [(v, with_loops(fresh, fill, {})) for v, fill in member.form.variables]
    result = sequence(parts)
    for copy in reversed(copies.values()):
        result = Alloc(copy, result)
    heads = (*(h for head, _ in loops for h in head), *blocks.heads)
    name = joined_name(member.kernel for member in members)
    return Kernel(name, whole(Form(tuple(variables), heads, result)))


def _in_block(depth: int, row: Index, index: tuple[Index, ...]) -> tuple[Index, ...]:
    return (row, *index[depth:])


def _stores(s: Stmt) -> Iterator[Store]:
    return (part for part in walk(s) if isinstance(part, Store) and part.buffer.space in MEMORY)
