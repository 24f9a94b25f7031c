"""A `Program` as C source: C11 with GNU extensions, the same bytes for the same program.

    int     harp_run(const void *in0, ..., void *out0, ..., int64_t s0, ...)     0, or 1 if there is no memory
    int64_t harp_scratch(int64_t s0, ...)                                        bytes of scratch, -1 on overflow

Names follow positions, never the user's names or identities, so programs that differ only in names are one source:
in0.. out0.. mem0.. are inputs, outputs and scratch; s0.. d0.. are sizes and derived sizes; w0.. are strides, i0..
loops, t0.. temporaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harp.backends.c.arena import STACK_BYTES, add_lets, needs_check, scratch_lines, slot_size
from harp.backends.c.body import Body, plain
from harp.backends.c.header import header, words
from harp.backends.c.index import IndexPrinter
from harp.backends.c.scalar import TYPES
from harp.backends.c.values import Lines, printed
from harp.errors import VerificationError
from harp.lower.loops import Buffer, Call, Kernel, Region, walk
from harp.lower.program import Program
from harp.lower.uses import Uses, arguments, parameters, regions, uses
from harp.trace.index import Atom, Loop

_WIDTH = 110


def render(program: Program) -> str:
    """The C source of a program."""
    return _Renderer(program).source()


class _Renderer:
    """The names of one program, and its functions as text."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers: dict[Buffer, str] = {}
        self.slots: dict[Buffer, int] = {}
        for number, slot in enumerate(program.scratch):
            self.slots |= dict.fromkeys(slot.buffers, number)
        for stem, group in (("in", program.inputs), ("out", program.outputs), ("mem", tuple(self.slots))):
            for number, buffer in enumerate(group):
                self.buffers[buffer] = f"{stem}{number}"
        self.names: dict[Atom, str] = {symbol: f"s{n}" for n, symbol in enumerate(program.sizes)}
        self.names |= {let.symbol: f"d{n}" for n, let in enumerate(program.lets)}
        self.functions = regions(program.kernels)
        self.function_names = {name: f"region_{n}" for n, name in enumerate(self.functions)}
        self.fallible: set[str] = set()

    def source(self) -> str:
        """Header, functions that are called, kernels in order, and the two exported functions."""
        parts = [self.function(name) for name in _callees_first(self.functions)]
        calls: list[tuple[str, bool]] = []
        for number, kernel in enumerate(self.program.kernels):
            text, call, fallible = self.kernel(number, kernel)
            parts.append(text)
            calls.append((call, fallible))
        parts += [self.scratch(), self.run(calls)]
        body = "\n\n".join(parts)
        return f"{self.title()}\n{header(body)}\n{body}\n"

    def title(self) -> str:
        """What the parameters of the program are."""
        index = IndexPrinter(self.names.__getitem__)
        lines = [f"{len(self.program.kernels)} kernels over"]
        for buffer, name in self.buffers.items():
            shape = ", ".join(index.text(extent) for extent in buffer.shape)
            lines.append(f"  {name}: {buffer.dtype}[{shape}]")
        return "/* " + "\n * ".join(lines) + "\n */"

    def kernel(self, number: int, kernel: Kernel) -> tuple[str, str, bool]:
        """The definition of a kernel, the call of it, and whether it can fail."""
        used = uses(kernel.body, self.functions)
        for buffer in used.touched:
            if buffer not in self.buffers:
                raise VerificationError(f"kernel {kernel.name}: {buffer.name} is no buffer of the program")
        ordered = [b for b in self.buffers if b in used.touched]
        body = self.body({b: self.buffers[b] for b in ordered}, self.names, used)
        body.statement(kernel.body, True)
        declared = [(self.buffers[b], _parameter(b, self.buffers[b], used, restrict=True)) for b in ordered]
        declared += [(name, f"int64_t {name}") for name in self.names.values()]
        name = f"kernel_{number}"
        comment = f"{plain(kernel.name)}: {self.summary(used)}"
        text, kept, fallible = _define(name, declared, body.lines, comment, drop=True)
        return text, f"{name}({', '.join(kept)})", fallible

    def summary(self, used: Uses) -> str:
        """`out0 <- in0, in1`."""
        written = [self.buffers[b] for b in self.buffers if b in used.writes]
        read = [self.buffers[b] for b in self.buffers if b in used.reads]
        return f"{', '.join(written)} <- {', '.join(read)}".strip()

    def function(self, name: str) -> str:
        """The definition of a region that is called."""
        region = self.functions[name]
        formals = parameters(region, self.functions)
        used = uses(region.body, self.functions)
        restrict = not self.aliased(name)
        buffers = {b: f"p{n}" for n, b in enumerate(f for f in formals if isinstance(f, Buffer))}
        sizes: dict[Atom, str] = {}
        for formal in formals:
            if not isinstance(formal, Buffer):
                sizes[formal] = f"i{formal.axis}" if isinstance(formal, Loop) else f"d{len(sizes)}"
        body = self.body(buffers, sizes, used)
        body.statement(region.body, True)
        declared = [(p, _parameter(b, p, used, restrict)) for b, p in buffers.items()]
        declared += [(p, f"int64_t {p}") for p in sizes.values()]
        text, _, fallible = _define(self.function_names[name], declared, body.lines, plain(name), drop=False)
        if fallible:
            self.fallible.add(name)
        return text

    def aliased(self, name: str) -> bool:
        """Whether some call gives one buffer for two parameters."""
        for kernel in self.program.kernels:
            for stmt in walk(kernel.body):
                if isinstance(stmt, Call) and stmt.function == name:
                    given = [actual for _, actual in arguments(stmt, self.functions) if isinstance(actual, Buffer)]
                    if len(set(given)) < len(given):
                        return True
        return False

    def body(self, buffers: Mapping[Buffer, str], names: Mapping[Atom, str], used: Uses) -> Body:
        constant = frozenset(b for b in used.touched if b not in used.writes)
        return Body(buffers, names, self.functions, self.function_names, frozenset(self.fallible), constant)

    def scratch(self) -> str:
        lines = scratch_lines(self.program, self.names)
        declared = [(self.names[s], f"int64_t {self.names[s]}") for s in self.program.sizes]
        comment = "Bytes of scratch memory for these sizes, or -1 if they are too many to count."
        return _define("harp_scratch", declared, lines, comment, drop=False, result="HARP_EXPORT int64_t")[0]

    def run(self, calls: list[tuple[str, bool]]) -> str:
        """Lay out the arena, run the kernels in order, free it."""
        program, names = self.program, self.names
        lines = Lines()
        if needs_check(program):
            lines.add(f"const int64_t bytes = harp_scratch({', '.join(names[s] for s in program.sizes)});")
            lines.add("if (bytes < 0) return 1;")
        add_lets(program, names, lines)
        if program.scratch:
            self.arena(lines)
        guarded = False
        for call, fallible in calls:
            lines.add(f"{'if (status == 0) ' if guarded else ''}{'status = ' if fallible else ''}{call};")
            guarded |= fallible
        if program.scratch:
            lines.add("if (arena != small) free(arena);")
        lines.add("return status;" if guarded else "return 0;")
        declared = [(self.buffers[b], f"const void *restrict {self.buffers[b]}") for b in program.inputs]
        declared += [(self.buffers[b], f"void *restrict {self.buffers[b]}") for b in program.outputs]
        declared += [(names[s], f"int64_t {names[s]}") for s in program.sizes]
        comment = "Runs the program; 1 if there is not enough memory."
        return _define("harp_run", declared, lines, comment, drop=False, result="HARP_EXPORT int")[0]

    def arena(self, lines: Lines) -> None:
        """Allocate once, and point every scratch buffer to its slot."""
        index = IndexPrinter(self.names.__getitem__)
        lines.add(f"_Alignas(64) char small[{STACK_BYTES}];")
        lines.add("char *const arena = bytes <= (int64_t)sizeof small ? small : harp_take(bytes);")
        lines.add("if (arena == NULL) return 1;")
        start = "arena"
        for number, slot in enumerate(self.program.scratch):
            lines.add(f"char *const slot{number} = {start};", f"slot{number}")
            start = f"slot{number} + {slot_size(slot, index)}"
        for buffer, number in self.slots.items():
            name, ctype = self.buffers[buffer], TYPES[buffer.dtype]
            lines.add(f"{ctype} *const {name} = ({ctype} *)(void *)slot{number};", name)


