"""Intervals of integer arrays: they hold every element that the expression can have."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp.trace.eval.intervals import Interval, Wrapped, interval_of, limits, of_buffer
from harp.trace.graph.node import Captured, Constant, Contiguous, MapReduce, View, fresh_input
from harp.trace.index.polynomial import as_index, loop
from harp.trace.scalar.dtypes import bool_, f64, i64, u8
from harp.trace.scalar.expr import Operand, Position, apply, cast, const, evaluate, select
from harp.trace.scalar.ops import Op, Reduce

NUMBERS = st.integers(-20, 20)
INTERVALS = st.lists(NUMBERS, min_size=1, max_size=3).map(lambda ends: Interval(min(ends), max(ends)))
BINARY = [Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.MOD, Op.FLOORDIV, Op.POW, Op.LT, Op.EQ, Op.AND, Op.OR, Op.XOR, Op.SHL]
UNARY = [Op.NEG, Op.ABS, Op.NOT, Op.STOP]


def known(root, values, sizes=lambda p: p.constant):
    return interval_of(root, values.get, sizes)


def scalars(count):
    return [fresh_input(f"x{k}", (), i64) for k in range(count)]


@given(st.sampled_from(BINARY), INTERVALS, INTERVALS)
def test_operations_of_two(op, a, b):
    x, y = scalars(2)
    expr = apply(op, Operand(i64, 0), Operand(i64, 1))
    try:
        found = known(MapReduce((), (x, y), expr), {x: a, y: b})
    except Wrapped:
        return
    for p, q in itertools.product(range(a.low, a.high + 1), range(b.low, b.high + 1)):
        value = int(evaluate(expr, lambda e, pair=(p, q): np.int64(pair[e.slot])))
        assert found is None or found.low <= value <= found.high
    if a.low == a.high and b.low == b.high:
        assert found == (value, value)


@given(st.sampled_from(UNARY), INTERVALS)
def test_operations_of_one(op, a):
    (x,) = scalars(1)
    expr = apply(op, Operand(i64, 0))
    found = known(MapReduce((), (x,), expr), {x: a})
    for p in range(a.low, a.high + 1):
        assert found is None or found.low <= int(evaluate(expr, lambda e, p=p: np.int64(p))) <= found.high


def test_numbers_never_wrap():
    (x,) = scalars(1)
    square = MapReduce((), (x,), Operand(i64, 0) * Operand(i64, 0))
    assert known(square, {x: Interval(3, 3)}) == (9, 9)
    for value in (2**40, -(2**63)):
        with pytest.raises(Wrapped) as caught:
            known(square, {x: Interval(value, value)})
        assert caught.value.interval == (value**2, value**2) and caught.value.dtype is i64
    power = MapReduce((), (x,), apply(Op.POW, Operand(i64, 0), const(10**9, i64)))
    with pytest.raises(Wrapped):
        known(power, {x: Interval(2, 2)})
    assert known(power, {x: Interval(-1, -1)}) == (1, 1)


def test_casts():
    (x,) = scalars(1)
    for value, truth in ((Interval(0, 0), (0, 0)), (Interval(-3, 2), (0, 1)), (Interval(2, 5), (1, 1))):
        assert known(MapReduce((), (x,), cast(Operand(i64, 0), bool_)), {x: value}) == truth
    narrow = MapReduce((), (x,), cast(Operand(i64, 0), u8))
    assert known(narrow, {x: Interval(3, 200)}) == (3, 200)
    assert known(narrow, {x: Interval(300, 300)}) == (44, 44) and known(narrow, {x: Interval(3, 300)}) is None
    assert known(MapReduce((), (x,), cast(Operand(i64, 0), f64)), {x: Interval(3, 3)}) is None
    y = fresh_input("y", (), f64)
    assert known(MapReduce((), (y,), cast(Operand(f64, 0), i64)), {}) is None


def test_a_choice_holds_both_where_the_condition_is_not_known():
    y = fresh_input("y", (), f64)
    x, z = scalars(2)
    condition = Operand(f64, 0) < const(0.0, f64)
    either = MapReduce((), (y, x, z), select(condition, Operand(i64, 1), Operand(i64, 2)))
    assert known(either, {x: Interval(1, 2), z: Interval(7, 7)}) == (1, 7)
    assert known(either, {x: Interval(1, 2)}) is None
    decided = MapReduce((), (x, z), select(Operand(i64, 0) < const(5, i64), Operand(i64, 1), const(0, i64)))
    assert known(decided, {x: Interval(1, 2), z: Interval(7, 7)}) == (7, 7)


def test_reductions():
    n = as_index(5)
    x = fresh_input("x", (n,), i64)
    for reduce, expected in (
        (Reduce.SUM, (-10, 15)),
        (Reduce.MAX, (-2, 3)),
        (Reduce.MIN, (-2, 3)),
        (Reduce.PROD, None),
    ):
        assert known(MapReduce((n,), (x,), Operand(i64, 0), reduce, (0,)), {x: Interval(-2, 3)}) == expected
    total = MapReduce((n,), (x,), Operand(i64, 0), Reduce.SUM, (0,))
    assert known(total, {x: Interval(-2, 3)}, lambda p: None) is None


def test_any_and_all_may_have_no_elements():
    x = fresh_input("x", (as_index(5),), bool_)
    for reduce in (Reduce.MAX, Reduce.MIN):
        anything = MapReduce((as_index(5),), (x,), Operand(bool_, 0), reduce, (0,))
        for truth in ((1, 1), (0, 0)):
            assert known(anything, {x: Interval(*truth)}) == (0, 1)


def test_leaves():
    (x,) = scalars(1)
    n = as_index(4)
    assert known(Constant(Captured(np.array([3, -1]))), {}) == (-1, 3)
    assert known(Contiguous(x), {x: Interval(1, 2)}) == (1, 2)
    padded = View(fresh_input("y", (n,), i64), (n,), (loop(0, n),), (loop(0, n) - 1,), const(9, i64))
    assert known(padded, {padded.src: Interval(1, 2)}) == (1, 9)
    assert known(MapReduce((), (), Position(n * 3)), {}) == (12, 12)
    assert known(MapReduce((n,), (), Position(loop(0, n))), {}) is None


def test_numbers_of_arrays():
    assert of_buffer(np.array(7)) == (7, 7) and of_buffer(np.zeros(0, int)) == (0, 0)
    assert limits(u8) == (0, 255) and limits(bool_) == (0, 1) and limits(i64) == (-(2**63), 2**63 - 1)


def test_one_operand_bounds_bits_and_remainders_of_any_number():
    (x,) = scalars(1)
    for op, number, expected in ((Op.AND, 255, (0, 255)), (Op.MOD, 7, (0, 6)), (Op.AND, -2, None), (Op.XOR, 1, None)):
        for args in ((Operand(i64, 0), const(number, i64)), (const(number, i64), Operand(i64, 0))):
            if op is not Op.MOD or (args[0].dtype is i64 and isinstance(args[0], Operand)):
                assert known(MapReduce((), (x,), apply(op, *args)), {}) == expected
    bits = apply(Op.XOR, apply(Op.AND, Operand(i64, 0), const(5, i64)), const(2, i64))
    assert known(MapReduce((), (x,), bits), {}) == (0, 7)
