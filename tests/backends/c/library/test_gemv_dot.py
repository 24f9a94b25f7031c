"""A matrix times a vector: one chain for each element in the order of k, at every size, place and stride."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp

DTYPES = ["f4", "f8"]
ROWS = st.sampled_from([0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 100, 255, 256, 257, 300])
DEPTHS = st.sampled_from([0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 127, 129, 255, 256, 257, 512, 700])

column = harp.jit(lambda x, w: x @ w)
row = harp.jit(lambda w, x: w @ x.T)
views = {
    "flipped": harp.jit(lambda x, w: x[::-1] @ w),
    "sliced": harp.jit(lambda x, w: x[1:, 1:-1] @ w[1:-1]),
    "same row": harp.jit(lambda x, w: hnp.broadcast_to(x[0], x.shape) @ w),
    "every other": harp.jit(lambda x, w: x[::2] @ w),
}


def placed(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, start: int) -> np.ndarray:
    """Random numbers in memory that starts `start` elements behind a place for a vector."""
    count, itemsize = int(np.prod(shape)), np.dtype(dtype).itemsize
    room = np.empty(count + 128, dtype)
    first = -room.ctypes.data % 64 // itemsize + start
    found = room[first : first + count].reshape(shape)
    found[...] = rng.standard_normal(shape)
    return found


def check(found: object, x: np.ndarray, w: np.ndarray) -> None:
    exact = x.astype("f8") @ w.astype("f8")
    bound = np.abs(x).astype("f8") @ np.abs(w).astype("f8")
    assert (np.abs(np.asarray(found) - exact) <= (x.shape[1] + 2) * np.finfo(x.dtype).eps * bound).all()


@settings(max_examples=80)
@given(st.sampled_from(DTYPES), ROWS, DEPTHS, st.integers(0, 9))
def test_sums_of_ragged_sizes_and_places(dtype, rows, depth, start):
    rng = np.random.default_rng(rows + depth)
    x, w = placed(rng, (rows, depth), dtype, start), placed(rng, (depth, 1), dtype, 9 - start)
    found = np.asarray(column(x, w))
    check(found, x, w)
    np.testing.assert_array_equal(np.asarray(row(w.T.copy(), x))[0], found[:, 0])
    assert column.compilations <= 2 and row.compilations <= 2, "one for each dtype"


@settings(max_examples=40)
@given(st.sampled_from(DTYPES), ROWS, DEPTHS)
def test_the_bits_are_those_of_one_column_among_many(dtype, rows, depth):
    rng = np.random.default_rng(rows + depth)
    x, w = placed(rng, (rows, depth), dtype, 3), placed(rng, (depth, 5), dtype, 0)
    whole = np.asarray(column(x, w))
    for at in (0, 4):
        np.testing.assert_array_equal(np.asarray(column(x, w[:, at : at + 1])), whole[:, at : at + 1])
    for at in {0, rows // 2, max(rows - 1, 0)}:
        np.testing.assert_array_equal(np.asarray(column(x[at : at + 1], w)), whole[at : at + 1])


@settings(max_examples=40)
@given(st.sampled_from(sorted(views)), st.sampled_from(DTYPES), ROWS, DEPTHS)
def test_views(name, dtype, rows, depth):
    rng = np.random.default_rng(rows + depth)
    x, w = placed(rng, (rows + 2, depth + 2), dtype, 0), placed(rng, (depth + 2, 1), dtype, 0)
    taken = {
        "flipped": (x[::-1], w), "sliced": (x[1:, 1:-1], w[1:-1]),
        "same row": (np.broadcast_to(x[0], x.shape), w), "every other": (x[::2], w),
    }  # fmt: skip
    check(views[name](x, w), *taken[name])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_far_apart_and_batches(dtype):
    """Distances that are powers of two, at which a cache has few lines for them; one vector for all of a batch."""
    rng = np.random.default_rng(0)
    for rows, depth in product((64, 70), (512, 1024)):
        x, w = placed(rng, (rows, depth), dtype, 2), placed(rng, (depth, 1), dtype, 0)
        check(column(x, w), x, w)
    f = harp.jit(lambda x, w: x @ w)
    x, w = rng.standard_normal((3, 33, 70)).astype(dtype), rng.standard_normal((70, 1)).astype(dtype)
    for k in range(3):
        np.testing.assert_array_equal(np.asarray(f(x, w))[k], np.asarray(column(x[k], w)))


def test_infinities_and_what_stands_beside_a_row():
    """Of what is behind a row or beside a column nothing gets into its sum."""
    x, w = np.zeros((40, 19), np.float32), np.full((19, 1), -1, np.float32)
    x[3, 2], x[5, 18], x[6, 0], x[39, 0] = np.inf, np.nan, np.nan, -np.inf
    found = np.asarray(column(x, w))[:, 0]
    assert found[3] == -np.inf and np.isnan(found[[5, 6]]).all() and found[39] == np.inf
    assert not np.delete(found, [3, 5, 6, 39]).any()


def test_it_is_one_call_of_a_shared_function():
    """With `x @ w.T` either factor may be the vector."""
    for f in (column, harp.jit(lambda a, b: a @ b.T)):
        source = f.lower(np.ones((7, 7), np.float32), np.ones((7, 7), np.float32)).source
        assert source.count("harp_gemm_panel_f32") == 1


def test_of_few_elements_and_none():
    for rows, depth in ((1, 0), (3, 0), (1, 1), (2, 40)):
        x, w = np.ones((rows, depth)), np.ones((depth, 1))
        np.testing.assert_array_equal(np.asarray(column(x, w)), np.full((rows, 1), float(depth)))
