"""`GraphSignature`: which calls a program serves, and in which form a graph is the same in every process.

`canonical` renames a graph's inputs and sizes by position. Two functions that compute the same thing then have the
same text, and share one program in memory and on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.node import Foreign, Input, Iteration, MapReduce, Node, View, WithBody, walk
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Fold, Index, Symbol, of, symbols_in
from harp.trace.scalar.dtypes import ArraySignature
from harp.trace.scalar.expr import Position
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.sizes.scope import Guard, Relation, Scope

# From the sizes of all axes of all arguments to the values of the program's sizes; None where a guard fails.
Check = Callable[..., "tuple[int, ...] | None"]


@attrs.frozen(eq=False, repr=False)
class GraphSignature:
    """Which calls a program serves: the arrays that go in and come out, and the guards on their sizes.

    `harp.jit(f).signatures` has one for each trace; print it.

    >>> import harp, numpy as np
    >>> f = harp.jit(lambda x, y: x + y)
    >>> _ = f(np.ones(3), np.ones(3))
    >>> print(f.signatures[0])
    (f64[x_0], f64[x_0]) -> (f64[x_0])
      where x_0 - y_0 == 0  (sizes must be equal)
    """

    axes: tuple[Symbol, ...]
    quotients: tuple[tuple[Symbol, Index], ...]
    guards: tuple[Guard, ...]
    sizes: tuple[Symbol, ...]  # those that the program is given, in the order of its canonical form
    inputs: tuple[ArraySignature, ...]
    outputs: tuple[ArraySignature, ...]

    def __repr__(self) -> str:
        lines = [f"({', '.join(map(repr, self.inputs))}) -> ({', '.join(map(repr, self.outputs))})"]
        lines += [f"  where {guard}" for guard in self.guards]
        return "\n".join(lines)

    def compile_check(self) -> Check:
        """One generated expression over the sizes: a tenth of a microsecond."""
        axes, lines, values = self.check_source("return None")
        lines = [f"def check({', '.join(axes)}):", *(f"    {line}" for line in lines)]
        lines.append(f"    return ({''.join(value + ', ' for value in values)})")
        namespace: dict[str, Check] = {}
        exec("\n".join(lines), {}, namespace)  # names and numbers of our own making only
        return namespace["check"]

    def check_source(self, otherwise: str) -> tuple[list[str], list[str], list[str]]:
        """Names for the axes' sizes, lines of Python that check them, and the names of the program's sizes."""
        lines = [f"{_name(symbol, 'm')} = {python_source(value, 'm')}" for symbol, value in self.quotients]
        failed = {Relation.ZERO: "!= 0", Relation.NONZERO: "== 0", Relation.NONNEGATIVE: "< 0"}
        lines += [f"if {python_source(g.index, 'm')} {failed[g.relation]}: {otherwise}" for g in self.guards]
        return [_name(s, "m") for s in self.axes], lines, [_name(s, "m") for s in self.sizes]


def _name(symbol: Symbol, stem: str) -> str:
    return f"{stem}{symbol.number}"


def python_source(p: Index, stem: str = "n") -> str:
    """An index expression without loops as a Python expression over n0, n1, ..."""

    def name(atom: Atom) -> str:
        assert isinstance(atom, Symbol), "a shape does not depend on loops"
        return _name(atom, stem)

    return Fold(_total_source, _term_source, _quotient_source, "max({}, 0)".format, name)(p)


def _total_source(terms: list[str]) -> str:
    return f"({' + '.join(terms)})" if terms else "0"


def _term_source(coefficient: int, factors: list[str]) -> str:
    return "*".join(factors if coefficient == 1 and factors else [f"({coefficient})", *factors])


def _quotient_source(num: str, den: str) -> str:
    return f"({num} // {den} if {den} else 0)"


def signature_of(graph: Graph, scope: Scope, axes: Sequence[Symbol]) -> GraphSignature:
    """The signature of a finished trace's graph."""
    return GraphSignature(
        tuple(axes),
        tuple(scope.quotients),
        tuple(scope.guards),
        by_appearance(graph),
        tuple(ArraySignature(i.dtype, i.shape) for i in graph.inputs),
        tuple(ArraySignature(o.dtype, o.shape) for o in graph.outputs),
    )


def sizes_of(graph: Graph) -> tuple[Symbol, ...]:
    """The sizes that occur anywhere in the graph, by number; in a canonical graph also by first appearance."""
    return tuple(sorted(by_appearance(graph), key=lambda s: s.number))


def by_appearance(graph: Graph) -> tuple[Symbol, ...]:
    """The sizes that occur anywhere in the graph, as they come: in the inputs' shapes, then in the nodes."""
    found: dict[Symbol, None] = {}
    seen: set[Index] = set()
    for node in walk((*graph.inputs, *graph.outputs)):
        for p in _expressions(node):
            if p not in seen:
                seen.add(p)
                found.update(dict.fromkeys(sorted(symbols_in(p), key=lambda s: s.number)))
    return tuple(found)


def _expressions(node: Node) -> list[Index]:
    found = list(node.shape)
    if isinstance(node, View):
        found += [*node.index, *node.conditions]
    elif isinstance(node, Foreign):
        found += [*node.calls, *(p for own, _ in node.results for p in own), *node.sizes]
    elif isinstance(node, WithBody):
        found += [p for inner in walk((*node.body.inputs, *node.body.outputs)) for p in _expressions(inner)]
        found += [node.length] if isinstance(node, Iteration) and node.length is not None else []
    elif isinstance(node, MapReduce):
        found += node.domain
        found += [e.index for e in walk_expr((node.expr,)) if isinstance(e, Position)]
    return found


def canonical(graph: Graph) -> Graph:
    """The same graph with inputs a0, a1, ... and sizes s0, s1, ... by position."""
    mapping: dict[Atom, Index] = {s: of(Symbol(0, k, f"s{k}")) for k, s in enumerate(by_appearance(graph))}
    sizes = Substitution(mapping)
    arguments: dict[Input, Node] = {
        node: Input(node.uid, f"a{k}", sizes.each(node.shape), node.dtype) for k, node in enumerate(graph.inputs)
    }
    renamed = inline(graph, arguments, sizes)
    inputs = tuple(i for i in (arguments[i] for i in graph.inputs) if isinstance(i, Input))
    return Graph(inputs, renamed.outputs, renamed.sites)
