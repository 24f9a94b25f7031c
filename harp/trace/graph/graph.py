"""A `Graph`: inputs, outputs, and where each node came from; and the one driver that rebuilds graphs.

The text form is stable: the same program prints the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import attrs

from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
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
from harp.trace.graph.rebuild import rebuild, with_inputs
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index
from harp.trace.scalar import expr as expression
from harp.trace.source_locations import Site


@attrs.frozen(eq=False, repr=False)
class Graph:
    """A function as nodes that are computed of each other, as `harp.trace` gives it: print it, or draw `to_dot()`.

    `sites` says which line of the user made a node; the first to make it is named. `token` is the value of the last
    call of Python, if there are calls: a result besides the outputs, which whoever runs the graph takes for the token
    of what is round it. Without it the calls are not wanted.

    >>> import harp, numpy as np
    >>> print(harp.jit(lambda x: x * x).lower(np.ones(3)).graph)
    %0 = f64[s0] input a0
    %1 = f64[s0] map (%0) -> mul(x0, x0)
    return %1
    """

    inputs: tuple[Input, ...]
    outputs: tuple[Node, ...]
    sites: Mapping[Node, Site] = attrs.field(factory=dict)
    token: Node | None = None

    @property
    def results(self) -> tuple[Node, ...]:
        """The outputs, and the token behind them."""
        return self.outputs if self.token is None else (*self.outputs, self.token)

    def with_token_as_output(self) -> Graph:
        """The graph whose outputs are all results."""
        return self if self.token is None else Graph(self.inputs, self.results, self.sites)

    def nodes(self) -> list[Node]:
        """Every live node once, inputs before their users."""
        return list(walk(self.results))

    @property
    def captured(self) -> list[Constant]:
        """The captured arrays, in order of first use."""
        return [n for n in self.nodes() if isinstance(n, Constant)]

    def site(self, node: Node) -> Site | None:
        """The user's line of a node, or of what reads it: a view that broadcasts an operand has none of its own."""
        if node in self.sites:
            return self.sites[node]
        users = {i: user for user in walk(self.results) for i in user.inputs}
        while node not in self.sites and node in users:
            node = users[node]
        return self.sites.get(node)

    def __repr__(self) -> str:
        return to_text(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        return to_dot(self)


def transform(
    graph: Graph,
    rule: Callable[[Node, tuple[Node, ...]], Node],
) -> Graph:
    """Rebuild bottom-up: `rule(node, new inputs)` gives the new node. Sites follow their nodes."""
    new: dict[Node, Node] = {}
    sites: dict[Node, Site] = {}
    for node in walk((*graph.inputs, *graph.results)):
        made = new[node] = rule(node, tuple(new[i] for i in node.inputs))
        if node in graph.sites:
            sites.setdefault(made, graph.sites[node])
    inputs = tuple(i for i in (new[i] for i in graph.inputs) if isinstance(i, Input))
    token = None if graph.token is None else new[graph.token]
    return Graph(inputs, tuple(new[o] for o in graph.outputs), sites, token)


def inline(graph: Graph, arguments: Mapping[Input, Node], sizes: Substitution | None = None) -> Graph:
    """The graph with inputs replaced by nodes and sizes substituted. Replaced inputs are no longer listed."""
    substitution = sizes or Substitution({})

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Input) and node in arguments:
            return arguments[node]
        if sizes is None and all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return rebuild(node, inputs, substitution)

    return transform(graph, rule)


