"""What stands between layers: normalisations, each (x - mean)/sqrt(variance + epsilon) over some axes, times a weight,
plus a bias; and dropout. Floats of 16 bits are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.nn.activations import standardize
from harp.numpy.elementwise import rsqrt, square, where
from harp.numpy.manipulation import reshape
from harp.numpy.reductions import mean as mean_of
from harp.numpy.reductions import var
from harp.random.uniform import bernoulli
from harp.trace.array.arithmetic import less
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_flag, normalize_axes
from harp.trace.scalar.dtypes import DType, computing, inexact
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.grad import stop_gradient


def layer_norm(
    x: object, weight: object = None, bias: object = None, *, axis: Any = -1, epsilon: object = 1e-5
) -> Array:
    """The elements over axes, of mean 0 and variance 1, times `weight` plus `bias`, which broadcast to x.

    J. Ba, J. Kiros, G. Hinton, Layer normalization, 2016. Raises DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> layer_norm(hnp.asarray([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.])
    """
    array, dtype = _floats("layer_norm", x)
    return _scaled(standardize(array, axis, epsilon=epsilon), weight, bias).astype(dtype)


def rms_norm(x: object, weight: object = None, *, axis: Any = -1, epsilon: object = 1e-6) -> Array:
    """The elements over axes by the root of their mean square, times `weight`, which broadcasts to x.

    B. Zhang, R. Sennrich, Root mean square layer normalization, 2019. Raises DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> rms_norm(hnp.asarray([2.0, -2.0]), epsilon=0.0)
    Array([ 1., -1.])
    """
    array, dtype = _floats("rms_norm", x)
    size = mean_of(square(array), axis, keepdims=True)
    return _scaled(array * rsqrt(size + epsilon), weight, None).astype(dtype)


def batch_norm(
    x: object,
    mean: object,
    variance: object,
    weight: object = None,
    bias: object = None,
    *,
    training: bool = False,
    momentum: object = 0.1,
    epsilon: object = 1e-5,
    channels_last: bool = False,
) -> tuple[Array, tuple[Array, Array]]:
    """Each channel of (batch, channels, ...) normalised, times `weight` plus `bias`; and the running mean and variance.

    In `training` by the mean and the variance of the batch, and what runs moves towards these by `momentum` of the
    distance, the variance times n/(n - 1) of n elements, as in PyTorch; no derivative flows through that. Else by what
    runs, which stays. All four are one number for each channel. S. Ioffe, C. Szegedy, Batch normalization, 2015.

    Raises ShapeError for fewer than two axes, DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> y, (mean, variance) = batch_norm(hnp.asarray([[1.0], [3.0]]), hnp.zeros(1), hnp.ones(1), training=True)
    >>> mean, variance
    (Array([0.2]), Array([1.1]))
    """
    array, dtype = _floats("batch_norm", x)
    axis, shape = _channels("batch_norm", array, channels_last)
    running, spread = as_array(mean), as_array(variance)
    found = _per_channel(running, shape), _per_channel(spread, shape)
    if as_flag("training", training):
        others = tuple(k for k in range(array.ndim) if k != axis)
        found = mean_of(array, others, keepdims=True), var(array, others, keepdims=True)
        count: Any = math.prod(array.shape[k] for k in others)
        now, wide = (stop_gradient(reshape(part, (-1,))) for part in found)
        wide = wide * (count / where(less(1, as_array(count)), count - 1, 1))
        pairs = (running, now), (spread, wide)
        running, spread = ((old + momentum * (new - old)).astype(old.kind) for old, new in pairs)
    made = standardize(array, axis, found[0], found[1], epsilon)
    return _scaled(made, _per_channel(weight, shape), _per_channel(bias, shape)).astype(dtype), (running, spread)


def group_norm(
    x: object,
    groups: object,
    weight: object = None,
    bias: object = None,
    *,
    epsilon: object = 1e-5,
    channels_last: bool = False,
) -> Array:
    """Each of `groups` groups of channels of (batch, channels, ...) normalised, times a `weight` for each channel plus
    a `bias`. Y. Wu, K. He, Group normalization, 2018.

    Raises ShapeError for fewer than two axes, or channels that are no multiple of the groups, DTypeError for complex
    numbers.

    >>> import harp.numpy as hnp
    >>> group_norm(hnp.asarray([[1.0, 3.0, 5.0, 5.0]]), 2, epsilon=1e-12)
    Array([[-1.,  1.,  0.,  0.]])
    """
    array, dtype = _floats("group_norm", x)
    axis, shape = _channels("group_norm", array, channels_last)
    count: Any = groups
    sizes = array.shape
    if sizes[axis] % count != 0:
        raise ShapeError(f"group_norm: {sizes[axis]} channels are no multiple of {count} groups{place()}")
    split = reshape(array, (*sizes[:axis], count, sizes[axis] // count, *sizes[axis + 1 :]))
    within = tuple(k for k in range(1, split.ndim) if k != axis)
    made = reshape(standardize(split, within, epsilon=epsilon), sizes)
    return _scaled(made, _per_channel(weight, shape), _per_channel(bias, shape)).astype(dtype)


def instance_norm(
    x: object, weight: object = None, bias: object = None, *, epsilon: object = 1e-5, channels_last: bool = False
) -> Array:
    """Each channel of each example of (batch, channels, ...) normalised, times a `weight` for each plus a `bias`.

    D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance normalization, 2016. Raises ShapeError for fewer than three axes,
    DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> instance_norm(hnp.asarray([[[1.0, 3.0], [4.0, 4.0]]]), epsilon=1e-12)
    Array([[[-1.,  1.],
            [ 0.,  0.]]])
    """
    array, dtype = _floats("instance_norm", x)
    axis, shape = _channels("instance_norm", array, channels_last, least=3)
    others = tuple(k for k in range(1, array.ndim) if k != axis)
    made = standardize(array, others, epsilon=epsilon)
    return _scaled(made, _per_channel(weight, shape), _per_channel(bias, shape)).astype(dtype)


def dropout(
    key: object, x: object, rate: object, *, training: bool = True, broadcast_axes: int | Sequence[int] = ()
) -> Array:
    """x with each element 0 at a probability `rate`, and else divided by 1 - rate; x itself if not in `training`.

    Along `broadcast_axes` all elements share their fate, as all of a channel. N. Srivastava and others, Dropout, 2014.
    Raises ArgumentError for a rate that is known, and not from 0 to 1.

    >>> import harp, harp.numpy as hnp
    >>> y = dropout(harp.random.key(0), hnp.ones(1000), 0.5)
    >>> float(y.min()), float(y.max())
    (0.0, 2.0)
    """
    array, dtype = _floats("dropout", x)
    if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
        raise ArgumentError(f"rate of dropout is a probability, from 0 to 1, not {rate}{place()}")
    if not as_flag("training", training):
        return array.astype(dtype)
    shared = normalize_axes(broadcast_axes, array.ndim)
    shape = tuple(1 if k in shared else size for k, size in enumerate(array.shape))
    left = 1 - as_array(rate).astype(array.kind)
    kept = bernoulli(key, left, shape)
    return where(kept, array / where(less(0, left), left, 1), 0).astype(dtype)


def _floats(name: str, x: object) -> tuple[Array, DType]:
    """The array in the dtype to compute in, and the dtype of the result."""
    array = as_array(x)
    if array.kind.is_complex:
        raise DTypeError(f"{name} takes real numbers, not {array.dtype}{place()}")
    dtype = inexact(array.kind)
    return array.astype(computing(dtype)), dtype


def _scaled(array: Array, weight: Any, bias: Any) -> Array:
    """The array times a weight plus a bias, in its own dtype."""
    array = array if weight is None else array * as_array(weight).astype(array.kind)
    return array if bias is None else array + as_array(bias).astype(array.kind)


def _channels(name: str, array: Array, channels_last: bool, least: int = 2) -> tuple[int, tuple[int, ...]]:
    """The axis of channels, and the shape of what there is one of for each channel."""
    if array.ndim < least:
        raise ShapeError(
            f"{name} takes (batch, channels, ...), {plural(least, 'axes')} or more, not {array.ndim}{place()}"
        )
    axis = array.ndim - 1 if as_flag("channels_last", channels_last) else 1
    return axis, tuple(-1 if k == axis else 1 for k in range(array.ndim))


def _per_channel(value: object, shape: tuple[int, ...]) -> Any:
    return None if value is None else reshape(as_array(value), shape)
