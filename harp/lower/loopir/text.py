"""The loop IR as text for people: one indented line for each statement; the same in every process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

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
    Stmt,
    Store,
    place,
)
from harp.lower.loopir.program import Program, Subarray, formals
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.index.polynomial import Index, Loop
from harp.trace.scalar import expr


class TextLine(NamedTuple):
    """A line of text, indented by its depth, and the statement or head that it shows."""

    depth: int
    text: str
    of: Stmt | Head

    def __str__(self) -> str:
        return "  " * self.depth + self.text


class CodeLine(NamedTuple):
    """A line of a program, as a backend prints it.

    `loops` are those round it, from the outside in; `stores` says whether it stores the value of a statement, and
    `call` is the number of the program's call of a kernel that it makes.
    """

    depth: int
    text: str
    loops: tuple[For | Repeat, ...] = ()
    stores: bool = False
    call: int | None = None


def program_text(program: Program) -> str:
    """Parameters, slots of the arena, the distinct kernels, and the calls in order."""
    kernels = (kernel_text(kernel, f"{k} ") for k, kernel in enumerate(program.kernels))
    return "\n".join([*declarations(program), *kernels, *calls(program)])


def declarations(program: Program) -> list[str]:
    """The parameters of a program, and the slots of its arena."""
    lines = [f"program({', '.join(map(repr, program.sizes))})"]
    lines += [f"  input {declaration(b)}" for b in program.inputs]
    holds = {output: f", holds {program.inputs[k].name} at the start" for k, output in program.donated}
    lines += [f"  output {declaration(b)}{holds.get(k, '')}" for k, b in enumerate(program.outputs)]
    for number, slot in enumerate(program.scratch):
        for buffer, size in zip(slot.buffers, slot.sizes, strict=True):
            lines.append(f"  slot {number}: {declaration(buffer)}, {size} bytes")
    return lines


def calls(program: Program) -> list[str]:
    """The calls of a program in order."""
    lines = []
    known = {b: repr(number) for b, number in program.constants.items()}
    for call in program.calls:
        passed = (known.get(a.buffer) or _argument(a) for a in call.arguments)
        arguments = ", ".join((*passed, *map(repr, call.sizes)))
        lines.append(f"call {call.kernel} {program.kernels[call.kernel].name}({arguments})")
    return lines


def kernel_text(kernel: Kernel, number: str = "") -> str:
    """A kernel's parameters and loops."""
    return "\n".join([kernel_head(kernel, number), *map(str, _indented(statement_lines(kernel.body)))])


def kernel_head(kernel: Kernel, number: str = "") -> str:
    """A kernel's name and parameters."""
    parameters = ", ".join((*map(declaration, formals(kernel)), *map(repr, kernel.sizes)))
    return f"kernel {number}{kernel.name}" + (f"({parameters})" if parameters else "")


def _argument(argument: Subarray) -> str:
    return argument.buffer.name + (_list(argument.at) if argument.at else "")


def statement_lines(stmt: Stmt) -> list[TextLine]:
    """The lines of a statement in order."""
    return STATEMENTS[type(stmt)](stmt)


def _indented(lines: Iterable[TextLine]) -> list[TextLine]:
    return [line._replace(depth=line.depth + 1) for line in lines]


def _list(values: Sequence[object]) -> str:
    return f"[{', '.join(map(repr, values))}]"


def declaration(buffer: Buffer) -> str:
    """Name, dtype and shape of an array."""
    return f"{buffer.name}: {buffer.dtype}{_list(buffer.shape)}"


def _conditions(conditions: Sequence[Index]) -> str:
    return " and ".join(f"{c} >= 0" for c in conditions) or "true"


def _nest(stmt: Nest) -> list[TextLine]:
    lines = statement_lines(stmt.body)
    for head in reversed(stmt.heads):
        opens = isinstance(head, For)
        lines = [TextLine(0, HEADS[type(head)](head), head), *(_indented(lines) if opens else lines)]
    return lines


def _seq(stmt: Seq) -> list[TextLine]:
    return [line for part in stmt.parts for line in statement_lines(part)]


