"""A product that is added becomes a fused multiply-add, which is one instruction and rounds once.

    add(mul(a, b), c)       ->  fma(a, b, c)
    add(c, neg(mul(a, b)))  ->  fma(neg(a), b, c)

It is done here once for the program, and no compiler does it: all versions of a loop round alike. A polynomial in the
form of Horner costs one instruction for each of its terms.

Three kinds of sums are left, for they would no longer be what the user can rely on. Of two products, one would be
rounded and the other not: a*b - b*a and the cross product of parallel vectors would not be 0, nor x*x + y*y symmetric.
A product that the value uses again is rounded there: a*b - round(a*b) would not be a whole number. Numbers that are
made of positions, as by arange and linspace, are NumPy's. What a sum over a loop adds is fused where the loop is
written (`harp.lower.schedule.build`).

Complex values are the exception: gcc 12 fuses their multiplications in vectors (vfmaddsub), whatever -ffp-contract
says, and not in the rest of a loop. So all of their sums of products are fused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from harp.lower.loopir.loops import Kernel, Stmt, Store
from harp.lower.loopir.nests import rebuilt
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import Apply, Const, Expr, Position, apply, walk
from harp.trace.scalar.ops import Op

_FUSED = {f32, f64}


def multiply_adds(kernel: Kernel) -> Kernel:
    """The kernel, with fused multiply-adds for its sums of products."""
    return kernel.with_body(_statement(kernel.body))


def _statement(s: Stmt) -> Stmt:
    if isinstance(s, Store):
        value = fused(s.value)
        return s if value is s.value else attrs.evolve(s, value=value)
    return rebuilt(s, _statement)


def fused(value: Expr) -> Expr:
    """The value with fused multiply-adds."""
    uses = Counter(a for e in walk((value,)) for a in e.args)
    reads: dict[Expr, bool] = {}  # whether it depends on elements of arrays
    new: dict[Expr, Expr] = {}
    for e in walk((value,)):
        args = [new[a] for a in e.args]
        reads[e] = any(reads[a] for a in e.args) if args else not isinstance(e, (Const, Position))
        if not isinstance(e, Apply):
            new[e] = e
        elif reads[e] and (place := _fused_term(e, uses, everywhere=value.dtype.is_complex)) is not None:
            new[e] = apply(Op.FMA, *_factors(args[place]), args[1 - place])
        elif any(a is not b for a, b in zip(args, e.operands, strict=True)):
            new[e] = apply(e.op, *args, cast_to=e.dtype)
        else:
            new[e] = e
    return new[value]


def _fused_term(e: Apply, uses: Mapping[Expr, int], everywhere: bool) -> int | None:
    """Which term of a sum is the product that is fused; None if there is none."""
    if e.op is not Op.ADD or e.dtype not in _FUSED:
        return None
    places = [place for place, term in enumerate(e.operands) if _is_product(term)]
    if everywhere:
        return places[0] if places else None
    if len(places) != 1:
        return None
    term = e.operands[places[0]]
    again = uses[term] > 1 or (_is(Op.NEG, term) and uses[term.args[0]] > 1)
    return None if again else places[0]


def _is(op: Op, e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is op


def _is_product(e: Expr) -> bool:
    """Whether it is a product, or the negative of one."""
    return _is(Op.MUL, e) or (_is(Op.NEG, e) and _is(Op.MUL, e.args[0]))


def _factors(e: Expr) -> tuple[Expr, Expr]:
    """Of a product, or of a product's negative."""
    if _is(Op.NEG, e):
        a, b = e.args[0].args
        return -a, b
    a, b = e.args
    return a, b
