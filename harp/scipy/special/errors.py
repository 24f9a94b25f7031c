"""The error function and the normal distribution.

The scaled function erfcx is from 2 on the trapezoidal rule for its integral, with the residue of the pole (C. Chiarella
and A. Reichel: "On the evaluation of integrals related to the error function", Mathematics of Computation 22, 1968).
The quantile is by quotients of polynomials (M. J. Wichura: "Algorithm AS 241: The percentage points of the normal
distribution", Applied Statistics 37, 1988). Where a formula is differentiated, it starts in the tail from formula
26.2.23 of Abramowitz and Stegun (Handbook of Mathematical Functions, 1964), and is made exact by Newton's method on the
logarithm of the probability.
"""

from __future__ import annotations

import math

from harp.numpy.elementwise import exp, float_map
from harp.scipy.special.formulas import in_double, mapped, number, polynomial
from harp.trace.array.arithmetic import multiply
from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import Expr, apply, cast, select
from harp.trace.scalar.formulas import add, equals
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp

_STEP = 0.5  # of the trapezoidal rule, whose error is exp(-(pi/step)**2)
_TAIL = 0.02  # a probability from which on erfinv has all digits
_ROOT = -0.707106769084930419921875  # -sqrt(1/2) in float32, and what it lacks
_ROOT_LESS = -1.2101617104478969e-08
_START = ((0.010328, 0.802853, 2.515517), (0.001308, 0.189269, 1.432788, 1.0))


def erf(x: object) -> Array:
    """Elementwise error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> erf(0.5)
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

    >>> erfinv(0.5)
    Array(0.47693628)
    """
    return float_map(lambda a: apply(Op.ERFINV, a), x)


def ndtri(y: object) -> Array:
    """Elementwise inverse of `ndtr`; infinite at 0 and 1, NaN beyond.

    >>> ndtri(0.975)
    Array(1.95996398)
    """
    result: Array = _ndtri(y)
    return result


# Numerators and denominators in the middle, in the tails, and in the far tails.
_WICHURA = (
    (
        (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
         13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
        (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
         5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
    ),
    (
        (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
         3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
        (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
         0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
    ),
    (
        (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
         0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
        (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
         0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
    ),
)  # fmt: skip


def _wichura(p: Expr) -> Expr:
    """The quantile of a probability, to the last digits; its derivative has not as many."""
    distance = p + (-0.5)
    middle, below_half = apply(Op.ABS, distance) < 0.425, distance < 0
    share = select(below_half, p, 1 - p)
    far = apply(Op.SQRT, -apply(Op.LOG, select(middle, number(0.25), share)))
    variables = 0.180625 - distance * distance, far + (-1.6), far + (-5.0)
    tops, bottoms = zip(
        *((polynomial(v, a), polynomial(v, b)) for v, (a, b) in zip(variables, _WICHURA, strict=True)), strict=True
    )
    is_tail = far < 5
    tail = select(is_tail, tops[1], tops[2]) / select(is_tail, bottoms[1], bottoms[2])
    tail = select(equals(share, 0), number(math.inf), tail)
    return select(middle, distance * (tops[0] / bottoms[0]), select(below_half, -tail, tail))


@custom_jvp
def _ndtri(y: Array) -> Array:
    return in_double(_wichura, y)


_ndtri.defjvps(lambda t, x, y: multiply(t, math.sqrt(2 * math.pi) * exp(0.5 * x * x)))


def _erfcx(x: Expr) -> Expr:
    near = x < 2
    small, z = select(near, x, number(0)), select(near, number(2), x)
    inverse = apply(Op.RECIP, z)
    square = inverse * inverse
    nodes = [(k * _STEP) ** 2 for k in range(12, 0, -1)]
    total = add(*(2 * math.exp(-n) / (1 + n * square) for n in nodes), number(1))
    enclosed = z < math.pi / _STEP
    inside = select(enclosed, z, number(0))
    pole = select(enclosed, 2 * apply(Op.EXP, inside * (inside - 2 * math.pi / _STEP)), number(0))
    far = (_STEP / math.pi) * inverse * total - pole
    return select(near, apply(Op.EXP, small * small) * apply(Op.ERFC, small), far)


def below(x: Expr) -> Expr:
    """The probability of a number below x. What rounding x / sqrt(2) loses is made good to first order."""
    scaled = x * (-math.sqrt(0.5))
    near = select(apply(Op.ABS, x) < 40, x, number(0))
    high = cast(cast(near, f32), f64)  # whose product with a number of float32 is exact
    lost = high * _ROOT - near * (-math.sqrt(0.5)) + (high * _ROOT_LESS + (near - high) * (-math.sqrt(0.5)))
    correction = (1 / math.sqrt(math.pi)) * (lost * apply(Op.EXP, -(scaled * scaled)))
    return 0.5 * apply(Op.ERFC, scaled) - apply(Op.STOP, correction)


def _log_below(x: Expr) -> Expr:
    low = x < -1
    left, right = select(low, x, number(-1)), select(low, number(-1), x)
    tail = apply(Op.LOG, 0.5 * _erfcx(left * (-math.sqrt(0.5)))) - 0.5 * (left * left)
    return select(low, tail, apply(Op.LOG1P, -below(-right)))


def quantile(p: Expr) -> Expr:
    """The number below which the probability is p > 0, with derivatives that have all digits."""
    tail = p < _TAIL
    log = apply(Op.LOG, select(tail, p, number(_TAIL)))
    t = apply(Op.SQRT, apply(Op.STOP, -2 * log))
    x = polynomial(t, _START[0]) / polynomial(t, _START[1]) - t
    # Each step doubles the orders of derivatives that are those of the quantile, from none at the start: after three,
    # those up to the fourth have all digits, where the start is within 5e-4.
    x = apply(Op.STOP, x)
    for _ in range(3):
        scaled = 0.5 * _erfcx(x * (-math.sqrt(0.5)))  # the probability, over exp(-x*x/2)
        x = x + (log - (apply(Op.LOG, scaled) - 0.5 * (x * x))) * (math.sqrt(2 * math.pi) * scaled)
    large = select(tail, number(0.5), p)
    double = large + (large + (-1))
    return select(tail, x, math.sqrt(2) * apply(Op.ERFINV, double))


erfcx = mapped(
    "erfcx", "x", _erfcx, "Elementwise exp(x**2) * erfc(x), which does not underflow.", "1e10", "5.64189584e-11"
)
ndtr = mapped("ndtr", "x", below, "Elementwise probability that a standard normal number is below x.", "0.0", "0.5")
log_ndtr = mapped(
    "log_ndtr", "x", _log_below, "Elementwise logarithm of `ndtr`, accurate in both tails.", "-100.0", "-5005.52420869"
)
