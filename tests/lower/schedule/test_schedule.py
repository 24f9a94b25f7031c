"""The schedule: how many kernels, and which nodes they compute."""

from __future__ import annotations

import sys

import attrs
import pytest
from graphs import (
    K,
    M,
    N,
    add_row,
    along,
    binary,
    elementwise,
    fold,
    graph,
    kernels,
    layernorm,
    log_softmax,
    matmul,
    mean,
    parameter,
    random_graphs,
    relu,
    scale,
    scheduled,
    softmax,
    stretch,
    subtract,
    transpose,
    unary,
)
from hypothesis import given

from harp.errors import VerificationError
from harp.lower.graph.simplify import simplify
from harp.lower.pipeline import lower
from harp.lower.schedule.build import build
from harp.lower.schedule.schedule import schedule, verify_schedule
from harp.lower.target import Target
from harp.trace.graph import view
from harp.trace.graph.node import Contiguous, MapReduce, Node, View, fresh_input, positions
from harp.trace.index.polynomial import Symbol, of
from harp.trace.scalar.dtypes import f32, i64
from harp.trace.scalar.expr import Operand, Position, cast, const, select
from harp.trace.scalar.ops import Op, Reduce


def chain(x: Node, length: int, *ops: Op) -> Node:
    for step in range(length):
        x = unary(ops[step % len(ops)], x)
    return x


def test_elementwise_chain_is_one_kernel():
    x = parameter(N, M)
    assert kernels(chain(x, 20, Op.EXP, Op.SIN)) == 1


def test_map_goes_into_its_reduction():
    x = parameter(N, M)
    assert kernels(fold(Reduce.SUM, unary(Op.EXP, x), 0, 1)) == 1
    assert kernels(fold(Reduce.MAX, unary(Op.EXP, view.flip(x, [0])), 1)) == 1


def test_tail_goes_behind_a_matrix_product():
    x, w, b = parameter(N, M), parameter(M, K, name="w"), parameter(K, name="b")
    assert kernels(relu(add_row(matmul(x, w), b))) == 1
    assert kernels(transpose(matmul(x, w))) == 1
    two = binary(Op.ADD, matmul(x, w), matmul(x, parameter(M, K, name="v")))
    assert kernels(two) == 1


def test_rows_share_their_loop():
    x = parameter(N, M)
    assert kernels(softmax(x)) == 2
    assert kernels(log_softmax(x)) == 1
    assert kernels(layernorm(x)) == 1
    assert kernels(binary(Op.DIV, x, along(Reduce.SUM, x))) == 1


def test_reduction_over_the_first_axis_is_kept():
    x = parameter(N, M)
    result = scheduled(binary(Op.DIV, x, along(Reduce.SUM, x, 0)))
    assert [g.reason for g in result.groups] == ["reduction read inside other loops", "output"]


def test_matrix_product_reads_memory():
    x, w = parameter(N, M), parameter(M, K, name="w")
    assert kernels(matmul(unary(Op.EXP, x), w)) == 2
    assert kernels(matmul(elementwise(lambda a: a + const(1, f32), x), w)) == 2


def test_nothing_stands_between_the_loops_of_a_product():
    """Its terms may be a map of their own; the sums of rows that its result is scaled with are another kernel."""
    x, w = parameter(N, M), parameter(M, K, name="w")
    product = matmul(x, w)
    assert product.reduce is Reduce.SUM
    terms = MapReduce(product.domain, product.operands, product.expr)
    apart = MapReduce(product.domain, (terms,), Operand(f32, 0), Reduce.SUM, product.axes)
    for result in (product, apart):
        sums = View(fold(Reduce.SUM, x, 1), result.shape, positions(result.shape)[:1])
        assert kernels(binary(Op.MUL, result, sums)) == 2


def test_matrix_product_computes_casts_and_masks_itself():
    x, w = parameter(N, M, dtype=i64), parameter(M, K, name="w")
    assert kernels(matmul(elementwise(lambda a: cast(a, f32), x), w)) == 1
    i, j = positions((N, M))
    lower_triangle = Position(j) < Position(i + 1)
    mask = MapReduce((N, M), (), select(lower_triangle, const(1, f32), const(0, f32)))
    assert kernels(matmul(mask, w)) == 1


def test_expensive_work_is_not_repeated():
    x, row = parameter(N, M), parameter(M, name="row")
    heavy = unary(Op.EXP, row)
    assert kernels(binary(Op.ADD, x, stretch(heavy, x.shape, 0))) == 2  # once for each element of the row
    cheap = unary(Op.NEG, row)
    assert kernels(binary(Op.ADD, x, stretch(cheap, x.shape, 0))) == 1
    column = unary(Op.EXP, parameter(N, name="column"))
    assert kernels(binary(Op.ADD, x, stretch(column, x.shape, 1))) == 1  # once for each row, outside its loop


def test_windows_do_not_repeat_expensive_work():
    x = unary(Op.EXP, parameter(N))
    shape = (N - 2, of(Symbol(0, 1, "w")))
    i, j = positions(shape)
    windows = view.view(x, shape, (i + j,))
    assert kernels(fold(Reduce.SUM, windows, 1)) == 2


