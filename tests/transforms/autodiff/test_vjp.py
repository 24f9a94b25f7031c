"""Gradients of graphs, built from nodes and run by the interpreter, against central differences in float64."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harp.errors import IntegerGradientError, MissingRuleError
from harp.trace.eval.interpret import interpret
from harp.trace.graph import view as v
from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.node import (
    KINDS,
    Captured,
    Constant,
    Contiguous,
    Input,
    MapReduce,
    View,
    fresh_input,
    positions,
)
from harp.trace.graph.verify import verify_graph
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Symbol, as_index, of
from harp.trace.scalar.dtypes import bool_, f32, f64, i64
from harp.trace.scalar.expr import Operand, Position, apply, cast, const, weight
from harp.trace.scalar.ops import INFO, Op, Reduce
from harp.transforms.autodiff import scalar_rules
from harp.transforms.autodiff.vjp import RULES, vjp

N, M, K = (of(Symbol(0, k, name)) for k, name in enumerate("nmk"))


def x_(*shape, dtype=f64, name="x"):
    return fresh_input(name, tuple(map(as_index, shape)), dtype)


def op(op_, *nodes):
    return MapReduce(nodes[0].shape, nodes, apply(op_, *(Operand(n.dtype, k) for k, n in enumerate(nodes))))


def reduce(kind, node, *axes):
    return MapReduce(node.shape, (node,), Operand(node.dtype, 0), kind, axes)


def total(node):
    return reduce(Reduce.SUM, node, *range(len(node.shape))) if node.shape else node


def expand(node, shape):
    return v.expand(node, shape, (False,) * len(node.shape))


def weighted(node):
    """A scalar that depends on every element differently."""
    terms = MapReduce(node.shape, (node,), Operand(f64, 0) * apply(Op.COS, _rank(node.shape)))
    return total(terms)


def _rank(shape):
    number = const(0.3, f64)
    for k, p in enumerate(positions(shape)):
        number = number + cast(Position(p), f64) * const(0.7 + 0.4 * k, f64)
    return number


def run(graph, arrays, n=3, m=2, k=2):
    return interpret(graph, arrays, {N.atom: n, M.atom: m, K.atom: k})


def gradients(graph):
    """The vjp by all inputs, verified."""
    result = vjp(graph, graph.inputs)
    verify_graph(result)
    for made, i in zip(result.outputs, graph.inputs, strict=True):
        assert made.shape == i.shape and made.dtype is i.dtype
    return result


def check(graph, arrays, order=2, rtol=1e-5, **at):
    """Gradients of the weighted first output, up to an order, against central differences."""
    output = weighted(graph.outputs[0])
    inputs = graph.inputs
    for _ in range(order):
        scalar = Graph(inputs, (output,))
        derived = gradients(scalar)
        found = run(derived, [*arrays, np.ones(())], **at)
        for k, a in enumerate(arrays):
            expected = np.zeros(a.shape)
            for where in np.ndindex(*a.shape):
                ends = []
                for h in (1e-5, -1e-5):
                    moved = [b.copy() for b in arrays]
                    moved[k][where] += h
                    ends.append(run(scalar, moved, **at)[0])
                expected[where] = (ends[0] - ends[1]) / 2e-5
            npt.assert_allclose(found[k], expected, rtol=rtol, atol=1e-6)
        # the next order: of a weighted sum of all gradients, the cotangent being 1
        seeded = inline(derived, {derived.inputs[-1]: MapReduce((), (), const(1.0, f64))})
        parts = [weighted(o) for o in seeded.outputs]
        output = parts[0]
        for part in parts[1:]:
            output = op(Op.ADD, output, part)


def random(*shape, low=0.3, high=1.7):
    return np.random.default_rng(7).uniform(low, high, shape)


def test_every_kind_of_node_has_a_rule():
    assert set(RULES) == set(KINDS)


def _matmul():
    a, b = x_(N, M, name="a"), x_(M, K, name="b")
    domain = (N, M, K)
    left = v.view(a, domain, positions(domain)[:2])
    right = v.view(b, domain, positions(domain)[1:])
    product = Operand(f64, 0) * Operand(f64, 1)
    return Graph((a, b), (MapReduce(domain, (left, right), product, Reduce.SUM, (1,)),))


def _softmax():
    x = x_(N, M)
    top = v.expand(v.insert_axes(reduce(Reduce.MAX, x, 1), (1,)), x.shape, (False, True))
    e = op(Op.EXP, op(Op.ADD, x, op(Op.NEG, top)))
    below = v.expand(v.insert_axes(reduce(Reduce.SUM, e, 1), (1,)), x.shape, (False, True))
    return Graph((x,), (op(Op.DIV, e, below),))


def _convolution():
    x, w = x_(N + 2), x_(3, name="w")
    domain = (N, as_index(3))
    i, j = positions(domain)
    windows = View(x, domain, (i + j,))
    product = Operand(f64, 0) * Operand(f64, 1)
    return Graph((x, w), (MapReduce(domain, (windows, expand(w, domain)), product, Reduce.SUM, (1,)),))


def _two_uses():
    x, y = x_(N, M), x_(M, name="y")
    s = op(Op.SIN, op(Op.MUL, x, expand(y, x.shape)))
    return Graph((x, y), (op(Op.ADD, op(Op.MUL, s, s), op(Op.MUL, x, Contiguous(s))),))


def _views():
    x = x_(N, M)
    flat = v.reshape(v.flip(v.permute(x, (1, 0)), (0,)), (M * N,))
    padded = v.pad(flat, (1,), (2,), const(2.5, f64))
    return Graph((x,), (op(Op.MUL, padded, padded),))


def _reduction(kind, *axes):
    def build():
        x = x_(N, M, K)
        squared = Operand(f64, 0) * Operand(f64, 0) + apply(Op.SIN, Operand(f64, 0))
        return Graph((x,), (MapReduce(x.shape, (x,), squared, kind, axes),))

    return build


def _bare(kind, *axes):
    def build():
        x = x_(N, M)
        return Graph((x,), (reduce(kind, x, *axes),))

    return build


GRAPHS = {
    "matmul": (_matmul, lambda n, m, k: [random(n, m), random(m, k)]),
    "softmax": (_softmax, lambda n, m, k: [random(n, m)]),
    "convolution": (_convolution, lambda n, m, k: [random(n + 2), random(3)]),
    "two uses": (_two_uses, lambda n, m, k: [random(n, m), random(m)]),
    "views": (_views, lambda n, m, k: [random(n, m)]),
    **{
        f"{kind.name} over {axes}": (_reduction(kind, *axes), lambda n, m, k: [random(n, m, k)])
        for kind, axes in itertools.product(Reduce, [(0,), (1, 2), (0, 1, 2)])
    },
    **{
        f"bare {kind.name} over {axes}": (_bare(kind, *axes), lambda n, m, k: [random(n, m)])
        for kind, axes in itertools.product(Reduce, [(1,), (0, 1)])
    },
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("at", [(3, 2, 2), (1, 1, 1), (2, 1, 3)], ids=str)
def test_first_and_second_order(name, at):
    build, arrays = GRAPHS[name]
    n, m, k = at
    check(build(), arrays(*at), n=n, m=m, k=k)


@pytest.mark.parametrize("name", [n for n in GRAPHS if "MAX" not in n and "MIN" not in n and n != "softmax"])
@pytest.mark.parametrize("at", [(0, 2, 2), (2, 0, 2), (2, 2, 0)], ids=str)
def test_sizes_of_zero(name, at):
    build, arrays = GRAPHS[name]
    n, m, k = at
    check(build(), arrays(*at), n=n, m=m, k=k)


def test_every_operation_as_a_node():
    points = {Op.MOD: ([7.3, 5.1], [-1.7, 2.2]), Op.MAX: ([1.0, 2.0], [2.0, 1.0]), Op.MIN: ([1.0, 2.0], [2.0, 1.0])}
    for op_ in scalar_rules.RULES:
        if op_ in (Op.SELECT, Op.CAST, Op.COMPLEX, Op.REAL, Op.IMAG, Op.OPAQUE):
            continue
        arity = INFO[op_].arity
        inputs = tuple(x_(N, name=f"x{k}") for k in range(arity))
        arrays = [np.array(p) for p in points.get(op_, ([0.3, 0.8], [1.2, 0.4], [0.1, 0.2])[:arity])]
        check(Graph(inputs, (op(op_, *inputs),)), arrays, n=2)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_product_with_zeros_to_third_order(zeros):
    x = x_(N)
    a = np.array([1.5, -2.0, 3.0, 0.5])
    a[:zeros] = 0.0
    graph = Graph((x,), (reduce(Reduce.PROD, x, 0),))
    check(graph, [a], order=3, n=4)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_product_over_two_axes_with_zeros(zeros):
    x = x_(N, M)
    a = random(2, 3)
    a.flat[:zeros] = 0.0
    check(Graph((x,), (reduce(Reduce.PROD, x, 0, 1),)), [a], order=2, n=2, m=3)


def seeded(graph, arrays, *cotangents, **at):
    return run(vjp(graph, graph.inputs), [*arrays, *cotangents], **at)


@pytest.mark.parametrize(("kind", "best"), [(Reduce.MAX, 3.0), (Reduce.MIN, 1.0)])
def test_ties_share_equally(kind, best):
    x = x_(N, M)
    a = np.array([[best, 2, best], [2, 2, best]])
    (found,) = seeded(Graph((x,), (reduce(kind, x, 1),)), [a], np.array([1.0, 4.0]), n=2, m=3)
    npt.assert_array_equal(found, [[0.5, 0, 0.5], [0, 0, 4]])
    (found,) = seeded(Graph((x,), (reduce(kind, x, 0, 1),)), [a], np.array(6.0), n=2, m=3)
    npt.assert_array_equal(found, [[2, 0, 2], [0, 0, 2]])


def test_nan_takes_the_gradient_of_an_extreme():
    x = x_(N)
    (found,) = seeded(Graph((x,), (reduce(Reduce.MAX, x, 0),)), [np.array([1, np.nan, 3])], np.array(2.0), n=3)
    npt.assert_array_equal(found, [0, 2, 0])


def test_second_order_of_ties():
    x = x_(N)
    squared = MapReduce((N,), (x,), Operand(f64, 0) * Operand(f64, 0), Reduce.MAX, (0,))
    first = vjp(Graph((x,), (squared,)), (x,))
    (found, _) = seeded(first, [np.array([2.0, -2.0, 1.0]), np.array(1.0)], np.array([1.0, 1.0, 1.0]), n=3)
    npt.assert_array_equal(found, [1, 1, 0])  # the second derivative of x*x, times the share


def test_several_outputs_and_integers():
    x, i = x_(N), x_(N, dtype=i64, name="i")
    mixed = MapReduce((N,), (x, i), Operand(f64, 0) * cast(Operand(i64, 1), f64))
    rounded = MapReduce((N,), (x,), cast(Operand(f64, 0), i64))
    mask = MapReduce((N,), (x,), Operand(f64, 0) < const(0.0, f64))
    assert mask.dtype is bool_
    graph = Graph((x, i), (mixed, rounded, x, x, mask))
    result = vjp(graph, (x,))
    assert [c.name for c in result.inputs[2:]] == ["cotangent0", "cotangent1", "cotangent2"]
    (found,) = run(result, [np.ones(2), np.array([3, 4]), *(np.full(2, 10.0**k) for k in range(3))], n=2)
    npt.assert_array_equal(found, [3 + 110, 4 + 110])
    with pytest.raises(IntegerGradientError, match="'i'"):
        vjp(graph, (i,))


def test_no_dependence_gives_zeros_and_needs_no_rules():
    x, y = x_(N, 2), x_(N, name="y")
    stopped = MapReduce((N,), (y,), apply(Op.STOP, Operand(f64, 0)))
    captured = Constant(Captured(np.arange(3.0)))
    clamped = View(y, (N,), (floordiv(positions((N,))[0] * positions((N,))[0], N),))
    result = vjp(Graph((x, y), (stopped, captured, clamped)), (x,))
    assert result.outputs[0].inputs == ()
    npt.assert_array_equal(run(result, [np.ones((2, 2)), np.ones(2), *[np.ones(2)] * 3], n=2)[0], np.zeros((2, 2)))


def test_single_precision_stays():
    x = x_(N, dtype=f32)
    result = vjp(Graph((x,), (reduce(Reduce.MAX, op(Op.TANH, x), 0),)), (x,))
    verify_graph(result)
    assert all(n.dtype in (f32, bool_, i64) for n in result.nodes())


def test_nodes_get_the_line_of_what_they_were_made_for():
    x = x_(N)
    sine = op(Op.SIN, x)
    sites = {sine: ("user.py", 3), (largest := reduce(Reduce.MAX, sine, 0)): ("user.py", 4)}
    graph = Graph((x,), (largest,), sites)
    result = vjp(graph, (x,))
    new = [n for n in result.nodes() if not isinstance(n, Input) and n not in sites]
    assert {result.sites[n] for n in new} == {("user.py", 3), ("user.py", 4)}
    assert result.sites[result.outputs[0]] == ("user.py", 3)


def test_a_missing_rule_names_node_and_line(monkeypatch):
    monkeypatch.delitem(RULES, MapReduce)
    x = x_(N)
    double = MapReduce((N,), (x,), Operand(x.dtype, 0) + Operand(x.dtype, 0))
    with pytest.raises(MissingRuleError, match=r"has no rule\n  at user\.py:12"):
        vjp(Graph((x,), (double,), {double: ("user.py", 12)}), (x,))


def test_sums_of_expanded_arrays_need_no_view_of_the_cotangent():
    graph = _matmul()
    kinds = [type(n) for n in vjp(graph, graph.inputs).nodes()]
    assert kinds.count(MapReduce) == 4
    assert kinds.count(View) == 3  # both operands, and the cotangent


# -- size ---------------------------------------------------------------------------------------------------------


def cost(graph):
    nodes = graph.nodes()
    return len(nodes), sum(1 + weight(n.expr) for n in nodes if isinstance(n, MapReduce))


def _chain(length):
    x = x_(N)
    y = x
    for k in range(length):
        y = op((Op.SIN, Op.TANH, Op.EXP)[k % 3], y)
        y = op(Op.MUL, y, x) if k % 2 else op(Op.ADD, y, y)
    return Graph((x,), (total(y),))


def _means(steps):
    x = x_(N)
    y = x
    for _ in range(steps):
        squares = MapReduce((N,), (y,), Operand(f64, 0) * Operand(f64, 0), Reduce.SUM, (0,))
        share = Operand(f64, 0) / cast(Position(N), f64)
        mean = MapReduce((), (squares,), -share)
        y = op(Op.ADD, y, expand(mean, (N,)))
    return Graph((x,), (total(y),))


@pytest.mark.parametrize("graph", [_chain(200), _chain(400), _means(40), _means(80)], ids=["200", "400", "m40", "m80"])
def test_size_is_linear(graph):
    nodes, work = cost(graph)
    derived = gradients(graph)
    new_nodes, new_work = cost(derived)
    assert new_nodes < 5 * nodes and new_work < 6 * work, (nodes, work, new_nodes, new_work)
    twice = cost(vjp(derived, derived.inputs[:1]))
    assert twice[0] < 5 * new_nodes and twice[1] < 6 * new_work, (new_nodes, new_work, twice)


def test_the_gradient_of_means_is_right():
    check(_means(3), [random(4, high=0.6)], n=4)


def _fibonacci(steps):
    """Each array is the sum of the two before it, and so is each cotangent of the two behind it."""
    x = x_(N)
    view = expand(x, (M, N))
    a, b = view, op(Op.SIN, view)
    for _ in range(steps):
        a, b = op(Op.ADD, a, b), a
    return Graph((x,), (total(op(Op.MUL, a, a)),))


def _one_view(uses):
    """One view that many lines read."""
    x = x_(N)
    view = expand(x, (M, N))
    sum_of_all = view
    for k in range(uses):
        sum_of_all = op(Op.ADD, sum_of_all, op(Op.MUL, view, _filled(k / 1500)))
    return Graph((x,), (total(op(Op.SIN, sum_of_all)),))


def _filled(value):
    return MapReduce((M, N), (), const(value, f64))


@pytest.mark.parametrize("graph", [_fibonacci, _one_view])
def test_a_cotangent_of_many_summands_takes_linear_time(graph):
    assert len(gradients(graph(1500)).nodes()) < 12 * 1500


@pytest.mark.parametrize("graph", [_fibonacci(6), _one_view(3), _one_view(100)], ids=["fibonacci", "few", "many"])
def test_a_cotangent_of_many_summands_is_right(graph):
    check(graph, [random(3)])


def test_deterministic():
    texts = [repr(vjp(graph, graph.inputs)) for graph in (_means(5), _means(5))]
    assert texts[0] == texts[1]


# -- random programs ----------------------------------------------------------------------------------------------


def _grow(draw, nodes):
    kind = draw(st.sampled_from(["unary", "binary", "reduce", "flip", "transpose", "reshape", "window"]))
    node = draw(st.sampled_from(nodes))
    rank = len(node.shape)
    axis = draw(st.integers(0, max(rank - 1, 0)))
    if kind == "unary":
        return op(draw(st.sampled_from([Op.SIN, Op.COS, Op.TANH, Op.NEG])), node)
    if kind == "binary":
        other = draw(st.sampled_from([n for n in nodes if n.shape == node.shape]))
        return op(draw(st.sampled_from([Op.ADD, Op.MUL])), node, other)
    if kind == "reduce" and rank:
        made = reduce(draw(st.sampled_from([Reduce.SUM, Reduce.PROD, Reduce.MAX])), node, axis)
        return v.expand(v.insert_axes(made, (axis,)), node.shape, tuple(k == axis for k in range(rank)))
    if kind == "flip" and rank:
        return v.flip(node, (axis,))
    if kind == "transpose":
        return v.permute(node, tuple(reversed(range(rank))))
    if kind == "reshape" and rank > 1:
        return v.reshape(node, (node.shape[0] * node.shape[1], *node.shape[2:]))
    if kind == "window" and rank == 1:
        shape = (node.shape[0], as_index(2))
        i, j = positions(shape)
        return v.view(node, shape, (i + j,), (node.shape[0] - 1 - i - j,), const(0.5, f64))
    return node


@settings(max_examples=60)
@given(st.data())
def test_random_programs(data):
    x = x_(N, M)
    nodes = [x]
    for _ in range(data.draw(st.integers(1, 6))):
        nodes.append(_grow(data.draw, nodes))
    values = np.array(data.draw(st.lists(st.sampled_from([0.3, -0.7, 1.1, 0.45, -1.3, 0.8]), min_size=6, max_size=6)))
    values += np.arange(6) * 0.013  # no ties
    check(Graph((x,), (nodes[-1],)), [values.reshape(3, 2)], order=1, rtol=1e-4, n=3, m=2)
