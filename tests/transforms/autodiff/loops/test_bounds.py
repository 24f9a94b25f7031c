"""The most steps that loops can have whose length is computed of sizes and of the numbers of loops round them."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.trace.graph.body import graph_of
from harp.trace.graph.node import Iteration
from harp.trace.index.polynomial import evaluate
from harp.transforms.autodiff.loops.bounds import with_bounds


def lengths(graph):
    """Those of all loops, from the outermost ones on."""
    found = []
    for node in graph.nodes():
        if isinstance(node, Iteration):
            found += [node.length, *lengths(graph_of(node.body))]
    return found


CASES = {
    "below": lambda i, n, x: (0, i),
    "above": lambda i, n, x: (i + 1, n),
    "twice": lambda i, n, x: (-i, i),
    "the lesser": lambda i, n, x: (0, hnp.minimum(i, 3)),
    "the greater": lambda i, n, x: (hnp.maximum(i, 2), n),
    "data": lambda i, n, x: (0, hnp.sum(x > 0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_for_each_step_and_one_is_reached(name):
    def f(x):
        n = x.shape[0]

        def step(i, c):
            first, last = CASES[name](i, n, x)
            return harp.fori_loop(first, last, lambda j, c: c.at[i].add(0.5 * c[i]), c)

        return harp.fori_loop(0, n, step, x)

    traced = harp.trace(f, harp.f64["n"])
    _, inner = lengths(with_bounds(traced, {}, lambda body: True))
    if name == "data":
        assert inner is None
        return
    for n in (4, 5, 9):
        most = max(int(np.subtract(*map(int, CASES[name](np.int64(i), n, None)[::-1]))) for i in range(n))
        assert evaluate(inner, lambda atom, n=n: n) >= most >= 0
        if name not in ("the lesser", "the greater"):
            assert evaluate(inner, lambda atom, n=n: n) == most
