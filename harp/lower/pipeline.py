"""From graph to program: the passes in order, each with its verifier, and the rules for loop nests in order.

HARP_VERIFY=1 verifies the ends of the stages, 2 after each pass; 3 also runs what each pass made on random data of
small sizes, and compares. The steps of loops are lowered to nests by the same passes, inside of `build`.

Each rule for nests is applied once to the whole kernel, to the outermost statements that it fits, after all earlier
rules. Which rule fits depends on strides and constants, never on sizes at run time, and the order in which an element
is accumulated is the same in all versions of a loop: a row of a batch has the same bits at every batch size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import chain

import attrs

from harp.config import settings, show
from harp.lazy import Names
from harp.lower.graph.dead_results import kept_elements, without_dead_results
from harp.lower.graph.factors_before_loops import factors_before_loops
from harp.lower.graph.in_place import updated_in_place
from harp.lower.graph.legalise import legalise, verify_legalised
from harp.lower.graph.simplify import simplify, verify_simplified
from harp.lower.graph.sums_behind_loops import sums_behind_loops
from harp.lower.graph.window_factors import window_factors
from harp.lower.kernels.block_fusion import in_blocks
from harp.lower.kernels.bounds_checks import check_addresses, verify_checked
from harp.lower.kernels.copies import without_copies
from harp.lower.kernels.donate import donate
from harp.lower.kernels.fuse import fuse
from harp.lower.kernels.iterations import iteration_kernels
from harp.lower.kernels.local_functions import local_functions
from harp.lower.kernels.outline import as_they_are, assemble, outline
from harp.lower.kernels.tile_and_fuse import tile_and_fuse
from harp.lower.library import select_routines
from harp.lower.loopir.loops import Kernel, LoopKind
from harp.lower.loopir.nests import FreshLoops
from harp.lower.loopir.products import fused_sums, multiply_adds
from harp.lower.loopir.program import Program
from harp.lower.loopir.text import kernel_text, program_text
from harp.lower.reductions.accumulators import (
    blocked_sums,
    early_exits,
    first_positions,
    partial_accumulators,
    several_terms,
)
from harp.lower.reductions.chunks import long_rows, split_reductions
from harp.lower.reductions.columns import columns, narrow_columns
from harp.lower.reductions.contraction import contraction
from harp.lower.reductions.row_dots import row_dots
from harp.lower.reductions.scan import interleaved
from harp.lower.reductions.short_rows import few_terms, outer_vectorised, small_matrices, small_products
from harp.lower.rewrite.coalesce import coalesce, interchanged
from harp.lower.rewrite.digits import digits
from harp.lower.rewrite.index_set_splitting import split_index_sets
from harp.lower.rewrite.loop_primitives import Context, Rule, everywhere
from harp.lower.rewrite.packed_rows import packed_rows
from harp.lower.rewrite.parallel import parallel
from harp.lower.rewrite.staged_halves import staged_halves
from harp.lower.rewrite.transpose_tiling import transpose_tiles
from harp.lower.rewrite.vectorise import unswitched, vectorised, written_out
from harp.lower.schedule.build import Built, build
from harp.lower.schedule.schedule import Schedule, schedule, verify_schedule
from harp.lower.target import Target
from harp.lower.verify.verify import require_kernel, require_program
from harp.progress import tick
from harp.trace.graph.body import may_not_end
from harp.trace.graph.graph import Graph
from harp.trace.graph.verify import verify_graph
from harp.trace.sizes.signature import sizes_of

# What few programs need: passes for devices, and runs that compare results.
_RARE = Names(
    {
        "harp.lower.device.grid": "to_grids",
        "harp.lower.device.share": "share",
        "harp.lower.verify.differential_check": "check_graph check_program",
    }
)


def rewrite_nests(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with the rules applied."""
    context = Context(target, FreshLoops(kernel))
    body = kernel.body
    for rule in chain.from_iterable(RULES):
        body = everywhere(context, rule, body)
    return kernel.with_body(body)


# Rules of one row may be exchanged: they fit different nests. Beside a row is why it stands before the next ones.
RULES: tuple[tuple[Rule, ...], ...] = (
    (small_products, interleaved),  # contraction takes products of all sizes; running sums are no loops for vectors
    (contraction, few_terms),  # products have rows and columns before loops are merged; few terms are elementwise work
    (transpose_tiles,),  # loops that go along memory in one operand, and not in another one, would be merged
    (coalesce,),  # one loop needs no version for small sizes, and no vector over several rows
    (small_matrices,),  # matrices of 2 to 4 rows would be narrow rows
    (packed_rows, interchanged, narrow_columns),  # columns takes all loops along memory, however few columns there are
    (columns, outer_vectorised),  # sums of columns and of short rows have no long chain along memory
    (row_dots, first_positions),  # long sums of products are the library's; both have accumulators of their own
    (partial_accumulators, blocked_sums),  # all other sums, of whose loops the next row makes vectors
    (several_terms, early_exits, vectorised),  # the last row looks for vectors
    (staged_halves, written_out),
)


