"""What passes between products and work on their rows stays in the second cache, a block of rows at a time.

    for i, j { acc = 0; for k: acc += q[i, k]*w[j, k]; s[i, j] = acc }
    for i { m = max of s[i, :]; for j: p[i, j] = exp(s[i, j] - m) }
    for i, d { acc = 0; for j: acc += p[i, j]*v[j, d]; out[i, d] = acc }
        ->  for ib { s'[ROWS, n]; p'[ROWS, n];
                     for r, j { ...; s'[r, j] = acc }; for r { ... }; for r, d { ...; out[ib*ROWS + r, d] = acc } }

Kernels that follow each other are one group if each reads, of what the others store, rows of the same loops only. It
pays where what passes between them grows faster than what else a product reads and stores: the scores of attention
have n*n elements, and their factors only n. A row is computed by the same loops in the same order, so no bit of it
changes. (The name is that of MLIR; M. Rabe and C. Staats: "Self-attention does not need O(n^2) memory", 2021.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import attrs

from harp.lower.build import Built
from harp.lower.digits import over_digits
from harp.lower.fuse import Form, form_of, whole
from harp.lower.loops import MEMORY, Alloc, Buffer, Kernel, Load, LoopKind, Space, Stmt, Store, walk
from harp.lower.primitives import split
from harp.lower.products import is_contraction
from harp.lower.rewrite import Numbers, is_plain, nest, reads, rebuilt, sequence, with_loops
from harp.lower.uses import indices, uses
from harp.trace.expr import Expr, rewrite
from harp.trace.index import Atom, Index, Loop, as_index, picks_in, product

# Rows of a block: enough to make light of packing the right factor of a product anew for each block, few enough for
# two arrays of some thousand columns in the second cache.
ROWS = 64
# The most kernels of a group.
_MOST = 8


@attrs.frozen
class _Member:
    """A kernel of a group, and its loops over the rows that the members share."""

    kernel: Kernel
    form: Form
    rows: tuple[Loop, ...]

    @property
    def stores(self) -> tuple[Store, ...]:
        """To memory outside of the kernel."""
        return tuple(_stores(self.form.body))


def tile_and_fuse(built: Built) -> Built:
    """The kernels, with groups as one; and the scratch buffers that are left."""
    last = {b: number for number, kernel in enumerate(built.kernels) for b in uses(kernel.body).touched}
    scratch, kernels, at = set(built.scratch), list[Kernel](), 0
    while at < len(built.kernels):
        members = _group(built.kernels[at : at + _MOST])
        while len(members) > 1:
            inside = _inside(members, scratch, last, at + len(members))
            if _pays(members, inside):
                kernels.append(_fused(members, inside))
                scratch -= inside
                break
            members = members[:-1]
        else:
            kernels.append(built.kernels[at])
        at += len(members) if len(members) > 1 else 1
    if len(kernels) == len(built.kernels):
        return built
    return attrs.evolve(built, kernels=tuple(kernels), scratch=tuple(b for b in built.scratch if b in scratch))


# --- which kernels are a group


def _group(kernels: Sequence[Kernel]) -> list[_Member]:
    """The longest group that begins with the first of these kernels, a product; or nothing."""
    form = form_of(kernels[0].body)
    places = [s.index for s in _stores(form.body) if s.buffer.space is Space.SCRATCH]
    if not places or not is_contraction(nest(form.heads, form.body)):
        return []
    members = [_Member(kernels[0], form, _common(_leading(index, form) for index in places))]
    for kernel in kernels[1:]:
        joined = _joined(members, kernel)
        if joined is None:
            break
        members = joined
    return members if all(_is_simple(member) for member in members[:1]) else []


def _member(kernel: Kernel, stored: Set[Buffer]) -> _Member | None:
    """The kernel with its loops over rows of what it reads of these buffers; None if it reads nothing so."""
    form = form_of(kernel.body)
    read = [load for load in reads(form.body) if load.buffer in stored]
    if any(not _leading(load.index, form) for load in read):
        form = form_of(over_digits(Numbers(kernel), kernel.body))
        read = [load for load in reads(form.body) if load.buffer in stored]
    member = _Member(kernel, form, _common(_leading(load.index, form) for load in read))
    return member if member.rows and _is_simple(member) else None


def _is_simple(member: _Member) -> bool:
    """Whether it is made of loops that may run in any order, at places that are no data."""
    body = nest(member.form.heads, member.form.body)
    simple = is_plain(body) and all(h.kind is LoopKind.SERIAL for h in member.form.heads)
    return simple and not any(picks_in(p) for s in walk(body) for p in indices(s))


def _leading(index: Sequence[Index], form: Form) -> tuple[Loop, ...]:
    """The loops of the kernel that the first axes follow, one each."""
    heads, found = {h.loop for h in form.heads}, list[Loop]()
    for p in index[:-1]:
        if not isinstance(p.atom, Loop) or p.atom not in heads or p.atom in found:
            break
        found.append(p.atom)
    return tuple(found)


def _common(rows: Iterator[tuple[Loop, ...]]) -> tuple[Loop, ...]:
    """The longest beginning that all have."""
    result = next(rows, ())
    for other in rows:
        same = [a is b for a, b in zip(result, other, strict=False)]
        result = result[: same.index(False) if False in same else len(same)]
    return result


def _joined(members: list[_Member], kernel: Kernel) -> list[_Member] | None:
    """The members with one more; None if it reads other rows than its own of what they store, or nothing."""
    stored = {s.buffer: (member, s) for member in members for s in member.stores}
    more = _member(kernel, stored.keys())
    if more is None or any(load.buffer in stored for _, fill in more.form.variables for load in reads(fill)):
        return None
    read = {load.buffer for load in reads(more.form.body)} & stored.keys()
    depth = min(len(member.rows) for member in (*members, more))
    for buffer in read:
        member, store = stored[buffer]
        own = _leading(store.index, member.form)
        while depth and own[:depth] != member.rows[:depth]:
            depth -= 1
    extents = [[loop.extent for loop in member.rows[:depth]] for member in (*members, more)]
    if not depth or any(other != extents[0] for other in extents):
        return None
    cut = [attrs.evolve(member, rows=member.rows[:depth]) for member in (*members, more)]
    return cut if all(map(_keeps_rows_apart, cut)) else None


def _keeps_rows_apart(member: _Member) -> bool:
    """Whether each iteration of the loops over rows stores elements of its own: those loops are axes, all told."""
    for store in member.stores:
        moving = {p.atom for p in store.index if isinstance(p.atom, Loop)}
        if store.reduce is not None or not moving >= set(member.rows[-1:]):
            return False
    return True


def _inside(members: Sequence[_Member], scratch: Set[Buffer], last: dict[Buffer, int], end: int) -> set[Buffer]:
    """What passes between the members, and nobody else reads."""
    stored = {s.buffer for member in members for s in member.stores}
    return {b for b in stored & scratch if last[b] < end}


def _pays(members: Sequence[_Member], inside: Set[Buffer]) -> bool:
    """Whether some array inside grows faster than all else that a product of the group touches, and there is work on
    rows of it beside products."""
    products = [m for m in members if is_contraction(nest(m.form.heads, m.form.body))]
    if len(products) == len(members):
        return False
    for member in products:
        touched = {*uses(member.kernel.body).touched}
        others = [m for b in touched - inside for m, _ in product(b.shape).terms]
        sizes = [m for b in touched & inside for m, _ in product(b.shape).terms]
        if any(not any(_divides(size, other) for other in others) for size in sizes):
            return True
    return False


def _divides(a: Sequence[Atom], b: Sequence[Atom]) -> bool:
    return all(list(a).count(atom) <= list(b).count(atom) for atom in a)


# --- the kernel of a group


def _fused(members: Sequence[_Member], inside: Set[Buffer]) -> Kernel:
    """The members, one after the other in a loop over blocks of rows."""
    numbers = Numbers(Kernel("", sequence([member.kernel.body for member in members])))
    *outer, row = (loop.extent for loop in members[0].rows)
    loops = [numbers.loop(extent) for extent in outer]
    blocks = split(numbers, row, ROWS)
    depth = len(members[0].rows)
    copies = {
        b: Buffer(b.name, b.dtype, (as_index(ROWS), *b.shape[depth:]), Space.THREAD)
        for member in members
        for b in dict.fromkeys(s.buffer for s in member.stores)
        if b in inside
    }
    parts, variables = list[Stmt](), list[tuple[Buffer, Stmt]]()
    for member in members:
        head, r = numbers.loop(blocks.length)
        places: dict[Atom, Index] = dict(zip(member.rows, [*(p for _, p in loops), blocks.start + r], strict=True))
        rest = [h for h in member.form.heads if h.loop not in member.rows]
        body = _over_copies(nest(rest, member.form.body), copies, depth, r)
        parts.append(nest(head, with_loops(numbers, body, places)))
        variables += [(v, with_loops(numbers, fill, {})) for v, fill in member.form.variables]
    result = sequence(parts)
    for copy in reversed(copies.values()):
        result = Alloc(copy, result)
    heads = (*(h for head, _ in loops for h in head), *blocks.heads)
    name = "_".join(dict.fromkeys("_".join(member.kernel.name for member in members).split("_")))
    return Kernel(name, whole(Form(tuple(variables), heads, result)))


def _over_copies(s: Stmt, copies: Mapping[Buffer, Buffer], depth: int, row: Index) -> Stmt:
    """The statement with rows of a block in place of rows of these arrays."""

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.buffer not in copies:
            return e
        return Load(copies[e.buffer], (row, *e.index[depth:]), e.conditions, e.fill)

    def statement(s: Stmt) -> Stmt:
        if not isinstance(s, Store):
            return rebuilt(s, statement)
        (value,) = rewrite((s.value,), leaf)
        if s.buffer not in copies:
            return Store(s.buffer, s.index, value, s.reduce)
        return Store(copies[s.buffer], (row, *s.index[depth:]), value, s.reduce)

    return statement(s)


def _stores(s: Stmt) -> Iterator[Store]:
    return (part for part in walk(s) if isinstance(part, Store) and part.buffer.space in MEMORY)
