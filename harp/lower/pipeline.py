"""From graph to program: the passes, once, in order, each with its verifier.

HARP_VERIFY=1 verifies the ends of the stages, 2 after each pass; 3 also runs what each pass made on random data of
small sizes, and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from harp.config import settings, show
from harp.lower.device.grid import to_grids
from harp.lower.device.share import share
from harp.lower.graph.dead_results import without_dead_results
from harp.lower.graph.factors_before_loops import factors_before_loops
from harp.lower.graph.in_place import updated_in_place
from harp.lower.graph.kept_elements import kept_elements
from harp.lower.graph.legalise import legalise, verify_legalised
from harp.lower.graph.simplify import simplify, verify_simplified
from harp.lower.graph.sums_behind_loops import sums_behind_loops
from harp.lower.kernels.assemble import as_they_are, assemble
from harp.lower.kernels.block_fusion import in_blocks
from harp.lower.kernels.bounds_checks import check_addresses, verify_checked
from harp.lower.kernels.copies import without_copies
from harp.lower.kernels.donate import donate
from harp.lower.kernels.fuse import fuse
from harp.lower.kernels.iterations import iteration_kernels
from harp.lower.kernels.outline import outline
from harp.lower.kernels.tile_and_fuse import tile_and_fuse
from harp.lower.library.select import select_routines
from harp.lower.loopir.loops import Kernel, LoopKind
from harp.lower.loopir.products import fused_sums, multiply_adds
from harp.lower.loopir.program import Program
from harp.lower.loopir.text import kernel_text, program_text
from harp.lower.nest_rules import rewrite_nests
from harp.lower.reductions.chunks import long_rows, split_reductions
from harp.lower.rewrite.digits import digits
from harp.lower.rewrite.index_set_splitting import split_index_sets
from harp.lower.rewrite.parallel import parallel
from harp.lower.schedule.build import Built, build
from harp.lower.schedule.schedule import Schedule, schedule, verify_schedule
from harp.lower.target import Target
from harp.lower.verify.differential_check import check_graph, check_program
from harp.lower.verify.verify import verify_kernel, verify_program
from harp.progress import tick
from harp.trace.graph.counted import may_not_end
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Constant
from harp.trace.graph.verify import verify_graph
from harp.trace.sizes.signature import sizes_of


@attrs.frozen(eq=False)
class Lowered:
    """A graph on its way to a program: what a pass has not made yet is empty.

    `donated` are the numbers of donated inputs; the program `checks` its addresses, or not; the passes that make loops
    `fast` run, or not. `algorithm` are the loop nests before the kernels are outlined: what the program computes,
    however fast.
    """

    source: Graph
    target: Target
    graph: Graph
    schedule: Schedule
    built: Built
    program: Program
    donated: tuple[int, ...] = ()
    checks: bool = False
    fast: bool = True
    algorithm: Built = attrs.field(factory=lambda: Built((), (), (), ()))

    @property
    def loops(self) -> str:
        """The program's loop nests as text."""
        return program_text(self.program)


@attrs.frozen
class Pass:
    """A function from state to state, what must hold after it, and how to run and print what it made."""

    name: str
    level: int  # of HARP_DEBUG that prints it; every pass is printed at the highest
    run: Callable[[Lowered], Lowered]
    verify: Callable[[Lowered, Lowered], None]
    check: Callable[[Lowered, Lowered], None]
    text: Callable[[Lowered], str]
    ends_stage: bool = False


def _legalise(s: Lowered) -> Lowered:
    return attrs.evolve(s, graph=legalise(s.graph))


def _simplify(s: Lowered) -> Lowered:
    less = sums_behind_loops(kept_elements(without_dead_results(s.graph)))
    return attrs.evolve(s, graph=without_dead_results(factors_before_loops(simplify(less))))


def _schedule(s: Lowered) -> Lowered:
    return attrs.evolve(s, schedule=schedule(updated_in_place(s.graph), s.checks))


def _build(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=_built(s.schedule, s.source.captured, s))


