"""Positions, distinct elements and membership against NumPy; with size= inside and outside traced functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ConcretizationError, ShapeError
from harp.trace.scalar import dtypes

# NumPy sorts NaN of bfloat16 to the wrong place: tests/numpy/test_sorting.py has that.
REAL = [d.numpy for d in dtypes.ALL if not d.is_complex and not d.is_packaged]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 2.0]


def small(dtype):
    """Few different numbers, so that they repeat."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "u":
        return st.integers(0, 4)
    return st.integers(-2, 2) if dtype.kind == "i" else st.sampled_from(SPECIAL)


def arrays(dtype, dims=2):
    shapes = hypothesis_numpy.array_shapes(min_dims=1, max_dims=dims, min_side=0, max_side=6)
    return hypothesis_numpy.arrays(dtype, shapes, elements=small(dtype), fill=st.nothing())


def wide(x):
    """NumPy does not sort NaN of bfloat16, nor finds them equal."""
    return x if x.dtype.kind in "biufc" else x.astype(np.float32)


def same(found, expected, dtype=None):
    found = np.asarray(found)
    assert (found.shape, found.dtype) == (expected.shape, dtype or expected.dtype)
    np.testing.assert_array_equal(wide(found), wide(expected))


def padded(values, size, fill):
    """The first elements, and `fill` for those that are missing."""
    return np.concatenate([values[:size], np.full(max(size - len(values), 0), fill, values.dtype)])


# --- where the numbers are known


@given(st.sampled_from(REAL).flatmap(arrays))
def test_known_numbers_as_in_numpy(x):
    for found, expected in zip(hnp.nonzero(x), np.nonzero(x), strict=True):
        same(found, expected)
    same(hnp.argwhere(x), np.argwhere(x))
    same(hnp.flatnonzero(x), np.flatnonzero(x))
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        found, expected = getattr(hnp, name)(x), getattr(np, name)(wide(x))
        assert found._fields == expected._fields
        for k, (a, b) in enumerate(zip(found, expected, strict=True)):
            same(a, b, None if k else x.dtype)
    same(hnp.unique_values(x), np.unique(wide(x), equal_nan=False), x.dtype)
    for k, (a, b) in enumerate(zip(hnp.unique(x, True, True, True), np.unique(wide(x), True, True, True), strict=True)):
        same(a, b.reshape(np.shape(a)), None if k else x.dtype)
    same(hnp.extract(x, x), np.extract(x, x))
    same(hnp.count_nonzero(x), np.asarray(np.count_nonzero(x)))
    same(hnp.count_nonzero(x, axis=0, keepdims=True), np.count_nonzero(x, axis=0, keepdims=True))


@given(arrays(np.float32, 1), arrays(np.float64, 1))
def test_sets_as_in_numpy(a, b):
    same(hnp.union1d(a, b), np.union1d(a, b))
    same(hnp.intersect1d(a, b), np.intersect1d(a, b))
    same(hnp.setdiff1d(a, b), np.setdiff1d(a, b))
    same(hnp.setxor1d(a, b), np.setxor1d(a, b))
    same(hnp.isin(a, b), np.isin(a, b))
    same(hnp.isin(a, b, invert=True), np.isin(a, b, invert=True))


def test_captured_numbers_are_known_inside_a_trace():
    mask = np.array([True, False, True])
    f = harp.jit(lambda x: x * hnp.nonzero(mask)[0].shape[0])
    np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])


# --- inside a traced function

SIZED = harp.jit(
    lambda x: (
        hnp.nonzero(x, size=5, fill_value=(-1, 7)),
        hnp.unique_all(x, size=4),
        hnp.unique_values(x, size=40, fill_value=3),
        hnp.unique(x, True, True, True, size=6),
        hnp.extract(x, x, size=3, fill_value=1),
    )
)


def check_sized(x, result):
    places, every, values, collapsed, chosen = result
    for found, expected, fill in zip(places, np.nonzero(x), (-1, 7), strict=True):
        same(found, padded(expected, 5, fill))
    known = np.unique_all(x)
    first = known.values[0] if x.size else 0
    same(every.values, padded(known.values, 4, first))
    same(every.indices, padded(known.indices, 4, known.indices[0] if x.size else 0))
    same(every.inverse_indices, known.inverse_indices)
    same(every.counts, padded(known.counts, 4, 0))
    same(values, padded(known.values, 40, 3))
    parts = np.unique(x, True, True, True)
    for a, b, fill in zip(collapsed, parts, (first, parts[1][0] if x.size else 0, None, 0), strict=True):
        same(a, b.reshape(np.shape(a)) if fill is None else padded(b, 6, fill))
    same(chosen, padded(np.extract(x, x), 3, 1))


