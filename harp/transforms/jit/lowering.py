"""The compiler: from a graph in canonical form to a kernel, or to the text of each stage.

It is half of harp, and a process that finds all its programs in the cache never imports it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import attrs

from harp import backends
from harp.backends.c.emit.render import render
from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable
from harp.backends.runtime.pool import usable_cores
from harp.backends.toolchain.toolchain import find_toolchain
from harp.config import settings
from harp.lower.loopir.program import Program
from harp.lower.pipeline import lower
from harp.lower.report.counts import Count
from harp.lower.report.footprint import Memory, footprint
from harp.lower.report.report import Cost, given_sizes, report
from harp.lower.schedule.build import Built
from harp.lower.schedule.schedule import Schedule
from harp.lower.target import Target
from harp.trace.eval.inside import Access
from harp.trace.graph.digest import digest
from harp.trace.graph.graph import Graph
from harp.trace.sizes.signature import canonical


class _Latest(NamedTuple):
    """What was lowered to be shown, and is compiled next as a rule."""

    content: bytes
    target: Target
    donated: tuple[int, ...]
    program: Program  # not the graph, which holds arrays


_latest: list[_Latest] = []


@attrs.frozen(eq=False, repr=False)
class Stages:
    """What became of a function, stage by stage: print it, or print one of its parts.

    `sizes` says what the sizes of the program are, in their order.
    """

    graph: Graph
    schedule: Schedule
    loops: str
    source: str
    sizes: tuple[str, ...]
    _program: Program
    _algorithm: Built
    _given: tuple[int, ...]  # the sizes of the arguments
    _threads: int

    def __str__(self) -> str:
        stages = (self.graph, self.schedule, self.loops, self.source)
        titles = zip(("graph", "schedule", "loop nests", "C source"), stages, strict=True)
        return "\n\n".join(f"--- {title}\n{text}" for title, text in titles)

    __repr__ = __str__

    def memory(self, *sizes: int) -> Memory:
        """How much memory a call takes: `inputs`, `captured`, `outputs`, `scratch`, `per_thread`, `peak`, in bytes.

        Results that take over the memory of arguments count once, as arguments.
        `sizes` are values for the sizes of the program in the order of `stages.sizes`, without which they are those
        of the arguments of `lower`. Raises ArgumentError unless there is a number >= 0 for each.

        >>> import harp, numpy as np
        >>> harp.jit(lambda x: x + 1).lower(np.ones(3)).memory(1000).outputs
        8000
        """
        values = given_sizes("memory", self.sizes, sizes, self._given)
        by_symbol = dict(zip(self._program.sizes, values, strict=True))
        return footprint(self._program, len(self.graph.inputs), by_symbol, self._threads)

    def cost(self) -> Cost[Count]:
        """What a call computes and moves, as polynomials in the sizes: in all, and by kernels; see `Cost`.

        >>> import harp, numpy as np
        >>> print(harp.jit(lambda x: x * 2 + 1).lower(np.ones(3)).cost().operations)
        2*n
        """
        return report(self._algorithm, self._program.sizes, self.sizes, self._given)


def stages_of(
    graph: Graph,
    donated: Sequence[int],
    names: Sequence[str],
    given: Sequence[int],
    threads: int | None,
    check: bool = False,
) -> Stages:
    """Lower a graph and print it as C, without compiling. `names` and values of its sizes stand in its order."""
    renamed = canonical(graph)
    lowered = lower(renamed, target(), donated, check)
    if not check:
        _latest[:] = [_Latest(digest(renamed), lowered.target, tuple(donated), lowered.program)]
    text = str(render(lowered.program))
    workers = threads or settings.threads or usable_cores()
    return Stages(
        lowered.graph,
        lowered.schedule,
        lowered.loops,
        text,
        tuple(names),
        lowered.program,
        lowered.algorithm,
        tuple(given),
        workers,
    )


def target() -> Target:
    """What lowering is told of the machine that the toolchain compiles for."""
    toolchain = find_toolchain()
    cores = os.cpu_count() or 1
    if toolchain is None:
        return Target(cores=cores)
    return Target(toolchain.vector_bytes, toolchain.fma, cores, toolchain.l1, toolchain.line)


def compiled(
    graph: Graph, name: str, options: CompileOptions, donated: Sequence[int] = (), check: bool = False
) -> tuple[Executable, tuple[tuple[int, int], ...], tuple[Access, ...]]:
    """What the backend of this name makes of a graph in canonical form, which outputs live in donated inputs, and
    which accesses the program reports."""
    program = _program(graph, donated, check) if name == "c" else None
    kernel = backends.get(name).compile(program, graph, options, check)
    return (kernel, program.donated, program.accesses) if program else (kernel, (), ())


def _program(graph: Graph, donated: Sequence[int], check: bool) -> Program:
    """Of a graph in canonical form: as it was lowered to be shown, if that was the last one."""
    for latest in () if check else _latest:
        if latest[:3] == (digest(graph), target(), tuple(donated)):
            return latest.program
    return lower(graph, target(), donated, check).program
