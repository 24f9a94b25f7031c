"""Sums of products are fused once for a program: which of them, and what users still rely on."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.lower.rewrite.multiply_add import fused
from harp.trace.scalar.dtypes import c64, f16, f32, f64, i32
from harp.trace.scalar.expr import Expr, Operand, apply, const, evaluate
from harp.trace.scalar.ops import Op

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def operands(dtype) -> list[Expr]:
    return [Operand(dtype, slot) for slot in range(4)]


A, B, C, D = operands(f32)


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
        (apply(Op.EXP, A * B + C), apply(Op.EXP, fma(A, B, C))),
    ],
)
def test_products_that_are_added(value: Expr, expected: Expr) -> None:
    assert fused(value) is expected


@pytest.mark.parametrize(
    "value",
    [
        A * B + C * D,
        A * B - C * D,
        A * A - B * B,
        (p := A * B) - apply(Op.RINT, p),
        A + B,
        A * B,
    ],
)
def test_what_is_left(value: Expr) -> None:
    assert fused(value) is value


@pytest.mark.parametrize("dtype", [f16, i32])
def test_only_floats_of_the_machine(dtype) -> None:
    a, b, c, _ = operands(dtype)
    assert fused(a * b + c) is a * b + c


def test_doubles_too() -> None:
    a, b, c, _ = operands(f64)
    assert fused(a * b + c) is fma(a, b, c)


def test_all_products_of_complex_values() -> None:
    a, b, c, d = operands(f32)
    value = apply(Op.COMPLEX, a * b - c * d, a * d + c * b)
    assert value.dtype is c64
    assert fused(value) is apply(Op.COMPLEX, fma(a, b, -(c * d)), fma(a, d, c * b))


def test_a_polynomial_has_one_instruction_for_a_term() -> None:
    x = Operand(f32, 0)
    value: Expr = const(3, f32)
    for coefficient in (0.5, -1.25, 2.0):
        value = value * x + const(coefficient, f32)
    numbers = np.linspace(-2, 2, 9, dtype=np.float32)  # few bits: exact, whatever is rounded
    found = evaluate(fused(value), lambda e: e.value if hasattr(e, "value") else numbers)
    np.testing.assert_array_equal(found, np.polyval([3, 0.5, -1.25, 2.0], numbers.astype(np.float64)))
    assert str(fused(value)).count("fma") == 3 and "mul" not in str(fused(value))


x, y, z = (np.random.default_rng(k).standard_normal((1000, 3)).astype(np.float32) for k in range(3))


@needs_compiler
def test_what_is_zero_stays_zero() -> None:
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda a, b: a * b - b * a)(x, y)), 0)
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda a: hnp.cross(a, 3 * a))(np.round(8 * x))), 0)


@needs_compiler
def test_the_order_of_two_products_is_of_no_account() -> None:
    squares = harp.jit(lambda a, b: a * a + b * b)
    np.testing.assert_array_equal(np.asarray(squares(x, y)), np.asarray(squares(y, x)))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_close_to_the_exact_result(dtype: str) -> None:
    a, b, c = (v.astype(dtype) for v in (x, y, z))
    exact = a.astype(np.longdouble) * b * b + c * b + a
    found = np.asarray(harp.jit(lambda a, b, c: (a * b + c) * b + a)(a, b, c))
    size = np.abs(a) * b * b + np.abs(c * b) + np.abs(a)
    assert np.all(np.abs(found - exact) <= 3 * np.finfo(dtype).eps * size)


@needs_compiler
def test_every_length_rounds_alike() -> None:
    f = harp.jit(lambda a, b, c: (a * b + c) * a - b)
    columns = [v.reshape(-1) for v in (x, y, z)]
    whole = np.asarray(f(*columns))
    for length in (1, 3, 15, 16, 17, 64, 1000):
        np.testing.assert_array_equal(np.asarray(f(*(v[:length] for v in columns))), whole[:length])


@needs_compiler
def test_numbers_made_of_positions_are_numpys() -> None:
    for make in (
        lambda np: np.linspace(0.1, 3.7, 1001),
        lambda np: np.arange(0.1, 3.7, 0.01),
        lambda np: np.linspace(0.1, 3.7, 1001, endpoint=False) * 2,
    ):
        np.testing.assert_array_equal(np.asarray(harp.jit(lambda make=make: make(hnp))()), make(np))
    times = np.ones(1001)
    found = np.asarray(harp.jit(lambda x: x * hnp.linspace(0.1, 3.7, 1001))(times))
    np.testing.assert_array_equal(found, np.linspace(0.1, 3.7, 1001))
