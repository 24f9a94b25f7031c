"""Elementary functions of complex numbers by their parts, with C99's values at infinities, NaN and signed zeros.

complex64 goes by way of float64 where squares could overflow or digits be lost. Methods: Smith, "Algorithm 116: Complex
division", 1962; Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

import math

from harp.trace.dtypes import DType, f32, f64
from harp.trace.expr import Expr, apply, cast, const, select
from harp.trace.ops import Op

Parts = tuple[Expr, Expr]


def _add(a: Expr, b: Expr) -> Expr:
    return apply(Op.ADD, a, b)


def _sub(a: Expr, b: Expr) -> Expr:
    return apply(Op.ADD, a, apply(Op.NEG, b))


def _mul(*factors: Expr) -> Expr:
    result = factors[0]
    for factor in factors[1:]:
        result = apply(Op.MUL, result, factor)
    return result


def _div(a: Expr, b: Expr) -> Expr:
    return apply(Op.DIV, a, b)


def _neg(a: Expr) -> Expr:
    return apply(Op.NEG, a)


def _abs(a: Expr) -> Expr:
    return apply(Op.ABS, a)


def _number(value: float, like: Expr) -> Expr:
    return const(value, like.dtype)


def _less(a: Expr, b: Expr) -> Expr:
    return apply(Op.LT, a, b)


def _equals(a: Expr, value: float) -> Expr:
    return apply(Op.EQ, a, _number(value, a))


def _not(a: Expr) -> Expr:
    return apply(Op.NOT, a)


def _and(a: Expr, b: Expr) -> Expr:
    return apply(Op.AND, a, b)


def _or(a: Expr, b: Expr) -> Expr:
    return apply(Op.OR, a, b)


def _infinite(a: Expr) -> Expr:
    return _equals(_abs(a), math.inf)


def _finite(a: Expr) -> Expr:
    return _less(_abs(a), _number(math.inf, a))


def _is_nan(a: Expr) -> Expr:
    return _not(apply(Op.EQ, a, a))


def _signed(size: Expr, like: Expr) -> Expr:
    """`size` >= 0 with the sign of `like`, that of a zero included."""
    below = _less(like, _number(0, like))
    negative_zero = _and(_equals(like, 0), _less(_div(_number(1, like), like), _number(0, like)))
    return select(_or(below, negative_zero), _neg(size), size)


def _choose(condition: Expr, yes: Parts, no: Parts) -> Parts:
    return select(condition, yes[0], no[0]), select(condition, yes[1], no[1])


def _wide(z: Parts) -> Parts:
    """In float64."""
    return cast(z[0], f64), cast(z[1], f64)


def _narrow(z: Parts, dtype: DType) -> Parts:
    return cast(z[0], dtype), cast(z[1], dtype)


# --- arithmetic, as NumPy's


def add(a: Parts, b: Parts) -> Parts:
    """a + b"""
    return _add(a[0], b[0]), _add(a[1], b[1])


def negative(a: Parts) -> Parts:
    """-a"""
    return _neg(a[0]), _neg(a[1])


def multiply(a: Parts, b: Parts) -> Parts:
    """a * b, by the definition: an infinity may give NaN beside it."""
    return _sub(_mul(a[0], b[0]), _mul(a[1], b[1])), _add(_mul(a[0], b[1]), _mul(a[1], b[0]))


def divide(a: Parts, b: Parts) -> Parts:
    """a / b, by Smith's method: the larger part of b divides the smaller one."""
    swapped = _less(_abs(b[0]), _abs(b[1]))
    large, small = select(swapped, b[1], b[0]), select(swapped, b[0], b[1])
    first, second = select(swapped, a[1], a[0]), select(swapped, a[0], a[1])
    ratio = _div(small, large)
    scale = _div(_number(1, large), _add(large, _mul(small, ratio)))
    real = _mul(_add(first, _mul(second, ratio)), scale)
    difference = _sub(second, _mul(first, ratio))
    imag = _mul(select(swapped, _neg(difference), difference), scale)
    zero = _abs(b[0])
    return _choose(_equals(large, 0), (_div(a[0], zero), _div(a[1], zero)), (real, imag))


# --- magnitudes


def _larger_first(z: Parts) -> Parts:
    """The magnitudes of the parts, the larger one first; both are NaN where one is."""
    a, b = _abs(z[0]), _abs(z[1])
    return apply(Op.MAX, a, b), apply(Op.MIN, a, b)


def _ratio(large: Expr, small: Expr) -> Expr:
    """small/large, and 0 for 0/0."""
    return select(_equals(large, 0), large, _div(small, large))


def _hypot(z: Parts) -> Expr:
    """sqrt(x*x + y*y) without overflow; inf if a part is infinite, also beside NaN."""
    if z[0].dtype is f32:
        wide = _wide(z)
        result = cast(apply(Op.SQRT, _add(_mul(wide[0], wide[0]), _mul(wide[1], wide[1]))), f32)
    else:
        large, small = _larger_first(z)
        ratio = _ratio(large, small)
        result = _mul(large, apply(Op.SQRT, _add(_number(1, large), _mul(ratio, ratio))))
    return select(_or(_infinite(z[0]), _infinite(z[1])), _number(math.inf, result), result)


