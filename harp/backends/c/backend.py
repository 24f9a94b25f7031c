"""The C backend: print a program, compile it or find it in the cache, load it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.backends.c.render import is_packed, render
from harp.backends.load import build_and_load, pointer
from harp.backends.options import CompileOptions
from harp.backends.protocol import Kernel, Source
from harp.config import show
from harp.errors import HarpError
from harp.lower.program import Program
from harp.trace.dtypes import Buffer
from harp.trace.graph import Graph


class CKernel:
    """A loaded program. `function` takes pointers of inputs and outputs, then sizes; it is None for many of these."""

    def __init__(self, program: Program, source: Source, options: CompileOptions) -> None:
        self.source = source
        self._packed = is_packed(program)
        suffix = "_packed" if self._packed else ""
        names = f"harp_run{suffix}", f"harp_scratch{suffix}"
        self._library = build_and_load(source, options, names=names)
        if self._packed:
            run, scratch = "void **, int64_t *", "int64_t *"
        else:
            sizes = ["int64_t"] * len(program.sizes)
            pointers = ["void *"] * (len(program.inputs) + len(program.outputs))
            run, scratch = ", ".join(pointers + sizes) or "void", ", ".join(sizes) or "void"
        self._run = self._library.function(names[0], f"int(*)({run})")
        self._scratch = self._library.function(names[1], f"int64_t(*)({scratch})")

    @property
    def function(self) -> Callable[..., int] | None:
        """What can be called with pointers and sizes one after the other."""
        return None if self._packed else self._run

    def pointer(self, array: Buffer, /) -> object:
        """The address of an array, which the pointer keeps alive."""
        return pointer(array)

    def scratch_bytes(self, sizes: Sequence[int]) -> int:
        """The scratch memory of a call with these sizes; -1 if it is too much to count."""
        return self._scratch(sizes) if self._packed else self._scratch(*sizes)

    def __call__(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[int], /) -> int:
        pointers = [pointer(array) for group in (inputs, outputs) for array in group]
        return self._run(pointers, sizes) if self._packed else self._run(*pointers, *sizes)


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
