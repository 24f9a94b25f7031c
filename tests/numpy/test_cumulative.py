"""Running sums and products against NumPy: every dtype, axes, sizes 0 and 1, NaN and infinity; derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError
from harp.trace.scalar import dtypes

DTYPES = [d.numpy for d in dtypes.ALL if not d.is_complex and not d.is_stored]
BOTH = {"cumsum": (hnp.cumsum, np.cumsum), "cumprod": (hnp.cumprod, np.cumprod)}
COMPILED = {(name, axis): harp.jit(lambda x, f=f, axis=axis: f(x, axis)) for name, (f, _) in BOTH.items()
            for axis in (None, 0, 1, 2)}  # fmt: skip

rng = np.random.default_rng(3)


def sample(shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "bui":
        return rng.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def same(result, expected):
    result = np.asarray(result)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result, expected)


@given(
    st.sampled_from(sorted(BOTH)),
    st.lists(st.integers(0, 19), min_size=1, max_size=3),
    st.sampled_from(DTYPES),
    st.data(),
)
def test_as_in_numpy(name, shape, dtype, data):
    """Bitwise, for elements are added in NumPy's order: eager and compiled, also of reversed and strided arrays."""
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    step = data.draw(st.sampled_from([1, -1, 2]))
    x = sample(shape, dtype)[..., ::step]
    ours, numpy = BOTH[name]
    with np.errstate(all="ignore"):
        expected = numpy(x, axis)
        same(ours(x, axis), expected)
        same(COMPILED[name, axis](x), expected)


@pytest.mark.parametrize("name", sorted(BOTH))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32", "float64"])
def test_dtype(name, dtype):
    x = sample((3, 4), "int16")
    ours, numpy = BOTH[name]
    same(ours(x, 1, dtype=dtype), numpy(x, 1, dtype=dtype))
    same(harp.jit(lambda x: ours(x, 1, dtype=dtype))(x), numpy(x, 1, dtype=dtype))


@pytest.mark.parametrize("name", sorted(BOTH))
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_nan_and_infinity_reach_what_follows_only(name, axis):
    x = sample((9, 11), "float32")
    x[3, 4], x[5, 2], x[6, 6], x[7, 7], x[8, 8] = np.inf, np.nan, -np.inf, 0.0, np.inf
    ours, numpy = BOTH[name]
    with np.errstate(all="ignore"):
        same(ours(x, axis), numpy(x, axis))
        same(harp.jit(lambda x: ours(x, axis))(x), numpy(x, axis))


