"""Recurrent cells against loops in NumPy, and their first parameters."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest
from scipy.special import expit

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2, 3))


def lstm(params, state, xs):
    (h, c), made = state, []
    for x in xs:
        i, f, g, o = np.split(x @ params["input"] + h @ params["state"] + params["bias"], 4, -1)
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        made.append(h)
    return (h, c), np.array(made).reshape(len(xs), *h.shape)


def gru(params, h, xs):
    made = []
    for x in xs:
        r, z, n = np.split(x @ params["input"] + params["bias"], 3, -1)
        of_r, of_z, of_n = np.split(h @ params["state"] + params["state_bias"], 3, -1)
        z = expit(z + of_z)
        h = z * h + (1 - z) * np.tanh(n + expit(r + of_r) * of_n)
        made.append(h)
    return h, np.array(made).reshape(len(xs), *h.shape)


CELLS = {
    "lstm": (nn.lstm, lstm, {"input": (3, 16), "state": (4, 16), "bias": (16,)}, 2),
    "gru": (nn.gru, gru, {"input": (3, 12), "state": (4, 12), "bias": (12,), "state_bias": (12,)}, 1),
}


@pytest.mark.parametrize("name", CELLS)
def test_values_and_gradients(name):
    cell, expected, shapes, parts = CELLS[name]
    params = {k: RNG.normal(size=s) * 0.5 for k, s in shapes.items()}
    states = tuple(RNG.normal(size=(2, 4)) for _ in range(parts))
    state = states if parts == 2 else states[0]
    found, wanted = (harp.tree.leaves(f(params, state, X)) for f in (cell, expected))
    for a, b in zip(found, wanted, strict=True):
        npt.assert_allclose(a, b, rtol=1e-12)
    backward = cell(params, state, X, reverse=True)[1]
    npt.assert_allclose(backward, expected(params, state, X[::-1])[1][::-1], rtol=1e-12)
    slopes = harp.grad(lambda p: hnp.sum(cell(p, state, X)[1] ** 2))(params)
    for k, p in params.items():
        ahead = RNG.normal(size=p.shape)
        ends = [np.sum(expected({**params, k: p + e * ahead}, state, X)[1] ** 2) for e in (1e-5, -1e-5)]
        npt.assert_allclose(np.sum(slopes[k] * ahead), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


def test_all_lengths_by_one_program():
    params = nn.gru_parameters(harp.random.key(0), 3, 4, "float32")
    run = harp.jit(lambda params, x: nn.gru(params, hnp.zeros((x.shape[1], 4), "float32"), x)[1])
    for steps in (6, 1, 0):
        x = X[:steps].astype("float32")
        found = run(params, x)
        assert found.dtype == np.float32
        npt.assert_allclose(found, gru(params, np.zeros((2, 4)), x)[1], rtol=1e-5, atol=1e-6)
    assert run.compilations == 1


def test_first_parameters():
    params = nn.lstm_parameters(harp.random.key(3), 5, 4, "float32")
    assert all(p.dtype == np.float32 for p in params.values())
    npt.assert_array_equal(params["bias"], np.repeat([0, 1, 0, 0], 4))
    for gate in range(4):
        square = np.asarray(params["state"])[:, 4 * gate : 4 * gate + 4]
        npt.assert_allclose(square.T @ square, np.eye(4), atol=1e-6)
    assert abs(np.asarray(params["input"])).max() <= np.sqrt(6 / 9)
    zeros = nn.gru_parameters(harp.random.key(3), 5, 4, kernel_init=nn.initializers.zeros)
    assert not np.any(zeros["input"])
    with pytest.raises(ShapeError):
        nn.lstm(params, (np.zeros(4), np.zeros(4)), np.zeros((2, 6)))
