"""Nodes: interning is identity, in every thread, for any depth, and nothing is kept alive."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from harp.trace import interning
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph, inline, transform
from harp.trace.graph.node import (
    Captured,
    Constant,
    Contiguous,
    Input,
    MapReduce,
    View,
    at,
    fresh_input,
    positions,
    walk,
)
from harp.trace.graph.rebuild import rebuild
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ONE, ZERO, Symbol, as_index, loop, of
from harp.trace.scalar.dtypes import ALL, f32, f64, i64
from harp.trace.scalar.expr import Operand, Position, const
from harp.trace.scalar.ops import Reduce

n, m = (of(Symbol(0, k, name)) for k, name in enumerate("nm"))
x = Input(-1, "x", (n, m), f32)


def increment(node):
    return MapReduce(node.shape, (node,), Operand(node.dtype, 0) + const(1, node.dtype))


def samples():
    total = MapReduce(x.shape, (x,), Operand(f32, 0), Reduce.SUM, (1,))
    flipped = View(x, x.shape, (n - 1 - loop(0, n), loop(1, m)))
    padded = View(x, (n + 1, m), positions((n + 1, m)), (n - 1 - loop(0, n + 1),), const(0, f32))
    return [x, increment(x), total, flipped, padded, Contiguous(x), MapReduce((n,), (), Position(loop(0, n)))]


def test_equal_nodes_are_one_object():
    for first, second in zip(samples(), samples(), strict=True):
        assert first is second
    assert len(set(samples())) == len(samples())


def test_left_out_fields_make_no_other_node():
    """The same fields, written or left out, are the same node."""
    expr = Operand(f32, 0)
    assert MapReduce(x.shape, (x,), expr) is MapReduce(x.shape, (x,), expr, None, ())
    assert View(x, x.shape, positions(x.shape)) is View(x, x.shape, positions(x.shape), (), None)
    for node in samples():
        assert rebuild(node, node.inputs, Substitution({})) is node


def test_every_field_counts():
    assert Input(-1, "x", (n, m), f64) is not x and Input(-2, "x", (n, m), f32) is not x
    assert fresh_input("x", (n,), f32) is not fresh_input("x", (n,), f32)
    zero, negative = (View(x, (n,), (ZERO, ZERO), (n - 2,), const(v, f32)) for v in (0.0, -0.0))
    assert zero is not negative
    nan = [View(x, (n,), (ZERO, ZERO), (n - 2,), const(np.nan, f32)) for _ in range(2)]
    assert nan[0] is nan[1]


def test_copies_and_pickles_are_the_same_object():
    for node in samples():
        assert copy.copy(node) is node and copy.deepcopy(node) is node
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(node, protocol)) is node
    assert copy.deepcopy([x, {"x": x}])[1]["x"] is x


def test_nodes_do_not_change():
    for node in samples():
        with pytest.raises(AttributeError):
            node.shape = ()
        with pytest.raises((AttributeError, TypeError)):
            node.anything = 1


def test_shapes_and_dtypes():
    assert [node.shape for node in samples()] == [(n, m), (n, m), (n,), (n, m), (n + 1, m), (n, m), (n,)]
    assert {node.dtype for node in samples()} == {f32, i64}


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_captured_arrays(dtype):
    array = np.ones((2, 3), dtype.numpy)[:, ::-1]
    node = Constant(Captured(array))
    assert node.shape == (as_index(2), as_index(3)) and node.dtype is dtype
    assert node.captured.array.flags.c_contiguous and not node.captured.array.flags.writeable
    assert copy.deepcopy(node) is node
    again = pickle.loads(pickle.dumps(node))
    np.testing.assert_array_equal(again.captured.array, array)
    assert not again.captured.array.flags.writeable


def test_positions():
    assert positions((n, ONE, m)) == (loop(0, n), ZERO, loop(2, m))
    assert at((n, m), (loop(1, m), ZERO)).each((loop(0, n) + 1, loop(1, m))) == (loop(1, m) + 1, ZERO)


def test_threads_build_the_same_nodes():
    results, barrier = [None] * 4, threading.Barrier(4)

    def build(slot):
        size = of(Symbol(77, 0, "t"))
        barrier.wait()
        node, made = Input(-9, "x", (size,), f64), []
        for k in range(1_500):
            node = MapReduce(node.shape, (node,), Operand(f64, 0) + const(k + 0.5, f64))
            made.append(node)
        results[slot] = made

    threads = [threading.Thread(target=build, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for nodes in zip(*results, strict=True):
        assert all(node is nodes[0] for node in nodes)


@pytest.mark.slow
def test_a_long_chain_is_built_walked_rebuilt_and_freed():
    depth = 50_000
    gc.collect()
    before = len(interning._table)
    source = fresh_input("x", (n,), f64)
    node = source
    for _ in range(depth):
        node = increment(node)
    assert sum(1 for _ in walk((node,))) == depth + 1
    graph = Graph((source,), (node,))
    renamed = inline(graph, {}, Substitution({n.atom: m}))
    assert renamed.outputs[0].shape == (m,) and len(renamed.nodes()) == depth + 1
    (result,) = interpret(graph, [np.zeros(2)], {n.atom: 2})
    assert result.tolist() == [depth] * 2
    watch = weakref.ref(node)
    del node, graph, renamed
    gc.collect()
    assert watch() is None
    assert len(interning._table) - before < 100


def test_shared_nodes_are_walked_once():
    node = x
    for _ in range(100):
        node = MapReduce(node.shape, (node, node), Operand(f32, 0) + Operand(f32, 1))
    assert len(list(walk((node, node)))) == 101
    seen = set()
    for step in walk((node,)):
        assert all(i in seen for i in step.inputs)
        seen.add(step)


def test_substitution_merges_nodes():
    """Nodes that differ in sizes which turn out equal become one."""
    y = Input(-3, "y", (n,), f32)
    first, second = (MapReduce((size,), (), Position(loop(0, size))) for size in (n, m))
    graph = inline(Graph((y,), (first, second)), {}, Substitution({m.atom: n}))
    assert graph.outputs[0] is graph.outputs[1] is first


def test_a_view_of_all_as_it_is_disappears_when_sizes_are_known():
    y = Input(-4, "y", (m,), f32)
    prefix = View(y, (n,), (loop(0, n),))
    graph = inline(Graph((y,), (prefix,)), {}, Substitution({n.atom: m}))
    assert graph.outputs[0] is graph.inputs[0]


def test_transform_keeps_sites():
    node = increment(x)
    graph = Graph((x,), (node,), {node: ("file.py", 3)})
    same = transform(graph, lambda old, inputs: rebuild(old, inputs, Substitution({})))
    assert same.sites == graph.sites and same.outputs == graph.outputs
