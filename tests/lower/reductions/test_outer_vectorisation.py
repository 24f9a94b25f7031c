"""Reductions over short rows, with the vector across the rows."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import FUSED, K, M, N, along, binary, check, fold, graph, layernorm, log_softmax, parameter, softmax
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.lower.reductions.outer_vectorisation import SHORT
from harp.trace.graph.graph import Graph
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.ops import Op, Reduce

X = parameter(N, M)
GRAPHS = {
    "sum": graph(fold(Reduce.SUM, X, 1)),
    "max": graph(fold(Reduce.MAX, X, 1)),
    "softmax": graph(softmax(X)),
    "log_softmax": graph(log_softmax(X)),
    "layernorm": graph(layernorm(X)),
    "middle": graph(fold(Reduce.SUM, parameter(N, M, K), 1)),
    "both": graph(fold(Reduce.SUM, parameter(N, M, K), 1, 2)),
    "batched": graph(binary(Op.ADD, parameter(N, K, M, name="y"), along(Reduce.MIN, parameter(N, K, M, name="y")))),
}


def text(g: Graph) -> str:
    return lower(g, FUSED).loops


@given(st.sampled_from(sorted(GRAPHS)), st.integers(0, 5), st.sampled_from([1, 2, 3, 16, SHORT, SHORT + 1, 70]))
def test_same_as_the_interpreter(name, rows, length):
    check(GRAPHS[name], (rows, length, 3))


def test_the_version_depends_on_the_length_only():
    assert f"if -s1 + {SHORT} >= 0:" in text(GRAPHS["softmax"])
    assert f" + {SHORT} >= 0" not in text(graph(fold(Reduce.SUM, X, 0)))
    few, many = (text(graph(softmax(parameter(N, as_index(count))))) for count in (10, 100))
    assert "lanes" not in few and "lanes" in many and "if" not in few


@pytest.mark.parametrize("length", [1, 3, 10, SHORT, SHORT + 1])
def test_a_row_has_the_same_bits_in_every_batch(length):
    f = harp.jit(lambda x: (hnp.softmax(x, axis=1), hnp.sum(x, axis=1), hnp.var(x, axis=1)))
    x = np.random.default_rng(0).normal(size=(1100, length)).astype(np.float32)
    whole = [np.asarray(a) for a in f(x)]
    for start, stop in ((0, 1), (511, 514), (1000, 1100), (7, 7)):
        for a, b in zip(whole, f(x[start:stop]), strict=True):
            np.testing.assert_array_equal(a[start:stop], np.asarray(b))
    assert f.compilations == 1


def test_special_values_stay_in_their_row():
    x = np.array([[np.nan, 1], [np.inf, 2], [-np.inf, 3], [-0.0, 0.0]])
    found = harp.jit(lambda x: (hnp.max(x, axis=1), hnp.sum(x, axis=1)))(x)
    for a, b in zip(found, (x.max(axis=1), x.sum(axis=1)), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)
