"""The C backend: print a program, compile it or find it in the cache, load it."""

from __future__ import annotations

import os

from harp.backends.c.emit.render import interface, render
from harp.backends.c.measure import limits_key, measure
from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable, Limits, ProgramText
from harp.backends.runtime.executable import CExecutable, TimedCExecutable
from harp.backends.runtime.load import build_and_load
from harp.backends.toolchain.toolchain import find_toolchain
from harp.config import show
from harp.errors import HarpError, ToolchainError
from harp.lower.loopir.program import Program, custom_kernels
from harp.lower.target import Target
from harp.trace.graph.graph import Graph
from harp.trace.graph.kernel_source import refusal


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
        self, program: Program | None, graph: Graph, options: CompileOptions, check: bool = False
    ) -> Executable:
        if program is None:
            raise HarpError("the C backend compiles lowered programs, and was given a graph only")
        source = render(program)
        show(4, "C source", source)
        called = interface(program)
        try:
            library = build_and_load(source, options, names=called.names)
        except ToolchainError as error:
            raise refusal(custom_kernels(program), "c", str(error)) or error from None
        return CExecutable(library, called, bool(program.scratch))

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


_BACKEND = CBackend()


def backend(number: int) -> CBackend:
    """The only C backend."""
    return _BACKEND
