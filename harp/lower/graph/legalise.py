"""Legalisation of a graph, as machines require: complex numbers are computed by parts, dtypes for storage (float16,
bfloat16, float8, int4) in float32 or int8.

    map (z, w) -> mul(x0, x1)  ->  map (z, w) -> complex(re*re - im*im, re*im + im*re), with re of x0 := real(x0), ...
    sum (z, w) -> mul(x0, x1)  ->  the same as one sum; where panels serve the product, four real products and a map
    sum (h) -> x0 in float16   ->  map (sum (h) -> cast<f32>(x0)) -> cast<f16>(x0)

Memory keeps its layout: a complex array has its two parts side by side. The only complex arithmetic that remains is
that of reductions: sums and products of complex accumulators.
"""

from __future__ import annotations

import attrs

from harp.errors import VerificationError
from harp.lower.graph.complex import split
from harp.trace.graph.body import graph_of, in_place, with_body
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import (
    Cumulative,
    Custom,
    Iteration,
    MapReduce,
    Node,
    Part,
    Put,
    RowWise,
    Scatter,
    View,
    positions,
)
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.polynomial import Loop, loops_in
from harp.trace.scalar.dtypes import DType, computing, real_of
from harp.trace.scalar.expr import Apply, Expr, Operand, apply, cast, const, walk
from harp.trace.scalar.halves import rounded, widened
from harp.trace.scalar.ops import GIVEN, Op, Reduce


def legalise(graph: Graph) -> Graph:
    """The same program in operations that machines have. Shapes, dtypes, inputs and results stay."""
    return _merged(transform(graph, _represented))


def _merged(graph: Graph) -> Graph:
    """The graph with one loop for those that do the same, whichever lines wrote their steps: a rule of `custom_vjp`
    calls the function whose rule it is, and is traced elsewhere."""
    if sum(isinstance(node, Iteration) for node in graph.nodes()) < 2:
        return graph
    first: dict[Iteration, Iteration] = {}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        node = with_inputs(node, inputs)
        if not isinstance(node, Iteration):
            return node
        body = attrs.evolve(node.body, sites=())
        return first.setdefault(Iteration(node.length, node.operands, body, node.tested, node.reverse), node)

    return transform(graph, rule)


def _represented(node: Node, inputs: tuple[Node, ...]) -> Node:
    node = with_inputs(node, inputs)
    if isinstance(node, Iteration):
        return with_body(node, legalise)
    if isinstance(node, Part) and isinstance(node.whole, Custom):
        return legalise(in_place(node.whole)).outputs[node.number]  # its derivatives are no longer needed
    if isinstance(node, Scatter):
        return _scatter_in_float32(node)
    if isinstance(node, RowWise):
        return _rows_in_float32(node)
    if isinstance(node, Cumulative):
        return _running_in_float32(node)
    if not isinstance(node, MapReduce):
        return node
    if _is_complex_product(node):
        return _by_four_products(node)
    return _in_float32(MapReduce(node.domain, node.operands, split(node.expr), node.reduce, node.axes))


def _in_float32(node: MapReduce) -> Node:
    """The computation of dtypes for storage in wider ones, rounded once at the end."""
    wide = widened(node.expr)
    if node.reduce is None:
        return MapReduce(node.domain, node.operands, rounded(wide, node.dtype))
    reduced = MapReduce(node.domain, node.operands, wide, node.reduce, node.axes)
    if reduced.dtype is node.dtype:
        return reduced
    value: Expr = Operand(reduced.dtype, 0)
    if node.dtype.is_tiny and node.reduce in (Reduce.MAX, Reduce.MIN):  # of nothing: the end of the narrow dtype
        value = apply(node.reduce.value, value, widened(const(node.reduce.identity(node.dtype), node.dtype)))
    return MapReduce(node.shape, (reduced,), rounded(value, node.dtype))


