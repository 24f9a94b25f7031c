"""Kernels that go by blocks: what passes between them is in no array, and no bit changes."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp


def quotients(xp, x, y):
    """A long formula of values that are used several times."""
    values = [xp.maximum(x * (0.1 * k), y - 0.2 * k) / (1.5 + xp.abs(x - 0.1 * k * y)) for k in range(20)]
    out = values[0]
    for k in range(1, 20):
        out = xp.where(values[k] > out, out + 0.1 * values[k], out - values[19 - k] * values[k])
    return out


def gradient():
    return harp.jit(harp.grad(lambda x, y: hnp.sum(quotients(hnp, x, y))))


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4)])
def test_nothing_between_goes_through_memory(shape):
    x = np.ones(shape)
    program = gradient().lower(x, x)._program
    assert len(program.kernels) == 1 and not program.scratch


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0,), (1,), (127,), (128,), (129,), (1000,), (0, 5), (7, 1), (1, 300), (40, 33)])
def test_the_gradient_is_that_of_differences(shape):
    x, y = np.random.default_rng(0).normal(size=(2, *shape))
    slope, step = np.asarray(gradient()(x, y)), 1e-6
    expected = (quotients(np, x + step, y) - quotients(np, x - step, y)) / (2 * step)
    near = np.abs(slope - expected) <= 1e-5 * (1 + np.abs(expected))
    assert near.mean() > 0.98 if near.size else True  # a choice may change in between


@pytest.mark.slow
def test_elements_do_not_depend_on_the_shape():
    x, y = np.random.default_rng(1).normal(size=(2, 37, 53))
    whole = np.asarray(gradient()(x, y))
    flat = np.asarray(gradient()(x.reshape(-1), y.reshape(-1)))
    np.testing.assert_array_equal(whole.reshape(-1), flat)
    np.testing.assert_array_equal(np.asarray(gradient()(x[5], y[5])), whole[5])


@pytest.mark.slow
def test_what_others_read_stays_in_memory():
    """The mean of an early value needs all of it before the end of the formula is computed."""
    x, y = np.random.default_rng(2).normal(size=(2, 500))

    def centred(xp, x, y):
        far = quotients(xp, x, y)
        return quotients(xp, far - xp.mean(far), y), far[::-1] * 2

    for got, expected in zip(harp.jit(lambda x, y: centred(hnp, x, y))(x, y), centred(np, x, y), strict=True):
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_inputs_are_donated_all_the_same():
    f = harp.jit(harp.grad(lambda x, y: hnp.sum(quotients(hnp, x, y))), donate_argnums=0)
    x, y = np.random.default_rng(3).normal(size=(2, 500))
    expected = np.asarray(gradient()(x, y))
    np.testing.assert_array_equal(np.asarray(f(hnp.asarray(x), y)), expected)


def test_what_is_sorted_or_changed_in_place_stays_in_memory():
    x, y = np.random.default_rng(4).normal(size=(2, 500))

    def function(xp, x, y):
        far = quotients(xp, x, y)
        near = quotients(xp, far, x)
        return xp.sort(far) + near

    np.testing.assert_allclose(np.asarray(harp.jit(lambda x, y: function(hnp, x, y))(x, y)), function(np, x, y))
    wanted = quotients(np, quotients(np, x, y), y)
    wanted[[3, 7]] = 5
    changed = harp.jit(lambda x, y, i: quotients(hnp, quotients(hnp, x, y), y).at[i].set(5.0))
    np.testing.assert_allclose(np.asarray(changed(x, y, np.array([3, 7]))), wanted)


@pytest.mark.slow
def test_arrays_of_a_long_formula_take_turns_in_tiles():
    """Hundreds of arrays, of which few are needed at a time: as many variables inside each other would be too many."""

    def ring(x, y):
        v = [x + 0.02 * k * y for k in range(12)]
        for t in range(1000):
            i, j = t * 7 % 12, (t * 11 + 3) % 12
            v[(t * 5 + 1) % 12] = 0.5 * v[i] * v[j] + 0.5 if t % 3 else v[i] - 0.3 * v[j]
        return sum(v[1:], v[0])

    x, y = np.random.default_rng(5).uniform(0, 0.3, size=(2, 300))
    np.testing.assert_allclose(np.asarray(harp.jit(ring)(x, y)), ring(x, y), rtol=1e-9)
