"""The plan of the arena: what lives at the same time never shares, what does not does."""

from __future__ import annotations

import itertools

from harp.lower.loops import Buffer, For, Kernel, Load, Nest, Space, Store
from harp.lower.memory import lifetimes, plan, size_in_bytes
from harp.trace.dtypes import DType, f32, f64
from harp.trace.expr import Expr, apply, cast, const
from harp.trace.index import Index, Loop, Symbol, of
from harp.trace.ops import Op

N, M = of(Symbol(0, 0, "n")), of(Symbol(0, 1, "m"))


def scratch(name: str, extent: Index = N, dtype: DType = f32, slack: int = 0) -> Buffer:
    return Buffer(name, dtype, (extent,), Space.SCRATCH, slack)


def kernel(out: Buffer, *sources: Buffer) -> Kernel:
    loop = Loop(0, N)
    value: Expr = const(0, out.dtype)
    for source in sources:
        value = apply(Op.ADD, value, cast(Load(source, (of(loop),)), out.dtype))
    return Kernel(f"make {out.name}", Nest((For(loop),), Store(out, (of(loop),), value)))


def chain(*buffers: Buffer) -> tuple[Kernel, ...]:
    return (kernel(buffers[0]), *(kernel(b, a) for a, b in itertools.pairwise(buffers)))


def test_a_chain_takes_two_slots() -> None:
    buffers = [scratch(f"b{k}") for k in range(7)]
    slots = plan(chain(*buffers), tuple(buffers))
    assert [[b.name for b in slot.buffers] for slot in slots] == [["b0", "b2", "b4", "b6"], ["b1", "b3", "b5"]]
    assert all(size is N * 4 for slot in slots for size in slot.sizes)


def test_a_free_slot_of_the_same_size_is_preferred() -> None:
    wide, small, late = scratch("wide", N * M), scratch("small"), scratch("late", N * M)
    last, end = scratch("last"), scratch("end", M)
    kernels = (kernel(wide), kernel(small), kernel(end, wide, small), kernel(late, end), kernel(last, late))
    slots = plan(kernels, (wide, small, end, late, last))
    names = [[b.name for b in slot.buffers] for slot in slots]
    assert ["wide", "late"] in names and ["small", "last"] in names


def test_lifetimes_and_sizes() -> None:
    a, b = scratch("a", slack=3), scratch("b", dtype=f64)
    kernels = (kernel(a), kernel(b, a), kernel(a, b))
    assert lifetimes(kernels) == {a: (0, 2), b: (1, 2)}
    assert size_in_bytes(a) is N * 4 + 12 and size_in_bytes(b) is N * 8
    assert len(plan(kernels, (a, b))) == 2


def test_buffers_that_nobody_touches_take_nothing() -> None:
    a = scratch("a")
    assert [slot.buffers for slot in plan((kernel(a),), (a, scratch("b")))] == [(a,)]
    assert plan((), ()) == ()


def test_random_plans_never_overlap() -> None:
    for seed in range(50):
        buffers = [scratch(f"b{k}", (N, M, N * M)[(k * seed) % 3]) for k in range(12)]
        kernels = [kernel(buffers[0])]
        for k in range(1, 12):
            kernels.append(kernel(buffers[k], *(buffers[j] for j in range(k) if (j * 7 + k * 3 + seed) % 5 == 0)))
        lives = lifetimes(kernels)
        slots = plan(tuple(kernels), tuple(buffers))
        assert sorted(b.name for slot in slots for b in slot.buffers) == sorted(b.name for b in buffers)
        for slot in slots:
            for a, b in itertools.combinations(slot.buffers, 2):
                assert lives[a][1] < lives[b][0] or lives[b][1] < lives[a][0]
