"""Which outputs may live in which inputs, and that the program computes the same there."""

from __future__ import annotations

import pytest
from graphs import (
    FUSED,
    SMALL,
    WIDE,
    K,
    M,
    N,
    add_row,
    arrays,
    binary,
    fold,
    graph,
    layernorm,
    log_softmax,
    matmul,
    parameter,
    random_graphs,
    scale,
    sized,
    softmax,
    transpose,
    unary,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harp.lower.graph.simplify import simplify
from harp.lower.kernels.donate import donate
from harp.lower.kernels.fuse import fuse
from harp.lower.loopir.loops import Alloc, For, Kernel, Load, Nest, Seq, Space, Stmt, Store
from harp.lower.loopir.text import kernel_text
from harp.lower.pipeline import lower
from harp.lower.schedule.build import Built, build
from harp.lower.schedule.schedule import schedule
from harp.lower.target import Target
from harp.lower.verify.differential_check import check_program
from harp.lower.verify.interpreter import execute
from harp.lower.verify.verify import verify_program
from harp.trace.eval.interpret import interpret
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Node
from harp.trace.index.polynomial import Index, Loop, as_index, of
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.ops import Op, Reduce

X, Y, W = parameter(N, M), parameter(N, M, name="y"), parameter(M, K, name="w")
S = parameter(N, N, name="s")


def pairs(*outputs: Node, donated: tuple[int, ...] = (0, 1), target: Target = FUSED) -> set[tuple[int, int]]:
    """(input, output) that share memory in the program, which is checked; inputs are numbered by age."""
    g = graph(*outputs)
    count = len(g.inputs)
    program = lower(g, target, [k for k in donated if k < count]).program
    verify_program(program)
    check_program(g, program)
    return set(program.donated)


def test_elementwise_results_live_in_what_they_are_computed_from() -> None:
    assert pairs(scale(X, 2.0)) == {(0, 0)}
    assert pairs(binary(Op.ADD, X, Y), donated=(1,)) == {(1, 0)}
    assert pairs(binary(Op.ADD, X, Y), donated=()) == set()


def test_each_input_is_taken_once() -> None:
    assert len(pairs(scale(X, 2.0), scale(X, 3.0))) == 1
    both = binary(Op.ADD, X, Y), binary(Op.MUL, X, Y)
    assert pairs(*both) == {(0, 0)}, "the second result reads both, before the first is stored"


def test_a_step_of_gradient_descent_with_momentum() -> None:
    moment = binary(Op.ADD, scale(Y, 0.9), unary(Op.SIN, X))
    assert pairs(binary(Op.ADD, X, moment), moment) == {(0, 0), (1, 1)}
    assert pairs(moment, binary(Op.ADD, X, moment)) == {(0, 1), (1, 0)}


def test_results_of_another_shape_or_dtype_do_not() -> None:
    assert pairs(transpose(X)) == set() == pairs(fold(Reduce.SUM, X, 1))
    wide = parameter(N, M, dtype=f64)
    assert pairs(binary(Op.LT, wide, wide)) == set()


@pytest.mark.parametrize("node", [transpose(S), view.flip(S, [0]), view.flip(S, [1])])
def test_elements_that_move_do_not(node: Node) -> None:
    assert pairs(node) == set()
    assert pairs(binary(Op.ADD, S, node)) == set()


def test_a_product_reads_all_of_its_factors() -> None:
    square = parameter(N, N, name="t")
    assert pairs(matmul(S, square)) == set()
    assert pairs(binary(Op.ADD, S, matmul(square, square)), donated=(0, 1)) == {(0, 0)}
    assert pairs(binary(Op.ADD, S, matmul(S, square)), donated=(0,)) == set()


@pytest.mark.parametrize("make", [softmax, log_softmax, layernorm])
@pytest.mark.parametrize("target", [SMALL, FUSED, WIDE])
def test_rows_that_are_read_before_they_are_stored(make, target: Target) -> None:
    assert pairs(make(X), target=target) == {(0, 0)}


def test_columns_that_are_read_by_all() -> None:
    assert pairs(add_row(X, fold(Reduce.SUM, X, 0))) == {(0, 0)}, "a kernel of its own sums them first"


def test_what_reads_the_input_goes_first() -> None:
    assert pairs(scale(X, 2.0), fold(Reduce.SUM, X, 0), donated=(0,)) == {(0, 0)}


def test_arguments_that_are_returned_need_no_kernel() -> None:
    program = lower(graph(X, Y), FUSED, (0, 1)).program
    assert set(program.donated) == {(0, 0), (1, 1)} and program.kernels == ()
    assert pairs(Y, X) == {(0, 1), (1, 0)}
    assert len(pairs(X, X)) == 1


@settings(max_examples=60, deadline=None)
@given(
    random_graphs(), st.sampled_from([SMALL, FUSED, WIDE]), st.sampled_from([(4, 3), (1, 5), (9, 9), (0, 2), (20, 1)])
)
def test_random_programs(g: Graph, target: Target, values: tuple[int, int]) -> None:
    """Bit for bit the program that donates nothing, which other tests compare with the interpreter."""
    sizes = sized(g, (*values, 2))
    plain = lower(g, target).program
    sharing = lower(g, target, range(len(g.inputs))).program
    verify_program(sharing)
    given = [*arrays(g, sizes), *(c.captured.array for c in g.captured)]
    expected = interpret(g, arrays(g, sizes), sizes)
    for a, b, c in zip(execute(sharing, given, sizes), execute(plain, given, sizes), expected, strict=True):
        assert a.tobytes() == b.tobytes() and a.shape == c.shape


# --- kernels as no schedule makes them today

i, j = Loop(0, N), Loop(1, M)


def shifted(*index: Index) -> Built:
    """The built form of out = x, with another index of the load."""
    made = fuse(build(schedule(simplify(graph(scale(X, 2.0)))), (), FUSED))
    (source,), (out,) = made.inputs, made.outputs
    body = Nest((For(i), For(j)), Store(out, (of(i), of(j)), Load(source, index)))
    return Built((Kernel("k", body),), (source,), (out,), ())


def replaced(built: Built, body: Stmt) -> Built:
    return Built((Kernel("k", body),), built.inputs, built.outputs, ())


def test_a_load_after_the_store_reads_the_new_value() -> None:
    built = shifted(of(i), of(j))
    (source,), (out,) = built.inputs, built.outputs
    other = type(out)("other", out.dtype, out.shape, out.space)
    at = of(i), of(j)
    value = Load(source, at)
    first, late = Store(out, at, value + value), Store(other, at, value)
    heads = For(i), For(j)
    assert donate(replaced(built, Nest(heads, Seq((late, first)))), (0,)).donated == ((0, 0),)
    swapped, plain = (donate(replaced(built, Nest(heads, Seq(s))), (0,)) for s in ((first, late), (late, first)))
    assert swapped.donated == ((0, 0),), "what reads the old value goes first"
    assert list(map(kernel_text, swapped.kernels)) == list(map(kernel_text, plain.kernels))
    needs = Store(other, at, value + Load(out, at))
    assert donate(replaced(built, Nest(heads, Seq((first, needs)))), (0,)).donated == ()


def test_a_store_that_is_repeated_reads_its_own_result() -> None:
    built = shifted(of(i), of(j))
    (source,), (out,) = built.inputs, built.outputs
    again, at = Loop(2, K), (of(i), of(j))
    (kernel,) = built.kernels
    assert donate(built, (0,)).kernels == () and donate(built, (0,)).donated == ((0, 0),)
    value = Load(source, at)
    doubled = Nest((For(i), For(j)), Store(out, at, value + value))
    assert donate(replaced(built, doubled), (0,)).donated == ((0, 0),)
    assert donate(replaced(built, Nest((For(again),), doubled)), (0,)).donated == ()
    assert donate(replaced(built, Nest((For(again),), kernel.body)), (0,)).kernels == (), "what is there, again"


def test_a_part_of_a_row_changes_after_it_was_read() -> None:
    """for i { a = x[i, 0]; for j: out[i, j] = x[i, j]; out[i, 1] = a }"""
    built = shifted(of(i), of(j))
    (source,), (out,) = built.inputs, built.outputs
    kept = type(out)("a", out.dtype, (), Space.REG)
    one, zero = as_index(1), as_index(0)
    whole = Nest((For(j),), Store(out, (of(i), of(j)), Load(source, (of(i), of(j)))))
    change = Store(out, (of(i), one), Load(kept, ()))

    def rows(read: tuple[Index, Index], *parts: Stmt) -> Built:
        inside = Seq((Store(kept, (), Load(source, read)), *parts))
        return donate(replaced(built, Nest((For(i),), Alloc(kept, inside))), (0,))

    assert rows((of(i), zero), whole, change).donated == ((0, 0),)
    assert rows((of(i), zero), change, whole).donated == (), "that is another result"
    assert rows((zero, zero), whole, change).donated == (), "the first row has changed"
    inner = Nest((For(j),), Store(out, (of(i), of(j)), Load(source, (of(i), zero))))
    assert rows((of(i), zero), inner).donated == (), "element 0 changes first"


def test_what_is_copied_need_not_be_stored() -> None:
    """Only an element of each row changes, behind what reads the row, and behind the copy of it."""
    built = shifted(of(i), of(j))
    (source,), (out,) = built.inputs, built.outputs
    (kernel,) = built.kernels
    assert isinstance(kernel.body, Nest)
    row = Nest((For(j),), kernel.body.body)
    one = Store(out, (of(i), as_index(0)), Load(source, (of(i), as_index(1))))
    late = Store(type(out)("other", out.dtype, out.shape, out.space), (of(i), of(j)), Load(source, (of(i), of(j))))
    rows = For(i)
    assert donate(replaced(built, Nest((rows,), Seq((row, one)))), (0,)).donated == ((0, 0),)
    assert donate(replaced(built, Nest((rows,), Seq((one, row)))), (0,)).donated == ()
    assert donate(replaced(built, Nest((rows,), Seq((row, Nest((For(j),), late))))), (0,)).donated == ((0, 0),)
    other = Loop(2, N)
    one = Store(out, (of(other), as_index(0)), Load(source, (of(other), as_index(1))))
    assert donate(replaced(built, Nest((For(other),), Seq((kernel.body, one)))), (0,)).donated == (), "copies all rows"


def test_a_neighbour_is_another_element() -> None:
    assert donate(shifted(of(i), of(j) + 1), (0,)).donated == ()
    assert donate(shifted(of(j), of(i)), (0,)).donated == ()
