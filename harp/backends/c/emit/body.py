"""The body of a C function.

To the statements of `c_family` C adds parallel loops, as functions of a range of iterations; checks for interrupts in
long loops; heap memory for large arrays; and calls of the user's code and of LAPACK.
"""

from __future__ import annotations

from collections.abc import Mapping

from harp.backends.c.emit import custom_kernels, function
from harp.backends.c.emit.function import Function, constant, parameter
from harp.backends.c.emit.work import Work, bound_of, no_text
from harp.backends.c_family.library import MATRICES_USE, matrix_kernel
from harp.backends.c_family.statements import STATEMENTS, Statements, parameters
from harp.backends.c_family.values import bare, code, plain
from harp.errors import VerificationError
from harp.lower.loopir.effects import effects, free_names
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    For,
    ForeignCall,
    Kernel,
    LocalCall,
    LoopKind,
    Nest,
    Repeat,
    Stmt,
    walk,
)
from harp.lower.loopir.program import formals
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.index.polynomial import Atom, Index, Loop, product
from harp.trace.scalar.expr import Const

# The name of a kernel in its own text.
KERNEL = "harp_kernel"
# A loop checks for interrupts if it may take more operations than `_SHORT`, some milliseconds. An inner loop with at
# most `_EACH` operations for each element along one axis does not: the loop round it does.
_SHORT, _EACH = 1 << 22, 1 << 8
# Nor does a loop of so few steps, which compilers may unroll.
_FEW = 64
# The most iterations that share a vector.
_LANES = 16


class Body(Statements):
    """Prints statements as the lines of one function.

    Parallel loops become `parts`, whose names start with `prefix`; without one they are plain loops.
    """

    def __init__(
        self,
        buffers: Mapping[Buffer, str],
        names: Mapping[Atom, str],
        constant: frozenset[Buffer],
        prefix: str = "",
        outer: Body | None = None,
    ) -> None:
        super().__init__(buffers, names, constant)
        self.parts: list[function.Part] = outer.parts if outer else []
        self._functions: dict[Kernel, Function] = outer._functions if outer else {}
        self._range: Loop | None = None  # the parallel loop of which this part runs a range
        self._prefix = prefix
        self._loops = 0 if prefix else 1  # a part is always inside of its parallel loop

    def _nest(self, stmt: Nest, block: bool) -> None:
        first = stmt.heads[0] if stmt.heads else None
        if isinstance(first, For) and first.kind is LoopKind.PARALLEL and self._prefix:
            self._in_parts(first, stmt)
        else:
            super()._nest(stmt, block)

    def _in_parts(self, head: For, stmt: Nest) -> None:
        """Make a function that runs a range of the loop's iterations, and call it for all of them."""
        used = effects(stmt)
        buffers = {b: self._buffers[b] for b in used.touched}
        names: dict[Atom, str] = {atom: self._names[atom] for atom in free_names(stmt)}
        inner = Body(buffers, names, self._constant, outer=self)
        inner.lines.loops = self.lines.loops
        inner._range = head.loop
        inner.statement(function.hoisted(stmt), True)
        fields = {text: parameter(b, text, b in used.writes) for b, text in buffers.items()}
        used_names = [name for name in names.values() if name in inner.used]
        fields |= {name: f"int64_t {name}" for name in used_names}
        least = _LANES if _repeats_numbers(stmt.body) else 1
        part = function.part(f"{self._prefix}_part{len(self.parts)}", fields, inner.lines, least)
        self.parts.append(part)
        self.used.update(used_names)
        self.lines.uses |= inner.lines.uses | {"harp_parallel"}
        self.lines.opened += inner.lines.opened
        pointed = {self._buffers[b] for b in self._scalars & {*buffers}}
        count = bare(self._index.text(head.loop.extent))
        function.call(part, pointed, count, Work(self._bare).of(stmt).text, self.lines)

    def _hint(self, head: For, body: Stmt) -> None:
        super()._hint(head, body)
        if head.loop is self._range and _repeats_numbers(body):
            self._independent(body)

    def _loop(self, head: For, name: str) -> str:
        if head.loop is self._range:
            return f"for (int64_t {name} = begin; {name} < end; ++{name})"
        return super()._loop(head, name)

    def _bare(self, p: Index) -> str:
        return bare(self._index.text(p))

    def _work_of_step(self, loop: For | Repeat, step: Stmt) -> str | None:
        extent = loop.loop.extent
        few = extent.constant is not None and extent.constant <= _FEW
        if few or loop.loop is self._range or (isinstance(loop, For) and loop.kind is LoopKind.SEARCH):
            return None
        factor, degree = bound_of(extent).times(Work(no_text).of(step, (loop.loop,)).bound)
        if (degree == 0 and factor <= _SHORT) or (degree == 1 and factor <= _EACH and self._loops):
            return None
        return Work(self._bare).of(step, (loop.loop,)).text

    def _foreign_call(self, stmt: ForeignCall, block: bool) -> None:
        """Call a kernel of the user, a function of matrices or one of Python with pointers to arrays, and their sizes:

        out0 = cholesky(in0)
            ->  if (status == 0)
                    status = harp_cholesky_f64(s0, 0, (const void *[]){out0, in0}, (const int64_t []){s1, s1, s1, s1});
        mem3 = function 2 of Python(mem1) where mem2, after in0
            ->  if (status == 0)
                    status = harp_call_python(2, "1 1 int64:0 int64:0 bool:0 float64:2",
                                              (const void *[]){mem3, in0, mem2, mem1}, (const int64_t []){s0, s1, s2});
        """
        if isinstance(stmt.routine, KernelSource):
            self._custom_kernel(stmt)
            return
        rank, arrays = len(stmt.calls), (*stmt.targets, *stmt.sources)
        extents = [p for b in arrays for p in b.shape[rank:]]
        if isinstance(stmt.routine, MatrixFunction):
            name = matrix_kernel(stmt.routine.op, stmt.sources[0].dtype)
            flags = sum(flag << place for place, flag in enumerate(stmt.routine.flags))
            head = f"{name}({self._bare(product(stmt.calls))}, {flags}, "
            self.lines.uses |= {name, *MATRICES_USE}
        else:
            kinds = (f"{b.dtype.numpy_name}:{len(b.shape) - rank}" for b in arrays)
            layout = " ".join([str(rank), str(len(stmt.targets)), *kinds])
            head, extents = f'harp_call_python({stmt.routine}, "{layout}", ', [*stmt.calls, *extents]
            self.lines.uses.add("harp_call_python")
        pointers = ", ".join(self._buffers[b] for b in arrays)
        sizes = ", ".join(map(self._bare, extents)) or "0"
        arrays_and_sizes = f"(const void *[]){{{pointers}}}, (const int64_t []){{{sizes}}}"
        self.lines.add(f"if (status == 0) status = {head}{arrays_and_sizes});", stores=True)
        self.lines.fails = True

    def _custom_kernel(self, stmt: ForeignCall) -> None:
        """Define a function for a kernel of the user, and call it."""
        name = f"{KERNEL}_part{len(self.parts)}"
        self.parts.append(function.Part(name, tuple(code(custom_kernels.definition(stmt, name))), ()))
        self.lines.uses |= custom_kernels.headers(stmt)
        self.lines.add(custom_kernels.call(stmt, name, self._buffers.__getitem__, self._bare), stores=True)
        self.lines.fails = True

    def _local_call(self, stmt: LocalCall, block: bool) -> None:
        """Call a function for equal loops, which is defined before its first call."""
        called = self._functions.get(stmt.function)
        if called is None:
            called = kernel_function(stmt.function, f"{KERNEL}_part{len(self.parts)}", "")
            called = self._functions[stmt.function] = called._replace(comment="A loop that occurs several times.")
            self.parts.append(function.Part(called.name, tuple(called.definition(function.STATIC)), ()))
            self.lines.opened += called.loops
        self.lines.uses |= called.uses
        pairs = zip(parameters(stmt.function).values(), (*stmt.arguments, *stmt.sizes), strict=True)
        used = {name for name, _ in called.parameters}
        given = {name: self._argument(argument) for name, argument in pairs if name in used}
        self.lines.add(f"{called.call(given)};", stores=True)

    def _argument(self, argument: Buffer | Const | Index) -> str:
        if isinstance(argument, Index):
            return self._bare(argument)
        return constant(argument) if isinstance(argument, Const) else self._buffers[argument]

    def _large(self, stmt: Alloc, ctype: str, name: str) -> None:
        """Allocate memory around the body. If that fails, the body is skipped and the function reports failure."""
        size = str(stmt.buffer.dtype.itemsize)
        for extent in stmt.buffer.shape:
            size = f"harp_times({size}, {bare(self._index.text(extent))})"
        memory = self._fresh(f"{name}_data")
        self.lines.add(f"{ctype} *const {memory} = harp_take({size});")
        self.lines.uses.add("harp_take")
        self.lines.open(f"if ({memory} == NULL)")
        self.lines.add("status = 1;")
        self.lines.fails = True
        self.lines.other()
        self.lines.add(f"{ctype} *restrict {name} = {memory};")
        self.statement(stmt.body, True)
        self.lines.add(f"harp_give({memory});")
        self.lines.close()


