"""A parallel loop in C: a function of a range of its iterations, and a call of whatever runs such functions.

    struct harp_kernel_part0 { harp_job job; const float *in0; float *out0; int64_t s0; };
    static void harp_kernel_part0(void *given, int64_t begin, int64_t end) { ... for (i0 = begin; i0 < end; ++i0) ... }
    ...
    struct harp_kernel_part0 args = { .job = { status, 1 }, .in0 = in0, .out0 = out0, .s0 = s0 };
    harp_parallel(harp_kernel_part0, &args, count, work);
    status = args.job.status;

`work` is an estimate of the scalar operations in all iterations, by which the runner decides whether threads are worth
their while, and how many iterations go between two questions whether Python was interrupted. The runner leaves out the
iterations that remain when the status is not 0, and sets it where Python was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from harp.backends.c.emit.function import STATIC, define
from harp.backends.c_family.values import Lines, code, words
from harp.lower.loopir.loops import Alloc, Nest, Space, Stmt
from harp.lower.loopir.text import CodeLine
from harp.trace.index.polynomial import Loop, value_atoms


class Part(NamedTuple):
    """The struct and the function; `fields` are what the struct holds, by the names that they have outside.

    The function is called for at least so many iterations, but for the last ones.
    """

    name: str
    lines: tuple[CodeLine, ...]
    fields: tuple[str, ...]
    least: int = 1


def part(name: str, fields: Mapping[str, str], lines: Lines, least: int = 1) -> Part:
    """A function with these lines, which use `begin`, `end` and some of the fields; these are declarations by name."""
    text = {word for line in lines.pruned() for word in words(line.text)}
    used = tuple(field for field in fields if field in text)
    whole = Lines()
    whole.add(f"struct {name} *const args = given;", "args")
    for field in used:
        whole.add(f"{fields[field]} = args->{field};", field)
    whole.lines += lines.lines
    if "status" in text:
        whole.add("if (status != 0) __atomic_store_n(&args->job.status, 1, __ATOMIC_RELAXED);")
    given = [("given", "void *given"), ("begin", "int64_t begin"), ("end", "int64_t end")]
    function = define(name, given, whole, "Some iterations of the parallel loop below.", drop=False, result="void")
    members = [f"    {fields[field].replace('restrict ', '')};" for field in used]
    struct = "\n".join([f"struct {name} {{", "    harp_job job;", *members, "};"])
    return Part(name, (*code(struct), *function.definition(STATIC)), used, least)


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


def call(part: Part, pointed: Set[str], count: str, work: str, lines: Lines) -> None:
    """Run all iterations; of the variables in `pointed` the part takes the address."""
    values = [f".{field} = {'&' if field in pointed else ''}{field}" for field in part.fields]
    lines.open("")
    lines.add(f"struct {part.name} args = {{ {', '.join([f'.job = {{ status, {part.least} }}', *values])} }};")
    lines.add(f"harp_parallel({part.name}, &args, {count}, {work});")
    lines.add("status = args.job.status;")
    lines.close()
