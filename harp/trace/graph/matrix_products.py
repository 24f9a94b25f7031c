"""Which sums of products are matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from harp.trace.graph.node import MapReduce, View, positions
from harp.trace.index.polynomial import loops_in
from harp.trace.scalar.expr import Apply
from harp.trace.scalar.ops import Op


def multiplies_matrices(node: MapReduce, axes: Sequence[int]) -> bool:
    """Whether a node's values, summed over some axes, are a matrix product: rows of one operand meet columns of another
    one, and both move along what is summed."""
    if not isinstance(node.expr, Apply) or node.expr.op is not Op.MUL:
        return False
    inner = {a for axis, p in enumerate(positions(node.domain)) if axis in axes and (a := p.atom) is not None}
    views = [operand for operand in node.operands if isinstance(operand, View)]
    moving = [{a for p in view.index for a in loops_in(p)} for view in views]
    return any(a & inner and b & inner and a - b - inner and b - a - inner for a, b in combinations(moving, 2))