def magnitude(z: Parts) -> Expr:
    """abs(z)"""
    return _hypot(z)


def _log_magnitude(z: Parts) -> Expr:
    """log(abs(z)) in float64, accurate also where that is near 1."""
    large, small = _larger_first(z)
    half, one = _number(0.5, large), _number(1, large)
    # x*x + y*y - 1 with the rounding errors of the squares, where that is small.
    squares = _mul(large, large), _mul(small, small)
    errors = [apply(Op.FMA, a, a, _neg(s)) for a, s in zip((large, small), squares, strict=True)]
    excess = _add(_add(_sub(squares[0], one), squares[1]), _add(*errors))
    near = _and(_less(_number(0.5, large), large), _less(large, _number(1.5, large)))
    ratio = _ratio(large, small)
    far = _add(apply(Op.LOG, large), _mul(half, apply(Op.LOG1P, _mul(ratio, ratio))))
    result = select(near, _mul(half, apply(Op.LOG1P, excess)), far)
    return select(_or(_infinite(z[0]), _infinite(z[1])), _number(math.inf, large), result)


# --- exponentials and logarithms


def exp(z: Parts) -> Parts:
    """e**x * (cos y + i sin y), in two factors where e**x alone would overflow."""
    x, y = z
    limit = 80.0 if x.dtype is f32 else 700.0
    large = _less(_number(limit, x), x)
    rest = apply(Op.EXP, select(large, _sub(x, _number(limit, x)), x))
    factor = select(large, _number(math.exp(limit), x), _number(1, x))
    real, imag = (_mul(rest, apply(op, y), factor) for op in (Op.COS, Op.SIN))
    whole = apply(Op.EXP, x)
    zero = _number(0, x)
    below, above = _and(_equals(x, -math.inf), _not(_finite(y))), _and(_equals(x, math.inf), _not(_finite(y)))
    result = _choose(below, (zero, zero), _choose(above, (x, _sub(y, y)), (real, imag)))
    return _choose(_equals(y, 0), (whole, y), result)


def expm1(z: Parts) -> Parts:
    """e**z - 1, accurate near 0: expm1(x)*cos(y) - 2*sin(y/2)**2 + i e**x*sin(y)."""
    x, y = z
    half = apply(Op.SIN, _mul(y, _number(0.5, y)))
    near = _sub(_mul(apply(Op.EXPM1, x), apply(Op.COS, y)), _mul(_number(2, x), half, half))
    whole = exp(z)
    small = _less(_abs(x), _number(1, x))
    real = select(_equals(y, 0), apply(Op.EXPM1, x), select(small, near, _sub(whole[0], _number(1, x))))
    return real, whole[1]


def log(z: Parts) -> Parts:
    """log(abs(z)) + i atan2(y, x)"""
    return cast(_log_magnitude(_wide(z)), z[0].dtype), apply(Op.ATAN2, z[1], z[0])


def log1p(z: Parts) -> Parts:
    """log(1 + z), accurate near 0: log1p(x*(2 + x) + y*y)/2 + i atan2(y, 1 + x)."""
    x, y = _wide(z)
    above = _add(_number(1, x), x)
    square = _add(_mul(x, _add(_number(2, x), x)), _mul(y, y))
    near = _mul(_number(0.5, x), apply(Op.LOG1P, square))
    small = _less(apply(Op.MAX, _abs(x), _abs(y)), _number(0.5, x))
    result = select(small, near, _log_magnitude((above, y))), apply(Op.ATAN2, y, above)
    return _narrow(result, z[0].dtype)


def sqrt(z: Parts) -> Parts:
    """The root with a real part >= 0; the cut is the negative axis, where the sign of a zero says on which side."""
    dtype = z[0].dtype
    x, y = _wide(z)
    up, down = _number(2.0**-4, x), _number(2.0**108, x)
    large = apply(Op.MAX, _abs(x), _abs(y))
    huge, tiny = _less(_number(2.0**1020, x), large), _less(large, _number(2.0**-960, x))
    scale = select(huge, up, select(tiny, down, _number(1, x)))
    back = select(huge, _number(4, x), select(tiny, _number(2.0**-54, x), _number(1, x)))
    a, b = _abs(_mul(x, scale)), _abs(_mul(y, scale))
    root = apply(Op.SQRT, _mul(_number(0.5, x), _add(a, _hypot((a, b)))))
    other = _mul(select(_equals(root, 0), root, _div(_mul(b, _number(0.5, x)), root)), back)
    root = _mul(root, back)
    left = _less(x, _number(0, x))
    result = select(left, other, root), _signed(select(left, root, other), y)
    infinity = _number(math.inf, x)
    # inf + iy -> inf + i0, -inf + iy -> 0 + i inf, NaN beside them stays; x + i inf -> inf + i inf, also for NaN
    unknown = _is_nan(y)
    right_end = infinity, select(unknown, y, _signed(_number(0, x), y))
    left_end = select(unknown, y, _number(0, x)), select(unknown, infinity, _signed(infinity, y))
    result = _choose(_infinite(x), _choose(left, left_end, right_end), result)
    return _narrow(_choose(_infinite(y), (infinity, y), result), dtype)


