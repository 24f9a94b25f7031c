"""Statements and heads of the loop IR as text of a language like C, one method each.

A language derives from `Statements`: it places large arrays, and overrides what it prints differently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import attrs

from harp.backends.c_family import fast_path, library, turns
from harp.backends.c_family.index import IndexPrinter, division, times
from harp.backends.c_family.scalar import TYPES, accumulation, operation_headers
from harp.backends.c_family.values import Lines, ValuePrinter, bare
from harp.errors import VerificationError
from harp.lower.loopir.effects import effects, head_names, indices
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
    flat,
    is_endless,
    walk,
)
from harp.lower.loopir.program import formals
from harp.lower.loopir.text import CodeLine
from harp.lower.reductions.accumulators import LANES, stay_in_registers
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Indirect,
    Loop,
    Relu,
    Symbol,
    indirect_in,
    of,
    split_linear,
    value_atoms,
)

# Local arrays that are larger, or whose size is not constant, are not variables.
_STACK_BYTES = 1 << 14
_UNROLL_MOST = 64
# The names of a kernel's parameters.
_STEMS = {Space.INPUT: "in", Space.OUTPUT: "out", Space.SCRATCH: "mem"}
# The unroll factor of loops over accumulators: at least the number of vectors that such a loop becomes, and less than
# its iterations, since compilers would then unroll elements instead of making vectors.
_VECTORS = LANES // 2
# The most steps of a block of a loop that ends by a test: the number of its steps is unknown.
STEPS = 256


@attrs.define
class _Scope:
    """The body of a loop, which binds names, and whose declarations end at line `end`: variables for quotients and
    maxima that loops inside do not change."""

    bound: tuple[Atom, ...]
    depth: int
    loops: tuple[For | Repeat, ...]
    end: int
    kept: dict[Atom, str]


class Statements(ABC):
    """Prints statements as the lines of one function.

    `buffers` and `names` are its parameters, `constant` those buffers that it only reads.
    """

    # How each statement is printed.
    statements: ClassVar[Mapping[type[Stmt], Callable[..., None]]]

    def __init__(self, buffers: Mapping[Buffer, str], names: Mapping[Atom, str], constant: frozenset[Buffer]) -> None:
        self.lines = Lines()
        self._constant = constant
        self._counts: dict[str, int] = {}
        self._buffers = dict(buffers)
        self.used: set[str] = set()  # the names of sizes, loops and lets that lines use
        self._scalars: set[Buffer] = set()
        self._names = dict(names)
        self._taken = set(names.values()) | set(buffers.values())
        self._strides: dict[tuple[Index, ...], str] = {}  # by the extents behind an axis
        self._given = frozenset(names)
        self._kept: dict[Atom, str] = {}
        self._loops = 0  # how many are open
        self._counted: dict[int, Digits] = {}  # those of a loop, by the depth of its lines
        self._questions: dict[int, str] = {}  # the check at the end of a loop over blocks, by the depth of that line
        self._stores = False  # whether a store is printed
        self._scopes = [_Scope((*names,), 1, (), 0, {})]  # that of the function, then those of open loops
        self._index = IndexPrinter(self._name_of, self._element, self._keep)
        self._values = ValuePrinter(self._index, self._element, self.lines)
        self._printer = library.Printer(self._index.text, self._element, self._offset, self._buffers.__getitem__)

    # --- names

    def _name_of(self, atom: Atom) -> str:
        name = self._names.get(atom)
        if name is None:
            raise VerificationError(f"{atom!r} is used where no loop or let binds it")
        self.used.add(name)
        return name

    def _at_start(self, text: str, level: int = 0) -> None:
        """Declare a variable before all loops, or at the start of a scope, behind the others there."""
        scope = self._scopes[level]
        self.lines.lines.insert(scope.end, CodeLine(scope.depth, text, scope.loops))
        for behind in self._scopes[level:]:
            behind.end += 1

    def _enter(self, *bound: Atom) -> None:
        """The lines that follow have these names."""
        self._scopes.append(_Scope(bound, self.lines.depth, self.lines.loops, len(self.lines.lines), {}))

    def _is_given(self, p: Index) -> bool:
        """Whether the parameters say the value."""
        return all(a in self._given or isinstance(a, (FloorDiv, Relu)) for a in value_atoms(p))

    def _keep(self, atom: Atom, text: str) -> str:
        """Quotients and maxima are computed before all loops that do not change them: compilers hoist no division that
        may be by 0, and take time for each copy of an expression."""
        if isinstance(atom, Indirect):
            return self._kept.get(atom) or text
        kept = next((scope.kept[atom] for scope in self._scopes if atom in scope.kept), None)
        if kept is not None:
            return kept
        names = [a for a in value_atoms(of(atom)) if not isinstance(a, (FloorDiv, Relu))]
        levels = {a: number for number, scope in enumerate(self._scopes) for a in scope.bound}
        level = max((levels.get(a, len(self._scopes)) for a in names), default=0)
        if level == len(self._scopes) or (self._stores and level and level == len(self._scopes) - 1):
            return text
        name = self._scopes[level].kept[atom] = self._fresh("k")
        self._at_start(f"const int64_t {name} = {bare(text)};", level)
        return name

    def _hold(self, stmt: Nest) -> list[Atom]:
        """Indices read from single elements, such as the number of a step, are loaded once before a nest that does not
        change them: compilers assume that memory changes between iterations."""
        inside = list(walk(stmt))
        changed = effects(stmt).writes | {part.buffer for part in inside if isinstance(part, Alloc)}
        read = {atom for part in inside for p in indices(part) for atom in indirect_in(p)}
        unchanged = [a for a in read if not a.at and a.array not in changed and a.array in self._buffers]
        held: list[Atom] = [a for a in sorted(unchanged, key=lambda a: a.key) if a not in self._kept]
        for atom in held:
            text, name = self._index.text(of(atom)), self._fresh("place")
            self.lines.add(f"const int64_t {name} = {bare(text)};")
            self._kept[atom] = name
        return held

    def _fresh(self, stem: str) -> str:
        number = self._counts.get(stem, 0)
        while f"{stem}{number}" in self._taken:
            number += 1
        self._counts[stem] = number + 1
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    def _bind(self, atom: Loop | Symbol) -> str:
        """The name of a loop or let. All places that bind it share one name, since each has its own block."""
        name = self._names.get(atom)
        if name is None:
            fresh = f"i{atom.axis}" if isinstance(atom, Loop) else ""
            if not fresh or fresh in self._taken:
                fresh = self._fresh("i" if isinstance(atom, Loop) else "d")
            self._taken.add(fresh)
            name = self._names[atom] = fresh
        return name

    # --- memory

    def _stride(self, behind: tuple[Index, ...]) -> str:
        """Row-major: the stride of an axis is that of the next one times its extent. A product is a variable before all
        loops, shared by equal shapes."""
        text = "1"
        for axis in reversed(range(len(behind))):
            known = self._strides.get(behind[axis:])
            if known is None:
                known = times(text, self._index.factor(behind[axis]))
                if ("*" in known or "(" in known) and all(map(self._is_given, behind[axis:])):
                    name = self._fresh("w")
                    self._at_start(f"const int64_t {name} = {bare(known)};")
                    known = name
                self._strides[behind[axis:]] = known
            text = known
        return text

    def _offset(self, buffer: Buffer, index: tuple[Index, ...]) -> str:
        if len(index) != len(buffer.shape):
            raise VerificationError(f"{buffer.name} of rank {len(buffer.shape)} is indexed by {list(index)}")
        whole = flat(buffer, index)
        if whole is not None:
            return self._index.text(whole)
        terms = []
        for axis, p in enumerate(index, 1):
            if p.terms:
                stride = self._stride(buffer.shape[axis:])
                terms.append(self._index.text(p) if stride == "1" else times(self._index.factor(p), stride))
        return " + ".join(terms) or "0"

    def _element(self, buffer: Buffer, index: tuple[Index, ...]) -> str:
        if buffer not in self._buffers:
            raise VerificationError(f"{buffer.name} is used where it is not allocated")
        offset = self._offset(buffer, index)
        name = self._buffers[buffer]
        return name if buffer in self._scalars else f"{name}[{offset}]"

    # --- statements

    def statement(self, stmt: Stmt, block: bool = False) -> None:
        """Print a statement; `block` says that it stands alone between braces."""
        self.statements[type(stmt)](self, stmt, block)

    def _nest(self, stmt: Nest, block: bool) -> None:
        depth, loops, scopes = self.lines.depth, self._loops, len(self._scopes)
        is_loop = bool(stmt.heads) and isinstance(stmt.heads[0], For)
        if stmt.heads and not block and (not is_loop or counted_digits(stmt.heads[0], stmt.heads[1:])):
            self.lines.open("")  # a neighbour may bind the same name
        held = self._hold(stmt) if stmt.heads else []
        again = fast_path.runs_again(stmt)
        for place, head in enumerate(stmt.heads[:-1] if again else stmt.heads):
            behind = stmt.heads[place + 1 :]
            counted = counted_digits(head, behind)
            if isinstance(head, For) and counted is not None:
                self._start_digits(counted, Substitution({head.loop: ZERO})(counted.flat))
            work = self._work_of_step(head, Nest(behind, stmt.body)) if isinstance(head, For) else None
            if isinstance(head, For) and work is not None:
                self._blocks(head, stmt.body, work)
            else:
                HEADS[type(head)](self, head, stmt.body)
            self._enter(*head_names(head))
            if counted is not None:
                self._counted[self.lines.depth] = counted
            if isinstance(head, For) and head.kind is LoopKind.SEARCH:
                self._stop(head.loop, behind, stmt.body)
        if again:
            self._twice(Nest(stmt.heads[-1:], stmt.body))
        else:
            self.statement(stmt.body, block or bool(stmt.heads))
        del self._scopes[scopes:]
        self._close(depth)
        self._loops = loops
        for atom in held:
            del self._kept[atom]

    def _twice(self, loop: Nest) -> None:
        """The loop for common arguments, and, if it noted others, the loop for all arguments."""
        depth, scopes = self.lines.depth, len(self._scopes)
        self.lines.open("")
        self.lines.add(f"{fast_path.NOTE};")
        for is_near, head in ((True, ""), (False, f"if ({fast_path.NOTED})")):
            if head:
                self.lines.open(head)
            self._values.near = is_near
            inner = self.lines.depth
            HEADS[For](self, loop.heads[0], loop.body)
            self._enter(*head_names(loop.heads[0]))
            self.statement(loop.body, True)
            del self._scopes[scopes:]
            self._close(inner)
        self._close(depth)

    def _close(self, depth: int) -> None:
        while self.lines.depth > depth:
            if self.lines.depth in self._counted:
                self._count(self._counted.pop(self.lines.depth))
            self.lines.close()
            if self.lines.depth in self._questions:
                self.lines.add(self._questions.pop(self.lines.depth))

    def _stop(self, position: Loop, lanes: Sequence[Head], store: Stmt) -> None:
        """Leave the search if no stored element is larger than this position."""
        assert isinstance(store, Store)
        left, depth = self._fresh("left"), self.lines.depth
        self.lines.add(f"int64_t {left} = 0;")
        for lane in lanes:
            HEADS[type(lane)](self, lane, store)
        self.lines.add(f"{left} |= {self._element(store.buffer, store.index)} > {self._name_of(position)};")
        self._close(depth)
        self.lines.add(f"if (!{left}) break;")

    def _library_call(self, stmt: LibraryCall, block: bool) -> None:
        self._called(library.call(stmt, self._printer))

    def _local_call(self, stmt: LocalCall, block: bool) -> None:
        """The loops themselves, in a language without functions in kernels."""
        self.statement(stmt.body, block)

    def _row(self, stmt: Row, block: bool) -> None:
        self._called(library.row_call(stmt, self._printer))

    def _called(self, called: library.Called) -> None:
        self.lines.uses.update(called.uses)
        self.lines.fails |= called.fails
        for line in called.lines:
            self.lines.add(line, stores=True)

    def _seq(self, stmt: Seq, block: bool) -> None:
        for part in stmt.parts:
            self.statement(part, block and len(stmt.parts) == 1)

    def _store(self, stmt: Store, block: bool) -> None:
        self._stores = True
        value = self._values.text(stmt.value)
        target = self._element(stmt.buffer, stmt.index)
        if stmt.reduce is not None:
            if len(target) > 40:
                name = self._fresh("at")
                self.lines.add(f"const int64_t {name} = {self._offset(stmt.buffer, stmt.index)};")
                target = f"{self._buffers[stmt.buffer]}[{name}]"
            self.lines.uses.update(operation_headers(stmt.reduce.value, stmt.buffer.dtype))
            value = accumulation(stmt.reduce.value, stmt.buffer.dtype, target, value)
        self.lines.add(f"{target} = {bare(value)};", stores=True)
        self._stores = False

    def _if(self, stmt: If, block: bool) -> None:
        self.lines.open(f"if ({self._index.conditions(stmt.conditions)})")
        self.statement(stmt.yes, True)
        if stmt.no is not None:
            self._else()
            self.statement(stmt.no, True)
        self.lines.close()

    def _else(self) -> None:
        self.lines.other()

    def _alloc(self, stmt: Alloc, block: bool) -> None:
        buffer = stmt.buffer
        self._buffers[buffer] = name = self._fresh(buffer.space.value)
        ctype = TYPES[buffer.dtype]
        if not buffer.shape:
            self._scalars.add(buffer)
            self.lines.add(f"{ctype} {name};")
            self.statement(stmt.body, block)
            return
        if not block:
            self.lines.open("")
        count = constant_count(buffer)
        if count is not None and count * buffer.dtype.itemsize <= _STACK_BYTES:
            self.lines.add(f"_Alignas(64) {ctype} {name}[{max(count, 1)}];")
            self.statement(stmt.body, True)
        else:
            self._large(stmt, ctype, name)
        if not block:
            self.lines.close()

    @abstractmethod
    def _large(self, stmt: Alloc, ctype: str, name: str) -> None:
        """Allocate an array that does not fit on the stack, around the statements that use it."""

    def _repeat(self, stmt: Repeat, block: bool) -> None:
        name = self._bind(stmt.loop)
        test = "" if stmt.test is None else f" && {self._element(stmt.test.buffer, stmt.test.index)}"
        test += " && status == 0" if any(isinstance(s, ForeignCall) for s in walk(stmt.body)) else ""
        home = {buffer: self._buffers[buffer] for buffer in turns.members(stmt.moves)}
        at = {buffer: self._fresh("at") for buffer in home}
        for buffer, place in home.items():
            self.lines.add(f"{TYPES[buffer.dtype]} *{at[buffer]} = {place};")
        depth, scopes, end = self.lines.depth, len(self._scopes), bare(self._index.text(stmt.loop.extent))
        work = self._work_of_step(stmt, stmt.body)
        if work is None:
            self.lines.open(f"for (int64_t {name} = 0; {name} < {end}{test}; ++{name})", stmt)
        else:
            most = f"{name} + {STEPS}" if is_endless(stmt) else end
            stop = self._open_blocks(stmt, name, end, test, most, work)
            self._open_block(name, end, test, stop)
        self._loops += 1
        self._enter(stmt.loop)
        self._step(stmt, at)
        self._loops -= 1
        del self._scopes[scopes:]
        self._close(depth)
        for chain in turns.chains(stmt.moves):
            first = chain[0][0]
            size = "*".join([*map(self._index.factor, first.shape), f"sizeof(*{home[first]})"])
            for line in turns.settled(chain, at, home, size):
                self.lines.add(line)

    def _work_of_step(self, loop: For | Repeat, step: Stmt) -> str | None:
        """The work of a step of a loop that checks for interrupts; None for loops that do not."""
        return None

    def _blocks(self, head: For, body: Stmt, work: str) -> None:
        """The head of a loop that checks for interrupts."""
        name, end = self._bind(head.loop), bare(self._index.text(head.loop.extent))
        stop = self._open_blocks(head, name, end, "", end, work)
        self._hint(head, body)
        self._open_block(name, end, "", stop)
        self._loops += 1

    def _open_blocks(self, loop: For | Repeat, name: str, end: str, test: str, most: str, work: str) -> str:
        """Begin a loop over blocks of steps; a block ends at `most` at the latest. Returns the name of the block's end.

        Interrupts are checked between blocks: the inner loop has no call, and keeps carried values in registers."""
        self.lines.uses.add("harp_interrupted")
        self.lines.fails = True
        stop = self._fresh("stop")
        self.lines.open(f"for (int64_t {name} = 0; {name} < {end} && status == 0{test};)", loop)
        self.lines.add(f"const int64_t {stop} = harp_stop({name}, {most}, {work});")
        return stop

    def _open_block(self, name: str, end: str, test: str, stop: str) -> None:
        self.lines.open(f"for (; {name} < {stop}{test}; ++{name})")
        question = f"if ({name} == {stop} && {name} < {end} && harp_interrupted()) status = 1;"
        self._questions[self.lines.depth - 1] = question

    def _step(self, stmt: Repeat, at: Mapping[Buffer, str]) -> None:
        """One iteration, on arrays where its pointers say."""
        home = {buffer: self._buffers[buffer] for buffer in at}
        for buffer, pointer in at.items():
            self._buffers[buffer] = local = self._fresh("now")
            self.lines.add(f"{TYPES[buffer.dtype]} *restrict {local} = {pointer};")
        self.statement(stmt.body, True)
        for line in turns.exchanged(stmt.moves, self._buffers, at):
            self.lines.add(line)
        self._buffers |= home

    # --- heads

    def _for(self, head: For, body: Stmt) -> None:
        name = self._bind(head.loop)
        self._hint(head, body)
        self.lines.open(self._loop(head, name), head)
        self._loops += 1

    def _hint(self, head: For, body: Stmt) -> None:
        """Pragmas for the next loop."""
        count = head.loop.extent.constant
        if head.kind is LoopKind.UNROLL and count is not None and 1 < count <= _UNROLL_MOST:
            self.lines.add(f"HARP_UNROLL({count})")
        elif head.kind is LoopKind.SIMD:
            if not any(isinstance(s, Store) and s.reduce for s in walk(body)):
                self._independent(body)
            if stay_in_registers(head.loop, body):
                self.lines.add(f"HARP_UNROLL({_VECTORS})")

    def _independent(self, body: Stmt) -> None:
        """Tell the compiler that the iterations of the next loop are independent."""
        self.lines.add("HARP_INDEPENDENT")

    def _loop(self, head: For, name: str) -> str:
        return f"for (int64_t {name} = 0; {name} < {bare(self._index.text(head.loop.extent))}; ++{name})"

    def _let(self, head: Let, body: Stmt) -> None:
        text = bare(self._index.text(head.index))
        name = self._bind(head.symbol)
        self.lines.add(f"const int64_t {name} = {text};")

    def _digits(self, head: Digits, body: Stmt) -> None:
        """The last digit is the remainder; the first one is the quotient that remains."""
        if head in self._counted.values():
            return
        divide = division(head)
        rest = self._index.factor(head.flat)
        for loop in head.loops[:0:-1]:
            radix = self._index.factor(loop.extent)
            name, high = self._bind(loop), self._fresh("q")
            self.lines.add(f"const int64_t {high} = {divide.format(rest, f'({radix})' if '*' in radix else radix)};")
            self.lines.add(f"const int64_t {name} = {rest} - {high}*{radix};")
            rest = high
        if head.loops:
            name = self._bind(head.loops[0])
            self.lines.add(f"const int64_t {name} = {bare(rest)};")

    def _start_digits(self, head: Digits, flat: Index) -> None:
        """The digits of the first number that is counted, in variables of their own."""
        rest = self._index.factor(flat)
        for loop in head.loops[:0:-1]:
            radix, name, high = self._index.factor(loop.extent), self._bind(loop), self._fresh("q")
            self.lines.add(f"const int64_t {high} = {'0' if flat is ZERO else f'harp_quotient({rest}, {radix})'};")
            self.lines.add(f"int64_t {name} = {'0' if flat is ZERO else f'{rest} - {high}*{radix}'};")
            rest = high
        self.lines.add(f"int64_t {self._bind(head.loops[0])} = {rest};")

    def _count(self, head: Digits) -> None:
        """The digits of the next number: the last one is one more, and carries."""
        depth = self.lines.depth
        for loop in head.loops[:0:-1]:
            self.lines.open(f"if (++{self._bind(loop)} == {self._index.factor(loop.extent)})")
            self.lines.add(f"{self._bind(loop)} = 0;")
        self.lines.add(f"++{self._bind(head.loops[0])};")
        while self.lines.depth > depth:
            self.lines.close()


def counted_digits(head: Head, behind: Sequence[Head]) -> Digits | None:
    """The digits of start + i for a loop over i, which are counted along instead of divided for each i."""
    digits = behind[0] if behind else None
    if not isinstance(head, For) or head.kind is not LoopKind.PLAIN or not isinstance(digits, Digits):
        return None
    parts = split_linear(digits.flat, head.loop)
    counts = parts is not None and parts[0] is ONE and nonnegative(parts[1]) and len(digits.loops) > 1
    return digits if counts else None


# A statement without a row here, or in the table of a language, cannot be printed.
STATEMENTS: Mapping[type[Stmt], Callable[..., None]] = {
    Nest: Statements._nest,
    Seq: Statements._seq,
    Store: Statements._store,
    Row: Statements._row,
    If: Statements._if,
    Alloc: Statements._alloc,
    Repeat: Statements._repeat,
    LibraryCall: Statements._library_call,
    LocalCall: Statements._local_call,
}
Statements.statements = STATEMENTS
HEADS: Mapping[type[Head], Callable[..., None]] = {
    For: Statements._for,
    Let: Statements._let,
    Digits: Statements._digits,
}


def parameters(kernel: Kernel) -> dict[Buffer | Atom, str]:
    """The names of a kernel's buffers and sizes, in the order of calls. They follow positions, so kernels that differ
    only in names have one text."""
    names: dict[Buffer | Atom, str] = {}
    counts = dict.fromkeys(_STEMS, 0)
    for buffer in formals(kernel):
        names[buffer] = f"{_STEMS[buffer.space]}{counts[buffer.space]}"
        counts[buffer.space] += 1
    return names | {size: f"s{k}" for k, size in enumerate(kernel.sizes)}


def constant_count(buffer: Buffer) -> int | None:
    """The number of elements, if it is constant."""
    total = 1
    for extent in buffer.shape:
        if extent.constant is None:
            return None
        total *= max(extent.constant, 0)
    return total
