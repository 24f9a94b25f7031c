"""Activations against formulas in NumPy, gradients against finite differences; initial weights by their moments."""

import math

import numpy as np
import pytest
from scipy import special

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import ArgumentError, AxisError, DTypeError, ShapeError

X = np.array([-30.0, -4.0, -2.5, -1.5, -0.3, 0.2, 0.7, 1.5, 2.5, 4.5, 7.0, 30.0])


def sigmoid(x):
    return special.expit(x)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FORMULAS = {
    "celu": elu,
    "elu": elu,
    "gelu": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "identity": lambda x: x,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log_sigmoid": special.log_expit,
    "log_softmax": special.log_softmax,
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "soft_sign": lambda x: x / (np.abs(x) + 1),
    "softmax": special.softmax,
    "softplus": lambda x: np.logaddexp(0, x),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "swish": lambda x: x * sigmoid(x),
    "tanh": np.tanh,
}


def test_values_and_gradients():
    """All in one program: values, and the derivative of a weighted sum of each."""
    weights = np.linspace(1.0, 2.0, X.size)

    @harp.jit
    def all_of(x):
        values = {name: getattr(nn, name)(x) for name in FORMULAS}
        slopes = {name: harp.grad(lambda x, name=name: (getattr(nn, name)(x) * weights).sum())(x) for name in FORMULAS}
        return values, slopes

    values, slopes = all_of(X)
    steps = 1e-6 * np.eye(X.size)
    for name, formula in FORMULAS.items():
        np.testing.assert_allclose(values[name], formula(X), rtol=1e-13, atol=1e-15, err_msg=name)
        expected = [((formula(X + step) - formula(X - step)) * weights).sum() / 2e-6 for step in steps]
        np.testing.assert_allclose(slopes[name], expected, rtol=1e-6, atol=1e-7, err_msg=name)


def test_parameters():
    slopes = np.linspace(0.1, 0.5, X.size)
    np.testing.assert_allclose(nn.leaky_relu(X, slopes), np.where(X > 0, X, slopes * X))
    np.testing.assert_allclose(nn.elu(X, 2.0), elu(X, 2.0))
    np.testing.assert_allclose(nn.celu(X, 2.0), 2 * elu(X / 2))
    np.testing.assert_allclose(nn.gelu(X, approximate=False), X * special.ndtr(X), rtol=1e-13, atol=1e-200)
    np.testing.assert_allclose(nn.squareplus(X, 0.5), (X + np.sqrt(X**2 + 0.5)) / 2)
    np.testing.assert_allclose(nn.glu(X[None], axis=1)[0], X[:6] * sigmoid(X[6:]))
    rows = X.reshape(3, 4)
    centred = rows - rows.mean(0)
    np.testing.assert_allclose(nn.standardize(rows, axis=0), centred / np.sqrt((centred**2).mean(0) + 1e-5))
    np.testing.assert_allclose(nn.standardize(rows, mean=1.0, variance=4.0, epsilon=0.0), (rows - 1) / 2)


