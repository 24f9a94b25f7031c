"""Quantiles and medians against NumPy; derivatives; NaN, infinities, sizes of 1."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError

SHAPES = [(3, 7), (1, 4), (2, 1), (1, 1), (5, 30)]
PARTS = [0.0, 1.0, 0.5, 0.3, np.array([0.1, 0.77]), np.array([[0.2, 0.3, 1.0]])]

QUANTILE = harp.jit(lambda x, q: hnp.quantile(x, q, axis=1))
MEDIAN = harp.jit(lambda x: (hnp.median(x, 1), hnp.median(x), hnp.median(x, axis=0, keepdims=True)))


def close(found, expected):
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if expected.dtype == np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_as_in_numpy(dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = (rng.normal(size=shape) * 10).astype(dtype)
        wide = x if x.dtype.kind == "f" else x.astype(float)
        for q in PARTS:
            for found in (hnp.quantile(x, q, axis=1), QUANTILE(x, q)):
                close(found, np.quantile(wide, q, axis=1))
        for found, expected in zip(
            MEDIAN(x), (np.median(x, 1), np.median(x), np.median(x, 0, keepdims=True)), strict=True
        ):
            close(found, expected)
    assert MEDIAN.compilations <= 4


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9), st.floats(0, 1))
def test_numbers(values, q):
    x = np.array(values)
    np.testing.assert_allclose(hnp.quantile(x, q), np.quantile(x, q), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(QUANTILE(x[None], q), np.quantile(x[None], q, axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (0, 1, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(axis, keepdims):
    x = np.random.default_rng(1).normal(size=(3, 4, 5))
    close(hnp.quantile(x, 0.3, axis, keepdims=keepdims), np.quantile(x, 0.3, axis, keepdims=keepdims))
    close(hnp.percentile(x, [10, 60], axis, keepdims=keepdims), np.percentile(x, [10, 60], axis, keepdims=keepdims))
    close(hnp.median(x, axis, keepdims=keepdims), np.median(x, axis, keepdims=keepdims))


@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "inverted_cdf", "closest_observation"])
def test_beside_infinities(method):
    run = harp.jit(lambda x, q: hnp.quantile(x, q, method=method))
    with warnings.catch_warnings(action="ignore"):
        for values in ([-1, -np.inf, -2, -3], [1, np.inf, 2, 3], [np.inf, -np.inf, 1, 2]):
            for q in np.linspace(0, 1, 11):
                expected = np.quantile(np.array(values), q, method=method)
                np.testing.assert_allclose(run(np.array(values), q), expected, rtol=1e-12)
    assert run.compilations == 1


def test_nan_and_infinity():
    inf, nan = np.inf, np.nan
    x = np.array([[1.0, inf, inf], [nan, 1, 2], [-inf, 0, inf], [-inf, -inf, 3]])
    np.testing.assert_array_equal(hnp.quantile(x, 0.5, 1), [inf, nan, 0, -inf])
    np.testing.assert_array_equal(hnp.quantile(x, 0.75, 1), [inf, nan, inf, -inf])
    np.testing.assert_array_equal(hnp.quantile(x, 0.25, 1), [inf, nan, -inf, -inf])
    np.testing.assert_array_equal(hnp.quantile(x, 0.0, 1), [1, nan, -inf, -inf])
    np.testing.assert_array_equal(MEDIAN(x)[0], np.median(x, 1))
    largest = np.finfo(float).max
    assert float(hnp.median(np.array([largest]))) == largest


def test_gradients():
    x = np.array([3.0, 1.0, 2.0, 7.0])
    np.testing.assert_allclose(harp.grad(lambda x: hnp.quantile(x, 0.3))(x), [0, 0.1, 0.9, 0], atol=1e-15)
    np.testing.assert_allclose(harp.grad(hnp.median)(x), [0.5, 0, 0.5, 0])
    np.testing.assert_allclose(harp.grad(hnp.median)(x[:3]), [0, 0, 1])
    by_part = harp.jit(harp.grad(lambda q, x: hnp.quantile(x, q)))(np.float64(0.3), x)
    np.testing.assert_allclose(by_part, 3.0)  # the slope between 1 and 2 over a third


def test_errors():
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        hnp.quantile(np.ones(3), 1.5)
    for function in (hnp.percentile, hnp.nanpercentile):
        with pytest.raises(ArgumentError, match="percentiles are asked for parts between 0 and 100, not 150"):
            function(np.ones(3), 150)
    with pytest.raises(ArgumentError, match=r"nanquantile has the methods 'linear'.*not \['x'\]"):
        hnp.nanquantile(np.ones(3), 0.5, method=["x"])
    for name in ("nanmedian", "nanmax", "nanmin", "nanargmax", "nanargmin"):
        with pytest.raises(ShapeError, match=f"^{name} over axis 1 of size 0 has no value"):
            getattr(hnp, name)(np.ones((3, 0)), 1)
    with pytest.raises(ShapeError, match="median over axis 1 of size 0 has no value"):
        hnp.median(np.ones((3, 0)), 1)
    assert np.isnan(QUANTILE(np.ones((1, 3)), 2.0)).all()


def test_derivatives_beside_infinities_are_the_weights():
    inf = np.inf
    gradient = harp.jit(harp.grad(lambda x, q: hnp.quantile(x, q)))
    for x in ([1.0, inf, inf], [-inf, -inf, -inf], [-inf, 1.0, 2.0], [1.0, 2.0, inf]):
        np.testing.assert_allclose(gradient(np.array(x), 0.3), [0.4, 0.6, 0.0], rtol=1e-14)
        np.testing.assert_allclose(gradient(np.array(x), 0.6), [0.0, 0.8, 0.2], rtol=1e-14)
        np.testing.assert_allclose(gradient(np.array(x), 0.5), [0.0, 1.0, 0.0], rtol=1e-14)


def test_derivative_by_the_part_at_an_element():
    slope = harp.grad(lambda q, x: hnp.quantile(x, q))
    np.testing.assert_allclose([slope(q, np.array([1.0, 2.0, 3.0])) for q in (0.0, 0.25, 0.5, 0.6)], 2.0, rtol=1e-14)


METHODS = (
    *("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf"),
    *("closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased"),
)
BY_ALL = harp.jit(lambda x, q: {m: (hnp.quantile(x, q, method=m), hnp.nanquantile(x, q, method=m)) for m in METHODS})


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 10, 11])
def test_methods(size):
    x = np.random.default_rng(size).normal(size=size)
    q = np.concatenate([np.linspace(0, 1, 2 * size + 1), np.arange(size + 1) / size, [0.123, 0.51, 0.999]])
    compiled, holed = BY_ALL(x, q), BY_ALL(np.append(x, np.nan), q)
    for method in METHODS:
        expected = np.quantile(x, q, method=method)
        np.testing.assert_allclose(hnp.quantile(x, q, method=method), expected, rtol=1e-12, atol=1e-12, err_msg=method)
        for found in (*compiled[method], holed[method][1]):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=method)
        np.testing.assert_array_equal(holed[method][0], np.nan)


def test_quantiles_without_nan():
    x = np.array([[1.0, np.nan, 3.0, 2.0], [np.nan] * 4, [5.0, 1.0, 2.0, 8.0]])
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        for axis in (0, 1, None, (0, 1)):
            for q in (0.3, [[0.1], [1.0]]):
                expected = np.nanquantile(x, q, axis=axis, keepdims=True)
                np.testing.assert_allclose(hnp.nanquantile(x, q, axis, keepdims=True), expected)
        np.testing.assert_allclose(hnp.nanmedian(x, 1), np.nanmedian(x, 1))
    slope = harp.grad(lambda x: hnp.sum(hnp.nanquantile(x, 0.25, 1)[::2]))(x)
    np.testing.assert_allclose(slope, [[0.5, 0, 0, 0.5], [0] * 4, [0, 0.25, 0.75, 0]], atol=1e-15)


def test_an_unknown_method_names_all_of_them():
    with pytest.raises(ArgumentError, match=r"'linear', 'lower', .*, not 'some'"):
        hnp.quantile(np.ones(2), 0.5, method="some")
