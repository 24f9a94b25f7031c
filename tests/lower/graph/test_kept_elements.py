"""Gradients of loops that change an array keep the elements that they read, and not the array, of each step."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)

# name: (step of number i on c, and how many axes c has, and how many what is kept has)
STEPS = {
    "of the one before": (lambda i, c: c.at[i].set(hnp.sin(c[i - 1]) * c[i]), 1, 1),
    "of a sum": (lambda i, c: c.at[i].set(hnp.sin(c[i] + c[i - 1] * c[i - 1])), 1, 1),
    "of the first and the last": (lambda i, c: c.at[i].set(hnp.tanh(c[:1][0] * c[-1:][0] + c[i])), 1, 1),
    "row by row": (lambda i, c: c.at[i].set(hnp.cos(c[i - 1]) * c[i]), 2, 2),
    "an element of a matrix": (lambda i, c: c.at[i, i].set(c[i - 1, i] * c[i, i - 1] * c[i, i]), 2, 1),
    "all of it": (lambda i, c: c.at[i].set(hnp.sin(hnp.sum(c * c))), 1, 2),
    "an element that data says": (lambda i, c: c.at[i].set(c[hnp.where(c[i] > 0, i - 1, 0)] * c[i]), 1, 2),
}


def run(name, c):
    return harp.fori_loop(1, c.shape[0], STEPS[name][0], c)


def loss(name):
    return lambda c: hnp.sum(hnp.sin(run(name, c)))


def differences(function, c, step=1e-6):
    found = np.zeros_like(c)
    for at in np.ndindex(c.shape):
        moved = np.zeros_like(c)
        moved[at] = step
        found[at] = (float(function(c + moved)) - float(function(c - moved))) / (2 * step)
    return found


@pytest.mark.parametrize("name", STEPS)
def test_gradients(name):
    compiled = harp.jit(harp.grad(loss(name)))
    for n in (4, 1, 2, 5):
        c = RNG.uniform(0.2, 1, size=(n,) * STEPS[name][1])
        npt.assert_allclose(np.asarray(compiled(c)), differences(loss(name), c), rtol=1e-6, atol=1e-8)
    assert compiled.compilations == 1


@pytest.mark.parametrize("name", STEPS)
def test_what_is_kept(name):
    _, rank, kept = STEPS[name]
    lowered = harp.jit(harp.grad(loss(name))).lower(np.ones((50,) * rank))
    assert lowered.memory().scratch < 8 * (4 * 50**rank + 8 * 50**kept) + 4096
    cost = lowered.cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (100, 200))
    power = max(rank, kept, 2 if name.startswith("of the first") else 0)
    assert large.bytes_written < 1.5 * 2**power * small.bytes_written


@pytest.mark.parametrize("name", STEPS)
def test_second_derivatives_and_batches(name):
    c = RNG.uniform(0.2, 1, size=(3,) * STEPS[name][1])
    direction = RNG.normal(size=c.shape)
    gradient = harp.grad(loss(name))
    of_gradient = lambda c: hnp.sum(gradient(c) * direction)
    found = harp.jit(harp.grad(of_gradient))(c)
    npt.assert_allclose(np.asarray(found), differences(of_gradient, c, 1e-5), rtol=1e-4, atol=1e-6)
    batch = RNG.uniform(0.2, 1, size=(3, *c.shape))
    several = harp.jit(harp.vmap(gradient))(batch)
    for one, given in zip(np.asarray(several), batch, strict=True):
        npt.assert_allclose(one, np.asarray(gradient(given)), rtol=1e-12, atol=1e-14)


def test_what_somebody_else_reads_is_kept_whole():
    """The states are a result as well."""

    def both(c):
        def step(c, i):
            new = c.at[i].set(hnp.sin(c[i - 1]) * c[i])
            return new, c

        last, states = harp.scan(step, c, hnp.arange(c.shape[0]))
        return hnp.sum(last * last) + hnp.sum(hnp.cos(states) ** 2)

    c = RNG.uniform(0.2, 1, size=4)
    npt.assert_allclose(np.asarray(harp.jit(harp.grad(both))(c)), differences(both, c), rtol=1e-6)
