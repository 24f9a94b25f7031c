"""The C backend: print a program, compile it or find it in the cache, load it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.backends.c.render import render
from harp.backends.load import build_and_load, pointer
from harp.backends.options import CompileOptions
from harp.backends.protocol import Kernel, Source
from harp.config import show
from harp.errors import HarpError
from harp.lower.program import Program
from harp.trace.dtypes import Buffer
from harp.trace.graph import Graph


class CKernel:
    """A loaded program. `function` takes pointers of inputs and outputs, then sizes."""

    def __init__(self, program: Program, source: Source, options: CompileOptions) -> None:
        self.source = source
        self._library = build_and_load(source, options)
        pointers = ["void *"] * (len(program.inputs) + len(program.outputs))
        sizes = ["int64_t"] * len(program.sizes)
        self.function: Callable[..., int] | None = self._library.function(
            "harp_run", f"int(*)({', '.join(pointers + sizes) or 'void'})"
        )
        self._run = self.function
        self._scratch = self._library.function("harp_scratch", f"int64_t(*)({', '.join(sizes) or 'void'})")

    def pointer(self, array: Buffer, /) -> object:
        """The address of an array, which the pointer keeps alive."""
        return pointer(array)

    def scratch_bytes(self, sizes: Sequence[int]) -> int:
        """The scratch memory of a call with these sizes; -1 if it is too much to count."""
        return self._scratch(*sizes)

    def __call__(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[int], /) -> int:
        return self._run(*map(pointer, inputs), *map(pointer, outputs), *sizes)


class CBackend:
    """Compiles programs to machine code; raises ToolchainError where that is not possible."""

    name = "c"

    def compile(self, program: Program | None, graph: Graph, options: CompileOptions) -> Kernel:
        if program is None:
            raise HarpError("the C backend compiles lowered programs, and was given a graph only")
        source = render(program)
        show(4, "C source", source)
        return CKernel(program, source, options)


BACKEND = CBackend()
