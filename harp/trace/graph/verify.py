"""The verifier of graphs: no leaked tracer, and every node's shape and dtype follow from its rule."""

from __future__ import annotations

from collections.abc import Callable

from harp.errors import LeakedTracerError, VerificationError
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import (
    Constant,
    Contiguous,
    Cumulative,
    Custom,
    Examples,
    Foreign,
    Gather,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    RowWise,
    Scatter,
    View,
    walk,
)
from harp.trace.graph.row_functions import ROWS, RowOp
from harp.trace.index.polynomial import Index, Loop, Shape, loops_in
from harp.trace.scalar.dtypes import bool_, i64, u64
from harp.trace.scalar.expr import Operand, operands_in
from harp.trace.scalar.ops import INFO


def verify_graph(graph: Graph, captured: frozenset[Input] = frozenset()) -> None:
    """Raise LeakedTracerError for an input of another trace, VerificationError for a node that breaks its rule."""
    inputs = {*graph.inputs, *captured}
    for node in walk((*graph.inputs, *graph.results)):
        if isinstance(node, Input) and node not in inputs:
            raise LeakedTracerError(f"the result depends on {node.name!r}, an array of another traced function")
        problem = _CHECKS[type(node)](node)
        if problem:
            site = graph.sites.get(node)
            made = f", made at {site[0]}:{site[1]}" if site else ""
            raise VerificationError(f"{node!r}: {problem}{made}")


def _no_rule(node: Node) -> str:
    return ""


def _map_reduce(node: MapReduce) -> str:
    for operand in node.operands:
        if operand.shape != node.domain:
            return f"operand of shape {list(operand.shape)} in a domain {list(node.domain)}"
    for e in operands_in(node.expr):
        if e.slot >= len(node.operands) or node.operands[e.slot].dtype is not e.dtype:
            return f"operand {e.slot} does not have dtype {e.dtype}"
    if (node.reduce is None) != (not node.axes) or any(not 0 <= a < len(node.domain) for a in node.axes):
        return f"axes {node.axes} of reduction {node.reduce}"
    return ""


def _view(node: View) -> str:
    if len(node.index) != len(node.src.shape):
        return f"{len(node.index)} indices into {len(node.src.shape)} axes"
    if bool(node.conditions) != (node.fill is not None):
        return "conditions and fill go together"
    if node.fill is not None and node.fill.dtype is not node.dtype:
        return f"fill of dtype {node.fill.dtype}"
    return _foreign_loops((*node.index, *node.conditions), node.shape)


def _cumulative(node: Cumulative) -> str:
    if len(node.operands) != (2 if node.reduce is None else 1):
        return f"{len(node.operands)} operands"
    if any(o.shape != node.shape or o.dtype is not node.dtype for o in node.operands):
        return f"operands {list(node.operands)} differ in shape or dtype"
    return "" if 0 <= node.axis < len(node.shape) else f"axis {node.axis} of {len(node.shape)}"


def _row_wise(node: RowWise) -> str:
    info, first = ROWS[node.function], node.operands[0]
    if len(node.operands) != info.arity:
        return f"{len(node.operands)} operands of {node.function.value}"
    alike = node.shape if info.aligned else node.shape[:-1]
    rows = [o.shape if info.aligned else o.shape[:-1] for o in node.operands]
    common = not info.aligned and len(first.shape) == 1
    if not node.shape or any(shape != alike for shape in rows[common:]):
        return f"rows of shapes {[list(o.shape) for o in node.operands]}"
    if node.function is RowOp.SEARCH and first.dtype is not node.operands[1].dtype:
        return f"values of dtype {node.operands[1].dtype} are searched in {first.dtype}"
    return ""


def _host_call(node: HostCall) -> str:
    if node.token.dtype is not i64 or node.active.dtype is not bool_ or node.active.shape != node.shape:
        return f"a token {node.token!r} where {node.active!r}"
    rank = len(node.shape)
    others = [o for o in node.operands if o.shape[:rank] != node.shape]
    return f"operands {others} for calls of shape {list(node.shape)}" if others else ""


