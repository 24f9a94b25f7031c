"""C functions as text: definitions, declarations, and parallel loops as functions of a range of iterations.

    struct harp_kernel_part0 { harp_job job; const float *in0; float *out0; int64_t s0; };
    static void harp_kernel_part0(void *given, int64_t begin, int64_t end) { ... for (i0 = begin; i0 < end; ++i0) ... }
    ...
    struct harp_kernel_part0 args = { .job = { status, 1 }, .in0 = in0, .out0 = out0, .s0 = s0 };
    harp_parallel(harp_kernel_part0, &args, count, work);
    status = args.job.status;

`work` is an estimate of the scalar operations in all iterations. `harp_parallel` (`c/library/pool.c`) uses it to decide
whether threads pay off, and how many iterations run between two checks for interrupts. It skips the remaining
iterations when the status is not 0, and sets it where Python was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from harp.backends.c_family.scalar import TYPES, literal
from harp.backends.c_family.values import Lines, code
from harp.lower.loopir.loops import Alloc, Buffer, Nest, Space, Stmt
from harp.lower.loopir.text import CodeLine
from harp.trace.index.polynomial import Loop, value_atoms
from harp.trace.scalar.expr import Const

_WIDTH = 110
STATIC = "static __attribute__((noinline))"
EXPORTED = "HARP_EXPORT"
# Visible to other units of the library, but not exported: units are compiled with hidden visibility.
SHARED = ""


class Function(NamedTuple):
    """`parameters` are pairs of a name and its declaration; a fallible function returns a status."""

    comment: str
    result: str
    name: str
    parameters: tuple[tuple[str, str], ...]
    body: tuple[CodeLine, ...]
    fallible: bool
    parts: tuple[tuple[CodeLine, ...], ...] = ()  # definitions before it that only it uses
    uses: frozenset[str] = frozenset()  # headers and kernels of the library
    loops: int = 0  # the number of its loops: the time to compile it is about proportional to that

    def definition(self, linkage: str) -> list[CodeLine]:
        """The whole function."""
        before = [line for part in self.parts for line in (*part, *code(""))]
        head = "\n".join([f"/* {self.comment} */", *self._head(linkage), "{"])
        return [*before, *code(head), *self.body, *code("}")]

    def declaration(self) -> str:
        """The prototype, for units that call the function."""
        return "\n".join(self._head(SHARED)) + ";"

    def call(self, given: Mapping[str, str]) -> str:
        """A call with these arguments, by the names of the parameters."""
        return f"{self.name}({', '.join(given[name] for name, _ in self.parameters)})"

    def _head(self, linkage: str) -> list[str]:
        """On one line where it fits, else with a few parameters to a line."""
        head = f"{linkage} {self.result} {self.name}".strip()
        texts = [text for _, text in self.parameters]
        lines = [f"{head}({', '.join(texts) or 'void'})"]
        if len(lines[0]) > _WIDTH:
            lines = [f"{head}("]
            for number, parameter in enumerate(texts):
                text = parameter + (")" if number == len(texts) - 1 else ",")
                if len(lines) == 1 or len(lines[-1]) + len(text) + 1 > _WIDTH:
                    lines.append(f"    {text}")
                else:
                    lines[-1] += f" {text}"
        return lines


def parameter(buffer: Buffer, name: str, written: bool) -> str:
    """The declaration of a pointer to a buffer."""
    return f"{'' if written else 'const '}{TYPES[buffer.dtype]} *restrict {name}"


def constant(number: Const) -> str:
    """A pointer to a number."""
    return f"&(const {TYPES[number.dtype]}){{{literal(number)}}}"


def define(name: str, declared: Iterable[tuple[str, str]], lines: Lines, comment: str, result: str = "") -> Function:
    """A function with these parameters and lines. Without a `result` it returns a status if it can fail, else
    nothing."""
    fallible = lines.fails
    body = [CodeLine(1, "int status = 0;")] if fallible else []
    body += lines.lines
    body += [CodeLine(1, "return status;")] if fallible and not result else []
    kind, uses = result or ("int" if fallible else "void"), frozenset(lines.uses)
    return Function(comment, kind, name, tuple(declared), tuple(body), fallible, uses=uses, loops=lines.opened)


class Part(NamedTuple):
    """The struct and the function of a parallel loop; each of `fields` has the name of the variable that it holds.

    The function is called for at least `least` iterations at a time, except for the last ones.
    """

    name: str
    lines: tuple[CodeLine, ...]
    fields: tuple[str, ...]
    least: int = 1


def part(name: str, fields: Mapping[str, str], lines: Lines, least: int = 1) -> Part:
    """A function with these lines, which use `begin`, `end` and the fields, given as declarations by name."""
    outer = Lines()
    outer.add(f"struct {name} *const args = given;")
    for field, declaration in fields.items():
        outer.add(f"{declaration} = args->{field};")
    outer.lines += lines.lines
    outer.fails = lines.fails
    if lines.fails:
        outer.add("if (status != 0) __atomic_store_n(&args->job.status, 1, __ATOMIC_RELAXED);")
    parameters = [("given", "void *given"), ("begin", "int64_t begin"), ("end", "int64_t end")]
    function = define(name, parameters, outer, "Some iterations of the parallel loop below.", result="void")
    members = [f"    {declaration.replace('restrict ', '')};" for declaration in fields.values()]
    struct = "\n".join([f"struct {name} {{", "    harp_job job;", *members, "};"])
    return Part(name, (*code(struct), *function.definition(STATIC)), tuple(fields), least)


def hoisted(stmt: Nest) -> Stmt:
    """Allocate memory that is private to an iteration once, outside of the loop, if its size is loop-invariant.

    for i { take memory; body }  ->  take memory; for i { body }
    """
    if not isinstance(stmt.body, Alloc) or stmt.body.buffer.space is not Space.THREAD:
        return stmt
    buffer = stmt.body.buffer
    if any(isinstance(atom, Loop) for extent in buffer.shape for atom in value_atoms(extent)):
        return stmt
    return Alloc(buffer, hoisted(Nest(stmt.heads, stmt.body.body)))


def call(part: Part, pointed: Set[str], count: str, work: str, lines: Lines) -> None:
    """Run all iterations of a part. It gets the addresses of the variables in `pointed`, and copies of the others."""
    values = [f".{field} = {'&' if field in pointed else ''}{field}" for field in part.fields]
    lines.open("")
    lines.add(f"struct {part.name} args = {{ {', '.join([f'.job = {{ status, {part.least} }}', *values])} }};")
    lines.add(f"harp_parallel({part.name}, &args, {count}, {work});")
    lines.add("status = args.job.status;")
    lines.fails = True
    lines.close()
