"""Programs for graphs outside of a trace, whose loops take long in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from harp.backends.options import CompileOptions
from harp.config import CPU
from harp.garbage import collected_later
from harp.locks import compiler_imports, importing
from harp.progress import announced, waiting
from harp.trace.graph.graph import Graph
from harp.trace.graph.host_calls import numbered
from harp.trace.scalar.dtypes import NDArray, plain
from harp.trace.trees import flatten
from harp.transforms.jit.calls import runner
from harp.transforms.jit.waiting import making


def by_program(graph: Graph, arrays: Sequence[NDArray]) -> list[NDArray] | None:
    """The outputs of a graph, whose sizes are numbers, by a program for the processor, where arrays outside of a trace
    are computed; None where there is no compiler."""
    with compiler_imports(), importing:
        from harp.transforms.jit.programs import (  # not before it is needed
            backend_name,
            begin,
            body,
            calls_lapack,
            program_for,
        )

    begin(CPU)
    if backend_name(CPU) == "numpy":
        return None
    graph, functions = numbered(graph, partial(calls_lapack, CPU))
    with collected_later(), waiting(), announced(making("a loop outside of jit", graph)):
        program = program_for(graph, CompileOptions(), device=CPU, sizes=())
    captured = [node.captured.array for node in graph.captured]
    _, treedef = flatten([0] * len(graph.outputs))
    code = body(program, captured, treedef, [False] * len(graph.outputs), functions=functions)
    results, _ = flatten(runner(code)([plain(array) for array in arrays], (), arrays))
    return [np.asarray(result) for result in results]
