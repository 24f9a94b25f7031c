"""Norms: derivatives against differences, and at the points where there is none, JAX's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from differences import slope

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, ShapeError

INF = float("inf")
ORDERS = [0, 1, 2, 3, 2.5, -1, -2, INF, -INF]


@pytest.mark.parametrize("ord", ORDERS)
def test_gradient_of_a_vector_norm(ord):
    x = np.array([[3.0, -4.0, 0.5], [1.25, 2.0, -0.75]])
    ours = harp.grad(lambda x: hnp.linalg.vector_norm(x, ord=ord))
    np.testing.assert_allclose(ours(x), slope(lambda x: np.linalg.vector_norm(x, ord=ord), x), atol=1e-7)
    rows = harp.grad(lambda x: hnp.sum(hnp.linalg.vector_norm(x, axis=1, ord=ord) ** 2))
    np.testing.assert_allclose(
        rows(x), slope(lambda x: np.sum(np.linalg.vector_norm(x, axis=1, ord=ord) ** 2), x), atol=1e-6
    )


@pytest.mark.parametrize("ord", ["fro", 1, -1, INF, -INF])
def test_gradient_of_a_matrix_norm(ord):
    x = np.array([[3.0, -4.0, 0.5], [1.25, 2.0, -0.75]])
    ours = harp.grad(lambda x: hnp.linalg.matrix_norm(x, ord=ord))
    np.testing.assert_allclose(ours(x), slope(lambda x: np.linalg.matrix_norm(x, ord=ord), x), atol=1e-7)


def test_second_order():
    x = np.array([3.0, -4.0, 0.5])
    one = harp.grad(lambda x: hnp.linalg.vector_norm(x))
    for k in range(3):
        two = harp.grad(lambda x, k=k: one(x)[k])(x)
        np.testing.assert_allclose(two, slope(lambda x, k=k: (x / np.linalg.norm(x))[k], x), atol=1e-7)


@pytest.mark.parametrize("build", [hnp.linalg.norm, hnp.std])
@pytest.mark.parametrize(
    ("dtype", "powers"), [("f4", (-110, -90, -50, -44, 52, 60, 110)), ("f8", (-900, -305, 295, 310))]
)
def test_derivatives_do_not_leave_the_range_where_the_norm_does_not(build, dtype, powers):
    """The first one is the same for all multiples of a vector, the second one goes with their inverses."""
    x = np.array([3.0, 4.0, 9.0])
    center, count = (x.mean(), 3) if build is hnp.std else (0, 1)
    root = np.sqrt(np.sum((x - center) ** 2) / count)
    unit = (x - center) / root / count
    second = ((np.eye(3) - (center > 0) / 3) / count - np.outer(unit, unit)) / root
    one, two = harp.jit(harp.grad(build)), harp.jit(harp.hessian(build))
    for power in powers:
        y = np.ldexp(x, power).astype(dtype)
        np.testing.assert_allclose(one(y), unit, rtol=1e-5, atol=1e-6, err_msg=str(power))
        found = np.ldexp(np.asarray(two(y), np.float64), power)
        np.testing.assert_allclose(found, second, rtol=1e-4, atol=1e-5, err_msg=str(power))


@pytest.mark.parametrize("power", [-200, 200, -318])
@pytest.mark.parametrize("ord", [2, 1, 3, -2, 0.5, 100.0, INF])
def test_norms_beside_overflow_and_underflow(ord, power):
    """The norm scales with the vector, and its derivative does not: these of (3, 4) are what they are measured by."""
    small = np.array([3.0, 4.0])
    x = small * 10.0**power
    value = harp.jit(lambda v: hnp.linalg.vector_norm(v, ord=ord))
    slope_of = harp.jit(harp.grad(lambda v: hnp.linalg.vector_norm(v, ord=ord)))
    tolerance = 1e-14 if power > -308 else 1e-4  # denormal numbers have few digits
    np.testing.assert_allclose(value(x), np.linalg.vector_norm(small, ord=ord) * 10.0**power, rtol=tolerance)
    np.testing.assert_allclose(
        slope_of(x), slope(lambda v: np.linalg.vector_norm(v, ord=ord), small), rtol=max(tolerance, 1e-8), atol=1e-9
    )


def test_rows_are_scaled_one_by_one():
    x = np.array([[3e-200, 4e-200], [3.0, 4.0], [3e200, 4e200], [0.0, 0.0]])
    expected = [5e-200, 5.0, 5e200, 0.0]
    for keepdims in (False, True):
        norm = harp.jit(lambda x, keepdims=keepdims: hnp.linalg.norm(x, axis=1, keepdims=keepdims))
        np.testing.assert_allclose(norm(x), np.reshape(expected, (4, 1) if keepdims else 4), rtol=1e-15)
    np.testing.assert_allclose(harp.vmap(hnp.linalg.norm)(x), expected, rtol=1e-15)
    rows = harp.jit(harp.grad(lambda x: hnp.sum(hnp.linalg.norm(x, axis=1))))(x)
    np.testing.assert_allclose(rows, [[0.6, 0.8]] * 3 + [[np.nan, np.nan]], rtol=1e-15)
    square = np.diag([3e200, 4e200])
    np.testing.assert_allclose(hnp.linalg.norm(square), 5e200)
    np.testing.assert_allclose(harp.grad(hnp.linalg.norm)(square), np.diag([0.6, 0.8]), rtol=1e-15)
    np.testing.assert_allclose(hnp.linalg.norm(np.array([3e200j, 4e200])), 5e200)
    np.testing.assert_allclose(hnp.linalg.norm(np.array([3e-30, 4e30], "f4")), 4e30, rtol=1e-6)
    np.testing.assert_array_equal(hnp.linalg.norm(np.array([300, 400], "f2")), np.float16(500))


def test_a_norm_in_the_safe_range_has_the_bits_of_the_plain_formula():
    for dtype in ("f4", "f8"):
        x = np.random.default_rng(1).normal(size=(7, 300)).astype(dtype)
        plain = harp.jit(lambda x: hnp.sqrt(hnp.sum(x * x, axis=1)))
        np.testing.assert_array_equal(harp.jit(lambda x: hnp.linalg.norm(x, axis=1))(x), plain(x))


# What jax.grad gives; for inf and -inf where the derivative of a magnitude at zero is 1.
AT_ZERO = {0: 0.0, 2: np.nan, INF: 1 / 6, -INF: 1 / 3}


@pytest.mark.parametrize("ord", AT_ZERO)
def test_conventions_at_zero(ord):
    gradient = np.asarray(harp.grad(lambda x: hnp.linalg.vector_norm(x, ord=ord))(np.zeros(3)))
    if ord in (INF, -INF):  # magnitude has the derivative 0 or 1 at zero; what is shared is the same either way
        assert set(gradient.tolist()) <= {0.0, AT_ZERO[ord]} and len(set(gradient.tolist())) == 1
    else:
        np.testing.assert_array_equal(gradient, np.full(3, AT_ZERO[ord]))


def test_conventions_at_ties():
    x = np.array([3.0, -3.0, 1.0])
    np.testing.assert_allclose(harp.grad(lambda x: hnp.linalg.vector_norm(x, ord=INF))(x), [0.5, -0.5, 0.0])
    zero = np.zeros((2, 2))
    assert np.isnan(np.asarray(harp.grad(lambda x: hnp.linalg.matrix_norm(x))(zero))).all()
    square = np.array([[1.0, -2.0], [3.0, 0.0]])
    rows = np.asarray(harp.grad(lambda x: hnp.linalg.matrix_norm(x, ord=INF))(square))
    np.testing.assert_allclose(rows[:, 0], [0.5, 0.5])
    np.testing.assert_allclose(rows[0, 1], -0.5)


def test_dtypes_and_special_values():
    for dtype in ("int8", "uint64", "bool", "float64"):
        for ord in ORDERS:
            x = np.array([1, 0, 1], dtype)
            found = hnp.linalg.vector_norm(hnp.asarray(x), ord=ord)
            with np.errstate(divide="ignore"):
                np.testing.assert_allclose(found, np.linalg.vector_norm(x.astype("float64"), ord=ord))
            assert found.dtype == np.float64
    special = np.array([[0.0, np.nan, INF], [3.0, 4.0, -INF], [3.0, 4.0, 0.0]])
    for ord in ORDERS:
        with np.errstate(divide="ignore"):
            expected = np.linalg.vector_norm(special, axis=1, ord=ord)
        np.testing.assert_allclose(hnp.linalg.vector_norm(special, axis=1, ord=ord), expected)
        empty = np.zeros((2, 0))
        if ord == -INF:
            with pytest.raises(ShapeError):
                hnp.linalg.vector_norm(empty, axis=1, ord=ord)
        else:
            expected = [INF if ord < 0 else 0.0] * 2
            np.testing.assert_array_equal(hnp.linalg.vector_norm(empty, axis=1, ord=ord), expected)
    for ord in (1, INF, "fro"):
        for shape in ((0, 3), (3, 0), (0, 0)):
            assert float(hnp.linalg.matrix_norm(np.zeros(shape), ord=ord)) == 0.0


def test_errors():
    x = np.ones((2, 2))
    for call, error, match in (
        (lambda: hnp.linalg.vector_norm(x, ord="fro"), ArgumentError, "order of a vector norm"),
        (lambda: hnp.linalg.vector_norm(x, ord=float("nan")), ArgumentError, "order of a vector norm"),
        (lambda: hnp.linalg.vector_norm(x, axis=2), AxisError, "axis 2"),
        (lambda: hnp.linalg.matrix_norm(x, ord=3), ArgumentError, "'fro', 'nuc', 1, 2"),
        (lambda: hnp.linalg.matrix_norm(x, ord="no"), ArgumentError, "'fro', 'nuc', 1, 2"),
        (lambda: hnp.linalg.matrix_norm(x[0]), ShapeError, "two axes"),
    ):
        with pytest.raises(error, match=match) as caught:
            call()
        assert __file__ in str(caught.value)


NORMS = [
    ((3, 4), {}),
    ((5,), {}),
    ((2, 3, 4), {}),
    ((2, 3, 4), {"axis": 1}),
    ((2, 3, 4), {"axis": (0, 2)}),
    *(((5,), {"ord": ord}) for ord in ORDERS),
    *(((3, 4), {"ord": ord}) for ord in ("fro", 1, -1, INF, -INF)),
    *(((2, 3, 4), {"ord": ord, "axis": -2}) for ord in (1, 3, INF)),
    *(((2, 3, 4), {"ord": ord, "axis": axis}) for ord in ("fro", 1, -INF) for axis in ((0, 2), (-1, 0), (2, 1))),
]


@pytest.mark.parametrize(("shape", "options"), NORMS)
def test_norm_is_numpys(shape, options):
    x = np.random.default_rng(5).normal(size=shape)
    both = lambda np, x: [np.linalg.norm(x, keepdims=keepdims, **options) for keepdims in (False, True)]
    ours = lambda x: both(hnp, x)
    for run in (ours, harp.jit(ours)):
        for found, expected in zip(run(x), both(np, x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14, strict=True)
    total = lambda x: np.sum(np.linalg.norm(x, **options) ** 2)
    gradient = harp.jit(harp.grad(lambda x: hnp.sum(hnp.linalg.norm(x, **options) ** 2)))
    np.testing.assert_allclose(gradient(x), slope(total, x), atol=1e-6)
    batch = np.random.default_rng(6).normal(size=(3, *shape))
    found = harp.vmap(lambda x: hnp.linalg.norm(x, **options))(batch)
    np.testing.assert_allclose(found, [np.linalg.norm(part, **options) for part in batch], rtol=1e-14)


def test_norm_of_other_dtypes_sizes_and_functions():
    assert hnp.linalg.norm(np.array([3, 4])).dtype == np.float64
    assert hnp.linalg.norm(np.array([3, 4], np.float32)).dtype == np.float32
    np.testing.assert_allclose(hnp.linalg.norm(np.array([3.0, 4.0j])), 5.0)
    of_numpy = harp.jit(lambda x: np.linalg.norm(x, axis=1))
    for shape in ((2, 3), (0, 4), (5, 1), (1, 0)):
        np.testing.assert_allclose(of_numpy(np.ones(shape)), np.linalg.norm(np.ones(shape), axis=1), strict=True)
    assert of_numpy.compilations == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hnp.linalg.norm(np.ones((2, 2)), 3), ArgumentError, "the order of a matrix norm"),
        (lambda: hnp.linalg.norm(np.ones((2, 2, 2)), 1), ShapeError, "a vector or a matrix, not 3 axes"),
        (lambda: hnp.linalg.norm(np.ones((2, 2, 2)), 1, (0, 1, 2)), ShapeError, "one axis, or the two of matrices"),
        (lambda: hnp.linalg.norm(np.ones(2), axis=1), AxisError, "axis 1 is out of range"),
    ],
)
def test_what_norm_does_not_take(call, error, message):
    with pytest.raises(error, match=message):
        call()
