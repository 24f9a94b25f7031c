"""The rules of the scalar operations: their derivatives, and the sweeps over a scalar expression, backward and forward.

One row per operation, one entry per operand: from the cotangent of the result to that of the operand. Every entry is
accurate over the whole domain of the operation, and made of operations that have derivatives themselves.

A derivative of a number by a number is its own transpose, so the same entry takes the tangent of the operand to its
part of the tangent of the result. Not so where real numbers become complex ones, or the other way round, or a dtype
changes: these operations have a row in `FORWARD`, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from functools import reduce
from operator import add

from harp.errors import MissingRuleError
from harp.trace.scalar.dtypes import real_of, tiny_of
from harp.trace.scalar.expr import Apply, Const, Expr, Operand, apply, cast, const, select, walk
from harp.trace.scalar.formulas import mul, number
from harp.trace.scalar.ops import Op

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
    return select(x < zero, -ct, select(apply(Op.EQ, x, zero), zero, ct))


def _complex_abs(ct: Expr, z: Expr, size: Expr) -> Expr:
    x, y = _unit(z, size)
    return apply(Op.COMPLEX, ct * x, -(ct * y))


def _unit(z: Expr, size: Expr) -> tuple[Expr, Expr]:
    """The parts of z/|z|, and 0 at 0."""
    parts = apply(Op.REAL, z), apply(Op.IMAG, z)
    radius = select(apply(Op.EQ, size, number(0, size)), number(1, size), size)
    return _cosine(*parts, radius), _cosine(*parts[::-1], radius)


def _cosine(leg: Expr, other: Expr, radius: Expr) -> Expr:
    """leg / radius, and the limit, 1 or -1, where the leg alone is infinite."""
    alone = apply(Op.EQ, apply(Op.ABS, leg), number(math.inf, leg)) & (apply(Op.ABS, other) < math.inf)
    return select(alone, apply(Op.COPYSIGN, number(1, leg), leg), leg / radius)


def _extreme(mine: int, largest: bool) -> Partial:
    """All to the operand that is the result, half to each at a tie; all to both where they do not compare (NaN)."""

    def partial(ct: Expr, args: Args, out: Expr) -> Expr:
        me, other = args[mine], args[1 - mine]
        loses = me < other if largest else other < me
        unequal = select(loses, number(0, ct), ct)
        return select(apply(Op.EQ, *args), ct * 0.5, unequal)

    return partial


def _power_base(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * y * x**(y-1), without 0 * inf where y is 0: there a base too small to invert, or NaN, becomes 1."""
    x, y = args
    size = apply(Op.ABS, x)
    one, tiny = number(1, x), const(tiny_of(x.dtype), size.dtype)
    invertible = tiny < size
    lost = apply(Op.EQ, y, number(0, y)) & ~invertible
    return ct * (y * apply(Op.POW, select(lost, one, x), y + (-1)))


