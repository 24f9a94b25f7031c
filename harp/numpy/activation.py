"""Functions of networks, without overflow and with all digits at both ends: those between layers, and softmax and its
relatives, which are exponentials beside the largest one of their row.

>>> import harp.numpy as hnp
>>> hnp.softmax(hnp.asarray([1000.0, 1000.0]))
Array([0.5, 0.5])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harp.numpy.elementwise import exp, float_map, log
from harp.numpy.elementwise import where as choose
from harp.numpy.reductions import in_dtype, sum
from harp.trace.array.arithmetic import NUMBERS, divide, multiply, require, subtract, zero_of
from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.primitives import Axis, as_array, common_dtype, emit, fold, map_, normalize_axes, require_elements
from harp.trace.graph import view
from harp.trace.scalar.dtypes import DType, computing, inexact
from harp.trace.scalar.expr import Expr, apply, const, select
from harp.trace.scalar.expr import less_equal as _less_equal
from harp.trace.scalar.expr import select as _select
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.size import to_index
from harp.transforms.autodiff.custom import custom_jvp


def relu(x: object) -> Array:
    """Elementwise max(x, 0); NaN stays NaN, and the gradient at 0 is 0. Raises DTypeError for bool.

    >>> import harp.numpy as hnp
    >>> hnp.relu(hnp.asarray([-1.0, 2.0]))
    Array([0., 2.])
    """
    require(common_dtype((x,))[0], "relu", NUMBERS)
    return map_(lambda a: _select(_less_equal(a, zero_of(a.dtype)), zero_of(a.dtype), a), x)


def sigmoid(x: object) -> Array:
    """Elementwise 1 / (1 + exp(-x)), without overflow and with full relative accuracy on both sides.

    >>> sigmoid(0.0)
    Array(0.5)
    """
    return float_map(_sigmoid, x)


def _minus_magnitude(a: Expr) -> tuple[Expr, Expr]:
    """(a < 0, -|a|)"""
    is_negative = a < zero_of(a.dtype)
    return is_negative, _select(is_negative, a, -a)


def _sigmoid(a: Expr) -> Expr:
    is_negative, n = _minus_magnitude(a)
    t = apply(Op.EXP, n)
    r = apply(Op.RECIP, 1 + t)
    return _select(is_negative, t * r, r)


def softplus(x: object) -> Array:
    """Elementwise log(1 + exp(x)), without overflow and with full relative accuracy on both sides.

    >>> import harp.numpy as hnp
    >>> hnp.softplus(hnp.asarray([-1000.0, 0.0, 1000.0]))
    Array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return float_map(_softplus, x)


def _softplus(a: Expr) -> Expr:
    is_negative, n = _minus_magnitude(a)
    tail = apply(Op.LOG1P, apply(Op.EXP, n))
    return _select(is_negative, tail, a + tail)


def _shift(array: Array, axes: Sequence[int]) -> Array:
    """The maximum along axes, kept, through which no derivative flows; 0 where it is not finite."""
    return map_(_finite, fold(lambda e: e, array, Reduce.MAX, axes, True))


def _finite(e: Expr) -> Expr:
    return apply(Op.STOP, select(apply(Op.ABS, e) < math.inf, e, const(0, e.dtype)))


@custom_jvp
def _exp_of_distance(x: Array, largest: Array) -> Any:
    """exp(x - largest), and 1 for those that are the largest, infinite ones too."""

    def build(e: Expr, m: Expr) -> Expr:
        return apply(Op.EXP, select(apply(Op.EQ, e, m), const(0, e.dtype), e - m))

    return map_(build, x, largest)


@_exp_of_distance.defjvp
def _tangent(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """Of what `largest` is, `logsumexp` does not depend."""
    powers: Array = _exp_of_distance(*primals)
    return powers, multiply(powers, tangents[0])


def _as_float(x: object) -> tuple[Array, DType]:
    """The operand in the floating dtype to compute in, and that of the result."""
    array = as_array(x)
    dtype = array.kind if array.kind.is_inexact else inexact(array.kind)
    inner = computing(dtype)
    return (array if array.kind is inner else marked(map_(lambda e: e, array, to=inner), array.weak)), dtype


def _counted(array: Array, where: object) -> Array:
    """The elements that count; -inf for others, whose exponential is 0."""
    return array if where is None else choose(where, array, -math.inf)


def _of_counted(result: Array, where: object, other: float) -> Array:
    """The result, and for elements that do not count another one."""
    return result if where is None else choose(where, result, other)


def softmax(x: object, axis: Axis = -1, where: object = None) -> Array:
    """exp(x) / sum(exp(x)) over axes, without overflow; a row of -inf gives NaN. With `where`, of those elements for
    which it is true; 0 for the others.

    >>> import harp.numpy as hnp
    >>> hnp.softmax(hnp.asarray([1000.0, 1000.0]))
    Array([0.5, 0.5])
    """
    array, dtype = _as_float(x)
    array = _counted(array, where)
    axes = normalize_axes(axis, array.ndim)
    powers = exp(subtract(array, _shift(array, axes)))
    return _of_counted(in_dtype(divide(powers, sum(powers, axes, keepdims=True)), dtype), where, 0.0)


def log_softmax(x: object, axis: Axis = -1, where: object = None) -> Array:
    """The logarithm of `softmax`, accurate where that is tiny; a row of -inf gives NaN. With `where`, of those elements
    for which it is true; -inf for the others.

    >>> import harp.numpy as hnp
    >>> hnp.log_softmax(hnp.asarray([0.0, 1000.0]))
    Array([-1000.,     0.])
    """
    array, dtype = _as_float(x)
    array = _counted(array, where)
    axes = normalize_axes(axis, array.ndim)
    shifted = subtract(array, _shift(array, axes))
    total = log(sum(exp(shifted), axes, keepdims=True))
    return _of_counted(in_dtype(subtract(shifted, total), dtype), where, -math.inf)


def logsumexp(x: object, axis: Axis = None, keepdims: bool = False, *, where: object = None) -> Array:
    """log(sum(exp(x))) over axes, without overflow; of -inf only, -inf. With `where`, of those elements for which it is
    true. Raises ShapeError over no elements.

    Where the largest elements are infinite, they share the derivative, as in their maximum.

    >>> import harp.numpy as hnp
    >>> hnp.logsumexp(hnp.asarray([1000.0, 1000.0]))
    Array(1000.69314718)
    """
    array, dtype = _as_float(x)
    array = _counted(array, where)
    axes = normalize_axes(axis, array.ndim)
    require_elements("logsumexp", array, axes)
    largest = map_(lambda m: apply(Op.STOP, m), fold(lambda e: e, array, Reduce.MAX, axes, True))
    total = sum(_exp_of_distance(array, largest), axes, keepdims=True)
    result = in_dtype(map_(lambda t, m: apply(Op.LOG, t) + m, total, largest), dtype)
    if keepdims or not axes:
        return result
    node = node_of(result)
    return emit(view.drop_axes(node, {k: to_index(0) for k in axes}), result.weak)
