"""`odeint`, against closed forms: states and derivatives, dtypes, trees, batches, and times that are not reached."""

import numpy as np
import pytest
from harp.jax.experimental.ode import odeint

import harp
from harp import numpy as hnp
from harp.errors import ArgumentError, DTypeError, ShapeError, TreeError

TIMES = np.array([0.0, 0.3, 0.35, 2.0])


def decay(y, t, a):
    return -a * y


def test_one_program_for_all_times():
    @harp.jit
    def solution(y, t, a):
        return odeint(decay, y, t, a)

    for count in (0, 1, 2, 40):
        t = np.linspace(1.0, 3.0, count)
        y = np.array([2.0, -1.0])
        expected = np.exp(-0.7 * (t - 1.0))[:, None] * y
        np.testing.assert_allclose(solution(y, t, 0.7), expected, rtol=1e-6)
        np.testing.assert_allclose(odeint(decay, y, t, 0.7), expected, rtol=1e-6)
    assert solution(np.zeros(0), TIMES, 0.7).shape == (4, 0)
    assert solution.compilations == 1

    @harp.jit
    def slopes(y, t, a):
        return harp.grad(lambda *args: odeint(decay, *args).sum(), (0, 1, 2))(y, t, a)

    assert slopes(np.ones(2), np.zeros(0), 0.7)[2] == 0.0
    np.testing.assert_array_equal(slopes(np.ones(3), np.zeros(1), 0.7)[0], np.ones(3))
    np.testing.assert_allclose(slopes(np.ones(1), TIMES, 0.7)[0], [np.exp(-0.7 * TIMES).sum()], rtol=1e-6)
    assert slopes.compilations == 1


def test_derivatives():
    """Of y = y0 exp(-a (t - t0)) + (t - t0), whose equation also has the time in it."""

    def total(y, t, a):
        return (odeint(lambda y, t, a: 1 - a * (y - t), y, t, a)[:, 0] * np.arange(1.0, 5.0)).sum()

    def exact(y, t, a):
        # y - t = u with du/dt = -a u
        return (((y[0] - t[0]) * hnp.exp(-a * (t - t[0])) + t) * np.arange(1.0, 5.0)).sum()

    args = (np.array([1.5]), TIMES + 0.2, 0.8)
    for transform in (lambda f: f, harp.jit):
        found = transform(harp.grad(total, (0, 1, 2)))(*args)
        for one, expected in zip(found, harp.grad(exact, (0, 1, 2))(*args), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-6, atol=1e-6)
    twice = harp.jit(harp.grad(harp.grad(total, 2), 2))(*args)
    np.testing.assert_allclose(twice, harp.grad(harp.grad(exact, 2), 2)(*args), rtol=1e-5)


def test_arrays_that_are_closed_over_have_derivatives():
    def last(a):
        return odeint(lambda y, t: -a * y, 2.0, TIMES)[-1]

    np.testing.assert_allclose(harp.grad(last)(0.5), -2.0 * 2.0 * np.exp(-1.0), rtol=1e-6)


def test_trees_of_complex_numbers_and_integers():
    def rate(y, t, k, label):
        return {"level": hnp.full((2,), 1.0 * label), "wave": 1j * k * y["wave"]}

    y = {"wave": 2.0 + 0.0j, "level": np.array([1, 2])}
    found = odeint(rate, y, TIMES, 3.0, 4)
    np.testing.assert_allclose(found["wave"], 2.0 * np.exp(3.0j * TIMES), rtol=1e-6)
    np.testing.assert_allclose(found["level"], np.array([1, 2]) + 4.0 * TIMES[:, None], rtol=1e-6)
    slope = harp.grad(lambda k: hnp.real(odeint(rate, y, TIMES, k, 4)["wave"])[-1])(3.0)
    np.testing.assert_allclose(slope, -2.0 * 2.0 * np.sin(6.0), rtol=1e-5)


def test_float32_stays():
    y = np.array([2.0], np.float32)
    found = odeint(decay, y, TIMES, 0.5, rtol=1e-5, atol=1e-5)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 0], 2.0 * np.exp(-0.5 * TIMES), rtol=1e-4)


@pytest.mark.parametrize("jit", [lambda f: f, harp.jit], ids=["outside", "jit"])
def test_what_is_not_reached_is_nan(jit):
    """A pole at t = 1, too few steps, and times that go back."""
    found = np.asarray(jit(lambda y, t: odeint(lambda y, t: y * y, y, t))(1.0, np.array([0.0, 0.5, 2.0])))
    np.testing.assert_allclose(found[:2], [1.0, 2.0], rtol=1e-6)
    assert np.isnan(found[2])
    found = np.asarray(jit(lambda t: odeint(lambda y, t: hnp.cos(t), 0.0, t, mxstep=3))(np.array([0.0, 1e-4, 90.0])))
    np.testing.assert_allclose(found[1], np.sin(1e-4), rtol=1e-5)
    assert np.isnan(found[2])
    assert np.isnan(np.asarray(jit(lambda t: odeint(lambda y, t: -y, 1.0, t))(np.array([1.0, 5.0, 0.5]))[2]))
    for rate in (lambda y, t: -y, lambda y, t: 0 * y):
        for end in (np.nan, np.inf):
            assert np.isnan(np.asarray(jit(lambda t, rate=rate: odeint(rate, 1.0, t))(np.array([0.0, end]))[1]))


def test_steps_are_no_longer_than_hmax():
    """The rate is 0 but for a short while, which long steps do not see."""

    def rate(y, t):
        return hnp.where((t > 5.0) & (t < 5.2), 5.0, 0.0) + 0.0 * y

    found = odeint(rate, 0.0, np.array([0.0, 10.0]), rtol=1e-3, atol=1e-3, hmax=0.05)
    np.testing.assert_allclose(found[1], 1.0, rtol=2e-2)


def test_batches():
    rates = np.array([0.1, 1.0, 30.0])
    found = harp.jit(harp.vmap(lambda a: odeint(decay, 1.0, TIMES, a)))(rates)
    np.testing.assert_allclose(found, np.exp(-rates[:, None] * TIMES), rtol=1e-6, atol=1e-7)
    slopes = harp.vmap(harp.grad(lambda a: odeint(decay, 1.0, TIMES, a)[-1]))(rates)
    np.testing.assert_allclose(slopes, -2.0 * np.exp(-2.0 * rates), rtol=1e-5, atol=1e-7)


def test_a_real_rate_of_a_complex_state():
    found = odeint(lambda y, t: hnp.real(y) * 0 + 1.0, np.array([1 + 1j, 2.0]), TIMES)
    np.testing.assert_allclose(found, np.array([1 + 1j, 2.0]) + TIMES[:, None], rtol=1e-6)


WRONG = {
    "times": (lambda y, t: y, 1.0, 2.0, (), ShapeError, "times of odeint are a vector"),
    "shape": (lambda y, t: -t, np.ones(2), TIMES, (), ShapeError, r"returns shape \(\) where y0 has shape \(2,\)"),
    "complex": (lambda y, t: 1j * y, 1.0, TIMES, (), DTypeError, "make y0 complex"),
    "tree": (lambda y, t: (y["a"],), {"a": 1.0}, TIMES, (), TreeError, "another tree than y0"),
    "nothing": (lambda y, t: None, 1.0, TIMES, (), TreeError, "another tree than y0"),
    "text": (lambda y, t, how: y, 1.0, TIMES, ("abc",), ArgumentError, "a str is not an array"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_errors(name):
    func, y, t, args, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        odeint(func, y, t, *args)
