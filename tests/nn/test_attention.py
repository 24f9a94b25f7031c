"""Attention by blocks against softmax in NumPy, gradients against finite differences; all lengths by one program."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.nn import attention

RNG = np.random.default_rng(0)
B, T, S, N, K, H = 2, 5, 11, 4, 2, 3
Q, KEYS, VALUES = (RNG.normal(size=s) for s in ((B, T, N, H), (B, S, K, H), (B, S, K, H)))
BIAS, MASK = RNG.normal(size=(1, N, T, S)), RNG.random((B, 1, T, S)) < 0.7


@pytest.fixture(autouse=True)
def few_keys(monkeypatch):
    """Blocks of four keys, so that there are some, and a rest."""
    monkeypatch.setattr(attention, "_BLOCK", 4)


def reference(q, k, v, bias=0.0, mask=True, scale=None, counts=True):
    """The formula; of keys that are masked, the weight is that of JAX."""
    groups = q.shape[2] // k.shape[2]
    k, v = k.repeat(groups, 2), v.repeat(groups, 2)
    s = np.einsum("btnh,bsnh->bnts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    s = np.where(np.logical_and(mask, counts), s, -0.7 * float(np.finfo(np.float32).max))
    p = np.exp(s - s.max(-1, keepdims=True)) if s.shape[-1] else s
    return np.einsum("bnts,bsnh->btnh", p / p.sum(-1, keepdims=True), v)


AT, KEY = np.arange(T)[:, None], np.arange(S)
FEW = np.array([3, 9])
CASES = {
    "plain": ({}, {}),
    "bias": ({"bias": BIAS}, {"bias": BIAS}),
    "bias of keys": ({"bias": BIAS[:, :1, :1]}, {"bias": BIAS[:, :1, :1]}),
    "mask": ({"mask": MASK}, {"mask": MASK}),
    "mask of queries": ({"mask": MASK[..., :1]}, {"mask": MASK[..., :1]}),
    "scale": ({"scale": 2.0}, {"scale": 2.0}),
    "causal": ({"is_causal": True}, {"counts": KEY <= AT}),
    "lengths": ({"key_value_seq_lengths": FEW}, {"counts": FEW[:, None, None, None] > KEY}),
    "window": ({"local_window_size": (1, 2)}, {"counts": (AT <= KEY + 1) & (KEY <= AT + 2)}),
    "causal window": ({"local_window_size": 2, "is_causal": True}, {"counts": (AT <= KEY + 2) & (KEY <= AT)}),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    options, expected = CASES[name]
    found = nn.dot_product_attention(Q, KEYS, VALUES, **options)
    npt.assert_allclose(found, reference(Q, KEYS, VALUES, **expected), rtol=1e-12, atol=1e-14)


def test_one_program_for_all_lengths():
    attend = harp.jit(nn.dot_product_attention)
    for queries, keys in [(5, 11), (1, 1), (3, 4), (1, 9), (0, 3), (7, 2)]:
        q, k, v = (RNG.normal(size=(B, n, 2, H)) for n in (queries, keys, keys))
        npt.assert_allclose(attend(q, k, v), reference(q, k, v), rtol=1e-12, atol=1e-14)
    npt.assert_array_equal(attend(q, k[:, :0], v[:, :0]), 0 * q)
    assert attend.compilations == 1


def test_results_beyond_lengths_are_zero():
    found = np.asarray(nn.dot_product_attention(Q, KEYS, VALUES, query_seq_lengths=np.array([2, 5])))
    assert not found[0, 2:].any()
    npt.assert_allclose(found[0, :2], reference(Q, KEYS, VALUES)[0, :2], rtol=1e-12)


def test_of_no_key_the_mean():
    found = np.asarray(nn.dot_product_attention(Q, KEYS, VALUES, mask=np.zeros((1, 1, T, S), bool)))
    npt.assert_allclose(found, np.broadcast_to(VALUES.mean(1)[:, None].repeat(2, 2), found.shape), rtol=1e-12)
    gradient = harp.grad(lambda v: hnp.sum(nn.dot_product_attention(Q, KEYS, v, mask=np.zeros((1, 1, T, S), bool))))
    npt.assert_allclose(gradient(VALUES), np.full(VALUES.shape, T * N / K / S), rtol=1e-12)
    lost = nn.dot_product_attention(Q, KEYS, VALUES, bias=np.full((1, 1, 1, S), -np.inf))
    assert np.isnan(lost).all()
    late = np.where(KEY < 9, -np.inf, 0.0)
    found = nn.dot_product_attention(Q, KEYS, VALUES, bias=late)
    npt.assert_allclose(found, reference(Q, KEYS, VALUES, bias=late), rtol=1e-12)


def test_without_a_batch_and_residuals():
    found, sums = nn.dot_product_attention(Q[0], KEYS[0], VALUES[0], return_residual=True)
    npt.assert_allclose(found, reference(Q, KEYS, VALUES)[0], rtol=1e-12)
    logits = np.einsum("tnh,snh->tns", Q[0], KEYS[0].repeat(2, 1)) / H**0.5
    npt.assert_allclose(sums, np.log(np.exp(logits).sum(-1)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes(dtype):
    q, k, v = (hnp.asarray(x).astype(dtype) for x in (Q, KEYS, VALUES))
    found = nn.dot_product_attention(q, k, v)
    assert str(found.dtype) == dtype
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5}[dtype]
    npt.assert_allclose(np.asarray(found, float), reference(Q, KEYS, VALUES), atol=tolerance, rtol=tolerance)


def loss(q, k, v, bias):
    return hnp.sum(hnp.sin(nn.dot_product_attention(q, k, v, bias, MASK, is_causal=True)))


def expected_loss(q, k, v, bias):
    return np.sin(reference(q, k, v, bias, MASK, counts=KEY <= AT)).sum()


GIVEN = (Q, KEYS, VALUES, BIAS[:, :, :1])
AHEAD = tuple(RNG.normal(size=x.shape) for x in GIVEN)


def moved(step):
    return [x + step * d for x, d in zip(GIVEN, AHEAD, strict=True)]


def along(parts):
    return sum(float(np.sum(np.asarray(p) * d)) for p, d in zip(parts, AHEAD, strict=True))


def test_derivatives_of_both_orders():
    gradient = harp.grad(loss, (0, 1, 2, 3))
    slope = (expected_loss(*moved(1e-5)) - expected_loss(*moved(-1e-5))) / 2e-5
    npt.assert_allclose(along(gradient(*GIVEN)), slope, rtol=1e-7)
    npt.assert_allclose(harp.jvp(loss, GIVEN, AHEAD)[1], slope, rtol=1e-7)
    second = (along(gradient(*moved(1e-5))) - along(gradient(*moved(-1e-5)))) / 2e-5
    npt.assert_allclose(along(harp.jvp(gradient, GIVEN, AHEAD)[1]), second, rtol=1e-6)
    twice = harp.grad(lambda *x: sum(hnp.sum(g * d) for g, d in zip(gradient(*x), AHEAD, strict=True)), (0, 1, 2, 3))
    npt.assert_allclose(along(twice(*GIVEN)), second, rtol=1e-6)


@pytest.mark.slow
def test_compiled_gradients_of_batches():
    def one(q, k, v):
        return hnp.sum(nn.dot_product_attention(q, k, v, is_causal=True) ** 2)

    gradient = harp.grad(one, (0, 1, 2))
    given = [x[:, None] for x in (Q, KEYS, VALUES)]
    found = harp.jit(harp.vmap(gradient))(*given)
    for k in range(B):
        for a, b in zip(found, gradient(*(x[k] for x in given)), strict=True):
            npt.assert_allclose(a[k], b, rtol=1e-10, atol=1e-12)


def test_memory_is_linear(monkeypatch):
    """The gradient at 8,192 queries and keys has the logits of two blocks, and not those of all keys, which are 32."""
    monkeypatch.setattr(attention, "_BLOCK", 256)
    gradient = harp.jit(harp.grad(lambda q: hnp.sum(nn.dot_product_attention(q, q, q, is_causal=True) ** 2)))
    used = gradient.lower(np.zeros((8192, 1, 16), np.float32)).memory().scratch
    assert used < 3 * 256 * 8192 * 4 + 20 * 8192 * 16 * 4


def test_errors():
    with pytest.raises(ArgumentError, match="one implementation, not 'cudnn'"):
        nn.dot_product_attention(Q, KEYS, VALUES, implementation="cudnn")
    with pytest.raises(ShapeError, match="3 heads of query are no multiple of 2 of key"):
        nn.dot_product_attention(Q[:, :, :3], KEYS, VALUES)
    with pytest.raises(ShapeError, match="axis -3 of value, -3 of key"):
        nn.dot_product_attention(Q, KEYS, VALUES[:, 1:])
    with pytest.raises(ShapeError, match="query of dot_product_attention has 2 axes"):
        nn.dot_product_attention(Q[0, 0], KEYS, VALUES)
    with pytest.raises(DTypeError, match="mask of dot_product_attention is of float64"):
        nn.dot_product_attention(Q, KEYS, VALUES, mask=BIAS)
    with pytest.raises(DTypeError, match="takes floats, not int64"):
        nn.dot_product_attention(*(np.ones((2, 1, 2), int) for _ in range(3)))
    with pytest.raises(DTypeError, match="key_value_seq_lengths of dot_product_attention are integers"):
        nn.dot_product_attention(Q, KEYS, VALUES, key_value_seq_lengths=np.ones(2))
