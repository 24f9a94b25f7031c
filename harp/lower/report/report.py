"""The cost of a program for its user: the work of its kernels and in all, in the user's names for sizes; and its memory
at given sizes: that of arguments and results, its arena, and that of its threads.

    peak = inputs + captured + outputs + scratch + threads * per_thread - donated

It is a bound: a loop that is not worth threads runs in the caller's thread, and slots count from the first kernel on.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import NamedTuple

import attrs

from harp.errors import ArgumentError
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Alloc, Buffer, Space, Stmt, parts
from harp.lower.loopir.program import Call, Program, Slot, plan, size_in_bytes
from harp.lower.report.counts import Count, ratio, total
from harp.lower.report.operations import QUANTITIES, KernelCost, Q, Work, kernel_costs
from harp.lower.schedule.build import Built
from harp.trace.index.division import Substitution, maximum
from harp.trace.index.polynomial import ZERO, Atom, Fold, Index, Loop, Symbol, evaluate, of, product
from harp.trace.source_locations import Site, where

_USER = -1  # a scope of sizes that no trace has
_LETTERS = "nmkpqrstuvw"
# The most kernels that are printed, and the columns, which are left out if all are zero.
_MOST_LINES = 12
# The most characters of a polynomial in the table; its lowest terms are left out.
_WIDEST = 50
# Kernels are sorted by their steps for sizes of this.
_TYPICAL = 1000
_COLUMNS = ("operations", "special", "comparisons", "reads", "writes")


@attrs.frozen(repr=False)
class Cost(Work[Q]):
    """The work of a program in all, and of its kernels in order.

    `scratch` is in bytes; `elements` are those of arguments, captured arrays and results together. `names` are the
    names of sizes, in the order of the program, with their meaning; then those of numbers of steps that are data.
    `given` are the sizes of the arguments, and one step of each such loop, since their number is unknown.

    >>> import harp, numpy as np
    >>> cost = harp.jit(lambda x, w: x @ w).lower(np.ones((2, 3)), np.ones((3, 4))).cost()
    >>> cost.operations
    2*n*m*k
    >>> cost.operations.degree, cost.at(10, 10, 10).operations
    (3, 2000)
    """

    scratch: Q
    elements: Q
    kernels: tuple[KernelCost[Q], ...]
    names: Mapping[str, str]
    given: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether no number is just an upper bound."""
        return all(kernel.exact for kernel in self.kernels)

    def at(self, *sizes: int) -> Cost[int]:
        """The same with numbers for the sizes, in the order of `names`; by default those of the arguments.

        Loops whose number of steps is data run one step if no number is given. Raises ArgumentError unless there is a
        number >= 0 for each size.
        """
        loops = sum(len(kernel.loops) for kernel in self.kernels)
        if loops and len(sizes) == len(self.names) - loops:
            sizes += self.given[len(sizes) :]
        values = given_sizes("cost", tuple(self.names.values()), sizes, self.given)
        by_symbol = dict(zip(map(_symbol, self.names, count()), values, strict=True))
        kernels = tuple(
            KernelCost(**_as_numbers(k, by_symbol), name=k.name, site=k.site, exact=k.exact, loops=k.loops)
            for k in self.kernels
        )
        return Cost(
            **_as_numbers(self, by_symbol),
            scratch=_valued(self.scratch, by_symbol),
            elements=_valued(self.elements, by_symbol),
            kernels=kernels,
            names=self.names,
            given=self.given,
        )

    def __str__(self) -> str:
        return _text(self)

    __repr__ = __str__


def report(built: Built, sizes: Sequence[Symbol], names: Sequence[str], given: Sequence[int]) -> Cost[Count]:
    """The cost of kernels over these sizes, with long names such as "x.shape[0]", and values at hand."""
    letters = _short()
    short = list(islice(letters, len(names)))
    naming = Substitution({size: of(_symbol(name, k)) for k, (size, name) in enumerate(zip(sizes, short, strict=True))})
    steps = map(_symbol, letters, count(len(names)))
    kernels = kernel_costs(built, naming, steps.__next__)
    loops = {symbol.name: f"steps of the loop{_at_line(site)}" for kernel in kernels for symbol, site in kernel.loops}
    elements = sum((product(buffer.shape) for buffer in (*built.inputs, *built.outputs)), ZERO)
    scratch = ZERO
    for slot in plan(effects(kernel.body).touched for kernel in built.kernels):
        most = ZERO
        for size in slot.sizes:
            most = maximum(most, size)
        scratch += most
    sums = {quantity: total(getattr(kernel, quantity) for kernel in kernels) for quantity in QUANTITIES}
    return Cost(
        **sums,
        scratch=ratio(naming(scratch)),
        elements=ratio(naming(elements)),
        kernels=kernels,
        names=dict(zip(short, names, strict=True)) | loops,
        given=(*given, *(1 for _ in loops)),
    )


