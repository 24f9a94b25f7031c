"""Running reductions and linear recurrences as nodes: what they mean, and what a graph may not hold."""

import tracemalloc

import numpy as np
import pytest

import harp.numpy as hnp
from harp.errors import VerificationError
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Cumulative, fresh_input
from harp.trace.graph.verify import verify_graph
from harp.trace.index.polynomial import Symbol, of
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.ops import Reduce

N, M = (of(Symbol(0, k, name)) for k, name in enumerate("nm"))
X, Y = (fresh_input(name, (N, M), f32) for name in "xy")
SIZES = {N.atom: 3, M.atom: 5}


def numbers(seed):
    return np.random.default_rng(seed).normal(size=(3, 5)).astype("float32")


@pytest.mark.parametrize("reduce", Reduce)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backward", [False, True])
def test_reductions(reduce, axis, backward):
    x = numbers(0)
    (found,) = interpret(Graph((X,), (Cumulative((X,), reduce, axis, backward),)), [x], SIZES)
    turned = np.flip(x, axis) if backward else x
    expected = reduce.ufunc.accumulate(turned, axis=axis)
    np.testing.assert_array_equal(found, np.flip(expected, axis) if backward else expected)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backward", [False, True])
def test_recurrence(axis, backward):
    a, b = numbers(1), numbers(2)
    (found,) = interpret(Graph((X, Y), (Cumulative((X, Y), None, axis, backward),)), [a, b], SIZES)
    expected = np.empty_like(b)
    length = b.shape[axis]
    for start in np.ndindex(3 if axis else 5):
        r = 0.0
        for k in reversed(range(length)) if backward else range(length):
            place = (*start, k) if axis else (k, *start)
            r = expected[place] = np.float64(a[place]) * r + b[place]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_text():
    text = repr(Graph((X, Y), (Cumulative((X,), Reduce.SUM, 1), Cumulative((X, Y), None, 0, True))))
    assert "running sum along 1 of %0" in text
    assert "recurrence along 0 of %0, %1 backward" in text


@pytest.mark.parametrize(
    "node",
    [
        Cumulative((X,), None, 0),
        Cumulative((X, Y), Reduce.SUM, 0),
        Cumulative((X,), Reduce.SUM, 2),
        Cumulative((X, fresh_input("z", (M, N), f32)), None, 0),
        Cumulative((X, fresh_input("z", (N, M), f64)), None, 0),
    ],
    ids=["one operand", "two operands", "axis", "shape", "dtype"],
)
def test_what_is_refused(node):
    with pytest.raises(VerificationError):
        verify_graph(Graph(tuple(dict.fromkeys(node.operands)), (node,)))


def test_memory_is_linear():
    x = hnp.asarray(np.ones(20_000))
    tracemalloc.start()
    hnp.cumsum(x)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 * 8 * 20_000
