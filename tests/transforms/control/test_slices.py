"""Slices whose place is the number of a loop, as `x[i : i + k]`: read and changed, beside NumPy, in one program."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ConcretizationError, IndexOutOfRangeError

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def windows(x, k, loop):
    count, size = x.shape[0] - k.shape[0] + 1, k.shape[0]
    return loop(0, count, lambda i, c: c.at[i].set(hnp.sum(x[i : i + size] * k)), hnp.zeros_like(x))


def neighbours(x, k, loop):
    return loop(1, x.shape[0] - 1, lambda i, c: c.at[i - 1 : i + 1].add(x[i - 1 : i + 2][::2] * k[0]), x)


def blocks(x, k, loop):
    return loop(0, x.shape[0] // 4, lambda b, c: c.at[b * 4 : (b + 1) * 4].set(x[4 * b : 4 * b + 4] * k[0] * b), x)


def triangle(x, k, loop):
    def row(i, c):
        return loop(0, i, lambda j, c: c.at[i : i + 1].add(x[j : j + 1] * hnp.sum(x[i : i + 1])), c)

    return loop(0, x.shape[0], row, x)


def in_python(first, last, step, carry):
    for i in range(first, last):
        carry = step(i, carry)
    return carry


FUNCTIONS = {f.__name__: f for f in (windows, neighbours, blocks, triangle)}
SIZES = ((9, 3), (4, 4), (1, 1), (0, 1), (2, 5), (33, 2), (5, 1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_reads_and_changes_slices_of_all_sizes(name):
    """Where the loop does not run, the slice would be outside, and nobody minds."""
    function = FUNCTIONS[name]
    compiled = harp.jit(lambda x, k: function(x, k, harp.fori_loop))
    for n, k in SIZES:
        x, window = normal(n), normal(k)
        expected = function(hnp.asarray(x), window, in_python)
        npt.assert_allclose(np.asarray(compiled(x, window)), np.asarray(expected), rtol=1e-12)
    assert compiled.compilations == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_batches(name):
    function = FUNCTIONS[name]

    def loss(x, k, loop):
        return hnp.sum(hnp.sin(function(x, k, loop)))

    xs, k = normal(3, 9), normal(3)
    expected = [np.asarray(harp.grad(lambda x: loss(x, k, in_python))(x)) for x in xs]
    found = harp.jit(harp.vmap(harp.grad(lambda x: loss(x, k, harp.fori_loop))))(xs)
    npt.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)


def test_slices_of_several_axes_keep_their_order():
    """Beside whole axes, known slices, integers and other numbers of loops."""

    def step(i, c, a):
        c = c.at[i : i + 2, :, 1:3].add(a[i : i + 2, :, :2])
        c = c.at[..., i : i + 2].multiply(2.0)
        c = c.at[i, 0, i + 1 : i + 2].set(a[i : i + 1, 1, i])
        return c + hnp.sum(a[i : i + 2, :, i : i + 2] * hnp.arange(4.0).reshape(2, 1, 2)) + a[0, -1:, i : i + 2].sum()

    compiled = harp.jit(lambda a: harp.fori_loop(0, a.shape[0] - 1, lambda i, c: step(i, c, a), a))
    for n in (4, 3, 7):
        a = normal(n, 2, n)
        whole = hnp.asarray(a)
        expected = in_python(0, n - 1, lambda i, c, whole=whole: step(i, c, whole), whole)
        npt.assert_allclose(np.asarray(compiled(a)), np.asarray(expected), rtol=1e-11)
    assert compiled.compilations == 1


def test_columns_change_in_place():
    """A step writes what it changes, and copies no matrix, though it reads another column."""

    def step(i, c, b):
        return lax.dynamic_update_slice_in_dim(c, (b * c[:, 0])[:, None], i, 1)

    compiled = harp.jit(lambda a, b: harp.fori_loop(0, a.shape[1] - 1, lambda i, c: step(i, c, b), a))
    a, b = normal(20, 30), normal(20)
    expected = a.copy()
    for i in range(29):
        expected[:, i] = b * expected[:, 0]
    npt.assert_allclose(np.asarray(compiled(a, b)), expected)
    assert compiled.lower(a, b).cost().bytes_written.degree == 2


def test_rows_change_in_place():
    compiled = harp.jit(lambda a: harp.fori_loop(0, a.shape[0] - 1, lambda i, c: c.at[i : i + 1].set(c[:1] * 2), a))
    a = normal(20, 30)
    expected = a.copy()
    for i in range(19):
        expected[i] = expected[0] * 2
    npt.assert_allclose(np.asarray(compiled(a)), expected)
    assert compiled.lower(a).memory().scratch < a.nbytes


@pytest.mark.parametrize("part", [lambda x, i: x[i : i + 2], lambda x, i: x[i - 1 : i + 1]])
def test_a_slice_that_would_be_cut_off_is_an_error(part):
    """NumPy's would have fewer elements in the first or last step."""
    compiled = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c + hnp.sum(part(x, i)), 0.0))
    with pytest.raises(IndexOutOfRangeError, match=r"inside axis 0 of size .* = 3 in each step.*dynamic_slice_in_dim"):
        compiled(normal(3))
    assert compiled(normal(0)) == 0


@pytest.mark.parametrize("part", [lambda x, i: x[:i], lambda x, i: x[i:], lambda x, i: x[i : 2 * i]])
def test_a_slice_of_another_length_in_each_step_is_an_error(part):
    with pytest.raises(ConcretizationError, match="the length of a slice must be known"):
        harp.jit(lambda x: harp.fori_loop(0, 2, lambda i, c: c + hnp.sum(part(x, i)), 0.0))(normal(3))


def test_where_data_says_the_place_the_length_is_not_known():
    with pytest.raises(ConcretizationError, match="dynamic_slice_in_dim"):
        harp.jit(lambda x, k: x[k : k + 2])(normal(3), 1)
    with pytest.raises(ConcretizationError, match="dynamic_slice_in_dim"):
        harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c + hnp.sum(x[i : i + 2]), 0.0))(normal(3), 1)


def test_a_slice_apart_from_a_number():
    """x[i, :, i : i + 2] has the axes of x in order, though a number stands before another slice."""
    x = np.arange(60.0).reshape(3, 4, 5)
    keys = {
        "number first": lambda i: (i, slice(None), slice(i, i + 2)),
        "constant first": lambda i: (0, slice(None), slice(i, i + 2)),
        "number last": lambda i: (slice(i, i + 2), slice(None), i),
        "beside each other": lambda i: (slice(None), slice(i, i + 2), i),
    }
    for key in keys.values():
        shape = x[key(1)].shape
        weights = np.arange(float(np.prod(shape))).reshape(shape)
        found = harp.jit(lambda x, w, key=key: harp.fori_loop(0, 2, lambda i, s: s + hnp.sum(w * x[key(i)]), 0.0))
        assert float(found(x, weights)) == sum(float(np.sum(weights * x[key(k)])) for k in range(2))
        changed = harp.jit(lambda x, w, key=key: harp.fori_loop(0, 2, lambda i, x: x.at[key(i)].add(w), x))
        expected = x.copy()
        for k in range(2):
            expected[key(k)] += weights
        np.testing.assert_array_equal(np.asarray(changed(x, weights)), expected)
