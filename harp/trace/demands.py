"""What a program demands of the Python integers that a call gives it: that they fit the dtypes that they take on.

The dtype of `x * s` is that of the array `x`, also for an integer `s` that is an argument of the traced function. Its
number is not known before the call, so tracing takes down the demand, and each call looks at its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harp.errors import HarpError, IntegerRangeError
from harp.trace.dtypes import Buffer
from harp.trace.index import Atom, Index, Symbol, evaluate, loops_in
from harp.trace.intervals import Interval, Wrapped, interval_of, is_within, limits, of_buffer, outside
from harp.trace.node import Contiguous, Input, Node, View, walk


class Demand(NamedTuple):
    """The elements of `node` lie in `allowed` at every call; else an error, which says `complaint`."""

    node: Node
    allowed: Interval
    error: type[HarpError]
    complaint: str
    place: str  # the user's line


Inspect = Callable[[Sequence[Buffer]], None]


def compile_demands(
    demands: Sequence[Demand],
    inputs: Sequence[Input],
    weak: Sequence[bool],
    axes: Sequence[Symbol],
    quotients: Sequence[tuple[Symbol, Index]],
) -> Inspect:
    """A function that looks at the arguments of a call, and raises the error of the first demand that they break.

    `weak` says which of the inputs stand for Python numbers; the elements of the others are not looked at.
    """
    integers = {k for k, node in enumerate(inputs) if weak[k] and not node.dtype.is_inexact}
    places = {node.uid: k for k, node in enumerate(inputs)}
    of_arguments, computed = [], []
    for demand in demands:
        source = _source(demand.node)
        if isinstance(source, Input) and source.uid in places:
            of_arguments.append((places[source.uid], *demand.allowed, demand))
        else:
            computed.append(demand)

    def inspect(buffers: Sequence[Buffer]) -> None:
        for place, least, most, demand in of_arguments:
            low, high = of_buffer(buffers[place])
            if low < least or high > most:
                number = f"{inputs[place].name} = " if buffers[place].ndim == 0 else f"{inputs[place].name} with "
                raise _broken(demand, f"argument {number}", Interval(low, high))
        if computed:
            numbers = [(node.uid, of_buffer(buffers[k])) for k, node in enumerate(inputs) if k in integers]
            sizes = _sizes(buffers, axes, quotients)
            for demand in computed:
                _inspect_computed(demand, dict(numbers), sizes)

    return inspect


def _source(node: Node) -> Node:
    """The node that has the same elements."""
    while isinstance(node, Contiguous) or (isinstance(node, View) and node.fill is None):
        node = node.src
    return node


def _sizes(
    buffers: Sequence[Buffer], axes: Sequence[Symbol], quotients: Sequence[tuple[Symbol, Index]]
) -> dict[Atom, int]:
    sizes: dict[Atom, int] = dict(zip(axes, (n for b in buffers for n in b.shape), strict=True))
    for symbol, value in quotients:
        sizes[symbol] = evaluate(value, sizes.__getitem__)
    return sizes


def _inspect_computed(demand: Demand, known: Mapping[int, Interval], sizes: Mapping[Atom, int]) -> None:
    def size(p: Index) -> int | None:
        return None if loops_in(p) else evaluate(p, sizes.__getitem__)

    try:
        found = interval_of(demand.node, lambda node: known.get(node.uid), size) or limits(demand.node.dtype)
    except Wrapped as wrapped:
        complaint = f"does not fit {wrapped.dtype.numpy}; compute with floats, or with smaller numbers"
        demand = Demand(demand.node, limits(wrapped.dtype), IntegerRangeError, complaint, demand.place)
        found = wrapped.interval
    if not is_within(found, demand.allowed):
        names = dict.fromkeys(n.name for n in walk((demand.node,)) if isinstance(n, Input))
        raise _broken(demand, f"computed from {', '.join(names)}: " if names else "", found)


def _broken(demand: Demand, start: str, found: Interval) -> HarpError:
    return demand.error(f"{start}{outside(found, demand.allowed)} {demand.complaint}{demand.place}")
