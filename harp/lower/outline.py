"""Kernels become functions of their buffers and sizes, and kernels that are equal become one.

    for i < s3: mem1[i] = exp(in0[i])       ->      kernel map(in0: f32[s0], out0: f32[s0]):
    for i < s5: out0[i] = exp(mem0[i])                  for i0 < s0: out0[i0] = exp(in0[i0])
                                                    map(in0, mem1; s3)
                                                    map(mem0, out0; s5)

Buffers, sizes and loops are renumbered by first use, so that two kernels are equal if their texts are. Of a buffer that
a kernel uses at numbers along the first axes only, it is given the part: so steps of a loop that Python has unrolled
are one kernel, whichever row of an array each of them reads.

    for i < s3: mem1[i] = in0[7, i]         ->      map(in0[7], mem1; s3)

All that comes after works once for each distinct kernel: the passes over loops, printing, the C compiler. A layer that
is repeated, or that the gradient computes again, costs what one of them does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import attrs

from harp.lower.build import Built
from harp.lower.loops import (
    MEMORY,
    Alloc,
    Buffer,
    Digits,
    For,
    Head,
    If,
    Kernel,
    Load,
    Nest,
    Row,
    Space,
    Stmt,
    Store,
    parts,
    walk,
)
from harp.lower.program import Argument, Call
from harp.lower.rewrite import Renaming, rebuilt
from harp.lower.uses import head_indices, indices, symbols_of, uses
from harp.lower.uses import loads as all_loads
from harp.trace.division import Substitution
from harp.trace.dtypes import bool_
from harp.trace.expr import Apply, Const, Expr, Position, rewrite
from harp.trace.expr import walk as walk_expr
from harp.trace.index import Atom, FloorDiv, Index, Loop, Pick, Relu, Symbol, of, picks_in

# How the parameters of a kernel are called.
_STEMS = {Space.INPUT: "in", Space.OUTPUT: "out", Space.SCRATCH: "mem"}
# Parts of one buffer that a kernel is given at most.
_PARTS = 8


def outline(built: Built) -> Built:
    """Distinct kernels, and a call for each kernel that there was."""
    numbers: dict[str, int] = {}
    kernels: list[Kernel] = []
    calls: list[Call] = []
    for kernel in built.kernels:
        body, parts = _over_parts(kernel.body)
        form = _Form(kernel.with_body(body))
        number = numbers.setdefault(form.text, len(kernels))
        if number == len(kernels):
            kernels.append(form.kernel())
        given = [parts.get(buffer, Argument(buffer)) for buffer in form.buffers]
        at = tuple(argument.at for argument in given) if parts else ()
        calls.append(Call(number, tuple(argument.buffer for argument in given), tuple(map(of, form.sizes)), at))
    return attrs.evolve(built, kernels=tuple(kernels), calls=tuple(calls))


def _over_parts(body: Stmt) -> tuple[Stmt, dict[Buffer, Argument]]:
    """The statement over parts of buffers where it can be, and what they are parts of."""
    at: dict[Buffer, dict[tuple[Index, ...], None]] = {}
    whole: set[Buffer] = set()
    written: set[Buffer] = set()
    for s in walk(body):
        for load in all_loads(s):
            at.setdefault(load.buffer, {})[load.index] = None
            if load.conditions:  # it may be asked for a part that is not there
                whole.add(load.buffer)
        heads = [p for h in s.heads for p in head_indices(h)] if isinstance(s, Nest) else []
        whole |= {pick.array for p in (*indices(s), *heads) for pick in picks_in(p) if isinstance(pick.array, Buffer)}
        if isinstance(s, Store):
            at.setdefault(s.buffer, {})[s.index] = None
            written.add(s.buffer)
        elif isinstance(s, Row):
            whole |= {s.target, *s.sources, *((s.work,) if s.work is not None else ())}
    places: dict[Buffer, int] = {}
    parts: dict[tuple[Buffer, tuple[Index, ...]], Buffer] = {}
    for buffer, found in at.items():
        first = min(map(_numbers_first, found))
        rows = list(dict.fromkeys(index[:first] for index in found))
        if first and buffer.space in MEMORY and buffer not in whole and len(rows) <= (_PARTS, 1)[buffer in written]:
            places[buffer] = first
            for row in rows:
                parts[buffer, row] = Buffer(buffer.name, buffer.dtype, buffer.shape[first:], buffer.space)

    def place(buffer: Buffer, index: tuple[Index, ...]) -> tuple[Buffer, tuple[Index, ...]]:
        first = places.get(buffer, 0)
        return (parts[buffer, index[:first]], index[first:]) if first else (buffer, index)

    def leaf(e: Expr) -> Expr:
        return Load(*place(e.buffer, e.index)) if isinstance(e, Load) and e.buffer in places else e

    def statement(s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return Store(*place(s.buffer, s.index), rewrite((s.value,), leaf)[0], s.reduce)
        return rebuilt(s, statement)

    return (statement(body) if places else body), {part: Argument(b, row) for (b, row), part in parts.items()}


def _numbers_first(index: tuple[Index, ...]) -> int:
    """How many indices at the start are numbers."""
    return next((k for k, p in enumerate(index) if p.constant is None), len(index))


class _Form:
    """A kernel with buffers, sizes and loops numbered by first use: its text, and what the numbers stand for."""

    def __init__(self, kernel: Kernel) -> None:
        self.given = kernel
        used = uses(kernel.body)
        self.buffers = used.touched
        self.sizes = symbols_of(kernel.body, self.buffers)
        self.spaces = [self._space(buffer, buffer in used.writes) for buffer in self.buffers]
        self._names: dict[Atom, str] = {size: f"s{k}" for k, size in enumerate(self.sizes)}
        self._arrays = {buffer: f"b{k}" for k, buffer in enumerate(self.buffers)}
        self._indices: dict[Index, str] = {}
        self._loops: list[Loop] = []
        self._locals: list[Buffer] = []
        lines = [self._declared(b, space) for b, space in zip(self.buffers, self.spaces, strict=True)]
        self.text = "\n".join((*lines, *self._statement(kernel.body)))

    @staticmethod
    def _space(buffer: Buffer, is_written: bool) -> Space:
        """Where an array lives makes no difference, but that a caller's truth values may be any bytes."""
        if is_written:
            return Space.OUTPUT
        return Space.SCRATCH if buffer.dtype is bool_ and buffer.space is not Space.INPUT else Space.INPUT

    # --- the text

    def _declared(self, buffer: Buffer, space: Space) -> str:
        return f"{space.value} {buffer.dtype}{self._list(buffer.shape)}"

    def _list(self, indices: Sequence[Index]) -> str:
        return f"[{', '.join(map(self._index, indices))}]"

    def _index(self, p: Index) -> str:
        """Terms in the order of their texts, for the order in the expression follows the old numbers."""
        found = self._indices.get(p)
        if found is None:
            terms = ("*".join([str(c), *sorted(map(self._atom, m))]) for m, c in p.terms)
            found = self._indices[p] = f"({' + '.join(sorted(terms))})"
        return found

    def _atom(self, atom: Atom) -> str:
        found = self._names.get(atom)
        if found is not None:
            return found
        if isinstance(atom, FloorDiv):
            return f"{self._index(atom.num)}//{self._index(atom.den)}"
        if isinstance(atom, Relu):
            return f"relu{self._index(atom.arg)}"
        if isinstance(atom, Pick):
            assert isinstance(atom.array, Buffer)
            return f"pick{atom.misses} {self._arrays[atom.array]}{self._list(atom.at)} of {self._index(atom.size)}"
        assert isinstance(atom, Loop), "sizes are known"
        self._loops.append(atom)
        found = self._names[atom] = f"i{len(self._loops) - 1}"
        return found

    def _statement(self, s: Stmt) -> Iterator[str]:
        if isinstance(s, Nest):
            yield from map(self._head, s.heads)
        elif isinstance(s, Alloc):
            self._arrays[s.buffer] = f"v{len(self._locals)}"
            self._locals.append(s.buffer)
            yield self._declared(s.buffer, s.buffer.space)
        elif isinstance(s, Store):
            yield from self._value(s.value)
            reduce = s.reduce.name if s.reduce else ""
            yield f"store {reduce} {self._arrays[s.buffer]}{self._list(s.index)}"
        elif isinstance(s, Row):
            extent, lane = self._index(s.lane.extent), self._atom(s.lane)
            sources = " ".join(self._arrays[source] for source in s.sources)
            work = self._arrays[s.work] if s.work is not None else ""
            target = f"{self._arrays[s.target]}{self._list(s.index)}"
            yield f"row {s.function.value} {s.reverse} {target} {extent} {lane} from {sources} by {work}"
        elif isinstance(s, If):
            yield f"if {self._list(s.conditions)} else {s.no is not None}"
        inside = parts(s)
        yield f"{type(s).__name__} {len(inside)}"
        for part in inside:
            yield from self._statement(part)

    def _head(self, head: Head) -> str:
        if isinstance(head, For):
            return f"for {head.kind.value} {self._index(head.loop.extent)} {self._atom(head.loop)}"
        assert isinstance(head, Digits), "passes make other heads later"
        digits = (f"{self._index(loop.extent)} {self._atom(loop)}" for loop in head.loops)
        return f"digits {self._index(head.flat)} [{', '.join(digits)}]"

    def _value(self, value: Expr) -> Iterator[str]:
        """A line for each node, which names its operands by their lines."""
        numbers: dict[Expr, int] = {}
        for e in walk_expr((value,)):
            numbers[e] = len(numbers)
            if isinstance(e, Load):
                fill = e.fill.bits.hex() if e.fill is not None else ""  # bits, for not all NaNs are the same
                yield f"load {self._arrays[e.buffer]}{self._list(e.index)} if {self._list(e.conditions)} {fill}"
            elif isinstance(e, Position):
                yield f"position {self._index(e.index)}"
            elif isinstance(e, Const):
                yield f"const {e.dtype} {e.bits.hex()}"
            else:
                assert isinstance(e, Apply)
                yield f"{e.op.name} {e.dtype} {[numbers[a] for a in e.operands]}"

    # --- the kernel

    def kernel(self) -> Kernel:
        """The kernel over the numbered buffers, sizes and loops."""
        places: dict[Atom, Index] = {size: of(Symbol(0, k, f"s{k}")) for k, size in enumerate(self.sizes)}
        arrays: dict[Buffer, tuple[Buffer, tuple[Index, ...]]] = {}
        names = {space: map(f"{stem}{{}}".format, count()) for space, stem in _STEMS.items()}
        for buffer, space in zip(self.buffers, self.spaces, strict=True):
            shape = Substitution(places).each(buffer.shape)
            arrays[buffer] = Buffer(next(names[space]), buffer.dtype, shape, space), ()
        buffers = tuple(arrays[buffer][0] for buffer in self.buffers)
        for number, old in enumerate(self._loops):
            places[old] = of(Loop(number, Renaming(Substitution(places), arrays).indices(old.extent)))
        for number, local in enumerate(self._locals):
            shape = Renaming(Substitution(places), arrays).indices.each(local.shape)
            arrays[local] = Buffer(f"v{number}", local.dtype, shape, local.space), ()
        renaming = Renaming(Substitution(places), arrays)

        def loop(old: Loop) -> Loop:
            new = places[old].atom
            assert isinstance(new, Loop)
            return new

        def head(old: Head) -> Head:
            if isinstance(old, For):
                return For(loop(old.loop), old.kind)
            assert isinstance(old, Digits)
            return Digits(tuple(map(loop, old.loops)), renaming.indices(old.flat))

        def statement(s: Stmt) -> Stmt:
            if isinstance(s, Nest):
                return Nest(tuple(map(head, s.heads)), statement(s.body))
            if isinstance(s, Alloc):
                return Alloc(arrays[s.buffer][0], statement(s.body))
            if isinstance(s, Store):
                return renaming.statement(s)
            if isinstance(s, Row):
                row = renaming.statement(s)
                assert isinstance(row, Row)
                lane = loop(s.lane)
                work = arrays[s.work][0] if s.work is not None else None
                return attrs.evolve(row, index=(*row.at, row.start + of(lane)), lane=lane, work=work)
            if isinstance(s, If):
                no = statement(s.no) if s.no is not None else None
                return If(renaming.indices.each(s.conditions), statement(s.yes), no)
            return rebuilt(s, statement)

        sizes = tuple(Symbol(0, k, f"s{k}") for k in range(len(self.sizes)))
        return Kernel(self.given.name, statement(self.given.body), buffers, sizes)
