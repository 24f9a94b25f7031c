"""Elementwise functions against NumPy: values at the edges, every dtype, broadcasting, promotion."""

import numpy as np
import pytest
import scipy.special

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, IntegerRangeError, ShapeError
from harp.trace.scalar import dtypes

# complex numbers: test_complex.py; float16 and bfloat16: test_halves.py
DTYPES = [d.numpy for d in dtypes.ALL if not d.is_complex and not d.is_stored]
NUMBERS = [d for d in DTYPES if d.kind != "b"]
INTEGERS = [d for d in NUMBERS if d.kind in "iu"]
FLOATS = [d for d in NUMBERS if d.kind == "f"]
SHAPES = [((), ()), ((3,), ()), ((1,), (3,)), ((0,), (1,)), ((2, 1), (1, 3)), ((2, 0), (2, 1)), ((4, 1, 3), (2, 3))]

rng = np.random.default_rng(0)


def sample(dtype, shape=(40,)):
    """Values of both signs, zeros and ones, and for floats also -0.0, NaN, infinities, tiny and huge."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -9
        return rng.integers(low, 10, shape).astype(dtype)
    x = rng.normal(size=shape) * 3
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.nan, np.inf, -np.inf, 1e-30, -1e-30, 1e30, 80.0, -80.0]
    flat = x.reshape(-1)
    flat[: len(special)] = special[: flat.size]
    return x.astype(dtype)


def same(result, expected, dtype=None):
    result = np.asarray(result)
    expected = np.asarray(expected)
    assert result.dtype == (expected.dtype if dtype is None else dtype)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)
    if result.dtype.kind == "f":
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


def near(result, expected, ulp):
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected.astype(result.dtype), rtol=ulp * np.finfo(result.dtype).eps, atol=0)


BINARY = (
    "add multiply equal not_equal less less_equal greater greater_equal maximum minimum "
    "logical_and logical_or logical_xor"
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name, dtype):
    a, b = sample(dtype), sample(dtype)[::-1].copy()
    same(getattr(hnp, name)(a, b), getattr(np, name)(a, b))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("name", ["subtract", "floor_divide", "remainder", "mod"])
def test_binary_on_numbers(name, dtype):
    a, b = sample(dtype), sample(dtype)[::-1].copy()
    same(getattr(hnp, name)(a, b), getattr(np, name)(a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["divide", "true_divide"])
def test_divide(name, dtype):
    a, b = sample(dtype), sample(dtype)[::-1].copy()
    target = dtypes.inexact(dtypes.as_dtype(dtype)).numpy
    same(getattr(hnp, name)(a, b), np.divide(a.astype(target), b.astype(target)))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_power(dtype):
    a, b = sample(dtype), np.abs(sample(dtype)) % 5
    near(hnp.power(a, b), np.power(a, b), 2) if dtype.kind == "f" else same(hnp.power(a, b), np.power(a, b))
    same(hnp.power(a, 2), np.power(a, 2))
    same(a ** hnp.asarray(b), hnp.power(a, b))
    if dtype.kind in "iu":  # NumPy raises ValueError
        with pytest.raises(DTypeError, match="-1 is a negative power"):
            hnp.power(a, -1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_powers(dtype):
    """Also of very small and very large numbers."""
    exact, exponents = np.longdouble if dtype == "float64" else np.float64, [*range(-17, 18), 2.0, -3.0]
    x = np.array([0.0, -0.0, 1.0, -1.5, 3.7, 1e-20, -1e20, np.inf, -np.inf, np.nan, 1.0000001, 7e-3], dtype)
    powers = lambda x: [hnp.power(x, exponent) for exponent in exponents]
    for run in (powers, harp.jit(powers)):
        for exponent, power in zip(exponents, run(x), strict=True):
            found = np.asarray(power)
            with np.errstate(all="ignore"):
                expected = (x.astype(exact) ** exact(exponent)).astype(dtype)
            assert found.dtype == x.dtype
            np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps, err_msg=f"{exponent}")
            np.testing.assert_array_equal(np.signbit(found[:9]), np.signbit(expected[:9]), err_msg=f"{exponent}")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_whole_powers_of_integers(dtype):
    x = np.arange(-5, 6).astype(dtype)
    for exponent in range(18):
        np.testing.assert_array_equal(np.asarray(hnp.power(x, exponent)), x**exponent)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_power_one_half_is_no_root(dtype):
    x = np.array([-np.inf, -0.0, 0.0, 4.0, np.inf, -1.0], dtype)
    expected = np.array([np.inf, 0.0, 0.0, 2.0, np.inf, np.nan], dtype)
    for exponent in (0.5, hnp.asarray(0.5, dtype), hnp.full((6,), 0.5, dtype), np.array([[0.5], [2.0]], dtype)):
        for power in (hnp.pow, harp.jit(hnp.pow)):
            found = np.asarray(power(x, exponent))
            found = found[0] if found.ndim == 2 else found
            np.testing.assert_array_equal(found, expected, strict=True)
            assert not np.signbit(found[:5]).any()


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_integers_to_negative_powers(dtype):
    base, exponent = np.array([2, -2, 1, -1, 0, 3], dtype), np.array([-1, -2, -3, -3, -1, 2], dtype)
    truncated = np.array([0, 0, 1, -1, 0, 9], dtype)  # NumPy raises ValueError, which a compiled program cannot
    same(harp.jit(hnp.power)(base, exponent), truncated)
    for known in (exponent, hnp.asarray(exponent), exponent[0]):
        for call in (lambda b, e=known: hnp.power(b, e), harp.jit(lambda b, e=known: b**e)):
            with pytest.raises(DTypeError, match="an exponent is a negative power") as caught:
                call(base)
            assert __file__ in str(caught.value)
    assert float(hnp.power(2.0, np.array(-1, dtype))) == 0.5


def test_sizes_as_exponents():
    f = harp.jit(lambda x: x ** (x.shape[0] - 1))
    same(f(np.array([2, 3])), np.array([2, 3]))
    same(f(np.array([2, 3, 4])), np.array([4, 9, 16]))
    assert f.compilations == 1
    with pytest.raises(DTypeError, match="negative power"):
        f(np.zeros(0, int))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "f"], ids=str)
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name, dtype):
    a, b = sample(dtype), sample(dtype)
    same(getattr(hnp, name)(a, b), getattr(np, name)(a, b))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(dtype):
    a, b = sample(dtype), np.abs(sample(dtype))
    same(hnp.bitwise_left_shift(a, b), np.left_shift(a, b))
    same(hnp.bitwise_right_shift(a, b), np.right_shift(a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["logical_not", "isnan", "isinf", "isfinite", "abs", "absolute"])
def test_unary(name, dtype):
    x = sample(dtype)
    same(getattr(hnp, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("name", ["negative", "positive", "sign", "square", "floor", "ceil", "trunc", "round"])
def test_unary_on_numbers(name, dtype):
    x = sample(dtype)
    same(getattr(hnp, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_bool_is_round(name):
    same(getattr(hnp, name)(np.array([True, False])), np.array([True, False]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_takes_halves_to_the_even_number(dtype):
    bits = np.finfo(dtype).nmant
    halves = np.arange(-20, 21, dtype=dtype) / 2
    large = np.array([2.0**bits, 2.0**bits + 1, 2.0 ** (bits - 1) + 0.5, 1e30, np.inf, np.nan, -0.0, 1e-30], dtype)
    x = np.concatenate([halves, np.nextafter(halves, np.asarray(np.inf, dtype)), large, -large])
    for result in (hnp.round(x), harp.jit(hnp.round)(x), hnp.asarray(x).round(), round(hnp.asarray(x))):
        same(result, np.round(x))
        np.testing.assert_array_equal(np.signbit(result)[x == x], np.signbit(x)[x == x])
    same(harp.grad(lambda x: hnp.sum(hnp.round(x)))(halves), np.zeros_like(halves))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "f"], ids=str)
def test_not(dtype):
    x = sample(dtype)
    same(hnp.bitwise_not(x), np.bitwise_not(x))
    same(~hnp.asarray(x), np.bitwise_invert(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "name", ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sqrt"]
)
def test_functions(name, dtype):
    x = sample(dtype)
    target = dtypes.inexact(dtypes.as_dtype(dtype)).numpy
    result = getattr(hnp, name)(x)
    assert result.dtype == target
    near(result, getattr(np, name)(x.astype(target)), 2)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_log10_of_many(dtype):
    x = np.exp(rng.uniform(-80, 80, 20000)).astype(dtype)
    exact = np.log10(x.astype(np.longdouble))
    error = np.abs(np.asarray(hnp.log10(x)) - exact) / np.spacing(np.abs(exact).astype(dtype))
    assert error.max() <= 2


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reciprocals(dtype):
    x = sample(dtype)
    same(hnp.reciprocal(x), np.reciprocal(x))
    near(hnp.rsqrt(x), 1 / np.sqrt(x), 2)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_activations(dtype):
    x = np.concatenate([sample(dtype), np.linspace(-80, 80, 999).astype(dtype)])
    wide = x.astype(np.float64)
    near(hnp.sigmoid(x), scipy.special.expit(wide), 4)
    near(hnp.softplus(x), np.where(wide < 0, np.log1p(np.exp(wide)), wide + np.log1p(np.exp(-wide))), 4)
    same(hnp.relu(x), np.where(x <= 0, np.zeros((), dtype), x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_and_clip(dtype):
    a, b, c = sample(dtype), sample(dtype), sample(np.dtype(bool))
    same(hnp.where(c, a, b), np.where(c, a, b))
    same(hnp.where(a, a, b), np.where(a, a, b))
    if dtype.kind != "b":
        same(hnp.clip(a, 1, 3), np.clip(a, 1, 3))
        same(hnp.asarray(a).clip(min=2), np.clip(a, 2, None))
        same(hnp.clip(a, max=b), np.minimum(a, b))
        same(hnp.clip(a, 5, 2), np.clip(a, 5, 2))


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_broadcasting(left, right):
    a, b = np.ones(left), np.full(right, 2.0)
    same(hnp.add(a, b), a + b)
    same(hnp.asarray(a) - b, a - b)
    same(a < hnp.asarray(b), a < b)
    same(hnp.where(a > 0, b, a), np.where(a > 0, b, a))


@pytest.mark.parametrize(("left", "right"), [((2,), (3,)), ((0,), (2,)), ((2, 3), (3, 2))])
def test_shapes_that_do_not_broadcast(left, right):
    with pytest.raises(ShapeError, match="broadcast along axis"):
        hnp.add(np.ones(left), np.ones(right))


@pytest.mark.parametrize("left", DTYPES, ids=str)
@pytest.mark.parametrize("right", DTYPES, ids=str)
def test_promotion(left, right):
    expected = np.result_type(left, right)
    assert hnp.add(np.zeros(2, left), np.zeros(2, right)).dtype == expected
    assert hnp.where(np.True_, np.zeros(2, left), np.zeros(2, right)).dtype == expected
    assert hnp.result_type(left, right) == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_do_not_widen(dtype):
    x = hnp.zeros(2, dtype)
    assert (x + True).dtype == dtype
    if dtype.kind != "b":
        assert (x + 1).dtype == dtype
        assert hnp.maximum(1, x).dtype == dtype
    wide = dtype if dtype.kind == "f" else np.dtype("f8" if dtype.itemsize == 8 or dtype.kind == "b" else "f4")
    assert (x * 2.5).dtype == wide
    # a number that went through a function is still a number
    assert (x * hnp.sqrt(2.0)).dtype == wide
    assert (x * hnp.where(True, 2.0, 3.0)).dtype == wide
    assert (x * np.float64(2)).dtype == np.result_type(dtype, np.float64)


def test_dtype_errors():
    with pytest.raises(DTypeError, match="subtract is not defined for bool"):
        hnp.subtract(True, False)
    for name in ("negative", "positive", "sign", "square", "round", "relu"):
        with pytest.raises(DTypeError, match=f"{name} is not defined for bool"):
            getattr(hnp, name)(np.zeros(2, bool))
    with pytest.raises(DTypeError, match="reciprocal is not defined for int64"):
        hnp.reciprocal(np.arange(3))
    with pytest.raises(DTypeError, match="bitwise_and is not defined for float64"):
        hnp.bitwise_and(np.ones(2), np.ones(2))
    with pytest.raises(IntegerRangeError, match="300 does not fit int8"):
        hnp.add(np.zeros(2, "int8"), 300)


def test_constants_and_names():
    assert (hnp.pi, hnp.e, hnp.inf, hnp.newaxis) == (np.pi, np.e, np.inf, None)
    assert np.isnan(hnp.nan)
    for dtype in DTYPES:
        assert np.dtype(getattr(hnp, dtype.name if dtype.kind != "b" else "bool_")) == dtype


@pytest.mark.parametrize("name", [name for name in dir(hnp) if not name.startswith("_")])
def test_exported(name):
    assert hasattr(hnp, name)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_integers_with_and_without_sign_compare_by_value(name):
    signed = np.array([-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1], np.int64)
    unsigned = np.array([0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    a, b = np.meshgrid(signed, unsigned)
    f = getattr(hnp, name)
    for x, y in ((a, b), (b, a), (a.astype(np.int32), b)):
        expected = getattr(np, name)(x, y)
        np.testing.assert_array_equal(np.asarray(f(x, y)), expected)
        np.testing.assert_array_equal(np.asarray(harp.jit(f)(x, y)), expected)


COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
KNOWN = harp.jit(lambda x: [[f(x, v), f(v, x)] for v in (300, -300, 2) for f in COMPARE.values()])
TOLD = harp.jit(lambda x, v: [[f(x, v), f(v, x)] for f in COMPARE.values()])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64"])
def test_comparisons_with_integers_that_do_not_fit(dtype):
    x = np.array([1, 2, 3], dtype)
    expected = [[[f(x, v), f(v, x)] for f in COMPARE.values()] for v in (300, -300, 2)]
    y = hnp.asarray(x)
    np.testing.assert_array_equal([[[f(y, v), f(v, y)] for f in COMPARE.values()] for v in (300, -300, 2)], expected)
    np.testing.assert_array_equal(np.asarray(KNOWN(x)).reshape(np.shape(expected)), expected)
    for v, wanted in zip((300, -300, 2), expected, strict=True):
        np.testing.assert_array_equal(TOLD(x, v), wanted)
    np.testing.assert_array_equal(y < 2**70, True)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
def test_an_order_of_complex_numbers_is_refused_by_its_name(name):
    with pytest.raises(DTypeError, match=rf"^{name} is not defined for complex128"):
        getattr(hnp, name)(hnp.asarray([1j]), 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint64"])
def test_integers_are_rounded_to_tens(dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 4, 5, 6, 14, 15, 16, 25, 35, 44, 50, 99, 100, 120], dtype)
    x = np.concatenate([x, -x.astype(np.int64)]).astype(dtype) if limits.min < 0 else x
    for places in (1, 2, 3, 25):
        unit = 10**places
        halves = [int(v) // unit + (2 * (int(v) % unit) > unit or (2 * (int(v) % unit) == unit and int(v) // unit % 2))
                  for v in x]  # fmt: skip
        expected = np.array([int(h) * unit for h in halves], object)
        expected = np.array([int(e) for e in expected], np.int64).astype(dtype) if places < 20 else np.zeros_like(x)
        for found in (hnp.round(x, -places), harp.jit(lambda x, p=places: hnp.round(x, -p))(x)):
            np.testing.assert_array_equal(found, expected, strict=True)
    with pytest.raises(ArgumentError, match="does not fit the dtype"):
        hnp.round(np.ones(1, np.int64), -19)
