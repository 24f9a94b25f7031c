"""Inverse and hyperbolic functions and their like against NumPy, SciPy and the tables of the array API standard."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

import harp
import harp.numpy as hnp
from harp.errors import DTypeError, ShapeError
from harp.trace.scalar import dtypes

UNARY = {
    **dict.fromkeys(("asin", "acos", "atanh"), (-1.0, 1.0)),
    **dict.fromkeys(("atan", "asinh", "cbrt", "sinc"), (-1e3, 1e3)),
    **dict.fromkeys(("sinh", "cosh"), (-80.0, 80.0)),
    "acosh": (1.0, 1e5),
    "erf": (-5.0, 5.0),
    "erfc": (-5.0, 9.0),
    "erfinv": (-1.0, 1.0),
    "deg2rad": (-1e3, 1e3),
    "rad2deg": (-1e3, 1e3),
    "signbit": (-1.0, 1.0),
}
BINARY = ("atan2", "hypot", "copysign", "nextafter", "logaddexp", "logaddexp2", "fmod", "heaviside")
OLD = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
OLD |= {"atan2": "arctan2"}
EXACT = {"copysign", "nextafter", "fmod", "heaviside", "signbit"}


def ours(name):
    return getattr(hnp.special if name.startswith("erf") else hnp, name)


def reference(name):
    """libm's erfc, for SciPy's loses digits in the tail."""
    if name.startswith("erf"):
        return scipy.special.erfinv if name == "erfinv" else np.vectorize(getattr(math, name), otypes=[float])
    return getattr(np, OLD.get(name, name))


@harp.jit
def all_unary(x):
    return {name: ours(name)(x) for name in UNARY}


@harp.jit
def all_binary(x, y):
    return {name: ours(name)(x, y) for name in BINARY}


def check(name, got, arguments, dtype):
    """Against the reference in float64 (longdouble has no scipy), within a few units in the last place."""
    got = np.asarray(got)
    if name in EXACT:
        expected = reference(name)(*arguments)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        if got.dtype.kind == "f":
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))
        return
    assert got.dtype == dtype
    with np.errstate(all="ignore"):
        expected = reference(name)(*(a.astype(np.float64) for a in arguments)).astype(dtype)
    size = np.maximum(np.abs(arguments[0]), np.abs(arguments[1])) if name.startswith("logaddexp") else 0
    size = 1.0 if name == "sinc" else size  # its phase is rounded, as in NumPy
    scale = np.abs(expected) + np.where(np.isfinite(size), size, 0)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))
    error = np.abs(got - expected, where=np.isfinite(expected), out=np.zeros_like(expected))
    allowed = 6 * np.finfo(dtype).eps * np.where(np.isfinite(scale), scale, 0)
    assert (error <= allowed + float(np.finfo(dtype).smallest_subnormal)).all(), name


def numbers(dtype, shape):
    info = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, float(info.tiny), float(info.smallest_subnormal)]
    return hn.arrays(dtype, shape, elements=st.one_of(st.sampled_from(special), st.floats(-50, 50, width=32)))


SHAPES = st.sampled_from([(0,), (1,), (7,), (33,)])


@settings(max_examples=30)
@given(st.data(), SHAPES, st.sampled_from(["float32", "float64"]), st.booleans(), st.booleans())
def test_all_of_one_argument(data, shape, dtype, compiled, reverse):
    x = data.draw(numbers(dtype, shape))
    x = x[::-1] if reverse else x
    found = all_unary(x) if compiled else {name: ours(name)(x) for name in UNARY}
    for name, got in found.items():
        check(name, got, [x], np.dtype(dtype))


@settings(max_examples=30)
@given(st.data(), SHAPES, st.sampled_from(["float32", "float64"]), st.booleans())
def test_all_of_two_arguments(data, shape, dtype, compiled):
    x, y = data.draw(numbers(dtype, shape)), data.draw(numbers(dtype, shape))
    found = all_binary(x, y) if compiled else {name: ours(name)(x, y) for name in BINARY}
    for name, got in found.items():
        check(name, got, [x, y], np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("compiled", [False, True])
def test_over_the_whole_range(dtype, compiled):
    rng = np.random.default_rng(0)
    spread = np.copysign(np.exp(rng.uniform(-80, 80, 500)), rng.normal(size=500))
    for name, (low, high) in UNARY.items():
        if name not in ("sinc", "signbit"):
            x = np.concatenate([rng.uniform(low, high, 500), np.clip(spread, low, high)]).astype(dtype)
            check(name, all_unary(x)[name] if compiled else ours(name)(x), [x], np.dtype(dtype))


INF, NAN, PI = np.inf, np.nan, np.pi
TABLE = [
    *(("acos", (x,), NAN) for x in (NAN, 1.1, -1.1, INF)),
    ("acos", (1.0,), 0.0),
    *(("acosh", (x,), y) for x, y in ((NAN, NAN), (0.9, NAN), (-INF, NAN), (1.0, 0.0), (INF, INF))),
    *(("asin", (x,), y) for x, y in ((NAN, NAN), (1.1, NAN), (-1.1, NAN), (0.0, 0.0), (-0.0, -0.0))),
    *(("asinh", (x,), x) for x in (NAN, 0.0, -0.0, INF, -INF)),
    *(("atan", (x,), y) for x, y in ((NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2))),
    *(("atanh", (x,), y) for x, y in ((NAN, NAN), (-1.1, NAN), (-1.0, -INF), (1.0, INF), (0.0, 0.0), (-0.0, -0.0))),
    *(("cosh", (x,), y) for x, y in ((NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF))),
    *(("sinh", (x,), x) for x in (NAN, 0.0, -0.0, INF, -INF)),
    *(("tanh", (x,), y) for x, y in ((NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0))),
    *(("atan2", a, NAN) for a in ((NAN, 1.0), (1.0, NAN), (NAN, NAN), (NAN, INF), (INF, NAN))),
    *(("atan2", (y, x), PI / 2) for y in (1.0, INF) for x in (0.0, -0.0)),
    *(("atan2", (-1.0, x), -PI / 2) for x in (0.0, -0.0)),
    *(("atan2", (y, x), y) for y in (0.0, -0.0) for x in (0.0, 1.0, INF)),
    *(("atan2", (y, x), np.copysign(PI, y)) for y in (0.0, -0.0) for x in (-0.0, -1.0, -INF)),
    *(("atan2", (y, INF), np.copysign(0.0, y)) for y in (1.0, -1.0)),
    *(("atan2", (y, -INF), np.copysign(PI, y)) for y in (1.0, -1.0)),
    *(("atan2", (y, x), np.copysign(PI / 2, y)) for y in (INF, -INF) for x in (1.0, -1.0)),
    *(("atan2", (y, INF), np.copysign(PI / 4, y)) for y in (INF, -INF)),
    *(("atan2", (y, -INF), np.copysign(3 * PI / 4, y)) for y in (INF, -INF)),
    *(("hypot", a, INF) for a in ((INF, NAN), (NAN, -INF), (INF, 1.0), (1e200, INF))),
    *(("hypot", a, NAN) for a in ((NAN, 1.0), (1.0, NAN), (NAN, NAN))),
    ("hypot", (3e-320, 4e-320), 5e-320),
    ("hypot", (-0.0, -0.0), 0.0),
    *(("logaddexp", a, NAN) for a in ((NAN, 1.0), (1.0, NAN), (INF, NAN), (NAN, -INF))),
    *(("logaddexp", a, INF) for a in ((INF, INF), (INF, 1.0), (-INF, INF))),
    ("logaddexp", (-INF, -INF), -INF),
    ("logaddexp", (-INF, 3.0), 3.0),
    *(("copysign", (x, y), np.copysign(x, y)) for x in (0.0, 2.0, -INF, NAN) for y in (1.0, 0.0, -0.0, -3.0)),
    *(("nextafter", a, NAN) for a in ((NAN, 1.0), (1.0, NAN))),
    ("nextafter", (0.0, -0.0), -0.0),
    ("nextafter", (INF, 0.0), np.finfo(float).max),
    ("nextafter", (np.finfo(float).max, INF), INF),
    ("nextafter", (5e-324, -1.0), 0.0),
    *(("pow", (1.0, y), 1.0) for y in (NAN, INF, 3.0)),
    *(("pow", (x, y), 1.0) for x in (NAN, INF, 0.0, -2.0) for y in (0.0, -0.0)),
    *(("pow", a, NAN) for a in ((NAN, 1.0), (2.0, NAN), (-1.5, 0.5), (-1.5, -0.5))),
    *(("pow", (x, y), INF) for x, y in ((1.1, INF), (-1.1, INF), (0.9, -INF), (-0.9, -INF), (INF, 0.5), (0.0, -INF))),
    *(("pow", (x, y), 0.0) for x, y in ((1.1, -INF), (-1.1, -INF), (0.9, INF), (-0.9, INF), (INF, -0.5), (0.0, 0.5))),
    *(("pow", (x, y), 1.0) for x in (1.0, -1.0) for y in (INF, -INF)),
    *(("pow", (-INF, y), z) for y, z in ((3.0, -INF), (2.0, INF), (0.5, INF), (-3.0, -0.0), (-2.0, 0.0), (-0.5, 0.0))),
    *(("pow", (-0.0, y), z) for y, z in ((3.0, -0.0), (2.0, 0.0), (0.5, 0.0), (-3.0, -INF), (-2.0, INF), (-0.5, INF))),
    *(("pow", (0.0, y), INF) for y in (-3.0, -2.0, -0.5)),
    *(("pow", (-1.0, y), z) for y, z in ((2.0**52 + 1, -1.0), (2.0**53 - 1, -1.0), (2.0**53, 1.0), (1e300, 1.0))),
    *(("pow", (-1.0, y), NAN) for y in (2.0**51 + 0.5, 0.5)),
    *(("erf", (x,), y) for x, y in ((NAN, NAN), (INF, 1.0), (-INF, -1.0), (-0.0, -0.0))),
    *(("erfc", (x,), y) for x, y in ((NAN, NAN), (INF, 0.0), (-INF, 2.0), (-0.0, 1.0))),
    *(("erfinv", (x,), y) for x, y in ((NAN, NAN), (1.0, INF), (-1.0, -INF), (1.1, NAN), (-INF, NAN), (-0.0, -0.0))),
    ("sinc", (0.0,), 1.0),
    ("cbrt", (-0.0,), -0.0),
    ("cbrt", (-INF,), -INF),
    ("cbrt", (-27.0,), -3.0),
    *(("fmod", a, NAN) for a in ((1.0, 0.0), (INF, 1.0), (0.0, 0.0), (NAN, 1.0), (0.0, NAN))),
    *(("fmod", (x, INF), x) for x in (0.0, -0.0, 2.5, -2.5)),
    ("fmod", (-4.0, 2.0), -0.0),
    *(("heaviside", (x, 0.5), y) for x, y in ((-INF, 0.0), (-0.0, 0.5), (5e-324, 1.0), (NAN, NAN))),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", list(dict.fromkeys(row[0] for row in TABLE)))
def test_special_values_of_the_standard(name, compiled):
    rows = [row for row in TABLE if row[0] == name]
    function = harp.jit(ours(name)) if compiled else ours(name)
    got = np.asarray(function(*(np.array(column) for column in zip(*(row[1] for row in rows), strict=True))))
    for (_, arguments, expected), value in zip(rows, got, strict=True):
        np.testing.assert_allclose(value, expected, rtol=4e-16, err_msg=f"{name}{arguments}")
        if expected == expected:
            assert np.signbit(value) == np.signbit(expected), (name, arguments)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint16"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_division_at_the_edges_is_numpy(name, dtype, compiled):
    special = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, INF, -INF, NAN, 1e30] if dtype[0] == "f" else [0, 1, 2, 7, 100, 127]
    special += [-1, -2, -100, -128] if dtype.startswith("int") else []
    a, b = (np.ravel(m) for m in np.meshgrid(np.array(special, dtype), np.array(special, dtype)))
    got = np.asarray((harp.jit(ours(name)) if compiled else ours(name))(a, b))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64", "bool"])
def test_integers_become_floats(dtype):
    x = np.array([0, 1], dtype)
    for name in ("asin", "sinh", "cbrt", "erf", "deg2rad", "sinc"):
        got = np.asarray(ours(name)(x))
        target = dtypes.inexact(dtypes.as_dtype(x.dtype)).numpy
        assert got.dtype == target
        precision = 8 * np.finfo(target).eps
        np.testing.assert_allclose(got, reference(name)(x.astype(target)), rtol=precision, atol=precision)
    assert np.asarray(hnp.hypot(x, np.float32(1))).dtype == (x.astype(dtype) + np.float32(1)).dtype
    np.testing.assert_array_equal(np.asarray(hnp.signbit(x)), [False, False])


def test_signbit_of_integers():
    np.testing.assert_array_equal(np.asarray(hnp.signbit(np.array([-3, 0, 3]))), [True, False, False])


def test_broadcasting_and_errors():
    x, y = np.ones((3, 1)), np.ones((1, 4))
    assert hnp.atan2(x, y).shape == (3, 4)
    assert hnp.hypot(2, 1.5).weak
    with pytest.raises(ShapeError):
        hnp.hypot(np.ones(3), np.ones(4))
    for function in (hnp.fmod, hnp.heaviside):
        with pytest.raises(DTypeError, match="not defined for bool"):
            function(np.array([True]), np.array([True]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_float32_rounded(dtype):
    """One or two roundings of float32's result: of what it is given and of what it gives."""
    target = dtypes.as_dtype(dtype).numpy
    x = np.array([0.5, 1.0, 0.25, -0.0, 0.7]).astype(target)
    for name in UNARY:
        wide = np.asarray(ours(name)(x.astype(np.float32)))
        for function in (ours(name), lambda x, name=name: all_unary(x)[name]):
            got = np.asarray(function(x))
            assert got.dtype == (bool if name == "signbit" else target)
            np.testing.assert_array_equal(got.astype(np.float32), wide.astype(got.dtype).astype(np.float32), name)
    with pytest.raises(DTypeError, match="nextafter is not defined for"):
        hnp.nextafter(x, x)
    kept = np.asarray(hnp.nan_to_num(np.array([np.inf, -np.inf, np.nan, 1.0]).astype(target)))
    assert kept.dtype == target and np.isfinite(kept.astype(np.float64)).all()