@attrs.frozen(eq=False, repr=False)
class Lowered:
    """A graph on its way to a program; results of passes that have not run are empty.

    `donated` are the numbers of donated inputs; `checks` says whether the program checks its addresses, and `fast`
    whether passes that optimise loops run. `algorithm` are the loop nests before kernels are outlined: what the program
    computes, not how fast.
    """

    source: Graph
    target: Target
    graph: Graph
    schedule: Schedule
    built: Built = attrs.field(factory=lambda: Built((), (), (), ()))
    program: Program = attrs.field(factory=lambda: Program((), (), (), (), (), ()))
    donated: tuple[int, ...] = ()
    checks: bool = False
    fast: bool = True
    algorithm: Built = attrs.field(factory=lambda: Built((), (), (), ()))

    @property
    def loops(self) -> str:
        """The program's loop nests as text."""
        return program_text(self.program)


Run = Callable[[Lowered], Lowered]


@attrs.frozen(repr=False)
class Pass:
    """A function from state to state, the rules that hold after it, and how its result is run and printed."""

    name: str
    purpose: str
    level: int  # of HARP_DEBUG that prints it; the highest level prints every pass
    run: Run
    verify: Callable[[Lowered, Lowered], None]
    check: Callable[[Lowered, Lowered], None]
    text: Callable[[Lowered], str]
    ends_stage: bool = False

    def __call__(self, before: Lowered, within: str = "") -> Lowered:
        """The state after the pass, printed and verified as the settings ask. A graph that is `within` another one, as
        the step of a loop, is not run on its own to compare results."""
        tick()
        after = self.run(before)
        if settings.debug >= self.level:
            text = self.text(after)
            show(self.level, f"after {self.name}{within}", text if text != self.text(before) else "(nothing changed)")
        if settings.verify >= (1 if self.ends_stage else 2):
            self.verify(before, after)
        if settings.verify >= 3 and not within:
            self.check(before, after)
        return after


# -- how passes are applied ---------------------------------------------------------------------------------------


def _on_graph(run: Callable[[Graph], Graph]) -> Run:
    return lambda s: attrs.evolve(s, graph=run(s.graph))


def _on_built(run: Callable[[Built], Built]) -> Run:
    return lambda s: attrs.evolve(s, built=run(s.built))


def _built_for(run: Callable[[Built, Target], Built]) -> Run:
    return lambda s: attrs.evolve(s, built=run(s.built, s.target))


def _each(run: Callable[[Kernel], Kernel]) -> Run:
    """The pass over all kernels."""
    return _each_for(lambda kernel, _: run(kernel))


def _each_for(run: Callable[[Kernel, Target], Kernel]) -> Run:
    """The pass over all kernels, for a target."""

    def run_all(s: Lowered) -> Lowered:
        kernels = []
        for kernel in s.built.kernels:
            tick()
            kernels.append(run(kernel, s.target))
        return attrs.evolve(s, built=attrs.evolve(s.built, kernels=tuple(kernels)))

    return run_all


def _always(s: Lowered) -> bool:
    return True


def _has_fma(s: Lowered) -> bool:
    return s.target.fma


def _has_grid(s: Lowered) -> bool:
    return s.target.grid


def _is_fast(s: Lowered) -> bool:
    return s.fast


def _on_cores(s: Lowered) -> bool:
    """Whether work-items have vectors and caches of their own, as cores have; on wide devices they are lanes."""
    return s.fast and not s.target.wide


def _on_grid(s: Lowered) -> bool:
    return s.fast and s.target.grid


def _is_not_shared(s: Lowered) -> bool:
    """Whether sums are not shared later: wide devices share long sums, if the program is to be fast."""
    return not (s.target.wide and s.fast)


# -- passes that need more than their input --------------------------------------------------------------------------


def _in_place(s: Lowered) -> Lowered:
    return attrs.evolve(s, schedule=Schedule(updated_in_place(s.graph), ()))


def _schedule(s: Lowered) -> Lowered:
    return attrs.evolve(s, schedule=schedule(s.schedule.graph, s.checks))


def _build(s: Lowered) -> Lowered:
    """The loop nests of a schedule. The steps of loops are scheduled, built and fused as programs are."""

    def step(graph: Graph) -> Built:
        state = Lowered(graph, s.target, graph, Schedule(graph, ()), checks=s.checks, fast=s.fast)
        return reduce(lambda state, run: run(state, " (the step of a loop)"), OF_STEPS, state).built

    def joined(built: Built) -> Built:
        return FUSE(attrs.evolve(s, built=built), " (the step of a loop)").built

    iterate = partial(iteration_kernels, step, joined)
    return attrs.evolve(s, built=build(s.schedule, s.source.captured, s.target, iterate))


