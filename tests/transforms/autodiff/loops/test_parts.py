"""Gradients of steps that read a part of an array, at a fixed place or of a view: no step costs the whole array."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def steps(x, step, first=0.5):
    return harp.scan(lambda s, e: (step(s, e), None), first, x)[0]


def counted(x, step, first):
    return harp.fori_loop(0, x.shape[0], step, first)


def branch(s, e, c):
    return harp.cond(s > 0.3, lambda s: hnp.sin(s * c[0] + e), lambda s: s + c[1], s)


def one_after_the_other(x, c):
    """Sums of the same two arrays, in loops and between them."""

    def step(i, s):
        first = harp.fori_loop(0, 3, lambda j, d: hnp.sin(d + c[0] * c[j]), s)
        return harp.fori_loop(0, 2, lambda j, d: hnp.cos(d * c[j + 1]) + c[-1], first * x[i])

    return counted(x, step, 0.5)


def table_of(x, table):
    return counted(x, lambda i, s: hnp.sin(s * table[i, 1] + x[i, 0]), 0.1)


def kalman(z, h):
    def step(state, e):
        mean, spread = state
        spread, row = spread + 0.1 * hnp.eye(3), h[:3]
        s = row @ spread @ row + 1.0
        gain = spread @ row / s
        mean = mean + gain * (e - row @ mean)
        return (mean, spread - hnp.outer(gain, row @ spread)), hnp.log(s) + (e - row @ mean) ** 2 / s

    return hnp.sum(harp.scan(step, (hnp.zeros(3), hnp.eye(3)), z)[1])


def filtered(x, b):
    """An IIR filter."""

    def step(s, e):
        y = b[0] * e + s[0]
        return (b[1] * e + s[1] - 0.5 * b[3] * y, b[2] * e - 0.5 * b[4] * y), y

    return hnp.sum(harp.scan(step, (0.0, 0.0), x)[1] ** 2)


# Functions of arrays of n elements, or of n rows and columns, that take n steps.
VECTORS = {
    "first": lambda x, c: steps(x, lambda s, e: hnp.sin(s * c[0] + e)),
    "last": lambda x, c: steps(x, lambda s, e: hnp.sin(s * c[-1] + e * c[-2])),
    "a carry that stays": lambda x, c: steps(x, lambda s, e: (hnp.sin(s[0] * s[1][0] + e), s[1]), (0.1, c))[0],
    "the first few": lambda x, c: hnp.sum(steps(x, lambda s, e: hnp.sin(s * c[:3] + e * c[2:5]), hnp.ones(3))),
    "the last few": lambda x, c: hnp.sum(steps(x, lambda s, e: hnp.sin(s * c[-3:] + e * c[-5:-2:1]), hnp.ones(3))),
    "one of each step": lambda x, c: steps(c, lambda s, e: hnp.sum(hnp.sin(s * c[:4:2] + e)), 0.5),
    "of a changing carry": lambda x, c: hnp.sum(counted(x, lambda i, s: s.at[i].set(hnp.sin(s[i] * s[0])), c)),
    "few of a changing carry": lambda x, c: hnp.sum(
        counted(x, lambda i, s: s.at[i].set(hnp.sin(s[i] * s[-1]) + hnp.sum(s[:2] * s[1:3])), c)
    ),
    "changed where it is read": lambda x, c: hnp.sum(counted(x, lambda i, s: s.at[0].add(hnp.sin(s[0] * x[i])), c)),
    "without the first": lambda x, c: counted(x[1:], lambda i, s, d=c[1:]: hnp.sin(s * d[i] + x[1:][i]), 0.1),
    "reversed": lambda x, c: counted(x, lambda i, s: hnp.sin(s * x[::-1][i] + c[::-1][0]), 0.1),
    "every second": lambda x, c: harp.fori_loop(
        0, (x.shape[0] + 1) // 2, lambda i, s: hnp.sin(s + x[::2][i] * c[i]), 0.1
    ),
    "in a branch": lambda x, c: steps(x, lambda s, e: branch(s, e, c)),
    "in loops inside": one_after_the_other,
    "a Kalman filter": kalman,
    "an IIR filter": filtered,
    "steps that do not depend on each other": lambda x, c: hnp.sum(harp.map(lambda e: hnp.sin(e * c[0] + c[1]), x)),
    "until data says": lambda x, c: harp.fori_loop(
        0, x.shape[0] + (x[0] > 9).astype(int), lambda i, s: hnp.sin(s * c[0] + c[2]), 0.1
    ),
    "checkpoints": lambda x, c: harp.scan(lambda s, e: (hnp.sin(s * c[0] + e), None), 0.1, x, checkpoint_every=2)[0],
    "few checkpoints": lambda x, c: harp.scan(
        lambda s, e: (hnp.sin(s * c[0] + e), None), 0.1, x, checkpoint_every="log"
    )[0],
}
MATRICES = {
    "an element": lambda x, c: steps(x[0], lambda s, e: hnp.sin(s * c[1, 2] + e)),
    "elements of a row": lambda x, c: counted(x, lambda i, s: hnp.sin(s * c[0, i] + x[i, 1] * c[-1, -1]), 0.1),
    "a column": lambda x, c: counted(x, lambda i, s: hnp.sin(s * c[:, 0][i] + x.T[i, 1]), 0.1),
    "data says the row": lambda x, c: counted(
        x, lambda i, s: hnp.sin(s + x[hnp.where(s > 0.4, 0, 1), 2] * c[i, 0]), 0.1
    ),
    "flat": lambda x, c: counted(x, lambda i, s: hnp.sin(s * x.reshape(-1)[i] + c.reshape(-1)[i * 2 + 1]), 0.1),
    "a table of a vector": lambda x, c: table_of(x, c.reshape(-1)[: 3 * x.shape[0]].reshape(-1, 3)),
    "columns of a part": lambda x, c: hnp.sum(
        counted(x, lambda i, s: hnp.sin(s * x[:, :2][i] + c[:2, 1]), hnp.ones(2))
    ),
    "rows inside": lambda x, c: counted(
        x, lambda i, s: harp.fori_loop(0, 3, lambda j, d: hnp.sin(d * c[0, 1] + c[i, j] * x[j, 0]), s), 0.1
    ),
    "of a changing carry": lambda x, c: hnp.sum(
        harp.fori_loop(1, x.shape[0], lambda i, s: s.at[i, 0].set(hnp.sin(s[i - 1, 0] * s[0, 0] + c[0, 1])), x)
    ),
}
ROWS = {  # which cost n in each step anyway
    "rows": lambda x, c: hnp.sum(steps(x[:, 0], lambda s, e: hnp.sin(s * c[0] + e * c[1]), c[2])),
    "of a carry of rows": lambda x, c: hnp.sum(
        harp.fori_loop(1, x.shape[0], lambda i, s: s.at[i].set(hnp.sin(s[i - 1] * s[0] + c[1])), x)
    ),
    "data says the column": lambda x, c: hnp.sum(
        counted(x, lambda i, s: hnp.sin(s + x[:, hnp.where(s[0] > 0.4, 0, 1)] * c[i, 0]), x[0])
    ),
}
CASES = [
    *((f, 1) for f in VECTORS.items()),
    *((f, 2) for f in (MATRICES | ROWS).items()),
]


def arguments(rank, n):
    return [RNG.uniform(0.2, 0.9, size=(n,) * rank) for _ in range(2)]


def differences(function, arrays, step=1e-6):
    arrays = [np.asarray(array) for array in arrays]
    found = []
    for k, array in enumerate(arrays):
        slope = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[k][at] += sign * step
                ends.append(float(function(*moved)))
            slope[at] = (ends[0] - ends[1]) / (2 * step)
        found.append(slope)
    return found


@pytest.mark.parametrize(("case", "rank"), CASES, ids=[f[0] for f, _ in CASES])
def test_gradients(case, rank):
    compiled, value = harp.jit(harp.grad(case[1], (0, 1))), harp.jit(case[1])
    for n in (6, 5, 9):
        arrays = arguments(rank, n)
        for found, expected in zip(compiled(*arrays), differences(value, arrays), strict=True):
            npt.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-8)
    assert compiled.compilations == 1


@pytest.mark.parametrize(("case", "rank"), CASES, ids=[f[0] for f, _ in CASES])
def test_no_step_costs_the_whole_array(case, rank):
    cost = harp.jit(harp.grad(case[1], (0, 1))).lower(*arguments(rank, 50)).cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (200, 400))
    logarithm = 1.2 if case[0] == "few checkpoints" else 1
    assert large.steps < 1.3 * logarithm * 2**rank * small.steps
    assert large.bytes_written < 1.3 * logarithm * 2**rank * small.bytes_written


@pytest.mark.parametrize("name", ["first", "the first few", "reversed", "in a branch", "few of a changing carry"])
def test_second_derivatives_and_batches(name):
    x, c = map(hnp.asarray, arguments(1, 5))
    direction = RNG.normal(size=5)
    gradient = harp.grad(VECTORS[name], 1)
    slope = lambda x, c: hnp.sum(gradient(x, c) * direction)
    found = harp.jit(harp.grad(slope, (0, 1)))(x, c)
    for one, expected in zip(found, differences(harp.jit(slope), [x, c], 1e-5), strict=True):
        npt.assert_allclose(np.asarray(one), expected, rtol=1e-4, atol=1e-6)
    forward = harp.jit(lambda x, c: harp.jvp(lambda c: gradient(x, c), (c,), (direction,))[1])(x, c)
    npt.assert_allclose(np.asarray(forward), differences(harp.jit(slope), [x, c], 1e-5)[1], rtol=1e-4, atol=1e-6)
    batch = RNG.uniform(0.2, 0.9, size=(3, 5))
    several = harp.jit(harp.vmap(gradient, (None, 0)))(x, batch)
    for one, given in zip(np.asarray(several), batch, strict=True):
        npt.assert_allclose(one, np.asarray(gradient(x, given)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 3])
def test_small_sizes(count, size):
    """Slices are cut off at the end of the array."""

    def function(x, c):
        return hnp.sum(steps(x, lambda s, e: hnp.sin(s * c[0] + e * hnp.sum(c[:2] * c[-2:])), 0.4))

    arrays = [RNG.uniform(0.2, 0.9, count), RNG.uniform(0.2, 0.9, size)]
    found = harp.jit(harp.grad(function, (0, 1)))(*arrays)
    for one, expected in zip(found, differences(function, arrays), strict=True):
        npt.assert_allclose(np.asarray(one), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("k", [-9, -2, -1, 0, 3, 4, 50])
def test_indices_outside_of_a_view(k):
    """Data that is outside of a part, or counts from its end, means a place of the part."""

    def function(x):
        return harp.fori_loop(0, 2, lambda i, s: hnp.sin(s + hnp.take(x[2:6], KS[0] + k, mode="clip")), 0.1)

    x = RNG.uniform(0.2, 0.9, 8)
    found = harp.jit(harp.grad(function))(x)
    npt.assert_allclose(np.asarray(found), differences(function, [x])[0], rtol=1e-6, atol=1e-8)


KS = hnp.zeros(1, dtype=int)
