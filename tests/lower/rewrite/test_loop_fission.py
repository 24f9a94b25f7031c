"""Long chains of operations in segments."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.lower.rewrite import loop_fission

SIZES = [0, 1, 15, 255, 256, 257, 600, 10_000]
COEFFICIENTS = np.random.default_rng(0).normal(size=60).tolist()


def horner(x):
    total = x * COEFFICIENTS[0] + COEFFICIENTS[1]
    for coefficient in COEFFICIENTS[2:]:
        total = total * x + coefficient
    return total


def two(x, v):
    """Two chains, two results, and a mask from the start that is used at the end."""
    far, p = x > 0.5, horner(x)
    return hnp.where(far, p, v), horner(v) + p


def numpy_two(x, v):
    p = horner(x)
    return np.where(x > 0.5, p, v), horner(v) + p


def is_cut(function, *arguments) -> bool:
    return "kept0" in harp.jit(function).lower(*arguments).loops


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_chain_at_all_sizes(dtype):
    f = harp.jit(horner)
    for n in SIZES:
        x = np.random.default_rng(n).uniform(-1, 1, n).astype(dtype)
        expected = horner(x.astype(np.float64))
        np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)
    assert f.compilations == 1 and is_cut(horner, np.ones(3, dtype))


def test_several_chains_and_results():
    f = harp.jit(two)
    for n in SIZES:
        x, v = np.random.default_rng(n).uniform(-1, 1, (2, n))
        for got, expected in zip(f(x, v), numpy_two(x, v), strict=True):
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-14)
    assert is_cut(two, np.ones(3), np.ones(3))


def test_integers_wrap_and_the_position_counts():
    def scramble(x):
        x = x + hnp.arange(x.shape[0], dtype=np.uint32)
        for k in range(15):
            x = (x ^ (x << 5)) * np.uint32(2654435761 + k)
        return x

    f = harp.jit(scramble)
    for n in SIZES:
        x = np.random.default_rng(n).integers(0, 2**32, n, dtype=np.uint32)
        y = x + np.arange(n, dtype=np.uint32)
        for k in range(15):
            y = (y ^ (y << np.uint32(5))) * np.uint32(2654435761 + k)
        np.testing.assert_array_equal(np.asarray(f(x)), y)
    assert is_cut(scramble, np.ones(3, np.uint32))


def test_an_element_has_the_same_bits_everywhere():
    f = harp.jit(horner)
    x = np.random.default_rng(3).uniform(-1, 1, 5000)
    whole = np.asarray(f(x))
    for start, stop in ((0, 1), (255, 258), (100, 700), (4000, 5000)):
        np.testing.assert_array_equal(np.asarray(f(x[start:stop])), whole[start:stop])
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(np.asarray(harp.jit(horner, threads=threads)(x)), whole)


def test_donated_memory_is_read_before_it_is_written():
    f = harp.jit(two, donate_argnums=(0, 1))
    x, v = np.random.default_rng(5).uniform(-1, 1, (2, 1000))
    expected = numpy_two(x, v)
    for got, want in zip(f(hnp.array(x), hnp.array(v)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-14)


def test_rows_and_views():
    f = harp.jit(lambda x: horner(x[::2, ::-1].T))
    for shape in ((0, 3), (1, 1), (7, 300), (600, 4)):
        x = np.random.default_rng(1).uniform(-1, 1, shape)
        np.testing.assert_allclose(np.asarray(f(x)), horner(x[::2, ::-1].T), rtol=0, atol=1e-12)


def test_short_and_wide_code_stays_whole():
    x = np.ones(3)
    assert not is_cut(lambda x: hnp.exp(x) * x + 1, x)
    # eight chains that know nothing of each other
    assert not is_cut(lambda x: sum(horner(x + k) for k in range(8)), x)


def test_what_is_kept_is_little(monkeypatch):
    monkeypatch.setattr(loop_fission, "_KEPT", 0)
    assert not is_cut(lambda x: horner(x) * 3, np.ones(3))


def waves(np, x):
    """Functions of functions, some of them of several values, which other operations need later."""
    a = np.sin(x) + np.cos(2 * x)
    b = np.exp(-a * a) * np.tanh(x)
    c = np.log1p(b * b) + np.arctan2(a, b) * a
    d = np.hypot(c, b) + np.cos(c + 1)
    return d * a + np.tanh(b + c) * np.exp(-d * d), a - np.power(1 + b * b, c)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_functions_are_calls(dtype):
    """At all sizes, for arguments near and far, with the bits of a few functions in a loop."""
    f = harp.jit(lambda x: waves(hnp, x))
    text = f.lower(np.ones(9, dtype)).loops
    assert all(f"call map {name}:" in text for name in ("sin", "tanh", "log1p", "atan2", "hypot", "pow"))
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=n).astype(dtype)
        x[1::100] = 1e7
        close = {"rtol": 1e-3, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}
        for found, expected in zip(f(x), waves(np, x.astype(np.float64)), strict=True):
            np.testing.assert_allclose(found, expected, **close)
    assert f.compilations == 1


def test_a_function_in_a_call_has_the_bits_of_one_in_a_loop():
    x = np.random.default_rng(0).normal(size=700)
    many = harp.jit(lambda x: [hnp.sin(x + k) for k in range(8)])
    assert many.lower(x).loops.count("call map sin") == 8
    one = harp.jit(hnp.sin)
    for k, found in enumerate(many(x)):
        np.testing.assert_array_equal(found, one(x + k))


def test_tiles_of_values_that_nothing_needs_any_more_are_used_again():
    def chain(x):
        for k in range(15):
            x = hnp.sin(x) * 1.01 + k
        return x

    text = harp.jit(chain).lower(np.ones(9)).loops
    assert text.count("local") == 2
    x = np.linspace(0, 1, 300)
    expected = x
    for k in range(15):
        expected = np.sin(expected) * 1.01 + k
    np.testing.assert_allclose(harp.jit(chain)(x), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_in_the_gradient_of_a_long_chain_are_calls(dtype):
    """Also in loops over one strip that store several values for later ones."""

    def chain(x):
        for k in range(40):
            x = hnp.sin(x) * 1.01 + k % 3
        return x.sum()

    g = harp.jit(harp.grad(chain))
    text = g.lower(np.ones(9, dtype)).loops
    assert text.count("call map sin") == text.count("sin(") == 39
    assert text.count("call map cos") == text.count("cos(") == 40
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=n).astype(dtype)
        value, expected = x.astype(np.float64), np.ones(n)
        for k in range(40):
            expected *= np.cos(value) * 1.01
            value = np.sin(value) * 1.01 + k % 3
        np.testing.assert_allclose(g(x), expected, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-7)
    assert g.compilations == 1


def test_masks_are_computed_again():
    """A tile of bytes beside tiles of numbers made loops five times as slow."""

    def steps(x):
        for k in range(5):
            x = hnp.where(x > 0.3 * k, hnp.exp(-x) + k, hnp.sin(x) + 0.5)
        return x

    def numpy_steps(x):
        for k in range(5):
            x = np.where(x > 0.3 * k, np.exp(-x) + k, np.sin(x) + 0.5)
        return x

    softplus = harp.grad(lambda x, y: hnp.logaddexp(0, -x * y).mean(), argnums=(0, 1))
    for function, count in ((two, 2), (steps, 1), (harp.grad(lambda x: steps(x).sum()), 1), (softplus, 2)):
        assert "bool[" not in harp.jit(function).lower(*[np.ones(3)] * count).loops
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=n)
        np.testing.assert_allclose(harp.jit(steps)(x), numpy_steps(x), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_with_a_constant_exponent_are_calls(dtype):
    """With the bits of one that stays in its loop; those that are products and roots stay there."""

    def chain(x):
        for _ in range(8):
            x = (x * x + 0.5) ** 0.7 + 0.1 * hnp.sin(x)
        return x

    x = np.random.default_rng(0).uniform(0.5, 2, 300).astype(dtype)
    assert harp.jit(chain).lower(x).loops.count("call map pow") == 8
    assert "call map pow" not in harp.jit(lambda x: [hnp.sin(x + k) ** 1.5 for k in range(8)]).lower(x).loops
    expected = x.astype(np.float64)
    for _ in range(8):
        expected = (expected * expected + 0.5) ** 0.7 + 0.1 * np.sin(expected)
    np.testing.assert_allclose(harp.jit(chain)(x), expected, rtol=1e-5 if dtype == np.float32 else 1e-13)
    many = harp.jit(lambda x: [(x + k) ** (0.13 + 0.2 * k) for k in range(8)])
    assert many.lower(x).loops.count("call map pow") == 8
    for k, found in enumerate(many(x)):
        np.testing.assert_array_equal(found, harp.jit(lambda x, k=k: (x + k) ** (0.13 + 0.2 * k))(x))
