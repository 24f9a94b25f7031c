"""Reductions against NumPy and SciPy: axes, empty arrays, NaN and infinities, every dtype."""

import warnings

import numpy as np
import pytest
import scipy.special

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, ShapeError
from harp.trace.scalar import dtypes

# NumPy warns where harp's results say it all
pytestmark = pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom):RuntimeWarning")

DTYPES = [d.numpy for d in dtypes.ALL if not d.is_complex and not d.is_stored]
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0), (0, 3), (2, 1, 4)]

rng = np.random.default_rng(1)


def sample(shape, dtype=np.float64):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -4, 5, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def axes_of(shape):
    rank = len(shape)
    return [None, *range(-rank, rank), *([(0, -1), (1, 0)] if rank > 1 else []), ()]


CASES = [(shape, axis, keepdims) for shape in SHAPES for axis in axes_of(shape) for keepdims in (False, True)]


def near(result, expected, ulp=16):
    result, expected = np.asarray(result), np.asarray(expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    tolerance = ulp * np.finfo(result.dtype).eps if result.dtype.kind == "f" else 0
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def over(shape, axis):
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return [shape[k] for k in axes]


@pytest.mark.parametrize(("shape", "axis", "keepdims"), CASES)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
def test_reductions(name, shape, axis, keepdims):
    x = sample(shape)
    near(getattr(hnp, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims))
    near(getattr(hnp.asarray(x), name)(axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize(("shape", "axis", "keepdims"), CASES)
@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "logsumexp"])
def test_reductions_of_something(name, shape, axis, keepdims):
    x = sample(shape)
    if 0 in over(shape, axis):
        with pytest.raises(ShapeError, match=rf"{name.removeprefix('a')} over axis \d of size 0 has no value"):
            getattr(hnp, name)(x, axis, keepdims=keepdims)
    elif name == "logsumexp":
        if axis != () and shape and 0 not in shape:  # where SciPy has shapes of its own
            near(hnp.logsumexp(x, axis, keepdims), scipy.special.logsumexp(x, axis, keepdims=keepdims))
    else:
        near(getattr(hnp, name)(x, axis, keepdims=keepdims), getattr(np, name)(x, axis, keepdims=keepdims), 0)


@pytest.mark.parametrize(("shape", "axis", "keepdims"), [c for c in CASES if not isinstance(c[1], tuple)])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(name, shape, axis, keepdims):
    x = np.round(sample(shape))
    if 0 in over(shape, axis):
        with pytest.raises(ShapeError, match=rf"{name} over axis \d of size 0"):
            getattr(hnp, name)(x, axis, keepdims=keepdims)
    else:
        near(getattr(hnp, name)(x, axis, keepdims), getattr(np, name)(x, axis, keepdims=keepdims))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    x = sample((7, 3), dtype)
    for name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "var", "std"):
        wide = {"mean": 1, "var": 1, "std": 1}.get(name)
        expected = getattr(np, name)(x.astype(np.float64) if wide and dtype.kind != "f" else x, axis=0)
        near(getattr(hnp, name)(x, axis=0), expected)
    near(hnp.sum(x, dtype="float32"), np.sum(x, dtype="float32"))
    near(hnp.mean(x, dtype="float64"), np.mean(x, dtype="float64"))


def test_integers_wrap():
    x = np.array([2**62, 2**62, 1])
    near(hnp.sum(x), np.sum(x))
    near(hnp.sum(np.full(3, 100, "int8"), dtype="int8"), np.sum(np.full(3, 100, "int8"), dtype="int8"))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sum", "any", "all"])
@pytest.mark.parametrize(
    "x", [[np.nan, 1, np.nan], [1, np.nan, 2, np.nan], [np.inf, -np.inf, np.inf], [-0.0, 0.0, 0.0]]
)
def test_special_values(name, x):
    near(getattr(hnp, name)(np.array(x)), getattr(np, name)(np.array(x)), 0)


