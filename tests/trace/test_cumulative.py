"""What is recognised as a running reduction, and that it is interpreted in linear memory."""

import tracemalloc

import numpy as np
import pytest

import harp.numpy as hnp
from harp.trace.cumulative import masked, running
from harp.trace.dtypes import f32, f64
from harp.trace.expr import Operand, Position, apply, cast, const
from harp.trace.graph import Graph
from harp.trace.index import Symbol, of
from harp.trace.interpret import interpret
from harp.trace.node import MapReduce, fresh_input, positions
from harp.trace.ops import Op, Reduce
from harp.trace.view import view

N, M = (of(Symbol(0, k, name)) for k, name in enumerate("nm"))
X = fresh_input("x", (N, M), f32)


def reduced(operand, expr=None, reduce=Reduce.SUM):
    expr = Operand(operand.dtype, 0) if expr is None else expr
    return MapReduce(operand.shape, (operand,), expr, reduce, (len(operand.shape) - 1,))


def at_k(condition, fill=0.0):
    """x[n, k] at (n, i, k) where the condition holds."""
    domain = (N, M, M)
    n, i, k = positions(domain)
    return view(X, domain, (n, k), (condition(i, k),), const(fill, f32))


@pytest.mark.parametrize("reduce", Reduce)
@pytest.mark.parametrize("axis", [0, 1])
def test_what_masked_makes(reduce, axis):
    run = running(reduced(masked(X, reduce, axis), reduce=reduce))
    assert (run.values, run.reduce, run.axis, run.backward) == (X, reduce, axis, False)


def test_backward():
    assert running(reduced(at_k(lambda i, k: k - i))).backward


def test_of_what_is_mapped():
    run = running(reduced(masked(X, Reduce.SUM, 1), cast(Operand(f32, 0), f64)))
    assert run.values is MapReduce((N, M), (X,), cast(Operand(f32, 0), f64))


@pytest.mark.parametrize(
    "node",
    [
        reduced(at_k(lambda i, k: i - k - 1)),
        reduced(at_k(lambda i, k: i - 2 * k)),
        reduced(at_k(lambda i, k: i - k, fill=1.0)),
        reduced(at_k(lambda i, k: i - k), reduce=Reduce.PROD),
        reduced(at_k(lambda i, k: i - k), apply(Op.EXP, Operand(f32, 0))),
        reduced(at_k(lambda i, k: i - k), apply(Op.MUL, Operand(f32, 0), cast(Position(positions((N, M, M))[1]), f32))),
        reduced(X),
    ],
)
def test_what_is_not(node):
    """Other conditions, what the mask leaves out is not the identity, and values that depend on i."""
    assert running(node) is None


@pytest.mark.parametrize("reduce", Reduce)
@pytest.mark.parametrize("backward", [False, True])
def test_interpreted(reduce, backward):
    fill = float(reduce.identity(f32))
    node = reduced(at_k(lambda i, k: k - i if backward else i - k, fill), reduce=reduce)
    x = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    towards = (slice(None), slice(None, None, -1 if backward else 1))
    (found,) = interpret(Graph((X,), (node,)), [x], {N.atom: 3, M.atom: 5})
    np.testing.assert_array_equal(found, reduce.ufunc.accumulate(x[towards], axis=1)[towards])


def test_memory_is_linear():
    x = hnp.asarray(np.ones(20_000))
    tracemalloc.start()
    hnp.cumsum(x)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 * 8 * 20_000