def test_complex_numbers():
    z = np.array([1 + 1j, 2.0, complex(np.nan, 0)])
    np.testing.assert_array_equal(np.asarray(hnp.isclose(z, z + 1e-9)), [True, True, False])
    for function in (hnp.signbit, hnp.cbrt, hnp.special.erf):
        with pytest.raises(DTypeError, match="is not defined for complex128"):
            function(z)


@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness(equal_nan):
    values = np.array([0.0, 1.0, 1.0 + 1e-6, 1.1, INF, -INF, NAN, 1e-9])
    a, b = (np.ravel(m) for m in np.meshgrid(values, values))
    expected = np.isclose(a, b, equal_nan=equal_nan)
    np.testing.assert_array_equal(np.asarray(hnp.isclose(a, b, equal_nan=equal_nan)), expected)
    compiled = harp.jit(lambda a, b: hnp.isclose(a, b, equal_nan=equal_nan))
    np.testing.assert_array_equal(np.asarray(compiled(a, b)), expected)
    assert bool(hnp.allclose(a, a, equal_nan=True)) and not bool(hnp.allclose(a, a))
    assert bool(hnp.allclose(np.array([1, 2]), np.array([1, 2]))) and bool(hnp.allclose(np.zeros(0), np.zeros(0)))
    np.testing.assert_array_equal(np.asarray(hnp.isclose(np.array([1, 3], np.uint8), 2, atol=1)), [True, True])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_nan_to_num(dtype):
    x = np.array([1, INF, -INF, NAN, -0.0] if dtype[0] == "f" else [1, 2], dtype)
    for options in ({}, {"nan": 7.0}, {"posinf": 3.0, "neginf": -4.0}):
        got = np.asarray(hnp.nan_to_num(x, **options))
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, np.nan_to_num(x, **options))


