"""float16 and bfloat16: conversions bit by bit, arithmetic in float32 that is rounded once, in programs and at once."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import ALL

FLOAT16, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
HALVES = [FLOAT16, BFLOAT16]
INTEGERS = [d.numpy for d in ALL if d.is_integer]
rng = np.random.default_rng(0)


def bits(a):
    return np.asarray(a).view(np.uint16)


def both(function, *args):
    return function(*map(hnp.asarray, args)), harp.jit(function)(*args)


def near_halves(dtype):
    """All numbers of a half dtype in float32, their neighbours there, the points half way, and random bits."""
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float32).view(np.uint32).astype(np.int64)
    steps = [-1, 0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001]
    near = (every[:, None] + steps).astype(np.uint32).ravel()
    random = rng.integers(0, 1 << 32, 1 << 18, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([near, random]).view(np.float32)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_number_becomes_float32(dtype):
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for wide in ("float32", "float64"):
        found = np.asarray(harp.jit(lambda x, wide=wide: x.astype(wide))(x))
        expected = x.astype(wide)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    for integer in INTEGERS:
        eager, compiled = both(lambda x, to=integer: x.astype(to), x)
        np.testing.assert_array_equal(np.asarray(eager), np.asarray(compiled))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_rounding_is_numpys(dtype):
    x = near_halves(dtype)
    y = x.astype(np.float64)
    with np.errstate(all="ignore"):
        wide = np.concatenate([y, y * (1 + 2.0**-40), y * (1 - 2.0**-40)])
        for given in (x, wide):
            found, expected = np.asarray(harp.jit(lambda x: x.astype(dtype))(given)), given.astype(dtype)
            # Processors and NumPy keep other bits of what a NaN is.
            unknown = np.isnan(expected)
            np.testing.assert_array_equal(np.isnan(found), unknown)
            np.testing.assert_array_equal(bits(found)[~unknown], bits(expected)[~unknown])
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_what_is_rounded_on_the_way_is_a_half(dtype):
    """It stays a float; what is rounded already is not rounded again."""
    x = near_halves(dtype)
    program = harp.jit(lambda x: (x.astype(dtype).astype("float32"), (-abs(x.astype(dtype))).astype("float32")))
    assert program.lower(x[:3]).source.count("harp_round_") >= 2
    with np.errstate(all="ignore"):
        rounded = x.astype(dtype).astype(np.float32)
    for found, wanted in zip(program(x), (rounded, -np.abs(rounded)), strict=True):
        np.testing.assert_array_equal(found, wanted)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(wanted)[known])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("integer", [*INTEGERS, np.dtype(bool)], ids=str)
def test_integers_become_halves(dtype, integer):
    x = rng.integers(-(2**62), 2**62, 2000) >> rng.integers(0, 62, 2000)
    x = x.astype(integer)
    with np.errstate(all="ignore"):
        for found in both(lambda x: x.astype(dtype), x):
            np.testing.assert_array_equal(bits(found), bits(x.astype(dtype)))


ELEMENTWISE = {
    "polynomial": lambda xp, x: (x + 1) * x - x / 3,
    "exp": lambda xp, x: xp.exp(x),
    "tanh": lambda xp, x: xp.tanh(x),
    "sqrt": lambda xp, x: xp.sqrt(xp.abs(x)),
    "power": lambda xp, x: xp.abs(x) ** 1.5,
    "maximum": lambda xp, x: xp.maximum(x, 0.25),
    "floor": lambda xp, x: xp.floor(x * 3),
    "remainder": lambda xp, x: x % 0.75,
    "where": lambda xp, x: xp.where(x > 0, x, -x),
    "less": lambda xp, x: x < 0.1,
    "views": lambda xp, x: xp.pad(x, 1)[::-1].reshape(-1),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_elementwise(dtype):
    """Bit by bit what NumPy gives, which rounds after each function: so does harp, after each node."""
    compiled = harp.jit(lambda x: {name: f(hnp, x) for name, f in ELEMENTWISE.items()})
    for size in (0, 1, 100):
        x = (rng.normal(size=size) * 3).astype(dtype)
        for given in (x, x[::-1], x[::2]):
            for name, found in compiled(given).items():
                expected = ELEMENTWISE[name](np, given)
                if dtype == BFLOAT16 and expected.dtype == np.float32:  # by a Python number
                    expected = expected.astype(dtype)
                assert found.dtype == expected.dtype
                if name in ("exp", "tanh", "power"):  # to a unit in the last place of float16
                    tolerance = 2 * hnp.finfo(dtype).eps
                    np.testing.assert_allclose(
                        np.asarray(found).astype("f8"), expected.astype("f8"), rtol=tolerance, err_msg=name
                    )
                elif found.dtype == bool:
                    np.testing.assert_array_equal(found, expected)
                else:
                    np.testing.assert_array_equal(bits(found), bits(expected), err_msg=name)
                    np.testing.assert_array_equal(bits(ELEMENTWISE[name](hnp, hnp.asarray(given))), bits(expected))
    assert compiled.compilations <= 2


REDUCTIONS = {
    "sum": lambda xp, x: xp.sum(x, axis=1),
    "sum of all": lambda xp, x: xp.sum(x),
    "columns": lambda xp, x: xp.sum(x, axis=0),
    "product": lambda xp, x: xp.prod(x[:, :5] * 0 + 1.5, axis=1),
    "mean": lambda xp, x: xp.mean(x, axis=0),
    "variance": lambda xp, x: xp.var(x),
    "matmul": lambda xp, x: x @ x.T,
    "largest": lambda xp, x: xp.max(x, axis=1),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_reductions_add_up_in_float32(dtype):
    compiled = harp.jit(lambda x: {name: f(hnp, x) for name, f in REDUCTIONS.items()})
    eps = hnp.finfo(dtype).eps
    for shape in ((3, 7), (40, 300), (1, 4000)):
        x = rng.uniform(0.5, 1.5, shape).astype(dtype)
        for name, found in compiled(x).items():
            expected = REDUCTIONS[name](np, x.astype(np.float64))
            for result in (found, REDUCTIONS[name](hnp, hnp.asarray(x))):
                assert result.dtype == dtype, name
                np.testing.assert_allclose(np.asarray(result).astype("f8"), expected, rtol=eps, err_msg=name)


def test_sums_do_not_stick_or_overflow_on_the_way():
    """In float16 a sum of ones ends at 2048; and the mean of large numbers goes by way of a sum beyond 65504."""
    ones = np.ones(5000, FLOAT16)
    large = np.full(100, 60000, FLOAT16)
    for total, mean, spread, share in both(
        lambda x, y: (hnp.sum(x), hnp.mean(y), hnp.std(y), hnp.softmax(x)), ones, large
    ):
        assert float(total) == 5000 and float(mean) == 60000 and float(spread) == 0
        np.testing.assert_array_equal(np.asarray(share), np.full(5000, 1 / 5000).astype(FLOAT16))
    sums = np.asarray(hnp.cumsum(ones))
    assert sums.dtype == FLOAT16 and float(sums[-1]) == 5000
    np.testing.assert_array_equal(sums, np.asarray(harp.jit(hnp.cumsum)(ones)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients(dtype):
    f = lambda x: hnp.sum(hnp.tanh(x) ** 2 * x) + hnp.max(x) + hnp.mean(x @ x)
    x = rng.normal(size=(6, 6)).astype(dtype)
    exact = harp.grad(f)(x.astype(np.float64))
    for found in both(harp.grad(f), x):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            np.asarray(found).astype("f8"), exact, rtol=8 * hnp.finfo(dtype).eps, atol=8 * hnp.finfo(dtype).eps
        )


@pytest.mark.parametrize("dtype", [*HALVES, np.dtype("complex64")], ids=str)
def test_places_that_are_data(dtype):
    """Updates of one place are added in float32, and the sum is rounded."""
    at = np.array([1, 3, 1, 1])
    f = lambda x, y: (x[at], x.at[at].set(y), x.at[at].add(y), x.at[at].multiply(y), hnp.take(x, at))
    x, y = (rng.normal(size=n).astype(dtype) for n in (5, 4))
    wide = np.complex128 if dtype.kind == "c" else np.float64
    total, product = x.astype(wide), x.astype(wide)
    np.add.at(total, at, y.astype(wide))
    np.multiply.at(product, at, y.astype(wide))
    put = x.copy()
    put[at] = y
    eps = hnp.finfo(dtype).eps
    for result in both(f, x, y):
        for found, expected in zip(result, (x[at], put, total, product, x[at]), strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(np.asarray(found).astype(wide), expected.astype(wide), rtol=4 * eps, atol=eps)


def test_promotion():
    x, y = hnp.ones(3, "float16"), hnp.ones(3, hnp.bfloat16)
    assert (x + y).dtype == np.float32 and (x + 1).dtype == FLOAT16 and (y * 2.5).dtype == BFLOAT16
    assert (x + np.float32(1)).dtype == np.float32 and (y + np.ones(3, "int8")).dtype == BFLOAT16
    assert (y + np.ones(3, "int32")).dtype == np.float64 and (x * 1j).dtype == (y * 1j).dtype == np.complex64
    assert hnp.exp(y).dtype == BFLOAT16 and hnp.asarray([1, 2], dtype="bfloat16").dtype == BFLOAT16
    assert hnp.asarray(np.ones(2, BFLOAT16).astype(BFLOAT16.newbyteorder(">"))).dtype == BFLOAT16


PROGRAM = """
import sys, numpy as np
sys.modules["ml_dtypes"] = None
import harp, harp.numpy as hnp
assert float(hnp.sum(hnp.ones(3, hnp.float16))) == 3
assert hnp.can_cast("int8", "float16") and repr(harp.bf16) == "bf16"
try:
    hnp.ones(3, hnp.bfloat16)
except harp.errors.MissingPackageError as error:
    print(error)
"""


def test_without_ml_dtypes():
    """What does not use bfloat16 works, and what does says which package it needs."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "install harp-compiler[bfloat16]" in done.stdout and not done.stderr


IMPORTS = """
import sys, harp, harp.numpy
harp.jit(lambda x: x + 1)(harp.numpy.ones(2))
print("ml_dtypes" in sys.modules)
"""


def test_ml_dtypes_is_imported_when_it_is_used():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_dtypes_by_name():
    for name, dtype in (("float16", dtypes.f16), ("bfloat16", dtypes.bf16)):
        assert dtypes.as_dtype(name) is dtypes.as_dtype(dtype.numpy) is dtype
