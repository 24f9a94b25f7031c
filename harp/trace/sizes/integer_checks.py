"""Integer checks: the Python integers that a call gives a program must fit the dtypes that they take on.

The dtype of `x * s` is that of the array `x`, also for an integer `s` that is an argument of the traced function. Its
number is not known before the call, so tracing takes down a check, and each call looks at its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harp.errors import HarpError, IntegerRangeError
from harp.trace.eval.intervals import Interval, Wrapped, interval_of, is_within, limits, of_buffer, outside
from harp.trace.graph.node import Contiguous, Input, Node, View, walk
from harp.trace.index.polynomial import Atom, Index, Symbol, evaluate, loops_in
from harp.trace.scalar.dtypes import NDArray


class IntegerCheck(NamedTuple):
    """The elements of `node` lie in `allowed` at every call; else an error, which says `complaint`."""

    node: Node
    allowed: Interval
    error: type[HarpError]
    complaint: str
    place: str  # the user's line


Inspect = Callable[[Sequence[NDArray]], None]


def compile_integer_checks(
    integer_checks: Sequence[IntegerCheck],
    inputs: Sequence[Input],
    weak: Sequence[bool],
    axes: Sequence[Symbol],
    quotients: Sequence[tuple[Symbol, Index]],
    counters: Mapping[int, Index],
) -> Inspect:
    """A function that looks at the arguments of a call, and raises the error of the first check that they fail.

    `weak` says which of the inputs stand for Python numbers; the elements of the others are not looked at. `counters`
    says of the numbers of iterations, by input, how many there are.
    """
    integers = {k for k, node in enumerate(inputs) if weak[k] and not node.dtype.is_inexact}
    places = {node.uid: k for k, node in enumerate(inputs)}
    of_arguments, computed = [], []
    for check in integer_checks:
        source = _source(check.node)
        if isinstance(source, Input) and source.uid in places:
            of_arguments.append((places[source.uid], *check.allowed, check))
        else:
            computed.append(check)

    def inspect(buffers: Sequence[NDArray]) -> None:
        for place, least, most, check in of_arguments:
            low, high = of_buffer(buffers[place])
            if low < least or high > most:
                number = f"{inputs[place].name} = " if buffers[place].ndim == 0 else f"{inputs[place].name} with "
                raise _broken(check, f"argument {number}", Interval(low, high))
        if computed:
            numbers = [(node.uid, of_buffer(buffers[k])) for k, node in enumerate(inputs) if k in integers]
            sizes = _sizes(buffers, axes, quotients)
            counts = ((uid, evaluate(count, sizes.__getitem__)) for uid, count in counters.items())
            numbers += ((uid, Interval(0, max(count - 1, 0))) for uid, count in counts)
            for check in computed:
                _inspect_computed(check, dict(numbers), sizes)

    return inspect


def _source(node: Node) -> Node:
    """The node that has the same elements."""
    while isinstance(node, Contiguous) or (isinstance(node, View) and node.fill is None):
        node = node.src
    return node


def _sizes(
    buffers: Sequence[NDArray], axes: Sequence[Symbol], quotients: Sequence[tuple[Symbol, Index]]
) -> dict[Atom, int]:
    sizes: dict[Atom, int] = dict(zip(axes, (n for b in buffers for n in b.shape), strict=True))
    for symbol, value in quotients:
        sizes[symbol] = evaluate(value, sizes.__getitem__)
    return sizes


def _inspect_computed(check: IntegerCheck, known: Mapping[int, Interval], sizes: Mapping[Atom, int]) -> None:
    def size(p: Index) -> int | None:
        return None if loops_in(p) else evaluate(p, sizes.__getitem__)

    found: Interval | None
    try:
        found = interval_of(check.node, lambda node: known.get(node.uid), size)
    except Wrapped as wrapped:
        complaint = f"does not fit {wrapped.dtype.numpy}; compute with floats, or with smaller numbers"
        check = IntegerCheck(check.node, limits(wrapped.dtype), IntegerRangeError, complaint, check.place)
        found = wrapped.interval
    names = dict.fromkeys(n.name for n in walk((check.node,)) if isinstance(n, Input))
    start = f"computed from {', '.join(names)}: " if names else ""
    if found is not None and not is_within(found, check.allowed):
        raise _broken(check, start, found)
    if found is None and not is_within(limits(check.node.dtype), check.allowed):
        raise check.error(
            f"{start}these integers are known only when the program runs, so nobody would notice that one of them "
            f"{check.complaint.partition(';')[0]}; begin with a number that has a dtype, as in harp.numpy.int32(0), or "
            f"convert with .astype{check.place}"
        )


def _broken(check: IntegerCheck, start: str, found: Interval) -> HarpError:
    return check.error(f"{start}{outside(found, check.allowed)} {check.complaint}{check.place}")
