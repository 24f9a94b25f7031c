"""Runs loop nests in Python and counts what they do: the truth about the cost of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from unittest import mock

import numpy as np

import harp
from harp.lower.kernels.assemble import assemble
from harp.lower.loopir.effects import indices
from harp.lower.loopir.loops import Buffer, Kernel, Load, Row, Space, Stmt, Store, walk
from harp.lower.report.report import report
from harp.lower.schedule.build import Built
from harp.lower.verify import execute
from harp.lower.verify.evaluator import CheckedArray
from harp.lower.verify.interpreter import Interpreter
from harp.trace.index.polynomial import Index, Symbol, indirect_in
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Expr
from harp.trace.scalar.expr import walk as walk_expr

FREE = {"cast", "stop_gradient", "opaque", "complex", "real", "imag"}
SPECIAL = {
    *(
        "pow",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "tanh",
        "asin",
        "acos",
        "atan",
        "sinh",
    ),
    *("cosh", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc", "erfinv", "atan2", "hypot"),
}
COUNTED = ("operations", "special", "reads", "writes", "bytes_read", "bytes_written")
ARRAYS = {Space.INPUT, Space.OUTPUT, Space.SCRATCH}


def has_loads(e: Expr) -> bool:
    return any(isinstance(x, Load) for x in walk_expr((e,)))


class Counting(Interpreter):
    """A machine that counts each scalar operation, load and store when it happens, for all calls of a program."""

    counts: Counter[str]

    def statement(self, stmt: Stmt) -> Callable[[], None]:
        run = super().statement(stmt)
        if isinstance(stmt, Row):
            return self._row(stmt, run)
        if not isinstance(stmt, Store):
            return run
        counts, buffer = self.counts, stmt.buffer
        added = {None: 0, "ADD": 2, "MUL": 6}[stmt.reduce and stmt.reduce.value.name] if buffer.dtype.is_complex else 1
        operations = added if stmt.reduce is not None else 0

        def counted() -> None:
            counts["operations"] += operations
            if buffer.space in ARRAYS:
                counts["writes"] += 1
                counts["bytes_written"] += buffer.dtype.itemsize
            run()

        return counted

    def _row(self, stmt: Row, run: Callable[[], None]) -> Callable[[], None]:
        """Each row is read once, also if many rows search in it."""
        at, count = [self.number(p) for p in stmt.at], self.number(stmt.lane.extent)
        seen: set[tuple[Buffer, tuple[int, ...]]] = set()

        def counted() -> None:
            for source in stmt.sources:
                place = tuple(p() for p in at)[: len(source.shape) - 1]
                elements = self.memory(source).shape[-1]
                if stmt.function.value == "search" and source is stmt.sources[-1]:
                    elements = count()
                elif (source, place) in seen:
                    elements = 0
                seen.add((source, place))
                self.counts["reads"] += elements
                self.counts["bytes_read"] += elements * source.dtype.itemsize
            self.counts["writes"] += count()
            self.counts["bytes_written"] += count() * stmt.target.dtype.itemsize
            run()

        return counted

    def value(self, root: Expr) -> Callable[[], np.generic]:
        run = super().value(root)
        parts = [e for e in walk_expr((root,)) if isinstance(e, Apply) and e.op.value not in FREE]
        parts = [e for e in parts if e.dtype is not bool_ or has_loads(e)]
        parts = [e for e in parts if e.op.value != "select" or has_loads(e.operands[0])]
        operations = sum(2 if e.op.value == "fma" else 1 for e in parts)
        special = sum(e.op.value in SPECIAL for e in parts)

        def counted() -> np.generic:
            self.counts["operations"] += operations
            self.counts["special"] += special
            return run()

        return counted

    def read(self, memory: CheckedArray, position: int, buffer: Buffer, index: tuple[Index, ...]) -> np.generic:
        if buffer.space in ARRAYS:
            self.counts["reads"] += 1
            self.counts["bytes_read"] += buffer.dtype.itemsize
        return super().read(memory, position, buffer, index)


def counted(
    built: Built,
    symbols: Sequence[Symbol],
    inputs: Sequence[np.ndarray],
    sizes: Mapping[Symbol, int],
) -> Counter[str]:
    """What the kernels do on these inputs."""
    Counting.counts = Counter()
    program = assemble(built, symbols)
    with mock.patch.object(execute, "Interpreter", Counting):
        execute.execute(program, inputs, sizes)
    return Counting.counts


def compare(built, symbols, inputs, sizes) -> bool:
    """Costs are the counts, or not below them where they are upper bounds; whether they are exact."""
    cost = report(built, symbols, [f"size {s.name}" for s in symbols], [sizes[s] for s in symbols]).at()
    truth = counted(built, symbols, inputs, sizes)
    for name in COUNTED:
        number = getattr(cost, name)
        if "read" in name and any(map(reads_places, built.kernels)):
            continue
        assert number == truth[name] if cost.exact else number >= truth[name], (name, number, truth[name])
    return cost.exact


def reads_places(kernel: Kernel) -> bool:
    """Whether it reads elements of index arrays, which the machine reads once for each place where they are named."""
    return any(indirect_in(p) for s in walk(kernel.body) for p in indices(s))


def compare_function(function, arguments) -> bool:
    """The same for a function of arrays."""
    stages = harp.jit(function).lower(*arguments)
    inputs = [*map(np.asarray, arguments), *(c.captured.array for c in stages.graph.captured)]
    symbols = stages._program.sizes
    sizes = dict(zip(symbols, stages._given, strict=True))
    return compare(stages._algorithm, symbols, inputs, sizes)
