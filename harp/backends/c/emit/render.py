"""A `Program` as C source: C11 with GNU extensions, the same bytes for the same program.

    int     harp_run(const void *in0, ..., void *out0, ..., int64_t s0, ...)     0, or 1 if there is no memory
    int64_t harp_scratch(int64_t s0, ...)                                        bytes of scratch, -1 on overflow

A program with many parameters also has `harp_run_packed(void *const *buffers, const int64_t *sizes)` and
`harp_scratch_packed(const int64_t *sizes)`, which take them as arrays: there are limits to what cffi passes one by one.

A timed program has one more output, an int64 array of the times when each call of a kernel began and ended.

Names follow positions, never the user's names or identities, so programs that differ only in names are one source:
in0.. out0.. mem0.. are inputs, outputs and scratch of the program or of a kernel, s0.. their sizes; w0.. are strides,
i0.. loops, d0.. named index expressions, t0.. temporaries.

Each kernel is a unit of its own, named by a digest of its text: units are compiled concurrently, and a unit that an
earlier program had is in the cache. The last unit has the exported functions, which call the kernels in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from harp.backends.c.emit.body import KERNEL, kernel_function
from harp.backends.c.emit.function import EXPORTED, SHARED, Function, constant, define
from harp.backends.c.emit.work import printed_operations
from harp.backends.c_family.custom_kernels import HEADER
from harp.backends.c_family.index import IndexPrinter
from harp.backends.c_family.library import KERNELS, PROCESS, header, linked
from harp.backends.c_family.scalar import GENERATED, HALVES, TYPES
from harp.backends.c_family.statements import parameters
from harp.backends.c_family.values import Lines, code, printed
from harp.backends.protocol import Source, Unit
from harp.backends.runtime.executable import TOO_MUCH, Interface
from harp.lower.loopir.loops import MEMORY, Buffer, For, Kernel, Load, Nest, Space, Stmt, Store, offset, parts, walk
from harp.lower.loopir.nests import stride
from harp.lower.loopir.program import Program, Slot, Subarray, turns
from harp.lower.loopir.text import CodeLine
from harp.trace.index.polynomial import ZERO, Atom, Fold, Index
from harp.trace.scalar.expr import Apply, Expr
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

# For loops over both 16-bit numbers and floats, gcc emits each loop for two vectors at once. With this flag the
# remainder runs as scalars, not in a loop for each shorter vector, which halves the compile time.
_OF_HALVES = ("--param=vect-epilogues-nomask=0",)
# gcc 12 miscompiles conditional loads of neighbouring elements whose order differs from that of the results:
#     for i { c = ...; out[2*i] = c ? x[2*i + 1] : 0; out[2*i + 1] = c ? x[2*i] : 0 }
# It forgets the permutation of the vector when it merges both into one masked load. Such loops are not vectorised.
_OF_CONDITIONS = ("-fno-tree-loop-if-convert",)
# Nor may loads of one side of a choice, which are made in front of it, be moved to that side.
_OF_CHOICES = ("-fno-tree-sink",)


def flags_of(kernel: Kernel, uses: Set[str]) -> tuple[str, ...]:
    """The flags of a kernel that uses these headers and kernels of the library."""
    flags: tuple[str, ...] = _OF_HALVES if HALVES in uses else ()
    flags += _OF_CONDITIONS if _are_side_by_side(kernel, _conditional_loads) else ()
    return flags + (_OF_CHOICES if _are_side_by_side(kernel, _chosen_loads) else ())


def _are_side_by_side(kernel: Kernel, some: Callable[[Expr], Iterator[Load]]) -> bool:
    """Whether some of the loads of a loop are parts of complex numbers, or several elements between those of one
    iteration and the next."""
    nests = [s for s in walk(kernel.body) if isinstance(s, Nest)]
    bodies = [(s.body, [h.loop for h in s.heads if isinstance(h, For)][-1:]) for s in nests]
    for body, loops in [(kernel.body, []), *bodies]:
        chosen = {load for s in _stores(body) for load in some(s.value) if load.buffer.space in MEMORY}
        if any(load.dtype.is_complex for load in chosen):
            return True
        apart = [load.buffer for load in chosen if any(abs(stride(load, loop) or 0) > 1 for loop in loops)]
        if len(set(apart)) < len(apart):
            return True
    return False


def _stores(s: Stmt) -> Iterator[Store]:
    """The stores of a statement outside of inner nests."""
    if isinstance(s, Store):
        yield s
    elif not isinstance(s, Nest):
        for part in parts(s):
            yield from _stores(part)


def _conditional_loads(value: Expr) -> Iterator[Load]:
    """The loads of a value that are made under a condition."""
    return (e for e in walk_expr((value,)) if isinstance(e, Load) and e.conditions)


def _chosen_loads(value: Expr) -> Iterator[Load]:
    """The loads of a value that a side of a choice needs."""
    choices = (e for e in walk_expr((value,)) if isinstance(e, Apply) and e.op is Op.SELECT)
    return (load for e in choices for load in walk_expr(e.operands[1:]) if isinstance(load, Load))


# Outside of its own text the name of a kernel ends with so many digits of the text's digest.
_DIGITS = 24
# The flags of a unit without loops.
_OF_CALLS = ("-O1",)
# A program with more loops is compiled in two parts for its first calls.
_LOOPS_OF_A_UNIT = 24
# The variable of a program for first calls that points to the function of the full one.
FULL = "harp_full"
# Its variable with the number of operations that it may still do.
LEFT = "harp_left"
# An arena of at most this size is put on the stack.
_STACK_BYTES = 1 << 14


def interface(program: Program, timed: bool = False) -> Interface:
    """The parameters of a program."""
    return Interface(len(program.inputs), len(program.outputs) + timed, len(program.sizes))


def render(program: Program, timed: bool = False) -> Source:
    """The C source of a program; with `timed` its kernels are the same."""
    return Renderer(program, timed).source()


def render_with_first(program: Program) -> tuple[Source, Callable[[float], Source]]:
    """The C source of a program, and a function that gives the source for its first calls, which is compiled without
    optimisation in a fraction of the time. It does so many operations at most.

    It has the same functions and, instead of the library's products, plain loops. When the program itself is there, the
    variable `harp_full` is set to its `harp_run`, and calls of the first one are handed on. A call for which too few
    operations are left does nothing, and returns TOO_MUCH.
    """
    renderer = Renderer(program, False)
    return renderer.source(), renderer.first


class Renderer:
    """The functions of one program as text. With `given` memory the function that runs it has one more parameter,
    `scratch`: memory for the arena, or NULL."""

    def __init__(self, program: Program, timed: bool = False, given: bool = False) -> None:
        self.program = program
        self.timed = timed
        self.given = given
        self.slots: dict[Buffer, int] = {}
        for number, slot in enumerate(program.scratch):
            self.slots |= dict.fromkeys(slot.buffers, number)
        self.buffers: dict[Buffer, str] = {}
        for stem, group in (("in", program.inputs), ("out", program.outputs), ("mem", tuple(self.slots))):
            for number, buffer in enumerate(group):
                self.buffers[buffer] = f"{stem}{number}"
        self.names: dict[Atom, str] = {symbol: f"s{n}" for n, symbol in enumerate(program.sizes)}
        self.kernels = [_kernel(kernel) for kernel in program.kernels]
        self.functions = [function for function, _, _ in self.kernels]
        self.uses = frozenset[str]().union(*(function.uses for function in self.functions))

    def source(self) -> Source:
        """The units: one for each kernel, and one for the exported functions, which call the kernels."""
        # The longest compilations start first.
        units = {function.name: unit for function, unit, _ in sorted(self.kernels, key=lambda found: -found[0].loops)}
        calls = self.calls(self.run())
        library = (routine.unit() for routine in linked(name for name in self.uses if name in KERNELS))
        caller = Unit(printed(calls), _OF_CALLS)
        kernels = tuple(tuple(lines) for _, _, lines in self.kernels)
        return Source((*library, *units.values(), caller), kernels, tuple(calls), HEADER in self.uses)

    def first(self, most: float) -> Source:
        """Two units at most, about as long, and those of the library that have no simple form."""
        run = self.run(most)
        routines = [KERNELS[name] for name in sorted(self.uses) if name in KERNELS]
        simple = [routine.simple for routine in routines if routine.simple]
        own = {function.name: (function, printed(lines)) for function, _, lines in self.kernels}
        kernels = sorted(own.values(), key=lambda found: -len(found[1]))
        head = "\n".join([*self.defaults(run), *['#include "linalg/simple.h"'] * bool(simple), *simple])
        parts: list[list[str]] = [[], [head, printed(self.calls(run))]]
        one = sum(function.loops for function, _ in kernels) <= _LOOPS_OF_A_UNIT
        for function, text in kernels:
            part = parts[-1] if one else min(parts, key=lambda part: sum(map(len, part)))
            part.insert(-1 if part is parts[-1] else 0, _renamed(function, text))
        texts = ["\n".join(part) for part in parts if part]
        others = [routine.unit()._replace(flags=()) for routine in linked(r.name for r in routines if not r.simple)]
        return Source((*others, *(Unit(text, shared=True) for text in texts)))

    def defaults(self, run: Function) -> list[str]:
        """The macros by which the unit of the calls defines what the program needs of the process."""
        return [f"#define {name.upper()}_DEFAULT" for name in sorted((self.uses | run.uses) & PROCESS)]

    def calls(self, run: Function) -> list[CodeLine]:
        """The file of the exported functions."""
        scratch = self.scratch()
        packed = [self.packed(scratch), self.packed(run)] if interface(self.program, self.timed).packed else []
        declared = {function.name: function.declaration() for function in self.functions}
        exported = [*map(code, declared.values()), *(f.definition(EXPORTED) for f in (scratch, run, *packed))]
        return _file("\n".join([self.title(), *self.defaults(run)]), exported, (self.uses & PROCESS) | run.uses)

    def title(self) -> str:
        """A comment that says what the program's parameters are."""
        index = IndexPrinter(self.names.__getitem__)
        lines = [f"{len(self.program.calls)} calls of {len(self.program.kernels)} kernels over"]
        for buffer, name in self.buffers.items():
            shape = ", ".join(index.text(extent) for extent in buffer.shape)
            lines.append(f"  {name}: {buffer.dtype}[{shape}]")
        return "/* " + "\n * ".join(lines) + "\n */"

    def scratch(self) -> Function:
        lines = self.scratch_lines()
        declared = [(self.names[s], f"int64_t {self.names[s]}") for s in self.program.sizes]
        comment = "Bytes of scratch memory for these sizes, or -1 if they are too many to count."
        return define("harp_scratch", declared, lines, comment, result="int64_t")

    def scratch_lines(self) -> Lines:
        """The body of `harp_scratch`: bytes of the arena, or -1 where they would overflow."""
        program, names, lines = self.program, self.names, Lines()
        if not program.scratch:
            lines.add("return 0;")
            return lines
        bounds: dict[Atom, str] = {s: f"(double){names[s]}" for s in program.sizes}
        lines.add("/* The same sums in doubles, which do not wrap, and without cancellation. */")
        lines.add("double most = 0.0;")
        for size in dict.fromkeys(size for slot in program.scratch for size in slot.sizes):
            lines.add(f"most += {magnitude(size, bounds)};")
        lines.add("if (!(most < 0x1p62)) return -1;")
        index = IndexPrinter(names.__getitem__)
        lines.add("int64_t bytes = 0;")
        for slot in program.scratch:
            lines.add(f"bytes += {_slot_size(slot, index)};")
        lines.add("return bytes;")
        return lines

    def run(self, most: float | None = None) -> Function:
        """Lay out the arena, call the kernels in order, free it; or hand the call on, if that is possible by now, and
        refuse it if it is one of more than so many operations."""
        program, names = self.program, self.names
        index = IndexPrinter(names.__getitem__)
        lines = Lines()
        declared = [(self.buffers[b], f"const void *restrict {self.buffers[b]}") for b in program.inputs]
        declared += [(self.buffers[b], f"void *restrict {self.buffers[b]}") for b in program.outputs]
        declared += [("times", "void *restrict times")] if self.timed else []
        declared += [(names[s], f"int64_t {names[s]}") for s in program.sizes]
        declared += [("scratch", "void *scratch")] if self.given else []
        if most is not None:
            lines.add(f"if ({FULL} != NULL) return {FULL}({', '.join(name for name, _ in declared)});")
            lines.add(f"{LEFT} -= {printed_operations(program, index.text)};")
            lines.add(f"if ({LEFT} < 0.0) return {TOO_MUCH};")
        if program.scratch:
            lines.add(f"const int64_t bytes = harp_scratch({', '.join(names[s] for s in program.sizes)});")
            lines.add("if (bytes < 0) return 1;")
            self.lay_out(lines)
            lines.uses.add("harp_take")
        if self.timed:
            lines.uses.add("clock.h")
        guarded = False
        for number, call in enumerate(program.calls):
            kernel = program.kernels[call.kernel]
            values = (*(self.argument(a, index) for a in call.arguments), *map(index.text, call.sizes))
            argument_of = dict(zip(parameters(kernel).values(), values, strict=True))
            function = self.functions[call.kernel]
            text = f"{'status = ' if function.fallible else ''}{function.call(argument_of)};"
            if self.timed:
                lines.add(f"((int64_t *)times)[{2 * number}] = harp_now();")
            lines.add(f"{'if (status == 0) ' if guarded else ''}{text}", call=number)
            if self.timed:
                lines.add(f"((int64_t *)times)[{2 * number + 1}] = harp_now();")
            guarded |= function.fallible
        lines.fails = guarded
        if program.scratch:
            lines.add(f"if ({'scratch == NULL && ' if self.given else ''}arena != small) harp_give(arena);")
        lines.add("return status;" if guarded else "return 0;")
        comment = "Runs the program; 1 if there is not enough memory."
        run = define("harp_run", declared, lines, comment, result="int")
        full = f"{EXPORTED} int (*{FULL})({', '.join(text for _, text in declared) or 'void'});"
        variables = f"{full}\n{EXPORTED} double {LEFT} = {most!r};"
        return run if most is None else run._replace(parts=(tuple(code(variables)),))

    def argument(self, argument: Subarray, index: IndexPrinter) -> str:
        """A pointer to a buffer, to a part of it, or to a constant."""
        if argument.buffer in self.program.constants:
            return constant(self.program.constants[argument.buffer])
        buffer, name = argument.buffer, self.buffers[argument.buffer]
        place = offset(buffer, (*argument.at, *(ZERO,) * len(argument.shape)))
        if place is ZERO:
            return name
        const = "const " if buffer.space is Space.INPUT else ""
        return f"({const}{TYPES[buffer.dtype]} *){name} + {index.factor(place)}"

    def packed(self, function: Function) -> Function:
        """An exported function that takes the parameters of another one in arrays."""
        buffers = len(function.parameters) - len(self.program.sizes)
        arguments = [f"buffers[{k}]" for k in range(buffers)] + [f"sizes[{k}]" for k in range(len(self.program.sizes))]
        lines = Lines()
        lines.add(f"return {function.name}({', '.join(arguments)});")
        declared = [("buffers", "void *const *buffers")] if buffers else []
        declared += [("sizes", "const int64_t *sizes")]
        comment = f"{function.name} with its parameters in arrays."
        return define(f"{function.name}_packed", declared, lines, comment, result=function.result)

    def lay_out(self, lines: Lines) -> None:
        """Allocate the arena once, and point every scratch buffer to its slot."""
        index = IndexPrinter(self.names.__getitem__)
        lines.add(f"_Alignas(64) char small[{_STACK_BYTES}];")
        given = "scratch != NULL ? harp_on_line(scratch) : " if self.given else ""
        lines.add(f"char *const arena = {given}bytes <= (int64_t)sizeof small ? small : harp_take(bytes);")
        lines.add("if (arena == NULL) return 1;")
        start = "arena"
        for number, slot in enumerate(self.program.scratch):
            lines.add(f"char *const slot{number} = {start};")
            start = f"slot{number} + {_slot_size(slot, index)}"
        others = turns(self.program.kernels, self.program.calls)
        for buffer, number in sorted(self.slots.items(), key=lambda item: item[0] in others):
            name, ctype = self.buffers[buffer], TYPES[buffer.dtype]
            place = f"harp_apart(slot{number}, {self.buffers[others[buffer]]})" if buffer in others else f"slot{number}"
            lines.add(f"{ctype} *const {name} = ({ctype} *)(void *){place};")


