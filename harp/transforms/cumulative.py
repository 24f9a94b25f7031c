"""The derivative of a running product, without division. That of a running sum needs no rule: it is a masked sum."""

from __future__ import annotations

from harp.trace.cumulative import Running
from harp.trace.expr import Operand, apply, const
from harp.trace.index import Index
from harp.trace.node import MapReduce, Node, positions
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