def test_clip_takes_none_and_arrays():
    x = np.array([[-3.0, 0.5, 9.0], [NAN, -0.0, 2.0]])
    low, high = np.array([[-1.0], [0.0]]), np.array([0.0, 1.0, 2.0])
    for bounds in ((low, high), (None, high), (low, None), (None, None), (-1, 1), (2.0, 1.0)):
        for clip in (hnp.clip, harp.jit(lambda x, bounds=bounds: hnp.clip(x, *bounds))):
            arguments = (x, *bounds) if clip is hnp.clip else (x,)
            expected = x if bounds[0] is None is bounds[1] else np.clip(x, *bounds)
            np.testing.assert_array_equal(np.asarray(clip(*arguments)), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_round_to_decimals(dtype, decimals):
    x = np.array([0.25, 0.35, -0.25, 15.0, 25.0, -125.0, 1234.5678, INF, NAN, -0.0, 2.5], dtype)
    np.testing.assert_array_equal(np.asarray(hnp.round(x, decimals)), np.round(x, decimals))


@pytest.mark.parametrize("dtype", ["i8", "i4", "i1", "u1", "u8"])
def test_common_divisors_and_multiples(dtype):
    """As NumPy's, also where a multiple does not fit; of zeros, of arrays that broadcast, and of no elements."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-100 if dtype[0] == "i" else 0, 100, shape).astype(dtype) for shape in ((9, 1), (30,)))
    a[0], b[:3] = 0, 0
    for name in ("gcd", "lcm"):
        ours, expected = getattr(hnp, name), getattr(np, name)(a, b)
        np.testing.assert_array_equal(np.asarray(ours(a, b)), expected, strict=True)
        function = harp.jit(ours)
        np.testing.assert_array_equal(np.asarray(function(a, b)), expected, strict=True)
        assert np.asarray(function(a[:0], b)).shape == (0, 30) and function.compilations == 1
    assert int(hnp.gcd(2**62, 6)) == 2


def test_common_divisors_of_floats():
    with pytest.raises(DTypeError, match="gcd is not defined for float64"):
        hnp.gcd(1.5, 2)
