"""Gradients of the functions of `harp.numpy` that are composed, and of all of them through `grad`, twice."""

from __future__ import annotations

import math

import numpy as np
import pytest

import harp
import harp.numpy as hnp

UNARY = {
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.8, 0.8)),
    **dict.fromkeys(("atan", "asinh", "sinh", "cosh", "sinc", "deg2rad", "rad2deg", "nan_to_num"), (-2.0, 2.0)),
    **dict.fromkeys(
        ("exp", "exp2", "expm1", "sin", "cos", "tan", "tanh", "square", "sigmoid", "softplus"), (-1.2, 1.2)
    ),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "cbrt"), (0.4, 3.0)),
    "acosh": (1.2, 4.0),
    "erf": (-2.0, 2.0),
    "erfc": (-2.0, 3.0),
    "erfinv": (-0.8, 0.8),
}
BINARY = ("atan2", "hypot", "copysign", "logaddexp", "logaddexp2", "fmod", "remainder", "maximum", "minimum", "pow")


def named(name):
    return getattr(hnp.special if name.startswith("erf") else hnp, name)


def differences(f, x, step=1e-5):
    return (np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * step)


@harp.jit
def first_of_unary(x):
    return {name: harp.grad(lambda x, name=name: hnp.sum(named(name)(x)))(x) for name in UNARY}


@harp.jit
def second_of_unary(x):
    def slope(name):
        return harp.grad(lambda x: hnp.sum(named(name)(x)))

    return {name: harp.grad(lambda x, name=name: hnp.sum(slope(name)(x)))(x) for name in UNARY}


def test_once_and_twice_of_one_argument():
    rng = np.random.default_rng(0)
    for name, (low, high) in UNARY.items():
        x = rng.uniform(low, high, 11)
        first, second = first_of_unary(x)[name], second_of_unary(x)[name]
        np.testing.assert_allclose(first, differences(named(name), x), rtol=2e-7, atol=1e-8, err_msg=name)
        slopes = differences(lambda x, name=name: first_of_unary(x)[name], x)
        np.testing.assert_allclose(second, slopes, rtol=2e-7, atol=1e-8, err_msg=name)


@harp.jit
def of_binary(x, y):
    def pair(name):
        return harp.grad(lambda x, y: hnp.sum(named(name)(x, y)), argnums=(0, 1))

    def mixed(name):
        return harp.grad(lambda x, y: hnp.sum(pair(name)(x, y)[0] + 2 * pair(name)(x, y)[1]), argnums=(0, 1))

    return {name: (pair(name)(x, y), mixed(name)(x, y)) for name in BINARY}


def test_once_and_twice_of_two_arguments():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.3, 3, 11), rng.uniform(0.3, 3, 11)
    for name, (first, second) in of_binary(x, y).items():
        f = named(name)
        expected = differences(lambda x, f=f: f(x, y), x), differences(lambda y, f=f: f(x, y), y)
        np.testing.assert_allclose(first, expected, rtol=1e-6, atol=1e-8, err_msg=name)

        def slopes(x, y, name=name):
            by_x, by_y = of_binary(x, y)[name][0]
            return np.asarray(by_x) + 2 * np.asarray(by_y)

        wanted = differences(lambda x, s=slopes: s(x, y), x), differences(lambda y, s=slopes: s(x, y), y)
        np.testing.assert_allclose(second, wanted, rtol=1e-6, atol=1e-7, err_msg=name)


INF, NAN = math.inf, math.nan
CONVENTIONS = [
    # function, point, gradient: those of JAX where it has one that is not NaN
    ("maximum", (1.0, 1.0), (0.5, 0.5)),
    ("minimum", (-0.0, 0.0), (0.5, 0.5)),
    ("logaddexp", (1.0, 1.0), (0.5, 0.5)),
    ("logaddexp", (-INF, 0.0), (0.0, 1.0)),
    ("logaddexp", (INF, 1.0), (1.0, 0.0)),
    ("logaddexp", (2000.0, 0.0), (1.0, 0.0)),
    ("logaddexp", (-INF, -INF), (0.5, 0.5)),
    ("logaddexp2", (INF, INF), (0.5, 0.5)),
    ("logaddexp", (INF, -INF), (1.0, 0.0)),
    ("atan2", (0.0, 0.0), (NAN, NAN)),
    ("hypot", (0.0, 0.0), (0.5, 0.5)),
    ("copysign", (0.0, -1.0), (-1.0, 0.0)),
    ("fmod", (5.5, 2.0), (1.0, -2.0)),
    ("fmod", (-5.5, 2.0), (1.0, 2.0)),
    ("fmod", (0.0, 2.0), (1.0, 0.0)),
    ("remainder", (-5.5, 2.0), (1.0, 3.0)),
    ("heaviside", (0.0, 0.5), (0.0, 1.0)),
    ("pow", (0.0, 2.0), (0.0, 0.0)),
    ("pow", (0.0, 0.5), (INF, 0.0)),
    ("pow", (0.0, 0.0), (0.0, 0.0)),
    ("pow", (-2.0, 3.0), (12.0, NAN)),
    ("abs", (0.0,), (0.0,)),
    ("sign", (0.0,), (0.0,)),
    ("sqrt", (0.0,), (INF,)),
    ("cbrt", (0.0,), (INF,)),
    ("sinc", (0.0,), (0.0,)),
    ("asin", (1.0,), (INF,)),
    ("acosh", (1.0,), (INF,)),
    ("clip", (1.0, 1.0, 2.0), (0.5, 0.5, 0.0)),
    ("nan_to_num", (NAN,), (0.0,)),
    ("nan_to_num", (2.0,), (1.0,)),
    ("round", (0.5,), (0.0,)),
]


@pytest.mark.parametrize(("name", "point", "expected"), CONVENTIONS)
def test_conventions(name, point, expected):
    gradients = harp.grad(named(name), argnums=tuple(range(len(point))))(*map(np.float64, point))
    np.testing.assert_allclose([float(g) for g in gradients], expected, rtol=1e-14)


def test_second_derivatives_where_a_formula_changes():
    def twice(f):
        return harp.grad(harp.grad(f))

    np.testing.assert_allclose(twice(lambda x: hnp.logaddexp(x, 1.0))(np.float64(1.0)), 0.25, rtol=1e-14)
    np.testing.assert_allclose(twice(lambda x: hnp.logaddexp(1.0, x))(np.float64(1.0)), 0.25, rtol=1e-14)
    np.testing.assert_allclose(twice(hnp.sinc)(np.float64(0.0)), -(math.pi**2) / 3, rtol=1e-14)
    np.testing.assert_allclose(twice(hnp.sinc)(np.float64(1e-5)), -(math.pi**2) / 3, rtol=1e-8)


def test_where_keeps_infinities_of_the_other_branch_out():
    """What `where` does not choose gets a zero; what is inside must be finite for the product to be zero."""
    x = np.array([0.0, 4.0])
    bad = harp.grad(lambda x: hnp.sum(hnp.where(x > 0, hnp.sqrt(x), 0.0)))(x)
    np.testing.assert_array_equal(np.isnan(np.asarray(bad)), [True, False])
    good = harp.grad(lambda x: hnp.sum(hnp.where(x > 0, hnp.sqrt(hnp.where(x > 0, x, 1.0)), 0.0)))(x)
    np.testing.assert_allclose(np.asarray(good), [0.0, 0.25])
    masked = harp.grad(lambda x: hnp.sum(hnp.where(x > 0, x, -INF)[1:]))(x)
    np.testing.assert_allclose(np.asarray(masked), [0.0, 1.0])
