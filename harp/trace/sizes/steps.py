"""Which number a traced integer is, in terms of sizes and of the numbers of the loops round it, and how far it gets."""

from __future__ import annotations

from harp.trace.graph.node import Input, MapReduce, Node, walk
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import Counter, Index, Relu, as_index, depends_on, of, split_linear
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Const, Expr, Position, substitute
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import resolve


def formula(root: Node) -> Index | None:
    """The number that a node is; None if it depends on data."""
    level = current()
    steps = {} if level is None else level.scope.counters
    known: dict[Node, Expr] = {}
    for node in walk((root,)):
        if isinstance(node, Input) and node.uid in steps:
            known[node] = Position(of(Counter(node.uid, resolve(steps[node.uid]))))
        elif isinstance(node, MapReduce) and not node.domain and all(o in known for o in node.operands):
            known[node] = substitute(node.expr, {k: known[o] for k, o in enumerate(node.operands)})
    e = known.get(root)
    if isinstance(e, Const) and e.dtype is i64:
        return as_index(int(e.value))
    return e.index if isinstance(e, Position) else None


def most(p: Index, all_run: bool = False) -> Index | None:
    """The largest value of a formula, over all steps of the loops whose numbers it has, if they run at all: a formula
    of sizes. None where it is none. Where `all_run`, a loop of max(q, 0) steps is one of q."""
    while True:
        numbers = counters_in(p)
        if not numbers:
            return p
        last = max(numbers, key=lambda counter: counter.number)
        parts = split_linear(p, last)
        if parts is None:
            return None
        slope, rest = parts
        if nonnegative(slope):
            extent = last.extent.atom
            steps = extent.arg if all_run and isinstance(extent, Relu) else last.extent
            p = rest + slope * (steps - 1)
        elif nonnegative(-slope):
            p = rest
        else:
            return None


def counters_in(p: Index) -> list[Counter]:
    """The numbers of loops in a formula."""
    return [a for a in depends_on(p) if isinstance(a, Counter)]
