"""Dependences: whether iterations of a loop that is to run in parallel store to, or read, elements that others store
to.

A store whose index does not depend on the loop is an error. Two iterations touch different elements if, along one axis,
every access is `slope*loop + inner + outer`, with `0 <= inner < slope` for all that varies inside, and the same
`outer`, or if all are `slope*loop - inner + outer`; constants may be part of `inner`, as for 2*i and 2*i + 1. A read is
also independent if it never meets a store: a[k] if iteration i stores a[k + 1 + i]. A loop whose position is split into
digits (delinearised) is proved digit by digit. An access that is neither proved nor refuted is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harp.lower.loopir.effects import effects, head_names, loads
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    Head,
    If,
    Let,
    Nest,
    Row,
    Space,
    Stmt,
    Store,
    offset,
    parts,
    walk,
)
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    Index,
    Indirect,
    Loop,
    from_terms,
    indirect_in,
    of,
    split_linear,
    value_atoms,
)


class ElementAccess(NamedTuple):
    """An element that is read or stored if all conditions are >= 0."""

    buffer: Buffer
    at: tuple[Index, ...]
    conditions: tuple[Index, ...] = ()
    stores: bool = False


class Report(NamedTuple):
    """Certain races, and accesses that could not be decided."""

    errors: list[str]
    unproven: list[str]


def check_parallel(
    head: For, inner: Sequence[Head], body: Stmt, lets: Mapping[Atom, Index], proofs: bool = True
) -> Report:
    """Check the parallel loop `head`; `inner` are the heads behind it, and `lets` the derived sizes defined outside.
    Without `proofs` only errors are looked for."""
    heads = [*inner, *(h for s in walk(body) if isinstance(s, Nest) for h in s.heads)]
    known = dict(lets)
    for let in (h for h in heads if isinstance(h, Let)):
        known[let.symbol] = Substitution(known)(let.index)
    expand = Substitution(known)
    loop = expand(of(head.loop)).atom
    if loop is None:  # one iteration, as the derived sizes show
        return Report([], [])
    names = [name for h in heads for name in head_names(h)]
    names += [row.lane for row in walk(body) if isinstance(row, Row)]
    inside = {a for name in names if (a := expand(of(name)).atom) is not None}
    digits = [h for h in heads if isinstance(h, Digits)]
    groups = [[loop], *(_digit_loops(d, expand) for d in digits if expand(d.flat).atom is loop)]
    report = Report([], [])
    accesses = [a._replace(at=expand.each(a.at), conditions=expand.each(a.conditions)) for a in _accesses(body)]
    depends = _dependents(loop, digits, expand)
    inside |= _changing(accesses, body)
    for buffer in _shared_stores(body):
        mine = _near_stores([a for a in accesses if a.buffer is buffer], [loop, *inside])
        fixed = [a for a in mine if not any(v in depends for p in a.at for v in value_atoms(p))]
        if fixed:
            at = ", ".join(map(repr, fixed[0].at))
            report.errors.append(f"all iterations of parallel {head.loop} meet at {buffer.name}[{at}]")
        elif proofs and not any(_all_apart(mine, group, inside) for group in groups):
            report.unproven.append(f"parallel {head.loop}: that its iterations stay apart in {buffer.name}")
    return report


def _changing(accesses: Sequence[ElementAccess], body: Stmt) -> set[Atom]:
    """Elements of index arrays that the body changes: in another iteration they differ, though they look alike."""
    changed = effects(body).writes | {s.buffer for s in walk(body) if isinstance(s, Alloc)}
    return {i for a in accesses for p in (*a.at, *a.conditions) for i in indirect_in(p) if i.array in changed}


def _digit_loops(digits: Digits, expand: Substitution) -> list[Atom]:
    atoms = [expand(of(loop)).atom for loop in digits.loops if expand(loop.extent) is not ONE]
    return [atom for atom in atoms if atom is not None]


def _dependents(loop: Atom, digits: Sequence[Digits], expand: Substitution) -> set[Atom]:
    """The loop and all digits that are computed from it."""
    dependents = {loop}
    for d in digits:
        if any(a in dependents for a in value_atoms(expand(d.flat))):
            dependents |= set(_digit_loops(d, expand))
    return dependents


def _accesses(s: Stmt, conditions: tuple[Index, ...] = ()) -> Iterator[ElementAccess]:
    if isinstance(s, Store):
        yield ElementAccess(s.buffer, s.index, conditions, stores=True)
    elif isinstance(s, Row):  # it reads rows at the same indices
        yield ElementAccess(s.target, s.index, conditions, stores=True)
        yield from (ElementAccess(source, (*s.at_of(source), of(s.lane)), conditions) for source in s.sources)
    for load in loads(s):
        yield ElementAccess(load.buffer, load.index, conditions)
    for part in parts(s):
        more = s.conditions if isinstance(s, If) and part is s.yes else ()
        yield from _accesses(part, (*conditions, *more))


def _shared_stores(body: Stmt) -> list[Buffer]:
    """The buffers stored to that iterations share."""
    private = {s.buffer for s in walk(body) if isinstance(s, Alloc)}
    stored = {s.buffer: None for s in walk(body) if isinstance(s, Store)}
    stored |= {s.target: None for s in walk(body) if isinstance(s, Row)}
    return [b for b in stored if b not in private and b.space is not Space.THREAD]


def _near_stores(accesses: Sequence[ElementAccess], varying: Sequence[Atom]) -> list[ElementAccess]:
    """The accesses to one buffer, without reads of elements that no iteration stores to."""
    stores = [a for a in accesses if a.stores]
    if len(stores) == len(accesses):
        return stores
    other = _other_iteration(varying)
    return [a for a in accesses if a.stores or not all(_never_meet(a, store, other) for store in stores)]


def _other_iteration(varying: Sequence[Atom]) -> Substitution:
    """Renames loops to those of another iteration. Extents may depend on enclosing loops."""
    loops = sorted((a for a in varying if isinstance(a, Loop)), key=lambda loop: loop.axis)
    first, renamed = 1 + max((loop.axis for loop in loops), default=0), dict[Atom, Index]()
    for number, loop in enumerate(loops):
        renamed[loop] = of(Loop(first + number, Substitution(renamed)(loop.extent)))
    for number, element in enumerate(a for a in varying if isinstance(a, Indirect)):
        size = Substitution(renamed)(element.size)
        renamed[element] = of(Loop(first + len(loops) + number, size + 1 if element.misses else size))
    return Substitution(renamed)


def _never_meet(read: ElementAccess, store: ElementAccess, other: Substitution) -> bool:
    """Whether two elements differ in all iterations, because one index is always larger along some axis."""
    facts = (ZERO, *read.conditions, *other.each(store.conditions))
    distances = [p - other(q) for p, q in zip(read.at, store.at, strict=True)]
    return any(nonnegative(d - 1 - fact) for p in distances for d in (p, -p) for fact in facts)


def _all_apart(accesses: Sequence[ElementAccess], atoms: Sequence[Atom], inside: set[Atom]) -> bool:
    """Whether accesses of iterations that differ in some digit differ.

    It is enough to prove this for a first digit that differs; for the others it is then the same. A digit that is 0 at
    every access does not differ.
    """
    remaining = [atom for atom in atoms if not all(-of(atom) in access.conditions for access in accesses)]
    while remaining:
        apart = next((atom for atom in remaining if _apart(accesses, atom, inside)), None)
        if apart is None:
            return False
        remaining.remove(apart)
        inside = inside - {apart}
    return True


def _apart(accesses: Sequence[ElementAccess], atom: Atom, inside: set[Atom]) -> bool:
    """Whether accesses of iterations with different values of `atom` differ along one axis, or in their offsets."""
    others = inside - {atom}
    places = list(dict.fromkeys(((*a.at, offset(a.buffer, a.at)), a.conditions) for a in accesses))
    for axis in range(len(places[0][0])):
        if _are_one_lane([(place[axis], conditions) for place, conditions in places], atom, others):
            return True
    return False


def _are_one_lane(places: Sequence[tuple[Index, tuple[Index, ...]]], atom: Atom, inside: set[Atom]) -> bool:
    """Whether all indices are among `slope` ones that belong to one iteration, as 2*i and 2*i + 1."""
    first = _lane(places[0][0], atom, inside, places[0][1])
    if first is None:
        return False
    lanes = [first, *(_lane(p, atom, inside, conditions) for p, conditions in places[1:])]
    if len(set(lanes)) == 1:
        return True
    slope, outer, sign = first
    shifts = [None if lane is None else (lane[1] - outer).constant for lane in lanes]
    known = [shift for shift in shifts if shift is not None]
    if len(known) < len(shifts):
        return False
    start = outer + min(known)
    shifted = {_lane(p, atom, inside, conditions, start) for p, conditions in places}
    return sign == 1 and shifted == {(slope, start, sign)}


def _lane(
    p: Index, atom: Atom, inside: set[Atom], conditions: tuple[Index, ...], start: Index | None = None
) -> tuple[Index, Index, int] | None:
    """(slope, outer, sign) of `slope*atom + sign*inner + outer` with `0 <= inner < slope`, if `p` has this form under
    the conditions. With `start` as `outer`, other invariant terms are part of `inner`."""
    parts = split_linear(p, atom)
    if parts is None or parts[0] is ZERO:
        return None
    slope, rest = parts
    varying = from_terms({m: c for m, c in rest.terms if _varies(m, inside)}) if start is None else rest - start
    if _varies([a for m, _ in slope.terms for a in m], inside):
        return None
    for sign in (1, -1):
        inner = varying * sign
        room = slope - 1 - inner
        if nonnegative(inner) and any(nonnegative(room - c) for c in (ZERO, *conditions)):
            return slope, rest - varying, sign
    return None


def _varies(atoms: Sequence[Atom], inside: set[Atom]) -> bool:
    return any(v in inside for a in atoms for v in (a, *_below(a)))


def _below(atom: Atom) -> Iterator[Atom]:
    return iter(()) if isinstance(atom, Loop) else value_atoms(of(atom))
