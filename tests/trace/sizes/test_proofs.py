"""Views stay inside their sources: by proof, by a guard, or by a look at the sizes of each call."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.config import settings
from harp.errors import AddressError
from harp.trace.array import primitives
from harp.trace.graph.body import close
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Iteration, View, fresh_input
from harp.trace.index.polynomial import ONE, Symbol, as_index, loop, of
from harp.trace.scalar.expr import const
from harp.trace.sizes import scope
from harp.trace.sizes.equations import Facts
from harp.trace.sizes.proofs import claims, inspection, unproved
from harp.trace.sizes.scope import Guard, Relation

n, m = (of(Symbol(0, number, name)) for number, name in enumerate("nm"))
X = fresh_input("x", (n,), harp.f64)


def graph_of(shape, index, *conditions):
    fill = const(0.0, harp.f64) if conditions else None
    view = View(X, (shape,), (index(loop(0, shape)),), tuple(c(loop(0, shape)) for c in conditions), fill)
    return Graph((X,), (view,), {view: ("model.py", 7)})


PROVED = {
    "whole": graph_of(n, lambda i: i),
    "reversed": graph_of(n, lambda i: n - 1 - i),
    "shifted, where it fits": graph_of(n, lambda i: i + 1, lambda i: n - 2 - i),
    "first, where there is one": graph_of(n, lambda i: as_index(0)),
}
OPEN = {
    "one too far": (graph_of(n, lambda i: i + 1), Guard(Relation.NONNEGATIVE, m, ""), (3,), None),
    "another axis": (graph_of(m, lambda i: i), Guard(Relation.NONNEGATIVE, n - m, ""), (3, 4), (3, 3)),
    "the third": (graph_of(ONE, lambda i: as_index(2)), Guard(Relation.NONNEGATIVE, n - 3, ""), (2,), (3,)),
    "equal axes": (graph_of(m, lambda i: i), Guard(Relation.ZERO, m - n, ""), (3, 4), (5, 5)),
    "twice": (graph_of(m, lambda i: 2 * i), Guard(Relation.NONNEGATIVE, n - 2 * m, ""), (5, 4), (8, 4)),
}


@pytest.fixture(autouse=True)
def proofs_are_trusted(monkeypatch):
    monkeypatch.setattr(settings, "verify", 1)


@pytest.mark.parametrize("name", PROVED)
def test_by_the_expressions(name):
    assert unproved(PROVED[name], ()) == ()
    assert len(unproved(PROVED[name], (), trusts=False)) == len(list(claims(PROVED[name])))


@pytest.mark.parametrize("name", OPEN)
def test_by_a_guard_or_by_the_sizes_of_a_call(name):
    graph, guard, outside, inside = OPEN[name]
    found = unproved(graph, ())
    assert found and {(c.view, c.room) for c in found} <= {(c.view, c.room) for c in claims(graph)}
    sizes = [n.atom, m.atom][: len(outside)]
    look = inspection(found, sizes)
    for _ in range(2):
        with pytest.raises(AddressError, match=r"(?s)x is read at .*model\.py:7"):
            look(*outside)
    if inside is not None:
        look(*inside)
        look(*(0 for _ in inside)) if name != "the third" else None
        assert unproved(graph, (guard,)) == ()


@pytest.mark.parametrize("name", OPEN)
def test_views_in_loops_are_looked_at(name):
    """In the body of an iteration a view may leave its source as it may outside."""
    graph, guard, outside, inside = OPEN[name]
    counter = fresh_input("0", (), harp.i64)
    body, _ = close(Graph((counter, X), graph.outputs), 0, 0)
    loop = Graph((X,), Iteration(as_index(2), (X,), body).parts)
    found = unproved(loop, ())
    assert found
    look = inspection(found, [n.atom, m.atom][: len(outside)])
    with pytest.raises(AddressError):
        look(*outside)
    if inside is not None:
        look(*inside)
        assert unproved(loop, (guard,)) == ()


def test_what_users_write_is_proved():
    functions = [
        lambda x: x[1:] - x[:-1],
        lambda x: x[::-2],
        lambda x: hnp.concatenate([x, x[:3]]),
        lambda x: hnp.pad(x, 2),
        lambda x: x.reshape(-1, 1) * x,
        lambda x: hnp.roll(x, 3),
        lambda x: x[: x.shape[0] // 2 * 2].reshape(-1, 2),
        lambda x: harp.grad(lambda y: hnp.sum(y[1:] * y[:-1]))(x),
        lambda x: harp.grad(lambda y: hnp.sum(hnp.pad(y, (1, 2))[::2] ** 2))(x),
        lambda x: harp.scan(lambda c, v: (c[::-1] * v, c[1:] + c[:-1]), x, x),
        lambda x: harp.grad(lambda y: harp.scan(lambda c, v: (c[::-1] * v, hnp.sum(c[1:])), y, y)[1].sum())(x),
        lambda x: harp.vmap(lambda y: harp.fori_loop(0, 3, lambda i, c: c[::-1] + y, x))(x),
    ]
    for function in functions:
        graph = harp.trace(function, np.ones(8))
        assert unproved(graph, ()) == ()


def test_a_fact_without_a_guard_is_an_error(monkeypatch):
    """An axis that is taken to be 1, and keeps its index: memory outside of the array is not read."""
    monkeypatch.setattr(primitives, "is_one", lambda p: p is ONE)
    monkeypatch.setattr(scope, "take_apart", lambda p, value: Facts((p,)))
    wrong = harp.jit(lambda a, b: a.reshape(-1) + b)
    with pytest.raises(AddressError, match=r"test_proofs\.py"):
        wrong(np.full((1, 1), 7.0), np.arange(5.0))