def given_sizes(what: str, names: Sequence[str], sizes: Sequence[object], default: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that a user gave, or by default those of the arguments of `lower`. Raises ArgumentError."""
    if not sizes:
        return default
    if len(sizes) != len(names):
        raise ArgumentError(
            f"{what} takes {len(names)} sizes, ({', '.join(names)}), not {len(sizes)}; pass a number for "
            f"each, or none for those of the arguments of lower{where()}"
        )
    return tuple(_checked(what, name, size) for name, size in zip(names, sizes, strict=True))


def _checked(what: str, name: str, value: object) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if number < 0:
        raise ArgumentError(f"{what}: the size {name} is a number >= 0, not {value!r}{where()}")
    return number


def _symbol(name: str, number: int) -> Symbol:
    return Symbol(_USER, number, name)


def _short() -> Iterator[str]:
    """Short names: letters, then letters with numbers."""
    return (letter + str(k or "") for k in count() for letter in _LETTERS)


def _valued(quantity: Count | int, sizes: Mapping[Symbol, int]) -> int:
    return quantity if isinstance(quantity, int) else quantity.at(sizes)


def _as_numbers(work: Work[Q], sizes: Mapping[Symbol, int]) -> dict[str, int]:
    return {quantity: _valued(getattr(work, quantity), sizes) for quantity in QUANTITIES}


def _text(cost: Cost[Count] | Cost[int]) -> str:
    """A table with the most expensive kernels first, and the meaning of its names."""
    columns = [name for name in _COLUMNS if repr(getattr(cost, name)) != "0"]
    typical = dict.fromkeys(map(_symbol, cost.names, count()), _TYPICAL)
    kernels: list[KernelCost[Count] | KernelCost[int]] = sorted(cost.kernels, key=lambda k: -_valued(k.steps, typical))
    rows = [("kernel", "line", *columns)]
    rows += [(k.name, _line(k.site), *_cells(k, columns)) for k in kernels[:_MOST_LINES]]
    if len(kernels) > _MOST_LINES:
        rows.append((f"({len(kernels) - _MOST_LINES} more)", "", *("" for _ in columns)))
    rows.append(("in all", "", *_cells(cost, columns)))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    amounts = {"bytes read": cost.bytes_read, "written": cost.bytes_written, "scratch": cost.scratch}
    lines.append(", ".join(f"{name} {_cell(amount, 2 * _WIDEST)}" for name, amount in amounts.items()))
    legend = ", ".join(f"{short} = {name}" for short, name in cost.names.items())
    lines += [f"where {legend}"] if legend else []
    lines += [] if cost.exact else ["some of these are upper bounds"]
    return "\n".join(lines)


def _cells(work: Work[Count] | Work[int], columns: Sequence[str]) -> list[str]:
    return [_cell(getattr(work, name)) for name in columns]


def _cell(quantity: Count | int, width: int = _WIDEST) -> str:
    return str(quantity) if isinstance(quantity, int) else quantity.text(width)


def _at_line(site: Site | None) -> str:
    return f" at {_line(site)}" if site else ""


def _line(site: Site | None) -> str:
    return f"{os.path.basename(site[0])}:{site[1]}" if site else ""


# Slots of the arena, and memory of threads, are aligned to cache lines.
_LINE = 64


@attrs.frozen
class Memory:
    """The memory of one call, in bytes.

    `inputs` are the arguments, `captured` the arrays that the function closes over, `outputs` the results, of which
    `donated` bytes are in the memory of arguments. `scratch` are intermediate arrays, and `per_thread` is allocated by
    each of `threads`. `peak` is the most that the call needs.
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
        """The sum of all."""
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
    """The bytes that a thread allocates in a call."""
    kernel = program.kernels[call.kernel]
    sizes = zip(kernel.sizes, call.sizes, strict=True)
    return _allocated_bytes(kernel.body, {size: evaluate(p, values.__getitem__) for size, p in sizes})


def _bytes(buffers: Iterable[Buffer], values: Mapping[Atom, int]) -> int:
    return sum(evaluate(size_in_bytes(buffer), values.__getitem__) for buffer in buffers)


def _slot(slot: Slot, values: Mapping[Atom, int]) -> int:
    return _lines(max(evaluate(size, values.__getitem__) for size in slot.sizes))


def _lines(count: int) -> int:
    return -(-max(count, 0) // _LINE) * _LINE


def _allocated_bytes(stmt: Stmt, values: Mapping[Atom, int]) -> int:
    """The bytes that one thread, or a group of work-items, allocates in a statement: consecutive parts share memory."""
    below = max((_allocated_bytes(part, values) for part in parts(stmt)), default=0)
    if isinstance(stmt, Alloc) and stmt.buffer.space in (Space.THREAD, Space.WORKSPACE):
        return below + _lines(_range(size_in_bytes(stmt.buffer), values).most)
    return below


class _Range(NamedTuple):
    least: int
    most: int


def _range(p: Index, values: Mapping[Atom, int]) -> _Range:
    """The range of an expression over its loops, whose extents may depend on enclosing loops."""

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
