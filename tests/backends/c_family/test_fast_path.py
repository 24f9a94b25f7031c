"""Loops for common numbers, which run again where they met others: values, bits, and where there is no second loop."""

from __future__ import annotations

import numpy as np
import pytest
from accuracy import errors

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

# Each function, numbers of its first loop, and others.
CASES = {
    "sin": (hnp.sin, np.sin, (-6.0, 6.0), [1e5, -3e38, 65537.0, np.inf, np.nan]),
    "cos": (hnp.cos, np.cos, (-6.0, 6.0), [1e5, -3e38, 65537.0, -np.inf, np.nan]),
    "tan": (hnp.tan, np.tan, (-6.0, 6.0), [1e5, -3e38, 65537.0, np.inf, np.nan]),
    "log2": (hnp.log2, np.log2, (0.01, 9.0), [0.0, -1.0, 1e-40, np.inf, np.nan]),
    "log10": (hnp.log10, np.log10, (0.01, 9.0), [-0.0, -1.0, 1e-45, np.inf, np.nan]),
    "atan2": (
        lambda x: hnp.atan2(x, 2 - x),
        lambda x: np.arctan2(x, 2 - x),
        (-6.0, 6.0),
        [0.0, 1e20, -1e-20, np.inf, np.nan],
    ),
    "pow_whole": (
        lambda x: hnp.pow(x, -3),
        lambda x: np.power(x, -3.0),
        (0.01, 9.0),
        [0.0, -0.0, 1e-13, -1e20, np.inf, np.nan],
    ),
    "mod": (lambda x: x % 1.75, lambda x: x % 1.75, (-6.0, 6.0), [1e30, -3e38, 1e9, np.inf, np.nan]),
    "floordiv": (lambda x: x // 1.75, lambda x: x // 1.75, (-6.0, 6.0), [1e30, -3e38, 1e9, np.inf, np.nan]),
    "pow": (lambda x: hnp.pow(x, x), lambda x: np.power(x, x), (0.01, 9.0), [0.0, -2.0, -1.5, 1e-40, np.inf, np.nan]),
}
ALL = pytest.mark.parametrize("name", CASES)


def source(function, *arrays) -> str:
    return harp.jit(function).lower(*arrays).source


@needs_compiler
@ALL
def test_one_uncommon_number_anywhere(name: str) -> None:
    function, reference, (low, high), others = CASES[name]
    common = np.random.default_rng(2).uniform(low, high, 5000).astype(np.float32)
    compiled = harp.jit(function)
    first = np.asarray(compiled(common))
    for place, other in zip((0, 17, 4095, 4096, 4999, 2500), others, strict=False):
        x = common.copy()
        x[place] = other
        got = np.asarray(compiled(x))
        with np.errstate(all="ignore"):
            exact = reference(x.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(got, exact, rtol=2e-7, atol=1e-45)
        others_left = np.arange(x.size) != place
        np.testing.assert_array_equal(got[others_left].view(np.uint32), first[others_left].view(np.uint32))


@ALL
def test_there_is_a_loop_for_common_numbers(name: str) -> None:
    text = source(CASES[name][0], np.ones(5000, np.float32))
    assert text.count(f"harp_{name}_near_f32(&far, ") == text.count(f"harp_{name}_f32(") == 1
    assert text.index(f"harp_{name}_near_f32(") < text.index("if (far)") < text.index(f"harp_{name}_f32(")


def bits_stay(function, got: np.ndarray, *arrays: np.ndarray) -> bool:
    """Whether the last number, if it is NaN, changes no bit of the others."""
    others = [np.concatenate([a, np.float32([np.nan])]) for a in arrays]
    return np.array_equal(np.asarray(function(*others))[:-1].view(np.uint32), got.view(np.uint32))


@needs_compiler
def test_error_of_powers_of_common_numbers() -> None:
    """Up to e^40, with bases where the parts of the logarithm meet, which is where its errors are largest."""
    rng = np.random.default_rng(3)
    near_one = [rng.uniform(low, low + 0.02, 100_000) for low in (0.88, 1.11, 0.995)]
    base = np.concatenate([*near_one, rng.uniform(0.1, 9, 300_000), np.exp2(rng.uniform(-120, 120, 100_000))])
    base = base.astype(np.float32)
    base[base == 1] = 2
    exponent = (rng.uniform(-39.5, 39.5, base.size) / np.log(base.astype(np.float64))).astype(np.float32)
    pow_ = harp.jit(hnp.pow)
    got = np.asarray(pow_(base, exponent))
    assert errors(got, np.power(base.astype(np.float64), exponent.astype(np.float64))).max() <= 0.75
    assert bits_stay(pow_, got, base, exponent)


@needs_compiler
@pytest.mark.parametrize("exponent", [-2, -3, -5, -6, -7, -8, -11, -15])
def test_error_of_known_powers_of_common_numbers(exponent: int) -> None:
    """Of all that the first loop takes: to 2^19, 2^12 or 2^6."""
    rng = np.random.default_rng(4)
    limit = {5: 18.99, 8: 11.99, 15: 5.99}[next(n for n in (5, 8, 15) if n >= -exponent)]
    x = (np.exp2(rng.uniform(-limit, limit, 200_000)) * rng.choice([-1, 1], 200_000)).astype(np.float32)
    power = harp.jit(lambda a: hnp.power(a, exponent))
    got = np.asarray(power(x))
    assert errors(got, np.power(x.astype(np.float64), np.float64(exponent))).max() <= 0.75
    assert bits_stay(power, got, x)


def test_no_other_function_has_two_loops() -> None:
    assert "uint32_t far" not in source(lambda x: hnp.exp(x) + hnp.arcsin(x), np.ones(5000, np.float32))
    assert "uint32_t far" not in source(hnp.tan, np.ones(5000))
    assert "uint32_t far" not in source(lambda x: x**5 + 1 / x + hnp.power(x, -1), np.ones(5000, np.float32))


def test_what_cannot_be_run_again_has_one_loop() -> None:
    """Sums would be added twice, and what is updated in place would be updated twice."""
    assert "uint32_t far" not in source(lambda x: hnp.sum(hnp.sin(x), axis=1), np.ones((50, 500), np.float32))
    assert "uint32_t far" not in harp.jit(hnp.sin, donate_argnums=0).lower(np.ones(5000, np.float32)).source


@needs_compiler
def test_in_place() -> None:
    x = np.linspace(-1e5, 1e5, 5000, dtype=np.float32)
    got = np.asarray(harp.jit(hnp.sin, donate_argnums=0)(hnp.asarray(x.copy())))
    np.testing.assert_allclose(got, np.sin(x.astype(np.float64)), rtol=2e-7)


@needs_compiler
def test_numbers_that_a_choice_leaves_out_are_noted_without_a_branch() -> None:
    """A note behind a condition would keep the loop from being done in vectors."""
    function = harp.jit(lambda x: hnp.where(x < 9, hnp.sin(x) * 2 + hnp.cos(x), x))
    x = np.linspace(-6, 6, 5000, dtype=np.float32)
    x[::1000] = 1e6
    text = function.lower(x).source
    notes = [line for line in text.splitlines() if "(&far, " in line]
    assert len(notes) == 2 and not any("?" in line for line in notes)
    exact = x.astype(np.float64)
    exact = np.where(x < 9, np.sin(exact) * 2 + np.cos(exact), exact)
    np.testing.assert_allclose(np.asarray(function(x)), exact, rtol=1e-6, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_powers_of_integers(dtype: str) -> None:
    """Powers from 0 to 15 are the first loop's; a negative one gives the quotient, truncated, and all wrap."""
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 9, 3000).astype(dtype), rng.integers(0, 16, 3000).astype(dtype)
    compiled = harp.jit(lambda x, y: x**y)
    assert "pow_near" in source(lambda x, y: x**y, x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(x, y), x**y)
        y[[0, 1500, 2999]] = 16, 17, 40
        np.testing.assert_array_equal(compiled(x, y), x**y)
    if dtype.startswith("int"):
        x[:4], y[:4] = (1, -1, -1, 3), (-2, -3, -4, -1)
        np.testing.assert_array_equal(np.asarray(compiled(x, y))[:4], [1, -1, 1, 0])


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_divisions_are_those_of_numpy(dtype) -> None:
    """Of numbers at multiples of the divisor and just beside them, of tiny and huge ones, and of no numbers."""
    rng, limits = np.random.default_rng(0), np.finfo(dtype)
    y = (rng.normal(size=3000) * 10 ** rng.uniform(-3, 3, 3000)).astype(dtype)
    x = (rng.integers(-(2**20), 2**20, y.size) * y.astype(np.float64)).astype(dtype)
    special = np.array(
        [0, 1, 3, 0.1, 2**22 + 1, 1e30, limits.max, limits.tiny, limits.smallest_subnormal, np.inf, np.nan]
    )
    special = np.concatenate([special, -special]).astype(dtype)
    pairs = [(np.nextafter(x, dtype(end)), y) for end in (-np.inf, np.inf)] + [
        (x, y),
        (limits.tiny * x, limits.tiny * y),
    ]
    pairs += [tuple(a.ravel() for a in np.meshgrid(special, special))]
    for ours, numpys in (
        (lambda x, y: x % y, np.remainder),
        (lambda x, y: x // y, np.floor_divide),
        (hnp.fmod, np.fmod),
    ):
        compiled = harp.jit(ours)
        for a, b in pairs:
            with np.errstate(all="ignore"):
                wanted = numpys(a, b)
            result = np.asarray(compiled(a, b))
            np.testing.assert_array_equal(result, wanted)
            known = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])
