"""What each work-item has a part of: accesses that obey the rules, and for each rule some that break it."""

from __future__ import annotations

import pytest

from harp.errors import VerificationError
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    Head,
    If,
    Kernel,
    Load,
    LoopKind,
    Nest,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.lower.verify.verify import verify_kernel
from harp.trace.index.polynomial import Index, Indirect, Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import f32, i64
from harp.trace.scalar.expr import Expr, const
from harp.trace.scalar.ops import Reduce

N = of(Symbol(0, 0, "n"))
T, S, U, V = Loop(1, as_index(256)), Loop(2, as_index(16)), Loop(3, as_index(16)), Loop(4, as_index(16))
PARTS = Buffer("parts", f32, (as_index(16), as_index(16)), Space.LANES)
OWN = Buffer("own", f32, (as_index(256),), Space.PRIVATE)
ACC = Buffer("acc", f32, (), Space.REG)
A, OUT = Buffer("a", f32, (N,), Space.INPUT), Buffer("out", f32, (as_index(256),), Space.OUTPUT)
PLACES = Buffer("places", i64, (N,), Space.INPUT)
DIGITS = Digits((S, U), of(T))
OF_MINE = Load(PARTS, (of(S), of(V)))
KEPT = Store(OUT, (of(T),), Load(ACC, ()))


def items(body: Stmt, *heads: Head, extent: int = 256) -> Stmt:
    loop = T if extent == 256 else Loop(1, as_index(extent))
    return Nest((For(loop, LoopKind.ITEM), *(heads or (DIGITS,))), body)


def read(step: Stmt, *heads: Head) -> Stmt:
    return items(Alloc(ACC, Seq((Store(ACC, (), const(0.0, f32)), step, KEPT))), *heads)


def along(body: Stmt, extent: Index | None = None, kind: LoopKind = LoopKind.PLAIN) -> Stmt:
    return Nest((For(V if extent is None else Loop(4, extent), kind),), body)


def added(value: Expr) -> Stmt:
    return Store(ACC, (), value, Reduce.SUM)


def at_lane(extent: Index) -> Expr:
    return Load(PARTS, (of(S), of(Loop(4, extent))))


def checked(*statements: Stmt) -> list[str]:
    body = Alloc(PARTS, Alloc(OWN, Seq(statements)))
    return verify_kernel(Kernel("k", body))


STORED = items(Store(PARTS, (of(S), of(U)), const(1.0, f32)))


def test_lanes_of_the_same_sub_group() -> None:
    assert checked(STORED, read(along(added(OF_MINE)))) == []
    assert checked(STORED, read(added(Load(PARTS, (of(S), 15 - of(U)))))) == []
    k, u = Loop(3, as_index(2)), Loop(5, as_index(8))  # a sub-group of two branches
    branch = Load(PARTS, (of(S), 8 * of(k) + of(Loop(4, as_index(8)))))
    assert checked(STORED, read(along(added(branch), as_index(8)), Digits((S, k, u), of(T)))) == []
    assert checked(items(Store(OWN, (of(T),), const(1.0, f32))), read(added(Load(OWN, (of(T),))))) == []


INDIRECT = of(Indirect(PLACES, (as_index(0),), as_index(16)))
HALF = Loop(2, as_index(8))
EXCHANGES: dict[str, Stmt] = {
    "another sub-group": read(along(added(Load(PARTS, (15 - of(S), of(V)))))),
    "any sub-group": read(along(added(Load(PARTS, (of(V), of(U)))))),
    "the next sub-group": read(along(added(Load(PARTS, (of(S) + 1, of(V)))))),
    "across two sub-groups": read(
        along(added(Load(PARTS, (2 * of(HALF), of(V))))), Digits((HALF, Loop(3, as_index(32))), of(T))
    ),
    "digits of another number": read(along(added(OF_MINE)), Digits((S, U), 255 - of(T))),
    "no digits": items(Store(OUT, (of(T),), Load(PARTS, (as_index(0), as_index(0)))), Digits((), as_index(0))),
    "part of a value": read(along(added(OF_MINE + Load(ACC, ())))),
    "behind conditions": read(along(added(Load(PARTS, OF_MINE.index, (8 - of(V),), const(0.0, f32))))),
    "in a branch for some": read(If((8 - of(U),), along(added(OF_MINE)))),
    "in a branch that data takes": read(If((8 - INDIRECT,), along(added(OF_MINE)))),
    "in a loop of some length": read(along(added(at_lane(of(U))), of(U))),
    "in a loop whose length is data": read(along(added(at_lane(INDIRECT)), INDIRECT)),
    "in a search": read(along(added(OF_MINE), kind=LoopKind.SEARCH)),
    "behind its own store": items(
        Seq((Store(PARTS, (of(S), of(U)), const(1.0, f32)), Store(OUT, (of(T),), Load(PARTS, (of(S), of(U))))))
    ),
    "outside of a loop of items": along(Store(OUT, (of(V),), Load(PARTS, (of(V), of(V))))),
    "by too few": items(
        Store(OUT, (of(Loop(1, as_index(16))),), Load(PARTS, (as_index(0), of(Loop(1, as_index(16)))))),
        Digits((), as_index(0)),
        extent=16,
    ),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_reads_that_are_no_exchange(name: str) -> None:
    with pytest.raises(VerificationError, match="is no exchange of all work-items of a sub-group"):
        checked(STORED, EXCHANGES[name])


STORES: dict[str, Stmt] = {
    "of a neighbour": items(Store(PARTS, (of(S), 15 - of(U)), const(1.0, f32))),
    "the same one": items(Store(PARTS, (of(S), as_index(0)), const(1.0, f32))),
    "outside": Store(PARTS, (as_index(0), as_index(0)), const(1.0, f32)),
    "private": items(Store(OWN, (255 - of(T),), const(1.0, f32))),
    "private, by too few": Nest((For(V, LoopKind.ITEM),), Store(OWN, (of(V),), const(1.0, f32))),
}


def test_nothing_is_added_to_lanes_in_place() -> None:
    with pytest.raises(VerificationError, match="parts is added to"):
        checked(items(Store(PARTS, (of(S), of(U)), const(1.0, f32), Reduce.SUM)))


@pytest.mark.parametrize("name", STORES)
def test_stores_to_what_another_work_item_has(name: str) -> None:
    with pytest.raises(VerificationError, match=r"is stored to by another work-item|all iterations"):
        checked(STORES[name])


def test_private_elements_are_read_by_their_own_work_item() -> None:
    with pytest.raises(VerificationError, match="is private to another work-item"):
        checked(items(Store(OWN, (of(T),), const(1.0, f32))), read(added(Load(OWN, (255 - of(T),)))))