def _store(stmt: Store) -> list[TextLine]:
    sign = "=" if stmt.reduce is None else f"{stmt.reduce.name.lower()}="
    return [TextLine(0, f"{place(stmt.buffer, stmt.index)} {sign} {expr.text(stmt.value)}", stmt)]


def _row(stmt: Row) -> list[TextLine]:
    rows = ", ".join(f"{b.name}[{', '.join([*map(repr, stmt.at_of(b)), ':'])}]" for b in stmt.sources)
    more = " reversed" * stmt.reverse + (f" by {stmt.work.name}" if stmt.work is not None else "")
    lanes = f"{stmt.lane} < {stmt.lane.extent}"
    text = f"{place(stmt.target, stmt.index)} for {lanes} = {stmt.function.value}({rows}){more}"
    return [TextLine(0, text, stmt)]


def _callback(stmt: ForeignCall) -> list[TextLine]:
    targets = ", ".join(buffer.name for buffer in stmt.targets)
    names = [buffer.name for buffer in stmt.sources]
    operands, more = (names, "") if stmt.pure else (names[2:], f" where {names[1]}, after {names[0]}")
    routine = f"function {stmt.routine} of Python"
    if isinstance(stmt.routine, MatrixFunction):
        routine = stmt.routine.content()
    elif not isinstance(stmt.routine, int):
        routine, grid = f"kernel {stmt.routine.name}", zip(stmt.routine.grid, stmt.sizes, strict=False)
        more = " over " + ", ".join(f"{name} < {extent}" for name, extent in grid)
    return [TextLine(0, f"{targets} = {routine}({', '.join(operands)}){more}", stmt)]


def _if(stmt: If) -> list[TextLine]:
    lines = [TextLine(0, f"if {_conditions(stmt.conditions)}:", stmt), *_indented(statement_lines(stmt.yes))]
    return lines if stmt.no is None else [*lines, TextLine(0, "else:", stmt), *_indented(statement_lines(stmt.no))]


def _alloc(stmt: Alloc) -> list[TextLine]:
    declared = f"{stmt.buffer.space.value} {declaration(stmt.buffer)}"
    return [TextLine(0, declared, stmt), *statement_lines(stmt.body)]


def _repeat(stmt: Repeat) -> list[TextLine]:
    test = "" if stmt.test is None else f" while {expr.text(stmt.test)}"
    moves = (f"{target.name}, {source.name} = {source.name}, {target.name}" for target, source in stmt.moves)
    inside = [*statement_lines(stmt.body), *(TextLine(0, move, stmt) for move in moves)]
    return [TextLine(0, f"repeat {stmt.loop} < {stmt.loop.extent}{test}:", stmt), *_indented(inside)]


def _library_call(stmt: LibraryCall) -> list[TextLine]:
    lanes = f" of {stmt.lanes} lanes" if stmt.lanes else ""
    function = f" {stmt.function.value}" if stmt.function else ""
    return [TextLine(0, f"call {stmt.routine.value}{function}{lanes}:", stmt), *_indented(statement_lines(stmt.body))]


def _local_call(stmt: LocalCall) -> list[TextLine]:
    return [TextLine(0, "call of a function for equal loops:", stmt), *_indented(statement_lines(stmt.body))]


def _for(head: For) -> str:
    kind = "" if head.kind is LoopKind.PLAIN else f" {head.kind.value}"
    return f"for{kind} {head.loop} < {head.loop.extent}:"


def _let(head: Let) -> str:
    return f"let {head.symbol} = {head.index}"


def _radices(loops: Sequence[Loop]) -> str:
    return ", ".join(f"{loop} < {loop.extent}" for loop in loops)


def _digits(head: Digits) -> str:
    return f"digits ({_radices(head.loops)}) of {head.flat}"


STATEMENTS: Mapping[type[Stmt], Callable[..., list[TextLine]]] = {
    Nest: _nest,
    Seq: _seq,
    Store: _store,
    Row: _row,
    ForeignCall: _callback,
    If: _if,
    Alloc: _alloc,
    Repeat: _repeat,
    LibraryCall: _library_call,
    LocalCall: _local_call,
}
HEADS: Mapping[type[Head], Callable[..., str]] = {For: _for, Let: _let, Digits: _digits}
