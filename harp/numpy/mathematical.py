"""Inverse and hyperbolic functions, angles, roots, and what takes floating-point numbers apart, under both names.

Each takes integers too, which become the float dtype that holds them, and broadcasts. Special values are those of the
Python array API standard. How exact they are in generated C is a table of docs/elementwise.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from harp.errors import DTypeError
from harp.numpy.elementwise import float_map
from harp.trace.array.array import Array, marked
from harp.trace.array.primitives import common_dtype, map_
from harp.trace.scalar.dtypes import Kind, bool_, computing
from harp.trace.scalar.expr import Expr, apply, cast, const
from harp.trace.scalar.expr import select as _select
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where as place

_Function = Callable[[object], Array]


def _named(function: _Function, name: str, text: str, given: str, result: str) -> _Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}\n\n>>> import harp.numpy as hnp\n>>> hnp.{name}({given})\nArray({result})"
    return function


def _of(op: Op, text: str, given: str, result: str) -> _Function:
    return _named(lambda x: float_map(lambda a: apply(op, a), x), op.value, text, given, result)


asin = arcsin = _of(
    Op.ASIN, "Elementwise inverse sine, between -pi/2 and pi/2; NaN outside [-1, 1].", "0.5", "0.52359878"
)
acos = arccos = _of(Op.ACOS, "Elementwise inverse cosine, between 0 and pi; NaN outside [-1, 1].", "0.5", "1.04719755")
atan = arctan = _of(Op.ATAN, "Elementwise inverse tangent, between -pi/2 and pi/2.", "1.0", "0.78539816")
sinh = _of(Op.SINH, "Elementwise hyperbolic sine, accurate near 0 and up to the largest result.", "1.0", "1.17520119")
cosh = _of(Op.COSH, "Elementwise hyperbolic cosine, up to the largest result.", "1.0", "1.54308063")
asinh = arcsinh = _of(
    Op.ASINH, "Elementwise inverse hyperbolic sine, accurate near 0 and for the largest numbers.", "1.0", "0.88137359"
)
acosh = arccosh = _of(Op.ACOSH, "Elementwise inverse hyperbolic cosine; NaN below 1.", "2.0", "1.3169579")
atanh = arctanh = _of(
    Op.ATANH, "Elementwise inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.", "0.5", "0.54930614"
)
cbrt = _of(Op.CBRT, "Elementwise cube root, also of negative numbers.", "-8.0", "-2.")


def atan2(y: object, x: object) -> Array:
    """Elementwise angle of the point (x, y), between -pi and pi, with the signs of zeros as in C.

    The gradient at (0, 0) is NaN.

    >>> atan2(1.0, -1.0)
    Array(2.35619449)
    """
    return float_map(lambda a, b: apply(Op.ATAN2, a, b), y, x)


arctan2 = atan2


def hypot(x: object, y: object) -> Array:
    """Elementwise sqrt(x**2 + y**2), without overflow in between; infinite where either is, also beside NaN.

    The gradient at (0, 0) is (1/2, 1/2).

    >>> hypot(3e200, 4e200)
    Array(5.e+200)
    """
    return float_map(lambda a, b: apply(Op.HYPOT, a, b), x, y)


def copysign(x: object, y: object) -> Array:
    """Elementwise: the magnitude of x with the sign of y, that of a zero or a NaN included.

    >>> copysign(2.0, -0.0)
    Array(-2.)
    """
    return float_map(lambda a, b: apply(Op.COPYSIGN, a, b), x, y)


def nextafter(x: object, y: object) -> Array:
    """Elementwise: the number next to x in the direction of y. Its derivative is 1 by x, 0 by y.

    Raises DTypeError for float16, bfloat16 and float8, whose arithmetic is that of float32.

    >>> import harp.numpy as hnp
    >>> hnp.nextafter(1.0, 2.0) - 1.0
    Array(2.22044605e-16)
    """
    dtype, _ = common_dtype((x, y))
    if dtype.is_stored:
        raise DTypeError(f"nextafter is not defined for {dtype.numpy}; convert with .astype{place()}")
    return float_map(lambda a, b: apply(Op.NEXTAFTER, a, b), x, y)


def spacing(x: object) -> Array:
    """Elementwise the distance to the next number away from 0, with the sign of x. Its derivative is 0.

    Raises DTypeError for float16, bfloat16 and float8, as `nextafter`.

    >>> spacing(1.0)
    Array(2.22044605e-16)
    """
    magnitude = map_(lambda a: apply(Op.STOP, apply(Op.ABS, a)), float_map(lambda a: a, x))
    return copysign(nextafter(magnitude, math.inf) - magnitude, x)


def signbit(x: object) -> Array:
    """Elementwise: is it negative, -0.0 and NaN with a sign included, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.signbit(hnp.asarray([-0.0, 0.0]))
    Array([ True, False])
    """
    kind = common_dtype((x,))[0].kind
    return marked(map_(lambda a: _is_negative(a, kind), x), False)


def _is_negative(a: Expr, kind: Kind) -> Expr:
    if kind in (Kind.BOOL, Kind.UINT):
        return const(False, bool_)
    signed = apply(Op.COPYSIGN, const(1, a.dtype), a) if kind is Kind.FLOAT else a
    return signed < 0


def _widened(build: Callable[..., Expr]) -> Callable[..., Expr]:
    """In float32 for float16 and bfloat16, so that no constant is rounded to those."""

    def wide(*operands: Expr) -> Expr:
        dtype = operands[0].dtype
        return cast(build(*(cast(a, computing(dtype)) for a in operands)), dtype)

    return wide


def _larger_and_distance(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """max(a, b) and -|a - b|, which is 0 for equal infinities, that share the derivative. At other ties all derivatives
    are those from one side, on which what is made of both is smooth."""
    is_less = a < b
    large, small = _select(is_less, b, a), _select(is_less, a, b)
    infinite = apply(Op.EQ, apply(Op.ABS, large), const(math.inf, a.dtype))
    both = infinite & apply(Op.EQ, a, b)
    middle = (a + b) * 0.5
    distance = _select(both, const(0, a.dtype), small - large)
    return _select(both, middle, large), distance


def _logaddexp(a: Expr, b: Expr) -> Expr:
    large, distance = _larger_and_distance(a, b)
    return large + apply(Op.LOG1P, apply(Op.EXP, distance))


def _logaddexp2(a: Expr, b: Expr) -> Expr:
    large, distance = _larger_and_distance(a, b)
    natural = apply(Op.LOG1P, apply(Op.EXP2, distance))
    return large + natural * (1 / math.log(2))


def logaddexp(x: object, y: object) -> Array:
    """Elementwise log(exp(x) + exp(y)), without overflow. The error is a few units in the last place of the larger of
    |x|, |y| and |result|.

    >>> logaddexp(1000.0, 1000.0)
    Array(1000.69314718)
    """
    return float_map(_widened(_logaddexp), x, y)


def logaddexp2(x: object, y: object) -> Array:
    """Elementwise log2(2**x + 2**y), without overflow.

    >>> import harp.numpy as hnp
    >>> hnp.logaddexp2(1000.0, 1000.0)
    Array(1001.)
    """
    return float_map(_widened(_logaddexp2), x, y)


def _scaled(factor: float, name: str, text: str, given: str, result: str) -> _Function:
    return _named(lambda x: float_map(_widened(lambda a: a * factor), x), name, text, given, result)


deg2rad = radians = _scaled(math.pi / 180, "deg2rad", "Elementwise degrees to radians.", "180.0", "3.14159265")
rad2deg = degrees = _scaled(180 / math.pi, "rad2deg", "Elementwise radians to degrees.", "hnp.pi", "180.")

# sin(y)/y in y*y, the highest power first, for |y| < 1.
_SINC = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in reversed(range(10)))


def sinc(x: object) -> Array:
    """Elementwise sin(pi*x) / (pi*x), and 1 at 0; near 0 a polynomial, so that all derivatives are those of the limit.

    >>> sinc(0.0)
    Array(1.)
    """
    return float_map(_widened(_sinc), x)


def _sinc(x: Expr) -> Expr:
    one = const(1, x.dtype)
    y = x * math.pi
    near = apply(Op.ABS, y) < 1
    inside, outside = (
        _select(near, y, one),
        _select(near, one, y),
    )  # no derivative of the part that is not chosen is NaN
    square = inside * inside
    value: Expr = const(_SINC[0], x.dtype)
    for c in _SINC[1:]:
        value = value * square + c
    far = apply(Op.SIN, outside) / outside
    return _select(near, value, far)
