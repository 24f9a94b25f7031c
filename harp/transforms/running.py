"""Graphs outside of a trace: the interpreter runs them, and a program those whose loops have cost as much as compiling.

A step of a loop takes some ten microseconds for each of its nodes in the interpreter, and perhaps one in a program,
which takes some tenths of a second to make. What is cheaper depends on how many steps there are, which data may say. So
the interpreter counts what a graph with loops has cost in all calls so far; when that is as much as a program costs, it
stops, and a program computes the graph from the start, then and at all later calls. So no loop takes much more than
twice the time of the better way (the problem of the skier, who rents or buys: A. R. Karlin et al.: "Competitive snoopy
caching", 1988). Graphs that call Python stay with the interpreter, for calls are made once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from harp.config import settings
from harp.locks import forkable_lock
from harp.trace.eval.interpret import Budget, TooLong, interpret
from harp.trace.graph.graph import Graph, digest
from harp.trace.graph.host_calls import has_node
from harp.trace.graph.node import HostCall, Iteration
from harp.trace.scalar.dtypes import NDArray
from harp.trace.sizes.signature import canonical

# The outputs of a graph by a program; None where there is no compiler.
Compiled = Callable[[Graph, Sequence[NDArray]], list[NDArray] | None]

# What a graph may cost in the interpreter, in nanoseconds.
_BUDGET = 200_000_000
# Of so many graphs it is known what they have cost.
_MOST = 1024
_spent: dict[bytes, int] = {}
_lock = forkable_lock(sys.modules[__name__])  # of `_spent`
_compiled: list[Compiled] = []


def compile_long_loops(compiled: Compiled) -> None:
    """Graphs whose loops take long are computed by this function from now on."""
    _compiled[:] = [compiled]


def values_of(graph: Graph, arrays: Sequence[NDArray]) -> list[NDArray]:
    """The outputs of a graph, whose sizes are numbers, for these inputs. Each output is a fresh, contiguous array."""
    searches = settings.check or settings.nans
    if searches or not settings.jit or not has_node(graph, (Iteration,)) or has_node(graph, (HostCall,)):
        return interpret(graph, arrays, {})
    name = digest(canonical(graph))
    with _lock:
        budget = Budget(_BUDGET - _spent.pop(name, 0))
    try:
        if budget.left > 0:
            return interpret(graph, arrays, {}, budget=budget)
    except TooLong:
        pass
    finally:
        _note(name, _BUDGET - budget.left)
    for compiled in _compiled:
        values = compiled(graph, arrays)
        if values is not None:
            return values
    return interpret(graph, arrays, {})


def _note(name: bytes, spent: int) -> None:
    """Note what a graph has cost, and forget one that has not been used for long."""
    with _lock:
        _spent[name] = spent
        if len(_spent) > _MOST:
            del _spent[next(iter(_spent))]
