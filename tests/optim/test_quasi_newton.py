"""L-BFGS against the product with its matrix, the conditions of Wolfe, and minima that are known."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import optim
from harp.errors import DTypeError

RNG = np.random.default_rng(0)


def quartic(x):
    return x @ (np.arange(1.0, 5.0) * x) + (x**4).sum()


def quartic_gradient(x):
    return 2 * np.arange(1.0, 5.0) * x + 4 * x**3


def direction(points, slopes, memory):
    """The estimate of the inverse Hessian matrix, by its formula, times the last gradient."""
    g = slopes[-1]
    pairs = [(b - a, h - f) for a, b, f, h in zip(points, points[1:], slopes, slopes[1:], strict=False)][-memory:]
    if not pairs:
        return g / max(1, np.linalg.norm(g))
    s, y = pairs[-1]
    inverse = np.eye(len(g)) * (s @ y) / (y @ y)
    for s, y in pairs:
        left = np.eye(len(g)) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    return inverse @ g


@pytest.mark.parametrize("memory", [1, 3, 10])
def test_formula(memory):
    optimiser = optim.lbfgs(0.5, memory, linesearch=None)
    x = RNG.normal(size=4)
    points, slopes, params = [x], [quartic_gradient(x)], {"a": x[:1], "b": x[1:]}
    state = optimiser.init(params)
    for _ in range(6):
        x = x - 0.5 * direction(points, slopes, memory)
        g = slopes[-1]
        updates, state = optimiser.update({"a": g[:1], "b": g[1:]}, state, params)
        params = optim.apply_updates(params, updates)
        npt.assert_allclose(np.concatenate([params["a"], params["b"]]), x, rtol=1e-10)
        points.append(x)
        slopes.append(quartic_gradient(x))


def test_pairs_of_no_curvature_are_left_out():
    scaled = optim.scale_by_lbfgs()
    state = scaled.init(np.zeros(2))
    _, state = scaled.update(np.array([1.0, 0.0]), state, np.zeros(2))
    found, state = scaled.update(np.array([3.0, 0.0]), state, np.array([-1.0, 0.0]))  # dot(s, y) is -2
    npt.assert_array_equal(found, [3, 0])
    assert not np.asarray(state.weights_memory).any()


def rosenbrock(x):
    return hnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@harp.jit
def minimum(x):
    """The minimum, the number of steps, and the last value, from a loop in the program."""
    optimiser, function = optim.lbfgs(), optim.value_and_grad_from_state(rosenbrock)

    def step(carry):
        x, state, count, _ = carry
        value, gradient = function(x, state=state)
        updates, state = optimiser.update(gradient, state, x, value=value, grad=gradient, value_fn=rosenbrock)
        return optim.apply_updates(x, updates), state, count + 1, optim.global_norm(gradient)

    start = x, optimiser.init(x), 0, hnp.asarray(np.inf, x.dtype)
    x, _, count, _ = harp.while_loop(lambda carry: (carry[2] < 300) & (carry[3] > 1e-8), step, start)
    return x, count, rosenbrock(x)


def test_minima_in_one_program():
    for n in (2, 3, 10):
        x, count, value = minimum(np.full(n, -0.5))
        npt.assert_allclose(x, np.ones(n), rtol=1e-7)
        assert int(count) < 100 and float(value) < 1e-15
    assert minimum.compilations == 1


@pytest.mark.parametrize("length", [1e-3, 1.0, 50.0])
def test_wolfe_conditions(length):
    """However long the direction is."""
    search, x = optim.scale_by_wolfe_linesearch(40, tolerance=0.0), np.array([1.0, -2.0, 0.5, 3.0])
    value, g = quartic(x), quartic_gradient(x)
    function = lambda x: hnp.sum(np.arange(1.0, 5.0) * x**2 + x**4)
    updates, state = search.update(-length * g, search.init(x), x, value=value, grad=g, value_fn=function)
    step, slope = np.asarray(updates), g @ (-length * g)
    assert quartic(x + step) <= value + 1e-4 * float(state.learning_rate) * slope
    assert quartic_gradient(x + step) @ (-length * g) >= 0.9 * slope
    npt.assert_allclose(state.value, quartic(x + step), rtol=1e-12)
    npt.assert_allclose(state.grad, quartic_gradient(x + step), rtol=1e-12)
    again = optim.value_and_grad_from_state(lambda x: hnp.sum(x))(x + step, state=(state,))
    npt.assert_array_equal(again[1], state.grad)  # of the state, not of the function


def test_no_length_is_good():
    search, x = optim.scale_by_wolfe_linesearch(5), np.array([1.0])
    function = lambda x: hnp.sum(x**2)
    updates, state = search.update(np.array([2.0]), search.init(x), x, value=1.0, grad=2 * x, value_fn=function)
    npt.assert_array_equal(updates, [0])  # uphill
    assert np.isinf(float(state.value))
    value, gradient = optim.value_and_grad_from_state(function)(x, state=state)
    assert float(value) == 1 and float(gradient[0]) == 2


def test_complex_parameters():
    with pytest.raises(DTypeError, match="real"):
        optim.lbfgs().init(np.ones(2, complex))
