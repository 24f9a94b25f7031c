"""`associative_scan` beside a loop in Python, and beside JAX's: values, derivatives, batches, one program."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ArgumentError, AxisError, CarryError, ShapeError

RNG = np.random.default_rng(0)
SIZES = (5, 0, 1, 2, 33)


def product(a, b):
    """Of matrices: the order counts."""
    return hnp.matmul(a, b)


def recurrence(a, b):
    """x -> a*x + b, one after the other."""
    return {"a": a["a"] * b["a"], "b": b["a"] * a["b"] + b["b"]}


def in_python(rows, join, reverse=False):
    """The same for a list of rows, with NumPy."""
    order = range(len(rows))[::-1] if reverse else range(len(rows))
    done, so_far = [None] * len(rows), None
    for k in order:
        so_far = done[k] = rows[k] if so_far is None else join(so_far, rows[k])
    return done


@pytest.mark.parametrize("reverse", [False, True])
def test_products_of_matrices(reverse):
    compiled = harp.jit(lambda x: harp.associative_scan(product, x, reverse=reverse))
    for size in SIZES:
        x = RNG.normal(size=(size, 3, 3)) / 1.5
        expected = np.reshape(in_python(list(x), np.matmul, reverse), x.shape)
        npt.assert_allclose(compiled(x), expected, rtol=1e-10, atol=1e-12)
        npt.assert_allclose(harp.associative_scan(product, x, reverse), expected, rtol=1e-10, atol=1e-12)
    assert compiled.compilations == 1


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_trees_along_any_axis(axis, reverse):
    def join(x, y):
        return x[0] * y[0], y[0] * x[1] + y[1]

    compiled = harp.jit(lambda x: harp.associative_scan(recurrence, x, reverse=reverse, axis=axis))
    for size in SIZES:
        shape = (size, 4) if axis == 0 else (4, size)
        x = {"a": RNG.normal(size=shape), "b": RNG.normal(size=shape)}
        rows = list(zip(np.moveaxis(x["a"], axis, 0), np.moveaxis(x["b"], axis, 0), strict=True))
        done = in_python(rows, join, reverse)
        for k, name in enumerate("ab"):
            expected = np.moveaxis(np.reshape([d[k] for d in done], (size, 4)), 0, axis)
            npt.assert_allclose(compiled(x)[name], expected, rtol=1e-10, atol=1e-12)
            npt.assert_allclose(harp.associative_scan(recurrence, x, reverse, axis)[name], expected, rtol=1e-10)
    assert compiled.compilations == 1


def test_the_function_sees_slices_of_the_axis():
    seen = []

    def add(a, b):
        seen.append((a.shape, b.shape))
        return a + b

    found = harp.associative_scan(add, np.arange(12).reshape(2, 6), axis=1)
    npt.assert_array_equal(found, np.arange(12).reshape(2, 6).cumsum(1), strict=True)
    assert {*seen} == {((2, 1), (2, 1))}


def test_dtypes_stay():
    for dtype in ("bool", "int8", "float32", "complex128"):
        x = np.ones(3, dtype)
        npt.assert_array_equal(harp.associative_scan(lambda a, b: a * b, x), x, strict=True)


def test_derivatives():
    """Of the last product of matrices, and of all others; nothing is divided, so zeros are no special points."""
    x = RNG.normal(size=(4, 2, 2))
    x[1] = 0
    weights = RNG.normal(size=x.shape)

    def total(x):
        return hnp.sum(weights * harp.associative_scan(product, x))

    gradient = harp.jit(harp.grad(total))
    direction = RNG.normal(size=x.shape)
    ends = [np.sum(weights * np.array(in_python(list(x + h * direction), np.matmul))) for h in (1e-6, -1e-6)]
    slope = (ends[0] - ends[1]) / 2e-6
    npt.assert_allclose(np.sum(np.asarray(gradient(x)) * direction), slope, rtol=1e-6)
    npt.assert_allclose(harp.jvp(total, (x,), (direction,))[1], slope, rtol=1e-6)
    twice = harp.hvp(lambda x: hnp.sum(harp.associative_scan(hnp.multiply, x)), (x[:, 0, 0],), (np.ones(4),))
    a, b, c, d = x[:, 0, 0]  # of a + ab + abc + abcd
    second = [1 + c + b + c * d + b * d + b * c, 1 + c + a + c * d + a * d + a * c]
    second += [a + b + b * d + a * d + a * b, b * c + a * c + a * b]
    npt.assert_allclose(twice, second, rtol=1e-10)


def test_gradients_of_all_lengths():
    """The last of n products: its derivative is the product of the others."""
    gradient = harp.jit(harp.grad(lambda x: hnp.sum(harp.associative_scan(hnp.multiply, x)[-1:])))
    for size in SIZES:
        x = RNG.uniform(0.5, 1.5, size=size)
        npt.assert_allclose(gradient(x), np.prod(x) / x, rtol=1e-10)
    assert gradient.compilations == 1


def test_in_a_batch():
    x = RNG.normal(size=(3, 5, 2, 2))
    found = harp.vmap(lambda x: harp.associative_scan(product, x, reverse=True))(x)
    npt.assert_allclose(found, [in_python(list(rows), np.matmul, True) for rows in x], rtol=1e-10)


def test_nothing_to_scan():
    assert harp.associative_scan(product, ()) == ()


ERRORS = [
    (lambda: harp.associative_scan(product, 1.0), AxisError, "axis 0 is out of range for an array with 0 axes"),
    (lambda: harp.associative_scan(product, (np.ones((2, 2)), np.ones(2)), axis=1), ArgumentError, "has 1 axis"),
    (lambda: harp.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3))), ShapeError, "different lengths"),
    (lambda: harp.associative_scan(lambda a, b: a > b, np.ones(2)), CarryError, "'<lambda>' is given .* as bool"),
    (lambda: harp.associative_scan(lambda a, b: (a, b), np.ones(2)), CarryError, "for the carry"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_errors_say_what_to_do(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_sizes_that_differ_are_those_of_the_elements():
    with pytest.raises(ShapeError, match=r"associative_scan of 'recurrence': elems\[0\] and elems\[1\].* 3 is not 4"):
        lax.associative_scan(recurrence, (np.ones(3), np.ones(4)))


def test_as_in_jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
    x = RNG.normal(size=(7, 3, 3))
    for reverse in (False, True):
        for size in (7, 0, 1):
            rows = x[:size]
            theirs = jax.lax.associative_scan(jax.numpy.matmul, rows, reverse=reverse)
            mine = lax.associative_scan(hnp.matmul, rows, reverse=reverse)
            npt.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
        pairs = {"a": x[:, 0], "b": x[:, 1]}
        theirs = jax.lax.associative_scan(recurrence, jax.tree.map(jax.numpy.asarray, pairs), reverse=reverse, axis=1)
        mine = lax.associative_scan(recurrence, pairs, reverse=reverse, axis=1)
        for name in "ab":
            npt.assert_allclose(mine[name], theirs[name], rtol=1e-10)
