"""Images of another size: each element a weighted sum of those near its place, along one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Callable

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import arange
from harp.numpy.elementwise import logical_and, maximum, sin, where
from harp.numpy.indexing import take
from harp.numpy.linalg.products import tensordot
from harp.numpy.manipulation import moveaxis
from harp.numpy.reductions import sum as sum_of
from harp.trace.array.arithmetic import absolute, divide, less, multiply, subtract
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, to_shape
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import f32, f64, real_of
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve, wrap
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place


def _triangle(x: Array) -> Array:
    return maximum(0, 1 - x)


def _cubic(x: Array) -> Array:
    """R. G. Keys, Cubic convolution interpolation for digital image processing, 1981, with a = -1/2."""
    inner, outer = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return where(less(x, 1), inner, where(less(x, 2), outer, 0))


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        apart = where(less(1e-3, x), x, 1)
        wave = radius * sin(math.pi * apart) * sin(math.pi * apart / radius) / (math.pi * apart) ** 2
        return where(less(radius, x), 0, where(less(1e-3, x), wave, 1))

    return kernel


_KERNELS: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def resize(image: object, shape: object, method: str, antialias: bool = True, precision: object = None) -> Array:
    """The image in another shape: axes that keep their size are left alone.

    `method` is "nearest", "linear" (also "bilinear"), "cubic" ("bicubic", of Keys), "lanczos3" or "lanczos5". An
    element stands for the middle of its part of the axis. Where the image gets smaller, and with `antialias`, the
    weights reach as much further; beyond the edge there are none, and the others are scaled to the sum 1.
    Integers give float64, except by "nearest"; `precision` changes nothing.

    Raises ShapeError for another number of axes, ArgumentError for other methods.

    >>> import harp.numpy as hnp
    >>> resize(hnp.asarray([0.0, 4.0]), (4,), "linear")
    Array([0., 1., 3., 4.])
    """
    array, wanted = as_array(image), to_shape(shape)
    if len(wanted) != array.ndim:
        raise ShapeError(f"resize to {plural(len(wanted), 'axes')} of an image of {array.ndim}{place()}")
    kernel = _KERNELS.get(method) if isinstance(method, str) else None
    if kernel is None and method != "nearest":
        raise ArgumentError(f"method of resize is 'nearest' or one of {', '.join(_KERNELS)}, not {method!r}{place()}")
    array = array if kernel is None or array.kind.is_inexact else array.astype(f64)
    for axis, size in enumerate(wanted):
        old = resolve(node_of(array).shape[axis])
        if old is size or ask(Relation.ZERO, size - old, "an axis keeps its size"):
            continue
        if kernel is None:
            array = take(array, _nearest(old, size), axis)
        else:
            weights = _weights(kernel, old, size, antialias, array)
            array = moveaxis(tensordot(array, weights, ([axis], [0])), -1, axis)
    return array


def _nearest(old: Index, new: Index) -> Array:
    """The element in whose part of the axis the middle of each new one lies."""
    return multiply(2 * arange(wrap(new)) + 1, wrap(old)) // (2 * arange(1, 2) * wrap(new))


def _weights(kernel: Callable[[Array], Array], old: Index, new: Index, antialias: bool, image: Array) -> Array:
    """A column of weights for each new element, as JAX has them."""
    dtype = f64 if real_of(image.kind) is f64 else f32
    sizes = as_array(wrap(old)).astype(dtype), as_array(wrap(new)).astype(dtype)
    step = divide(*sizes)
    middle = subtract(multiply(arange(wrap(new), dtype=dtype) + 0.5, step), 0.5)
    distance = absolute(subtract(middle[None], arange(wrap(old), dtype=dtype)[:, None]))
    weights = kernel(divide(distance, maximum(step, 1)) if antialias else distance)
    total = sum_of(weights, 0, keepdims=True)
    counts = less(1000 * 2.0**-23, absolute(total))
    scaled = where(counts, divide(weights, where(counts, total, 1)), 0)
    inside = logical_and(less(-0.5, middle + 1e-30), less(middle, sizes[0] - 0.5))
    return where(inside, scaled, 0).astype(image.kind)
