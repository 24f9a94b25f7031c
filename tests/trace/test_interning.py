"""Objects with equal content are one object, which lives as long as somebody holds it."""

from __future__ import annotations

import gc
import sys

import attrs
import numpy as np
import pytest

import harp
from harp.trace import interning
from harp.trace.graph.node import Body
from harp.trace.index.polynomial import Symbol


def test_equal_content_is_one_object_for_as_long_as_it_lives():
    first = Symbol(10**9, 0, "n")
    assert Symbol(10**9, 0, "n") is first
    before = len(interning._table)
    del first
    gc.collect()
    assert len(interning._table) < before, "nothing is left of it"


def numbered() -> Symbol:
    return Symbol(10**9, 1, "n")


def of_nodes(function, *arguments):
    return lambda: harp.jit(function).lower(*arguments).graph.outputs


X = np.arange(4.0)
TAKEN = harp.kernel("y[i] = 3 * x[i];", {"x": "f64[n]"}, {"y": "f64[n]"}, {"i": "n"})
LIVES = {
    "symbol": numbered,
    "reduction": of_nodes(lambda x: harp.numpy.max(x * 5), X),
    "running": of_nodes(lambda x: harp.numpy.cumsum(x * 7), X),
    "scatter": of_nodes(lambda x: x.at[np.array([1, 2])].add(11.0), X),
    "rows": of_nodes(lambda x: harp.numpy.sort(x * 13), X),
    "loop": of_nodes(lambda x: harp.fori_loop(0, 9, lambda i, a: a * 17 + i, x), X),
    "kernel": of_nodes(lambda x: TAKEN(x * 19), X),
}


@pytest.mark.parametrize("made", LIVES)
def test_no_python_runs_when_an_object_dies(made):
    """It would run the handlers of signals, and what these raise would be lost."""
    called: list[str] = []
    node = LIVES[made]()
    sys.setprofile(lambda frame, event, argument: called.append(event))
    try:
        del node
    finally:
        sys.setprofile(None)
    assert "call" not in called


def test_a_field_may_be_named():
    body = Body((), (), 1, 0)
    assert attrs.evolve(body, carried=2) is Body((), (), 2, 0) and attrs.evolve(body, carried=1) is body
