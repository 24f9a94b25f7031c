"""Equal loops of a kernel become calls of one function, others stay; and the kernel computes what it did before."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.kernels.local_functions import local_functions
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    For,
    Kernel,
    Load,
    LocalCall,
    LoopKind,
    Nest,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.text import kernel_text
from harp.lower.verify.interpreter import run_kernel
from harp.trace.index.polynomial import Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.expr import const

Array = np.ndarray
ROWS = Symbol(0, 0, "rows")
ROW = Loop(0, of(ROWS))
X, Y = (Buffer(name, f64, (of(ROWS), as_index(64)), space) for name, space in (("x", Space.INPUT), ("y", Space.OUTPUT)))
TILES = tuple(Buffer(f"tile{k}", f64, (as_index(64),), Space.LOCAL) for k in range(2))


def loop(
    number: int, source: Buffer, target: Buffer, term: float, kind: LoopKind = LoopKind.SIMD, length: int = 64
) -> Stmt:
    """target[l] = 1.5*source[l] + term; arrays of two axes are at the row of the loop round it."""
    lane = Loop(number, as_index(length))
    at = lambda buffer: (of(ROW), of(lane)) if len(buffer.shape) == 2 else (of(lane),)
    value = Load(source, at(source)) * const(1.5, f64) + const(term, f64)
    return Nest((For(lane, kind),), Store(target, at(target), value))


def kernel(*loops: Stmt) -> Kernel:
    body: Stmt = Seq(loops)
    for tile in TILES:
        body = Alloc(tile, body)
    return Kernel("k", Nest((For(ROW, LoopKind.PARALLEL),), body), (X, Y), (ROWS,))


def steps(*terms: float, kind: LoopKind = LoopKind.SIMD) -> Kernel:
    """y = 1.5*(... 1.5*x + terms[0] ...) + terms[-1], through two tiles in turns."""
    arrays = [X, *(TILES[k % 2] for k in range(len(terms) - 1)), Y]
    return kernel(*(loop(k + 1, arrays[k], arrays[k + 1], term, kind) for k, term in enumerate(terms)))


def calls(kernel: Kernel) -> list[LocalCall]:
    return [s for s in walk(kernel.body) if isinstance(s, LocalCall)]


def result(kernel: Kernel, rows: int = 3) -> Array:
    x, y = np.arange(64.0 * rows).reshape(rows, 64), np.zeros((rows, 64))
    run_kernel(kernel, {X: x, Y: y}, {ROWS: rows})
    return y


def test_equal_loops_are_calls_of_one_function() -> None:
    before = steps(1.0, 2.0, 3.0, 4.0, 5.0)
    after = local_functions(before)
    assert len(calls(after)) == 3, "the first loop and the last one have arrays of two axes"
    assert len({call.function for call in calls(after)}) == 1
    assert [call.arguments for call in calls(after)] == [
        (TILES[0], const(2.0, f64), TILES[1]),
        (TILES[1], const(3.0, f64), TILES[0]),
        (TILES[0], const(4.0, f64), TILES[1]),
    ]
    for rows in (0, 1, 3):
        np.testing.assert_array_equal(result(after, rows), result(before, rows))
    assert "call of a function for equal loops" in kernel_text(after)


def test_numbers_that_are_the_same_stay_in_the_function() -> None:
    after = local_functions(steps(*[1.0] * 5))
    assert all(call.arguments in (TILES, TILES[::-1]) for call in calls(after)) and len(calls(after)) == 3


def test_loops_around_are_sizes() -> None:
    """The row where a loop reads is an argument."""
    reads = [loop(k + 1, X, TILES[0], k) for k in range(3)]
    after = local_functions(kernel(*reads, loop(9, TILES[0], Y, 0.0)))
    assert [call.sizes for call in calls(after)] == [(of(ROWS), of(ROW))] * 3
    np.testing.assert_array_equal(result(after), 1.5 * (1.5 * np.arange(192.0).reshape(3, 64) + 2))


def in_other_loops(kind: LoopKind) -> Kernel:
    return steps(1.0, 2.0, 3.0, 4.0, 5.0, kind=kind)


APART: dict[str, Callable[[], Kernel]] = {
    "two equal loops": lambda: steps(1.0, 2.0, 3.0, 4.0),
    "loops that are not for vectors": lambda: in_other_loops(LoopKind.PLAIN),
    "accumulators": lambda: kernel(*(loop(k, X, TILES[0], 1.0, length=32) for k in range(1, 6))),
    "other lengths": lambda: kernel(*(loop(k, X, TILES[0], 1.0, length=64 - k) for k in range(1, 6))),
    "in place and from one tile to another": lambda: kernel(
        loop(1, X, TILES[0], 1.0),
        loop(2, TILES[0], TILES[0], 1.0),
        loop(3, TILES[0], TILES[0], 1.0),
        loop(4, TILES[0], TILES[1], 1.0),
        loop(5, TILES[1], TILES[0], 1.0),
        loop(6, TILES[0], Y, 1.0),
    ),
}


@pytest.mark.parametrize("name", APART)
def test_other_loops_stay(name: str) -> None:
    before = APART[name]()
    assert local_functions(before) is before or not calls(local_functions(before))


def test_the_interpreter_runs_the_function() -> None:
    """So that the checks of passes see a function that does something else than the loop."""
    after = local_functions(steps(1.0, 2.0, 3.0, 4.0, 5.0))
    wrong = attrs.evolve(calls(after)[1], arguments=(TILES[1], const(9.0, f64), TILES[0]))

    def changed(s: Stmt) -> Stmt:
        if s is calls(after)[1]:
            return wrong
        if isinstance(s, Seq):
            return Seq(tuple(map(changed, s.parts)))
        return attrs.evolve(s, body=changed(s.body)) if isinstance(s, (Nest, Alloc)) else s

    assert (result(after.with_body(changed(after.body))) != result(after)).all()


# --- programs, against NumPy

SIZES = (0, 1, 7, 255, 256, 257, 511, 512, 513, 5000)
STEPS: dict[str, Callable[..., Array]] = {
    "sine": lambda xp, x, k: xp.sin(x) * 1.01 + k,
    "two functions": lambda xp, x, k: xp.exp(-xp.abs(x)) * k / 20 + xp.cos(x),
    "masks": lambda xp, x, k: xp.where(x > k / 4, xp.tanh(x), xp.log1p(xp.abs(x)) - k / 8),
    "powers": lambda xp, x, k: xp.abs(x) ** 0.7 / (k + 1) - xp.arctan(x),
    "atan2": lambda xp, x, k: xp.arctan2(x, 1.5 + k) + 1 / (1 + k),
}


def chain(xp: object, name: str, count: int, x: Array) -> Array:
    for k in range(count):
        x = STEPS[name](xp, x, k)
    return x


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", STEPS)
def test_chains(name: str, dtype: str) -> None:
    f = harp.jit(lambda x: chain(hnp, name, 12, x))
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == "f4" else {"rtol": 1e-10, "atol": 1e-12}
    for size in SIZES:
        x = np.random.default_rng(size).uniform(0.2, 2, size)
        np.testing.assert_allclose(np.asarray(f(x.astype(dtype))), chain(np, name, 12, x), **tolerance)
    assert f.compilations == 1
    functions = {call.function for k in f.lower(x)._program.kernels for call in calls(k)}
    assert functions, "no loops are equal"


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(STEPS)), st.integers(7, 24), st.sampled_from(SIZES))
def test_gradients_of_chains(name: str, count: int, size: int) -> None:
    """Beside a difference quotient along a random direction."""
    rng = np.random.default_rng(count)
    x, along = rng.uniform(0.2, 2, size), rng.normal(size=size)
    f = lambda x: chain(hnp, name, count, x).sum()
    slope = np.asarray(harp.jit(harp.grad(f))(x)) @ along
    step = 1e-6
    ahead, behind = (chain(np, name, count, x + sign * step * along).sum() for sign in (1, -1))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-4 * max(size, 1))
