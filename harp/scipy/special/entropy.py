"""Products with logarithms, entropies, and logarithms of sums of exponentials."""

from __future__ import annotations

import math
from functools import partial

from harp.numpy import activation
from harp.numpy.elementwise import abs, exp, float_map, isfinite, isnan, log, multiply, not_equal, sign, subtract
from harp.numpy.elementwise import where as choose
from harp.numpy.reductions import max, sum
from harp.scipy.special.formulas import log1p_ratio, mapped, number
from harp.trace.array.arithmetic import divide
from harp.trace.array.array import Array
from harp.trace.array.primitives import Axis
from harp.trace.scalar.expr import Expr, apply, const, select
from harp.trace.scalar.formulas import equals, is_nan
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.autodiff.grad import stop_gradient


def logit(x: object) -> Array:
    """Elementwise log(x / (1 - x)), the inverse of `expit`; infinite at 0 and 1, NaN outside of them.

    >>> logit(0.5)
    Array(0.)
    """
    result: Array = _logit(x)
    return result


@custom_jvp
def _logit(x: Array) -> Array:
    def build(a: Expr) -> Expr:
        # log(1 + (2x - 1)/(1 - x)) from 1/2 on, where 2x - 1 and 1 - x are exact; for less the same of 1 - x, negative
        below = a < 0.5
        distance = a + (-0.5) + (a + (-0.5))
        tiny = apply(Op.ABS, a) < 2.0**-120  # the inverse may be infinite
        least = select(equals(a, 0), const(0, a.dtype), a * 2.0**64)  # 0 for -0
        share = select(below, select(tiny, least, a), 1 - a)
        far = apply(Op.LOG1P, select(below, -distance, distance) / share)
        return select(below, select(tiny, -64 * math.log(2) - far, -far), far)

    return float_map(build, x)


_logit.defjvps(lambda t, result, x: divide(t, x) + divide(t, subtract(1, x)))


def times_log(log: Op, x: Expr, y: Expr) -> Expr:
    """x * log(y), and 0 where x is 0 and y a number; the derivative by x is log(y), there 0 if that is not finite."""
    zero, one = const(0, x.dtype), const(1, x.dtype)
    edge = zero if log is Op.LOG else const(-1, x.dtype)
    finite = (edge < y) & (y < math.inf)
    lost = apply(Op.EQ, x, zero) & ~finite
    lost = lost & apply(Op.EQ, y, y)
    return select(lost, zero, x * apply(log, select(lost, one, y)))


def xlogy(x: object, y: object) -> Array:
    """Elementwise x * log(y), and 0 where x is 0, unless y is NaN.

    >>> xlogy(0.0, 0.0)
    Array(0.)
    """
    return float_map(lambda a, b: times_log(Op.LOG, a, b), x, y)


def xlog1py(x: object, y: object) -> Array:
    """Elementwise x * log(1 + y), and 0 where x is 0, unless y is NaN.

    >>> xlog1py(0.0, -1.0)
    Array(0.)
    """
    return float_map(lambda a, b: times_log(Op.LOG1P, a, b), x, y)


def _relative(divergence: bool, x: Expr, y: Expr) -> Expr:
    """x * log(x / y), or x * log(x / y) - x + y, of positive numbers."""
    inside = (x > 0) & (y > 0)
    a, b = select(inside, x, number(1)), select(inside, y, number(1))
    value = _divergence(a, b) if divergence else a * _log_of_quotient(a, b)
    beyond = select(is_nan(x + y), x + y, number(math.inf))
    return select(
        inside, value, select(equals(x, 0) & ((y > 0) | equals(y, 0)), y if divergence else number(0), beyond)
    )


def _log_of_quotient(x: Expr, y: Expr) -> Expr:
    quotient = x / y
    usual = (quotient > 1e-300) & (quotient < 1e300)
    far = select(usual, apply(Op.LOG, quotient), apply(Op.LOG, x) - apply(Op.LOG, y))
    return select(_are_near(x, y), apply(Op.LOG1P, (x - y) / y), far)


def _are_near(x: Expr, y: Expr) -> Expr:
    return (0.5 * x < y) & (0.5 * y < x)


def _divergence(x: Expr, y: Expr) -> Expr:
    near = _are_near(x, y)
    less = select(near, (y - x) / x, number(0))
    return select(near, -(x * (less * less * log1p_ratio(less))), x * _log_of_quotient(x, y) - x + y)


def softmax(x: object, axis: Axis = None) -> Array:
    """exp(x) / sum(exp(x)) over axes, by default all: `harp.numpy.softmax`, with SciPy's default.

    >>> import harp.numpy as hnp
    >>> softmax(hnp.zeros((2, 2)))
    Array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    return activation.softmax(x, axis)


def log_softmax(x: object, axis: Axis = None) -> Array:
    """The logarithm of `softmax`: `harp.numpy.log_softmax`, with SciPy's default, which is all axes.

    >>> import harp.numpy as hnp
    >>> log_softmax(hnp.asarray([0.0, 1000.0]))
    Array([-1000.,     0.])
    """
    return activation.log_softmax(x, axis)


def logsumexp(
    a: object,
    axis: Axis = None,
    b: object = None,
    keepdims: bool = False,
    return_sign: bool = False,
    *,
    where: object = None,
) -> Array | tuple[Array, Array]:
    """log(sum(b * exp(a))) over axes, without overflow; of a negative sum NaN, or with `return_sign` the logarithm of
    its magnitude, and its sign. Elements for which b is 0, or `where` is not true, do not count.

    >>> import harp.numpy as hnp
    >>> logsumexp(hnp.asarray([1000.0, 1000.0]), b=hnp.asarray([1.0, -0.5]))
    Array(999.30685282)
    """
    if b is None:
        result = activation.logsumexp(a, axis, keepdims, where=where)
        return (result, choose(isnan(result), result, sign(exp(result)))) if return_sign else result
    if where is not None:
        b = choose(where, b, 0)
    powers = choose(not_equal(b, 0), a, -math.inf)
    largest = stop_gradient(max(powers, axis, keepdims=True))
    largest = choose(isfinite(largest), largest, 0.0)
    total = sum(multiply(b, exp(subtract(powers, largest))), axis, keepdims=keepdims)
    logarithm = log(abs(total) if return_sign else total) + (largest if keepdims else sum(largest, axis))
    return (logarithm, sign(total)) if return_sign else logarithm


entr = mapped(
    *("entr", "x", lambda x: select(x < 0, number(-math.inf), -times_log(Op.LOG, x, x))),
    *("Elementwise -x * log(x); 0 at 0, and -inf below.", "0.5", "0.34657359"),
)
rel_entr = mapped(
    *("rel_entr", "x y", partial(_relative, False)),
    "Elementwise x * log(x / y) of positive numbers; 0 where x is 0 and y no less, and infinite elsewhere.",
    *("2.0, 1.0", "1.38629436"),
)
kl_div = mapped(
    *("kl_div", "x y", partial(_relative, True)),
    "Elementwise x * log(x / y) - x + y of positive numbers; y where x is 0 and y no less, and infinite elsewhere.",
    *("2.0, 1.0", "0.38629436"),
)
