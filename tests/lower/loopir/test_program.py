"""The plan of the arena: what lives at the same time never shares, what does not does."""

from __future__ import annotations

import itertools

import numpy as np

import harp
from harp.lower.loopir.loops import Buffer, Space
from harp.lower.loopir.program import PAGE, lifetimes, plan, size_in_bytes
from harp.trace.index.polynomial import Index, Symbol, of
from harp.trace.scalar.dtypes import DType, f32, f64

N, M = of(Symbol(0, 0, "n")), of(Symbol(0, 1, "m"))


def scratch(name: str, extent: Index = N, dtype: DType = f32) -> Buffer:
    return Buffer(name, dtype, (extent,), Space.SCRATCH)


def chain(*buffers: Buffer) -> list[tuple[Buffer, ...]]:
    """What calls touch, each of which computes a buffer from the one before."""
    return [buffers[:1], *itertools.pairwise(buffers)]


def test_a_chain_takes_two_slots() -> None:
    buffers = [scratch(f"b{k}") for k in range(7)]
    slots = plan(chain(*buffers))
    assert [[b.name for b in slot.buffers] for slot in slots] == [["b0", "b2", "b4", "b6"], ["b1", "b3", "b5"]]
    assert all(size is N * 4 for slot in slots for size in slot.sizes)


def test_a_free_slot_of_the_same_size_is_preferred() -> None:
    wide, small, late = scratch("wide", N * M), scratch("small"), scratch("late", N * M)
    last, end = scratch("last"), scratch("end", M)
    slots = plan([(wide,), (small,), (wide, small, end), (end, late), (late, last)])
    names = [[b.name for b in slot.buffers] for slot in slots]
    assert ["wide", "late"] in names and ["small", "last"] in names


def test_lifetimes_and_sizes() -> None:
    a, b = scratch("a"), scratch("b", dtype=f64)
    touched = [(a,), (a, b), (b, a)]
    assert lifetimes(touched) == {a: (0, 2), b: (1, 2)}
    assert size_in_bytes(a) is N * 4 and size_in_bytes(b) is N * 8
    assert len(plan(touched)) == 2


def test_only_scratch_takes_memory_of_the_arena() -> None:
    a = scratch("a")
    others = [Buffer(space.value, f32, (N,), space) for space in Space if space is not Space.SCRATCH]
    assert [slot.buffers for slot in plan([(a, *others), others])] == [(a,)]
    assert plan([]) == plan([others]) == ()


def test_random_plans_never_overlap() -> None:
    for seed in range(50):
        buffers = [scratch(f"b{k}", (N, M, N * M)[(k * seed) % 3]) for k in range(12)]
        sources = [[buffers[j] for j in range(k) if (j * 7 + k * 3 + seed) % 5 == 0] for k in range(12)]
        touched = [(*sources[k], buffers[k]) for k in range(12)]
        lives = lifetimes(touched)
        slots = plan(touched)
        assert sorted(b.name for slot in slots for b in slot.buffers) == sorted(b.name for b in buffers)
        for slot in slots:
            for a, b in itertools.combinations(slot.buffers, 2):
                assert lives[a][1] < lives[b][0] or lives[b][1] < lives[a][0]


def test_arrays_that_take_turns_have_a_page_more() -> None:
    a, b = scratch("a"), scratch("b")
    slots = plan([(a, b)], {b})
    assert [slot.sizes for slot in slots] == [(N * 4,), (N * 4 + PAGE,)]


def test_scratch_that_takes_turns_with_a_result_is_half_a_page_from_it() -> None:
    stages = harp.jit(lambda x: harp.fori_loop(0, 5, lambda _, x: x + x[::-1], x)).lower(np.ones(4))
    assert "slot 0: mem0: f64[s0], 8*s0 + 4096 bytes" in stages.loops
    assert "mem0 = (double *)(void *)harp_apart(slot0, out0);" in stages.source
