"""Sums of outer products over the steps of a loop become one matrix product behind the loop.

    for t: c = c + outer(a[t], b[t])     ->   c + (a.T @ b)                       where a and b are arrays
    for t: b = f(...); c = c + outer(a[t], b)
                                         ->   for t: b[t] = f(...);  c + (a.T @ b)

So the gradient of the weights of a recurrent cell is one product of all states and all cotangents. The arrays that are
made for it are no larger than those whose elements the steps read. A term is an outer product if each factor lacks one
of its axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from harp.trace.graph.body import graph_of, selected, with_body
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Iteration, MapReduce, Node, Part, View, at, positions
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ZERO, Index, Shape, loop, loops_in, product
from harp.trace.scalar.expr import Apply, Operand, substitute
from harp.trace.scalar.ops import Op, Reduce


class _Sum(NamedTuple):
    """A carried value that is such a sum, the terms that a step adds to it, and their factors."""

    number: int
    terms: tuple[Node, ...]
    factors: tuple[Node, ...]


def sums_behind_loops(graph: Graph) -> Graph:
    """The graph, with such sums behind their loops."""
    if not any(isinstance(node, Iteration) for node in graph.nodes()):
        return graph
    without: dict[Node, _Behind] = {}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Part) and node.whole in without:
            return without[node.whole].part(node.number)
        made = with_inputs(node, inputs)
        if not isinstance(made, Iteration):
            return made
        made = with_body(made, sums_behind_loops)
        sums = _sums(made)
        if not sums:
            return made
        behind = without[node] = _Behind(made, sums)
        return behind.loop

    return transform(graph, rule)


class _Behind:
    """An iteration that makes the factors of its sums as arrays, and the sums of products of these."""

    def __init__(self, node: Iteration, sums: Sequence[_Sum]) -> None:
        body, gone = node.body, {one.number for one in sums}
        assert node.length is not None, "data ends it"
        self.node, self.length = node, node.length
        self.sums = {one.number: one for one in sums}
        elements, same = ({body.inputs[k] for k in places} for places in body.place()[1:])
        added = dict.fromkeys(f for one in sums for f in one.factors if f not in elements | same)
        more = tuple(f for f in added if f not in body.outputs[body.carried :])
        outputs = (*body.outputs, *more)
        self.kept = [k for k in range(len(outputs)) if k not in gone]
        places = [k for k in range(1, len(body.inputs)) if k - 1 not in gone or k > body.carried]
        whole = Iteration(node.length, node.operands, attrs.evolve(body, outputs=outputs), node.tested, node.reverse)
        self.loop = selected(whole, places, self.kept)
        numbers = {f: outputs.index(f, body.carried) for f in added}
        operand: dict[Node, Node] = dict(zip(body.inputs[1:], node.operands, strict=True))
        factors = dict.fromkeys(f for one in sums for f in one.factors)
        self.arrays = {f: Part(self.loop, self.kept.index(numbers[f])) if f in added else operand[f] for f in factors}
        self.moving = {f for f in factors if f in added or f in elements}

    def part(self, number: int) -> Node:
        """The value of a result."""
        if number not in self.sums:
            return Part(self.loop, self.kept.index(number))
        total = self.node.operands[number]
        for term in self.sums[number].terms:
            total = _added(total, self._summed(term))
        return total

    def _summed(self, term: Node) -> Node:
        """The sum of a term over all steps."""
        if isinstance(term, View):
            inner = self._summed(term.src)
            return View(inner, term.shape, term.index)
        assert isinstance(term, MapReduce)
        whole = self._of_all_steps(term)
        assert isinstance(whole, MapReduce)
        return MapReduce(whole.domain, whole.operands, whole.expr, Reduce.SUM, (0, *whole.axes))

    def _of_all_steps(self, node: Node) -> Node:
        """A node of the step, for all steps at once: with a new first axis for the steps."""
        if isinstance(node, View):
            shape, under = self._with_axis(node.shape)
            index = under.each(node.index)
            if node.src in self.arrays:
                first = (loop(0, self.length),) if node.src in self.moving else ()
                return View(self.arrays[node.src], shape, (*first, *index))
            return View(self._of_all_steps(node.src), shape, (loop(0, self.length), *index))
        assert isinstance(node, MapReduce)
        domain, under = self._with_axis(node.domain)
        operands = tuple(self._of_all_steps(o) for o in node.operands)
        axes = tuple(axis + 1 for axis in node.axes)
        return MapReduce(domain, operands, substitute(node.expr, {}, under), node.reduce, axes)

    def _with_axis(self, shape: Shape) -> tuple[Shape, Substitution]:
        more = (self.length, *shape)
        return more, at(shape, positions(more)[1:])


def _added(a: Node, b: Node) -> Node:
    return MapReduce(a.shape, (a, b), Operand(a.dtype, 0) + Operand(b.dtype, 1))


def _sums(node: Iteration) -> list[_Sum]:
    """The sums of outer products that an iteration carries."""
    body = node.body
    if node.tested or node.length is None:
        return []
    readers: dict[Node, int] = {}
    for inner in graph_of(body).nodes():
        for operand in inner.inputs:
            readers[operand] = readers.get(operand, 0) + 1
    sums = []
    for place in body.place()[0]:
        carried, output = body.inputs[place], body.outputs[place - 1]
        is_read = readers.get(carried) != 1 or carried in body.outputs or output in readers
        if is_read or body.outputs.count(output) != 1:
            continue
        terms = _terms(output, carried)
        factors = [_factors(term) for term in terms]
        if terms and all(factors) and carried.dtype.is_inexact:
            every = tuple(dict.fromkeys(f for group in factors for f in group or ()))
            if _are_small(node, every):
                sums.append(_Sum(place - 1, terms, every))
    return sums


def _terms(output: Node, carried: Node) -> tuple[Node, ...]:
    """The terms that are added to a carried value: for c + (a + b), a and b."""
    stack, terms, seen = [output], [], False
    while stack:
        node = stack.pop()
        if node is carried:
            seen = True
        elif isinstance(node, MapReduce) and _adds(node):
            stack += [node.operands[e.slot] for e in node.expr.args if isinstance(e, Operand)]
        else:
            terms.append(node)
    return tuple(terms) if seen else ()


def _adds(node: MapReduce) -> bool:
    e = node.expr
    return (
        node.reduce is None
        and isinstance(e, Apply)
        and e.op is Op.ADD
        and all(isinstance(a, Operand) for a in e.args)
        and e.args[0] is not e.args[1]
    )


def _factors(term: Node) -> tuple[Node, ...] | None:
    """The factors of an outer product, or of a sum of outer products; None for anything else."""
    while isinstance(term, View) and not term.conditions:
        term = term.src
    if not isinstance(term, MapReduce) or term.reduce not in (None, Reduce.SUM):
        return None
    factors: dict[Node, None] = {}
    stack: list[Node] = [term]
    while stack:
        node = stack.pop()
        if isinstance(node, View) and not node.conditions and _lacks_an_axis(node):
            factors[node.src] = None
        elif isinstance(node, MapReduce) and (node is term or node.reduce is None) and node.operands:
            stack += node.operands
        else:
            return None
    return tuple(factors)


def _lacks_an_axis(node: View) -> bool:
    moving = frozenset().union(*map(loops_in, node.index))
    return any(p.atom is not None and p.atom not in moving for p in positions(node.shape))


def _are_small(node: Iteration, factors: Sequence[Node]) -> bool:
    """Whether the factors that become arrays are no larger than the array elements that a step reads."""
    body = node.body
    elements, same = ([body.inputs[k] for k in places] for places in body.place()[1:])
    added = [f for f in factors if f not in elements and f not in same]
    is_number = body.inputs[0] in added
    return not is_number and nonnegative(_size(elements) - _size(added))


def _size(nodes: Sequence[Node]) -> Index:
    return sum((product(node.shape) for node in nodes), ZERO)
