"""Simplification of graphs before scheduling: fewer nodes with the same bits. Nothing is fused here.

Rules are data: each takes a node whose inputs are simplified and returns a simpler one, or None. The driver applies
them bottom-up, each node to a fixed point, so that simplifying twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harp.errors import VerificationError
from harp.lower.cost_model import undecided_weight
from harp.trace.graph.body import graph_of, known_length, selected, sites_of, with_body, with_length
from harp.trace.graph.graph import Graph, replaced, transform
from harp.trace.graph.node import (
    Body,
    Constant,
    Contiguous,
    Cumulative,
    Gather,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    Put,
    RowWise,
    Scatter,
    View,
    at,
    body_input,
)
from harp.trace.graph.node import walk as walk_nodes
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.row_functions import RowOp
from harp.trace.graph.verify import verify_graph
from harp.trace.graph.view import view
from harp.trace.index.bounds import at_least_zero, nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ZERO, Index, Loop
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Const, Expr, Operand, Position, apply, const, operands_in, substitute, walk
from harp.trace.scalar.ops import Op

Rule = Callable[..., Node | None]  # takes a node of the class that it is listed under

# The budget of a proof about positions: there are many of them, and a failure costs no more than a select.
_FEW_STEPS = 100


def simplify(graph: Graph) -> Graph:
    """The same program with the rules applied to a fixed point. Shapes, dtypes, inputs and results stay."""
    return transform(graph, _simplest)


def _simplest(node: Node, inputs: tuple[Node, ...]) -> Node:
    node = with_inputs(node, inputs)
    simpler: Node | None = node
    while simpler is not None:
        node = simpler
        candidates = (rule(node) for rule in RULES.get(type(node), ()))
        simpler = next((c for c in candidates if c is not None), None)
    return node


def _composed(node: View) -> Node | None:
    """Composition, identity and conditions.

    view(view(x)) -> view(x); view(x) at x's own positions -> x; where c >= 0, which is certain -> (nothing)
    """
    simpler = view(node.src, node.shape, node.index, node.conditions, node.fill)
    return None if simpler is node else simpler


def _never(node: View) -> Node | None:  # view(x) where c >= 0, which never holds, else f -> f
    if node.fill is not None and any(at_least_zero(c) is False for c in node.conditions):
        return MapReduce(node.shape, (), node.fill)
    return None


def _number_everywhere(node: View) -> Node | None:  # view(number) -> number
    number = _uniform_value(node.src)
    if number is not None and (node.fill is None or node.fill is number):
        return MapReduce(node.shape, (), number)
    return None


def _selected_operand(node: View) -> Node | None:
    """view(select of x and y by position) -> view(x), if x is selected at all positions that are read: of a
    concatenation a part of one piece, as in its gradient."""
    src = node.src
    if not isinstance(src, MapReduce) or src.reduce is not None or not src.expr.positional:
        return None
    kept = src.expr
    under = at(src.domain, node.index)
    while isinstance(kept, Apply) and kept.op is Op.SELECT:
        answer = _answer(kept.operands[0], under, node.conditions)
        if answer is None:
            return None
        kept = kept.operands[1 if answer else 2]
    if not isinstance(kept, Operand):
        return None
    return view(src.operands[kept.slot], node.shape, node.index, node.conditions, node.fill)


def _answer(e: Expr, under: Substitution, facts: tuple[Index, ...]) -> bool | None:
    """Whether P < Q for two positions, if a cheap proof from the facts >= 0 decides it."""
    if not isinstance(e, Apply) or e.op is not Op.LT or not all(isinstance(a, Position) for a in e.operands):
        return None
    p, q = (under(a.index) for a in e.operands if isinstance(a, Position))
    for answer, distance in ((True, q - p - 1), (False, p - q)):
        if distance in facts or nonnegative(distance, _FEW_STEPS):
            return answer
    return None


def _empty(node: Node) -> Node | None:
    """An array without elements becomes a constant, and so does a reduction of nothing, so nothing is read for them.
    Hoisting out of loops without iterations would otherwise read an element such as x[-1] of an empty array.

    map (x) over [0, n] -> map () -> 0; sum over [0] of [0, n] (x) -> map () -> 0
    """
    if ZERO not in (node.domain if isinstance(node, MapReduce) else node.shape):
        return None
    number = const(0, node.dtype)
    if isinstance(node, MapReduce) and node.reduce is not None:
        number = const(node.reduce.identity(node.dtype), node.dtype)
    elif _uniform_value(node) is not None:
        return None
    return MapReduce(node.shape, (), number)


def _uniform_value(node: Node) -> Const | None:
    """The number that all elements equal, if it is known."""
    if isinstance(node, MapReduce) and node.reduce is None and isinstance(node.expr, Const):
        return node.expr
    return None


def _identity_map(node: MapReduce) -> Node | None:  # map (x) -> x0  ->  x
    if node.reduce is None and isinstance(node.expr, Operand):
        return node.operands[node.expr.slot]
    return None


_MARKERS = (Op.STOP, Op.OPAQUE)  # for derivatives only


def _no_stop(node: MapReduce) -> Node | None:  # stop_gradient(a) -> a, opaque(a) -> a
    if not any(isinstance(e, Apply) and e.op in _MARKERS for e in walk((node.expr,))):
        return None
    new: dict[Expr, Expr] = {}
    for e in walk((node.expr,)):
        args = [new[a] for a in e.args]
        if isinstance(e, Apply):
            new[e] = args[0] if e.op in _MARKERS else apply(e.op, *args, cast_to=e.dtype)
        else:
            new[e] = e
    return MapReduce(node.domain, node.operands, new[node.expr], node.reduce, node.axes)


def _number_operand(node: MapReduce) -> Node | None:  # map (x, number) -> f(x0, x1)  ->  map (x) -> f(x0, number)
    numbers = {slot: _uniform_value(operand) for slot, operand in enumerate(node.operands)}
    known: dict[int, Expr] = {slot: number for slot, number in numbers.items() if number is not None}
    if not known or not any(e.slot in known for e in operands_in(node.expr)):
        return None
    return MapReduce(node.domain, node.operands, substitute(node.expr, known), node.reduce, node.axes)


def _formula_operand(node: MapReduce) -> Node | None:  # map (x, map () -> [i0] < 3) -> f(x0, x1)  ->  f(x0, [i0] < 3)
    formulas = {slot: _by_position(operand) for slot, operand in enumerate(node.operands)}
    known = {slot: formula for slot, formula in formulas.items() if formula is not None}
    if not any(e.slot in known for e in operands_in(node.expr)):
        return None
    return MapReduce(node.domain, node.operands, substitute(node.expr, known), node.reduce, node.axes)


def _by_position(node: Node) -> Expr | None:
    """An element as a formula of its position, if that is free where it is used: a position, or a select by one."""
    src, under = node, None
    if isinstance(node, View) and not node.conditions:
        src, under = node.src, at(node.src.shape, node.index)
    if not isinstance(src, MapReduce) or src.reduce is not None or src.operands or not src.expr.positional:
        return None
    return substitute(src.expr, {}, under) if undecided_weight(src.expr) == 0 else None


def _needed_operands(node: MapReduce) -> Node | None:  # map (x, y, x) -> f(x0, x2)  ->  map (x) -> f(x0, x0)
    used = operands_in(node.expr)
    needed = tuple(dict.fromkeys(node.operands[e.slot] for e in used))
    if needed == node.operands:
        return None
    slots: dict[int, Expr] = {e.slot: Operand(e.dtype, needed.index(node.operands[e.slot])) for e in used}
    return MapReduce(node.domain, needed, substitute(node.expr, slots), node.reduce, node.axes)


def _stored_already(node: Contiguous) -> Node | None:  # contiguous(x) -> x, where x has memory of its own
    return node.src if isinstance(node.src, (Input, Constant, Contiguous, RowWise)) else None


def _simpler_body(node: Iteration) -> Node | None:
    simpler = with_body(node, simplify)
    return None if simpler is node else simpler


def _formula_operands(node: Iteration) -> Node | None:  # for t: f(c, map () -> [i0] < 3)  ->  for t: f(c)
    """A loop-invariant operand that is a formula of positions is computed in the step."""
    known: dict[Node, Node] = {}
    for place in node.body.place()[2]:
        operand = node.operands[place - 1]
        formula = _uniform_value(operand) or _by_position(operand)
        if formula is not None:
            known[node.body.inputs[place]] = MapReduce(operand.shape, (), formula)
    if not known:
        return None
    places = [place for place, given in enumerate(node.body.inputs) if place and given not in known]
    return selected(node, places, range(len(node.body.outputs)), known)


def _of_known_length(node: Part) -> Node | None:  # while t < n - i: f(c)  ->  for t < n - i: f(c)
    whole = node.whole
    length = known_length(whole) if isinstance(whole, Iteration) else None
    if length is None or not isinstance(whole, Iteration):
        return None
    if node.number == 0:  # whether it goes on in the end
        return MapReduce((), (), const(False, bool_))
    return Part(with_length(whole, length), node.number - 1)


def _set_one_by_one(node: Part) -> Node | None:  # for t < n: x = x with f(t) at t, of n elements  ->  for t < n: f(t)
    """An array that no step reads, and of which step t sets element t, becomes an array that the loop makes."""
    whole = node.whole
    number = _element_set(whole) if isinstance(whole, Iteration) and not whole.tested else None
    if number is None or not isinstance(whole, Iteration):
        return None
    body = whole.body
    scatter = body.outputs[number]
    assert isinstance(scatter, Scatter)
    more = attrs.evolve(body, outputs=(*body.outputs, scatter.updates))
    places = [place for place in range(1, len(body.inputs)) if place != number + 1]
    results = [k for k in range(len(more.outputs)) if k != number]
    made = selected(Iteration(whole.length, whole.operands, more, False, whole.reverse), places, results)
    return Part(made, results.index(len(body.outputs) if node.number == number else node.number))


def _element_set(node: Iteration) -> int | None:
    """The number of such a result."""
    body = node.body
    for number, output in enumerate(body.outputs[: body.carried]):
        carried = body.inputs[number + 1]
        if isinstance(output, Scatter) and output.base is carried and output.indices == body.inputs[:1]:
            others = (*output.indices, output.updates, *(o for o in body.outputs if o is not output))
            whole = output.kind is Put.SET and carried.shape[0] is node.length
            if whole and body.outputs.count(output) == 1 and carried not in set(walk_nodes(others)):
                return number
    return None


def _by_itself(node: RowWise) -> Node | None:  # sort_by(x, x) -> sort(x)
    if node.function is RowOp.SORT_BY and node.operands[0] is node.operands[1]:
        return RowWise(RowOp.SORT, node.operands[:1], node.reverse)
    return None


def _gathered_number(node: Gather) -> Node | None:  # gather(number) -> number
    number = _uniform_value(node.src)
    return None if number is None or node.fill not in (None, number) else MapReduce(node.shape, (), number)


def _of_turned(node: Gather) -> Node | None:
    """gather(x with axes 0 and 1 exchanged) at i, j -> gather(x) at j, i; all of these axes have an index."""
    axes = _turned(node.src, len(node.indices))
    if axes is None or not isinstance(node.src, View):
        return None
    return Gather(node.src.src, tuple(node.indices[axis] for axis in axes[: len(node.indices)]), node.fill, node.strict)


def _turned(node: Node, count: int) -> list[int] | None:
    """If a view permutes the first `count` axes of an array, for each axis of the array the axis of the view."""
    if not isinstance(node, View) or node.conditions or len(node.shape) != len(node.src.shape):
        return None
    places = zip(node.index, node.src.shape, strict=True)
    axes = [p.atom.axis if isinstance(p.atom, Loop) and p.atom.extent is size else -1 for p, size in places]
    rest = [*range(count, len(axes))]
    return axes if sorted(axes[:count]) == [*range(count)] and axes[count:] == rest else None


def _turned_operands(node: Iteration) -> Node | None:  # for t: gather(view(x)) at i, j  ->  for t: gather(x) at j, i
    """Read a transposed loop-invariant operand from its source, where steps only gather elements of it."""
    body = node.body
    known: dict[Node, Node] = {}
    inputs, operands = [*body.inputs], [*node.operands]
    for place in body.place()[2]:
        operand = operands[place - 1]
        turns = _turned(operand, len(operand.shape)) is not None
        if turns and isinstance(operand, View) and _reads_turned(body, body.inputs[place], operand):
            inputs[place] = body_input(place, operand.src.shape, operand.dtype)
            operands[place - 1] = operand.src
            known[body.inputs[place]] = View(inputs[place], operand.shape, operand.index)
    if not known:
        return None
    made = replaced(graph_of(body), known)
    inside = attrs.evolve(body, inputs=tuple(inputs), outputs=made.outputs, sites=sites_of(made))
    return Iteration(node.length, tuple(operands), inside, node.tested, node.reverse)


def _reads_turned(body: Body, array: Node, operand: Node) -> bool:
    """Whether the steps, and inner loops, only gather elements by indices along all permuted axes."""
    readers = [inner for inner in graph_of(body).nodes() if array in inner.inputs]
    for inner in readers:
        if isinstance(inner, Iteration):
            places = [place for place, given in enumerate(inner.operands, 1) if given is array]
            same = inner.body.place()[2]
            fits = all(p in same and _reads_turned(inner.body, inner.body.inputs[p], operand) for p in places)
        else:
            fits = isinstance(inner, Gather) and array not in inner.indices
            fits = fits and _turned(operand, len(inner.inputs) - 1) is not None
        if not fits:
            return False
    return bool(readers) and array not in body.outputs


RULES: Mapping[type[Node], tuple[Rule, ...]] = {
    View: (_empty, _composed, _never, _number_everywhere, _selected_operand),
    MapReduce: (_empty, _no_stop, _number_operand, _formula_operand, _needed_operands, _identity_map),
    Gather: (_empty, _gathered_number, _of_turned),
    Contiguous: (_empty, _stored_already),
    Cumulative: (_empty,),
    RowWise: (_empty, _by_itself),
    HostCall: (_empty,),
    Iteration: (_formula_operands, _turned_operands, _simpler_body),
    Part: (_empty, _of_known_length, _set_one_by_one),
    Scatter: (_empty,),
}


def verify_simplified(before: Graph, after: Graph) -> None:
    """Raise VerificationError unless `after` is a valid graph with the interface of `before`, and cannot be simpler."""
    verify_graph(after)
    if after.inputs != before.inputs:
        raise VerificationError("simplify changed the inputs of a graph")
    for old, new in zip(before.outputs, after.outputs, strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise VerificationError(f"simplify made {new!r} of {old!r}")
    if simplify(after).outputs != after.outputs:
        raise VerificationError("simplifying a second time changes the graph")
