"""How many kernels common programs become, and that the passes are linear in the size of a graph."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

X, W, B = np.zeros((6, 5)), np.zeros((5, 4)), np.zeros(4)


def layer_norm(x):
    centred = x - hnp.mean(x, axis=1, keepdims=True)
    return centred / hnp.sqrt(hnp.var(x, axis=1, keepdims=True) + 1e-5)


def chain(length):
    def f(x):
        for k in range(length):
            x = x * 1.5 + float(k)
        return x

    return f


@pytest.mark.parametrize(
    ("f", "arguments", "kernels"),
    [
        (lambda x: hnp.exp(x) * 2 + x, (X,), 1),
        (lambda x: hnp.sum(hnp.exp(x), axis=1), (X,), 1),
        (lambda x: hnp.mean(x * x, axis=0), (X,), 1),
        (lambda x, w, b: hnp.relu(x @ w + b), (X, W, B), 1),
        (lambda x, w: (x + 1.0) @ w, (X, W), 2),  # the operand would be computed again for each column
        (lambda x: hnp.softmax(x), (X,), 2),
        (layer_norm, (X,), 2),
        (lambda x: x.T, (X,), 1),
        (chain(60), (X,), 1),
    ],
)
def test_kernels(f, arguments, kernels):
    stages = harp.jit(f).lower(*arguments)
    assert len(stages.schedule.groups) <= kernels


@pytest.mark.slow
def test_a_long_chain_is_cut_into_kernels_of_bounded_size():
    short, long = (len(harp.jit(chain(n)).lower(X).schedule.groups) for n in (500, 2000))
    assert 3 * short <= long <= 5 * short


def test_matrix_products_are_tiled():
    loops = harp.jit(lambda x, w: x @ w).lower(X.astype(np.float32), W.astype(np.float32)).loops
    assert "local" in loops


def test_equal_functions_have_equal_source():
    first = harp.jit(lambda a, b: a @ b + 1.0).lower(X, W).source
    second = harp.jit(lambda left, right: left @ right + 1.0).lower(np.ones((2, 3)), np.ones((3, 9))).source
    assert first == second
