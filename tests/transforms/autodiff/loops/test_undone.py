"""Gradients of loops in loops that change an array part by part: they cost what the loops do, and no copy of the array
for each step."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp


def _loop(lower, upper, body, carry):
    for i in range(lower, upper):
        carry = body(i, carry)
    return carry


def _put(array, at, value, how="set"):
    array = array.copy()
    array[at] = {"set": value, "add": array[at] + value, "multiply": array[at] * value}[how]
    return array


NUMPY = SimpleNamespace(np=np, loop=_loop, put=_put)
HARP = SimpleNamespace(
    np=hnp,
    loop=harp.fori_loop,
    put=lambda array, at, value, how="set": getattr(array.at[at], how)(value),
)


def table(o, a):
    """A dynamic programme."""
    n = a.shape[0]

    def row(i, c):
        return o.loop(1, n, lambda j, c: o.put(c, (i, j), o.np.tanh(c[i - 1, j] + c[i, j - 1] * a[i, j])), c)

    return o.loop(1, n, row, a)


def triangle(o, a):
    def row(i, c):
        return o.loop(0, i, lambda j, c: o.put(c, (i, j), o.np.tanh(c[i - 1, j]) + c[i, j] * a[i, j]), c)

    return o.loop(1, a.shape[0], row, a)


def cholesky(o, a):
    n = a.shape[0]

    def column(j, c):
        d = o.np.sqrt(a[j, j] - o.loop(0, j, lambda k, s: s + c[j, k] * c[j, k], 0.0))
        c = o.put(c, (j, j), d)

        def row(i, c):
            return o.put(c, (i, j), (a[i, j] - o.loop(0, j, lambda k, s: s + c[i, k] * c[j, k], 0.0)) / d)

        return o.loop(j + 1, n, row, c)

    return o.loop(0, n, column, o.np.zeros_like(a))


def gram_schmidt(o, a):
    def column(j, q):
        def without(k, q):
            return o.put(q, (slice(None), j), -o.np.sum(q[:, k] * q[:, j]) * q[:, k], "add")

        q = o.loop(0, j, without, q)
        return o.put(q, (slice(None), j), 1 / o.np.sqrt(o.np.sum(q[:, j] ** 2)), "multiply")

    return o.loop(0, a.shape[0], column, a)


def lu(o, a):
    n = a.shape[0]

    def column(k, c):
        def row(i, c):
            factor = c[i, k] / c[k, k]
            c = o.put(c, (i, k), factor)
            return o.loop(k + 1, n, lambda j, c: o.put(c, (i, j), -factor * c[k, j], "add"), c)

        return o.loop(k + 1, n, row, c)

    return o.loop(0, n, column, a)


def by_data(o, a):
    """Places that an array says, some of them several times."""
    places = o.np.argsort(o.np.cos(a[0] * 0 + 2.0 * o.np.arange(a.shape[0])))

    def step(i, c):
        return o.put(c, (places[i] // 2, i), o.np.sin(c[places[i], 0]) * c[i, i], "add")

    return o.loop(0, a.shape[0], step, a)


def sort(o, a):
    def swapped(j, c):
        p, q = c[j], c[j + 1]
        return o.put(o.put(c, j, o.np.minimum(p, q)), j + 1, o.np.maximum(p, q))

    n = a.shape[0]
    return o.loop(0, n, lambda i, c: o.loop(0, n - 1 - i, swapped, c), a[0] + a[-1] ** 2)


PROGRAMS = (table, triangle, cholesky, gram_schmidt, lu, by_data, sort)


def matrix(n, seed=0):
    a = np.random.default_rng(seed).random((n, n)) * 0.5
    return a @ a.T + 2 * np.eye(n)


def loss_of(program, o):
    return lambda a: o.np.sum(program(o, a) ** 2)


def check(program, gradient, n):
    a = matrix(n)
    way = np.random.default_rng(1).normal(size=a.shape)
    loss = loss_of(program, NUMPY)
    expected = (loss(a + 1e-6 * way) - loss(a - 1e-6 * way)) / 2e-6
    npt.assert_allclose(np.sum(np.asarray(gradient(a)) * way), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program):
    gradient = harp.jit(harp.grad(loss_of(program, HARP)))
    for n in (1, 2, 3, 5, 9):
        check(program, gradient, n)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_of_gradients(program):
    gradient, loss, step = harp.grad(loss_of(program, HARP)), loss_of(program, NUMPY), 1e-4
    forward = harp.jit(lambda a, way: harp.jvp(gradient, (a,), (way,))[1])
    backward = harp.jit(harp.grad(lambda a, way: hnp.sum(gradient(a) * way)))
    for n in (1, 4):
        a = matrix(n)
        one, other = np.random.default_rng(2).normal(size=(2, n, n)) * step
        differences = loss(a + one + other) - loss(a + one - other) - loss(a - one + other) + loss(a - one - other)
        expected = differences / (4 * step * step)
        for product in (forward, backward):
            found = np.sum(np.asarray(product(a, one / step)) * other / step)
            npt.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_in_a_batch(program):
    each = harp.jit(harp.vmap(harp.grad(loss_of(program, HARP))))
    for n in (1, 4):
        check(program, lambda a: each(np.stack([a + 1, a, 1.1 * a]))[1], n)


# The gradients of two have a degree more than the loops, for each step of the inner loop copies the matrix or the row.
@pytest.mark.parametrize(
    "program, power", [(table, 2), (triangle, 2), (cholesky, 3), (gram_schmidt, 4), (lu, 3), (sort, 3)]
)
def test_the_gradient_costs_what_the_loops_do(program, power):
    lowered = harp.jit(harp.grad(loss_of(program, HARP))).lower(matrix(5))
    cost = lowered.cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (200, 400))
    for name in ("operations", "bytes_read", "bytes_written"):
        assert getattr(large, name) < 1.2 * 2**power * getattr(small, name), name


@pytest.mark.slow
def test_indices_outside_change_nothing_and_nothing_is_put_back_there():
    """Places before the first one, and behind the last one."""

    def program(a, mode):
        n = a.shape[0]

        def row(i, c):
            def step(j, c):
                return c.at[i + 1, j - 2].set(hnp.sin(c[i, j]) * a[j, i], mode=mode)

            return harp.fori_loop(0, n, step, c)

        return hnp.sum(harp.fori_loop(0, n, row, a) ** 2)

    def expected(a, mode):
        c, n = a.copy(), a.shape[0]
        for i in range(n):
            for j in range(n):
                k, m = i + 1, j - 2
                m = m + n if m < 0 else m
                if mode == "clip":
                    k, m = min(k, n - 1), max(m, 0)
                if k < n and 0 <= m < n:
                    c[k, m] = np.sin(c[i, j]) * a[j, i]
        return np.sum(c**2)

    for mode in ("drop", "clip"):
        value, gradient = harp.jit(program, static_argnums=1), harp.jit(harp.grad(program), static_argnums=1)
        for n in (1, 2, 3, 6):
            a, way = matrix(n), np.random.default_rng(n).normal(size=(n, n))
            npt.assert_allclose(value(a, mode), expected(a, mode), rtol=1e-12)
            slope = (expected(a + 1e-6 * way, mode) - expected(a - 1e-6 * way, mode)) / 2e-6
            npt.assert_allclose(np.sum(np.asarray(gradient(a, mode)) * way), slope, rtol=1e-5, atol=1e-6)


PLACES = {
    "element": lambda i, j: (i, j),
    "turned": lambda i, j: (j, i),
    "row": lambda i, j: (i,),
    "column": lambda i, j: (slice(None), j),
    "other column": lambda i, j: (slice(None), i),
    "diagonal": lambda i, j: (j, j),
}
ENDS = {
    "all": lambda i, n: (0, n),
    "below": lambda i, n: (0, i),
    "above": lambda i, n: (i, n),
    "few": lambda i, n: (0, 2),
}
VALUES = {
    "sine": lambda o, c, a, i, j: o.np.sin(c[j, i] + a[i, j]),
    "product": lambda o, c, a, i, j: 0.3 * c[i, 0] * c[0, j],
    "row": lambda o, c, a, i, j: o.np.sum(o.np.cos(c[i])) / 9,
    "linear": lambda o, c, a, i, j: 0.5 * a[j, i],
    "what is there": lambda o, c, a, i, j: 0.5 * c[i, j] ** 2,
}
UPDATES = st.tuples(st.sampled_from([*PLACES]), st.sampled_from([*VALUES]), st.sampled_from(["set", "add", "multiply"]))


@pytest.mark.slow
@settings(max_examples=12)
@given(st.sampled_from([*ENDS]), st.lists(UPDATES, min_size=1, max_size=3), st.lists(UPDATES, max_size=1))
def test_random_loops(ends, inner, outer):
    def program(o, a):
        n = a.shape[0]

        def changed(c, updates, i, j):
            for place, value, how in updates:
                c = o.put(c, PLACES[place](i, j), VALUES[value](o, c, a, i, j), how)
            return c

        def row(i, c):
            c = changed(c, outer, i, 0)
            return o.loop(*ENDS[ends](i, n), lambda j, c: changed(c, inner, i, j), c)

        return o.np.tanh(o.loop(0, n, row, a))

    gradient = harp.jit(harp.grad(loss_of(program, HARP)))
    for n in (2, 3, 5):
        check(program, gradient, n)