def test_a_number_is_an_array_of_one():
    same(hnp.cumsum(2.5), np.cumsum(2.5))
    same(hnp.cumprod(np.float32(2.5)), np.cumprod(np.float32(2.5)))


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_sums_keep_the_sign_of_zero(device, dtype):
    if device not in harp.devices():
        pytest.skip("there is no such device")
    forward = harp.jit(hnp.cumsum, device=device)
    backward = harp.jit(lambda x: hnp.cumsum(x[::-1])[::-1], device=device)
    behind_zeros = harp.jit(lambda x: hnp.cumsum(hnp.pad(x, (2, 0)))[-1], device=device)
    for count in (1, 5, 70_000):
        x = np.full(count, -0.0, dtype)
        for found in (forward(x), backward(x), hnp.cumsum(hnp.asarray(x))):
            assert np.signbit(np.asarray(found)).all()
        assert not np.signbit(np.asarray(behind_zeros(x))) and not np.signbit(np.asarray(harp.jit(hnp.sum)(x)))
        x[count // 2] = 0.0
        np.testing.assert_array_equal(np.signbit(np.asarray(forward(x))), np.signbit(np.cumsum(x)))


def test_one_program_for_all_sizes():
    f = harp.jit(lambda x: hnp.cumsum(x, 1))
    for shape in [(3, 4), (0, 4), (3, 0), (1, 1), (17, 100), (1, 5), (5, 1), (8, 33)]:
        x = sample(shape, "float32")
        same(f(x), np.cumsum(x, 1))
    assert f.compilations == 1


@pytest.mark.parametrize("axis", [1, 2])
def test_rows_are_the_same_in_every_batch(axis):
    x = sample((21, 50, 7), "float32")
    one, two = (harp.jit(lambda x: hnp.cumsum(x * 1.5, axis), threads=t) for t in (1, 2))
    whole = np.asarray(one(x))
    assert whole.tobytes() == np.asarray(two(x)).tobytes()
    for rows in (1, 7, 8, 9):
        assert np.asarray(two(x[:rows])).tobytes() == whole[:rows].tobytes()


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_array_api(axis, dtype, initial):
    x = sample((3, 5), dtype)
    for ours, numpy in ((hnp.cumulative_sum, np.cumulative_sum), (hnp.cumulative_prod, np.cumulative_prod)):
        expected = numpy(x, axis=axis, include_initial=initial)
        same(ours(x, axis=axis, include_initial=initial), expected)
        same(harp.jit(lambda x, f=ours: f(x, axis=axis, include_initial=initial))(x), expected)


def test_array_api_without_an_axis():
    x = sample(6, "float64")
    same(hnp.cumulative_sum(x, include_initial=True), np.cumulative_sum(x, include_initial=True))
    with pytest.raises(ArgumentError, match="axis must be given for an array with 2 axes"):
        hnp.cumulative_prod(np.ones((2, 3)))


def test_axis_out_of_range():
    with pytest.raises(AxisError, match="axis 2 is out of range for an array with 2 axes"):
        hnp.cumsum(np.ones((2, 3)), 2)


def differences(f, x, step=1e-5):
    moves = np.eye(x.size).reshape(x.size, *x.shape) * step
    return np.array([(f(x + m) - f(x - m)) / (2 * step) for m in moves]).reshape(x.shape)


@pytest.mark.parametrize("zeros", [(), (1,), (0, 3), (2, 4)])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", sorted(BOTH))
def test_gradients(name, axis, zeros):
    """Of the first and second order, also beside zeros."""
    ours, numpy = BOTH[name]
    x = rng.uniform(0.5, 1.5, (3, 5))
    x[:, list(zeros)], x[0, 2] = 0.0, -1.0
    w, v = rng.normal(size=numpy(x, axis).shape), rng.normal(size=x.shape)

    first = harp.grad(lambda x: hnp.sum(ours(x, axis) * w))
    second = harp.grad(lambda x: hnp.sum(first(x) * v))
    expected = differences(lambda x: np.sum(numpy(x, axis) * w), x)
    for f in (first, harp.jit(first)):
        np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-6, atol=1e-8)
    # along v, the derivative of the gradient: that of w.cumprod is of several degrees, and exact differences are few
    expected = (np.asarray(first(x + 1e-5 * v)) - np.asarray(first(x - 1e-5 * v))) / 2e-5
    for f in (second, harp.jit(second)):
        np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-6, atol=1e-6)


def test_gradient_of_a_flipped_product():
    """A running product from the back."""
    x, w = rng.uniform(0.5, 1.5, 6), rng.normal(size=6)
    x[2] = 0.0
    f = harp.grad(lambda x: hnp.sum(hnp.flip(hnp.cumprod(hnp.flip(x, 0))) * w))
    expected = differences(lambda x: np.sum(np.flip(np.cumprod(np.flip(x))) * w), x)
    np.testing.assert_allclose(np.asarray(harp.jit(f)(x)), expected, rtol=1e-6, atol=1e-8)


def test_gradient_in_a_wider_dtype():
    """Through the cast of the elements."""
    x = rng.uniform(0.5, 1.5, 5).astype("float32")
    result = harp.jit(harp.grad(lambda x: hnp.sum(hnp.cumprod(x, dtype="float64"))))(x)
    expected = differences(lambda x: np.sum(np.cumprod(x)), x.astype("float64"))
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)
    assert np.asarray(result).dtype == np.float32


def test_gradient_of_no_elements():
    for f in (hnp.cumsum, hnp.cumprod):
        assert np.asarray(harp.jit(harp.grad(lambda x, f=f: hnp.sum(f(x, 1))))(np.ones((3, 0)))).shape == (3, 0)


@pytest.mark.slow
def test_bool_results():
    """Adding is "or", multiplying is "and", also where they are compiled."""
    x = np.array([[0.0, 2.5, 0.0], [1.0, -3.0, np.nan], [0.0, 0.0, 0.0]])
    for name in ("cumsum", "cumprod", "sum", "prod"):
        for a in (x, x > 1, x.astype(np.int8) if name == "sum" else np.array([[2, 3, 128], [0, 1, 2]], np.uint8)):
            for axis in (None, 0, 1):
                compiled = harp.jit(lambda x, name=name, axis=axis: getattr(hnp, name)(x, axis=axis, dtype=bool))
                wanted = getattr(np, name)(a, axis=axis, dtype=bool)
                same(compiled(a), wanted)
                same(getattr(hnp, name)(a, axis=axis, dtype=bool), wanted)


# --- running extrema, and differences

