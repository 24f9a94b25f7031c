"""The derivatives of the scalar operations, and the reverse sweep over a scalar expression.

One row per operation, one entry per operand: from the cotangent of the result to that of the operand. Every entry is
accurate over the whole range where the operation is, and made of operations that have derivatives themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from harp.errors import MissingRuleError
from harp.trace.dtypes import real_of, tiny_of
from harp.trace.expr import Apply, Const, Expr, Operand, apply, cast, const, select, walk
from harp.trace.formulas import add, div, mul, neg, number, sub
from harp.trace.ops import Op

Args = tuple[Expr, ...]
# (cotangent of the result, operands, the result itself) -> cotangent of one operand
Partial = Callable[[Expr, Args, Expr], Expr]


def _same(ct: Expr, args: Args, out: Expr) -> Expr:
    return ct


def _abs(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * sign(x), with sign(0) = 0; of a complex number ct * conj(z)/|z|."""
    (x,) = args
    if x.dtype.is_complex:
        return _complex_abs(ct, x, out)
    zero = number(0, x)
    return select(apply(Op.LT, x, zero), neg(ct), select(apply(Op.EQ, x, zero), zero, ct))


def _complex_abs(ct: Expr, z: Expr, size: Expr) -> Expr:
    zero = number(0, size)
    scale = select(apply(Op.EQ, size, zero), zero, div(ct, size))
    return apply(Op.COMPLEX, mul(scale, apply(Op.REAL, z)), neg(mul(scale, apply(Op.IMAG, z))))


def _extreme(mine: int, largest: bool) -> Partial:
    """All to the operand that is chosen, half at a tie; to both where they do not compare (NaN)."""

    def partial(ct: Expr, args: Args, out: Expr) -> Expr:
        me, other = args[mine], args[1 - mine]
        loses = apply(Op.LT, me, other) if largest else apply(Op.LT, other, me)
        unequal = select(loses, number(0, ct), ct)
        return select(apply(Op.EQ, *args), mul(ct, number(0.5, ct)), unequal)

    return partial


