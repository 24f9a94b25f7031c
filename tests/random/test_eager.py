"""Outside of a trace numbers are computed in chunks, with the bits of whole arrays."""

import blocks
import numpy as np
import numpy.testing as npt
import pytest

import harp
from harp.random import bits, eager, fold_in, gamma, key, normal, randint, split, uniform
from harp.trace.eval import interpret

K = key(8)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(eager, "CHUNK", 32)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 31, 32, 33, 100])
def test_chunks_meet(count, small_chunks):
    high, _ = blocks.words(K, count)
    npt.assert_array_equal(bits(K, count), high)
    npt.assert_array_equal(uniform(K, (count, 1), "float32").ravel(), (high >> 8).astype(np.float32) * 2.0**-24)
    npt.assert_array_equal(split(K, count).shape, (count, 2))
    bounds = np.arange(count) - 50
    npt.assert_array_equal(randint(K, count, bounds, bounds + 1), bounds)


def test_chunks_of_attempts_meet(monkeypatch):
    a = np.linspace(0.1, 5, 30).reshape(5, 6)
    whole = np.asarray(gamma(K, a)), np.asarray(gamma(K, 2.0, (5, 6)))
    monkeypatch.setattr(eager, "CHUNK", 32)
    npt.assert_allclose(gamma(K, a), whole[0], rtol=1e-14)
    npt.assert_allclose(gamma(K, 2.0, (5, 6)), whole[1], rtol=1e-14)


def test_it_is_what_the_interpreter_gives():
    """The graph of the same draw, node by node."""
    for draw in (bits, uniform, normal, lambda k, n: gamma(k, 1.5, n), lambda k, n: split(fold_in(k, 3), n)):
        graph = harp.trace(lambda k, x, draw=draw: draw(k, x.shape[0]), harp.u32[2], harp.f64["n"])
        (size,) = graph.inputs[1].shape
        arrays = [np.asarray(K), np.zeros(70)]
        (result,) = interpret.interpret(graph, arrays, {size.atom: 70})
        npt.assert_allclose(draw(K, 70), result, rtol=1e-13, atol=1e-14)


def test_no_expression_is_built_twice():
    normal(K, 3)
    before = eager._expression.cache_info()
    for n in (1, 7, 100):
        normal(K, n)
    after = eager._expression.cache_info()
    assert (after.hits, after.misses) == (before.hits + 3, before.misses)
