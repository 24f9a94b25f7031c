"""A parallel loop in C: a function of a range of its iterations, and a call of whatever runs such functions.

    struct harp_kernel_part0 { const float *in0; float *out0; int64_t s0; int status; };
    static void harp_kernel_part0(void *given, int64_t begin, int64_t end) { ... for (i0 = begin; i0 < end; ++i0) ... }
    ...
    struct harp_kernel_part0 part0 = { .in0 = in0, .out0 = out0, .s0 = s0 };
    harp_parallel(harp_kernel_part0, &part0, count, work);

`work` is an estimate of the scalar operations in all iterations, by which the runner decides whether threads are worth
their while. It depends on the sizes only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from harp.backends.c.emit.function import STATIC, define
from harp.backends.c_family.rows import PARALLEL
from harp.backends.c_family.values import Line, Lines, words
from harp.lower.cost_model import count_operations
from harp.lower.loopir.loops import (
    PRODUCTS,
    Alloc,
    Digits,
    For,
    If,
    Let,
    LibraryCall,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, value_atoms

# Multiply-adds of a product that cost as much as one operation elsewhere: its operands are in registers.
_PRODUCT = 8
# Operations for each element of a row that is sorted or searched.
_ROW = 32

# What declares that something runs the parts; and what does so at first.
HEADER = PARALLEL
DEFINITION = """\
static void harp_serial(harp_part *part, void *given, int64_t count, double work)
{
    (void)work;
    part(given, 0, count);
}
void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work) = harp_serial;"""


class Part(NamedTuple):
    """The struct and the function; `fields` are what the struct holds, by the names that they have outside."""

    name: str
    text: str
    fields: tuple[str, ...]
    fallible: bool


def part(name: str, fields: Mapping[str, str], lines: Lines) -> Part:
    """A function with these lines, which use `begin`, `end` and some of the fields; these are declarations by name."""
    text = {word for line in lines.pruned() for word in words(line.text)}
    used = tuple(field for field in fields if field in text)
    whole = Lines()
    whole.add(f"struct {name} *const args = given;", "args")
    for field in used:
        whole.add(f"{fields[field]} = args->{field};", field)
    whole.lines += lines.lines
    if "status" in text:
        whole.add("if (status != 0) __atomic_store_n(&args->status, 1, __ATOMIC_RELAXED);")
    given = [("given", "void *given"), ("begin", "int64_t begin"), ("end", "int64_t end")]
    function = define(name, given, whole, "Some iterations of the parallel loop below.", drop=False, result="void")
    members = [f"    {fields[field].replace('restrict ', '')};" for field in used]
    struct = "\n".join([f"struct {name} {{", *members, "    int status;", "};"])
    return Part(name, f"{struct}\n{function.definition(STATIC)}", used, "status" in text)


def hoisted(stmt: Nest) -> Stmt:
    """Memory that every iteration has for itself is taken once, if its size is the same for all.

    for i { take memory; body }  ->  take memory; for i { body }
    """
    if not isinstance(stmt.body, Alloc) or stmt.body.buffer.space is not Space.THREAD:
        return stmt
    buffer = stmt.body.buffer
    if any(isinstance(atom, Loop) for extent in buffer.shape for atom in value_atoms(extent)):
        return stmt
    return Alloc(buffer, hoisted(Nest(stmt.heads, stmt.body.body)))


def calls(part: Part, pointed: Set[str], count: str, work: str, depth: int) -> list[Line]:
    """The lines that run all iterations; of the variables in `pointed` the part takes the address."""
    values = [f".{field} = {'&' if field in pointed else ''}{field}" for field in part.fields]
    text = f"struct {part.name} args = {{ {', '.join([*values, '.status = 0'])} }};"
    run = f"harp_parallel({part.name}, &args, {count}, {work});"
    status = ["status |= args.status;"] if part.fallible else []
    return [Line(depth, "{"), *(Line(depth + 1, line) for line in (text, run, *status)), Line(depth, "}")]


def work(stmt: Stmt, text: Callable[[Index], str]) -> str:
    """The operations of a statement, as a number of C; loops count as in their first round."""
    return _Work(text).of(stmt, {})


class _Work:
    def __init__(self, text: Callable[[Index], str]) -> None:
        self._text = text

    def of(self, stmt: Stmt, first: dict[Atom, Index]) -> str:
        if isinstance(stmt, Store):
            return f"{1 + count_operations(stmt.value)}"
        if isinstance(stmt, Nest):
            return self._nest(stmt, first)
        if isinstance(stmt, Row):
            return f"{_ROW}.0*(double)({self._text(Substitution(first)(stmt.lane.extent))})"
        if isinstance(stmt, LibraryCall):
            extents = [f"(double)({self._text(Substitution(first)(loop.extent))})" for loop in stmt.loops]
            return "*".join([*extents, f"1.0/{_PRODUCT}" if stmt.routine in PRODUCTS else "1"])
        if isinstance(stmt, Alloc):
            return self.of(stmt.body, first)
        if isinstance(stmt, Repeat):
            return self.of(stmt.body, {**first, stmt.loop: ZERO})
        if isinstance(stmt, If):
            return self.of(stmt.yes if stmt.no is None else stmt.no, first)
        if isinstance(stmt, Seq):
            return "(" + (" + ".join(self.of(part, first) for part in stmt.parts) or "0") + ")"
        return "1"

    def _nest(self, stmt: Nest, first: dict[Atom, Index]) -> str:
        extents = []
        for head in stmt.heads:
            seen = Substitution(first)
            if isinstance(head, For):
                extents.append(f"(double)({self._text(seen(head.loop.extent))})")
                first = {**first, head.loop: ZERO}
            elif isinstance(head, Let):
                first = {**first, head.symbol: seen(head.index)}
            elif isinstance(head, Digits):
                first = {**first, **dict.fromkeys(head.loops, ZERO)}
        return "*".join([*extents, self.of(stmt.body, first)])
