"""Kernels become functions of their buffers and sizes; equal kernels become one function.

    for i < s3: mem1[i] = exp(in0[i])       ->      kernel map(in0: f32[s0], out0: f32[s0]):
    for i < s5: out0[i] = exp(mem0[i])                  for i0 < s0: out0[i0] = exp(in0[i0])
                                                    map(in0, mem1; s3)
                                                    map(mem0, out0; s5)

Buffers, sizes and loops are renumbered by first use, so that two kernels are equal if their texts are. If a kernel uses
a buffer only at constants along the first axes, its parameter is that part of the buffer: so steps of a loop that
Python has unrolled are one kernel, whichever row of an array each of them reads.

    for i < s3: mem1[i] = in0[7, i]         ->      map(in0[7], mem1; s3)

Kernels that differ only in numbers are one function, too, which loads them from parameters: in a loop that Python has
unrolled, such numbers follow from the number of the step.

    for i < s3: mem1[i] = mem0[i]*0.5       ->      map(mem0, 0.5, mem1; s3)
    for i < s3: mem2[i] = mem1[i]*0.25              map(mem1, 0.25, mem2; s3)

All later stages work once for each distinct kernel: passes over loops, printing, the C compiler. A layer that is
repeated, or recomputed for the gradient, costs as much as one layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import attrs

from harp.lower.loopir.effects import effects, free_names, head_indices, indices, symbols_of, used_whole
from harp.lower.loopir.effects import loads as all_loads
from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    Buffer,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Load,
    Nest,
    Repeat,
    Row,
    Space,
    Stmt,
    Store,
    parts,
    walk,
)
from harp.lower.loopir.nests import Renaming, rebuilt
from harp.lower.loopir.program import Call, Program, Subarray, plan, turns
from harp.lower.schedule.build import Built
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Fold, Index, Indirect, Loop, Symbol, indirect_in, of
from harp.trace.scalar.dtypes import bool_, f32, f64
from harp.trace.scalar.expr import Apply, Const, Expr, Position, rewrite
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

# The program: kernels and their calls. Each call gets the scratch memory that its kernel needs; arrays get slots of the
# arena.


def assemble(built: Built, sizes: Sequence[Symbol]) -> Program:
    """The program over these sizes; kernels that were not outlined are called one after the other."""
    built = built if built.calls else as_they_are(built)
    numbers = count()
    calls = tuple(_with_scratch(call, built.kernels[call.kernel], numbers) for call in built.calls)
    slots = plan((call.buffers for call in calls), turns(built.kernels, calls))
    return Program(
        built.inputs,
        built.outputs,
        tuple(sizes),
        slots,
        built.kernels,
        calls,
        built.donated,
        built.accesses,
        built.constants,
    )


def as_they_are(built: Built) -> Built:
    """Each kernel as a function of its own, whose parameters are the program's buffers and sizes that it uses."""
    kernels = []
    for kernel in built.kernels:
        touched = effects(kernel.body).touched
        buffers = tuple(buffer for buffer in touched if buffer not in kernel.scratch)
        kernels.append(attrs.evolve(kernel, buffers=buffers, sizes=symbols_of(kernel.body, touched)))
    calls = (Call(number, k.buffers, tuple(map(of, k.sizes))) for number, k in enumerate(kernels))
    return attrs.evolve(built, kernels=tuple(kernels), calls=tuple(calls))


def _with_scratch(call: Call, kernel: Kernel, numbers: Iterator[int]) -> Call:
    """The call with memory for the scratch arrays of its kernel."""
    sizes = Substitution(dict(zip(kernel.sizes, call.sizes, strict=True)))
    memory = (Buffer(f"work{next(numbers)}", b.dtype, sizes.each(b.shape), b.space) for b in kernel.scratch)
    return attrs.evolve(call, buffers=(*call.buffers, *memory))


# The names of a kernel's parameters.
_STEMS = {Space.INPUT: "in", Space.OUTPUT: "out", Space.SCRATCH: "mem"}
# The most parts of one buffer that are parameters of a kernel.
_PARTS = 8


def outline(built: Built) -> Built:
    """The distinct kernels, and a call for each original kernel."""
    numbers: dict[str, int] = {}
    kernels: list[Kernel] = []
    calls: list[Call] = []
    pool: dict[Const, Buffer] = {}
    for form, at in with_parameters([_outlined(kernel) for kernel in built.kernels], pool):
        number = numbers.setdefault(form.text, len(kernels))
        if number == len(kernels):
            kernels.append(form.kernel())
        passed = [at.get(buffer, Subarray(buffer)) for buffer in form.buffers]
        places = tuple(argument.at for argument in passed) if at else ()
        calls.append(Call(number, tuple(argument.buffer for argument in passed), tuple(map(of, form.sizes)), places))
    constants = {buffer: constant for constant, buffer in pool.items()}
    return attrs.evolve(built, kernels=tuple(kernels), calls=tuple(calls), constants=constants)