def _donate(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=donate(s.built, s.donated)) if s.donated else s


def _outline(s: Lowered) -> Lowered:
    """The program with outlined kernels. A checked program keeps equal kernels apart: each belongs to a line of the
    user."""
    return attrs.evolve(s, algorithm=s.built, built=outline(s.built) if s.fast else as_they_are(s.built))


def _fused_sums(kernel: Kernel, target: Target) -> Kernel:
    """Products that remain after a condition of a sum was decided become fused multiply-adds, as in all sums."""
    return kernel.with_body(fused_sums(kernel.body)) if target.fma else kernel


def _bounds_checks(s: Lowered) -> Lowered:
    return attrs.evolve(s, built=check_addresses(s.built, s.graph)) if s.checks else s


def _grids(s: Lowered) -> Lowered:
    kind = LoopKind.PARALLEL if _on_cores(s) else LoopKind.PLAIN
    return _each(lambda kernel: _RARE["to_grids"](kernel, kind))(s)


def _plan(s: Lowered) -> Lowered:
    return attrs.evolve(s, program=_assembled(s))


def _assembled(s: Lowered) -> Program:
    return assemble(s.built, sizes_of(s.source))


# -- the rules that hold after passes --------------------------------------------------------------------------------


def _verify_legalised(before: Lowered, after: Lowered) -> None:
    verify_graph(after.graph)
    verify_legalised(after.graph)


def _verify_graph(before: Lowered, after: Lowered) -> None:
    verify_graph(after.graph)


def _verify_simplified(before: Lowered, after: Lowered) -> None:
    verify_simplified(before.graph, after.graph)


def _verify_in_place(before: Lowered, after: Lowered) -> None:
    verify_graph(after.schedule.graph)


def _verify_schedule(before: Lowered, after: Lowered) -> None:
    verify_schedule(after.schedule)


def _verify_kernels(before: Lowered, after: Lowered) -> None:
    """Kernels that the pass did not change are verified already."""
    for kernel in after.built.kernels:
        if kernel not in before.built.kernels:
            require_kernel(kernel)


def _verify_checked(before: Lowered, after: Lowered) -> None:
    _verify_kernels(before, after)
    if after.checks:
        verify_checked(after.built.kernels)


def _verify_program(before: Lowered, after: Lowered) -> None:
    require_program(after.program)


def _check_graph(before: Lowered, after: Lowered) -> None:
    """Compare with the source, as all passes do: what it computes is known by then."""
    if after.graph.outputs != before.graph.outputs and not may_not_end(after.source):
        _RARE["check_graph"](after.source, after.graph)


def _check_in_place(before: Lowered, after: Lowered) -> None:
    if after.schedule.graph.outputs != after.graph.outputs and not may_not_end(after.source):
        _RARE["check_graph"](after.source, after.schedule.graph)


def _check_kernels(before: Lowered, after: Lowered) -> None:
    """Run kernels, unless the pass did not change them, with memory planned as in the final program."""
    if after.built != before.built and not may_not_end(after.source):
        _RARE["check_program"](after.source, _assembled(after), after.checks)


def _no_check(before: Lowered, after: Lowered) -> None:
    """A schedule says where values are computed, and has no values."""


# -- the passes, in order -------------------------------------------------------------------------------------------


def _graph_text(s: Lowered) -> str:
    return repr(s.graph)


def _kernels_text(s: Lowered) -> str:
    return "\n".join(map(kernel_text, s.built.kernels))


def _of_graph(name: str, purpose: str, run: Callable[[Graph], Graph]) -> Pass:
    return Pass(name, purpose, 5, _on_graph(run), _verify_graph, _check_graph, _graph_text)


def _of_kernels(
    name: str,
    purpose: str,
    run: Run,
    when: Callable[[Lowered], bool] = _always,
    verify: Callable[[Lowered, Lowered], None] = _verify_kernels,
) -> Pass:
    """A pass over kernels, which leaves other states than `when` alone."""
    return Pass(name, purpose, 5, lambda s: run(s) if when(s) else s, verify, _check_kernels, _kernels_text)


