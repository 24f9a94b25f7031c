"""The C backend: print a program, compile it or find it in the cache, load it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf

import attrs

from harp.backends.c.emit.render import FULL, LEFT, interface, render, render_with_first
from harp.backends.c.emit.work import operations
from harp.backends.c.measure import limits_key, measure
from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable, Limits, ProgramText, Source
from harp.backends.runtime.executable import CExecutable, FirstCExecutable, TimedCExecutable
from harp.backends.runtime.load import build_and_load
from harp.backends.toolchain.build import missing_lines
from harp.backends.toolchain.toolchain import find_toolchain
from harp.config import show
from harp.errors import HarpError, ToolchainError
from harp.lower.loopir.program import Program, custom_kernels
from harp.lower.target import Target
from harp.trace.graph.graph import Graph
from harp.trace.graph.kernel_source import refusal

# gcc 12 takes about 1 ms for a line with optimisation, and a fifth of that without (880 lines: 0.9 and 0.17 s, Zen 3).
# So a first call gains time by a program without optimisation, unless it has much to do: an operation takes about 3 ns
# there, and those of the call may take a third of what a line takes; those of all calls until then as long as the
# compiler.
_OPERATIONS_OF_A_LINE = 1e5
_CALLS = 5
# A call with fewer operations does not wait for the pool of threads.
_FEW = 1e6


class CBackend:
    """Compiles programs to machine code; raises ToolchainError where that is not possible."""

    name = "c"
    memory: None = None

    def target(self) -> Target:
        """The properties of the machine that the toolchain compiles for, as lowering needs them."""
        toolchain = find_toolchain()
        cores = os.cpu_count() or 1
        if toolchain is None:
            return Target(cores=cores)
        return Target(toolchain.vector_bytes, toolchain.fma, cores, toolchain.l1, toolchain.line)

    def compile(
        self,
        program: Program | None,
        graph: Graph,
        options: CompileOptions,
        check: bool = False,
        sizes: Sequence[int] | None = None,
    ) -> Executable:
        """With `sizes` of a first call the result may be a program for it, which is made full later."""
        if program is None:
            raise HarpError("the C backend compiles lowered programs, and was given a graph only")
        source, first = render_with_first(program)
        show(4, "C source", source)
        called, has_scratch = interface(program), bool(program.scratch)

        def full(waits: bool = True) -> CExecutable:
            library = build_and_load(source, options, names=called.names)
            return CExecutable(library, called, has_scratch, waits or library.has("harp_take"))

        try:
            work = inf if sizes is None or any(custom_kernels(program)) else operations(program, sizes)
            most = _most_operations(source, options)
            if work > most:
                return full(work > _FEW)
            library = build_and_load(first(_CALLS * most), attrs.evolve(options, optimize=0), names=called.names)
        except ToolchainError as error:
            raise refusal(custom_kernels(program), "c", str(error)) or error from None
        return FirstCExecutable(library, called, has_scratch, (FULL, LEFT), full)

    def text(self, program: Program) -> ProgramText:
        """A file of C for each kernel, and one of the function that calls them."""
        source = render(program)
        return ProgramText("C", source.kernels, source.calls, str(source))

    def timed(self, program: Program, options: CompileOptions) -> TimedCExecutable:
        """The timed program. Its kernels are those of the untimed program, so they are found in the cache."""
        called = interface(program, timed=True)
        library = build_and_load(render(program, timed=True), options, names=called.names)
        return TimedCExecutable(library, called, bool(program.scratch), len(program.calls))

    def measure(self, threads: int) -> Limits:
        return measure(threads)

    def limits_key(self, threads: int) -> str:
        return limits_key(threads)


def _most_operations(source: Source, options: CompileOptions) -> float:
    """With so many operations at most a first call waits less for a program that is compiled without optimisation, and
    runs some ten times as long; -1 if earlier programs had all of the loops."""
    if options != CompileOptions() or not any(unit.kernel for unit in source.units):
        return -1.0
    return _OPERATIONS_OF_A_LINE * missing_lines(source, options) or -1.0


_BACKEND = CBackend()


def backend(number: int) -> CBackend:
    """The only C backend."""
    return _BACKEND
