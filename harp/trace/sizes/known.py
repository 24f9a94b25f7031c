"""The numbers of traced arrays, where a function is traced for some numbers only: a gradient outside of `jit`.

Its inputs stand for arrays that are there, so what is computed of them can be computed at once, too. Questions of
Python that decide which way the function takes are answered so; the graph holds for these numbers, and is not used for
others. Inside of `jit`, of batches and of the bodies of loops numbers are not known.
"""

from __future__ import annotations

from typing import Protocol, cast

from harp.trace.eval.interpret import evaluate_node
from harp.trace.graph.body import graph_of
from harp.trace.graph.host_calls import has_node
from harp.trace.graph.node import HostCall, Input, Node, WithBody, walk
from harp.trace.scalar.dtypes import NDArray
from harp.trace.sizes.levels import Level


class Numbers(Protocol):
    """An array: its numbers, or its node in a trace."""

    @property
    def _node(self) -> Node | None: ...

    @property
    def _value(self) -> NDArray | None: ...

    @property
    def _level(self) -> object: ...


def known(array: Numbers) -> NDArray | None:
    """The numbers of an array; None if they are not known. What is computed for one question is kept for the next one,
    so the questions of a loop of Python take time in proportion to its steps."""
    node, level = array._node, array._level
    if array._value is not None or node is None or not isinstance(level, Level):
        return array._value
    if not _is_for_numbers(level):
        return None
    numbers = level.numbers
    for step in walk((node,), lambda step: () if step in numbers else step.inputs):
        if step not in numbers:
            value = _value_of(step, level)
            if value is None:
                return None
            numbers[step] = value
    return numbers[node]


def _value_of(step: Node, level: Level) -> NDArray | None:
    """The value of a node, given those of its inputs; None for calls of Python, which are made once."""
    if isinstance(step, Input):
        outside = _outside(step, level)
        return None if outside is None else known(outside)
    calls = isinstance(step, WithBody) and has_node(graph_of(step.body), (HostCall,))
    return None if calls or isinstance(step, HostCall) else evaluate_node(step, level.numbers, {})


def _is_for_numbers(level: Level | None) -> bool:
    """Whether all functions that are being traced are traced for some numbers only."""
    while level is not None and level.values:
        level = level.parent
    return level is None


def _outside(leaf: Input, level: Level) -> Numbers | None:
    """The array for which an input of a level, or of one round it, stands."""
    round_it: Level | None = level
    while round_it is not None:
        if leaf in round_it.values:
            return cast(Numbers, round_it.values[leaf])
        round_it = round_it.parent
    return None