def replaced(graph: Graph, values: Mapping[Node, Node]) -> Graph:
    """The graph with others in place of some nodes, inputs or not; its inputs stay listed."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        return with_inputs(node, inputs)

    return transform(graph, lambda node, inputs: values.get(node) or rule(node, inputs))


def _shape_text(shape: tuple[Index, ...]) -> str:
    return f"[{', '.join(map(repr, shape))}]"


def describe(node: Node, name: Callable[[Node], str]) -> str:
    """One node as text, given the names of the nodes it reads."""
    return _DESCRIBE[type(node)](node, name)


def _describe_input(node: Input, name: Callable[[Node], str]) -> str:
    return f"input {node.name}"


def _describe_constant(node: Constant, name: Callable[[Node], str]) -> str:
    return "captured"


def _describe_map_reduce(node: MapReduce, name: Callable[[Node], str]) -> str:
    operands = ", ".join(map(name, node.operands))
    body = f"({operands}) -> {expression.text(node.expr)}"
    if node.reduce is None:
        return f"map {body}"
    return f"{node.reduce.name.lower()} over {list(node.axes)} of {_shape_text(node.domain)} {body}"


def _describe_view(node: View, name: Callable[[Node], str]) -> str:
    body = f"view {name(node.src)}{_shape_text(node.index)}"
    if node.conditions:
        body += f" where {', '.join(f'{c} >= 0' for c in node.conditions)} else {node.fill}"
    return body


def _describe_gather(node: Gather, name: Callable[[Node], str]) -> str:
    otherwise = "" if node.fill is None else f" else {node.fill}"
    strict = " strict" if node.strict else ""
    return f"gather {name(node.src)}[{', '.join(map(name, node.indices))}]{otherwise}{strict}"


def _describe_scatter(node: Scatter, name: Callable[[Node], str]) -> str:
    at = ", ".join(map(name, node.indices))
    named = (("clips", node.clips), ("unique", node.unique), ("strict", node.strict))
    flags = "".join(f" {flag}" for flag, holds in named if holds)
    return f"scatter {node.kind.name.lower()} {name(node.updates)} to {name(node.base)}[{at}]{flags}"


def _describe_cumulative(node: Cumulative, name: Callable[[Node], str]) -> str:
    what = "recurrence" if node.reduce is None else f"running {node.reduce.name.lower()}"
    return f"{what} along {node.axis} of {', '.join(map(name, node.operands))}{' backward' if node.backward else ''}"


def _describe_contiguous(node: Contiguous, name: Callable[[Node], str]) -> str:
    return f"contiguous {name(node.src)}"


def _describe_row_wise(node: RowWise, name: Callable[[Node], str]) -> str:
    return f"{node.function.value} rows of {', '.join(map(name, node.operands))}{' reversed' if node.reverse else ''}"


def _describe_examples(node: Examples, name: Callable[[Node], str]) -> str:
    return f"{name(node.operand)} in all {node.size} examples, of which this is {name(node.number)}"


def _describe_host_call(node: HostCall, name: Callable[[Node], str]) -> str:
    function = f"function {node.function}" if isinstance(node.function, int) else "a function"
    given = ", ".join(map(name, node.operands))
    return f"after {name(node.token)}, where {name(node.active)}, call {function} of Python with ({given})"


def _describe_iteration(node: Iteration, name: Callable[[Node], str]) -> str:
    """The body on lines of its own, numbered for itself."""
    body = node.body
    often = "" if node.length is None else f" {node.length} times"
    flags = "".join(f" {flag}" for flag, holds in (("while", node.tested), ("reversed", node.reverse)) if holds)
    given = ", ".join(map(name, node.operands))
    inside = to_text(Graph(body.inputs, body.outputs)).replace("\n", "\n    ")
    return f"iterate{often}{flags} on {given}, carrying {body.carried}, by elements of {body.sliced}:\n    {inside}"


def _describe_custom(node: Custom, name: Callable[[Node], str]) -> str:
    inside = to_text(Graph(node.body.inputs, node.body.outputs)).replace("\n", "\n    ")
    return f"with derivatives of its own, of {', '.join(map(name, node.operands))}:\n    {inside}"


def _describe_foreign(node: Foreign, name: Callable[[Node], str]) -> str:
    """All that it depends on: the text is what programs are told apart by."""
    given = ", ".join(map(name, node.operands))
    results = ", ".join(f"{dtype}{_shape_text(own)}" for own, dtype in node.results)
    often = f" for each of {_shape_text(node.calls)}" if node.calls else ""
    if isinstance(node.routine, KernelSource):
        return f"{node.routine.content()} of ({given}) with {_shape_text(node.sizes)} -> {results}{often}"
    if isinstance(node.routine, MatrixFunction):
        return f"{node.routine.content()}({given}) -> {results}{often}"
    routine = node.routine if isinstance(node.routine, int) else node.routine.name
    return f"call pure function {routine} of Python with ({given}) -> {results}{often}"


def _describe_part(node: Part, name: Callable[[Node], str]) -> str:
    return f"result {node.number} of {name(node.whole)}"


_DESCRIBE: dict[type[Node], Callable[..., str]] = {
    Input: _describe_input,
    Constant: _describe_constant,
    MapReduce: _describe_map_reduce,
    View: _describe_view,
    Gather: _describe_gather,
    Scatter: _describe_scatter,
    Cumulative: _describe_cumulative,
    Contiguous: _describe_contiguous,
    RowWise: _describe_row_wise,
    Examples: _describe_examples,
    HostCall: _describe_host_call,
    Iteration: _describe_iteration,
    Custom: _describe_custom,
    Foreign: _describe_foreign,
    Part: _describe_part,
}


def node_names(graph: Graph) -> dict[Node, str]:
    """What the nodes are called in texts, in order: `%0`, `%1` and so on, inputs first."""
    return {node: f"%{k}" for k, node in enumerate(walk((*graph.inputs, *graph.results)))}


def node_texts(graph: Graph) -> dict[Node, str]:
    """A line for each node, in order, `%3 = f32[n, 4] map (%1, %2) -> add(x0, x1)`; a body has lines of its own."""
    names = node_names(graph)
    return {
        node: f"{name} = {node.dtype}{_shape_text(node.shape)} {describe(node, names.__getitem__)}"
        for node, name in names.items()
    }


def to_text(graph: Graph) -> str:
    """The lines of the nodes, and which of them are the outputs."""
    names = node_names(graph)
    after = "" if graph.token is None else f" after {names[graph.token]}"
    return "\n".join([*node_texts(graph).values(), f"return {', '.join(names[o] for o in graph.outputs)}{after}"])


def digest(graph: Graph) -> bytes:
    """A name for the content of a graph in canonical form, the same in every process; see
    `harp.trace.sizes.signature.canonical`."""
    digest: bytes = import_module("hashlib").sha256(to_text(graph).encode()).digest()  # not with `import harp`
    return digest


def to_dot(graph: Graph) -> str:
    """Nodes with their kind, dtype and shape; edges from operand to user."""
    names: dict[Node, str] = {}
    lines = ["digraph harp {", "  node [shape=box, fontname=monospace];"]
    for node in walk((*graph.inputs, *graph.results)):
        names[node] = f"n{len(names)}"
        text = f"{describe(node, names.__getitem__)}\n{node.dtype}{_shape_text(node.shape)}"
        label = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        peripheries = ", peripheries=2" if node in graph.outputs else ""
        lines.append(f'  {names[node]} [label="{label}"{peripheries}];')
        lines += [f"  {names[i]} -> {names[node]};" for i in node.inputs]
    return "\n".join([*lines, "}"])
