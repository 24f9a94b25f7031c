"""Sums, products and extrema over windows beside one window after the other by NumPy, with gradients."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.trace.graph.node import Scatter
from tests.lax.windows import pooled, same

RNG = np.random.default_rng(0)
MONOIDS = {
    "max": (lax.max, -np.inf, np.maximum),
    "min": (lambda a, b: hnp.minimum(a, b), np.inf, np.minimum),
    "add": (lax.add, 0.0, np.add),
    "mul": (lambda a, b: a * b, 1.0, np.multiply),
    "add from 0.5": (lax.add, 0.5, np.add),
}
WINDOWS = [
    ((1, 3, 2), (1, 2, 1), [(0, 0), (1, 1), (0, 1)], None, (1, 1, 2)),
    ((2, 2, 2), (1, 1, 3), [(1, 0), (0, -1), (2, 0)], (1, 2, 1), None),
]


@pytest.mark.parametrize("options", WINDOWS, ids=["dilated windows", "dilated array"])
@pytest.mark.parametrize("name", MONOIDS)
def test_reductions_and_their_derivatives(name, options):
    computation, start, function = MONOIDS[name]
    window, strides, pads, bases, dilations = options
    x = RNG.normal(size=(2, 5, 6))

    def f(x):
        return lax.reduce_window(x, start, computation, window, strides, pads, bases, dilations)

    def expected(x):
        return pooled(function, start, x, window, strides, pads, bases, dilations)

    result, compiled = expected(x), harp.jit(f)
    npt.assert_allclose(f(x), result, rtol=1e-12)
    npt.assert_allclose(compiled(x), result, rtol=1e-12)
    other = RNG.normal(size=(3, 7, 4))
    npt.assert_allclose(compiled(other), expected(other), rtol=1e-12)
    assert compiled.compilations == 1
    npt.assert_allclose(harp.vmap(f)(np.stack([x, -x])), np.stack([result, expected(-x)]), rtol=1e-12)
    weights, direction = np.where(np.isfinite(result), RNG.normal(size=result.shape), 0), RNG.normal(size=x.shape)

    def loss(x):
        return hnp.sum(weights * hnp.sin(hnp.where(np.isfinite(result), f(x), 0)))

    def reference(step):
        moved = expected(x + step * direction)
        return np.sum(weights * np.sin(np.where(np.isfinite(result), moved, 0)))

    gradient = harp.jit(harp.grad(loss))
    npt.assert_allclose(np.sum(np.asarray(gradient(x)) * direction), (reference(1e-6) - reference(-1e-6)) / 2e-6, 1e-6)
    _, tangent = harp.jvp(loss, (x,), (direction,))
    npt.assert_allclose(tangent, np.sum(np.asarray(gradient(x)) * direction), rtol=1e-9)
    twice = harp.grad(lambda x: hnp.sum(direction * harp.grad(loss)(x)))(x)
    ends = [np.asarray(gradient(x + h * direction)) for h in (1e-5, -1e-5)]
    npt.assert_allclose(twice, (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-4)
    graph = harp.trace(harp.grad(loss), harp.f64[2, 5, 6])
    assert not any(isinstance(node, Scatter) for node in graph.nodes())


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID"])
def test_named_padding(padding):
    x = RNG.normal(size=(7,))
    pads = [(0, 0)] if padding == "VALID" else same((7,), (4,), (2,), lower="LOWER" in padding)
    found = lax.reduce_window(x, 0.0, lax.add, (4,), (2,), padding)
    npt.assert_allclose(found, pooled(np.add, 0.0, x, (4,), (2,), pads), rtol=1e-12)


def test_the_gradient_goes_to_the_first_of_several_largest():
    def slopes(x):
        return harp.grad(lambda x: hnp.sum(lax.reduce_window(x, -np.inf, lax.max, (3,))))(x)

    npt.assert_array_equal(slopes(np.array([1.0, 1, 1, 0, 1, 1])), [1, 1, 1, 0, 1, 0])
    npt.assert_array_equal(slopes(np.array([2.0, np.nan, 1, np.nan])), [0, 2, 0, 0])


def test_a_start_that_is_computed():
    f = harp.jit(lambda x, start: lax.reduce_window(x, start, lax.add, (3,), (2,), [(1, 2)], (2,)))
    x = RNG.normal(size=5)
    npt.assert_allclose(f(x, 2.5), pooled(np.add, 2.5, x, (3,), (2,), [(1, 2)], (2,)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float16", "float32", "bool"])
def test_dtypes(dtype):
    x = RNG.integers(0, 3, (5, 6)).astype(dtype)
    least = np.iinfo(dtype).min if x.dtype.kind in "iu" else (False if dtype == "bool" else -np.inf)
    computation = lax.bitwise_or if dtype == "bool" else lax.max
    for f in (lax.reduce_window, harp.jit(lambda x, *o: lax.reduce_window(x, least, computation, (2, 3)))):
        found = f(x, least, computation, (2, 3)) if f is lax.reduce_window else f(x)
        assert found.dtype == dtype
        npt.assert_array_equal(found, pooled(np.maximum, least, x, (2, 3), (1, 1), [(0, 0)] * 2))


def test_other_functions_take_one_element_of_each_window_after_the_other():
    x = np.arange(12.0).reshape(3, 4)
    expected = np.ones((2, 4))
    for place in np.ndindex(2, 3):
        behind = np.pad(x, [(0, 0), (1, 1)], constant_values=1.0)[place[0] :, place[1] :]
        expected = expected * 2 + behind[:2, :4]
    f = lambda x: lax.reduce_window(x, 1.0, lambda a, b: a * 2 + b, (2, 3), padding=[(0, 0), (1, 1)])
    npt.assert_array_equal(f(x), expected)
    npt.assert_array_equal(harp.jit(f)(x), expected)


def test_errors():
    with pytest.raises(ArgumentError, match="computation of reduce_window"):
        harp.jit(lambda x, w: lax.reduce_window(x, 0.0, lambda a, b: a - b, w.shape))(np.ones(3), np.ones(2))
    with pytest.raises(ShapeError, match="1 size for 2 axes"):
        lax.reduce_window(np.ones((3, 3)), 0.0, lax.add, (2,))
    with pytest.raises(ArgumentError, match="init_value"):
        lax.reduce_window(np.ones(3), np.ones(2), lax.add, (2,))
    with pytest.raises(DTypeError, match=r"0\.5 is not a number of int64"):
        lax.reduce_window(np.arange(3), 0.5, lax.add, (2,))