def power(a: Parts, b: Parts) -> Parts:
    """exp(b*log(a)); 1 for b = 0; 0**b is 0 for real b > 0, else NaN."""
    dtype = a[0].dtype
    base, exponent = _wide(a), _wide(b)
    result = _narrow(exp(multiply(exponent, log(base))), dtype)
    zero, one, nan = _number(0, a[0]), _number(1, a[0]), _number(math.nan, a[0])
    null = _and(_equals(a[0], 0), _equals(a[1], 0))
    upwards = _and(_less(zero, b[0]), _equals(b[1], 0))
    result = _choose(null, _choose(upwards, (zero, zero), (nan, nan)), result)
    return _choose(_and(_equals(b[0], 0), _equals(b[1], 0)), (one, zero), result)


# --- trigonometric and hyperbolic functions


def _hyperbolic(x: Expr) -> tuple[Expr, Expr, Expr]:
    """cosh(x), sinh(x), and a factor of both, which is not 1 where they would overflow without need."""
    size = _abs(x)
    half, one = _number(0.5, x), _number(1, x)
    large = _less(_number(9.0 if x.dtype is f32 else 20.0, x), size)
    grown = apply(Op.EXPM1, size)
    whole = _add(grown, one)
    root = apply(Op.EXP, _mul(size, half))
    halved = _mul(half, root)
    cosh = select(large, halved, _mul(half, _add(whole, _div(one, whole))))
    sinh = select(large, halved, _mul(half, _add(grown, _div(grown, whole))))
    return cosh, select(_equals(x, 0), x, select(_less(x, _number(0, x)), _neg(sinh), sinh)), select(large, root, one)


def sinh(z: Parts) -> Parts:
    """sinh(x)*cos(y) + i cosh(x)*sin(y)"""
    x, y = z
    cosh_x, sinh_x, factor = _hyperbolic(x)
    sine, cosine = apply(Op.SIN, y), apply(Op.COS, y)
    real, imag = _mul(cosine, sinh_x, factor), _mul(sine, cosh_x, factor)
    stays = _or(_equals(x, 0), _and(_infinite(x), _not(_finite(y))))
    return select(stays, x, real), select(_equals(y, 0), y, imag)


def cosh(z: Parts) -> Parts:
    """cosh(x)*cos(y) + i sinh(x)*sin(y)"""
    x, y = z
    cosh_x, sinh_x, factor = _hyperbolic(x)
    sine, cosine = apply(Op.SIN, y), apply(Op.COS, y)
    real, imag = _mul(cosine, cosh_x, factor), _mul(sine, sinh_x, factor)
    infinite = _and(_infinite(x), _not(_finite(y)))
    null = select(_less(x, _number(0, x)), _neg(y), y)
    zero = _mul(select(_equals(x, 0), x, _number(0, x)), select(_finite(y), sine, _number(1, y)))
    imag = select(_equals(x, 0), zero, select(_equals(y, 0), null, imag))
    return select(infinite, _abs(x), real), imag


def tanh(z: Parts) -> Parts:
    """Kahan's formula; far out 1 + i 4*sin(y)*cos(y)*exp(-2x)."""
    x, y = z
    size = _abs(x)
    one = _number(1, x)
    t = apply(Op.TAN, y)
    _, s, factor = _hyperbolic(x)
    s = _mul(s, factor)
    beta = _add(one, _mul(t, t))
    rho = apply(Op.SQRT, _add(one, _mul(s, s)))
    below = _add(one, _mul(beta, s, s))
    near = _div(_mul(beta, rho, s), below), _div(t, below)
    far_real = _signed(one, x)
    e = apply(Op.EXP, _neg(size))
    tail = _mul(_number(4, x), apply(Op.SIN, y), apply(Op.COS, y), e, e)
    far = far_real, select(_finite(y), tail, _signed(_number(0, y), y))
    result = _choose(_less(_number(9.0 if x.dtype is f32 else 20.0, x), size), far, near)
    nan = _is_nan(x)
    imag = select(_equals(y, 0), y, result[1])
    real = select(_equals(x, 0), x, result[0])
    return select(nan, x, real), select(_and(nan, _not(_equals(y, 0))), x, imag)


def _turned(z: Parts) -> Parts:  # i*z
    return _neg(z[1]), z[0]


def _turned_back(z: Parts) -> Parts:  # -i*z
    return z[1], _neg(z[0])


def sin(z: Parts) -> Parts:
    """-i sinh(iz)"""
    return _turned_back(sinh(_turned(z)))


def cos(z: Parts) -> Parts:
    """cosh(iz)"""
    return cosh(_turned(z))


def tan(z: Parts) -> Parts:
    """-i tanh(iz)"""
    return _turned_back(tanh(_turned(z)))