def _repeats_numbers(body: Stmt) -> bool:
    """Whether all loops of known length update scalars only: then several iterations may share a vector."""
    inside = list(walk(body))
    loops = [s for s in inside if isinstance(s, Repeat)]
    return bool(loops) and not any(s.test or s.moves for s in loops) and not any(isinstance(s, Nest) for s in inside)


def kernel_function(kernel: Kernel, name: str = KERNEL, prefix: str = KERNEL) -> Function:
    """A kernel without its unused parameters as a function."""
    names = parameters(kernel)
    buffers = {b: names[b] for b in formals(kernel)}
    sizes: dict[Atom, str] = {s: names[s] for s in kernel.sizes}
    used = effects(kernel.body)
    for buffer in used.touched:
        if buffer not in buffers:
            raise VerificationError(f"kernel {kernel.name}: {buffer.name} is none of its parameters")
    only_read = frozenset(b for b in used.touched if b not in used.writes)
    body = Body({b: buffers[b] for b in used.touched}, sizes, only_read, prefix)
    body.statement(kernel.body, True)
    declared = [(name, parameter(b, name, b in used.writes)) for b, name in buffers.items() if b in used.touched]
    declared += [(name, f"int64_t {name}") for name in sizes.values() if name in body.used]
    written, read = ([name for b, name in buffers.items() if b in group] for group in (used.writes, used.reads))
    comment = f"{plain(kernel.name)}: {', '.join(written)} <- {', '.join(read)}".strip()
    made = function.define(name, declared, body.lines, comment)
    return made._replace(parts=tuple(part.lines for part in body.parts))


Body.statements = {**STATEMENTS, Nest: Body._nest, ForeignCall: Body._foreign_call, LocalCall: Body._local_call}
