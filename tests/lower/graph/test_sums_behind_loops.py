"""Outer products that a loop adds up are a product of matrices behind it."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(41)


def steps(xp, f, carry, *arrays):
    """The last carry of a loop over elements of arrays."""
    if xp is hnp:
        return harp.scan(lambda c, x: (f(c, *x), None), carry, arrays)[0]
    for elements in zip(*arrays, strict=True):
        carry = f(carry, *elements)
    return carry


def of_two_elements(xp, c, x, y):
    return steps(xp, lambda c, a, b: c + xp.outer(a, b), c, x, y)


def of_batches(xp, c, x, y):
    return steps(xp, lambda c, a, b: c + a[:, None] * b, c, x, y)


def transposed(xp, c, x, y):
    return steps(xp, lambda c, a, b: c + xp.outer(b, a).T, c, x, y)


def two_terms(xp, c, x, y):
    return steps(xp, lambda c, a, b: c + (xp.outer(a, b) + xp.outer(a * 2, xp.sin(b))), c, x, y)


def with_a_state(xp, c, x, y):
    """One factor is computed by the steps, of what they carry."""

    def step(state, a, b):
        total, h = state
        h = xp.tanh(h * 0.5 + b)
        return total + xp.outer(a, h), h

    return steps(xp, step, (c, y[0] if len(y) else np.zeros(y.shape[1:])), x, y)[0]


def of_the_state_before(xp, c, x, y):
    def step(state, a, b):
        total, h = state
        return total + xp.outer(a, h), xp.sin(h + b)

    return steps(xp, step, (c, y[0] if len(y) else np.zeros(y.shape[1:])), x, y)[0]


def read_in_the_step(xp, c, x, y):
    """What was added up is read: it stays in the loop."""
    return steps(xp, lambda c, a, b: c + xp.outer(a, b) * (1 + xp.sum(c) * 0.001), c, x, y)


def no_outer_product(xp, c, x, y):
    return steps(xp, lambda c, a, b: c + xp.outer(a, b) * c.shape[0] + xp.ones(c.shape) * a[:, None], c, x, y)


MOVED = (of_two_elements, of_batches, transposed, two_terms, with_a_state, of_the_state_before)


@pytest.mark.parametrize("f", [*MOVED, read_in_the_step, no_outer_product])
def test_the_sums_are_right(f):
    compiled = harp.jit(lambda *a: f(hnp, *a))
    for count, n, m in ((0, 2, 3), (1, 1, 1), (1, 3, 2), (7, 4, 5), (40, 33, 70)):
        c, x, y = RNG.normal(size=(n, m)), RNG.normal(size=(count, n)), RNG.normal(size=(count, m))
        if count == 0 and f in (with_a_state, of_the_state_before):
            continue
        npt.assert_allclose(np.asarray(compiled(c, x, y)), f(np, c, x, y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("f", MOVED)
def test_the_loop_carries_them_no_more(f):
    lowered = harp.jit(lambda *a: f(hnp, *a)).lower(np.ones((4, 5)), np.ones((3, 4)), np.ones((3, 5)))
    carried = [line for line in str(lowered.graph).splitlines() if " iterate " in line]
    assert not any("carrying 2" in line for line in carried), lowered.graph
    if f is of_two_elements:
        assert not carried


def test_sums_so_far_are_results():
    """Each step gives what was added up before it, or with it."""
    x, c = RNG.normal(size=(6, 4)), RNG.normal(size=(4, 4))
    sums = c + np.cumsum([np.zeros((4, 4)), *(np.outer(a, a) for a in x)], axis=0)
    before = harp.jit(lambda c, x: harp.scan(lambda c, a: (c + hnp.outer(a, a), c), c, x))(c, x)
    after = harp.jit(lambda c, x: harp.scan(lambda c, a: (c + hnp.outer(a, a),) * 2, c, x))(c, x)
    for (last, each), expected in ((before, sums[:-1]), (after, sums[1:])):
        npt.assert_allclose(np.asarray(last), sums[-1], rtol=1e-9)
        npt.assert_allclose(np.asarray(each), expected, rtol=1e-9)


def test_integers_stay_exact():
    x, y = RNG.integers(-9, 9, (2, 50, 6))
    found = harp.jit(lambda c, x, y: of_two_elements(hnp, c, x, y))(np.zeros((6, 6), int), x, y)
    npt.assert_array_equal(np.asarray(found), x.T @ y)


@pytest.mark.parametrize("batch", [1, 5])
def test_the_gradient_of_a_cell(batch):
    """Against a derivative by hand."""
    w, xs = RNG.normal(size=(6, 6)) * 0.3, RNG.normal(size=(9, batch, 6))

    def loss(w, xs):
        h = harp.scan(lambda h, x: (hnp.tanh(h @ w + x), None), hnp.zeros(xs.shape[1:]), xs)[0]
        return hnp.sum(h**2)

    states = [np.zeros((batch, 6))]
    for x in xs:
        states.append(np.tanh(states[-1] @ w + x))
    back, slope, slopes = 2 * states[-1], np.zeros_like(w), []
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        back = back * (1 - after**2)
        slopes.append(back)
        slope += before.T @ back
        back = back @ w.T
    found = harp.jit(harp.grad(loss, (0, 1)))(w, xs)
    npt.assert_allclose(np.asarray(found[0]), slope, rtol=1e-9)
    npt.assert_allclose(np.asarray(found[1]), slopes[::-1], rtol=1e-9)
    second = harp.jit(lambda w: harp.jvp(harp.grad(loss), (w, xs), (w, xs))[1])
    step = 1e-5
    slow = [np.asarray(harp.grad(loss)(w * (1 + s), xs * (1 + s))) for s in (step, -step)]
    npt.assert_allclose(np.asarray(second(w)), (slow[0] - slow[1]) / (2 * step), rtol=1e-5, atol=1e-6)


def test_products_of_a_step_are_not_computed_again():
    def loss(w, xs):
        return hnp.sum(harp.scan(lambda h, x: (hnp.tanh(w @ h + x), None), xs[0], xs)[0])

    text = str(harp.jit(harp.grad(loss)).lower(np.ones((4, 4)), np.ones((3, 4))).graph)
    assert text.count("sum over") == 3  # forward, backward, and of the weights