def _slot_size(slot: Slot, index: IndexPrinter) -> str:
    """The bytes of a slot: the largest of its buffers, rounded up."""
    text = ""
    for size in dict.fromkeys(slot.sizes):
        text = f"harp_larger({text}, {index.text(size)})" if text else index.text(size)
    return f"harp_slot({text})"


def magnitude(p: Index, names: Mapping[Atom, str]) -> str:
    """A bound on the absolute value of `p` and of every partial result, as arithmetic in doubles: it cannot wrap."""
    return Fold(_sum_of, _term, "({} + {})".format, "({})".format, names.__getitem__)(p)


def _sum_of(terms: list[str]) -> str:
    return " + ".join(terms) or "0.0"


def _term(coefficient: int, factors: list[str]) -> str:
    return "*".join(factors if abs(coefficient) == 1 and factors else [f"{abs(coefficient)}.0", *factors])


def _kernel(kernel: Kernel) -> tuple[Function, Unit, list[CodeLine]]:
    """The function of a kernel, its unit, and the unit's lines. Its name is a digest of its text."""
    function = kernel_function(kernel)
    definition = function.definition(SHARED)
    name = f"{KERNEL}_{hashlib.sha256(printed(definition).encode()).hexdigest()[:_DIGITS]}"
    flags = flags_of(kernel, function.uses)
    lines = _file(f"#define {KERNEL} {name}", [definition], function.uses)
    return function._replace(name=name), Unit(printed(lines), flags, shared=True, kernel=True), lines


def _renamed(function: Function, text: str) -> str:
    """The text of a kernel's unit for a file with others, whose parts have the same names."""
    own = [f"{KERNEL}_part{number}" for number in range(len(function.parts))]
    names = [f"#define {name} {name.replace(KERNEL, function.name)}" for name in own]
    return "\n".join([*names, text, *(f"#undef {name}" for name in (KERNEL, *own))])


def _file(head: str, parts: Iterable[Sequence[CodeLine]], effects: Set[str]) -> list[CodeLine]:
    """The text of a unit that uses these headers and kernels of the library."""
    headers = sorted({header(name) for name in effects} - {GENERATED})
    includes = "\n".join(f'#include "{name}"' for name in (GENERATED, *headers))
    return [*code(f"{head}\n{includes}"), *(line for part in parts for line in (*code(""), *part)), *code("")]