def _foreign_loops(indices: tuple[Index, ...], shape: Shape) -> str:
    loops = {Loop(axis, extent) for axis, extent in enumerate(shape)}
    foreign = {loop for p in indices for loop in loops_in(p)} - loops
    return f"loops {foreign} are not those of shape {list(shape)}" if foreign else ""


def _gather(node: Gather) -> str:
    if node.fill is not None and node.fill.dtype is not node.dtype:
        return f"fill of dtype {node.fill.dtype}"
    return _places(node.indices, node.src)


def _scatter(node: Scatter) -> str:
    wanted = node.indices[0].shape + node.base.shape[len(node.indices) :] if node.indices else ()
    if node.updates.shape != wanted or node.updates.dtype is not node.dtype:
        return f"updates {node.updates!r} instead of {node.dtype}{list(wanted)}"
    if node.kind.value is not None and node.dtype.kind not in INFO[node.kind.value].kinds:
        return f"{node.kind.name.lower()} does not accept {node.dtype}"
    return _places(node.indices, node.base)


def _places(indices: tuple[Node, ...], array: Node) -> str:
    if not 1 <= len(indices) <= len(array.shape):
        return f"{len(indices)} indices into {len(array.shape)} axes"
    if not all(i.dtype.is_integer and i.dtype is not u64 and i.shape == indices[0].shape for i in indices):
        return f"indices {list(indices)} are not integers of one shape"
    return ""


def _iteration(node: Iteration) -> str:
    body = node.body
    carried, elements, same = body.place()
    if len(node.operands) + 1 != len(body.inputs) or len(body.outputs) < body.carried:
        return f"{len(node.operands)} operands for a body with {len(body.inputs)} inputs"
    for k in (*carried, *same):
        if (node.operands[k - 1].shape, node.operands[k - 1].dtype) != (body.inputs[k].shape, body.inputs[k].dtype):
            return f"operand {node.operands[k - 1]!r} for {body.inputs[k]!r}"
    for k in elements:
        whole, element = node.operands[k - 1], body.inputs[k]
        if whole.shape != (node.length, *element.shape) or whole.dtype is not element.dtype:
            return f"operand {whole!r} for {node.length} times {element!r}"
    for k in carried:
        before, after = body.inputs[k], body.outputs[k - 1]
        if before.shape != after.shape or before.dtype is not after.dtype:
            return f"{before!r} is carried, but {after!r} is carried on"
    if node.tested and (not body.carried or body.inputs[1].dtype is not bool_ or body.inputs[1].shape):
        return "what is tested is not the first of what is carried"
    if node.tested and (body.sliced or node.reverse):
        return "it may end before it has taken all elements"
    if node.length is None and (not node.tested or len(body.outputs) > body.carried):
        return "nobody knows how long it runs"
    verify_graph(Graph(body.inputs, body.outputs))
    return ""


def _custom(node: Custom) -> str:
    for operand, i in zip(node.operands, node.body.inputs[1:], strict=True):
        if operand.shape != i.shape or operand.dtype is not i.dtype:
            return f"operand {operand!r} for {i!r}"
    verify_graph(Graph(node.body.inputs, node.body.outputs))
    return ""


def _foreign(node: Foreign) -> str:
    rank = len(node.calls)
    others = [o for o in node.operands if o.shape[:rank] != node.calls]
    return f"operands {others} for calls of shape {list(node.calls)}" if others else ""


def _examples(node: Examples) -> str:
    return "" if node.number.shape == () else f"examples numbered by an array of shape {list(node.number.shape)}"


def _part(node: Part) -> str:
    return "" if 0 <= node.number < node.whole.count else f"result {node.number} of {node.whole.count}"


_CHECKS: dict[type[Node], Callable[..., str]] = {
    Input: _no_rule,
    Constant: _no_rule,
    MapReduce: _map_reduce,
    View: _view,
    Gather: _gather,
    Scatter: _scatter,
    Cumulative: _cumulative,
    Contiguous: _no_rule,
    RowWise: _row_wise,
    Examples: _examples,
    HostCall: _host_call,
    Iteration: _iteration,
    Custom: _custom,
    Foreign: _foreign,
    Part: _part,
}

__all__ = ["Operand", "verify_graph"]
