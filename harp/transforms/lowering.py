"""The compiler: from a graph in canonical form to a kernel, or to the text of each stage.

It is half of harp, and a process that finds all its programs in the cache never imports it.
"""

from __future__ import annotations

from typing import NamedTuple

from harp import backends
from harp.backends.c.render import render
from harp.backends.options import CompileOptions
from harp.backends.protocol import Kernel
from harp.backends.toolchain import find_toolchain
from harp.lower.pipeline import lower
from harp.lower.schedule import Schedule
from harp.lower.target import Target
from harp.trace.graph import Graph
from harp.trace.signature import canonical


class Stages(NamedTuple):
    """What became of a function, stage by stage: print it, or print one of its parts."""

    graph: Graph
    schedule: Schedule
    loops: str
    source: str

    def __str__(self) -> str:
        titles = zip(("graph", "schedule", "loop nests", "C source"), self, strict=True)
        return "\n\n".join(f"--- {title}\n{text}" for title, text in titles)


def stages_of(graph: Graph) -> Stages:
    """Lower a graph and print it as C, without compiling."""
    lowered = lower(canonical(graph), target())
    return Stages(lowered.graph, lowered.schedule, lowered.loops, str(render(lowered.program)))


def target() -> Target:
    """What lowering is told of the machine that the toolchain compiles for."""
    toolchain = find_toolchain()
    return Target() if toolchain is None else Target(vector_bytes=toolchain.vector_bytes, fma=toolchain.fma)


def compiled(graph: Graph, name: str, options: CompileOptions) -> Kernel:
    """What the backend of this name makes of a graph in canonical form."""
    lowered = lower(graph, target()) if name == "c" else None
    return backends.get(name).compile(lowered.program if lowered else None, graph, options)
