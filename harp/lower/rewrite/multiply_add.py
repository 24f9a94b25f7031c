"""Sums of products of complex values are fused multiply-adds, in every loop.

    add(mul(a, b), c)       ->  fma(a, b, c)
    add(c, neg(mul(a, b)))  ->  fma(neg(a), b, c)

gcc 12 fuses them in vectors (vfmaddsub), whatever -ffp-contract says, and not in the rest of a loop; so they are fused
here, and all versions of a loop round alike. Sums over loops are fused where they are written
(`harp.lower.schedule.build`).

Real values are left alone. A value that several kernels need is computed in each of them, rounded in the same way: if
one of them fused what another one rounds, z - max(z) would not be 0, nor its square root a number."""

from __future__ import annotations

import attrs

from harp.lower.loopir.loops import Kernel, Stmt, Store
from harp.lower.loopir.nests import rebuilt
from harp.trace.scalar.expr import Apply, Expr, apply, walk
from harp.trace.scalar.ops import Op


def multiply_adds(kernel: Kernel) -> Kernel:
    """The kernel, with fused multiply-adds in its complex values."""
    return kernel.with_body(_statement(kernel.body))


def _statement(s: Stmt) -> Stmt:
    if isinstance(s, Store):
        return attrs.evolve(s, value=fused(s.value)) if s.value.dtype.is_complex else s
    return rebuilt(s, _statement)


def fused(value: Expr) -> Expr:
    """The value with fused multiply-adds, wherever a product is added."""
    new: dict[Expr, Expr] = {}
    for e in walk((value,)):
        args = [new[a] for a in e.args]
        if not isinstance(e, Apply):
            new[e] = e
        elif e.op is Op.ADD and e.dtype.is_float and (found := [k for k, a in enumerate(args) if _is_product(a)]):
            new[e] = apply(Op.FMA, *_factors(args[found[0]]), args[1 - found[0]])
        else:
            new[e] = apply(e.op, *args, cast_to=e.dtype)
    return new[value]


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
