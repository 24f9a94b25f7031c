"""The loop IR as text for people: one line a statement, indented; the same in every process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

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
    LoopKind,
    Nest,
    Prefetch,
    Region,
    Row,
    Segments,
    Seq,
    Stmt,
    Store,
    place,
)
from harp.lower.program import Program
from harp.trace import expr
from harp.trace.index import Index, Loop


def program_text(program: Program) -> str:
    """Parameters, derived sizes, slots of the arena, and the kernels in order."""
    lines = [f"program({', '.join(map(repr, program.sizes))})"]
    lines += [f"  input {_declaration(b)}" for b in program.inputs]
    holds = {output: f", holds {program.inputs[k].name} at the start" for k, output in program.donated}
    lines += [f"  output {_declaration(b)}{holds.get(k, '')}" for k, b in enumerate(program.outputs)]
    lines += [f"  let {let.symbol} = {let.index}" for let in program.lets]
    for number, slot in enumerate(program.scratch):
        for buffer, size in zip(slot.buffers, slot.sizes, strict=True):
            lines.append(f"  slot {number}: {_declaration(buffer)}, {size} bytes")
    return "\n".join([*lines, *map(kernel_text, program.kernels)])


def kernel_text(kernel: Kernel) -> str:
    """A kernel's loops."""
    return "\n".join([f"kernel {kernel.name}", *_indented(statement_lines(kernel.body))])


def statement_lines(stmt: Stmt) -> list[str]:
    return STATEMENTS[type(stmt)](stmt)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _list(values: Sequence[object]) -> str:
    return f"[{', '.join(map(repr, values))}]"


def _declaration(buffer: Buffer) -> str:
    slack = f" + {buffer.slack} slack" if buffer.slack else ""
    return f"{buffer.name}: {buffer.dtype}{_list(buffer.shape)}{slack}"


def _conditions(conditions: Sequence[Index]) -> str:
    return " and ".join(f"{c} >= 0" for c in conditions) or "true"


def _nest(stmt: Nest) -> list[str]:
    lines = statement_lines(stmt.body)
    for head in reversed(stmt.heads):
        opens = isinstance(head, (For, Segments))
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


def _call(stmt: Call) -> list[str]:
    texts = [a.name if isinstance(a, Buffer) else repr(a) for a in stmt.arguments]
    return [f"call {stmt.function}({', '.join(texts)})"]


def _region(stmt: Region) -> list[str]:
    return [f"region {stmt.name}:", *_indented(statement_lines(stmt.body))]


def _barrier(stmt: Barrier) -> list[str]:
    return [f"barrier {stmt.scope.value}"]


def _prefetch(stmt: Prefetch) -> list[str]:
    return [f"prefetch {stmt.buffer.name}{_list(stmt.index)}"]


def _bump(stmt: Bump) -> list[str]:
    return [f"bump {stmt.buffer.name} by {stmt.step}"]


def _for(head: For) -> str:
    kind = "" if head.kind is LoopKind.SERIAL else f" {head.kind.value}"
    return f"for{kind} {head.loop} < {head.loop.extent}:"


def _let(head: Let) -> str:
    return f"let {head.symbol} = {head.index}"


def _radices(loops: Sequence[Loop]) -> str:
    return ", ".join(f"{loop} < {loop.extent}" for loop in loops)


def _digits(head: Digits) -> str:
    return f"digits ({_radices(head.loops)}) of {head.flat}"


def _segments(head: Segments) -> str:
    run = f"{head.offset}, {head.length}"
    return f"for runs ({run}) of {head.loop} < {head.loop.extent}, {_digits(head.digits)}:"


STATEMENTS: Mapping[type[Stmt], Callable[..., list[str]]] = {
    Nest: _nest,
    Seq: _seq,
    Store: _store,
    Row: _row,
    If: _if,
    Alloc: _alloc,
    Call: _call,
    Region: _region,
    Barrier: _barrier,
    Prefetch: _prefetch,
    Bump: _bump,
}
HEADS: Mapping[type[Head], Callable[..., str]] = {For: _for, Let: _let, Digits: _digits, Segments: _segments}
