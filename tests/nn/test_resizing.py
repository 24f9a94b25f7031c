"""Images of another size, by the formula for each element."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import ArgumentError, AxisError, ShapeError
from harp.jax import image

RNG = np.random.default_rng(0)


def sinc(x):
    return np.sinc(x)


KERNELS = {
    "linear": lambda x: max(0, 1 - x),
    "cubic": lambda x: (1.5 * x - 2.5) * x * x + 1 if x < 1 else ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0,
    "lanczos3": lambda x: sinc(x) * sinc(x / 3) if x <= 3 else 0,
    "lanczos5": lambda x: sinc(x) * sinc(x / 5) if x <= 5 else 0,
}


def row(x, size, method, antialias, scale=None, shift=0.0):
    """One row of another size; with a scale 0 beyond its ends."""
    n = len(x)
    step = n / size if scale is None else 1 / scale
    if method == "nearest":
        return np.array([x[int((i + 0.5) * n / size)] for i in range(size)])
    reach, out = max(step, 1) if antialias else 1, []
    for i in range(size):
        middle = (i + 0.5 - shift) * step - 0.5
        weights = np.array([KERNELS[method](abs(middle - j) / reach) for j in range(n)])
        out.append(weights @ x / weights.sum() if -0.5 <= middle <= n - 0.5 else 0.0)
    return np.array(out)


@pytest.mark.parametrize("method", ["nearest", *KERNELS])
@pytest.mark.parametrize("antialias", [True, False])
def test_each_element(method, antialias):
    x = RNG.normal(size=(5, 7))
    f = harp.jit(lambda x, like: nn.resize(x, like.shape, method, antialias))
    for shape in [(9, 4), (3, 14), (2, 2)]:
        rows = np.stack([row(r, shape[1], method, antialias) for r in x])
        expected = np.stack([row(c, shape[0], method, antialias) for c in rows.T], 1)
        npt.assert_allclose(nn.resize(x, shape, method, antialias), expected, rtol=1e-9, atol=1e-10)
        npt.assert_allclose(f(x, np.zeros(shape)), expected, rtol=1e-9, atol=1e-10)
    assert f.compilations == 1
    assert nn.resize(x, (5, 7), method) is not None and image.resize is nn.resize


@pytest.mark.parametrize("method", KERNELS)
@pytest.mark.parametrize("antialias", [True, False])
def test_scaled_and_translated(method, antialias):
    x = RNG.normal(size=(3, 7))
    move = lambda x, like, scale, shift: image.scale_and_translate(x, like.shape, (1,), scale, shift, method, antialias)
    f = harp.jit(move)
    for size, scale, shift in [(9, 1.3, 0.5), (5, 0.4, -0.25), (7, 1.0, 2.0), (1, 0.1, 0.0)]:
        expected = np.stack([row(r, size, method, antialias, scale, shift) for r in x])
        for compute in (move, f):
            result = compute(x, np.zeros((3, size)), np.array([scale]), np.array([shift]))
            npt.assert_allclose(result, expected, rtol=1e-9, atol=1e-10)
    assert f.compilations == 1
    both = image.scale_and_translate(x, (4, 5), (1, 0), np.array([0.6, 1.5]), np.array([0.1, 0.2]), method, antialias)
    once = image.scale_and_translate(x, (3, 5), (1,), np.array([0.6]), np.array([0.1]), method, antialias)
    npt.assert_allclose(both, np.stack([row(c, 4, method, antialias, 1.5, 0.2) for c in np.asarray(once).T], 1))


def test_gradients_by_scale_and_shift():
    x, place = RNG.normal(size=7), np.array([1.3, 0.35])
    f = lambda p: hnp.sum(image.scale_and_translate(x, (6,), (0,), p[:1], p[1:], "cubic") ** 2)
    for k in range(2):
        h = 1e-6 * np.eye(2)[k]
        npt.assert_allclose(harp.grad(f)(place)[k], (f(place + h) - f(place - h)) / 2e-6, rtol=1e-6)


def test_wrong_scales_and_names():
    with pytest.raises(ArgumentError, match="no method 'nearest'"):
        image.scale_and_translate(np.ones(3), (3,), (0,), np.ones(1), np.zeros(1), "nearest")
    with pytest.raises(ShapeError, match="2 axes of an image of 1"):
        image.scale_and_translate(np.ones(3), (3, 3), (0,), np.ones(1), np.zeros(1), "linear")
    for shape, axes, numbers in [((5, 7), (0, 1), 3), ((5, 7), (0, 1), 1), ((9, 7), (1,), 1)]:
        with pytest.raises(ShapeError):
            image.scale_and_translate(np.ones((5, 7)), shape, axes, np.ones(numbers), np.zeros(numbers), "linear")
    with pytest.raises(AxisError):
        image.scale_and_translate(np.ones((5, 7)), (5, 7), (1, 1), np.ones(2), np.zeros(2), "linear")
    assert image.ResizeMethod.from_string("nearest") is image.ResizeMethod.NEAREST
    with pytest.raises(ArgumentError, match="not 'area'"):
        image.ResizeMethod.from_string("area")


def test_gradients():
    x, u = RNG.normal(size=(2, 4, 5))
    for method in ("nearest", "bilinear", "bicubic"):
        slope = harp.grad(lambda x, m=method: hnp.sum(hnp.sin(nn.resize(x, (7, 3), m))))
        ends = [np.sum(np.sin(np.asarray(nn.resize(x + h * u, (7, 3), method)))) for h in (1e-6, -1e-6)]
        npt.assert_allclose(np.sum(np.asarray(slope(x)) * u), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_dtypes():
    for dtype in ("float16", "float32", "complex64"):
        assert nn.resize(np.ones(4, dtype), (3,), "linear").dtype == dtype
    assert nn.resize(np.ones(4, "int8"), (3,), "linear").dtype == "float64"
    assert nn.resize(np.ones(4, "int8"), (3,), "nearest").dtype == "int8"


def test_errors():
    with pytest.raises(ShapeError, match="resize to 1 axis of an image of 2"):
        nn.resize(np.ones((3, 3)), (3,), "linear")
    with pytest.raises(ArgumentError, match="method of resize"):
        nn.resize(np.ones(3), (5,), "quintic")
