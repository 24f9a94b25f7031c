"""Elementwise work on narrow rows, with operands by row and by column."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.lower.rewrite.packed_rows import NARROW
from harp.lower.target import Target
from harp.lower.verify.differential_check import check_program
from harp.trace.sizes.signature import canonical

SHAPES = [(0, 4), (1, 1), (5, 0), (7, 1), (63, 3), (64, 2), (65, 4), (511, 8), (512, 5), (513, 7), (600, 9), (1100, 4)]


def scaled(x, w, g):
    return hnp.tanh(x * w + g)


def arguments(n, d, dtype=np.float64):
    rng = np.random.default_rng(n + d)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in [(n, d), (d,), (n, 1)])


def is_laid_out(function, *given) -> bool:
    loops = harp.jit(function).lower(*given).loops
    return "row0" in loops or "column0" in loops


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_all_shapes(dtype):
    f = harp.jit(lambda x, w, g: x * w + g)
    for n, d in SHAPES:
        x, w, g = arguments(n, d, np.float64 if dtype == np.int8 else dtype)
        x, w, g = ((10 * a).astype(dtype) for a in (x, w, g))
        expected = (x.astype(np.float64) * w + g).astype(dtype) if dtype != np.int8 else x * w + g
        np.testing.assert_allclose(np.asarray(f(x, w, g)), expected, rtol=1e-5, atol=1e-4)
    assert f.compilations <= 2  # where an axis of g is 1, and where those of x and g are
    assert is_laid_out(lambda x, w, g: x * w + g, *(a.astype(dtype) for a in arguments(3, 4)))


def test_by_rows_only_and_by_columns_only():
    for n, d in SHAPES:
        x, w, g = arguments(n, d)
        np.testing.assert_allclose(np.asarray(ROWS(x, g)), x / g)
        np.testing.assert_allclose(np.asarray(COLUMNS(x, w)), np.where(x > 0, x, w))


ROWS = harp.jit(lambda x, g: x / g)
COLUMNS = harp.jit(lambda x, w: hnp.where(x > 0, x, w))


def test_three_axes_and_several_results():
    f = harp.jit(lambda x, w, b: (x * w, x * w - b))
    for n, m, d in [(0, 2, 3), (1, 1, 1), (3, 70, 4), (2, 5, 9)]:
        rng = np.random.default_rng(n)
        x, w, b = rng.normal(size=(n, m, d)), rng.normal(size=(m, 1)), rng.normal(size=d)
        first, second = f(x, w, b)
        np.testing.assert_allclose(np.asarray(first), x * w)
        np.testing.assert_allclose(np.asarray(second), x * w - b, atol=1e-14)


def test_gradients_and_views():
    f = harp.grad(lambda x, w, g: hnp.sum(scaled(x[::-1, ::-1], w, g)))
    x, w, g = arguments(300, 3)
    expected = (1 - np.tanh(x[::-1, ::-1] * w + g) ** 2) * w
    np.testing.assert_allclose(np.asarray(harp.jit(f)(x, w, g)), expected[::-1, ::-1], atol=1e-12)


def test_a_row_has_the_same_bits_in_every_batch():
    f = harp.jit(scaled)
    for d in (1, 3, NARROW, NARROW + 1):
        x, w, g = arguments(1500, d, np.float32)
        whole = np.asarray(f(x, w, g))
        for start, stop in ((0, 1), (63, 66), (500, 1100), (7, 7)):
            np.testing.assert_array_equal(np.asarray(f(x[start:stop], w, g[start:stop])), whole[start:stop])
        for threads in (1, 3):
            np.testing.assert_array_equal(np.asarray(harp.jit(scaled, threads=threads)(x, w, g)), whole)


def test_donated_memory_is_read_before_it_is_written():
    f = harp.jit(lambda x, w, g: x * w + g, donate_argnums=0)
    x, w, g = arguments(1000, 4)
    np.testing.assert_allclose(np.asarray(f(hnp.array(x), w, g)), x * w + g)


def test_what_is_wide_for_all_sizes_stays_as_it_is():
    x, w, g = arguments(3, 4)
    assert is_laid_out(scaled, x, w, g)
    wide = harp.f64["n", 30], harp.f64[30], harp.f64["n", 1]
    assert "row0" not in harp.jit(scaled, signature=wide).lower(*arguments(3, 30)).loops
    assert not is_laid_out(lambda x, w: x.T * w, x, np.ones(3)), "not along memory"


@pytest.mark.parametrize("d", [1, 3, NARROW, 40])
def test_rows_that_the_loop_chooses(d):
    """Which row is read depends on the row and the column, though the index has no more than a variable."""
    f = harp.jit(lambda x, i, w: hnp.take_along_axis(x, i * 2 // 2, axis=0) * w)
    for n in (1, 10, 700):
        rng = np.random.default_rng(n)
        x, i, w = rng.random((n, d)), rng.integers(0, n, (n, d)), rng.random(d)
        np.testing.assert_array_equal(np.asarray(f(x, i, w)), np.take_along_axis(x, i, 0) * w)


@pytest.mark.parametrize("rows", [0, 1, 2, 4, 5])
def test_of_no_rows_nothing_is_laid_out(rows):
    """One row is left over, or none: then there is no element to read for it."""
    gradient = harp.grad(lambda x: hnp.sum(x[::2] * hnp.sin(x[::2])))
    x = np.random.default_rng(0).normal(size=(rows, 3))
    expected = np.zeros_like(x)
    expected[::2] = np.sin(x[::2]) + x[::2] * np.cos(x[::2])
    np.testing.assert_allclose(np.asarray(harp.jit(gradient)(x)), expected)
    check_program(canonical(harp.trace(gradient, x)), lower(canonical(harp.trace(gradient, x)), Target()).program)