class Outlined(NamedTuple):
    """A kernel over parts of buffers, and these parts."""

    form: Form
    parts: dict[Buffer, Subarray]


def _outlined(kernel: Kernel) -> Outlined:
    body, parts = _over_parts(kernel.body)
    return Outlined(Form(kernel.with_body(body)), parts)


def _numbers_in(value: Expr) -> list[Const]:
    """The numbers that may be parameters, in order. Exponents are none: for some of them powers are products."""
    uses = [(e.op, a) for e in walk_expr((value,)) if isinstance(e, Apply) for a in e.operands]
    fixed = {a for op, a in uses if op is Op.POW}
    found = (a for a in dict.fromkeys(a for _, a in uses) if isinstance(a, Const) and a not in fixed)
    return [a for a in found if a.dtype in (f32, f64)]


def with_parameters(given: Sequence[Outlined], pool: dict[Const, Buffer]) -> list[Outlined]:
    """Where kernels differ only in numbers, these become parameters: parts of the buffers of `pool`."""
    alike: dict[str, dict[tuple[Const, ...], None]] = {}
    for form, _ in given:
        alike.setdefault(form.but_for_numbers, {})[form.numbers] = None
    columns = {text: list(zip(*rows, strict=True)) for text, rows in alike.items()}
    places = {text: [_place(column, of_form) for column in of_form] for text, of_form in columns.items()}
    return [_loading(one, places[one.form.but_for_numbers], pool) for one in given]


def _place(column: tuple[Const, ...], columns: Sequence[tuple[Const, ...]]) -> int | None:
    """The first of the equal columns; None for a column of one value."""
    return None if len({*column}) == 1 else columns.index(column)


def _loading(one: Outlined, places: Sequence[int | None], pool: dict[Const, Buffer]) -> Outlined:
    """The kernel with loads of those numbers that have a place among its parameters."""
    if not any(place is not None for place in places):
        return one
    form, parts = one.form, dict(one.parts)
    parameters: dict[int, Load] = {}
    for place in places:
        if place is not None and place not in parameters:
            number = form.numbers[place]
            known = pool.setdefault(number, Buffer(f"number{len(pool)}", number.dtype, (), Space.INPUT))
            parameter = Buffer("number", number.dtype, (), Space.INPUT)
            parts[parameter], parameters[place] = Subarray(known), Load(parameter, ())
    rest = iter(places)

    def statement(s: Stmt) -> Stmt:
        if not isinstance(s, Store):
            return rebuilt(s, statement)
        pairs = zip(_numbers_in(s.value), rest, strict=False)
        loads: dict[Expr, Expr] = {number: parameters[place] for number, place in pairs if place is not None}
        return Store(s.buffer, s.index, rewrite((s.value,), lambda e: loads.get(e, e))[0], s.reduce)

    return Outlined(Form(form.given.with_body(statement(form.given.body))), parts)


def _over_parts(body: Stmt) -> tuple[Stmt, dict[Buffer, Subarray]]:
    """The statement over parts of buffers, where possible, and these parts."""
    at: dict[Buffer, dict[tuple[Index, ...], None]] = {}
    whole = {*used_whole(body).touched}
    written: set[Buffer] = set()
    for s in walk(body):
        for load in all_loads(s):
            at.setdefault(load.buffer, {})[load.index] = None
            if load.conditions:  # the part may not exist
                whole.add(load.buffer)
        heads = [p for h in s.heads for p in head_indices(h)] if isinstance(s, Nest) else []
        whole |= {
            indirect.array
            for p in (*indices(s), *heads)
            for indirect in indirect_in(p)
            if isinstance(indirect.array, Buffer)
        }
        if isinstance(s, Store):
            at.setdefault(s.buffer, {})[s.index] = None
            written.add(s.buffer)
        elif isinstance(s, Repeat) and s.test is not None:
            whole.add(s.test.buffer)
    places: dict[Buffer, int] = {}
    parts: dict[tuple[Buffer, tuple[Index, ...]], Buffer] = {}
    for buffer, loads_at in at.items():
        first = min(map(_numbers_first, loads_at))
        rows = list(dict.fromkeys(index[:first] for index in loads_at))
        if (
            first
            and buffer.space in MEMORY
            and buffer not in whole
            and len(rows) <= (1 if buffer in written else _PARTS)
        ):
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

    return (statement(body) if places else body), {part: Subarray(b, row) for (b, row), part in parts.items()}


