"""The derivatives of running products, without division, and of running extrema.

That of a running sum needs no rule: it is a masked sum.
"""

from __future__ import annotations

from harp.trace.cumulative import Running, masked
from harp.trace.dtypes import i64
from harp.trace.expr import Operand, Position, apply, const, select
from harp.trace.index import Index
from harp.trace.node import MapReduce, Node, Put, Scatter, positions
from harp.trace.ops import Op, Reduce
from harp.trace.view import pad, view


def running_product(node: Node, run: Running, ct: Node) -> Node:
    """The cotangent of x, given that of r[i] = x[0]*...*x[i]: at k, r[k-1] * (sum over i >= k of ct[i]*between[k, i]),

    where between[k, i] = x[k+1]*...*x[i]. These are running products for each k, so this takes quadratic time. It is
    exact beside zeros, where a quotient of products is not, and so are its own derivatives.
    """
    axis, rank = run.axis, len(node.shape)
    end = 1 if run.backward else -1
    low = [-end if a == axis else 0 for a in range(rank)]
    before = pad(node, low, [-shift for shift in low], const(1, node.dtype))
    domain = (*node.shape, node.shape[axis])
    *here, i = positions(domain)
    k = here[axis]
    index = tuple(i if a == axis else p for a, p in enumerate(here))
    reached = view(ct, domain, index, (_ahead(run, k, i),), const(0, ct.dtype))
    dot = apply(Op.MUL, Operand(ct.dtype, 0), Operand(ct.dtype, 1))
    after = MapReduce(domain, (reached, _between(run)), dot, Reduce.SUM, (rank,))
    return MapReduce(node.shape, (before, after), dot)


def _ahead(run: Running, a: Index, b: Index) -> Index:
    """Not negative where the running product meets `a` first, or both are the same place."""
    return a - b if run.backward else b - a


def _between(run: Running) -> Node:
    """x[k+1]*...*x[i] over (.., k, .., i): itself a running product along i."""
    values, axis = run.values, run.axis
    rank = len(values.shape)
    domain = (*values.shape, values.shape[axis], values.shape[axis])
    *here, i, j = positions(domain)
    index = tuple(j if a == axis else p for a, p in enumerate(here))
    inside = (_ahead(run, j, i), _ahead(run, here[axis], j) - 1)
    factors = view(values, domain, index, inside, const(1, values.dtype))
    return MapReduce(domain, (factors,), Operand(values.dtype, 0), Reduce.PROD, (rank + 1,))


def running_extreme(node: Node, run: Running, ct: Node) -> Node:
    """The cotangent of x, given that of r[i] = max(x[0], ..., x[i]): at k, the sum of ct[i] where r[i] is from k.

    Each r[i] is from the first element that is as large, or from the first NaN. Where a new one begins is known from
    the element before; the last beginning up to each i is a running maximum itself.
    """
    axis, values, rank = run.axis, run.values, len(node.shape)
    end = 1 if run.backward else -1
    low = [-end if a == axis else 0 for a in range(rank)]
    start = const(run.reduce.identity(node.dtype), node.dtype)
    before = pad(node, low, [-shift for shift in low], start)
    here = positions(node.shape)
    number = here[axis] if not run.backward else node.shape[axis] - 1 - here[axis]
    x, r = Operand(node.dtype, 0), Operand(node.dtype, 1)
    beyond = apply(Op.LT, r, x) if run.reduce is Reduce.MAX else apply(Op.LT, x, r)
    is_nan, was_nan = (apply(Op.NOT, apply(Op.EQ, e, e)) for e in (x, r))
    begins = apply(Op.OR, beyond, apply(Op.AND, is_nan, apply(Op.NOT, was_nan)))
    begun = MapReduce(node.shape, (values, before), select(begins, Position(number), const(0, i64)))
    candidates = masked(begun, Reduce.MAX, axis, run.backward)
    origin: Node = MapReduce(candidates.shape, (candidates,), Operand(i64, 0), Reduce.MAX, (rank,))
    if run.backward:
        place = apply(Op.ADD, Position(node.shape[axis] - 1), apply(Op.NEG, Operand(i64, 0)))
        origin = MapReduce(node.shape, (origin,), place)
    indices = tuple(origin if a == axis else MapReduce(node.shape, (), Position(p)) for a, p in enumerate(here))
    zeros = MapReduce(node.shape, (), const(0, ct.dtype))
    return Scatter(zeros, indices, ct, Put.ADD, True)
