"""Whether the iterations of a parallel loop touch different elements of what they store to.

A store that does not depend on the loop at all is an error. That two iterations never meet is proved where one axis of
every access is `slope*loop + inner + outer`, with `0 <= inner < slope` for all that varies inside and the same `outer`,
or everywhere `slope*loop - inner + outer`; or where that holds for all digits of the loop. What is neither is reported
as unproven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harp.lower.loops import (
    Alloc,
    Buffer,
    Call,
    Digits,
    For,
    Head,
    Let,
    Nest,
    Row,
    Segments,
    Space,
    Stmt,
    Store,
    offset,
    walk,
)
from harp.lower.uses import head_names, loads
from harp.trace.bounds import nonnegative
from harp.trace.division import Substitution
from harp.trace.index import ONE, Atom, Index, Loop, from_terms, of, split_linear, value_atoms


class Access(NamedTuple):
    buffer: Buffer
    at: tuple[Index, ...]


class Report(NamedTuple):
    """Certain races, and what could not be decided."""

    errors: list[str]
    unproven: list[str]


def check_parallel(head: For, inner: Sequence[Head], body: Stmt, lets: Mapping[Atom, Index]) -> Report:
    """`head` is parallel, `inner` are the heads behind it; `lets` are the derived sizes known outside."""
    heads = [*inner, *(h for s in walk(body) if isinstance(s, Nest) for h in s.heads)]
    known = dict(lets)
    for let in (h for h in heads if isinstance(h, Let)):
        known[let.symbol] = Substitution(known)(let.index)
    expand = Substitution(known)
    loop = expand(of(head.loop)).atom
    if loop is None:  # of one iteration, as the derived sizes show
        return Report([], [])
    names = [name for h in heads for name in head_names(h)]
    names += [row.lane for row in walk(body) if isinstance(row, Row)]
    inside = {a for name in names if (a := expand(of(name)).atom) is not None}
    digits = [h.digits if isinstance(h, Segments) else h for h in heads if isinstance(h, (Digits, Segments))]
    groups = [[loop], *(_digit_loops(d, expand) for d in digits if expand(d.flat).atom is loop)]
    report = Report([], [])
    if any(isinstance(s, Call) for s in walk(body)):
        report.unproven.append(f"parallel {head.loop}: it calls functions")
    accesses = [Access(a.buffer, expand.each(a.at)) for a in _accesses(body)]
    depends = _dependents(loop, digits, expand)
    for buffer in _shared_stores(body):
        mine = [a for a in accesses if a.buffer is buffer]
        fixed = [a for a in mine if not any(v in depends for p in a.at for v in value_atoms(p))]
        if fixed:
            at = ", ".join(map(repr, fixed[0].at))
            report.errors.append(f"all iterations of parallel {head.loop} meet at {buffer.name}[{at}]")
        elif not any(all(_apart(mine, atom, inside) for atom in group) for group in groups):
            report.unproven.append(f"parallel {head.loop}: that its iterations stay apart in {buffer.name}")
    return report


def _digit_loops(digits: Digits, expand: Substitution) -> list[Atom]:
    found = [expand(of(loop)).atom for loop in digits.loops if expand(loop.extent) is not ONE]
    return [atom for atom in found if atom is not None]


def _dependents(loop: Atom, digits: Sequence[Digits], expand: Substitution) -> set[Atom]:
    """The loop and all digits that follow from it."""
    found = {loop}
    for d in digits:
        if any(a in found for a in value_atoms(expand(d.flat))):
            found |= set(_digit_loops(d, expand))
    return found


def _accesses(body: Stmt) -> Iterator[Access]:
    for stmt in walk(body):
        if isinstance(stmt, Store):
            yield Access(stmt.buffer, stmt.index)
        elif isinstance(stmt, Row):  # it reads rows of the same numbers
            yield Access(stmt.target, stmt.index)
            yield from (Access(source, (*stmt.at_of(source), of(stmt.lane))) for source in stmt.sources)
        for load in loads(stmt):
            yield Access(load.buffer, load.index)


def _shared_stores(body: Stmt) -> list[Buffer]:
    """The buffers stored to that all iterations share."""
    own = {s.buffer for s in walk(body) if isinstance(s, Alloc)}
    stored = {s.buffer: None for s in walk(body) if isinstance(s, Store)}
    stored |= {s.target: None for s in walk(body) if isinstance(s, Row)}
    return [b for b in stored if b not in own and b.space is not Space.THREAD]


def _apart(accesses: Sequence[Access], atom: Atom, inside: set[Atom]) -> bool:
    """Whether the accesses of iterations with different values of `atom` differ along one axis, or in memory."""
    others = inside - {atom}
    places = [(*a.at, offset(a.buffer, a.at)) for a in accesses]
    for axis in range(len(places[0])):
        lanes = {_lane(place[axis], atom, others) for place in places}
        if len(lanes) == 1 and None not in lanes:
            return True
    return False


def _lane(p: Index, atom: Atom, inside: set[Atom]) -> tuple[Index, Index, int] | None:
    """(slope, outer, sign) of `slope*atom + sign*inner + outer` with `0 <= inner < slope`, if `p` is of this form."""
    parts = split_linear(p, atom)
    if parts is None:
        return None
    slope, rest = parts
    varying = from_terms({m: c for m, c in rest.terms if _varies(m, inside)})
    if _varies([a for m, _ in slope.terms for a in m], inside) or not nonnegative(slope - 1):
        return None
    for sign in (1, -1):
        inner = varying * sign
        if nonnegative(inner) and nonnegative(slope - 1 - inner):
            return slope, rest - varying, sign
    return None


def _varies(atoms: Sequence[Atom], inside: set[Atom]) -> bool:
    return any(v in inside for a in atoms for v in (a, *_below(a)))


def _below(atom: Atom) -> Iterator[Atom]:
    return iter(()) if isinstance(atom, Loop) else value_atoms(of(atom))
