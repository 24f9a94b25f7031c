"""The optimizers of JAX's example libraries against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import tree
from harp.errors import ArgumentError, TreeError
from harp.jax.example_libraries import optimizers

G = [np.array([[1.0, -2.0, 0.0], [0.5, 3.0, -1.0]]), np.array([[0.5, 1.0, 0.0], [-1.0, 2.0, 4.0]])] * 3


def sgd(x, g, s, i):
    return x - 0.1 * g


def momentum(x, g, s, i):
    s["v"] = 0.8 * s.get("v", 0) + g
    return x - 0.1 * s["v"]


def nesterov(x, g, s, i):
    s["v"] = 0.8 * s.get("v", 0) + g
    return x - 0.1 * (0.8 * s["v"] + g)


def adagrad(x, g, s, i):
    s["q"] = s.get("q", 0) + g**2
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * np.divide(g, np.sqrt(s["q"]), out=np.zeros_like(g), where=s["q"] > 0)
    return x - 0.1 * s["m"]


def rmsprop(x, g, s, i):
    s["q"] = 0.9 * s.get("q", 0) + 0.1 * g**2
    return x - 0.1 * g / np.sqrt(s["q"] + 1e-8)


def rmsprop_momentum(x, g, s, i):
    s["q"] = 0.9 * s.get("q", 0) + 0.1 * g**2
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g / np.sqrt(s["q"] + 1e-8)
    return x - s["m"]


def adam(x, g, s, i):
    s["m"], s["v"] = 0.9 * s.get("m", 0) + 0.1 * g, 0.999 * s.get("v", 0) + 0.001 * g**2
    return x - 0.1 * (s["m"] / (1 - 0.9 ** (i + 1))) / (np.sqrt(s["v"] / (1 - 0.999 ** (i + 1))) + 1e-8)


def adamax(x, g, s, i):
    s["m"], s["u"] = 0.9 * s.get("m", 0) + 0.1 * g, np.maximum(0.999 * s.get("u", 0), np.abs(g))
    return x - 0.1 / (1 - 0.9 ** (i + 1)) * s["m"] / (s["u"] + 1e-8)


def sm3(x, g, s, i):
    r, c = s.get("v", (np.zeros(2), np.zeros(3)))
    q = np.minimum(r[:, None], c) + g**2
    s["v"] = q.max(1), q.max(0)
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * np.divide(g, np.sqrt(q), out=np.zeros_like(g), where=q > 0)
    return x - 0.1 * s["m"]


NEAR = {"float64": {"rtol": 1e-12, "atol": 1e-12}, "float32": {"rtol": 1e-4, "atol": 1e-5}}
FORMULAS = [sgd, momentum, nesterov, adagrad, rmsprop, rmsprop_momentum, adam, adamax, sm3]


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_are_those_of_the_formula(formula, dtype):
    name = formula.__name__
    init, update, get_params = getattr(optimizers, name)(0.1, *([0.8] if name in ("momentum", "nesterov") else []))
    x, state, expected = np.ones((2, 3), dtype), {}, np.ones((2, 3))
    ours = init({"a": x, "b": [x[0, 0]]})
    step = harp.jit(update)
    for i, g in enumerate(G):
        g = g.astype(dtype)
        ours = step(i, {"a": g, "b": [g[0, 0]]}, ours)
        expected = formula(expected, g.astype("float64"), state, i)
        params = get_params(ours)
        assert params["a"].dtype == params["b"][0].dtype == dtype and params["b"][0].shape == ()
        np.testing.assert_allclose(np.asarray(params["a"]), expected, **NEAR[dtype])
    if name != "sm3":  # whose elements share what it keeps
        np.testing.assert_allclose(np.asarray(params["b"][0]), expected[0, 0], **NEAR[dtype])
    assert step.compilations == 1
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(ours))
    assert tree.structure(again) == tree.structure(ours)


def test_training():
    init, update, get_params = optimizers.adam(optimizers.exponential_decay(0.2, 10, 0.9))
    target = np.array([1.0, -2.0, 3.0])

    @harp.jit
    def train(w):
        def step(state, i):
            slope = harp.grad(lambda w: hnp.sum((w - target) ** 2))(get_params(state))
            return update(i, slope, state), None

        return get_params(harp.scan(step, init(w), hnp.arange(200))[0])

    np.testing.assert_allclose(np.asarray(train(np.zeros(3))), target, atol=0.02)


def test_schedules():
    steps = np.array([0, 5, 10, 25])
    for schedule, expected in (
        (optimizers.constant(0.5), np.full(4, 0.5)),
        (optimizers.exponential_decay(2.0, 10, 0.5), 2 * 0.5 ** (steps / 10)),
        (optimizers.inverse_time_decay(2.0, 10, 0.5), 2 / (1 + 0.5 * steps / 10)),
        (optimizers.inverse_time_decay(2.0, 10, 0.5, staircase=True), 2 / (1 + 0.5 * np.floor(steps / 10))),
        (optimizers.polynomial_decay(2.0, 20, 0.5, 2.0), (1 - np.minimum(steps, 20) / 20) ** 2 * 1.5 + 0.5),
        (optimizers.piecewise_constant([4, 12], [3.0, 2.0, 1.0]), [3, 2, 2, 1]),
        (optimizers.make_schedule(0.25), np.full(4, 0.25)),
    ):
        np.testing.assert_allclose([np.asarray(schedule(int(i))) for i in steps], expected)
        np.testing.assert_allclose(harp.jit(schedule)(25), expected[-1])


def test_norms_and_what_is_refused():
    grads = {"a": np.array([3.0, 0.0]), "b": [np.array(4.0)]}
    assert float(optimizers.l2_norm(grads)) == 5
    assert np.asarray(optimizers.clip_grads(grads, 1.0)["a"]).tolist() == [0.6000000000000001, 0]
    assert np.asarray(optimizers.clip_grads(grads, 6.0)["b"][0]) == 4
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TreeError, match="gradients have the structure"):
        update(0, [1.0], init({"a": 1.0}))
    with pytest.raises(ArgumentError, match="a step size is a number"):
        optimizers.sgd(np.ones(2))
    with pytest.raises(ArgumentError, match="one more value than boundaries"):
        optimizers.piecewise_constant([1, 2], [1.0, 2.0])
    growing = optimizers.optimizer(lambda: (lambda x: x, lambda i, g, x: (x, g), lambda x: x))()
    with pytest.raises(TreeError, match="of a state became"):
        growing.update_fn(0, 1.0, growing.init_fn(1.0))
