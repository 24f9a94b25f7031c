"""Runs loop nests in Python and counts what they do: the truth about the cost of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from unittest import mock

import numpy as np

import harp
from harp.lower.kernels.outline import assemble
from harp.lower.loopir.effects import indices
from harp.lower.loopir.loops import (
    Buffer,
    For,
    ForeignCall,
    Kernel,
    Load,
    Nest,
    Repeat,
    Row,
    Space,
    Stmt,
    Store,
    is_endless,
    walk,
)
from harp.lower.report.report import report
from harp.lower.schedule.build import Built
from harp.lower.verify import interpreter
from harp.lower.verify.interpreter import Interpreter
from harp.trace.index.polynomial import Index, Loop, Symbol, indirect_in, loops_in, split_linear
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Const, Expr, Position, const
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Reduce

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
EVERYTHING = 1 << 30
LEAVES = (Position, Const)
ARRAYS = {Space.INPUT, Space.OUTPUT, Space.SCRATCH}


def stored_in(stmt: Stmt) -> set[Buffer]:
    """What is stored to inside a loop."""
    found: set[Buffer] = set()
    for s in walk(stmt):
        if isinstance(s, Store):
            found.add(s.buffer)
        elif isinstance(s, (Row, ForeignCall)):
            found.update(s.targets)
        elif isinstance(s, Repeat):
            found.update(b for move in s.moves for b in move)
    return found


def depth_of(e: Expr, around: Sequence[tuple[Loop, set[Buffer], bool]]) -> int:
    """In how many of the loops a leaf has to be computed."""
    indices = (*e.index, *e.conditions) if isinstance(e, Load) else (e.index,) if isinstance(e, Position) else ()
    loops = {loop for p in indices for loop in loops_in(p)}
    buffers = {i.array for p in indices for i in indirect_in(p)} | ({e.buffer} if isinstance(e, Load) else set())
    return max([k for k, (loop, own, whole) in enumerate(around, 1) if whole or loop in loops or own & buffers] or [0])


def is_choice(e: Expr) -> bool:
    """Whether it chooses by position, where loops can be split."""
    return isinstance(e, Apply) and e.op.value == "select" and is_decided(e.operands[0])


def is_decided(e: Expr) -> bool:
    if isinstance(e, Apply) and e.op.value in ("and", "or", "not"):
        return all(map(is_decided, e.operands))
    if not isinstance(e, Apply) or e.op.value not in ("lt", "eq"):
        return isinstance(e, Const)
    sides = [
        a.index if isinstance(a, Position) else int(a.value)
        for a in e.operands
        if isinstance(a, LEAVES) and a.dtype.is_integer
    ]
    return len(sides) == 2 and is_cut(sides[1] - sides[0])


def is_cut(p: Index) -> bool:
    """Whether it is linear in each of its loops, with a number."""
    parts = [split_linear(p, loop) for loop in loops_in(p)]
    return bool(parts) and not indirect_in(p) and all(part and part[0].constant for part in parts)


def decisive(e: Expr) -> list[Expr]:
    """The choices between the values of a store."""
    if is_choice(e):
        return [e.operands[0], *decisive(e.operands[1]), *decisive(e.operands[2])]
    return [e] if isinstance(e, Load) and e.conditions else []


def operations_of(e: Expr, store: Store) -> int:
    """How many operations a part of the value of a store is, with its operands given."""
    if not isinstance(e, Apply) or e.op.value in FREE or (e.dtype is bool_ and not has_loads(e)):
        return 0
    if e.op.value == "select" and not has_loads(e.operands[0]):
        return 0
    if e.op.value == "neg":
        users = [u for u in walk_expr((store.value,)) if e in u.args]
        if (users or store.reduce is Reduce.SUM) and all(is_difference(u, e) for u in users):
            return 0
    return 2 if e.op.value == "fma" else 1


def is_difference(e: Expr, negative: Expr) -> bool:
    """Whether an operation subtracts the operand of a negative."""
    negatives = [isinstance(a, Apply) and a.op.value == "neg" for a in e.args]
    if e.args.count(negative) > 1:
        return False
    if e.op.value == "add":
        return e.args[1] is negative if negatives[1] else True
    return e.op.value == "fma" and not (negatives[0] and e.args[1] is negative)


def has_loads(e: Expr) -> bool:
    return any(isinstance(x, Load) for x in walk_expr((e,)))


class Counting(Interpreter):
    """A machine that counts each scalar operation, load and store when it happens, for all calls of a program.

    It computes what stays the same along a loop once before the loop, of a choice by position only what is chosen, and
    nothing where a store changes nothing. It subtracts in one operation.
    """

    counts: Counter[str]
    steps: Counter[Repeat]

    def __init__(self, sizes: Mapping[Symbol, int]) -> None:
        super().__init__(sizes)
        self._around: tuple[tuple[Loop, set[Buffer], bool], ...] = ()
        self._tested: Repeat | None = None

    def statement(self, stmt: Stmt) -> Callable[[], None]:
        before = self._around
        if isinstance(stmt, (Nest, Repeat)):
            loops = [h.loop for h in stmt.heads if isinstance(h, For)] if isinstance(stmt, Nest) else [stmt.loop]
            self._around += tuple((loop, stored_in(stmt), isinstance(stmt, Repeat)) for loop in loops)
        if isinstance(stmt, Repeat) and stmt.test is not None:
            self._tested = stmt  # the next value is its test
        run = super().statement(stmt)
        self._around = before
        if isinstance(stmt, Row):
            return self._row(stmt, run)
        return self._store(stmt, run) if isinstance(stmt, Store) else run

    def value(self, root: Expr) -> Callable[[], np.generic]:
        run, repeat = super().value(root), self._tested
        self._tested = None
        if repeat is None:
            return run

        def tested() -> np.generic:
            self._read(repeat.test.buffer)
            goes_on = run()
            self.steps[repeat] += bool(goes_on)
            return goes_on

        return tested

    def _read(self, buffer: Buffer) -> None:
        if buffer.space in ARRAYS:
            self.counts["reads"] += 1
            self.counts["bytes_read"] += buffer.dtype.itemsize

    def _store(self, stmt: Store, run: Callable[[], None]) -> Callable[[], None]:
        counts, buffer, around = self.counts, stmt.buffer, [self.slot(loop) for loop, *_ in self._around]
        parts = list(walk_expr((stmt.value,)))
        depths, own = {}, {}
        for e in parts:
            depths[e] = max([depth_of(e, self._around), *(depths[a] for a in e.args)])
            own[e] = operations_of(e, stmt)
        choices = {e: self.value(e.operands[0]) for e in parts if is_choice(e)}
        conditions = {e: [self.number(p) for p in e.conditions] for e in parts if isinstance(e, Load)}
        added = {None: 0, "ADD": 2, "MUL": 6}[stmt.reduce and stmt.reduce.value.name] if buffer.dtype.is_complex else 1
        nothing = None if stmt.reduce is None else const(stmt.reduce.identity(buffer.dtype), buffer.dtype)
        deepest = max((depths[e] for e in decisive(stmt.value)), default=0)
        done: set[tuple[Expr, tuple[int, ...]]] = set()

        def is_there(e: Expr) -> bool:
            return not isinstance(e, Load) or all(p() >= 0 for p in conditions[e])

        def changes_nothing() -> bool:
            e = stmt.value
            while e in choices:
                e = e.operands[1 if choices[e]() else 2]
            if not isinstance(e, Load):
                return e is nothing
            if not is_there(e) and all(map(is_cut, e.conditions)):
                return e.fill is nothing
            return stmt.reduce is None and (e.buffer, e.index, e.conditions) == (buffer, stmt.index, ())

        def counted() -> None:
            same = changes_nothing()
            if not same and stmt.reduce is not None:
                counts["operations"] += added
                self._read(buffer)
            if not same and buffer.space in ARRAYS:
                counts["writes"] += 1
                counts["bytes_written"] += buffer.dtype.itemsize
            place = tuple(self._values[slot] for slot in around)
            # What is computed in fewer loops than `below` is computed before the choice.
            stack, seen = [(stmt.value, deepest if same else EVERYTHING)], {}
            while stack:
                e, below = stack.pop()
                if seen.get(e, -1) >= below:
                    continue
                seen[e] = below
                if e in choices:
                    yes, no = e.operands[1:] if choices[e]() else e.operands[:0:-1]
                    stack += [(yes, below), (no, min(below, depths[e.operands[0]]))]
                else:
                    stack += [(a, below) for a in e.args]
                key = e, place[: depths[e]]
                if depths[e] < below and key not in done and is_there(e):
                    done.add(key)
                    if isinstance(e, Load):
                        self._read(e.buffer)
                    counts["operations"] += own[e]
                    counts["special"] += own[e] > 0 and e.op.value in SPECIAL
            return run()

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


def counted(
    built: Built,
    symbols: Sequence[Symbol],
    inputs: Sequence[np.ndarray],
    sizes: Mapping[Symbol, int],
) -> Counter[str]:
    """What the kernels do on these inputs."""
    Counting.counts, Counting.steps = Counter(), Counter()
    program = assemble(built, symbols)
    with mock.patch.object(interpreter, "Interpreter", Counting):
        interpreter.execute(program, inputs, sizes)
    return Counting.counts


def compare(built, symbols, inputs, sizes) -> bool:
    """Costs are the counts, or not below them where they are upper bounds; whether they are exact."""
    truth = counted(built, symbols, inputs, sizes)
    given = [sizes[s] for s in symbols]
    loops = [s for kernel in built.kernels for s in walk(kernel.body) if is_endless(s)]
    cost = report(built, symbols, [f"size {s.name}" for s in symbols], given)
    cost = cost.at(*given, *(Counting.steps[loop] for loop in loops))
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