@pytest.mark.parametrize("ddof", [0, 1, 5, 7, 0.5])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_correction(ddof, axis):
    x = sample((5, 3))
    near(hnp.var(x, axis, ddof=ddof), np.var(x, axis, ddof=ddof))
    near(hnp.var(x, axis, correction=ddof), np.var(x, axis, ddof=ddof))
    near(hnp.std(x, axis, ddof=ddof), np.std(x, axis, ddof=ddof))


def test_variance_does_not_cancel():
    x = sample((1000,)) + 1e8
    near(hnp.var(x), np.var(x), 1e5)


@pytest.mark.parametrize("axis", [-1, 0, 1, None, (0, 1)])
def test_softmax(axis):
    x = sample((4, 5)) * 300
    for ours, theirs in ((hnp.softmax, scipy.special.softmax), (hnp.log_softmax, scipy.special.log_softmax)):
        near(ours(x, axis), theirs(x, axis), 64)
    assert hnp.softmax(x.astype("float32"), axis).dtype == np.float32
    assert hnp.softmax(np.arange(3)).dtype == np.float64


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), (2, 1)])
def test_softmax_of_few(shape):
    assert hnp.softmax(np.zeros(shape)).shape == shape
    assert hnp.log_softmax(np.zeros(shape)).shape == shape
    np.testing.assert_array_equal(hnp.softmax(np.zeros((2, 1))), 1)


def test_rows_without_finite_values():
    low, high = np.full(3, -np.inf), np.array([0, np.inf, -np.inf])
    assert np.isnan(np.asarray(hnp.softmax(low))).all()
    assert np.isnan(np.asarray(hnp.log_softmax(low))).all()
    assert float(hnp.logsumexp(low)) == -np.inf
    assert float(hnp.logsumexp(high)) == np.inf
    np.testing.assert_array_equal(hnp.softmax(np.array([0, -np.inf])), [1, 0])
    np.testing.assert_array_equal(hnp.log_softmax(np.array([0, -np.inf])), [0, -np.inf])
    assert np.isnan(float(hnp.logsumexp(np.array([1, np.nan]))))
    assert float(hnp.logsumexp(np.array([1e4, 1e4]))) == 1e4 + np.log(2)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["std", "nanstd"])
def test_standard_deviation_beside_overflow_and_underflow(name, scale):
    x = np.array([1.0, 3.0, 2.0]) * scale
    function = getattr(hnp, name)
    for ddof in (0, 1):
        expected = np.std([1.0, 3.0, 2.0], ddof=ddof)
        near(harp.jit(lambda x, ddof=ddof: function(x, ddof=ddof))(x), expected * scale)
        slope = harp.jit(harp.grad(lambda x, ddof=ddof: function(x, ddof=ddof)))(x)
        np.testing.assert_allclose(slope, [-1 / expected / (3 - ddof), 1 / expected / (3 - ddof), 0], atol=1e-15)


def test_logsumexp_of_sums_of_infinite_rows():
    x = np.array([[-np.inf, -np.inf], [0.0, 1.0]])
    nested = harp.jit(harp.grad(lambda x: hnp.logsumexp(hnp.logsumexp(x, axis=1))))
    weights = np.exp([0.0, 1.0]) / np.exp([0.0, 1.0]).sum()
    np.testing.assert_allclose(nested(x), [[0, 0], weights], rtol=1e-15)
    x[0] = np.inf, 3.0
    np.testing.assert_allclose(nested(x), [[1, 0], [0, 0]])
    _, tangent = harp.jvp(hnp.logsumexp, (np.array([np.inf, np.inf, 0.0]),), (np.array([1.0, 3.0, 5.0]),))
    np.testing.assert_allclose(tangent, 2.0)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "argmax", "softmax", "any"])
def test_axis_errors(name):
    with pytest.raises(AxisError, match="axis 2 is out of range for an array with 2 axes"):
        getattr(hnp, name)(np.zeros((2, 3)), axis=2)