def _rows_in_float32(node: RowWise) -> Node:
    """Rows of float8 and int4 are in the order of the numbers."""
    if not any(o.dtype.is_tiny for o in node.operands):
        return node
    operands = (_cast(o, computing(o.dtype)) if o.dtype.is_tiny else o for o in node.operands)
    return _cast(RowWise(node.function, tuple(operands), node.reverse), node.dtype)


def _cast(node: Node, dtype: DType) -> Node:
    return MapReduce(node.shape, (node,), cast(Operand(node.dtype, 0), dtype))


def _scatter_in_float32(node: Scatter) -> Node:
    """A scatter of dtypes for storage that accumulates in float32: each element is rounded once."""
    wide = computing(node.dtype)
    if wide is node.dtype or node.kind is Put.SET:
        return node
    base, updates = (_cast(n, wide) for n in (node.base, node.updates))
    made = Scatter(base, node.indices, updates, node.kind, node.clips, node.unique, node.strict)
    return _cast(made, node.dtype)


def _running_in_float32(node: Cumulative) -> Node:
    """A scan of dtypes for storage in float32: each result is rounded once."""
    wide = computing(node.dtype)
    if wide is node.dtype:
        return node
    operands = tuple(_cast(n, wide) for n in node.operands)
    made = Cumulative(operands, node.reduce, node.axis, node.backward)
    return _cast(made, node.dtype)


def _is_complex_product(node: MapReduce) -> bool:
    """Whether it is a sum of products of two complex operands, each broadcast along an axis of the other."""
    e = node.expr
    if node.reduce is not Reduce.SUM or not node.dtype.is_complex or not isinstance(e, Apply) or e.op is not Op.MUL:
        return False
    if not all(isinstance(a, Operand) for a in e.operands):
        return False
    kept = {p.atom for axis, p in enumerate(positions(node.domain)) if axis not in node.axes}
    missing = [kept - _moving(o) for o in node.operands]
    return len(missing) == 2 and bool(missing[0] - missing[1]) and bool(missing[1] - missing[0])


def _moving(node: Node) -> set[Loop]:
    """The loops along which an operand's elements differ."""
    indices = (*node.index, *node.conditions) if isinstance(node, View) else positions(node.shape)
    return {loop for p in indices for loop in loops_in(p)}


def _by_four_products(node: MapReduce) -> Node:
    """re = sum(re*re) - sum(im*im), im = sum(re*im) + sum(im*re): four products for which the library has kernels."""
    real = real_of(node.dtype)
    parts = [[_real_or_imag(operand, op) for op in (Op.REAL, Op.IMAG)] for operand in node.operands]
    product = Operand(real, 0) * Operand(real, 1)
    sums = [
        MapReduce(node.domain, (parts[0][a], parts[1][b]), product, Reduce.SUM, node.axes)
        for a, b in ((0, 0), (1, 1), (0, 1), (1, 0))
    ]
    x = [Operand(real, k) for k in range(4)]
    whole = apply(Op.COMPLEX, x[0] - x[1], x[2] + x[3])
    return MapReduce(node.shape, tuple(sums), whole)


def _real_or_imag(node: Node, op: Op) -> Node:
    """The real or imaginary part of an operand, below the view through which it is read."""
    if isinstance(node, View) and node.fill is None:
        src = _real_or_imag(node.src, op)
        return View(src, node.shape, node.index)
    return MapReduce(node.shape, (node,), apply(op, Operand(node.dtype, 0)))


def verify_legalised(graph: Graph) -> None:
    """Raise VerificationError for an operation that no backend computes."""
    for node in graph.nodes():
        if isinstance(node, Iteration):
            verify_legalised(graph_of(node.body))
        for e in walk((node.expr,)) if isinstance(node, MapReduce) else ():
            if isinstance(e, Apply) and not _is_left(e):
                raise VerificationError(f"{e.op.value} of {e.operands[-1].dtype} is left in {node!r}: {e!r}")


def _is_left(e: Apply) -> bool:
    dtypes = {a.dtype for a in e.operands}
    if any(d.is_stored for d in dtypes):
        return e.op in GIVEN
    return not any(d.is_complex for d in dtypes) or e.op in (Op.REAL, Op.IMAG)
