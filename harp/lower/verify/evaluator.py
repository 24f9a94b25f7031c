"""The checked evaluation of the interpreter of the loop IR: names, index expressions, memories and values.

Every expression becomes a closure once; index expressions become Python functions of a list of atom values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, EllipsisType
from typing import cast

import numpy as np

from harp.errors import VerificationError
from harp.lower.loopir.loops import Buffer, Load
from harp.trace.index.polynomial import Atom, Fold, Index, Indirect, Symbol
from harp.trace.scalar.dtypes import NDArray as Array
from harp.trace.scalar.expr import Apply, Const, Expr, Position, walk
from harp.trace.scalar.ops import GIVEN, INFO

Value = Callable[[], np.generic]
Number = Callable[[], int]

# Operators of NumPy's numbers, which do what its functions do in a tenth of the time.
_OPERATORS: Mapping[object, str] = {
    np.add: " + ",
    np.multiply: " * ",
    np.less: " < ",
    np.bitwise_and: " & ",
    np.bitwise_or: " | ",
    np.bitwise_xor: " ^ ",
}

# The content of elements before they are written, and behind the end of a buffer: no result may depend on it.
_GARBAGE = 77


class CheckedArray:
    """The current memory of a buffer: a flat array, and which elements were written."""

    __slots__ = ("flat", "shape", "strides", "written")

    def __init__(self) -> None:
        self.flat: Array | None = None
        self.written: Array | None = None  # None if all were
        self.shape: tuple[int, ...] = ()
        self.strides: tuple[int, ...] = ()

    def set(self, flat: Array, written: Array | None, shape: tuple[int, ...]) -> None:
        self.flat, self.written, self.shape = flat, written, shape
        strides = [1]
        for extent in shape[:0:-1]:
            strides.insert(0, strides[0] * extent)
        self.strides = tuple(strides) if shape else ()


class Evaluator:
    """Names, index expressions, memories and values of one program."""

    def __init__(self, sizes: Mapping[Symbol, int]) -> None:
        self.kernel = ""
        self.memories: dict[Buffer, CheckedArray] = {}
        self._slots: dict[Atom, int] = {}
        self._values: list[int | None] = []
        self._numbers: dict[Index, Number] = {}
        self._indirects: list[Number] = []
        for symbol, value in sizes.items():
            self.bind(symbol, value)

    # --- names and indices

    def slot(self, atom: Atom) -> int:
        number = self._slots.get(atom)
        if number is None:
            number = self._slots[atom] = len(self._values)
            self._values.append(None)
        return number

    def bind(self, atom: Atom, value: int | None) -> None:
        self._values[self.slot(atom)] = value

    def number(self, p: Index) -> Number:
        """The value of an index expression, as a generated function."""
        function = self._numbers.get(p)
        if function is None:
            function = self._numbers[p] = cast(Number, _function((f"return {self._source(p)}",), self._names()))
        return function

    def _names(self) -> dict[str, object]:
        """The names in index expressions."""
        return {"v": self._values, "divide": divide, "max": max, "indirect": self._indirects}

    def _source(self, p: Index) -> str:
        return Fold(_total_source, _term_source, "divide({}, {})".format, "max({}, 0)".format, self._leaf_source)(p)

    def _leaf_source(self, atom: Atom) -> str:
        if isinstance(atom, Indirect):
            self._indirects.append(self._indirect(atom))
            return f"indirect[{len(self._indirects) - 1}]()"
        return f"v[{self.slot(atom)}]"

    def _indirect(self, atom: Indirect) -> Number:
        """An element of an index array as an index, checked like any load."""
        array = cast(Buffer, atom.array)
        at, memory, extent = self.element(array, atom.at, "load"), self.memory(array), self.number(atom.size)

        def run() -> int:
            position, size = int(cast(int, self.read(memory, at(), array, atom.at))), extent()
            position += size if position < 0 else 0
            if atom.misses:
                return position if 0 <= position < size else size
            return max(min(position, size - 1), 0)

        return run

    def memory(self, buffer: Buffer) -> CheckedArray:
        return self.memories.setdefault(buffer, CheckedArray())

    def error(self, text: str) -> VerificationError:
        return VerificationError(f"kernel {self.kernel}: {text}")

    # --- values

    def value(self, root: Expr) -> Value:
        """The value as a generated function: one line for each part, in order."""
        names: dict[str, object] = {"exactly": _exactly}
        places: dict[Expr, str] = {}
        lines = []
        for number, e in enumerate(walk((root,))):
            result = places[e] = f"x{number}"
            args = [places[a] for a in e.args]
            sign = _OPERATORS.get(INFO[e.op].numpy) if isinstance(e, Apply) and e.op not in GIVEN else None
            names[f"kind{number}"] = e.dtype.numpy.type
            if sign is None:
                names[f"step{number}"] = self._step(e)
                lines.append(f"{result} = step{number}({', '.join(args)})")
            else:
                lines.append(f"{result} = {sign.join(args)}")
            lines.append(f"if type({result}) is not kind{number}: {result} = exactly({result}, kind{number})")
        return cast(Value, _function((*lines, f"return {places[root]}"), names))

    def _step(self, e: Expr) -> Callable[..., object]:
        if isinstance(e, Const):
            constant = e.value[()]
            return lambda: constant
        if isinstance(e, Position):
            return self.number(e.index)
        if isinstance(e, Load):
            return self._load(e)
        if isinstance(e, Apply):
            if e.op not in GIVEN:
                return INFO[e.op].numpy
            to, function = e.dtype.numpy, GIVEN[e.op]
            return lambda a: function(np.asarray(a), to)[()]
        raise self.error(f"{e!r} is no value of a kernel")

    def _load(self, e: Load) -> Value:
        at = self.element(e.buffer, e.index, "load")
        memory = self.memory(e.buffer)
        conditions = [self.number(c) for c in e.conditions]
        fill = None if e.fill is None else cast(np.generic, e.fill.value[()])

        def run() -> np.generic:
            for condition in conditions:
                if condition() < 0:
                    if fill is None:
                        raise self.error(f"{e!r} has conditions but no fill")
                    return fill
            return self.read(memory, at(), e.buffer, e.index)

        return run

    def read(self, memory: CheckedArray, position: int, buffer: Buffer, index: tuple[Index, ...]) -> np.generic:
        """The element at a checked position; behind the end it is garbage."""
        assert memory.flat is not None
        if position >= memory.flat.size:
            return buffer.dtype.numpy.type(_GARBAGE)
        if memory.written is not None and not memory.written[position]:
            raise self.error(f"reads {buffer.name}{list(index)} at {position} before it was written")
        element: np.generic = memory.flat[position]
        return element

    def read_row(self, buffer: Buffer, at: tuple[int, ...]) -> Array:
        """A row along the last axis, which must have been written."""
        memory, written = self.memory(buffer), self.memory(buffer).written
        if memory.flat is None:
            raise self.error(f"a row of {buffer.name} is read, which is not allocated here")
        row: Array = memory.flat.reshape(memory.shape)[at]
        if written is not None and not written.reshape(memory.shape)[at].all():
            raise self.error(f"reads the row {at} of {buffer.name} before it was written")
        return row

    def write_row(self, buffer: Buffer, at: tuple[int, ...], lanes: slice | EllipsisType, values: Array) -> None:
        """Store to a part of a row along the last axis, or to everything at these indices."""
        memory = self.memory(buffer)
        if memory.flat is None:
            raise self.error(f"a row of {buffer.name} is stored to, which is not allocated here")
        memory.flat.reshape(memory.shape)[(*at, lanes)] = values
        if memory.written is not None:
            memory.written.reshape(memory.shape)[(*at, lanes)] = True

    def element(self, buffer: Buffer, index: tuple[Index, ...], action: str) -> Number:
        """The position in the flat memory of the element at `index`, checked."""
        memory = self.memory(buffer)
        if len(index) != len(buffer.shape):
            raise self.error(f"{buffer.name} of rank {len(buffer.shape)} is indexed by {list(index)}")

        def absent() -> VerificationError:
            return self.error(f"{action} of {buffer.name}, which is not allocated here")

        def outside(*at: int) -> VerificationError:
            place = f"{buffer.name}{list(index)} at {list(at)}"
            return self.error(f"{action} of {place} is outside its shape {memory.shape}")

        axes = range(len(index))
        names = self._names() | {"memory": memory, "absent": absent, "outside": outside}
        lines = (
            "if memory.flat is None: raise absent()",
            *(f"i{axis} = {self._source(p)}" for axis, p in enumerate(index)),
            "shape, strides = memory.shape, memory.strides",
            f"if not ({' and '.join(f'0 <= i{axis} < shape[{axis}]' for axis in axes) or 'True'}):",
            f"    raise outside({', '.join(f'i{axis}' for axis in axes)})",
            f"return {' + '.join(f'i{axis}*strides[{axis}]' for axis in axes) or '0'}",
        )
        return cast(Number, _function(lines, names))

    def allocate(self, buffer: Buffer, shape: tuple[int, ...]) -> Array:
        """New memory, of which nothing is written."""
        size = math.prod(max(extent, 0) for extent in shape)
        flat = np.full(size, _GARBAGE, buffer.dtype.numpy)
        self.memory(buffer).set(flat, np.zeros(size, bool), shape)
        return flat


def _exactly(value: object, kind: type[np.generic]) -> np.generic:
    return value if type(value) is kind else cast(np.generic, np.asarray(value).astype(kind)[()])


def _function(lines: tuple[str, ...], names: dict[str, object]) -> Callable[[], object]:
    """The function with this body, and these names in it."""
    exec(_compiled(lines), names)
    return cast(Callable[[], object], names["run"])


@lru_cache(maxsize=1 << 12)
def _compiled(lines: tuple[str, ...]) -> CodeType:
    """The compiled function: the same expressions recur after every pass."""
    return compile("def run():\n" + "".join(f"    {line}\n" for line in lines), "<kernel>", "exec")


def divide(a: int, b: int) -> int:
    """Rounds down; 0 for divisor 0."""
    return a // b if b else 0


def same(value: np.generic) -> np.generic:
    return value


def _total_source(terms: list[str]) -> str:
    return " + ".join(terms) or "0"


def _term_source(coefficient: int, factors: list[str]) -> str:
    return "*".join([str(coefficient), *factors])