def _callees_first(functions: Mapping[str, Region]) -> list[str]:
    """Functions in an order in which C knows each one before it is called."""
    order: list[str] = []
    active: set[str] = set()

    def visit(name: str) -> None:
        if name in active:
            raise VerificationError(f"function {name!r} calls itself")
        if name in order:
            return
        active.add(name)
        for stmt in walk(functions[name].body):
            if isinstance(stmt, Call):
                visit(stmt.function)
        active.discard(name)
        order.append(name)

    for name in functions:
        visit(name)
    return order


def _parameter(buffer: Buffer, name: str, used: Uses, restrict: bool) -> str:
    const = "" if buffer in used.writes else "const "
    return f"{const}{TYPES[buffer.dtype]} *{'restrict ' if restrict else ''}{name}"


def _define(
    name: str,
    declared: Iterable[tuple[str, str]],
    lines: Lines,
    comment: str,
    drop: bool,
    result: str = "",
) -> tuple[str, list[str], bool]:
    """(definition, names of its parameters, whether it returns a status); `drop` leaves out unused parameters."""
    kept = lines.pruned()
    used = {word for line in kept for word in words(line.text)}
    wanted = [(p, text) for p, text in declared if p in used or not drop]
    unused = [p for p, _ in wanted if p not in used]
    fallible = "status" in used
    head = result or f"static __attribute__((noinline)) {'int' if fallible else 'void'}"
    body = [f"/* {comment} */", *_prototype(f"{head} {name}", [text for _, text in wanted]), "{"]
    body += [f"    (void){p};" for p in unused]
    body += ["    int status = 0;"] if fallible else []
    body += [printed(kept)] if kept else []
    body += ["    return status;"] if fallible and not result else []
    return "\n".join([*body, "}"]), [p for p, _ in wanted], fallible


def _prototype(head: str, parameters: list[str]) -> list[str]:
    """On one line where it fits, else with a few parameters to a line."""
    lines = [f"{head}({', '.join(parameters) or 'void'})"]
    if len(lines[0]) > _WIDTH:
        lines = [f"{head}("]
        for number, parameter in enumerate(parameters):
            text = parameter + (")" if number == len(parameters) - 1 else ",")
            if len(lines) == 1 or len(lines[-1]) + len(text) + 1 > _WIDTH:
                lines.append(f"    {text}")
            else:
                lines[-1] += f" {text}"
    return lines
