"""The fallback without a compiler: the graph, run node by node with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable, Limits, ProgramText, TimedExecutable
from harp.errors import OutOfMemoryError, ToolchainError
from harp.lower.loopir.program import Program
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Input, Node, fresh_input
from harp.trace.graph.rebuild import with_inputs
from harp.trace.scalar.dtypes import NDArray
from harp.trace.sizes.signature import sizes_of

_NO_KERNELS = (
    "there is no C compiler, and NumPy's interpreter has no kernels whose time could be taken; `python -m harp doctor` "
    "says how to get one"
)


class NumpyExecutable:
    """Runs a graph whose captured arrays are inputs: graphs that differ only in these arrays share a program."""

    function: Callable[..., int] | None = None
    packed: Callable[..., int] | None = None
    memory: None = None

    def __init__(self, graph: Graph, check: bool = False) -> None:
        self._check = check
        self._sizes = sizes_of(graph)
        self._graph = _open(graph)

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int:
        try:
            results = interpret(self._graph, inputs, dict(zip(self._sizes, sizes, strict=True)), self._check)
        except OutOfMemoryError:
            return 1
        for out, result in zip(outputs, results, strict=True):
            np.copyto(out, result)
        return 0


class NumpyBackend:
    """Needs no program, only the graph."""

    name = "numpy"
    memory: None = None

    def target(self) -> None:
        """Nothing is lowered for this backend."""

    def compile(
        self,
        program: Program | None,
        graph: Graph,
        options: CompileOptions,
        check: bool = False,
        sizes: Sequence[int] | None = None,
    ) -> Executable:
        return NumpyExecutable(graph, check)

    def text(self, program: Program) -> ProgramText:
        raise ToolchainError(_NO_KERNELS)

    def timed(self, program: Program, options: CompileOptions) -> TimedExecutable:
        raise ToolchainError(_NO_KERNELS)

    def measure(self, threads: int) -> Limits:
        raise ToolchainError(_NO_KERNELS)

    def limits_key(self, threads: int) -> str:
        raise ToolchainError(_NO_KERNELS)


_BACKEND = NumpyBackend()


def backend(number: int) -> NumpyBackend:
    """The only NumPy backend."""
    return _BACKEND


def _open(graph: Graph) -> Graph:
    """The graph with each captured array as a further input, named for error messages."""
    extra: dict[Node, Input] = {c: fresh_input("a captured array", c.shape, c.dtype) for c in graph.captured}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node in extra:
            return extra[node]
        return with_inputs(node, inputs)

    opened = transform(graph, rule)
    return Graph((*opened.inputs, *extra.values()), opened.outputs, opened.sites)