def _numbers_first(index: tuple[Index, ...]) -> int:
    """The number of leading indices that are constants."""
    return next((k for k, p in enumerate(index) if p.constant is None), len(index))


class Form:
    """A kernel with buffers, sizes and loops numbered by first use: its text, and the objects that are numbered. The
    loops round a part of a kernel are sizes for it.

    Index expressions are renamed before they are printed, since their canonical form depends on the numbers:
    max(n - m, 0) is n - m + max(m - n, 0), and which of the two it is depends on whether n comes before m.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.given = kernel
        used = effects(kernel.body)
        self.buffers = used.touched
        loops = (name for name in free_names(kernel.body) if isinstance(name, Loop))
        self.sizes: tuple[Symbol | Loop, ...] = (*symbols_of(kernel.body, self.buffers), *loops)
        self._places: dict[Atom, Index] = {size: of(Symbol(0, k, f"s{k}")) for k, size in enumerate(self.sizes)}
        self._arrays: dict[Buffer, tuple[Buffer, tuple[Index, ...]]] = {}
        names = {space: map(f"{stem}{{}}".format, count()) for space, stem in _STEMS.items()}
        shapes = Substitution(dict(self._places))
        for buffer in self.buffers:
            space = self._space(buffer, buffer in used.writes)
            self._arrays[buffer] = Buffer(next(names[space]), buffer.dtype, shapes.each(buffer.shape), space), ()
        # Loops and variables are added where they are bound, before they are used.
        self._renaming = Renaming(Substitution(self._places), self._arrays)
        self._indices: dict[Index, str] = {}
        self._loops, self._locals = count(), count()
        numbers: list[Const] = []
        self._numbers = numbers
        lines = [self._declared(self._arrays[buffer][0]) for buffer in self.buffers]
        self.but_for_numbers = "\n".join((*lines, *self._statement(kernel.body)))
        self.numbers = tuple(numbers)
        self.text = "\n".join((self.but_for_numbers, *(number.bits.hex() for number in numbers)))

    @staticmethod
    def _space(buffer: Buffer, is_written: bool) -> Space:
        """The space of a parameter. Where an array lives does not matter, but bools of the caller may be any byte."""
        if is_written:
            return Space.OUTPUT
        return Space.SCRATCH if buffer.dtype is bool_ and buffer.space is not Space.INPUT else Space.INPUT

    # --- the text

    def _declared(self, new: Buffer) -> str:
        return f"{new.space.value} {new.name} {new.dtype}[{', '.join(map(self._text, new.shape))}]"

    def _place(self, buffer: Buffer, indices: Sequence[Index]) -> str:
        return f"{self._arrays[buffer][0].name}{self._list(indices)}"

    def _list(self, indices: Sequence[Index]) -> str:
        return f"[{', '.join(map(self._index, indices))}]"

    def _index(self, p: Index) -> str:
        return self._text(self._renaming.indices(p))

    def _text(self, p: Index) -> str:
        """An index expression that has been renamed."""
        text = self._indices.get(p)
        if text is None:
            text = self._indices[p] = Fold(_total, _term, "{}//{}".format, "relu{}".format, self._leaf)(p)
        return text

    def _leaf(self, atom: Atom) -> str:
        if isinstance(atom, Indirect):
            at = ", ".join(map(self._text, atom.at))
            return f"indirect{atom.misses} {atom.array.name}[{at}] of {self._text(atom.size)}"
        assert isinstance(atom, (Loop, Symbol))
        return repr(atom)

    def _loop(self, old: Loop) -> str:
        """A loop where it is bound: its extent and its number."""
        extent = self._renaming.indices(old.extent)
        if old not in self._places:
            self._places[old] = of(Loop(next(self._loops), extent))
        return f"{self._text(extent)} {self._places[old]}"

    def _statement(self, s: Stmt) -> Iterator[str]:
        if isinstance(s, Nest):
            yield from map(self._head, s.heads)
        elif isinstance(s, Alloc):
            shape = self._renaming.indices.each(s.buffer.shape)
            local = Buffer(f"v{next(self._locals)}", s.buffer.dtype, shape, s.buffer.space)
            self._arrays[s.buffer] = local, ()
            yield self._declared(local)
        elif isinstance(s, Repeat):
            yield f"repeat {self._loop(s.loop)} while"
            yield from () if s.test is None else self._value(s.test)
            yield from (f"move {self._arrays[a][0].name} {self._arrays[b][0].name}" for a, b in s.moves)
        elif isinstance(s, Store):
            yield from self._value(s.value)
            yield f"store {s.reduce.name if s.reduce else ''} {self._place(s.buffer, s.index)}"
        elif isinstance(s, Row):
            lane = self._loop(s.lane)
            sources = " ".join(self._arrays[source][0].name for source in s.sources)
            work = self._arrays[s.work][0].name if s.work is not None else ""
            target = self._place(s.target, s.index)
            yield f"row {s.function.value} {s.reverse} {target} {lane} from {sources} by {work}"
        elif isinstance(s, ForeignCall):
            made, given = (" ".join(self._arrays[b][0].name for b in group) for group in (s.targets, s.sources))
            routine = s.routine if isinstance(s.routine, int) else s.routine.content()
            yield f"call {s.pure} {self._list(s.calls)} {made} from {given} by {self._list(s.sizes)} {routine}"
        elif isinstance(s, If):
            yield f"if {self._list(s.conditions)} else {s.no is not None}"
        inside = parts(s)
        yield f"{type(s).__name__} {len(inside)}"
        for part in inside:
            yield from self._statement(part)

    def _head(self, head: Head) -> str:
        if isinstance(head, For):
            return f"for {head.kind.value} {self._loop(head.loop)}"
        assert isinstance(head, Digits), "passes make other heads later"
        return f"digits {self._index(head.flat)} [{', '.join(map(self._loop, head.loops))}]"

    def _value(self, value: Expr) -> Iterator[str]:
        """A line for each node, which refers to its operands by line."""
        numbers: dict[Expr, int] = {}
        free = _numbers_in(value)
        self._numbers += free
        for e in walk_expr((value,)):
            numbers[e] = len(numbers)
            if isinstance(e, Load):
                fill = e.fill.bits.hex() if e.fill is not None else ""  # bits, since NaNs differ
                yield f"load {self._place(e.buffer, e.index)} if {self._list(e.conditions)} {fill}"
            elif isinstance(e, Position):
                yield f"position {self._index(e.index)}"
            elif isinstance(e, Const):
                yield f"const {e.dtype} {'' if e in free else e.bits.hex()}"
            else:
                assert isinstance(e, Apply)
                yield f"{e.op.name} {e.dtype} {[numbers[a] for a in e.operands]}"

    # --- the kernel

    def kernel(self) -> Kernel:
        """The kernel over the numbered buffers, sizes and loops."""
        buffers = tuple(self._arrays[buffer][0] for buffer in self.buffers)
        sizes = tuple(Symbol(0, k, f"s{k}") for k in range(len(self.sizes)))
        return Kernel(self.given.name, self._renamed(self.given.body), buffers, sizes)

    def _renamed(self, s: Stmt) -> Stmt:
        if isinstance(s, Nest):
            return Nest(tuple(map(self._renamed_head, s.heads)), self._renamed(s.body))
        if isinstance(s, Alloc):
            return Alloc(self._arrays[s.buffer][0], self._renamed(s.body))
        if isinstance(s, (Store, ForeignCall)):
            return self._renaming.statement(s)
        if isinstance(s, Repeat):
            test = None if s.test is None else self._renaming.value(s.test)
            assert test is None or isinstance(test, Load)
            moves = tuple((self._arrays[target][0], self._arrays[source][0]) for target, source in s.moves)
            return Repeat(self._renamed_loop(s.loop), test, self._renamed(s.body), moves)
        if isinstance(s, Row):
            row = self._renaming.statement(s)
            assert isinstance(row, Row)
            lane = self._renamed_loop(s.lane)
            work = self._arrays[s.work][0] if s.work is not None else None
            return attrs.evolve(row, index=(*row.at, row.start + of(lane)), lane=lane, work=work)
        if isinstance(s, If):
            no = self._renamed(s.no) if s.no is not None else None
            return If(self._renaming.indices.each(s.conditions), self._renamed(s.yes), no)
        return rebuilt(s, self._renamed)

    def _renamed_head(self, head: Head) -> Head:
        if isinstance(head, For):
            return For(self._renamed_loop(head.loop), head.kind)
        assert isinstance(head, Digits)
        return Digits(tuple(map(self._renamed_loop, head.loops)), self._renaming.indices(head.flat))

    def _renamed_loop(self, old: Loop) -> Loop:
        new = self._places[old].atom
        assert isinstance(new, Loop)
        return new


def _total(terms: list[str]) -> str:
    return f"({' + '.join(sorted(terms))})"


def _term(coefficient: int, factors: list[str]) -> str:
    return "*".join([str(coefficient), *sorted(factors)])
