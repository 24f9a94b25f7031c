"""Between which numbers the elements of an integer array lie, given those of the inputs.

It serves Python integers: an argument that is one may meet a narrower dtype, where it must fit, itself or what was
computed from it. Ends are Python integers, so nothing wraps around here. Single numbers give single numbers; elements
that differ give an interval that holds them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from harp.trace.graph.node import (
    Constant,
    Cumulative,
    Gather,
    HostCall,
    Input,
    MapReduce,
    Node,
    Part,
    Put,
    RowWise,
    Scatter,
    Several,
    View,
    walk,
)
from harp.trace.graph.row_functions import ROWS
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, NDArray, bool_, integer_limits
from harp.trace.scalar.expr import Apply, Const, Expr, Operand, Position
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import INFO, Op, Reduce, convert
from harp.trace.source_locations import short


class Interval(NamedTuple):
    """The lowest and the highest number."""

    low: int
    high: int


class Wrapped(Exception):
    """A number on the way leaves its dtype: the program would go on with another one."""

    def __init__(self, interval: Interval, dtype: DType) -> None:
        super().__init__(interval, dtype)
        self.interval = interval
        self.dtype = dtype


_Known = Interval | None  # None: floating point, or an array that may hold any number, and may wrap around
Given = Callable[[Input], _Known]
Sizes = Callable[[Index], "int | None"]
_Rule = Callable[..., _Known]


def limits(dtype: DType) -> Interval:
    """All numbers of an integer or bool dtype."""
    if dtype is bool_:
        return Interval(0, 1)
    info = integer_limits(dtype)
    return Interval(info.min, info.max)


def of_buffer(values: NDArray) -> Interval:
    """The numbers in an array; of none, 0."""
    if values.ndim == 0:
        return Interval(int(values), int(values))
    return Interval(int(values.min()), int(values.max())) if values.size else Interval(0, 0)


def interval_of(root: Node, given: Given, size: Sizes) -> Interval | None:
    """The interval of an integer array, or None where it may hold any number. Raises Wrapped."""
    known: dict[Node, _Known] = {}
    for node in walk((root,)):
        known[node] = _node(node, known, given, size)
    return known[root]


def is_within(inner: Interval, outer: Interval) -> bool:
    return outer.low <= inner.low and inner.high <= outer.high


def outside(found: Interval, allowed: Interval) -> str:
    """The number of `found` that is not allowed."""
    return short(found.low if found.low < allowed.low else found.high)


def _hull(a: Interval, b: Interval) -> Interval:
    return Interval(min(a.low, b.low), max(a.high, b.high))


def _node(node: Node, known: dict[Node, _Known], given: Given, size: Sizes) -> _Known:
    if node.dtype.is_inexact:
        return None
    if isinstance(node, Input):
        return given(node)
    if isinstance(node, (Several, Part, HostCall)):
        return None
    if isinstance(node, Constant):
        return of_buffer(node.captured.array)
    if isinstance(node, MapReduce):
        return _map_reduce(node, known, size)
    if isinstance(node, Cumulative):
        return _cumulative(node, known[node.operands[0]], size)
    if isinstance(node, RowWise):
        return None if ROWS[node.function].positions else known[node.operands[-1]]
    result = known[node.inputs[0]]
    if isinstance(node, (View, Gather)) and node.fill is not None and result is not None:
        return _hull(result, of_buffer(node.fill.value))
    if isinstance(node, Scatter):
        return _scatter(node, result, known[node.updates])
    return result


def _cumulative(node: Cumulative, each: _Known, size: Sizes) -> _Known:
    if each is None or node.reduce in (Reduce.MAX, Reduce.MIN):
        return each
    count = size(node.shape[node.axis])
    if node.reduce is not Reduce.SUM or count is None:
        return None
    return _inside(Interval(min(each.low, count * each.low), max(each.high, count * each.high)), node.dtype)


def _scatter(node: Scatter, base: _Known, updates: _Known) -> _Known:
    chosen = node.kind in (Put.SET, Put.MIN, Put.MAX)
    return _hull(base, updates) if chosen and base is not None and updates is not None else None


def _map_reduce(node: MapReduce, known: dict[Node, _Known], size: Sizes) -> _Known:
    def leaf(e: Expr) -> _Known:
        if isinstance(e, Operand):
            return known[node.operands[e.slot]]
        value = size(e.index) if isinstance(e, Position) else None
        return None if value is None else Interval(value, value)

    each = _expression(node.expr, leaf)
    if node.reduce is not None and node.dtype is bool_:  # of no elements it is neither
        return Interval(0, 1)
    if each is None or node.reduce in (None, Reduce.MAX, Reduce.MIN):
        return each
    counts = [size(node.domain[axis]) for axis in node.axes]
    if node.reduce is not Reduce.SUM or any(c is None for c in counts):
        return None
    count = math.prod(c for c in counts if c is not None)
    return _inside(Interval(count * each.low, count * each.high), node.dtype)


def _inside(result: Interval, dtype: DType) -> Interval:
    if not is_within(result, limits(dtype)):
        raise Wrapped(result, dtype)
    return result


def _expression(root: Expr, leaf: Callable[[Expr], _Known]) -> _Known:
    known: dict[Expr, _Known] = {}
    for e in walk_expr((root,)):
        if isinstance(e, Apply):
            known[e] = _apply(e, [known[a] for a in e.args])
        elif isinstance(e, Const):
            known[e] = None if e.dtype.is_inexact else of_buffer(e.value)
        else:
            known[e] = leaf(e)
    return known[root]


def _apply(e: Apply, args: Sequence[_Known]) -> _Known:
    if e.dtype.is_inexact or e.op is Op.BITCAST:
        return None
    if e.op is Op.SELECT and args[0] is None:
        args = [Interval(0, 1), *args[1:]]
    if e.op in _BOUNDED_BY_ONE:
        args = [limits(x.dtype) if a is None else a for a, x in zip(args, e.args, strict=True)]
    known = [a for a in args if a is not None]
    if len(known) < len(args):
        return Interval(0, 1) if e.dtype is bool_ else None
    rule = _RULES.get(e.op)
    result = None if rule is None else rule(*known)
    if e.op is Op.CAST:
        result = _cast(known[0], e.dtype)
    if result is not None:
        return _inside(result, e.dtype)
    return _as_the_program_does(e, known) if all(a.low == a.high for a in known) else None


def _as_the_program_does(e: Apply, args: Sequence[Interval]) -> Interval:
    numbers = [np.asarray(a.low, x.dtype.numpy) for a, x in zip(args, e.args, strict=True)]
    if e.op is Op.CAST:
        return of_buffer(convert(numbers[0], e.dtype.numpy))
    with np.errstate(all="ignore"):
        return of_buffer(np.asarray(INFO[e.op].numpy(*numbers)))


def _cast(a: Interval, dtype: DType) -> Interval | None:
    """A cast may wrap: it is asked for, or has a check of its own."""
    if dtype is not bool_:
        return a if is_within(a, limits(dtype)) else None
    if a.low == a.high == 0:
        return Interval(0, 0)
    return Interval(0 if a.low <= 0 <= a.high else 1, 1)


def _corners(function: Callable[[int, int], int]) -> _Rule:
    """The hull of the four results: for what is monotonic in each operand."""

    def rule(a: Interval, b: Interval) -> Interval:
        results = [function(x, y) for x in a for y in b]
        return Interval(min(results), max(results))

    return rule


def _absolute(a: Interval) -> Interval:
    ends = abs(a.low), abs(a.high)
    return Interval(0 if a.low <= 0 <= a.high else min(ends), max(ends))


def _remainder(a: Interval, b: Interval) -> Interval | None:
    if a.low == a.high or b.low != b.high or not b.low:
        return None
    return Interval(0, b.low - 1) if b.low > 0 else Interval(b.low + 1, 0)


def _and(a: Interval, b: Interval) -> Interval | None:
    """Bits that both have: no more than those of one that is not negative."""
    if a.low == a.high and b.low == b.high:
        return None
    ends = [x.high for x in (a, b) if x.low >= 0]
    return Interval(0, min(ends)) if ends else None


def _or(a: Interval, b: Interval) -> Interval | None:
    """Bits that one of them has, or just one of them."""
    if (a.low == a.high and b.low == b.high) or a.low < 0 or b.low < 0:
        return None
    return Interval(0, (1 << max(a.high, b.high).bit_length()) - 1)


def _power(a: Interval, b: Interval) -> Interval | None:
    if a.low != a.high or b.low != b.high or b.low < 0:
        return None
    # A larger exponent is no larger: it has left every dtype, or repeats.
    result = a.low ** (b.low if b.low < 64 else 64 + b.low % 2)
    return Interval(result, result)


def _less(a: Interval, b: Interval) -> Interval:
    return Interval(int(a.high < b.low), int(a.low < b.high))


def _equal(a: Interval, b: Interval) -> Interval:
    return Interval(int(a.low == a.high == b.low == b.high), int(a.low <= b.high and b.low <= a.high))


def _choice(condition: Interval, a: Interval, b: Interval) -> Interval:
    if condition.low == condition.high:
        return a if condition.low else b
    return _hull(a, b)


_BOUNDED_BY_ONE = {Op.AND, Op.MOD}  # one operand says where the result is, whatever the other is
# What is not here is computed as the program does, where the operands are single numbers.
_RULES: dict[Op, _Rule] = {
    Op.ADD: _corners(operator.add),
    Op.MUL: _corners(operator.mul),
    Op.MAX: _corners(max),
    Op.MIN: _corners(min),
    Op.NEG: lambda a: Interval(-a.high, -a.low),
    Op.ABS: _absolute,
    Op.MOD: _remainder,
    Op.AND: _and,
    Op.OR: _or,
    Op.XOR: _or,
    Op.POW: _power,
    Op.LT: _less,
    Op.EQ: _equal,
    Op.SELECT: _choice,
    Op.STOP: lambda a: a,
}
