"""One program for all sizes: forward, gradient and value with gradient, in any order of sizes, 0 and 1 first."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

SIZES = (3, 0, 1, 2, 7, 64, 1000, 5)
ORDERS = [SIZES, (1, *SIZES), (0, *SIZES), (1000, 1, 0, 2)]


def mlp(x, w, v):
    return hnp.mean((hnp.tanh(x @ w) @ v) ** 2)


def np_mlp(x, w, v):
    with np.errstate(all="ignore"):
        return np.mean((np.tanh(x @ w) @ v) ** 2) if x.size else np.nan


def cross_entropy(x, w, v):
    logits = x @ w
    return hnp.sum(hnp.logsumexp(logits, axis=1)) - hnp.sum(logits[:, 0]) + hnp.sum(v) * 0.0


def np_cross_entropy(x, w, v):
    logits = x @ w
    top = logits.max(1, keepdims=True)
    return np.sum(np.log(np.exp(logits - top).sum(1)) + top[:, 0]) - logits[:, 0].sum()


def layer_norm(x, w, v):
    centred = x - hnp.mean(x, axis=1, keepdims=True)
    scaled = centred / hnp.sqrt(hnp.var(x, axis=1, keepdims=True) + 1e-5)
    return hnp.sum(hnp.sin(scaled * w[:, 0])) + hnp.sum(v) * 0.0


def np_layer_norm(x, w, v):
    scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return np.sum(np.sin(scaled * w[:, 0]))


def columns(x, w, v):
    return hnp.sum(hnp.cos(hnp.sum(x, axis=0))) + hnp.sum(hnp.prod(x, axis=1)) + hnp.sum(w) + hnp.sum(v)


def np_columns(x, w, v):
    return np.sum(np.cos(x.sum(0))) + x.prod(1).sum() + w.sum() + v.sum()


def heads(x, w, v):
    split = (x @ w).reshape(x.shape[0], 2, w.shape[1] // 2).transpose(1, 0, 2)
    return hnp.sum(hnp.sin(split.transpose(1, 0, 2).reshape(x.shape[0], w.shape[1]))) + hnp.sum(v)


def np_heads(x, w, v):
    return np.sin(x @ w).sum() + v.sum()


def strided(x, w, v):
    pieces = hnp.concatenate([x[1:] * 2.0, x[:-1], x[::2], x[::-1]], axis=0)
    return hnp.sum(hnp.sin(pieces)) + hnp.sum(w) + hnp.sum(v)


def np_strided(x, w, v):
    return np.sin(np.concatenate([x[1:] * 2, x[:-1], x[::2], x[::-1]])).sum() + w.sum() + v.sum()


PROGRAMS = [
    (mlp, np_mlp),
    (cross_entropy, np_cross_entropy),
    (layer_norm, np_layer_norm),
    (columns, np_columns),
    (heads, np_heads),
    (strided, np_strided),
]


def slope(f, args, k, rng):
    """The derivative along a random direction by central differences, and that direction."""
    direction = rng.normal(size=args[k].shape)
    moved = [[*args[:k], args[k] + sign * 1e-6 * direction, *args[k + 1 :]] for sign in (1, -1)]
    return direction, (f(*moved[0]) - f(*moved[1])) / 2e-6


@pytest.mark.parametrize("order", ORDERS, ids=["3 first", "1 first", "0 first", "large first"])
@pytest.mark.parametrize(("f", "reference"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_one_compile(f, reference, order):
    rng = np.random.default_rng(0)
    forward, gradient = harp.jit(f), harp.jit(harp.grad(f, argnums=(0, 1)))
    both = harp.jit(harp.value_and_grad(f, argnums=(0, 1)))
    w, v = rng.normal(size=(6, 4)), rng.normal(size=(4, 2))
    for n in order:
        args = (rng.normal(size=(n, 6)), w, v)
        expected = reference(*args)
        npt.assert_allclose(forward(*args), expected, rtol=1e-10, atol=1e-10)
        value, gradients = both(*args)
        npt.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)
        for k, (g, again) in enumerate(zip(gradients, gradient(*args), strict=True)):
            npt.assert_allclose(g, again, rtol=1e-10, atol=1e-12)  # two programs may round differently
            if np.isfinite(expected) and n < 100:
                direction, wanted = slope(reference, args, k, rng)
                npt.assert_allclose(np.sum(np.asarray(g) * direction), wanted, rtol=1e-5, atol=1e-6)
    assert (forward.compilations, gradient.compilations, both.compilations) == (1, 1, 1)
