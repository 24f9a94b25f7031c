"""Functions of whole rows: scheduled by themselves, rows in parallel, and what the verifier catches."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest
from graphs import FUSED, K, M, N, arrays, binary, graph, parameter, scale, sized, transpose

from harp.errors import VerificationError
from harp.lower.loopir.loops import Alloc, Buffer, For, Kernel, LoopKind, Nest, Row, Space, walk
from harp.lower.loopir.text import kernel_text
from harp.lower.pipeline import Lowered, lower
from harp.lower.report.report import footprint
from harp.lower.schedule.row_kernels import rows_in
from harp.lower.verify.differential_check import check_program
from harp.lower.verify.interpreter import execute
from harp.lower.verify.verify import verify_kernel, verify_program
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Node, RowWise
from harp.trace.graph.row_functions import RowOp
from harp.trace.graph.verify import verify_graph
from harp.trace.index.polynomial import product
from harp.trace.scalar.dtypes import f32, i64
from harp.trace.scalar.ops import Op

X, Y = parameter(N, M), parameter(N, M, name="y")
LINE = parameter(M, name="line")


def checked(*outputs: Node, donated: tuple[int, ...] = ()) -> Lowered:
    """The program, which computes what the graph means."""
    g = graph(*outputs)
    state = lower(g, FUSED, donated)
    assert verify_program(state.program) == []
    check_program(g, state.program)
    return state


def calls(state: Lowered) -> list[str]:
    """The names of the kernels that the program calls, in order."""
    return [state.program.kernels[call.kernel].name for call in state.program.calls]


def sort(node: Node, reverse: bool = False) -> Node:
    return RowWise(RowOp.SORT, (node,), reverse)


def order(node: Node) -> Node:
    return RowWise(RowOp.ORDER, (node,))


def test_rows_are_parallel() -> None:
    for node in (sort(X), order(X), RowWise(RowOp.SORT_BY, (X, Y)), RowWise(RowOp.SEARCH, (sort(X), Y), True)):
        for kernel in checked(node).program.kernels:
            (nest,) = (s for s in walk(kernel.body) if isinstance(s, Nest))
            assert isinstance(nest.heads[0], For) and nest.heads[0].kind is LoopKind.PARALLEL


def test_all_rows_are_one_parallel_loop() -> None:
    cube = parameter(N, M, K, name="cube")
    (kernel,) = checked(sort(cube)).program.kernels
    (nest,) = (s for s in walk(kernel.body) if isinstance(s, Nest))
    head = nest.heads[0]
    assert isinstance(head, For) and head.kind is LoopKind.PARALLEL
    assert head.loop.extent is product(kernel.buffers[0].shape[:-1])


def test_a_single_row_is_searched_by_parts() -> None:
    (kernel,) = checked(RowWise(RowOp.SEARCH, (LINE, LINE))).program.kernels
    assert isinstance(kernel.body, Nest)
    (head,) = kernel.body.heads
    assert isinstance(head, For) and head.kind is LoopKind.PARALLEL and "1024" in repr(head.loop.extent)


def test_a_table_may_be_shared_by_all_rows() -> None:
    state = checked(RowWise(RowOp.SEARCH, (sort(LINE), X)))
    assert len(state.program.kernels) == 2


def test_operands_are_in_memory_and_results_are_read_from_it() -> None:
    state = checked(scale(sort(scale(X, 2.0)), 3.0))
    assert calls(state) == ["map", "sort", "map"] and len(state.program.kernels) == 2
    transposed = checked(transpose(sort(transpose(X))))
    assert calls(transposed) == ["copy", "sort", "copy"] and len(transposed.program.kernels) == 2


def test_a_number_is_sorted_by_a_key_that_is_itself_computed() -> None:
    state = checked(RowWise(RowOp.SORT_BY, (order(X), binary(Op.MUL, X, Y))))
    assert len(state.program.kernels) == 3


def test_sorting_by_itself_is_sorting() -> None:
    state = checked(RowWise(RowOp.SORT_BY, (X, X), True))
    assert state.graph.outputs == (sort(X, True),)


def test_the_text_names_rows() -> None:
    assert (
        kernel_text(checked(sort(X, True)).program.kernels[0])
        .splitlines()[-1]
        .strip()
        .endswith("= sort(in0[i0, :]) reversed by v0")
    )


def test_a_result_does_not_live_in_what_its_rows_are_read_from() -> None:
    assert checked(sort(X), donated=(0,)).program.donated == ()
    both = checked(sort(X), scale(X, 2.0), donated=(0,))
    assert both.program.donated == ((0, 1),)


def test_threads_take_memory_for_a_row() -> None:
    g = graph(sort(X), order(X))
    program = lower(g, FUSED).program
    sizes = sized(g, (5, 100))
    assert footprint(program, 1, sizes, 2).per_thread == 832  # 100 numbers of 64 bits, in lines of 64 bytes


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (2, 7)])
def test_as_the_graph_means(shape: tuple[int, int]) -> None:
    g = graph(sort(X), order(X), RowWise(RowOp.SORT_BY, (X, Y), True), RowWise(RowOp.SEARCH, (sort(X), Y)))
    sizes = sized(g, shape)
    given = arrays(g, sizes)
    for step, expected in zip(execute(lower(g, FUSED).program, given, sizes), interpret(g, given, sizes), strict=True):
        np.testing.assert_array_equal(step, expected)


# --- what is caught


@pytest.mark.parametrize(
    "node",
    [
        RowWise(RowOp.SORT_BY, (X,)),
        RowWise(RowOp.SORT_BY, (X, transpose(X))),
        RowWise(RowOp.SEARCH, (transpose(X), X)),
        RowWise(RowOp.SEARCH, (order(X), X)),
    ],
    ids=["operands", "shapes", "rows", "dtypes"],
)
def test_graphs_are_verified(node: Node) -> None:
    with pytest.raises(VerificationError):
        verify_graph(Graph((X,), (node,)))


def _row(kernel: Kernel, change: Callable[[Row], Row]) -> Kernel:
    """The kernel with its row changed."""
    (nest,) = (s for s in walk(kernel.body) if isinstance(s, Nest))
    (row,) = rows_in(kernel.body)
    assert isinstance(nest.body, Alloc)
    return Kernel(kernel.name, Nest(nest.heads, Alloc(nest.body.buffer, change(row))))


BROKEN: dict[str, Callable[[Row], Row]] = {
    "while its row is read": lambda row: attrs.evolve(row, sources=(row.target,)),
    "no rows of": lambda row: attrs.evolve(row, sources=(Buffer("other", f32, (N,), Space.INPUT),)),
    "operands of sort": lambda row: attrs.evolve(row, sources=()),
    "the input": lambda row: attrs.evolve(row, target=row.sources[0], sources=(row.target,)),
    "no memory of": lambda row: attrs.evolve(row, work=Buffer("mem0", i64, (N,), Space.SCRATCH)),
    "meet at": lambda row: attrs.evolve(row, index=(row.index[0] * 0, row.index[1])),
}


@pytest.mark.parametrize("message", BROKEN)
def test_kernels_are_verified(message: str) -> None:
    (kernel,) = lower(graph(sort(X)), FUSED).program.kernels
    with pytest.raises(VerificationError, match=message):
        verify_kernel(_row(kernel, BROKEN[message]))


def test_a_row_outside_cannot_be_proved() -> None:
    (kernel,) = lower(graph(sort(X)), FUSED).program.kernels
    assert verify_kernel(kernel) == []
    assert verify_kernel(_row(kernel, lambda row: attrs.evolve(row, index=(row.index[0], row.index[1] + 1)))) != []


def test_rows_are_read_after_they_are_written() -> None:
    program = lower(graph(sort(scale(X, 2.0))), FUSED).program
    broken = attrs.evolve(program, calls=program.calls[::-1])
    sizes = sized(graph(X), (2, 3))
    with pytest.raises(VerificationError, match="before it was written"):
        execute(broken, arrays(graph(X), sizes), sizes)
