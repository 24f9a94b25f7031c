"""Rows of float16 are converted by the library, a block at a time: which loops, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def loops(function, *arguments) -> str:
    return harp.jit(function).lower(*arguments).loops


def halves(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 511, 512, 513, 1000, 5000])
def test_every_length(count: int) -> None:
    x, y = halves(count), halves(count, seed=1)
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda x, y: x * 1.5 + y)(x, y)), x * np.float16(1.5) + y)


def test_every_number_there_and_back() -> None:
    wide = np.asarray(harp.jit(lambda x: x.astype("float32"))(EVERY))
    np.testing.assert_array_equal(wide, EVERY.astype(np.float32))
    back = np.asarray(harp.jit(lambda x: x.astype("float16"))(wide))
    numbers = ~np.isnan(EVERY)
    np.testing.assert_array_equal(back[numbers].view(np.uint16), EVERY[numbers].view(np.uint16))
    assert np.isnan(back[~numbers]).all()
    negative = np.asarray(harp.jit(lambda x: -x + 0)(EVERY))
    np.testing.assert_array_equal(negative, -EVERY)


def test_rounding() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    middle = EVERY[:31743].view(np.uint16).astype(np.float64) + 0.5  # of denormal neighbours, and others
    x = np.concatenate(
        [bits.view(np.float32), np.ldexp(middle.astype(np.float32), -24), [65519.0, 65520.0, 1e-8, -0.0]]
    )
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(harp.jit(lambda x: x.astype("float16"))(x)), x.astype(np.float16))


def test_which_loops() -> None:
    x, wide = halves(4000), np.ones(4000, np.float32)
    text = loops(lambda x, y: x * 1.5 + y, x, x)
    assert text.count("call widen") == 2 and text.count("call narrow") == 1
    assert "call widen" in loops(lambda x, y: x.astype("float32") + y, x, wide)
    assert "call narrow" in loops(lambda x: hnp.exp(x).astype("float16"), wide)
    assert "call widen" in loops(lambda x: x.astype("float32"), x)
    for other in (lambda x: x[::2] * 2, lambda x: x[::-1] * 2):
        assert "call widen" not in loops(other, x)


def test_rows_and_what_is_the_same_in_all_of_them() -> None:
    x, row, column = halves(50, 300), halves(300, seed=1), halves(50, 1, seed=2)
    found = np.asarray(harp.jit(lambda x, r, c: (x + r) * c)(x, row, column))
    np.testing.assert_array_equal(found, (x + row) * column)


def test_a_result_that_is_read_again() -> None:
    """What the first statement rounds, the second one reads."""

    def f(x):
        y = (x * 3).astype("float16")
        return y, y.astype("float32") * x

    x = halves(3000)
    y, z = harp.jit(f)(x)
    expected = (x.astype("f4") * 3).astype("f2")
    np.testing.assert_array_equal(np.asarray(y), expected)
    np.testing.assert_array_equal(np.asarray(z), expected.astype("f4") * x.astype("f4"))


def test_in_place() -> None:
    x = halves(3000)
    expected = x * x + np.float16(1)
    f = harp.jit(lambda x: x * x + 1, donate_argnums=0)
    np.testing.assert_array_equal(np.asarray(f(hnp.asarray(x.copy()))), expected)
