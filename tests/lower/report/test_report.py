"""The memory of a call: the bytes of its arrays, of the arena as compiled code counts them, and of threads."""

from __future__ import annotations

import pytest

from harp.lower.loopir.loops import Alloc, Buffer, For, Kernel, Load, Nest, Seq, Space, Stmt, Store
from harp.lower.loopir.program import Call, Program, Slot
from harp.lower.report.report import Memory, footprint
from harp.trace.index.polynomial import Index, Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import const

n = Symbol(0, 0, "n")
N = of(n)
I = Loop(0, N)  # noqa: E741


def buffer(name: str, *shape: Index | int, space: Space) -> Buffer:
    return Buffer(name, f32, tuple(map(as_index, shape)), space)


def program(body: Stmt, *slots: Slot) -> Program:
    inputs = buffer("x", N, space=Space.INPUT), Buffer("c", f64, (as_index(5),), Space.INPUT)
    kernel = Kernel("k", body, (OUT,), (n,))
    return Program(inputs, (OUT,), (n,), slots, (kernel,), (Call(0, (OUT,), (N,)),))


OUT = buffer("out", N, space=Space.OUTPUT)
STORE = Store(OUT, (of(I),), const(0.0, f32))
A, B = buffer("a", N, 20, space=Space.THREAD), buffer("b", 100, space=Space.THREAD)


def test_arrays_and_slots() -> None:
    scratch = buffer("mem", N, 3, space=Space.SCRATCH), buffer("late", N, space=Space.SCRATCH)
    slot = Slot(scratch, (N * 12, N * 4))
    found = footprint(program(Nest((For(I),), STORE), slot), 1, {n: 6}, 4)
    assert found == Memory(inputs=24, captured=40, outputs=24, scratch=128, per_thread=0, threads=4)
    assert found.peak == 24 + 40 + 24 + 128


@pytest.mark.parametrize("size", [0, 1, 7])
def test_memory_of_threads_adds_up_inside_and_takes_turns_beside(size: int) -> None:
    def lines(count: int) -> int:
        return -(-count // 64) * 64

    a, b = lines(size * 80), lines(400)
    inside = Nest((For(I),), Alloc(A, Alloc(B, STORE)))
    beside = Seq((Nest((For(I),), Alloc(A, STORE)), Nest((For(I),), Alloc(B, STORE))))
    assert footprint(program(inside), 1, {n: size}, 2).per_thread == a + b
    found = footprint(program(beside), 1, {n: size}, 3)
    assert found.per_thread == max(a, b)
    assert found.peak == size * 4 + 40 + size * 4 + 3 * max(a, b)
    of_group = buffer("e", N, 20, space=Space.WORKSPACE)
    assert footprint(program(Nest((For(I),), Alloc(of_group, STORE))), 1, {n: size}, 1).per_thread == a


def test_what_depends_on_a_loop_counts_at_its_largest() -> None:
    growing = buffer("row", of(I) + 1, space=Space.THREAD)
    shrinking = buffer("row", N - of(I), space=Space.THREAD)
    for own in (growing, shrinking):
        body = Nest((For(I),), Alloc(own, Store(own, (as_index(0),), Load(OUT, (of(I),)))))
        assert footprint(program(body), 1, {n: 64}, 1).per_thread == 256
