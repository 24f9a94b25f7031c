"""Multiply-adds are fused in complex values only; what that means for real ones."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.lower.loopir.products import fused
from harp.trace.scalar.dtypes import f32
from harp.trace.scalar.expr import Expr, Operand, apply
from harp.trace.scalar.ops import Op

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

A, B, C, D = (Operand(f32, slot) for slot in range(4))


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    return apply(Op.FMA, a, b, c)


@pytest.mark.parametrize(
    "value, expected",
    [
        (A * B + C, fma(A, B, C)),
        (C + A * B, fma(A, B, C)),
        (C - A * B, fma(-A, B, C)),
        (A * B - C, fma(A, B, -C)),
        ((A * B + C) * B + D, fma(fma(A, B, C), B, D)),
        (A + B, A + B),
    ],
)
def test_products_that_are_added(value: Expr, expected: Expr) -> None:
    assert fused(value) is expected


def test_a_product_of_complex_values() -> None:
    value = apply(Op.COMPLEX, A * B - C * D, A * D + C * B)
    assert fused(value) is apply(Op.COMPLEX, fma(A, B, -(C * D)), fma(A, D, C * B))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_real_value_is_rounded_alike_by_all_that_read_it(dtype: str) -> None:
    """A product that a maximum, a mean or a running maximum has rounded is no other number beside it."""
    x, y = np.random.default_rng(1).standard_normal((2, 500)).astype(dtype)
    column = harp.jit(lambda a, b: hnp.var(a * b, axis=1))(x[:, None], y[:, None])
    np.testing.assert_array_equal(np.asarray(column), 0)
    for above in (
        lambda a, b: hnp.max(a * b) - a * b,
        lambda a, b: a * b - hnp.min(a * b),
        lambda a, b: hnp.cummax(a * b) - a * b,
        lambda a, b: hnp.max(a * b + b) - (a * b + b),
    ):
        found = np.asarray(harp.jit(above)(x, y))
        assert found.min() == 0, "a root of it would be no number, or nothing would be the largest"
    z = np.asarray(harp.jit(lambda a, b: hnp.log_softmax(a * b, axis=1))(x[:, None], y[:, None]))
    np.testing.assert_array_equal(z, 0)


@needs_compiler
def test_what_is_zero_stays_zero_and_has_its_sign() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 1000, 3)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda a, b: a * b - b * a)(x, y)), 0)
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda a: hnp.cross(a, 3 * a))(np.round(8 * x))), 0)
    ones = np.ones(20)
    negative = np.asarray(harp.jit(lambda a, b, c: -(a * b + c))(ones, ones, -ones))
    assert np.signbit(negative).all()


@needs_compiler
def test_real_formulas_have_numpys_bits() -> None:
    a, b, c = np.random.default_rng(0).standard_normal((3, 1000)).astype(np.float32)
    found = harp.jit(lambda a, b, c: (a * b + c) * a - b)(a, b, c)
    np.testing.assert_array_equal(np.asarray(found), (a * b + c) * a - b)
    found = harp.jit(lambda: hnp.linspace(0.1, 3.7, 1001))()
    np.testing.assert_array_equal(np.asarray(found), np.linspace(0.1, 3.7, 1001))