def test_exponentials_of_some_elements():
    """What does not count changes neither values nor derivatives, whatever it is; a row of which nothing counts."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 6)) * 100
    counts = rng.random((4, 6)) < 0.5
    counts[0] = False
    counts[1] = True
    masked = np.where(counts, x, np.nan)
    with np.errstate(all="ignore"):
        total = special.logsumexp(np.where(counts, x, -np.inf), axis=1)
        shares = np.where(counts, np.exp(x - total[:, None]), 0)

    @harp.jit
    def all_of(x):
        one, other = nn.softmax(x, where=counts), nn.log_softmax(x, -1, counts)
        slope = harp.grad(lambda x: (nn.softmax(x, where=counts)[1:] * hnp.arange(6)).sum())(x)
        means = nn.logmeanexp(x[1:], axis=1, where=counts[1:])
        return one, other, slope, means, nn.logsumexp(x, 1, where=counts)

    for given in (x, masked):
        softmax, log_softmax, slope, means, logsumexp = all_of(given)
        np.testing.assert_allclose(softmax, shares, rtol=1e-10)
        np.testing.assert_allclose(
            log_softmax[1:], np.where(counts, x - total[:, None], -np.inf)[1:], rtol=1e-10, atol=1e-13
        )
        assert np.all(np.asarray(log_softmax)[0] == -np.inf)
        np.testing.assert_allclose(logsumexp, total, rtol=1e-12)
        np.testing.assert_allclose(means, total[1:] - np.log(counts[1:].sum(1)), rtol=1e-12)
        weighted = shares * (np.arange(6) - (shares * np.arange(6)).sum(1, keepdims=True))
        np.testing.assert_allclose(slope[1:], weighted[1:], rtol=1e-8, atol=1e-12)
    assert all_of.compilations == 1
    signed = nn.logsumexp(x[1], b=np.array([1, -2, 3, 1, 1, 1]), where=np.arange(6) < 2, return_sign=True)
    expected = special.logsumexp(x[1, :2], b=[1, -2], return_sign=True)
    np.testing.assert_allclose(np.array(signed), np.array(expected), rtol=1e-12)


def test_a_sparse_sum_at_infinity():
    x = np.array([-np.inf, np.inf, np.nan, -1e300, 1e300])
    for dtype in ("float32", "float64"):
        with np.errstate(over="ignore"):
            given = x.astype(dtype)
        found = nn.sparse_plus(given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.where(given < 0, 0, given).astype(dtype))
    np.testing.assert_array_equal(harp.vmap(harp.grad(nn.sparse_plus))(x[:2]), [0, 1])


def test_logarithms_of_one_minus_exponentials():
    x = np.array([1e-300, 1e-10, 0.1, math.log(2), 1.0, 40.0, 800.0, np.inf, 0.0, -1.0])
    with np.errstate(all="ignore"):
        expected = np.where(x < 0.5, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))
    np.testing.assert_allclose(nn.log1mexp(x), expected, rtol=1e-14)
    slopes = harp.vmap(harp.grad(nn.log1mexp))(x[1:7])
    np.testing.assert_allclose(slopes, 1 / np.expm1(x[1:7]), rtol=1e-13, atol=1e-300)


def test_large_numbers_have_gradients():
    """What is not chosen makes no NaN."""
    for name in ("celu", "elu", "selu", "log_sigmoid", "softplus", "relu6", "hard_tanh"):
        found = harp.jit(harp.vmap(harp.grad(getattr(nn, name))))(np.array([-1e4, 1e4]))
        assert np.isfinite(found).all(), name


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes(dtype):
    x = np.array([-2, 0, 3], dtype)
    for name in FORMULAS:
        found = getattr(nn, name)(x)
        assert found.dtype == np.dtype(dtype) or (dtype == "int32" and found.dtype.kind == "f"), name


def test_one_hot():
    labels = np.array([[2, 0], [-1, 5]])
    expected = labels[..., None] == np.arange(4)
    by_rows = harp.jit(lambda labels, like: nn.one_hot(labels, like.shape[0]))
    assert np.array_equal(by_rows(labels, np.zeros(4)), expected)
    assert np.array_equal(by_rows(labels[:, :0], np.zeros(4)), expected[:, :0])
    assert by_rows.compilations == 1
    first = nn.one_hot(labels, 4, dtype="int8", axis=0)
    assert first.dtype == np.int8
    assert np.array_equal(first, np.moveaxis(expected, -1, 0))
    many = np.asarray(nn.one_hot(np.array([2, 44], "int8"), 300))  # more classes than the dtype has numbers
    assert np.array_equal(many, np.array([[2], [44]]) == np.arange(300))
    with pytest.raises(ArgumentError, match="num_classes of one_hot"):
        nn.one_hot(labels, "four")
    with pytest.raises(DTypeError, match="one_hot takes integers, not float64"):
        nn.one_hot(X, 3)
    with pytest.raises(AxisError):
        nn.one_hot(labels, 3, axis=3)
    with pytest.raises(ShapeError):
        nn.glu(np.ones(3))


KEY = harp.random.key(7)
BY_FAN = {"lecun": (1.0, 60), "he": (2.0, 60), "kaiming": (2.0, 60), "glorot": (1.0, 50), "xavier": (1.0, 50)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("name", BY_FAN)
def test_variance_is_by_fan(name, kind):
    scale, fan = BY_FAN[name]
    weights = np.asarray(getattr(nn.initializers, f"{name}_{kind}")(dtype="float32")(KEY, (500, 60, 40)))
    assert weights.dtype == np.float32
    bound = math.sqrt(3) if kind == "uniform" else 2 / 0.87962566103423978
    deviation = math.sqrt(scale / (500 * fan))  # 500 places of a window
    assert abs(weights).max() <= bound * deviation * (1 + 1e-6)
    np.testing.assert_allclose(weights.std(), deviation, rtol=5e-3)
    assert abs(weights.mean()) < 5e-3 * deviation


def test_other_initializers():
    init = nn.initializers
    assert np.array_equal(init.zeros(KEY, (2, 3)), np.zeros((2, 3)))
    assert np.array_equal(init.ones(KEY, 2, "int32"), [1, 1])
    assert np.array_equal(init.constant(2.5)(KEY, 2), [2.5, 2.5])
    for made, deviation, largest in (
        (init.normal(3.0), 3.0, 30),
        (init.uniform(2.0), 2 / math.sqrt(12), 2),
        (init.truncated_normal(3.0), 3 * 0.87962566, 6),
        (init.variance_scaling(2.0, "fan_geo_avg", "normal"), math.sqrt(2 / 200), 1),
    ):
        weights = np.asarray(made(KEY, (200, 200)))
        np.testing.assert_allclose(weights.std(), deviation, rtol=0.02)
        assert abs(weights).max() <= largest
    with pytest.raises(ArgumentError, match=r"mode of variance_scaling is one of fan_in, .*, not 'fan'"):
        init.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ShapeError, match="weights of 1 axes"):
        init.he_normal()(KEY, (3,))


def test_symbolic_sizes():
    weights = harp.jit(lambda x: nn.initializers.he_normal()(KEY, (x.shape[0], 3)))
    for n in (1, 5, 40):
        np.testing.assert_allclose(weights(np.ones(n)), nn.initializers.he_normal()(KEY, (n, 3)), rtol=1e-14)
    assert weights.compilations == 1
    assert hnp.asarray(weights(np.ones(2))).dtype == np.float64
