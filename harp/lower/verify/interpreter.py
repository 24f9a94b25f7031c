"""Runs programs and kernels of the loop IR in Python, and checks bounds and reads before writes, which C does not.
Slow, for small data.

Parallel loops run backwards: their order must not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from harp.errors import VerificationError
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Let,
    LibraryCall,
    LocalCall,
    LoopKind,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    parts,
)
from harp.lower.loopir.program import Program, Subarray, formals
from harp.lower.verify.evaluator import CheckedArray, Evaluator, divide
from harp.trace.graph.routines import StandIn
from harp.trace.graph.row_functions import ROWS, RowOp
from harp.trace.index.polynomial import Atom, Index, Symbol, evaluate, of, product
from harp.trace.scalar.dtypes import NDArray as Array
from harp.trace.scalar.expr import Const, walk

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
        """Calls nothing: a stand-in computes the results."""
        calls = [self.number(p) for p in stmt.calls]
        results = [([self.number(p) for p in t.shape[len(calls) :]], t.dtype) for t in stmt.targets]

        def run() -> None:
            operands = [self.read_row(source, ()) for source in stmt.sources]
            kinds = [(tuple(p() for p in shape), dtype) for shape, dtype in results]
            of_function = StandIn(stmt.number).compute(tuple(p() for p in calls), operands, kinds) if stmt.pure else ()
            for target, result in zip(stmt.targets, of_function or [operands[0] + 1], strict=True):
                self.write_row(target, (), ..., result)

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
        """Move the elements of the source to the target, and mark the source as unwritten."""
        assert target.flat is not None and source.flat is not None
        target.flat[:] = source.flat
        if target.written is not None:
            target.written[:] = True if source.written is None else source.written
        if source.written is not None:
            source.written[:] = False

    def library_call(self, stmt: LibraryCall) -> Run:
        return self.statement(stmt.body)

    def local_call(self, stmt: LocalCall) -> Run:
        sizes = [(s, self.number(p)) for s, p in zip(stmt.function.sizes, stmt.sizes, strict=True)]

        def run() -> None:
            function = Interpreter({size: number() for size, number in sizes})
            for formal, actual in zip(stmt.function.buffers, stmt.arguments, strict=True):
                passed = (actual.value, None) if isinstance(actual, Const) else _passed(self, Subarray(actual))
                _set_memory(function, formal, *passed)
            function.run(stmt.function)

        return run

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
    LocalCall: Interpreter.local_call,
}
HEADS: Mapping[type[Head], Callable[..., Run]] = {
    For: Interpreter.loop,
    Let: Interpreter.let,
    Digits: Interpreter.digits,
}


# What kernels that ran have left in the arrays that they write, by kernel, sizes, and what was in all arrays.
Known = dict[Hashable, "list[tuple[Array, Array | None]]"]


def execute(
    program: Program, inputs: Sequence[Array], sizes: Mapping[Symbol, int], known: Known | None = None
) -> list[Array]:
    """The outputs of a program. Raises VerificationError where a program breaks a rule. A kernel that is `known`, with
    the same sizes and arrays, is not run again: most passes leave most kernels as they are."""
    interpreter = Interpreter(sizes)
    for buffer, array in zip(program.inputs, inputs, strict=True):
        _set_memory(interpreter, buffer, array, None)
    for buffer, constant in program.constants.items():
        _set_memory(interpreter, buffer, constant.value, None)
    for buffer in (*program.outputs, *(b for slot in program.scratch for b in slot.buffers)):
        interpreter.allocate(buffer, _shape(interpreter, buffer))
    for source, target in program.donated:
        array = inputs[source].copy()
        _set_memory(interpreter, program.outputs[target], array, np.ones(array.size, bool))
    neighbours = {b: slot.buffers for slot in program.scratch for b in slot.buffers}
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        writes = effects(kernel.body).writes
        function = Interpreter({s: interpreter.number(p)() for s, p in zip(kernel.sizes, call.sizes, strict=True)})
        for formal, actual in zip(formals(kernel), call.arguments, strict=True):
            if formal in writes:
                for other in neighbours.get(actual.buffer, ()):
                    if other is not actual.buffer:  # they take turns in one slot
                        _forget(interpreter, other)
            _set_memory(function, formal, *_passed(interpreter, actual))
        if known is None:
            function.run(kernel)
        else:
            _run_once(function, kernel, writes, known)
    return [_finished(interpreter, buffer) for buffer in program.outputs]


def _run_once(function: Interpreter, kernel: Kernel, writes: frozenset[Buffer], known: Known) -> None:
    """Run a kernel over the memories as they are, or take what it left there when it ran before."""
    memories = [function.memory(buffer) for buffer in formals(kernel)]
    sizes = tuple(function.number(of(size))() for size in kernel.sizes)
    content = tuple((m.shape, _bytes(m.flat), _bytes(m.written)) for m in memories)
    key = (kernel.body, formals(kernel), kernel.sizes, sizes, content)
    written = [function.memory(buffer) for buffer in formals(kernel) if buffer in writes]
    if key not in known:
        function.run(kernel)
        known[key] = [(_copy(m.flat), None if m.written is None else m.written.copy()) for m in written]
    for memory, (flat, mask) in zip(written, known[key], strict=True):
        assert memory.flat is not None
        memory.flat[:] = flat
        if memory.written is not None and mask is not None:
            memory.written[:] = mask


def _bytes(array: Array | None) -> bytes | None:
    return None if array is None else array.tobytes()


def _copy(array: Array | None) -> Array:
    assert array is not None
    return array.copy()


def run_kernel(kernel: Kernel, buffers: Mapping[Buffer, Array], sizes: Mapping[Symbol, int]) -> None:
    """Run one kernel on arrays, in place. Outputs count as unwritten, and must be stored completely."""
    interpreter = Interpreter(sizes)
    written = {b: np.zeros(a.size, bool) for b, a in buffers.items() if b.space is Space.OUTPUT}
    for buffer, array in buffers.items():
        _set_memory(interpreter, buffer, array, written.get(buffer))
    interpreter.run(kernel)
    for buffer, mask in written.items():
        _all_written(buffer, mask)


def _shape(interpreter: Interpreter, buffer: Buffer) -> tuple[int, ...]:
    return tuple(interpreter.number(p)() for p in buffer.shape)


def _set_memory(interpreter: Interpreter, buffer: Buffer, array: Array, written: Array | None) -> None:
    shape = _shape(interpreter, buffer)
    if array.shape != shape or array.dtype != buffer.dtype.numpy:
        raise VerificationError(f"{buffer.name} is {buffer.dtype}{list(shape)}, the array {array.dtype}{array.shape}")
    interpreter.memory(buffer).set(array.reshape(-1), written, shape)


def _passed(interpreter: Interpreter, argument: Subarray) -> tuple[Array, Array | None]:
    """The part of an array that a call passes, and what of it was written; nothing of a part that does not exist."""
    memory, at = interpreter.memory(argument.buffer), [interpreter.number(p)() for p in argument.at]
    assert memory.flat is not None
    shape = memory.shape[len(at) :]
    if not all(0 <= k < n for k, n in zip(at, memory.shape, strict=False)):
        missing = np.zeros(shape, memory.flat.dtype)
        return missing, np.zeros(missing.size, bool)
    size, number = math.prod(shape), 0
    for k, n in zip(at, memory.shape, strict=False):
        number = number * n + k
    part = slice(number * size, (number + 1) * size)
    return memory.flat[part].reshape(shape), None if memory.written is None else memory.written[part]


def _forget(interpreter: Interpreter, buffer: Buffer) -> None:
    written = interpreter.memory(buffer).written
    assert written is not None
    written[:] = False


def _finished(interpreter: Interpreter, buffer: Buffer) -> Array:
    memory = interpreter.memory(buffer)
    assert memory.flat is not None and memory.written is not None
    _all_written(buffer, memory.written)
    return memory.flat.reshape(memory.shape)


def _all_written(buffer: Buffer, written: Array) -> None:
    missing = np.flatnonzero(~written.astype(bool))
    if missing.size:
        raise VerificationError(f"output {buffer.name}: {missing.size} elements are never stored, first {missing[0]}")


def iterations(program: Program, sizes: Mapping[Symbol, int]) -> int:
    """An estimate of how many scalar operations `execute` would do."""
    values: dict[Atom, int] = dict(sizes.items())
    total = 0
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        total += _work(kernel.body, {s: _estimate(p, values) for s, p in zip(kernel.sizes, call.sizes, strict=True)})
    return total


def _work(stmt: Stmt, values: dict[Atom, int]) -> int:
    """The operations of a statement, estimated. Loops in extents are taken as 0, so ragged extents count as full."""
    if isinstance(stmt, Store):
        return sum(not isinstance(e, Const) for e in walk((stmt.value,))) + 1
    if isinstance(stmt, ForeignCall):
        return sum(max(_estimate(product(buffer.shape), values), 0) for buffer in (*stmt.targets, *stmt.sources))
    if isinstance(stmt, Row):
        return sum(max(_estimate(buffer.shape[-1], values), 0) for buffer in (stmt.target, *stmt.sources))
    times = 1
    if isinstance(stmt, Nest):
        for head in stmt.heads:
            if isinstance(head, For):
                times *= max(_estimate(head.loop.extent, values), 0)
            elif isinstance(head, Let):
                values[head.symbol] = _estimate(head.index, values)
    below = [_work(part, dict(values)) for part in parts(stmt)]
    return times * (max(below, default=0) if isinstance(stmt, If) else sum(below))


def _estimate(p: Index, values: Mapping[Atom, int]) -> int:
    return evaluate(p, lambda atom: values.get(atom, 0))
