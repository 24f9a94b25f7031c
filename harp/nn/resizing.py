"""Images of another size: each element a weighted sum of those near its place, along one axis after the other."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import arange
from harp.numpy.elementwise import logical_and, maximum, sin, where
from harp.numpy.indexing import take
from harp.numpy.linalg.products import tensordot
from harp.numpy.manipulation import moveaxis
from harp.numpy.reductions import sum as sum_of
from harp.trace.array.arithmetic import absolute, divide, greater_equal, less, multiply, subtract
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, normalize_axes, normalize_axis, to_shape
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, f32, f64, real_of
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve, to_index, unify, wrap
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


class ResizeMethod(enum.StrEnum):
    """The names of the methods of `resize`, as in JAX.

    >>> ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 'linear'>
    """

    NEAREST = "nearest"
    LINEAR = "linear"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    CUBIC = "cubic"

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method with one of its names. Raises ArgumentError for other names."""
        kernel = _kernel("ResizeMethod", s)
        return next(m for m in ResizeMethod if _KERNELS.get(m) is kernel)


def _kernel(name: str, method: str) -> Callable[[Array], Array] | None:
    """The weights by distance; None for the nearest element."""
    kernel = _KERNELS.get(method) if isinstance(method, str) else None
    if kernel is None and method != "nearest":
        raise ArgumentError(f"method of {name} is 'nearest' or one of {', '.join(_KERNELS)}, not {method!r}{place()}")
    return kernel


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
    kernel = _kernel("resize", method)
    array = array if kernel is None or array.kind.is_inexact else array.astype(f64)
    for axis, size in enumerate(wanted):
        old = resolve(node_of(array).shape[axis])
        if old is size or ask(Relation.ZERO, size - old, "an axis keeps its size"):
            continue
        if kernel is None:
            array = take(array, _nearest(old, size), axis)
        else:
            step = divide(*(as_array(wrap(n)).astype(_real(array)) for n in (old, size)))
            array = _weighted(array, axis, size, kernel, step, as_array(0), antialias)
    return array


def scale_and_translate(
    image: object,
    shape: object,
    spatial_dims: Sequence[int],
    scale: object,
    translation: object,
    method: str,
    antialias: bool = True,
    precision: object = None,
) -> Array:
    """The image at `scale * x + translation` along the axes `spatial_dims`, in another shape; 0 beyond the image.

    `scale` and `translation` are vectors with a number for each of these axes; translations are in elements. The rest
    is as in `resize`, without the method "nearest". Raises ArgumentError and ShapeError, AxisError for an axis twice.

    >>> import harp.numpy as hnp
    >>> image = hnp.asarray([0.0, 4.0, 8.0])
    >>> scale_and_translate(image, (3,), (0,), hnp.asarray([1.0]), hnp.asarray([1.0]), "linear")
    Array([0., 0., 4.])
    """
    array, wanted = as_array(image), to_shape(shape)
    kernel = _kernel("scale_and_translate", method)
    if kernel is None:
        raise ArgumentError(f"scale_and_translate has no method 'nearest': write 'linear'{place()}")
    if len(wanted) != array.ndim:
        raise ShapeError(f"scale_and_translate to {plural(len(wanted), 'axes')} of an image of {array.ndim}{place()}")
    array = array if array.kind.is_inexact else array.astype(f64)
    scales, shifts = as_array(scale).astype(_real(array)), as_array(translation).astype(_real(array))
    axes = [normalize_axis(d, array.ndim) for d in spatial_dims]
    normalize_axes(axes, array.ndim)  # none is named twice
    if any(v.ndim != 1 for v in (scales, shifts)):
        raise ShapeError(f"scale and translation of scale_and_translate are vectors{place()}")
    for v in (scales, shifts):
        unify(node_of(v).shape[0], to_index(len(axes)), lambda: "scale and translation have a number for each axis")
    for axis in {*range(array.ndim)}.difference(axes):
        unify(node_of(array).shape[axis], wanted[axis], lambda k=axis: f"axis {k} is not scaled")  # type: ignore[misc]
    for k, axis in enumerate(axes):
        array = _weighted(array, axis, wanted[axis], kernel, divide(1, scales[k]), shifts[k], antialias)
    return array


def _nearest(old: Index, new: Index) -> Array:
    """The element in whose part of the axis the middle of each new one lies."""
    return multiply(2 * arange(wrap(new)) + 1, wrap(old)) // (2 * arange(1, 2) * wrap(new))


def _real(image: Array) -> DType:
    return f64 if real_of(image.kind) is f64 else f32


def _weighted(
    image: Array,
    axis: int,
    new: Index,
    kernel: Callable[[Array], Array],
    step: Array,
    shift: Array,
    antialias: bool,
) -> Array:
    """The image with so many elements along an axis, `step` of the old ones apart and moved by `shift` of the new: each
    a sum by a column of weights, as JAX has them."""
    old, dtype = resolve(node_of(image).shape[axis]), _real(image)
    middle = subtract(multiply(subtract(arange(wrap(new), dtype=dtype) + 0.5, shift), step), 0.5)
    distance = absolute(subtract(middle[None], arange(wrap(old), dtype=dtype)[:, None]))
    weights = kernel(divide(distance, maximum(step, 1)) if antialias else distance)
    total = sum_of(weights, 0, keepdims=True)
    counts = less(1000 * 2.0**-23, absolute(total))
    scaled = where(counts, divide(weights, where(counts, total, 1)), 0)
    inside = logical_and(greater_equal(middle, -0.5), greater_equal(subtract(wrap(old), 0.5), middle))
    weights = where(inside, scaled, 0).astype(image.kind)
    return moveaxis(tensordot(image, weights, ([axis], [0])), -1, axis)