def test_axis_named_twice():
    with pytest.raises(AxisError, match="twice"):
        hnp.sum(np.zeros((2, 3)), axis=(0, -2))


def test_numbers_stay_numbers():
    x = hnp.ones(2, "float32")
    assert (x * hnp.mean(3.0)).dtype == np.float32
    assert (x * hnp.sum(3.0)).dtype == np.float32
    assert (x * hnp.logsumexp(3.0)).dtype == np.float32


MASKED = {
    "sum": {"initial": 3},
    "prod": {"initial": 2},
    "max": {"initial": 1},
    "min": {"initial": 1},
    "mean": {},
    "var": {"ddof": 0.5},
    "std": {"ddof": 1},
    "any": {},
    "all": {},
}


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?", "c16"])
def test_masks_leave_elements_out(name, dtype):
    """Beside NumPy: masks of all elements, of columns, of none; with other options; as a method, and by np."""
    if dtype == "c16" and name in ("max", "min"):
        return
    x = (np.random.default_rng(0).normal(size=(3, 4)) * 5).astype(dtype)
    function = getattr(np, name)
    for mask in (x.real > 1, np.array([True, False, True, True]), np.zeros((3, 1), bool), True):
        for axis, keepdims in ((None, False), (0, True), ((0, 1), False), (-1, False)):
            options = {"axis": axis, "keepdims": keepdims, **MASKED[name]}
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                expected = np.asarray(function(x, where=mask, **options))
            found = np.asarray(getattr(hnp, name)(x, where=mask, **options))
            method = np.asarray(getattr(hnp.asarray(x), name)(where=mask, **options))
            assert found.shape == expected.shape and found.dtype.kind == expected.dtype.kind
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            np.testing.assert_array_equal(method, found)


def test_masks_in_programs_and_their_gradients():
    """What is left out has the derivative 0, also where it is NaN; one program for all sizes."""

    def loss(x, mask):
        return hnp.mean(x, where=mask) + hnp.sum(hnp.var(x, axis=0, where=mask)) + np.max(x, initial=-9.0, where=mask)

    gradient, value = harp.jit(harp.grad(loss)), harp.jit(loss)
    for rows in (4, 2):
        x = np.random.default_rng(rows).normal(size=(rows, 3))
        mask = x > -0.3
        mask[0] = True
        x[~mask] = np.nan
        expected = np.zeros_like(x)
        for place in zip(*np.nonzero(mask), strict=True):
            up, down = x.copy(), x.copy()
            up[place] += 1e-6
            down[place] -= 1e-6
            expected[place] = (float(value(up, mask)) - float(value(down, mask))) / 2e-6
        np.testing.assert_allclose(np.asarray(gradient(x, mask)), expected, atol=1e-7)
    assert gradient.compilations == 1


def test_masks_that_do_not_fit():
    with pytest.raises(ShapeError, match="3 is not 4"):
        hnp.sum(np.ones((3, 4)), where=np.ones(3, bool))
    with pytest.raises(ArgumentError, match="with initial"):
        hnp.max(np.ones(3), where=np.ones(3, bool))
    with pytest.raises(ArgumentError, match="the mask where is a str"):
        hnp.sum(np.ones(3), where="all")
    assert float(hnp.max(np.zeros(0), initial=3.0)) == 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
def test_masks_leave_elements_out_beside_nan(name, dtype):
    rng = np.random.default_rng(0)
    x, mask = rng.integers(-4, 5, (4, 5)).astype(dtype), rng.random((4, 5)) < 0.6
    if dtype != np.int64:
        x[rng.random((4, 5)) < 0.3] = np.nan
    initial = {"initial": 2} if name in ("nansum", "nanprod", "nanmax", "nanmin") else {}
    for axis in (None, 0, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = getattr(np, name)(x, axis=axis, where=mask, **initial)
        for f in (lambda f: f, harp.jit):
            result = f(lambda x, mask, axis=axis: getattr(hnp, name)(x, axis, where=mask, **initial))(x, mask)
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)