def test_several_readers():
    x = parameter(N)
    cheap, heavy = unary(Op.NEG, x), unary(Op.EXP, x)
    outputs = unary(Op.ABS, cheap), unary(Op.SIN, cheap)
    assert kernels(*outputs) == 2
    assert kernels(unary(Op.ABS, heavy), unary(Op.SIN, heavy)) == 3
    debts = chain(x, 20, Op.NEG, Op.ABS)  # each step is cheap, all together are not
    assert kernels(unary(Op.SIN, debts), unary(Op.COS, debts)) == 3


def test_a_tail_that_must_be_kept_takes_its_reduction_along():
    x, w, v = parameter(N, M), parameter(M, K, name="w"), parameter(K, N, name="v")
    assert kernels(matmul(relu(matmul(x, w)), v)) == 2
    result = scheduled(softmax(add_row(matmul(x, w), parameter(K, name="b"))))
    assert "tail of a reduction" in [g.reason for g in result.groups]
    assert len(result.groups) == 3


def test_kept_on_request():
    x = parameter(N)
    assert kernels(unary(Op.SIN, Contiguous(unary(Op.NEG, x)))) == 2
    assert kernels(unary(Op.SIN, x), unary(Op.NEG, unary(Op.SIN, x))) == 2


def test_parameters_and_repeated_outputs_need_no_kernel_of_the_schedule():
    x = parameter(N)
    assert kernels(x, x) == 0
    y = unary(Op.EXP, x)
    assert kernels(y, y) == 1


def loss_gradient() -> tuple[Node, ...]:
    """The mean squared error of a network with one hidden layer, and its gradient."""
    x, y = parameter(N, M), parameter(N, K, name="y")
    w, v = parameter(M, of(Symbol(0, 3, "h")), name="w"), parameter(of(Symbol(0, 3, "h")), K, name="v")
    hidden = unary(Op.TANH, matmul(x, w))
    error = subtract(matmul(hidden, v), y)
    loss = mean(mean(binary(Op.MUL, error, error), 1), 0)
    back = scale(error, 2.0)
    to_hidden = matmul(back, transpose(v))
    slope = elementwise(
        lambda g, h: g * (const(1, f32) - h * h),
        to_hidden,
        hidden,
    )
    return loss, matmul(transpose(x), slope), matmul(transpose(hidden), back)


def test_network_gradient_is_a_few_kernels():
    assert kernels(*loss_gradient()) <= 8


def test_text_is_stable_and_says_why():
    x = parameter(N, M)
    text = repr(scheduled(softmax(x)))
    assert text == repr(scheduled(softmax(fresh_input("x", x.shape, x.dtype))))
    assert "kept: repeated work" in text and "kept: output" in text and "reducing [i2]" in text
    cheap = unary(Op.NEG, x)
    assert "(2 times in all)" in repr(scheduled(unary(Op.ABS, cheap), unary(Op.SIN, cheap)))


def test_large_kernels_are_cut():
    x, y = parameter(N), parameter(N, name="y")
    value: Node = x
    for _ in range(2_000):
        value = binary(Op.ADD, value, y)
    assert 5 <= kernels(value) <= 8


def statistics(x: Node, steps: int) -> Node:
    for _ in range(steps):
        x = unary(Op.TANH, binary(Op.ADD, x, stretch(scale(fold(Reduce.SUM, x, 0), 0.5), x.shape, 0)))
    return x


def calls(function) -> int:
    """How many Python functions are called while this one runs: time that other processes do not change."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "make",
    [
        lambda steps: chain(parameter(N), 5 * steps, Op.EXP, Op.NEG, Op.SIN),
        lambda steps: statistics(parameter(N), steps),
    ],
    ids=["chain", "statistics"],
)
def test_time_is_linear(make):
    def work(steps: int) -> int:
        g = graph(make(steps))
        return calls(lambda: build(schedule(simplify(g)), g.captured, Target()))

    assert work(200) < 2.5 * work(100)


def test_many_readers_do_not_multiply():
    """Each step reads the step before at two places: computed at each use that would be 2**60 places."""
    value: Node = parameter(N)
    for _ in range(60):
        value = binary(Op.ADD, value, view.flip(value, [0]))
    result = scheduled(value)
    assert sum(len(g.steps) for g in result.groups) < 2_000


def test_verifier_finds_what_is_missing():
    result = scheduled(softmax(parameter(N, M)))
    with pytest.raises(VerificationError, match="before it is computed"):
        verify_schedule(attrs.evolve(result, groups=result.groups[1:]))
    with pytest.raises(VerificationError, match="before it is computed"):
        verify_schedule(attrs.evolve(result, groups=result.groups[::-1]))
    with pytest.raises(VerificationError, match="two kernels"):
        verify_schedule(attrs.evolve(result, groups=(*result.groups, result.groups[-1])))
    with pytest.raises(VerificationError, match="never"):
        verify_schedule(attrs.evolve(result, groups=result.groups[:-1]))


@given(random_graphs())
def test_every_schedule_is_complete(g):
    verify_schedule(schedule(simplify(g)))


def test_lowering_keeps_what_it_made():
    g = graph(softmax(parameter(N, M)))
    lowered = lower(g, Target())
    assert lowered.source is g and len(lowered.schedule.groups) == 2 and len(lowered.program.kernels) == 1
    assert "for parallel i0 < s0:" in lowered.loops