def _power_base(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * y * x**(y-1), without 0 * inf where y is 0: there a base too small to invert, or NaN, becomes 1."""
    x, y = args
    size = apply(Op.ABS, x)
    one, tiny = number(1, x), const(tiny_of(x.dtype), size.dtype)
    invertible = apply(Op.LT, tiny, size)
    lost = apply(Op.AND, apply(Op.EQ, y, number(0, y)), apply(Op.NOT, invertible))
    return mul(ct, mul(y, apply(Op.POW, select(lost, one, x), add(y, number(-1, y)))))


def _power_exponent(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * x**y * log(x), and 0 for 0**y."""
    x = args[0]
    positive = select(apply(Op.EQ, x, number(0, x)), number(1, x), x)
    return mul(ct, mul(out, apply(Op.LOG, positive)))


def _tanh(ct: Expr, args: Args, out: Expr) -> Expr:
    """1 - tanh(x)^2 near 0, where its own derivative keeps all digits; else 4e / (1+e)^2 with e = exp(-2|x|): the
    other has no digits left where tanh saturates."""
    (x,) = args
    near = sub(number(1, out), mul(out, out))
    if x.dtype.is_complex:
        return mul(ct, near)
    minus_double = mul(x, select(apply(Op.LT, x, number(0, x)), number(2, x), number(-2, x)))
    e = apply(Op.EXP, minus_double)
    root = add(e, number(1, x))
    far = div(mul(number(4, x), e), mul(root, root))
    return mul(ct, select(_is_small(x), near, far))


def _is_small(x: Expr) -> Expr:
    return apply(Op.LT, apply(Op.ABS, x), number(0.5, x))


def _cast_back(ct: Expr, args: Args, out: Expr) -> Expr:
    source = args[0].dtype
    return cast(apply(Op.REAL, ct) if ct.dtype.is_complex and not source.is_complex else ct, source)


def _circle(x: Expr) -> Expr:
    """1 - x*x, with the digits that (1 - x) * (1 + x) has near 1; its derivative is the plain -2x, where the product's
    would be a difference near 0, and a NaN beside the infinities at 1."""
    one, plain = number(1, x), sub(number(1, x), mul(x, x))
    exact = mul(sub(one, x), add(one, x))
    if x.dtype.is_complex:
        return exact
    lost = sub(exact, plain)
    return add(plain, select(apply(Op.LT, apply(Op.ABS, x), number(2, x)), apply(Op.STOP, lost), number(0, x)))


def _leg(mine: int) -> Partial:
    """ct * x / hypot(x, y), and half at the origin, where all higher derivatives are 0."""

    def partial(ct: Expr, args: Args, out: Expr) -> Expr:
        half, origin = number(0.5, ct), apply(Op.EQ, out, number(0, out))
        return mul(ct, select(origin, half, div(args[mine], select(origin, number(1, out), out))))

    return partial


def _cbrt(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * (1/r)^2 / 3: no infinity meets a zero in its own derivatives."""
    inverse = apply(Op.RECIP, out)
    return mul(ct, mul(number(1 / 3, out), mul(inverse, inverse)))


def _zero(like: Expr) -> Const:
    return const(0, real_of(like.dtype))


def _turn(ct: Expr, args: Args, other: int) -> Expr:
    """ct * other / (x*x + y*y), without overflow."""
    radius = apply(Op.HYPOT, *args)
    return mul(ct, div(div(args[other], radius), radius))


def _asinh(ct: Expr, args: Args, out: Expr) -> Expr:
    one = number(1, ct)
    if ct.dtype.is_complex:
        return div(ct, apply(Op.SQRT, add(mul(args[0], args[0]), one)))
    return div(ct, apply(Op.HYPOT, args[0], one))


def _acosh(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct / (sqrt(x - 1) * sqrt(x + 1)), by reciprocals: in its own derivative no infinity meets a zero at 1."""
    roots = (apply(Op.SQRT, add(args[0], number(sign, ct))) for sign in (-1, 1))
    below, above = (apply(Op.RECIP, root) for root in roots)
    return mul(ct, mul(below, above))


def _bell(ct: Expr, x: Expr) -> Expr:
    """ct * 2/sqrt(pi) * exp(-x*x)"""
    return mul(ct, mul(number(2 / math.sqrt(math.pi), x), apply(Op.EXP, neg(mul(x, x)))))


def _erfinv(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * sqrt(pi)/2 * exp(r*r)"""
    return mul(ct, mul(number(math.sqrt(math.pi) / 2, out), apply(Op.EXP, mul(out, out))))


def _copysign(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct, turned once for each sign; that of a zero counts."""
    signs = [apply(Op.COPYSIGN, number(1, ct), x) for x in args]
    return mul(ct, mul(*signs))


def _opaque(ct: Expr, args: Args, out: Expr) -> Expr:
    raise MissingRuleError(
        "a random number has no derivative with respect to this parameter of its distribution; put "
        "harp.stop_gradient around the number or the parameter"
    )


# Operations whose derivative is zero wherever there is one, and those that have none.
NONDIFFERENTIABLE = frozenset(
    {Op.LT, Op.EQ, Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR, Op.FLOOR, Op.RINT, Op.FLOORDIV, Op.STOP}
)

RULES: dict[Op, tuple[Partial | None, ...]] = {
    # a + b -> ct, ct
    Op.ADD: (_same, _same),
    # a * b -> ct*b, ct*a
    Op.MUL: (lambda ct, args, out: mul(ct, args[1]), lambda ct, args, out: mul(ct, args[0])),
    # a / b -> ct/b, -(ct/b)*(a/b)
    Op.DIV: (
        lambda ct, args, out: div(ct, args[1]),
        lambda ct, args, out: neg(mul(div(ct, args[1]), out)),
    ),
    # a mod b := a - b*(a//b) -> ct, -ct*(a//b)
    Op.MOD: (_same, lambda ct, args, out: neg(mul(ct, apply(Op.FLOORDIV, *args)))),
    Op.MAX: (_extreme(0, largest=True), _extreme(1, largest=True)),
    Op.MIN: (_extreme(0, largest=False), _extreme(1, largest=False)),
    Op.POW: (_power_base, _power_exponent),
    # select(c, a, b) -> -, select(c, ct, 0), select(c, 0, ct)
    Op.SELECT: (
        None,
        lambda ct, args, out: select(args[0], ct, number(0, ct)),
        lambda ct, args, out: select(args[0], number(0, ct), ct),
    ),
    # cast(a) -> cast back, the real part where `a` is real
    Op.CAST: (_cast_back,),
    # -a -> -ct
    Op.NEG: (lambda ct, args, out: neg(ct),),
    Op.ABS: (_abs,),
    # r = 1/a -> -(ct*r)*r
    Op.RECIP: (lambda ct, args, out: neg(mul(mul(ct, out), out)),),
    # r = sqrt a -> ct / 2r
    Op.SQRT: (lambda ct, args, out: div(ct, mul(number(2, ct), out)),),
    # r = exp a -> ct*r
    Op.EXP: (lambda ct, args, out: mul(ct, out),),
    # r = 2**a -> ct*r*ln 2
    Op.EXP2: (lambda ct, args, out: mul(ct, mul(out, number(math.log(2), ct))),),
    # exp(a) - 1 -> ct*exp(a)
    Op.EXPM1: (lambda ct, args, out: mul(ct, apply(Op.EXP, *args)),),
    # log a -> ct/a
    Op.LOG: (lambda ct, args, out: div(ct, args[0]),),
    # log2 a -> ct / (a*ln 2)
    Op.LOG2: (lambda ct, args, out: div(ct, mul(args[0], number(math.log(2), ct))),),
    # log10 a -> ct / (a*ln 10)
    Op.LOG10: (lambda ct, args, out: div(ct, mul(args[0], number(math.log(10), ct))),),
    # log(1 + a) -> ct / (1 + a)
    Op.LOG1P: (lambda ct, args, out: div(ct, add(args[0], number(1, ct))),),
    # sin a -> ct*cos a
    Op.SIN: (lambda ct, args, out: mul(ct, apply(Op.COS, *args)),),
    # cos a -> -ct*sin a
    Op.COS: (lambda ct, args, out: neg(mul(ct, apply(Op.SIN, *args))),),
    # r = tan a -> ct*(1 + r*r)
    Op.TAN: (lambda ct, args, out: mul(ct, add(mul(out, out), number(1, ct))),),
    Op.TANH: (_tanh,),
    # asin a, acos a -> +-ct / sqrt(1 - a*a)
    Op.ASIN: (lambda ct, args, out: div(ct, apply(Op.SQRT, _circle(args[0]))),),
    Op.ACOS: (lambda ct, args, out: neg(div(ct, apply(Op.SQRT, _circle(args[0])))),),
    # atan a -> ct / (1 + a*a)
    Op.ATAN: (lambda ct, args, out: div(ct, add(mul(args[0], args[0]), number(1, ct))),),
    # atan2(y, x) -> ct*x / (x*x + y*y), -ct*y / (x*x + y*y)
    Op.ATAN2: (lambda ct, args, out: _turn(ct, args, 1), lambda ct, args, out: neg(_turn(ct, args, 0))),
    # sinh a -> ct*cosh a; cosh a -> ct*sinh a
    Op.SINH: (lambda ct, args, out: mul(ct, apply(Op.COSH, *args)),),
    Op.COSH: (lambda ct, args, out: mul(ct, apply(Op.SINH, *args)),),
    # asinh a -> ct / sqrt(1 + a*a)
    Op.ASINH: (_asinh,),
    Op.ACOSH: (_acosh,),
    # atanh a -> ct / (1 - a*a)
    Op.ATANH: (lambda ct, args, out: div(ct, _circle(args[0])),),
    Op.HYPOT: (_leg(0), _leg(1)),
    # r = cbrt a -> ct / 3r^2
    Op.CBRT: (_cbrt,),
    Op.ERF: (lambda ct, args, out: _bell(ct, args[0]),),
    Op.ERFC: (lambda ct, args, out: neg(_bell(ct, args[0])),),
    Op.ERFINV: (_erfinv,),
    Op.COPYSIGN: (_copysign, None),
    # as far from the next one wherever a is
    Op.NEXTAFTER: (_same, None),
    Op.OPAQUE: (_opaque,),
    # a*b + c -> ct*b, ct*a, ct
    Op.FMA: (
        lambda ct, args, out: mul(ct, args[1]),
        lambda ct, args, out: mul(ct, args[0]),
        _same,
    ),
    # A function of a complex number z = x + iy sends d/dx - i d/dy back: complex(x, y) -> real(ct), -imag(ct)
    Op.COMPLEX: (
        lambda ct, args, out: cast(apply(Op.REAL, ct), args[0].dtype),
        lambda ct, args, out: cast(neg(apply(Op.IMAG, ct)), args[1].dtype),
    ),
    # real(z) -> ct
    Op.REAL: (lambda ct, args, out: apply(Op.COMPLEX, ct, _zero(ct)),),
    # imag(z) -> -i*ct
    Op.IMAG: (lambda ct, args, out: apply(Op.COMPLEX, _zero(ct), neg(ct)),),
}


def _partials(e: Apply) -> tuple[Partial | None, ...]:
    return () if e.op in NONDIFFERENTIABLE else RULES[e.op]


def _active(expr: Expr, slots: Container[int] | None) -> set[Expr]:
    """The real or complex floating-point parts of `expr` through which the chosen operands reach it."""
    active: set[Expr] = set()
    for e in walk((expr,)):
        if not e.dtype.is_inexact:
            continue
        if isinstance(e, Operand):
            if slots is None or e.slot in slots:
                active.add(e)
        elif isinstance(e, Apply):
            partials = _partials(e)
            if any(p is not None and a in active for p, a in zip(partials, e.operands, strict=False)):
                active.add(e)
    return active


def depends(expr: Expr, slots: Container[int]) -> bool:
    """Whether a derivative flows from the value of `expr` to one of these operands."""
    return expr in _active(expr, slots)


def pullback(
    expr: Expr, cotangent: Expr, slots: Container[int] | None = None, value: Expr | None = None
) -> dict[int, Expr]:
    """The cotangents of the operands of `expr`, given that of its value: one sweep, from users to what they use.

    Operands that do not matter are left out; `slots` says which ones to look for (None: all floating-point ones).
    `value` stands for that of `expr`, where it has been computed already.
    """
    active = _active(expr, slots)
    if expr not in active:
        return {}
    cotangents: dict[Expr, Expr] = {expr: cotangent}
    result: dict[int, Expr] = {}
    for e in reversed(list(walk((expr,)))):
        ct = cotangents.pop(e, None)
        if ct is None:
            continue
        if isinstance(e, Operand):
            result[e.slot] = ct
        elif isinstance(e, Apply):
            for partial, a in zip(_partials(e), e.operands, strict=True):
                if partial is not None and a in active:
                    part = partial(ct, e.operands, value if e is expr and value is not None else e)
                    cotangents[a] = add(cotangents[a], part) if a in cotangents else part
    return dict(sorted(result.items()))
