"""A few seconds that touch every layer: the first thing to run after a change."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt

import harp
import harp.numpy as hnp


def mlp_loss(params, x, y):
    hidden = hnp.tanh(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"]
    return -hnp.mean(hnp.sum(y * (logits - hnp.logsumexp(logits, axis=1, keepdims=True)), axis=1))


def mlp_data(n: int, rng: np.random.Generator):
    params = {"w1": rng.normal(size=(5, 7)), "b1": rng.normal(size=7), "w2": rng.normal(size=(7, 3))}
    x = rng.normal(size=(n, 5))
    y = np.eye(3)[rng.integers(0, 3, n)]
    return params, x, y


def numpy_loss(params, x, y):
    logits = np.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]
    top = logits.max(1, keepdims=True)
    return -np.mean(np.sum(y * (logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))), axis=1))


def test_one_program_serves_every_size():
    rng = np.random.default_rng(0)
    f = harp.jit(lambda x: hnp.sum(hnp.exp(x) * 2.0 + x[::-1], axis=0))
    for n in (3, 0, 1, 2, 64):
        x = rng.normal(size=(n, 4))
        npt.assert_allclose(f(x), (np.exp(x) * 2 + x[::-1]).sum(0), rtol=1e-12, atol=1e-12)
    assert f.compilations == 1


def test_gradient_of_a_network():
    rng = np.random.default_rng(1)
    step = harp.jit(harp.value_and_grad(mlp_loss))
    for n in (1, 6, 33):
        params, x, y = mlp_data(n, rng)
        value, gradient = step(params, x, y)
        npt.assert_allclose(value, numpy_loss(params, x, y), rtol=1e-12)
        for name, entry in (("w1", (2, 3)), ("b1", (4,)), ("w2", (0, 1))):
            moved = [{k: v.copy() for k, v in params.items()} for _ in range(2)]
            moved[0][name][entry] += 1e-6
            moved[1][name][entry] -= 1e-6
            slope = (numpy_loss(moved[0], x, y) - numpy_loss(moved[1], x, y)) / 2e-6
            npt.assert_allclose(gradient[name][entry], slope, rtol=1e-6, atol=1e-8)
    assert step.compilations == 1


def test_compiled_equals_interpreted():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=6).astype(np.float32)

    def f(x, y):
        return {"a": hnp.softmax(x * y), "b": (x @ y).reshape(2, 2), "c": hnp.concatenate([x[:, 1:], x[:, :1] > 0], 1)}

    compiled, interpreted = harp.jit(f)(x, y), f(hnp.asarray(x), hnp.asarray(y))
    for name, value in interpreted.items():
        npt.assert_allclose(compiled[name], value, rtol=1e-6)
        assert compiled[name].dtype == value.dtype


def test_a_branch_on_a_size_is_guarded():
    f = harp.jit(lambda x: x * 1.0 if x.shape[0] == 1 else x * 2.0)
    for n in (1, 2, 1, 5, 0):
        npt.assert_array_equal(f(np.ones(n)), np.ones(n) * (1.0 if n == 1 else 2.0))
    assert f.compilations == 2


def test_stages_are_visible():
    f = harp.jit(lambda x: x + 1.0)
    stages = f.lower(np.zeros(3, np.float32))
    assert "add(x0, 1.0:f32)" in str(stages.graph)
    assert "harp_run" in stages.source
    assert all(str(part) for part in (stages.schedule, stages.loops))
