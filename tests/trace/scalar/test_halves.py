"""What expressions over float16 and bfloat16 mean: float32, rounded where they end or where a cast says so."""

from __future__ import annotations

import numpy as np
import pytest

from harp.trace.scalar.dtypes import bf16, computing, f16, f32, f64, i32
from harp.trace.scalar.expr import Operand, apply, cast, const, evaluate, select, walk
from harp.trace.scalar.halves import rounded, widened
from harp.trace.scalar.ops import Op

HALVES = [f16, bf16]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_nothing_is_computed_in_a_half(dtype):
    x, y = Operand(dtype, 0), Operand(dtype, 1)
    e = select(x < const(0.5, dtype), apply(Op.EXP, x * y), -y)
    wide = widened(e)
    assert wide.dtype is f32
    for part in walk((wide,)):
        assert not part.dtype.is_stored or isinstance(part, Operand)
    assert rounded(wide, dtype).dtype is dtype


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_an_expression_is_rounded_once(dtype):
    """1 + eps/2 + eps/2 is 1 + eps, but 1 after each rounding."""
    x = Operand(dtype, 0)
    half = const(2.0**-11 if dtype is f16 else 2.0**-8, dtype)
    e = x + half + half
    one = np.ones((), dtype.numpy)
    found = evaluate(rounded(widened(e), dtype), lambda leaf: one)
    assert found.dtype == dtype.numpy and float(found) == 1 + 2 * float(half.value)
    asked = cast(cast(cast(x, f32) + cast(half, f32), dtype), f32)  # a cast rounds
    assert float(evaluate(widened(asked), lambda leaf: one)) == 1.0


def test_others_stay_and_copies_are_no_conversions():
    e = Operand(f32, 0) + apply(Op.SQRT, Operand(f32, 1))
    assert widened(e) is e and rounded(e, f32) is e
    x = Operand(f16, 0)
    assert rounded(widened(x), f16) is x
    assert widened(cast(x, bf16)) is cast(cast(cast(x, f32), bf16), f32)
    assert widened(cast(x, i32)) is cast(cast(x, f32), i32)
    assert widened(cast(Operand(f64, 0), f16)) is cast(cast(Operand(f64, 0), f16), f32)  # rounded from float64, once
    assert [computing(d) for d in (f16, bf16, f32, i32)] == [f32, f32, f32, i32]
