"""The loop IR as text for people: one line a statement, indented; the same in every process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
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
    Stmt,
    Store,
    place,
)
from harp.lower.loopir.program import Program, Subarray, formals
from harp.trace.index.polynomial import Index, Loop
from harp.trace.scalar import expr


def program_text(program: Program) -> str:
    """Parameters, slots of the arena, the distinct kernels, and the calls in order."""
    lines = [f"program({', '.join(map(repr, program.sizes))})"]
    lines += [f"  input {_declaration(b)}" for b in program.inputs]
    holds = {output: f", holds {program.inputs[k].name} at the start" for k, output in program.donated}
    lines += [f"  output {_declaration(b)}{holds.get(k, '')}" for k, b in enumerate(program.outputs)]
    for number, slot in enumerate(program.scratch):
        for buffer, size in zip(slot.buffers, slot.sizes, strict=True):
            lines.append(f"  slot {number}: {_declaration(buffer)}, {size} bytes")
    lines += [kernel_text(kernel, f"{k} ") for k, kernel in enumerate(program.kernels)]
    for call in program.calls:
        given = ", ".join((*map(_argument, call.arguments), *map(repr, call.sizes)))
        lines.append(f"call {call.kernel} {program.kernels[call.kernel].name}({given})")
    return "\n".join(lines)


def kernel_text(kernel: Kernel, number: str = "") -> str:
    """A kernel's parameters and loops."""
    parameters = ", ".join((*map(_declaration, formals(kernel)), *map(repr, kernel.sizes)))
    head = f"kernel {number}{kernel.name}" + (f"({parameters})" if parameters else "")
    return "\n".join([head, *_indented(statement_lines(kernel.body))])


def _argument(argument: Subarray) -> str:
    return argument.buffer.name + (_list(argument.at) if argument.at else "")


def statement_lines(stmt: Stmt) -> list[str]:
    return STATEMENTS[type(stmt)](stmt)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _list(values: Sequence[object]) -> str:
    return f"[{', '.join(map(repr, values))}]"


def _declaration(buffer: Buffer) -> str:
    return f"{buffer.name}: {buffer.dtype}{_list(buffer.shape)}"


def _conditions(conditions: Sequence[Index]) -> str:
    return " and ".join(f"{c} >= 0" for c in conditions) or "true"


def _nest(stmt: Nest) -> list[str]:
    lines = statement_lines(stmt.body)
    for head in reversed(stmt.heads):
        opens = isinstance(head, For)
        lines = [HEADS[type(head)](head), *(_indented(lines) if opens else lines)]
    return lines


def _seq(stmt: Seq) -> list[str]:
    return [line for part in stmt.parts for line in statement_lines(part)]


def _store(stmt: Store) -> list[str]:
    sign = "=" if stmt.reduce is None else f"{stmt.reduce.name.lower()}="
    return [f"{place(stmt.buffer, stmt.index)} {sign} {expr.text(stmt.value)}"]


def _row(stmt: Row) -> list[str]:
    given = ", ".join(f"{b.name}[{', '.join([*map(repr, stmt.at_of(b)), ':'])}]" for b in stmt.sources)
    more = " reversed" * stmt.reverse + (f" by {stmt.work.name}" if stmt.work is not None else "")
    lanes = f"{stmt.lane} < {stmt.lane.extent}"
    return [f"{place(stmt.target, stmt.index)} for {lanes} = {stmt.function.value}({given}){more}"]


def _if(stmt: If) -> list[str]:
    lines = [f"if {_conditions(stmt.conditions)}:", *_indented(statement_lines(stmt.yes))]
    return lines if stmt.no is None else [*lines, "else:", *_indented(statement_lines(stmt.no))]


def _alloc(stmt: Alloc) -> list[str]:
    return [f"{stmt.buffer.space.value} {_declaration(stmt.buffer)}", *statement_lines(stmt.body)]


def _repeat(stmt: Repeat) -> list[str]:
    test = "" if stmt.test is None else f" while {expr.text(stmt.test)}"
    return [f"repeat {stmt.loop} < {stmt.loop.extent}{test}:", *_indented(statement_lines(stmt.body))]


def _library_call(stmt: LibraryCall) -> list[str]:
    lanes = f" of {stmt.lanes} lanes" if stmt.lanes else ""
    return [f"call {stmt.routine.value}{lanes}:", *_indented(statement_lines(stmt.body))]


def _for(head: For) -> str:
    kind = "" if head.kind is LoopKind.PLAIN else f" {head.kind.value}"
    return f"for{kind} {head.loop} < {head.loop.extent}:"


def _let(head: Let) -> str:
    return f"let {head.symbol} = {head.index}"


def _radices(loops: Sequence[Loop]) -> str:
    return ", ".join(f"{loop} < {loop.extent}" for loop in loops)


def _digits(head: Digits) -> str:
    return f"digits ({_radices(head.loops)}) of {head.flat}"


STATEMENTS: Mapping[type[Stmt], Callable[..., list[str]]] = {
    Nest: _nest,
    Seq: _seq,
    Store: _store,
    Row: _row,
    If: _if,
    Alloc: _alloc,
    Repeat: _repeat,
    LibraryCall: _library_call,
}
HEADS: Mapping[type[Head], Callable[..., str]] = {For: _for, Let: _let, Digits: _digits}