def _built(scheduled: Schedule, captured: Sequence[Constant], s: Lowered) -> Built:
    """The loop nests of a schedule. The steps of iterations are scheduled, built and fused like programs."""

    def step(graph: Graph) -> Built:
        return _built(schedule(graph, s.checks), (), s)

    def joined(built: Built) -> Built:
        return fuse(built) if s.fast else built

    return without_copies(build(scheduled, captured, s.target, partial(iteration_kernels, step, joined)))


def _fuse(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=fuse(s.built))


def _tile_and_fuse(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=tile_and_fuse(s.built))


def _donate(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=donate(s.built, s.donated)) if s.donated else s


def _blocks(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=in_blocks(s.built))


def _outline(s: Lowered) -> Lowered:
    """A checked program keeps equal kernels apart: each belongs to a line of the user."""
    return attrs.evolve(s, algorithm=s.built, built=outline(s.built) if s.fast else as_they_are(s.built))


def _each(run: Callable[[Kernel], Kernel]) -> Callable[[Lowered], Lowered]:
    """The pass over all kernels."""

    def run_and_tick(kernel: Kernel) -> Kernel:
        tick()
        return run(kernel)

    return lambda s: attrs.evolve(s, built=attrs.evolve(s.built, kernels=tuple(map(run_and_tick, s.built.kernels))))


def _split_reductions(s: Lowered) -> Lowered:
    """Wide devices share long sums later, if the program is to be fast."""
    return s if s.target.wide and s.fast else _each(split_reductions)(s)


def _split_index_sets(s: Lowered) -> Lowered:
    """Where a condition of a sum is known, and products are left, they are fused multiply-adds as in every sum."""
    split = _each(split_index_sets)(s)
    return _each(lambda kernel: kernel.with_body(fused_sums(kernel.body)))(split) if s.target.fma else split


def _multiply_adds(s: Lowered) -> Lowered:
    """A checked program rounds as every other one."""
    return _each(multiply_adds)(s) if s.target.fma else s


def _bounds_checks(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=check_addresses(s.built, s.graph)) if s.checks else s


def _if_fast(run: Callable[[Lowered], Lowered]) -> Callable[[Lowered], Lowered]:
    """The pass, left out of programs that keep their loops as they were built."""
    return lambda s: run(s) if s.fast else s


def _on_cores(run: Callable[[Lowered], Lowered]) -> Callable[[Lowered], Lowered]:
    """The pass for cores with vectors and caches of their own."""
    return lambda s: s if s.target.wide else run(s)


def _share(s: Lowered) -> Lowered:
    return _each(lambda kernel: share(kernel, s.target))(s) if s.target.grid else s


def _grids(s: Lowered) -> Lowered:
    kind = LoopKind.PARALLEL if s.fast and not s.target.wide else LoopKind.PLAIN
    return _each(lambda kernel: to_grids(kernel, kind))(s) if s.target.grid else s


def _rewrite_nests(s: Lowered) -> Lowered:
    return _each(lambda kernel: rewrite_nests(kernel, s.target))(s)


def _plan(s: Lowered) -> Lowered:
    return attrs.evolve(s, program=_assembled(s))


def _assembled(s: Lowered) -> Program:
    return assemble(s.built, sizes_of(s.source))


def _verify_kernels(before: Lowered, after: Lowered) -> None:
    """Kernels that the pass left alone have been verified."""
    for kernel in after.built.kernels:
        if kernel not in before.built.kernels:
            verify_kernel(kernel)


def _verify_bounds_checks(before: Lowered, after: Lowered) -> None:
    _verify_kernels(before, after)
    if after.checks:
        verify_checked(after.built.kernels)


def _check_graph(before: Lowered, after: Lowered) -> None:
    if after.graph.outputs != before.graph.outputs and not may_not_end(after.source):
        check_graph(before.graph, after.graph)


def _check_kernels(before: Lowered, after: Lowered) -> None:
    """What the pass left alone has been run, with its memory planned as at the end."""
    if after.built != before.built and not may_not_end(after.source):
        check_program(after.source, _assembled(after))


def _no_check(before: Lowered, after: Lowered) -> None:
    """A schedule says where, not what."""


def _kernels_text(s: Lowered) -> str:
    return "\n".join(map(kernel_text, s.built.kernels))


