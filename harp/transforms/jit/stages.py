"""What a user sees of the compiler: the stages of a program as text and as a page, what it costs and needs."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, overload

import attrs

from harp import backends
from harp.backends.protocol import ProgramText
from harp.backends.runtime.pool import usable_cores
from harp.config import CPU, settings
from harp.lower.loopir.program import Program
from harp.lower.loopir.text import program_text
from harp.lower.report.arrays import arrays
from harp.lower.report.counts import Count
from harp.lower.report.page.page import Parts, framed, page
from harp.lower.report.report import Cost, Memory, footprint, given_sizes, report
from harp.lower.schedule.build import Built
from harp.lower.schedule.schedule import Schedule
from harp.trace.graph.graph import Graph
from harp.trace.sizes.signature import canonical
from harp.trace.source_locations import Site
from harp.transforms.jit.frozen import frozen_calls
from harp.transforms.jit.lowering import printed, to_be_shown

_ASKED_ONCE = (
    "is asked once, while the function is traced, and all calls use that number: pass it as an argument, or draw it "
    "with harp.random"
)
# The most characters of a polynomial in the summary; its lowest terms are left out.
_WIDEST = 60


@attrs.frozen(eq=False, repr=False)
class Stages:
    """What became of a function, stage by stage: print it for a summary, print a part of it, or look at `html()`.

    `sizes` says what the sizes of the program are, in their order, and `promotion` where a float32 array first becomes
    float64; it is empty if none does. `frozen` names the clocks and the random numbers of Python and NumPy that were
    asked while the function was traced: later calls use the same numbers. In a notebook it shows its page.

    >>> import harp, numpy as np
    >>> print(harp.jit(lambda x: x * 2 + 1).lower(np.ones(3)))
    <lambda>: 1 kernel of 3 nodes
      operations     2*n    6
      bytes read     8*n    24
      bytes written  8*n    24
      memory         48 bytes at most, 0 of them scratch
      for n = x.shape[0] = 3
    .graph      3 nodes: what the function computes
    .schedule   1 kernel: which nodes are computed together
    .loops      1 distinct kernel: their loop nests, and the calls
    .source     ... lines of C
    .arrays     where each array is, and why it begins as a copy
    .cost()     operations and bytes of each kernel; .memory(): what a call takes
    .html(path) all of this beside each other, as a page
    """

    graph: Graph
    schedule: Schedule
    sizes: tuple[str, ...]
    _program: Program
    _algorithm: Built
    _given: tuple[int, ...]  # the sizes of the arguments
    _threads: int
    _name: str  # of the function
    _inputs: tuple[str, ...]
    _text: Callable[[], ProgramText]  # made when it is first asked for
    _compiled: Callable[[], Callable[..., Any]]
    promotion: str = ""  # where a float32 array first becomes float64, and by which operand
    frozen: tuple[str, ...] = ()  # clocks and random numbers of Python and NumPy, by their lines

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._amounts(), *self._how_to_see()])

    __repr__ = __str__

    @property
    def loops(self) -> str:
        """The loop nests of the distinct kernels, and the calls of them.

        >>> import harp, numpy as np
        >>> "parallel" in harp.jit(lambda x: x + 1).lower(np.ones(3)).loops
        True
        """
        return program_text(self._program)

    def as_text(self) -> str:
        """`loops`, under JAX's name for the text of a lowered function.

        >>> import harp, numpy as np
        >>> "out0" in harp.jit(lambda x: x + 1).lower(np.ones(3)).as_text()
        True
        """
        return self.loops

    def compile(self) -> Callable[..., Any]:
        """The jitted function, compiled for these arguments. It is called without those that are static. It takes
        arrays of all sizes, where JAX's takes only those of the arguments. Raises what the first call does.

        >>> import harp, numpy as np
        >>> power = harp.jit(lambda n, x: x**n, static_argnums=0).lower(3, np.ones(1)).compile()
        >>> power(np.array([1.0, 2.0]))
        Array([1., 8.])
        """
        return self._compiled()

    @property
    def source(self) -> str:
        """The program in the language of its device.

        >>> import harp, numpy as np
        >>> "harp_run" in harp.jit(lambda x: x + 1).lower(np.ones(3)).source
        True
        """
        return self._text().whole

    def _headline(self) -> str:
        kernels, nodes = len(self._program.calls), len(self.graph.nodes())
        return f"{self._name}: {_count(kernels, 'kernel')} of {_count(nodes, 'node')}"

    def _amounts(self) -> list[str]:
        """The operations and bytes of a call, for all sizes and for the sizes of the arguments."""
        cost, memory = self.cost(), self.memory()
        now = cost.at()
        rows = [
            ("operations", cost.operations.text(_WIDEST), now.operations),
            ("bytes read", cost.bytes_read.text(_WIDEST), now.bytes_read),
            ("bytes written", cost.bytes_written.text(_WIDEST), now.bytes_written),
        ]
        widest = max(len(text) for _, text, _ in rows)
        lines = [f"  {title:13}  {text:{widest}}    {number:,}" for title, text, number in rows]
        lines.append(f"  memory         {memory.peak:,} bytes at most, {memory.scratch:,} of them scratch")
        named = zip(cost.names.items(), cost.given, strict=True)
        where = ", ".join(f"{short} = {name} = {size}" for (short, name), size in named)
        return [
            *lines,
            *([textwrap.fill(f"for {where}", 110, initial_indent="  ", subsequent_indent="    ")] * bool(where)),
            *(
                textwrap.fill(text, 110, initial_indent="  ", subsequent_indent="    ")
                for text in (self.promotion, *(f"{call} {_ASKED_ONCE}" for call in self.frozen))
                if text
            ),
        ]

    def _how_to_see(self) -> list[str]:
        lines = self.source.count("\n")
        return [
            f".graph      {_count(len(self.graph.nodes()), 'node')}: what the function computes",
            f".schedule   {_count(len(self.schedule.groups), 'kernel')}: which nodes are computed together",
            f".loops      {_count(len(self._program.kernels), 'distinct kernel')}: their loop nests, and the calls",
            f".source     {_count(lines, 'line')} of {self._text().language}",
            ".arrays     where each array is, and why it begins as a copy",
            ".cost()     operations and bytes of each kernel; .memory(): what a call takes",
            ".html(path) all of this beside each other, as a page",
        ]

    @overload
    def html(self, path: None = None) -> str: ...

    @overload
    def html(self, path: str | os.PathLike[str]) -> None: ...

    def html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """A page with the lines of the function, graph, schedule, loop nests and C beside each other, and what each
        kernel costs: a click on a line shows what it came from and what it became.

        The page is one file that loads nothing. It is written to `path`; without one its text is returned. Raises
        OSError where it cannot be written.

        >>> import harp, numpy as np
        >>> harp.jit(lambda x: x * 2 + 1).lower(np.ones(3)).html().startswith("<!DOCTYPE html>")
        True
        """
        text = self._text()
        parts = Parts(
            self._name,
            self.schedule,
            self._algorithm,
            self._program,
            text.language,
            text.kernels,
            text.calls,
            self._inputs,
            self.cost(),
            self._given,
        )
        written = page(parts)
        if path is None:
            return written
        with open(path, "w", encoding="utf-8") as file:
            file.write(written)
        return None  # or a REPL would show all of it

    def _repr_html_(self) -> str:
        """The page, for notebooks."""
        return framed(self.html())

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

    @property
    def arrays(self) -> str:
        """The arrays that a call writes, each with its line: whether it begins as a copy, and why, or is changed in
        place. They are named as in `loops`.

        >>> import harp, numpy as np
        >>> print(harp.jit(lambda x, i: x.at[i].set(1.0)).lower(np.ones(3), 0).arrays)
        out0: f64[s0]  ...  begins as a copy of an argument, which keeps its elements unless it is donated
        """
        return arrays(self._algorithm, self._program)

    def cost(self) -> Cost[Count]:
        """What a call computes and moves, as polynomials in the sizes: in all, and by kernels; see `Cost`.

        >>> import harp, numpy as np
        >>> print(harp.jit(lambda x: x * 2 + 1).lower(np.ones(3)).cost().operations)
        2*n
        """
        return report(self._algorithm, self._program.sizes, self.sizes, self._given)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def stages_of(
    name: str,
    graph: Graph,
    donated: Sequence[int],
    names: Sequence[str],
    given: Sequence[int],
    threads: int | None,
    check: bool = False,
    device: str = CPU,
    promotion: tuple[str, Site] | None = None,
    function: Callable[..., object] | None = None,
    *,
    compiled: Callable[[], Callable[..., Any]],
) -> Stages:
    """Lower the graph of a function for a device, without compiling. `names` and values of its sizes stand in its
    order."""
    backend = backends.get("c" if device == CPU else device)
    target = backend.target()
    assert target is not None
    lowered = to_be_shown(canonical(graph), target, donated, check)
    workers = threads or settings.threads or usable_cores()
    return Stages(
        lowered.graph,
        lowered.schedule,
        tuple(names),
        lowered.program,
        lowered.algorithm,
        tuple(given),
        workers,
        name,
        tuple(node.name for node in graph.inputs),
        cache(partial(printed, backend.text, lowered.program)),
        compiled,
        "" if promotion is None else f"{promotion[1][0]}:{promotion[1][1]}: {promotion[0]}",
        () if function is None else tuple(frozen_calls(function)),
    )
