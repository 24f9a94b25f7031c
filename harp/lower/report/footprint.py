"""How much memory a program takes at given sizes: what its caller brings, its arena, and what its threads take.

    peak = inputs + captured + outputs + scratch + threads * per_thread - donated

It is a bound: loops that are not worth a thread run in the caller's, and a slot counts from the first kernel on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import attrs

from harp.lower.loopir.loops import Alloc, Buffer, Space, Stmt, parts
from harp.lower.loopir.program import Call, Program, Slot, size_in_bytes
from harp.trace.index.polynomial import Atom, Fold, Index, Loop, Symbol, evaluate

# Slots of the arena, and what threads take, start on cache lines.
_LINE = 64


@attrs.frozen
class Memory:
    """The memory of one call, in bytes.

    `inputs` are the arguments, `captured` the arrays that the function has from outside, `outputs` the results, of
    which `donated` bytes are in the memory of arguments. `scratch` is what stands between them, and `per_thread` what
    each of `threads` takes for itself. `peak` is all that the call needs at most.
    """

    inputs: int
    captured: int
    outputs: int
    scratch: int
    per_thread: int
    threads: int
    donated: int = 0

    @property
    def peak(self) -> int:
        """All of it together."""
        arrays = self.inputs + self.captured + self.outputs - self.donated
        return arrays + self.scratch + self.threads * self.per_thread


def footprint(program: Program, parameters: int, sizes: Mapping[Symbol, int], threads: int) -> Memory:
    """The memory of a call. The first `parameters` inputs are arguments, the others captured arrays."""
    values: dict[Atom, int] = dict(sizes.items())
    return Memory(
        _bytes(program.inputs[:parameters], values),
        _bytes(program.inputs[parameters:], values),
        _bytes(program.outputs, values),
        sum(_slot(slot, values) for slot in program.scratch),
        max((_of_call(program, call, values) for call in program.calls), default=0),
        threads,
        _bytes((program.outputs[output] for _, output in program.donated), values),
    )


def _of_call(program: Program, call: Call, values: Mapping[Atom, int]) -> int:
    """The bytes that a thread takes in a call."""
    kernel = program.kernels[call.kernel]
    given = zip(kernel.sizes, call.sizes, strict=True)
    return _own(kernel.body, {size: evaluate(p, values.__getitem__) for size, p in given})


def _bytes(buffers: Iterable[Buffer], values: Mapping[Atom, int]) -> int:
    return sum(evaluate(size_in_bytes(buffer), values.__getitem__) for buffer in buffers)


def _slot(slot: Slot, values: Mapping[Atom, int]) -> int:
    return _lines(max(evaluate(size, values.__getitem__) for size in slot.sizes))


def _lines(count: int) -> int:
    return -(-max(count, 0) // _LINE) * _LINE


def _own(stmt: Stmt, values: Mapping[Atom, int]) -> int:
    """The bytes that one thread, or a group of work-items, takes inside a statement: parts that follow
    each other take turns."""
    below = max((_own(part, values) for part in parts(stmt)), default=0)
    if isinstance(stmt, Alloc) and stmt.buffer.space in (Space.THREAD, Space.WORKSPACE):
        return below + _lines(_range(size_in_bytes(stmt.buffer), values).most)
    return below


class _Range(NamedTuple):
    least: int
    most: int


def _range(p: Index, values: Mapping[Atom, int]) -> _Range:
    """The values of an expression while its loops run; what a loop runs over may depend on loops outside it."""

    def leaf(atom: Atom) -> _Range:
        if isinstance(atom, Loop):
            return _Range(0, max(_range(atom.extent, values).most - 1, 0))
        return _Range(values[atom], values[atom])

    return Fold(_range_of_sum, _range_of_term, _range_of_quotient, _range_at_least_zero, leaf)(p)


def _range_of_sum(terms: list[_Range]) -> _Range:
    return _Range(sum(term.least for term in terms), sum(term.most for term in terms))


def _range_of_term(coefficient: int, factors: list[_Range]) -> _Range:
    low = high = coefficient
    for factor in factors:
        ends = [a * b for a in factor for b in (low, high)]
        low, high = min(ends), max(ends)
    return _Range(low, high)


def _range_of_quotient(num: _Range, den: _Range) -> _Range:
    divisors = [d for d in den if d] or [1]
    ends = [end // d for end in num for d in (*divisors, max(divisors[0], 1))]
    return _Range(min(0, *ends), max(0, *ends))


def _range_at_least_zero(a: _Range) -> _Range:
    return _Range(max(a.least, 0), max(a.most, 0))
