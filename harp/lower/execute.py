"""Runs the loop IR in Python, checking what C cannot: bounds, reads before writes, outputs stored in full.

Slow, for small data. Every statement becomes a closure once; index expressions become Python functions of a list of
atom values. Parallel loops run backwards: their order must not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harp.errors import VerificationError
from harp.lower.loops import (
    Alloc,
    Barrier,
    Buffer,
    Bump,
    Call,
    Digits,
    For,
    Head,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Nest,
    Prefetch,
    Region,
    Segments,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.lower.memory import lifetimes
from harp.lower.program import Program
from harp.lower.uses import arguments, parameters, regions, uses
from harp.trace.dtypes import Buffer as Array
from harp.trace.dtypes import DType
from harp.trace.expr import Apply, Const, Expr, Position, walk
from harp.trace.index import Atom, FloorDiv, Index, Loop, Relu, Symbol, evaluate, product
from harp.trace.ops import INFO, Op

Run = Callable[[], None]
Value = Callable[[], np.generic]
Number = Callable[[], int]

# What an element holds before it is written, and behind the end of a buffer: nothing may depend on it.
_GARBAGE = 77


class Memory:
    """What a buffer stands for at the moment: a flat array, what of it was written, and where its pointer points."""

    __slots__ = ("flat", "loose", "origin", "shape", "strides", "written")

    def __init__(self) -> None:
        self.flat: Array | None = None
        self.written: Array | None = None  # None where all of it is
        self.shape: tuple[int, ...] = ()
        self.strides: tuple[int, ...] = ()
        self.origin = 0
        self.loose = False  # indices are checked on the whole only: the pointer was moved, or there is slack

    def set(self, flat: Array, written: Array | None, shape: tuple[int, ...], slack: int) -> None:
        self.flat, self.written, self.shape = flat, written, shape
        strides = [1]
        for extent in shape[:0:-1]:
            strides.insert(0, strides[0] * extent)
        self.strides = tuple(strides) if shape else ()
        self.origin, self.loose = 0, slack > 0

    def save(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def restore(self, state: tuple[object, ...]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            setattr(self, name, value)


class Machine:
    """One kernel at a time, over the sizes and buffers of a program."""

    def __init__(self, sizes: Mapping[Symbol, int], lets: Sequence[Let], functions: Mapping[str, Region]) -> None:
        self.kernel = ""
        self.functions = functions
        self.memories: dict[Buffer, Memory] = {}
        self._slots: dict[Atom, int] = {}
        self._values: list[int | None] = []
        self._numbers: dict[Index, Number] = {}
        for symbol, value in sizes.items():
            self.bind(symbol, value)
        for let in lets:
            self.bind(let.symbol, self.number(let.index)())

    # --- names and indices

    def slot(self, atom: Atom) -> int:
        found = self._slots.get(atom)
        if found is None:
            found = self._slots[atom] = len(self._values)
            self._values.append(None)
        return found

    def bind(self, atom: Atom, value: int | None) -> None:
        self._values[self.slot(atom)] = value

    def number(self, p: Index) -> Number:
        """The value of an index expression, as a generated function."""
        found = self._numbers.get(p)
        if found is None:
            names = {"v": self._values, "divide": _divide, "max": max}
            found = self._numbers[p] = eval(f"lambda: {self._source(p)}", names)
        return found

    def _source(self, p: Index) -> str:
        terms = ["*".join([str(c), *map(self._atom_source, m)]) for m, c in p.terms]
        return " + ".join(terms) or "0"

    def _atom_source(self, atom: Atom) -> str:
        if isinstance(atom, FloorDiv):
            return f"divide({self._source(atom.num)}, {self._source(atom.den)})"
        if isinstance(atom, Relu):
            return f"max({self._source(atom.arg)}, 0)"
        return f"v[{self.slot(atom)}]"

    def memory(self, buffer: Buffer) -> Memory:
        return self.memories.setdefault(buffer, Memory())

    def error(self, text: str) -> VerificationError:
        return VerificationError(f"kernel {self.kernel}: {text}")

    # --- values

    def value(self, root: Expr) -> Value:
        """The value as a function: one step for each part, in order."""
        places: dict[Expr, int] = {}
        steps: list[tuple[Callable[..., object], tuple[int, ...], type[np.generic]]] = []
        for e in walk((root,)):
            places[e] = len(steps)
            args = tuple(places[a] for a in e.args)
            steps.append((self._step(e), args, e.dtype.numpy.type))

        def run() -> np.generic:
            values: list[np.generic] = []
            for function, args, kind in steps:
                result = function(*[values[a] for a in args])
                values.append(result if type(result) is kind else np.asarray(result).astype(kind)[()])
            return values[-1]

        return run

    def _step(self, e: Expr) -> Callable[..., object]:
        if isinstance(e, Const):
            constant = e.value[()]
            return lambda: constant
        if isinstance(e, Position):
            return self.number(e.index)
        if isinstance(e, Load):
            return self._load(e)
        if isinstance(e, Apply):
            return _same if e.op is Op.CAST else INFO[e.op].numpy
        raise self.error(f"{e!r} is no value of a kernel")

    def _load(self, e: Load) -> Value:
        at = self.element(e.buffer, e.index, "load")
        memory = self.memory(e.buffer)
        conditions = [self.number(c) for c in e.conditions]
        fill = None if e.fill is None else e.fill.value[()]

        def run() -> np.generic:
            for condition in conditions:
                if condition() < 0:
                    if fill is None:
                        raise self.error(f"{e!r} has conditions but no fill")
                    return fill
            return self.read(memory, at(), e.buffer, e.index)

        return run

    def read(self, memory: Memory, position: int, buffer: Buffer, index: tuple[Index, ...]) -> np.generic:
        """The element at a position that was checked; behind the end is garbage."""
        assert memory.flat is not None
        if position >= memory.flat.size:
            return buffer.dtype.numpy.type(_GARBAGE)
        if memory.written is not None and not memory.written[position]:
            raise self.error(f"reads {buffer.name}{list(index)} at {position} before it was written")
        element: np.generic = memory.flat[position]
        return element

    def element(self, buffer: Buffer, index: tuple[Index, ...], action: str) -> Number:
        """The position in the flat memory of the element at `index`, checked."""
        memory = self.memory(buffer)
        numbers = [self.number(p) for p in index]
        if len(index) != len(buffer.shape):
            raise self.error(f"{buffer.name} of rank {len(buffer.shape)} is indexed by {list(index)}")
        slack = buffer.slack if action == "load" else 0

        def run() -> int:
            if memory.flat is None:
                raise self.error(f"{action} of {buffer.name}, which is not allocated here")
            position = memory.origin
            inside = True
            for number, extent, stride in zip(numbers, memory.shape, memory.strides, strict=True):
                i = number()
                inside &= 0 <= i < extent
                position += i * stride
            if not (inside or memory.loose) or not 0 <= position < memory.flat.size + slack:
                at = [number() for number in numbers]
                raise self.error(f"{action} of {buffer.name}{list(index)} at {at} is outside its shape {memory.shape}")
            return position

        return run

    # --- statements and heads

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

    def allocate(self, buffer: Buffer, shape: tuple[int, ...]) -> Array:
        """Fresh memory, nothing of it written."""
        size = int(np.prod(shape, dtype=object))
        flat = np.full(size, _GARBAGE, buffer.dtype.numpy)
        self.memory(buffer).set(flat, np.zeros(size, bool), shape, buffer.slack)
        return flat

    def call(self, stmt: Call) -> Run:
        pairs = arguments(stmt, self.functions)
        body = self.statement(self.functions[stmt.function].body)
        buffers = [(f, self.memory(f), self.memory(a)) for f, a in pairs if isinstance(f, Buffer) and isinstance(a, Buffer)]
        shapes = [[self.number(p) for p in formal.shape] for formal, _, _ in buffers]
        numbers = [(f, self.number(a)) for f, a in pairs if not isinstance(f, Buffer) and isinstance(a, Index)]

        def run() -> None:
            given = [actual.save() for _, _, actual in buffers]
            values = [(formal, number()) for formal, number in numbers]
            outer = [formal.save() for _, formal, _ in buffers]
            outer_values = [self._values[self.slot(formal)] for formal, _ in values]
            for formal, value in values:
                self.bind(formal, value)
            for (buffer, memory, _), state, shape in zip(buffers, given, shapes, strict=True):
                memory.restore(state)
                assert memory.flat is not None
                origin = memory.origin
                memory.set(memory.flat, memory.written, tuple(extent() for extent in shape), buffer.slack)
                memory.origin, memory.loose = origin, True
            body()
            for (formal, _), value_before in zip(values, outer_values, strict=True):
                self.bind(formal, value_before)
            for (_, memory, _), state in zip(buffers, outer, strict=True):
                memory.restore(state)

        return run

    def region(self, stmt: Region) -> Run:
        body = self.statement(stmt.body)
        bumped = [self.memory(b) for b in sorted(uses(stmt.body, self.functions).bumps, key=lambda b: b.name)]

        def run() -> None:
            before = [(m.origin, m.loose) for m in bumped]
            body()
            for memory, (origin, loose) in zip(bumped, before, strict=True):
                memory.origin, memory.loose = origin, loose

        return run

    def skip(self, stmt: Stmt) -> Run:
        return _nothing

    def bump(self, stmt: Bump) -> Run:
        memory, step = self.memory(stmt.buffer), self.number(stmt.step)

        def run() -> None:
            memory.origin += step()
            memory.loose = True

        return run

    def loop(self, head: For, body: Run) -> Run:
        values, slot, extent = self._values, self.slot(head.loop), self.number(head.loop.extent)
        backwards = head.kind is LoopKind.PARALLEL

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
                high = 0 if first else _divide(rest, radix())
                self._values[slot] = rest - high * radix()
                rest = high
            body()
            for slot, _ in places:
                self._values[slot] = None

        return run

    def segments(self, head: Segments, body: Run) -> Run:
        extent, last = self.number(head.loop.extent), head.digits.loops[-1]
        radix = self.number(last.extent)
        position = [0, 0]

        def inner() -> None:
            digit = self._values[self.slot(last)]
            assert digit is not None
            position[1] = max(min(radix() - digit, extent() - position[0]), 1)
            self.bind(head.offset, position[0])
            self.bind(head.length, position[1])
            body()

        at_run = self.digits(head.digits, inner)

        def run() -> None:
            position[0] = 0
            while position[0] < extent():
                self.bind(head.loop, position[0])
                at_run()
                position[0] += position[1]
            for atom in (head.loop, head.offset, head.length):
                self.bind(atom, None)

        return run

    def run(self, kernel: Kernel) -> None:
        """Run one kernel over the memories as they are."""
        self.kernel = kernel.name
        try:
            with np.errstate(all="ignore"):
                self.statement(kernel.body)()
        except TypeError as error:
            raise self.error(f"a size or loop is used where nothing binds it ({error})") from error
