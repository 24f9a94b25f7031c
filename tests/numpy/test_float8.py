"""float8 and int4: conversions bit by bit those of ml_dtypes, in programs and at once; promotion, limits, rows."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import DTypeError, IntegerRangeError
from harp.trace.scalar.dtypes import ALL, FLOAT8, format_of, i4, u4

FLOATS = [d.numpy for d in FLOAT8]
INTEGERS = [i4.numpy, u4.numpy]
TINY = [*FLOATS, *INTEGERS]
OTHERS = [d.numpy for d in ALL if not d.is_complex]
rng = np.random.default_rng(0)
EVERY = np.arange(256, dtype=np.uint8)


def every(dtype):
    """All numbers of the dtype."""
    return EVERY.view(dtype) if dtype in FLOATS else np.arange(-8, 16).astype(dtype)


def both(function, *args):
    return function(*map(hnp.asarray, args)), harp.jit(function)(*args)


def assert_same(found, expected):
    """All bits, but for what a NaN of more than 8 bits holds beside its sign."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.itemsize == 1:
        np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))
    else:
        np.testing.assert_array_equal(found.astype("f8"), expected.astype("f8"))
        np.testing.assert_array_equal(np.signbit(found.astype("f8")), np.signbit(expected.astype("f8")))


def near(dtype):
    """All numbers of the dtype in float32, their neighbours, points half way to the next number, and random bits."""
    numbers = np.unique(np.abs(EVERY.view(dtype).astype(np.float32)[:256]))
    numbers = numbers[np.isfinite(numbers)]
    between = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) * np.float32([0.5, 1, 2, 100, 1e20])
    exact = np.concatenate([numbers, between, beyond, [np.inf, np.nan, 1e-45, 1e-39, 3e38]]).astype(np.float32)
    around = (exact.view(np.uint32)[:, None] + np.array([-1, 0, 1])).astype(np.uint32).ravel()
    random = rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint64).astype(np.uint32)
    some = np.concatenate([around.view(np.float32), random.view(np.float32)])
    return np.concatenate([some, -some])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rounding_is_that_of_ml_dtypes(dtype):
    x = near(dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wide = np.concatenate([wide, wide * (1 + 2.0**-40), wide * (1 - 2.0**-40), rng.normal(size=1000) * 1e200])
        for given in (x, wide, x.astype(np.float16), x.astype(ml_dtypes.bfloat16)):
            for found in both(lambda x: x.astype(dtype), given):
                assert_same(found, given.astype(dtype))


@pytest.mark.parametrize("dtype", TINY, ids=str)
def test_every_number_becomes_every_other_dtype(dtype):
    given, expected = [], []
    for other in OTHERS:
        x = every(dtype)
        with np.errstate(all="ignore"):
            if other.kind in "iu" and dtype in FLOATS:  # C leaves open what NaN becomes
                x = x[np.isfinite(x.astype("f4")) & (x.astype("f4") >= 0)]
            wanted = x.astype(other) if dtype in FLOATS else x.astype("i8").astype(other)
            if other in INTEGERS and dtype in FLOATS:
                wanted = x.astype("f4").astype("i4").astype(other)
        given.append(x)
        expected.append(wanted)
    for found in both(lambda *xs: [x.astype(other) for x, other in zip(xs, OTHERS, strict=True)], *given):
        for each, wanted in zip(found, expected, strict=True):
            assert_same(each, wanted)


@pytest.mark.parametrize("other", [d.numpy for d in ALL if d.is_integer] + [np.dtype(bool)], ids=str)
def test_integers_are_converted(other):
    x = (rng.integers(-(2**62), 2**62, 2000) >> rng.integers(0, 62, 2000)).astype(other)
    with np.errstate(all="ignore"):
        expected = [x.astype("i8").astype(dtype) if other in INTEGERS else x.astype(dtype) for dtype in TINY]
    for found in both(lambda x: [x.astype(dtype) for dtype in TINY], x):
        for each, wanted in zip(found, expected, strict=True):
            assert_same(each, wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_floats_are_truncated_to_int4(dtype):
    """By way of int32, of which the low bits stay."""
    x = np.array([1.7, -1.7, 9, -9, 300, 3e9, np.inf, -np.inf, np.nan, 0.99])
    for given in (x, x.astype("f4")):
        for found in both(lambda x: x.astype(dtype), given):
            np.testing.assert_array_equal(
                np.asarray(found).astype(int)[:5], x[:5].astype(int).astype(dtype).astype(int)
            )
            np.testing.assert_array_equal(np.asarray(found).astype(int)[5:], 0)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_only_the_low_bits_of_int4_count(dtype):
    x = EVERY.view(dtype)
    for found in both(lambda x: (x.astype("i4"), x + x, hnp.sort(x), x < 3, hnp.sum(x, dtype="i8")), x):
        number = x.astype("i4")
        assert_same(found[0], number)
        assert_same(found[1], (2 * number).astype(dtype))
        np.testing.assert_array_equal(np.asarray(found[2]).astype("i4"), np.sort(number))
        assert_same(found[3], number < 3)
        assert int(found[4]) == number.sum()


ARITHMETIC = {
    "polynomial": lambda x: (x + 1) * x - x,
    "negative": lambda x: -x,
    "maximum": lambda x: hnp.maximum(x, 2),
    "where": lambda x: hnp.where(x > 1, x, 0),
    "less": lambda x: x < 2,
    "floor division": lambda x: (x + x) // 3,
    "remainder": lambda x: (x * 3) % 5,
    "shift": lambda x: (x << 1) >> 1,
    "not": lambda x: ~x,
    "power": lambda x: x**3,
    "absolute": lambda x: abs(x - 1),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_int4_wraps_after_every_operation(dtype, name):
    """A program has the integers of NumPy's loops, however it is fused."""
    f = ARITHMETIC[name]
    wrap = (lambda v: (v + 8) % 16 - 8) if dtype == i4.numpy else (lambda v: v % 16)
    x = every(dtype)
    n = x.astype(int)
    expected = {
        "polynomial": lambda: n * n,
        "negative": lambda: -n,
        "maximum": lambda: np.maximum(n, 2),
        "where": lambda: np.where(n > 1, n, 0),
        "less": lambda: n < 2,
        "floor division": lambda: wrap(n + n) // 3,
        "remainder": lambda: wrap(n * 3) % 5,
        "shift": lambda: wrap(n << 1) >> 1,
        "not": lambda: ~n,
        "power": lambda: n**3,
        "absolute": lambda: abs(wrap(n - 1)),
    }[name]()
    for found in both(f, x):
        if expected.dtype == bool:
            assert_same(found, expected)
        else:
            assert found.dtype == dtype
            np.testing.assert_array_equal(np.asarray(found).astype(int), wrap(expected))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float8_is_computed_in_float32(dtype):
    x = (rng.normal(size=(7, 9)) * 2).astype(dtype)
    wide = x.astype(np.float32)
    r = lambda v: v.astype(dtype).astype(np.float32)  # after each function
    f = {
        "polynomial": (lambda x: (x + 1) * x - x / 3, r(r(wide + 1) * wide) - r(wide / np.float32(3))),
        "sum": (lambda x: hnp.sum(x, axis=0), wide.astype("f8").sum(0)),
        "product": (lambda x: x @ x.T, wide.astype("f8") @ wide.T.astype("f8")),
        "largest": (lambda x: hnp.max(x, axis=1), wide.max(1)),
        "lowest of none": (lambda x: hnp.max(x[:0], initial=0.5), np.float32(0.5)),
        "less": (lambda x: x < 0.5, wide < 0.5),
        "running": (lambda x: hnp.cumsum(x, 1), wide.astype("f8").cumsum(1)),
        "where": (lambda x: hnp.where(x > 0, x, 0), np.where(wide > 0, wide, 0)),
        "put": (lambda x: x.at[hnp.asarray([0, 0, 2])].add(1), wide + np.eye(7)[[0, 2]].T @ [[2.0], [1.0]]),
    }
    for name, (function, expected) in f.items():
        with np.errstate(all="ignore"):
            rounded = expected if expected.dtype == bool else expected.astype(np.float32).astype(dtype)
        for found in both(function, x):
            assert_same(found, rounded), name


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_order_and_places(dtype):
    x = rng.permutation(EVERY).view(dtype)
    number = x.astype(np.float32)
    for found in both(lambda x: (hnp.sort(x), hnp.argsort(x), hnp.max(x), x[::3], x[hnp.asarray([5, 1])]), x):
        assert_same(np.isnan(np.asarray(found[0]).astype("f4")), np.isnan(np.sort(number)))
        np.testing.assert_array_equal(np.asarray(found[0]).astype("f4"), np.sort(number))
        np.testing.assert_array_equal(np.asarray(found[1]), np.argsort(number, stable=True))
        assert np.isnan(float(found[2]))
        assert_same(found[3], x[::3])
        assert_same(found[4], x[[5, 1]])
    finite = x[np.isfinite(number)]
    for found in both(lambda x: (hnp.max(x), hnp.min(x), hnp.unique(x, size=3)), finite):
        assert float(found[0]) == hnp.finfo(dtype).max and float(found[1]) == hnp.finfo(dtype).min
        np.testing.assert_array_equal(np.asarray(found[2]).astype("f4"), np.unique(finite.astype("f4"))[:3])


@pytest.mark.parametrize("dtype", TINY, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 3)])
def test_sizes_and_one_program(dtype, shape):
    f = harp.jit(lambda x: (x + x, x.reshape(-1)))
    x = rng.integers(0, 3, shape).astype(dtype)
    found = f(x)
    assert_same(found[0], (2 * x.astype("f4")).astype(dtype))
    assert_same(found[1], x.reshape(-1))


def test_one_program_for_all_sizes():
    f = harp.jit(lambda x: (x * 2).astype("float32") + 1)
    for n in (0, 1, 2, 17, 100):
        x = rng.normal(size=n).astype(ml_dtypes.float8_e5m2)
        np.testing.assert_array_equal(f(x), (x.astype("f4") * 2).astype(x.dtype).astype("f4") + 1)
    assert f.compilations == 1


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_limits_of_floats(dtype):
    found, expected = hnp.finfo(dtype), ml_dtypes.finfo(dtype)
    assert (found.bits, found.dtype) == (8, dtype)
    for name in ("eps", "max", "min", "smallest_normal"):
        assert getattr(found, name) == float(getattr(expected, name)), name
    assert format_of(hnp.asarray([], dtype).kind).limit <= 128


def test_limits():
    for dtype in INTEGERS:
        found, expected = hnp.iinfo(dtype), ml_dtypes.iinfo(dtype)
        assert (found.bits, found.min, found.max) == (4, expected.min, expected.max)
    for dtype in ("float16", "float32", "float64"):
        found, expected = hnp.finfo(dtype), np.finfo(dtype)
        for name in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(found, name) == getattr(expected, name), name
    assert hnp.isdtype("float8_e5m2", "real floating") and hnp.isdtype(hnp.int4, "signed integer")
    assert hnp.issubdtype("uint4", hnp.integer) and not hnp.can_cast("float32", "bool")


def test_promotion_is_that_of_jax():
    x, n = hnp.asarray([1.0, 2.5], "float8_e4m3fn"), hnp.asarray([1, -2], "int4")
    for other in (1, 1.5, True, np.arange(2), np.array([True, False]), np.arange(2, dtype="uint8")):
        assert (x + other).dtype == x.dtype
    for other in (1, True, np.array([True, False])):
        assert (n + other).dtype == n.dtype
    assert (n / 2).dtype == np.float32
    for a, b in (
        (x, np.float32(1)), (x, np.ones(2, "float16")), (x, x.astype("float8_e5m2")), (x, 1j), (x, n),
        (n, 1.5), (n, np.int8(1)), (n, np.ones(2)), (n, n.astype("uint4")),
    ):  # fmt: skip
        for f in (lambda a, b: a * b, lambda a, b: a < b, lambda a, b: hnp.where(True, a, b)):
            with pytest.raises(DTypeError, match=r"no common dtype.*\.astype"):
                f(a, b)
    with pytest.raises(DTypeError, match="float8_e4m3fn and float32 have no common dtype"):
        harp.jit(lambda a: a + np.ones(2, "float32"))(x)
    with pytest.raises(IntegerRangeError, match="8 does not fit int4"):
        n + 8


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_transforms(dtype):
    x = (rng.integers(-4, 5, 6) / 4).astype(dtype)
    wide = x.astype("f8")
    for found in both(harp.grad(lambda x: hnp.sum(x * x)), x):
        assert_same(found, (2 * wide).astype(dtype))
    value, tangent = harp.jvp(lambda x: x * x, (x,), (np.ones(6).astype(dtype),))
    assert_same(value, (wide**2).astype("f4").astype(dtype))
    assert_same(tangent, (2 * wide).astype("f4").astype(dtype))
    matrix = x.reshape(2, 3)
    assert_same(harp.vmap(lambda row: row[::-1])(matrix), matrix[:, ::-1])
    straight = harp.grad(lambda w: hnp.sum(w.astype(dtype).astype("float32") ** 2))(wide.astype("f4"))
    np.testing.assert_array_equal(straight, 2 * wide)


@pytest.mark.parametrize("dtype", TINY, ids=str)
def test_constants_copies_and_text(dtype):
    x = np.array([1, 2, 3]).astype(dtype)
    closed = harp.jit(lambda y: (x + y.astype(dtype), hnp.full(2, 3, dtype), hnp.asarray([1, 2], dtype)))
    sums, full, made = closed(np.ones(3))
    assert_same(sums, np.array([2, 3, 4]).astype(dtype))
    assert_same(full, np.array([3, 3]).astype(dtype))
    assert_same(made, np.array([1, 2]).astype(dtype))
    array = hnp.asarray(x)
    assert_same(pickle.loads(pickle.dumps(array)), x)
    assert_same(copy.deepcopy(array), x)
    assert str(dtype) in repr(array) and "2" in str(array) and array.dtype == dtype
    assert [float(v) for v in array.tolist()] == [1, 2, 3] and float(array[1]) == 2
    assert pickle.loads(pickle.dumps(array.kind)) is array.kind
    assert hnp.dtype(array.kind) == dtype == getattr(hnp, str(dtype)).dtype


def test_ml_dtypes_is_imported_when_needed():
    program = (
        "import sys, harp, harp.numpy as hnp; assert 'ml_dtypes' not in sys.modules; x = hnp.ones(2, 'int4'); print(x)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[1 1]\n"
    )
