"""A `Program` as C source: C11 with GNU extensions, the same bytes for the same program.

    int     harp_run(const void *in0, ..., void *out0, ..., int64_t s0, ...)     0, or 1 if there is no memory
    int64_t harp_scratch(int64_t s0, ...)                                        bytes of scratch, -1 on overflow

A program with many parameters also has `harp_run_packed(void *const *buffers, const int64_t *sizes)` and
`harp_scratch_packed(const int64_t *sizes)`, which take them as arrays: there are limits to what cffi passes one by one.

Names follow positions, never the user's names or identities, so programs that differ only in names are one source:
in0.. out0.. mem0.. are inputs, outputs and scratch; s0.. d0.. are sizes and derived sizes; w0.. are strides, i0..
loops, t0.. temporaries.

A large program is several units, which can compile at the same time: the first has the exported functions and calls
kernels of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from harp.backends.c import parts
from harp.backends.c.arena import STACK_BYTES, add_lets, needs_check, scratch_lines, slot_size
from harp.backends.c.body import Body
from harp.backends.c.function import EXPORTED, SHARED, STATIC, Function, define, parameter, plain
from harp.backends.c.index import IndexPrinter
from harp.backends.c.interface import Interface
from harp.backends.c.kernels import KERNELS, linked
from harp.backends.c.scalar import HALVES, TYPES
from harp.backends.c.values import Lines
from harp.backends.protocol import Source, Unit
from harp.errors import VerificationError
from harp.lower.loops import Buffer, Call, Kernel, Region, walk
from harp.lower.program import Program
from harp.lower.uses import Uses, arguments, parameters, regions, uses
from harp.trace.index import Atom, Loop

# Loops in a unit, about: what costs a compiler several times more than starting it.
_UNIT_LOOPS = 42
# Where numbers of 16 bits stand beside floats, gcc prints each loop for two vectors at once; what these leave then goes
# one by one, not by a loop for each shorter vector, in half the compiling time.
_OF_HALVES = ("--param=vect-epilogues-nomask=0",)


def interface(program: Program) -> Interface:
    """How a program is called."""
    return Interface(len(program.inputs), len(program.outputs), len(program.sizes))


def render(program: Program) -> Source:
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

    def source(self) -> Source:
        """The units. Each holds some of the kernels and all functions that kernels call."""
        called = [self.function(name) for name in _callees_first(self.functions)]
        kernels = [self.kernel(number, kernel) for number, kernel in enumerate(self.program.kernels)]
        scratch, run = self.scratch(), self.run(kernels)
        packed = [self.packed(scratch), self.packed(run)] if interface(self.program).packed else []
        runner = [parts.DEFINITION] if any(parts.HEADER in kernel.uses for kernel in kernels) else []
        exported = [*runner, *(f.definition(EXPORTED) for f in (scratch, run, *packed))]
        uses = _uses((*called, *kernels))
        groups = _partition(kernels)
        if len(groups) == 1:
            texts = [f.definition(STATIC) for f in (*called, *kernels)]
            return _source([self.unit([*texts, *exported], uses)], uses)
        declared = "\n".join(kernel.declaration() for group in groups[1:] for kernel in group)
        texts = [f.definition(STATIC) for f in called]
        first, *others = [[*texts, *(kernel.definition(SHARED) for kernel in group)] for group in groups]
        here, *elsewhere = [_uses((*called, *group)) for group in groups]
        units = [self.unit([declared, *first, *exported], here | ({parts.HEADER} if runner else set()))]
        return _source([*units, *map(self.unit, others, elsewhere)], uses)

    def unit(self, texts: Sequence[str], uses: Set[str]) -> Unit:
        """A file to compile, which uses these headers and kernels."""
        headers = sorted({KERNELS[name].header if name in KERNELS else name for name in uses})
        includes = "\n".join(f'#include "{name}"' for name in ("generated.h", *headers))
        body = "\n\n".join(texts)
        return Unit(f"{self.title()}\n{includes}\n\n{body}\n", _OF_HALVES if HALVES in uses else ())

    def title(self) -> str:
        """What the parameters of the program are."""
        index = IndexPrinter(self.names.__getitem__)
        lines = [f"{len(self.program.kernels)} kernels over"]
        for buffer, name in self.buffers.items():
            shape = ", ".join(index.text(extent) for extent in buffer.shape)
            lines.append(f"  {name}: {buffer.dtype}[{shape}]")
        return "/* " + "\n * ".join(lines) + "\n */"

    def kernel(self, number: int, kernel: Kernel) -> Function:
        """A kernel, with those buffers and sizes as parameters that it uses."""
        used = uses(kernel.body, self.functions)
        for buffer in used.touched:
            if buffer not in self.buffers:
                raise VerificationError(f"kernel {kernel.name}: {buffer.name} is no buffer of the program")
        ordered = [b for b in self.buffers if b in used.touched]
        body = self.body({b: self.buffers[b] for b in ordered}, self.names, used, f"kernel_{number}")
        body.statement(kernel.body, True)
        declared = [(self.buffers[b], parameter(b, self.buffers[b], b in used.writes, restrict=True)) for b in ordered]
        declared += [(name, f"int64_t {name}") for name in self.names.values()]
        comment = f"{plain(kernel.name)}: {self.summary(used)}"
        function = define(f"kernel_{number}", declared, body.lines, comment, drop=True)
        return function._replace(parts=tuple(part.text for part in body.parts))

    def summary(self, used: Uses) -> str:
        """`out0 <- in0, in1`."""
        written = [self.buffers[b] for b in self.buffers if b in used.writes]
        read = [self.buffers[b] for b in self.buffers if b in used.reads]
        return f"{', '.join(written)} <- {', '.join(read)}".strip()

    def function(self, name: str) -> Function:
        """A region that is called."""
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
        declared = [(p, parameter(b, p, b in used.writes, restrict)) for b, p in buffers.items()]
        declared += [(p, f"int64_t {p}") for p in sizes.values()]
        function = define(self.function_names[name], declared, body.lines, plain(name), drop=False)
        if function.fallible:
            self.fallible.add(name)
        return function

    def aliased(self, name: str) -> bool:
        """Whether some call gives one buffer for two parameters."""
        for kernel in self.program.kernels:
            for stmt in walk(kernel.body):
                if isinstance(stmt, Call) and stmt.function == name:
                    given = [actual for _, actual in arguments(stmt, self.functions) if isinstance(actual, Buffer)]
                    if len(set(given)) < len(given):
                        return True
        return False

    def body(self, buffers: Mapping[Buffer, str], names: Mapping[Atom, str], used: Uses, prefix: str = "") -> Body:
        constant = frozenset(b for b in used.touched if b not in used.writes)
        return Body(buffers, names, self.functions, self.function_names, frozenset(self.fallible), constant, prefix)

    def scratch(self) -> Function:
        lines = scratch_lines(self.program, self.names)
        declared = [(self.names[s], f"int64_t {self.names[s]}") for s in self.program.sizes]
        comment = "Bytes of scratch memory for these sizes, or -1 if they are too many to count."
        return define("harp_scratch", declared, lines, comment, drop=False, result="int64_t")

    def run(self, kernels: Iterable[Function]) -> Function:
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
        for kernel in kernels:
            call = f"{'status = ' if kernel.fallible else ''}{kernel.call()};"
            lines.add(f"{'if (status == 0) ' if guarded else ''}{call}")
            guarded |= kernel.fallible
        if program.scratch:
            lines.add("if (arena != small) free(arena);")
        lines.add("return status;" if guarded else "return 0;")
        declared = [(self.buffers[b], f"const void *restrict {self.buffers[b]}") for b in program.inputs]
        declared += [(self.buffers[b], f"void *restrict {self.buffers[b]}") for b in program.outputs]
        declared += [(names[s], f"int64_t {names[s]}") for s in program.sizes]
        comment = "Runs the program; 1 if there is not enough memory."
        return define("harp_run", declared, lines, comment, drop=False, result="int")

    def packed(self, function: Function) -> Function:
        """An exported function, with its parameters in arrays."""
        buffers = len(function.parameters) - len(self.program.sizes)
        given = [f"buffers[{k}]" for k in range(buffers)] + [f"sizes[{k}]" for k in range(len(self.program.sizes))]
        lines = Lines()
        lines.add(f"return {function.name}({', '.join(given)});")
        declared = [("buffers", "void *const *buffers")] if buffers else []
        declared += [("sizes", "const int64_t *sizes")]
        comment = f"{function.name} with its parameters in arrays."
        return define(f"{function.name}_packed", declared, lines, comment, drop=False, result=function.result)

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


def _uses(functions: Iterable[Function]) -> frozenset[str]:
    """The headers and kernels of the library that they use."""
    return frozenset[str]().union(*(function.uses for function in functions))


def _source(units: Sequence[Unit], uses: Set[str]) -> Source:
    """With the units of the kernels that these units call; they take longest, so they come first."""
    return Source((*(kernel.unit() for kernel in linked(name for name in uses if name in KERNELS)), *units))


def _partition(kernels: Sequence[Function]) -> list[list[Function]]:
    """Groups that take about as long to compile: the largest kernel that is left goes to the smallest group."""
    count = round(sum(kernel.loops for kernel in kernels) / _UNIT_LOOPS)
    groups: list[list[Function]] = [[] for _ in range(min(max(count, 1), max(len(kernels), 1)))]
    sizes = [0] * len(groups)
    for kernel in sorted(kernels, key=lambda kernel: -kernel.loops):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(kernel)
        sizes[smallest] += kernel.loops
    return groups