_KERNELS = "decide which nodes become kernels, and why; all others are computed where they are used"
SCHEDULE = Pass("schedule", _KERNELS, 3, _schedule, _verify_schedule, _no_check, lambda s: repr(s.schedule), True)
BUILD = _of_kernels("build", "write the loop nests; sums of products use fused multiply-adds if there are any", _build)
COPIES = _of_kernels(
    "copies", "make an array in the place of its copy, if nothing reads it afterwards", _on_built(without_copies)
)
FUSE = _of_kernels(
    "fuse", "join kernels over the same positions, of which each reads its own elements", _on_built(fuse), _is_fast
)
# The passes that lower the step of a loop. Its kernels are fused later, when the loop knows which of them it needs.
OF_STEPS = (SCHEDULE, BUILD, COPIES)

_LEGAL = "compute complex values by real and imaginary parts, and those of 16 bits in float32"
_SIMPLE = "merge views of views, drop unused operands and certain conditions, fold constants"
_IN_PLACE = "compute updates before the array that they change, so that it can change in place"
_MEMORY = "give scratch arrays that are not used at the same time the same memory"

PASSES = (
    Pass("legalise", _LEGAL, 5, _on_graph(legalise), _verify_legalised, _check_graph, _graph_text),
    _of_graph("dead results", "drop results of loops that nothing reads", without_dead_results),
    _of_graph("kept elements", "keep single elements of each step of a loop if nothing else is read", kept_elements),
    _of_graph("sums behind loops", "move sums that the steps of a loop add up behind the loop", sums_behind_loops),
    Pass("simplify", _SIMPLE, 2, _on_graph(simplify), _verify_simplified, _check_graph, _graph_text),
    _of_graph("window factors", "copy kernels of convolutions to the order in which they are summed", window_factors),
    _of_graph("factors", "transpose the constant factor of a product before the loop", factors_before_loops),
    _of_graph("dead results again", "drop results that nothing reads any more", without_dead_results),
    Pass("in place", _IN_PLACE, 5, _in_place, _verify_in_place, _check_in_place, lambda s: repr(s.schedule.graph)),
    SCHEDULE,
    BUILD,
    COPIES,
    FUSE,
    _of_kernels(
        "tile and fuse",
        "join products and work on their rows by blocks of rows",
        _built_for(tile_and_fuse),
        _on_cores,
    ),
    _of_kernels("donate", "store an output in the memory of a donated input that is read before", _donate),
    _of_kernels("blocks", "run kernels one after the other block by block, in cache", _built_for(in_blocks), _on_cores),
    _of_kernels("outline", "make functions of kernels, one for all that are equal, and calls", _outline),
    _of_kernels("multiply-adds", "use fused multiply-adds in complex products", _each(multiply_adds), _has_fma),
    _of_kernels("digits", "loop over quotient and remainder of a divided position", _each(digits), _is_fast),
    _of_kernels("split index sets", "cut loops where a condition changes", _each(split_index_sets), _is_fast),
    _of_kernels("fused sums", "use multiply-adds where a sum lost a condition", _each_for(_fused_sums), _is_fast),
    _of_kernels("split reduction", "cut sums over everything into chunks", _each(split_reductions), _is_not_shared),
    _of_kernels("bounds checks", "for check=True: compare indices with axes", _bounds_checks, verify=_verify_checked),
    _of_kernels("long rows", "cut long sums and running sums into chunks", _each(long_rows), _on_cores),
    _of_kernels("rewrite nests", "apply the rules for loop nests", _each_for(rewrite_nests), _on_cores),
    _of_kernels("unswitch", "decide once what all elements of a vector share", _each(unswitched), _on_cores),
    _of_kernels("parallel", "run independent outermost iterations in threads", _each_for(parallel), _on_cores),
    _of_kernels("select routines", "call the library in place of loops", _each(select_routines), _on_cores),
    _of_kernels("local functions", "make functions of equal loops in a kernel", _each(local_functions), _on_cores),
    _of_kernels(
        "share",
        "share nests among the work-items of groups",
        _each_for(lambda kernel, target: _RARE["share"](kernel, target)),
        _on_grid,
    ),
    _of_kernels("grids", "launch a work-item for each independent iteration", _grids, _has_grid),
    Pass("plan memory", _MEMORY, 3, _plan, _verify_program, _check_kernels, lambda s: s.loops, True),
)


def lower(graph: Graph, target: Target, donated: Sequence[int] = (), check: bool = False, fast: bool = True) -> Lowered:
    """The program that computes a graph in canonical form, with the results of all passes.

    Outputs may live in the memory of inputs whose numbers are in `donated`. With `check` the program compares every
    index with its axis (`harp.lower.kernels.bounds_checks`). With `check`, or without `fast`, the passes that optimise
    loops are left out.
    """
    if settings.verify >= 1:
        verify_graph(graph)
    scheduled = Schedule(graph, ())
    state = Lowered(graph, target, graph, scheduled, donated=tuple(donated), checks=check, fast=fast and not check)
    return reduce(lambda state, run: run(state), PASSES, state)