def _power_exponent(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * x**y * log(x), and 0 for 0**y."""
    x = args[0]
    positive = select(apply(Op.EQ, x, number(0, x)), number(1, x), x)
    return ct * (out * apply(Op.LOG, positive))


def _tanh(ct: Expr, args: Args, out: Expr) -> Expr:
    """1 - tanh(x)^2 near 0, where its own derivative keeps all digits; else 4e / (1+e)^2 with e = exp(-2|x|): the
    other has no digits left where tanh saturates."""
    (x,) = args
    near = 1 - out * out
    if x.dtype.is_complex:
        return ct * near
    minus_double = x * select(x < 0, number(2, x), number(-2, x))
    e = apply(Op.EXP, minus_double)
    root = e + 1
    far = 4 * e / (root * root)
    return ct * select(_is_small(x), near, far)


def _is_small(x: Expr) -> Expr:
    return apply(Op.ABS, x) < 0.5


def _cast_back(ct: Expr, args: Args, out: Expr) -> Expr:
    source = args[0].dtype
    return cast(apply(Op.REAL, ct) if ct.dtype.is_complex and not source.is_complex else ct, source)


def _circle(x: Expr) -> Expr:
    """1 - x*x, with the digits that (1 - x) * (1 + x) has near 1; its derivative is the plain -2x, where the product's
    would be a difference near 0, and a NaN beside the infinities at 1."""
    one, plain = number(1, x), 1 - x * x
    exact = (one - x) * (one + x)
    if x.dtype.is_complex:
        return exact
    lost = exact - plain
    return plain + select(apply(Op.ABS, x) < 2, apply(Op.STOP, lost), number(0, x))


def _hypot_partial(mine: int) -> Partial:
    """ct * x / hypot(x, y), and half at the origin, where all higher derivatives are 0."""

    def partial(ct: Expr, args: Args, out: Expr) -> Expr:
        half, origin = number(0.5, ct), apply(Op.EQ, out, number(0, out))
        return ct * select(origin, half, _cosine(args[mine], args[1 - mine], select(origin, number(1, out), out)))

    return partial


def _cbrt(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * (1/r)^2 / 3: no infinity meets a zero in its own derivatives."""
    inverse = apply(Op.RECIP, out)
    return ct * ((1 / 3) * (inverse * inverse))


def _zero(like: Expr) -> Const:
    return const(0, real_of(like.dtype))


def _turn(ct: Expr, args: Args, other: int) -> Expr:
    """ct * other / (x*x + y*y), without overflow."""
    radius = apply(Op.HYPOT, *args)
    return ct * (args[other] / radius / radius)


def _asinh(ct: Expr, args: Args, out: Expr) -> Expr:
    one = number(1, ct)
    if ct.dtype.is_complex:
        return ct / apply(Op.SQRT, args[0] * args[0] + one)
    return ct / apply(Op.HYPOT, args[0], one)


def _acosh(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct / (sqrt(x - 1) * sqrt(x + 1)), by reciprocals: in its own derivative no infinity meets a zero at 1."""
    roots = (apply(Op.SQRT, args[0] + sign) for sign in (-1, 1))
    below, above = (apply(Op.RECIP, root) for root in roots)
    return ct * (below * above)


def _gaussian(ct: Expr, x: Expr) -> Expr:
    """ct * 2/sqrt(pi) * exp(-x*x)"""
    return ct * ((2 / math.sqrt(math.pi)) * apply(Op.EXP, -(x * x)))


def _erfinv(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct * sqrt(pi)/2 * exp(r*r)"""
    return ct * ((math.sqrt(math.pi) / 2) * apply(Op.EXP, out * out))


def _copysign(ct: Expr, args: Args, out: Expr) -> Expr:
    """ct times the sign of x times that of y; zeros are signed."""
    signs = [apply(Op.COPYSIGN, number(1, ct), x) for x in args]
    return ct * mul(*signs)


def _opaque(ct: Expr, args: Args, out: Expr) -> Expr:
    raise MissingRuleError(
        "a random number has no derivative with respect to this parameter of its distribution; put "
        "harp.stop_gradient around the number or the parameter"
    )


# Operations whose derivative is zero wherever there is one, and those that have none.
NONDIFFERENTIABLE = frozenset(
    {Op.LT, Op.EQ, Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR, Op.FLOOR, Op.RINT, Op.FLOORDIV, Op.STOP, Op.BITCAST}
)

RULES: dict[Op, tuple[Partial | None, ...]] = {
    # a + b -> ct, ct
    Op.ADD: (_same, _same),
    # a * b -> ct*b, ct*a
    Op.MUL: (lambda ct, args, out: ct * args[1], lambda ct, args, out: ct * args[0]),
    # a / b -> ct/b, -(ct/b)*(a/b)
    Op.DIV: (
        lambda ct, args, out: ct / args[1],
        lambda ct, args, out: -(ct / args[1] * out),
    ),
    # a mod b := a - b*(a//b) -> ct, -ct*(a//b)
    Op.MOD: (_same, lambda ct, args, out: -(ct * apply(Op.FLOORDIV, *args))),
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
    Op.NEG: (lambda ct, args, out: -ct,),
    Op.ABS: (_abs,),
    # r = 1/a -> -(ct*r)*r
    Op.RECIP: (lambda ct, args, out: -(ct * out * out),),
    # r = sqrt a -> ct / 2r
    Op.SQRT: (lambda ct, args, out: ct / (2 * out),),
    # r = exp a -> ct*r
    Op.EXP: (lambda ct, args, out: ct * out,),
    # r = 2**a -> ct*r*ln 2
    Op.EXP2: (lambda ct, args, out: ct * (out * math.log(2)),),
    # exp(a) - 1 -> ct*exp(a)
    Op.EXPM1: (lambda ct, args, out: ct * apply(Op.EXP, *args),),
    # log a -> ct/a
    Op.LOG: (lambda ct, args, out: ct / args[0],),
    # log2 a -> ct / (a*ln 2)
    Op.LOG2: (lambda ct, args, out: ct / (args[0] * math.log(2)),),
    # log10 a -> ct / (a*ln 10)
    Op.LOG10: (lambda ct, args, out: ct / (args[0] * math.log(10)),),
    # log(1 + a) -> ct / (1 + a)
    Op.LOG1P: (lambda ct, args, out: ct / (args[0] + 1),),
    # sin a -> ct*cos a
    Op.SIN: (lambda ct, args, out: ct * apply(Op.COS, *args),),
    # cos a -> -ct*sin a
    Op.COS: (lambda ct, args, out: -(ct * apply(Op.SIN, *args)),),
    # r = tan a -> ct*(1 + r*r)
    Op.TAN: (lambda ct, args, out: ct * (out * out + 1),),
    Op.TANH: (_tanh,),
    # asin a, acos a -> +-ct / sqrt(1 - a*a)
    Op.ASIN: (lambda ct, args, out: ct / apply(Op.SQRT, _circle(args[0])),),
    Op.ACOS: (lambda ct, args, out: -(ct / apply(Op.SQRT, _circle(args[0]))),),
    # atan a -> ct / (1 + a*a)
    Op.ATAN: (lambda ct, args, out: ct / (args[0] * args[0] + 1),),
    # atan2(y, x) -> ct*x / (x*x + y*y), -ct*y / (x*x + y*y)
    Op.ATAN2: (lambda ct, args, out: _turn(ct, args, 1), lambda ct, args, out: -_turn(ct, args, 0)),
    # sinh a -> ct*cosh a; cosh a -> ct*sinh a
    Op.SINH: (lambda ct, args, out: ct * apply(Op.COSH, *args),),
    Op.COSH: (lambda ct, args, out: ct * apply(Op.SINH, *args),),
    # asinh a -> ct / sqrt(1 + a*a)
    Op.ASINH: (_asinh,),
    Op.ACOSH: (_acosh,),
    # atanh a -> ct / (1 - a*a)
    Op.ATANH: (lambda ct, args, out: ct / _circle(args[0]),),
    Op.HYPOT: (_hypot_partial(0), _hypot_partial(1)),
    # r = cbrt a -> ct / 3r^2
    Op.CBRT: (_cbrt,),
    Op.ERF: (lambda ct, args, out: _gaussian(ct, args[0]),),
    Op.ERFC: (lambda ct, args, out: -_gaussian(ct, args[0]),),
    Op.ERFINV: (_erfinv,),
    Op.COPYSIGN: (_copysign, None),
    # as far from the next one wherever a is
    Op.NEXTAFTER: (_same, None),
    Op.OPAQUE: (_opaque,),
    # a*b + c -> ct*b, ct*a, ct
    Op.FMA: (
        lambda ct, args, out: ct * args[1],
        lambda ct, args, out: ct * args[0],
        _same,
    ),
    # A function of a complex number z = x + iy sends d/dx - i d/dy back: complex(x, y) -> real(ct), -imag(ct)
    Op.COMPLEX: (
        lambda ct, args, out: cast(apply(Op.REAL, ct), args[0].dtype),
        lambda ct, args, out: cast(-apply(Op.IMAG, ct), args[1].dtype),
    ),
    # real(z) -> ct
    Op.REAL: (lambda ct, args, out: apply(Op.COMPLEX, ct, _zero(ct)),),
    # imag(z) -> -i*ct
    Op.IMAG: (lambda ct, args, out: apply(Op.COMPLEX, _zero(ct), -ct),),
}


# -- forward ------------------------------------------------------------------------------------------------------

# (tangents of the operands, None for 0; the operation) -> tangent of the result
Forward = Callable[[Sequence[Expr | None], Apply], Expr]


def _abs_forward(tangents: Sequence[Expr | None], e: Apply) -> Expr:
    """t * sign(x); of a complex number the part of t along z, real(t * conj(z)) / |z|."""
    (x,), (t,) = e.operands, tangents
    assert t is not None
    if not x.dtype.is_complex:
        return _abs(t, e.operands, e)
    along, across = _unit(x, e)
    return along * apply(Op.REAL, t) + across * apply(Op.IMAG, t)


def _cast_forward(tangents: Sequence[Expr | None], e: Apply) -> Expr:
    (t,) = tangents
    assert t is not None
    return cast(apply(Op.REAL, t) if t.dtype.is_complex and not e.dtype.is_complex else t, e.dtype)


def _select_forward(tangents: Sequence[Expr | None], e: Apply) -> Expr:
    """select(c, a, b) -> select(c, ta, tb)"""
    return select(e.operands[0], *(number(0, e) if t is None else t for t in tangents[1:]))


def _linear(tangents: Sequence[Expr | None], e: Apply) -> Expr:
    """f(z) -> f(t): complex, real, imag."""
    return apply(e.op, *(number(0, x) if t is None else t for t, x in zip(tangents, e.operands, strict=True)))


FORWARD: dict[Op, Forward] = {
    Op.ABS: _abs_forward,
    Op.CAST: _cast_forward,
    Op.SELECT: _select_forward,
    Op.COMPLEX: _linear,
    Op.REAL: _linear,
    Op.IMAG: _linear,
}


# -- sweeps -------------------------------------------------------------------------------------------------------


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
                    cotangents[a] = cotangents[a] + part if a in cotangents else part
    return dict(sorted(result.items()))


def pushforward(expr: Expr, tangents: Mapping[int, Expr], value: Expr | None = None) -> Expr | None:
    """The tangent of `expr`, given those of some of its operands: one sweep, from what is used to its users.

    None if it is 0, since no derivative flows from them. `value` is as for `pullback`.
    """
    active = _active(expr, tangents)
    known: dict[Expr, Expr] = {}
    for e in walk((expr,)):
        if e not in active:
            continue
        if isinstance(e, Operand):
            known[e] = tangents[e.slot]
        elif isinstance(e, Apply):
            result = value if e is expr and value is not None else e
            known[e] = _tangent(e, [known.get(a) for a in e.operands], result)
    return known.get(expr)


def _tangent(e: Apply, tangents: Sequence[Expr | None], value: Expr) -> Expr:
    if e.op in FORWARD:
        return FORWARD[e.op](tangents, e)
    parts = [
        partial(t, e.operands, value)
        for partial, t in zip(_partials(e), tangents, strict=True)
        if partial is not None and t is not None
    ]
    return reduce(add, parts)