@given(st.sampled_from([np.dtype(t) for t in ("float32", "int64", "bool")]).flatmap(lambda t: arrays(t, 2)))
def test_size_says_how_many(x):
    if x.ndim == 2:
        check_sized(x, SIZED(x))
        check_sized(x, SIZED.__wrapped__(x))


def test_one_program_for_all_sizes():
    before = SIZED.compilations
    for shape in [(0, 0), (1, 1), (3, 1), (1, 40), (9, 9)]:
        x = np.random.default_rng(1).integers(-3, 3, shape).astype(np.float64)
        check_sized(x, SIZED(x))
    assert SIZED.compilations <= before + 1


def test_sizes_may_be_symbolic():
    f = harp.jit(lambda x: hnp.unique_values(x, size=x.shape[0]))
    for n in (1, 2, 10):
        same(f(np.full(n, 3.0)), np.full(n, 3.0))


SETS = harp.jit(
    lambda a, b: (
        hnp.isin(a, b),
        hnp.union1d(a, b, size=12, fill_value=-5),
        hnp.intersect1d(a, b, size=7, fill_value=-5),
        hnp.setdiff1d(a, b, size=7, fill_value=-5),
        hnp.setxor1d(a, b, size=12, fill_value=-5),
    )
)


@given(arrays(np.int32, 1), arrays(np.int32, 1))
def test_sets_inside_a_trace(a, b):
    member, union, both, only, either = SETS(a, b)
    same(member, np.isin(a, b))
    same(union, padded(np.union1d(a, b), 12, -5))
    same(both, padded(np.intersect1d(a, b), 7, -5))
    same(only, padded(np.setdiff1d(a, b), 7, -5))
    same(either, padded(np.setxor1d(a, b), 12, -5))


def test_distinct_slices():
    x = np.array([[1, 0], [2, 2], [1, 0]])
    for axis in (0, 1):
        for a, b in zip(hnp.unique(x, True, True, True, axis), np.unique(x, True, True, True, axis), strict=True):
            same(a, np.ravel(b) if np.ndim(a) == 1 else b)
    with pytest.raises(ArgumentError, match="unique along an axis has no size="):
        hnp.unique(x, axis=0, size=2)


@pytest.mark.parametrize("dtype", [d.numpy for d in dtypes.ALL], ids=str)
def test_elements_of_every_dtype_are_moved(dtype):
    x, mask = np.array([1, 0, 3, 4]).astype(dtype), np.array([True, True, False, True])
    for found in (hnp.extract(mask, x, size=5), MOVED(mask, x)):
        same(found, padded(x[mask], 5, 0))


MOVED = harp.jit(lambda mask, x: hnp.extract(mask, x, size=5))


def test_gradients_flow_to_the_elements_that_are_kept():
    g = harp.jit(harp.grad(lambda x: hnp.sum(hnp.extract(x > 0, x, size=3) * np.array([1.0, 2.0, 3.0]))))
    np.testing.assert_array_equal(g(np.array([-1.0, 5.0, -2.0, 7.0])), [0.0, 1.0, 0.0, 2.0])


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "unique_all", "unique_counts",
                                  "unique_inverse", "unique_values", "unique"])  # fmt: skip
def test_unknown_numbers_need_a_size(name):
    with pytest.raises(ConcretizationError, match=r"size=n\)|\.\.\., size=n"):
        harp.jit(getattr(hnp, name))(np.ones(3))


def test_errors_say_what_to_do():
    with pytest.raises(ConcretizationError, match="extract"):
        harp.jit(lambda x: hnp.extract(x > 0, x))(np.ones(3))
    with pytest.raises(ConcretizationError, match="union1d"):
        harp.jit(lambda x: hnp.union1d(x, x))(np.ones(3))
    with pytest.raises(ShapeError, match="axes"):
        hnp.nonzero(np.float64(3))
    with pytest.raises(ArgumentError, match="fill_value has 1 entry for 2 axes"):
        hnp.nonzero(np.ones((2, 2)), size=3, fill_value=(1,))
