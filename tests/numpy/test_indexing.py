"""`take`, `take_along_axis` and `repeat` with counts, beside NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnps

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, IndexOutOfRangeError, ShapeError

X = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
SHAPES = hnps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)


@given(SHAPES, hnps.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3), st.data())
def test_take(shape, count, data):
    x = np.arange(np.prod(shape)).reshape(shape)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    size = x.size if axis is None else shape[axis]
    if not size:
        count = (0,)
    i = data.draw(hnps.arrays(np.int32, count, elements=st.integers(-size, max(size - 1, 0))))
    np.testing.assert_array_equal(np.asarray(hnp.take(x, i, axis)), np.take(x, i, axis), strict=True)


@given(SHAPES, st.data())
def test_take_along_axis(shape, data):
    x = np.arange(np.prod(shape)).reshape(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    its = [data.draw(st.sampled_from((1, n))) for n in shape]
    its[axis] = data.draw(st.integers(0, 3 if size else 0))
    i = data.draw(hnps.arrays(np.int64, tuple(its), elements=st.integers(-size, max(size - 1, 0))))
    np.testing.assert_array_equal(np.asarray(hnp.take_along_axis(x, i, axis)), np.take_along_axis(x, i, axis))


def test_rows_of_one_element_serve_all():
    x, i = X[:1, :, :1], np.array([[[1, 0], [3, 3]]] * 2)[:, :, :2]
    np.testing.assert_array_equal(np.asarray(hnp.take_along_axis(x, i, 1)), np.take_along_axis(x, i, 1))


def test_compiled():
    """One program for all sizes, but for axes that are broadcast."""
    function = harp.jit(lambda x, i, j: (hnp.take(x, i, axis=1), hnp.take_along_axis(x, j, axis=-1)))
    for shape, count in (((2, 4, 3), 5), ((7, 6, 5), 2), ((3, 2, 8), 9)):
        rng = np.random.default_rng(0)
        x, i = rng.random(shape), rng.integers(-shape[1], shape[1], (count, 2))
        j = rng.integers(-shape[2], shape[2], (*shape[:2], count))
        taken, along = function(x, i, j)
        np.testing.assert_array_equal(np.asarray(taken), np.take(x, i, axis=1))
        np.testing.assert_array_equal(np.asarray(along), np.take_along_axis(x, j, axis=-1))
    assert function.compilations == 1


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill"])
def test_modes(mode):
    x, i = np.arange(5.0), np.array([7, -7, -5, 4, 5])
    expected = np.take(x, i, mode=mode) if mode == "wrap" else None
    if mode == "clip":
        expected = x[[4, 0, 0, 4, 4]]  # a negative index counts from the end, unlike in NumPy's own clip
    if mode == "fill":
        expected = np.array([np.nan, np.nan, 0, 4, np.nan])
    for function in (hnp.take, harp.jit(hnp.take, static_argnames="mode")):
        np.testing.assert_array_equal(np.asarray(function(x, i, mode=mode)), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_narrow_indices_wrap_around_longer_axes(dtype):
    function = harp.jit(lambda x, i: hnp.take(x, i, mode="wrap"))
    i = np.array([100, -28], np.int8).astype(dtype)
    for size in (1, 7, 300):
        x = np.arange(size)
        expected = x[[int(k) % size for k in i]]
        for each in (function, function.__wrapped__):
            np.testing.assert_array_equal(np.asarray(each(x, i)), expected)
    assert function.compilations == 1


@pytest.mark.parametrize("counts", [[1, 0, 2, 3], np.array([2]), hnp.asarray([0, 0, 0, 0]), (3, 1, 1, 1)])
def test_repeat_to_a_length(counts):
    f = harp.jit(lambda x, counts, like: hnp.repeat(x, counts, 1, total_repeat_length=like.shape[0]))
    whole = np.repeat(X, np.broadcast_to(counts, X.shape[1]), axis=1)
    for length in (0, 2, whole.shape[1], whole.shape[1] + 3):
        more = np.repeat(X[:, -1:], max(length - whole.shape[1], 0), axis=1)
        expected = np.concatenate([whole[:, :length], more], 1)
        np.testing.assert_array_equal(np.asarray(f(X, np.asarray(counts), np.zeros(length))), expected)
    assert f.compilations == 1


@pytest.mark.parametrize("counts", [[1, 0, 2, 3], np.array([2]), hnp.asarray([0, 0, 0, 0]), (3, 1, 1, 1)])
def test_repeat_with_counts(counts):
    expected = np.repeat(X, np.asarray(counts), axis=1)
    np.testing.assert_array_equal(np.asarray(hnp.repeat(X, counts, axis=1)), expected, strict=True)
    jitted = harp.jit(lambda x: hnp.repeat(x, counts, axis=1))
    np.testing.assert_array_equal(np.asarray(jitted(X)), expected, strict=True)
    with_none = np.arange(3)
    np.testing.assert_array_equal(np.asarray(hnp.repeat(with_none, [2, 0, 1])), np.repeat(with_none, [2, 0, 1]))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: hnp.take(x, np.array([4]), axis=1), IndexOutOfRangeError, "index 4 is out of range for axis 1"),
        (lambda x: hnp.take(x, np.array([1.0])), ArgumentError, "integers"),
        (lambda x: hnp.take(x, np.array([True])), ArgumentError, "the indices of take are integers, not bool"),
        (lambda x: hnp.take(x, np.array([0]), axis=3), AxisError, "axis 3"),
        (lambda x: hnp.take(x, np.array([0]), mode="raise"), ArgumentError, "mode must be one of"),
        (lambda x: hnp.take_along_axis(x, np.array([0]), axis=0), ShapeError, "indices with 1 axis do not fit"),
        (lambda x: hnp.take_along_axis(x, np.zeros((2, 3, 1), int), 0), ShapeError, "indices do not fit axis 1"),
        (lambda x: hnp.repeat(x, [1, 2, 3], axis=1), ShapeError, "repeat along axis 1: one number for each"),
    ],
)
def test_errors(call, error, match):
    for function in (call, harp.jit(call)):
        with pytest.raises(error, match=match):
            function(hnp.asarray(X))


def test_counts_that_only_the_program_knows():
    with pytest.raises(ArgumentError, match="known before the program runs"):
        harp.jit(lambda x, n: hnp.repeat(x, n, axis=0))(X, np.array([1, 2]))


@pytest.mark.parametrize("axis", [None, 0])
def test_repeat_of_a_number(axis):
    np.testing.assert_array_equal(hnp.repeat(hnp.asarray(2.5), 3, axis=axis), np.repeat(np.asarray(2.5), 3, axis=axis))
