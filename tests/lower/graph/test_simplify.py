"""Simplification: fewer nodes, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import K, M, N, arrays, binary, elementwise, fold, graph, parameter, random_graphs, sized, unary
from hypothesis import given

import harp
from harp.errors import VerificationError
from harp.lower.graph.simplify import simplify, verify_simplified
from harp.trace.eval.interpret import interpret
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Captured, Constant, Contiguous, MapReduce, Node, View, positions
from harp.trace.index.polynomial import ZERO
from harp.trace.scalar.dtypes import f32, i32
from harp.trace.scalar.expr import Operand, apply, cast, const
from harp.trace.scalar.ops import Op, Reduce


def only(node: Node) -> Node:
    """The simplified form of a single output, checked."""
    before = graph(node)
    after = simplify(before)
    verify_simplified(before, after)
    return after.outputs[0]


def raw_view(src: Node, by: int, fill: float | None = None) -> View:
    """The rows of `src` from `by` on, outside of it `fill`, as a node that nobody has simplified."""
    i, *rest = positions(src.shape)
    conditions = (i + by, src.shape[0] - 1 - i - by) if fill is not None else ()
    return View(src, src.shape, (i + by, *rest), conditions, None if fill is None else const(fill, src.dtype))


def test_view_of_view_is_one_view():
    x = parameter(N, M)
    once = only(raw_view(raw_view(x, 1, 0.0), 2, 0.0))
    assert isinstance(once, View) and once.src is x and len(once.conditions) == 2  # the others hold by themselves


def test_views_with_different_fills_stay_two():
    x = parameter(N)
    outer = only(raw_view(raw_view(x, 1, 0.0), -1, 1.0))
    assert isinstance(outer, View) and isinstance(outer.src, View)


def test_identity_view_and_map_vanish():
    x = parameter(N, M)
    assert only(View(x, x.shape, positions(x.shape))) is x
    assert only(elementwise(lambda a: a, x)) is x
    assert only(view.flip(View(x, x.shape, positions(x.shape)), [0])) is view.flip(x, [0])


def test_stop_gradient_vanishes():
    x = parameter(N)
    assert only(unary(Op.STOP, x)) is x
    stopped = only(elementwise(lambda a: apply(Op.STOP, apply(Op.EXP, a)) + a, x))
    assert stopped is elementwise(lambda a: apply(Op.EXP, a) + a, x)


def test_conditions_that_hold_are_dropped():
    x = parameter(N)
    (i,) = positions(x.shape)
    assert only(View(x, x.shape, (i,), (i, N - 1 - i), const(0, f32))) is x
    kept = only(View(x, (N + 1,), positions((N + 1,)), (i * 0 + 1, N - 1 - positions((N + 1,))[0]), const(0, f32)))
    assert isinstance(kept, View) and len(kept.conditions) == 1


def test_conditions_that_never_hold_leave_the_fill():
    x = parameter(N)
    (i,) = positions(x.shape)
    filled = only(View(x, x.shape, (i,), (-i - 1,), const(7, f32)))
    assert filled is MapReduce(x.shape, (), const(7, f32))


def test_numbers_go_into_the_expression():
    x = parameter(N)
    number = MapReduce((), (), const(1, f32))
    everywhere = View(number, x.shape, ())
    assert only(binary(Op.MUL, x, everywhere)) is x
    assert only(binary(Op.ADD, x, everywhere)) is elementwise(lambda a: a + const(1, f32), x)


def test_operands_that_are_not_read_go():
    x, y = parameter(N), parameter(N, name="y")
    assert only(MapReduce(x.shape, (x, y), apply(Op.EXP, Operand(f32, 1)))) is unary(Op.EXP, y)
    twice = binary(Op.ADD, x, x)
    assert only(twice) is elementwise(lambda a: a + a, x)


def test_contiguous_of_what_is_in_memory_vanishes():
    x = parameter(N)
    constant = Constant(Captured(np.arange(3, dtype="f4")))
    assert only(Contiguous(x)) is x
    assert only(Contiguous(constant)) is constant
    kept = Contiguous(view.flip(x, [0]))
    assert only(kept) is kept
    assert only(Contiguous(kept)) is kept


def test_casts_and_reductions_stay():
    x = parameter(N, dtype=i32)
    total = fold(Reduce.SUM, elementwise(lambda a: cast(a, f32), x), 0)
    assert only(total) is total


def test_inputs_stay_when_they_are_not_read():
    x, y = parameter(N), parameter(K, name="y")
    assert simplify(Graph((x, y), (x,))).inputs == (x, y)


def test_verifier_finds_a_graph_that_is_not_simple():
    x = parameter(N)
    identity = graph(elementwise(lambda a: a, x))
    with pytest.raises(VerificationError, match="second time"):
        verify_simplified(identity, identity)
    with pytest.raises(VerificationError, match="made"):
        verify_simplified(graph(x), Graph((x,), (fold(Reduce.SUM, x, 0),)))


@given(random_graphs())
def test_same_bits(g):
    after = simplify(g)
    verify_simplified(g, after)
    sizes = sized(g, (3, 4, 0))
    data = arrays(g, sizes)
    for a, b in zip(interpret(g, data, sizes), interpret(after, data, sizes), strict=True):
        np.testing.assert_array_equal(a, b)


def test_shapes_of_constants_are_kept():
    x = parameter(N, M)
    ones = MapReduce((), (), const(1, f32))
    kept = only(View(ones, x.shape, ()))
    assert kept.shape == x.shape and kept is MapReduce(x.shape, (), const(1, f32))


@pytest.mark.parametrize("reduce", [Reduce.SUM, Reduce.PROD, Reduce.MAX])
def test_nothing_is_read_for_what_is_empty(reduce):
    x = parameter(ZERO, M)
    for node in (unary(Op.NEG, x), raw_view(x, 1, 0.0), Contiguous(x)):
        result = only(node)
        assert isinstance(result, MapReduce) and not result.operands and result.shape == (ZERO, M)
    total = only(fold(reduce, x, 0))
    assert isinstance(total, MapReduce) and not total.operands and total.shape == (M,)
    assert total.expr is const(reduce.identity(f32), f32)
    assert only(x) is x


def test_elements_of_an_array_with_axes_exchanged_are_read_where_they_are():
    """A batch along the last axis: its axis goes to the front, but the array is not transposed in memory."""

    def walk(x, first):
        return harp.fori_loop(0, x.shape[0], lambda i, at: at + x[at % x.shape[0]].astype(int), first)

    compiled = harp.jit(harp.vmap(walk, in_axes=(1, None)))
    x = np.random.default_rng(0).integers(0, 9, (5, 3)).astype("f8")
    expected = np.full(3, 2)
    for _ in range(5):
        expected += x[expected % 5, range(3)].astype(int)
    np.testing.assert_array_equal(np.asarray(compiled(x, np.int64(2))), expected)
    assert compiled.lower(x, np.int64(2)).memory().scratch == 0
