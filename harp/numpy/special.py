"""The error function and its kin: `harp.numpy.special`, under SciPy's names.

>>> import harp.numpy as hnp
>>> hnp.special.erf(0.5)
Array(0.52049988)
"""

from __future__ import annotations

import math

from harp.numpy.activation import sigmoid
from harp.numpy.elementwise import float_map
from harp.numpy.gammas import betaln, digamma, gammaln
from harp.trace.array.array import Array
from harp.trace.scalar.expr import Expr, apply, const, select
from harp.trace.scalar.ops import Op

__all__ = ["betaln", "digamma", "erf", "erfc", "erfinv", "expit", "gammaln", "logit", "xlog1py", "xlogy"]

expit = sigmoid


def erf(x: object) -> Array:
    """Elementwise error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> import harp.numpy as hnp
    >>> hnp.special.erf(0.5)
    Array(0.52049988)
    """
    return float_map(lambda a: apply(Op.ERF, a), x)


def erfc(x: object) -> Array:
    """Elementwise 1 - erf(x), accurate for large x down to the smallest number.

    >>> erfc(10.0)
    Array(2.08848758e-45)
    """
    return float_map(lambda a: apply(Op.ERFC, a), x)


def erfinv(x: object) -> Array:
    """Elementwise inverse of erf; infinite at -1 and 1, NaN beyond.

    >>> import harp.numpy as hnp
    >>> hnp.special.erfinv(0.5)
    Array(0.47693628)
    """
    return float_map(lambda a: apply(Op.ERFINV, a), x)


def logit(x: object) -> Array:
    """Elementwise log(x / (1 - x)), the inverse of `expit`; infinite at 0 and 1, NaN outside of them.

    >>> logit(0.5)
    Array(0.)
    """

    def build(a: Expr) -> Expr:
        # near 1/2 by 1 - 2x, of which the result is an odd function: 2 atanh(2x - 1)
        distance = a + (-0.5) + (a + (-0.5))
        near = apply(Op.ABS, distance) < 0.5
        middle = 2 * apply(Op.ATANH, select(near, distance, const(0, a.dtype)))
        outside = select(near, const(0.25, a.dtype), a)
        ends = apply(Op.LOG, outside) - apply(Op.LOG1P, -outside)
        return select(near, middle, ends)

    return float_map(build, x)


def _times_log(log: Op, x: Expr, y: Expr) -> Expr:
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
    return float_map(lambda a, b: _times_log(Op.LOG, a, b), x, y)


def xlog1py(x: object, y: object) -> Array:
    """Elementwise x * log(1 + y), and 0 where x is 0, unless y is NaN.

    >>> import harp.numpy as hnp
    >>> hnp.special.xlog1py(0.0, -1.0)
    Array(0.)
    """
    return float_map(lambda a, b: _times_log(Op.LOG1P, a, b), x, y)
