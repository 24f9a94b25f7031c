"""The interpreter that runs the loop IR in Python, checking what C cannot: bounds, and reads before writes.

Parallel loops run backwards: their order must not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from harp.lower.loopir.loops import (
    Alloc,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Let,
    LibraryCall,
    LoopKind,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.lower.verify.evaluator import CheckedArray, Evaluator, divide
from harp.trace.graph.routines import StandIn
from harp.trace.graph.row_functions import ROWS, RowOp

Run = Callable[[], None]


class Interpreter(Evaluator):
    """Statements and heads as closures; one kernel runs at a time."""

    def statement(self, stmt: Stmt) -> Run:
        return STATEMENTS[type(stmt)](self, stmt)

    def nest(self, stmt: Nest) -> Run:
        run = self.statement(stmt.body)
        for head in reversed(stmt.heads):
            run = HEADS[type(head)](self, head, run)
        return run

    def seq(self, stmt: Seq) -> Run:
        runs = [self.statement(part) for part in stmt.parts]

        def run() -> None:
            for part in runs:
                part()

        return run

    def store(self, stmt: Store) -> Run:
        buffer = stmt.buffer
        value, at = self.value(stmt.value), self.element(buffer, stmt.index, "store")
        memory, reduce = self.memory(buffer), stmt.reduce

        def run() -> None:
            element, position = value(), at()
            assert memory.flat is not None
            if reduce is not None:
                element = reduce.ufunc(self.read(memory, position, buffer, stmt.index), element)
            memory.flat[position] = element
            if memory.written is not None:
                memory.written[position] = True

        if buffer.space is Space.INPUT:
            raise self.error(f"stores to the input {buffer.name}")
        return run

    def row(self, stmt: Row) -> Run:
        at, start, count = [self.number(p) for p in stmt.at], self.number(stmt.start), self.number(stmt.lane.extent)
        function, searches = ROWS[stmt.function].numpy, stmt.function is RowOp.SEARCH

        def run() -> None:
            place, first = tuple(p() for p in at), start()
            lanes = slice(first, first + count())
            sources = [self.read_row(source, place[: len(source.shape) - 1]) for source in stmt.sources]
            if searches:
                sources[-1] = sources[-1][lanes]
            self.write_row(stmt.target, place, lanes, function(*sources, stmt.reverse))

        return run

    def callback(self, stmt: ForeignCall) -> Run:
        """Nothing is called: a stand-in computes what a function returns."""
        calls = [self.number(p) for p in stmt.calls]
        results = [([self.number(p) for p in t.shape[len(calls) :]], t.dtype) for t in stmt.targets]

        def run() -> None:
            given = [self.read_row(source, ()) for source in stmt.sources]
            wanted = [(tuple(p() for p in own), dtype) for own, dtype in results]
            of_function = StandIn(stmt.number).compute(tuple(p() for p in calls), given, wanted) if stmt.pure else ()
            for target, made in zip(stmt.targets, of_function or [given[0] + 1], strict=True):
                self.write_row(target, (), ..., made)

        return run

    def branch(self, stmt: If) -> Run:
        conditions = [self.number(c) for c in stmt.conditions]
        yes = self.statement(stmt.yes)
        no = self.statement(stmt.no) if stmt.no is not None else _nothing

        def run() -> None:
            (yes if all(c() >= 0 for c in conditions) else no)()

        return run

    def alloc(self, stmt: Alloc) -> Run:
        buffer, body = stmt.buffer, self.statement(stmt.body)
        memory, extents = self.memory(buffer), [self.number(p) for p in buffer.shape]

        def run() -> None:
            self.allocate(buffer, tuple(extent() for extent in extents))
            body()
            memory.flat = None

        return run

    def repeat(self, stmt: Repeat) -> Run:
        values, slot, extent = self._values, self.slot(stmt.loop), self.number(stmt.loop.extent)
        goes_on = None if stmt.test is None else self.value(stmt.test)
        body = self.statement(stmt.body)
        moves = [(self.memory(target), self.memory(source)) for target, source in stmt.moves]

        def run() -> None:
            for position in range(extent()):
                if goes_on is not None and not goes_on():
                    break
                values[slot] = position
                body()
                for target, source in moves:
                    self.move(target, source)
            values[slot] = None

        return run

    @staticmethod
    def move(target: CheckedArray, source: CheckedArray) -> None:
        """What the source holds is the target's, and nothing has been written to the source."""
        assert target.flat is not None and source.flat is not None
        target.flat[:] = source.flat
        if target.written is not None:
            target.written[:] = True if source.written is None else source.written
        if source.written is not None:
            source.written[:] = False

    def library_call(self, stmt: LibraryCall) -> Run:
        return self.statement(stmt.body)

    def loop(self, head: For, body: Run) -> Run:
        values, slot, extent = self._values, self.slot(head.loop), self.number(head.loop.extent)
        backwards = head.kind in (LoopKind.PARALLEL, LoopKind.GRID, LoopKind.ITEM)

        def run() -> None:
            positions = range(extent())
            for position in reversed(positions) if backwards else positions:
                values[slot] = position
                body()
            values[slot] = None

        return run

    def let(self, head: Let, body: Run) -> Run:
        values, slot, number = self._values, self.slot(head.symbol), self.number(head.index)

        def run() -> None:
            values[slot] = number()
            body()
            values[slot] = None

        return run

    def digits(self, head: Digits, body: Run) -> Run:
        flat = self.number(head.flat)
        places = [(self.slot(loop), self.number(loop.extent)) for loop in reversed(head.loops)]

        def run() -> None:
            rest = flat()
            for place, (slot, radix) in enumerate(places):
                first = place == len(places) - 1
                high = 0 if first else divide(rest, radix())
                self._values[slot] = rest - high * radix()
                rest = high
            body()
            for slot, _ in places:
                self._values[slot] = None

        return run

    def run(self, kernel: Kernel) -> None:
        """Run one kernel over the memories as they are."""
        self.kernel = kernel.name
        try:
            with np.errstate(all="ignore"):
                self.statement(kernel.body)()
        except TypeError as error:
            raise self.error(f"a size or loop is used where nothing binds it ({error})") from error


def _nothing() -> None:
    pass


STATEMENTS: Mapping[type[Stmt], Callable[..., Run]] = {
    Nest: Interpreter.nest,
    Seq: Interpreter.seq,
    Store: Interpreter.store,
    Row: Interpreter.row,
    ForeignCall: Interpreter.callback,
    If: Interpreter.branch,
    Alloc: Interpreter.alloc,
    Repeat: Interpreter.repeat,
    LibraryCall: Interpreter.library_call,
}
HEADS: Mapping[type[Head], Callable[..., Run]] = {
    For: Interpreter.loop,
    Let: Interpreter.let,
    Digits: Interpreter.digits,
}