def _verify_legalised(before: Lowered, after: Lowered) -> None:
    verify_graph(after.graph)
    verify_legalised(after.graph)


def _verify_graph(before: Lowered, after: Lowered) -> None:
    verify_simplified(before.graph, after.graph)


def _verify_schedule(before: Lowered, after: Lowered) -> None:
    verify_schedule(after.schedule)


def _verify_program(before: Lowered, after: Lowered) -> None:
    verify_program(after.program)


PASSES = (
    Pass("legalise", 5, _legalise, _verify_legalised, _check_graph, lambda s: repr(s.graph)),
    Pass("simplify", 2, _simplify, _verify_graph, _check_graph, lambda s: repr(s.graph)),
    Pass("schedule", 3, _schedule, _verify_schedule, _no_check, lambda s: repr(s.schedule), ends_stage=True),
    Pass("build", 5, _build, _verify_kernels, _check_kernels, _kernels_text),
    Pass("fuse", 5, _if_fast(_fuse), _verify_kernels, _check_kernels, _kernels_text),
    Pass("tile and fuse", 5, _if_fast(_on_cores(_tile_and_fuse)), _verify_kernels, _check_kernels, _kernels_text),
    Pass("donate", 5, _donate, _verify_kernels, _check_kernels, _kernels_text),
    Pass("blocks", 5, _if_fast(_on_cores(_blocks)), _verify_kernels, _check_kernels, _kernels_text),
    Pass("outline", 5, _outline, _verify_kernels, _check_kernels, _kernels_text),
    Pass("multiply-adds", 5, _multiply_adds, _verify_kernels, _check_kernels, _kernels_text),
    Pass("digits", 5, _if_fast(_each(digits)), _verify_kernels, _check_kernels, _kernels_text),
    Pass("split index sets", 5, _if_fast(_split_index_sets), _verify_kernels, _check_kernels, _kernels_text),
    Pass("split reduction", 5, _split_reductions, _verify_kernels, _check_kernels, _kernels_text),
    Pass("bounds checks", 5, _bounds_checks, _verify_bounds_checks, _check_kernels, _kernels_text),
    Pass("long rows", 5, _if_fast(_on_cores(_each(long_rows))), _verify_kernels, _check_kernels, _kernels_text),
    Pass("rewrite nests", 5, _if_fast(_on_cores(_rewrite_nests)), _verify_kernels, _check_kernels, _kernels_text),
    Pass("parallel", 5, _if_fast(_on_cores(_each(parallel))), _verify_kernels, _check_kernels, _kernels_text),
    Pass(
        "select routines",
        5,
        _if_fast(_on_cores(_each(select_routines))),
        _verify_kernels,
        _check_kernels,
        _kernels_text,
    ),
    Pass("share", 5, _if_fast(_share), _verify_kernels, _check_kernels, _kernels_text),
    Pass("grids", 5, _grids, _verify_kernels, _check_kernels, _kernels_text),
    Pass("plan memory", 3, _plan, _verify_program, _check_kernels, lambda s: s.loops, ends_stage=True),
)


def lower(graph: Graph, target: Target, donated: Sequence[int] = (), check: bool = False, fast: bool = True) -> Lowered:
    """The program that computes a graph in canonical form, with what each pass made on the way.

    Outputs may live in the memory of those inputs whose numbers are in `donated`. With `check` the program compares
    every index with its axis (`harp.lower.kernels.bounds_checks`). With `check`, and without `fast`, the passes that
    make loops fast are left out.
    """
    if settings.verify >= 1:
        verify_graph(graph)
    empty = Program((), (), (), (), (), ())
    state = Lowered(
        graph,
        target,
        graph,
        Schedule(graph, ()),
        Built((), (), (), ()),
        empty,
        tuple(donated),
        check,
        fast and not check,
    )
    for step in PASSES:
        tick()
        before, state = state, step.run(state)
        if settings.debug >= step.level:
            show(step.level, f"after {step.name}", step.text(state))
        if settings.verify >= (1 if step.ends_stage else 2):
            step.verify(before, state)
        if settings.verify >= 3:
            step.check(before, state)
    return state
