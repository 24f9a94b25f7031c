"""Factors of products in loops are transposed once, before the loops."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

SIZES = (0, 1, 2, 3, 33)


def cell(np, loop, w, xs):
    """Weights have a row for each result, as in many libraries."""
    return loop(lambda h, x: np.tanh(h @ w.T + x), xs[0] * 0, xs)


def both_ways(np, loop, w, xs):
    return loop(lambda h, x: np.tanh(h @ w.T + x @ w) @ w.T, xs[0] * 0, xs)


def of_a_batch(np, loop, w, xs):
    """Each example has weights of its own."""
    many = np.stack([w, 2 * w])
    return loop(lambda h, x: np.tanh(np.einsum("bik,bjk->bij", h, many) + x), np.stack([xs[0], xs[0] + 1]), xs)


def in_another(np, loop, w, xs):
    inner = lambda h, x: loop(lambda g, y: np.tanh(g @ w.T + y * x), h, xs)
    return loop(inner, xs[0] * 0, xs)


def of_what_changes(np, loop, w, xs):
    """Only what stays the same may go before the loop."""

    def step(state, x):
        h, v = state
        return np.tanh(h @ v.T + x), v + 0.1 * (h.T @ x)

    return loop(step, (xs[0], w), xs)[0]


def of_a_number(np, loop, w, xs):
    """A factor without axes is no matrix."""
    step = lambda state, x: (state[0] * 0.5 + np.sum(xs * state[1], axis=0), state[1] * 0.5)
    return loop(step, (xs[0], np.sum(w)), xs)[0]


PROGRAMS = (cell, both_ways, of_a_batch, in_another, of_what_changes, of_a_number)


def by_harp(step, carry, xs):
    return harp.scan(lambda carry, x: (step(carry, x), None), carry, xs)[0]


def by_python(step, carry, xs):
    for x in xs:
        carry = step(carry, x)
    return carry


def arguments(n, dtype="f8", batch=2, steps=3):
    rng = np.random.default_rng(n)
    return (rng.normal(size=(n, n)) / (n + 1)).astype(dtype), rng.normal(size=(steps, batch, n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_numpy(program, dtype):
    compiled = harp.jit(lambda w, xs: program(hnp, by_harp, w, xs))
    for n in SIZES:
        for batch in (0, 1, 5):
            w, xs = arguments(n, dtype, batch)
            expected = program(np, by_python, w, xs)
            tolerance = 1e-5 if dtype == "f4" else 1e-12
            npt.assert_allclose(compiled(w, xs), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program):
    loss = lambda np, loop: lambda w, xs: np.sum(program(np, loop, w, xs) ** 2)
    gradient, exact = harp.jit(harp.grad(loss(hnp, by_harp))), loss(np, by_python)
    for n in (1, 2, 9):
        w, xs = arguments(n)
        way = np.random.default_rng(1).normal(size=w.shape) * 1e-5
        expected = (exact(w + way, xs) - exact(w - way, xs)) / 2
        npt.assert_allclose(np.sum(gradient(w, xs) * way), expected, rtol=1e-6, atol=1e-12)


def transposed(compiled, *arguments):
    """How many arrays are made contiguous before all loops, and how many in steps."""
    lines = [line for line in str(compiled.lower(*arguments).graph).splitlines() if " contiguous " in line]
    in_steps = [line for line in lines if line.startswith(" ")]
    return len(lines) - len(in_steps), len(in_steps)


def test_factors_are_transposed_before_all_loops():
    w, xs = arguments(5)
    for function, copies in ((cell, 1), (both_ways, 1), (in_another, 1), (of_a_batch, 1), (of_what_changes, 0)):
        program = lambda w, xs, function=function: function(hnp, by_harp, w, xs)
        assert transposed(harp.jit(program), w, xs) == (copies, 0), function
    checkpointed = lambda w, x: hnp.sum(harp.checkpoint(lambda w, x: hnp.tanh(x @ w))(w, hnp.sin(x)))
    assert transposed(harp.jit(harp.grad(checkpointed, argnums=1)), w, xs[0]) == (0, 0), "a loop of one step"
    usual = lambda w, xs: hnp.sum(by_harp(lambda h, x: hnp.tanh(h @ w + x), xs[0] * 0, xs))
    assert transposed(harp.jit(usual), w, xs) == (0, 0)
    assert transposed(harp.jit(harp.grad(usual)), w, xs) == (1, 0)
    assert transposed(harp.jit(lambda w, xs: xs @ w.T), w, xs) == (0, 0), "no loop"


def test_other_products_read_the_factor_as_it_lies():
    """A step that is a gradient multiplies by both."""

    def descent(w, h):
        slope = harp.grad(lambda h: hnp.sum(hnp.tanh(h @ w)))
        return harp.fori_loop(0, 4, lambda _, h: h - 0.1 * slope(h), h)

    compiled = harp.jit(descent)
    w, xs = arguments(5)
    assert transposed(compiled, w, xs[0]) == (1, 0)
    _, step = str(compiled.lower(w, xs[0]).graph).split("iterate")
    read = {line.split("view ")[1].strip() for line in step.splitlines() if " view " in line}
    given = {text.split("[")[0] for text in read if text.endswith(("[i2, i1]", "[i1, i2]"))}
    assert len(given) == 2, read
    h = xs[0]
    for _ in range(4):
        h = h - 0.1 * (1 - np.tanh(h @ w) ** 2) @ w.T
    npt.assert_allclose(compiled(w, xs[0]), h, rtol=1e-10)


def test_vectors_are_multiplied_row_by_row():
    """A matrix times a vector goes along the rows of the matrix: nothing is gained by a copy."""
    compiled = harp.jit(lambda w, x: harp.fori_loop(0, 4, lambda _, x: hnp.tanh(w @ x), x))
    assert compiled.lower(np.eye(40), np.ones(40)).memory().scratch <= 2 * 40 * 8 + 4096
    w, x = np.random.default_rng(0).normal(size=(40, 40)) / 40, np.ones(40)
    expected = x
    for _ in range(4):
        expected = np.tanh(w @ expected)
    npt.assert_allclose(compiled(w, x), expected, rtol=1e-10)


def test_loops_that_data_ends_and_loops_of_no_step():
    def program(w, h):
        return harp.while_loop(lambda h: hnp.max(h) > 1.0, lambda h: h @ w.T, h)

    compiled = harp.jit(program)
    for n, start in ((3, 9.0), (40, 5.0), (3, 0.5)):
        w = np.random.default_rng(n).uniform(size=(n, n)) / (2 * n)
        h = np.full((2, n), start)
        expected = h
        while expected.max() > 1:
            expected = expected @ w.T
        npt.assert_allclose(compiled(w, h), expected, rtol=1e-10)