EXTREMA = {"cummax": (hnp.cummax, np.maximum), "cummin": (hnp.cummin, np.minimum)}
EXTREMA_COMPILED = {(name, axis): harp.jit(lambda x, f=f, axis=axis: f(x, axis)) for name, (f, _) in EXTREMA.items()
                    for axis in (None, 0, 1, 2)}  # fmt: skip


@given(
    st.sampled_from(sorted(EXTREMA)),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.sampled_from(["bool", "int8", "uint16", "int64", "float32", "float64"]),
    st.data(),
)
def test_extrema_as_in_numpy(name, shape, dtype, data):
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    x = sample(shape, dtype)[..., :: data.draw(st.sampled_from([1, -1]))]
    if x.dtype.kind == "f" and data.draw(st.booleans()):
        x = np.where(rng.integers(0, 4, x.shape) == 0, rng.choice([np.nan, np.inf, -np.inf], x.shape), x).astype(dtype)
    ours, ufunc = EXTREMA[name]
    expected = ufunc.accumulate(x.ravel() if axis is None else x, axis or 0)
    same(ours(x, axis), expected)
    same(EXTREMA_COMPILED[name, axis](x), expected)


def first_places(ufunc, x):
    """Where each running extremum comes first, along axis 0."""
    r = ufunc.accumulate(x, 0)
    equal = (x[:, None] == r[None]) | (np.isnan(x)[:, None] & np.isnan(r)[None])
    return np.argmax(equal, 0)


@pytest.mark.parametrize("name", sorted(EXTREMA))
def test_gradients_of_extrema_go_to_the_first(name):
    ours, ufunc = EXTREMA[name]
    f = harp.jit(harp.grad(lambda x, w: hnp.sum(ours(x, 0) * w)))
    for shape in [(6, 2), (1, 1), (30, 3), (0, 2)]:
        x, w = rng.integers(-3, 4, shape).astype(float), rng.normal(size=shape)
        if shape[0] == 30:
            x[7, 1], x[9, 1], x[:3, 2] = np.nan, np.nan, -np.inf
        wanted = np.zeros(shape)
        for i, k in np.ndenumerate(first_places(ufunc, x) if x.size else x):
            wanted[k, i[1]] += w[i]
        np.testing.assert_allclose(f(x, w), wanted, rtol=1e-13, atol=1e-13)
    assert f.compilations == 1


def test_second_derivative_of_a_running_maximum():
    x = np.array([0.3, 1.2, 0.5, 1.7])
    second = harp.grad(lambda x: hnp.sum(harp.grad(lambda x: hnp.sum(hnp.cummax(x) ** 3))(x)))
    np.testing.assert_allclose(second(x), [6 * 0.3, 2 * 6 * 1.2, 0, 6 * 1.7])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(0, 3), st.data())
def test_differences_as_in_numpy(shape, times, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = sample(shape, data.draw(st.sampled_from(["bool", "uint8", "int64", "float32"])))
    same(hnp.diff(x, times, axis), np.diff(x, times, axis))
    if x.dtype == np.int64:
        wanted = np.diff(x, times, axis, prepend=3, append=x)
        same(hnp.diff(x, times, axis, prepend=3, append=x), wanted)


def test_differences_compiled():
    f = harp.jit(lambda x: hnp.diff(x, 2))
    g = harp.jit(harp.grad(lambda x: hnp.sum(hnp.diff(x, prepend=1.0) ** 2)))
    for n in (0, 1, 2, 3, 10):
        x = sample(n, "float64")
        same(f(x), np.diff(x, 2))
        if n:
            d = np.diff(x, prepend=1.0)
            np.testing.assert_allclose(g(x), 2 * d - 2 * np.append(d[1:], 0))
    with pytest.raises(ArgumentError, match="n >= 0"):
        hnp.diff(np.ones(3), -1)


def test_running_extrema_of_complex_numbers():
    x = np.array([[1 + 2j, 0.5j, 3], [2, 1 + 3j, -1j], [2 - 1j, 1, 4]], "complex64")
    for axis in (0, 1):
        for name in ("maximum", "minimum"):
            expected = getattr(np, name).accumulate(x, axis)
            running = {"maximum": hnp.cummax, "minimum": hnp.cummin}[name]
            for f in (lambda x, k=axis, r=running: r(x, k), lambda x, k=axis, n=name: getattr(hnp, n).accumulate(x, k)):
                np.testing.assert_array_equal(f(x), expected)
                np.testing.assert_array_equal(harp.jit(f)(x), expected)
    slope = np.asarray(harp.grad(lambda x: hnp.sum(hnp.real(hnp.cummax(x, axis=1))))(x))
    np.testing.assert_array_equal(slope, [[2, 0, 1], [3, 0, 0], [2, 0, 1]])
