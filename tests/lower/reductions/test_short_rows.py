"""Reductions of a few terms have the numbers of longer ones and no inner loop; over short rows vectors run across."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import FUSED, K, M, N, along, binary, check, fold, graph, layernorm, log_softmax, parameter, softmax
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.lower.reductions.short_rows import SHORT
from harp.trace.graph.graph import Graph
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.ops import Op, Reduce

FUNCTIONS = {
    "sum": lambda np, x: x.sum(axis=0),
    "of what is computed": lambda np, x: (abs(x) * 2 - 1).sum(axis=0),
    "maximum": lambda np, x: x.max(axis=0),
    "what follows": lambda np, x: x.sum(axis=0) / (abs(x).max(axis=0) + 1),
    "product": lambda np, x: (x * x[::-1]).sum(axis=0),
    "two axes": lambda np, x: x[:, None].min(axis=(0, 1)),
}


DTYPES = {"float32": harp.f32, "float64": harp.f64, "int32": harp.i32}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", [1, 2, 3, 16, 17])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, terms: int, dtype: str) -> None:
    compiled = harp.jit(lambda x: FUNCTIONS[name](hnp, x), signature=(DTYPES[dtype][terms, "n"],))
    rng = np.random.default_rng(0)
    for columns in (0, 1, 7, 64, 1000):
        x = (9 * rng.standard_normal((terms, columns))).astype(dtype)
        np.testing.assert_allclose(np.asarray(compiled(x)), FUNCTIONS[name](np, x), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("terms", [2, 16])
def test_same_bits_as_more_terms(terms: int) -> None:
    """More terms, of which the last are zeros, are added in a loop, in the same order."""

    def total(terms: int) -> harp.JitFunction:
        return harp.jit(lambda x: (x * 1.5).sum(axis=0), signature=(harp.f64[terms, "n"],))

    x = np.random.default_rng(0).standard_normal((terms, 100))
    taller = np.concatenate([x, np.zeros((20, 100))])
    np.testing.assert_array_equal(np.asarray(total(terms)(x)), np.asarray(total(terms + 20)(taller)))


def test_which_reductions_are_written_out() -> None:
    def loops(function, *signature) -> str:
        arrays = (np.ones([n if isinstance(n, int) else 9 for n in s.shape], s.dtype.numpy) for s in signature)
        return harp.jit(function, signature=signature).lower(*arrays).loops

    few = loops(lambda x: x.sum(axis=0), harp.f64[4, "n"])
    assert "local" not in few and few.count("for") == 2, "strips of a loop along memory"
    assert "local" in loops(lambda x: x.sum(axis=0), harp.f64[40, "n"]), "there are many terms"
    assert "local" in loops(lambda x: x.sum(axis=0), harp.f64["m", "n"]), "nobody knows how many"
    twice = loops(lambda x: hnp.repeat(x, 2).reshape(-1, 2).sum(1), harp.f64["n"])
    assert "local" not in twice


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
