"""Convolutions and pools of networks, in any number of dimensions: sums and extrema over windows, which are views.

An array has axes of the batch, of channels and of space, or with `channels_last` channels behind space. How many axes
of space there are, the kernel or the window says.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from harp.errors import ShapeError
from harp.lax.convolution import ConvDimensionNumbers, conv_general_dilated, transposed_padding
from harp.numpy.creation import arange, ones
from harp.numpy.elementwise import less_equal, logical_and, where
from harp.numpy.manipulation import expand_dims, flip, moveaxis, reshape, shape_of, squeeze, swapaxes
from harp.numpy.padding import pad
from harp.numpy.reductions import in_dtype
from harp.numpy.reductions import max as max_of
from harp.numpy.reductions import mean as mean_of
from harp.numpy.reductions import sum as sum_of
from harp.numpy.sliding import Padding, Plan, each_of, pairs_of, plan, pooled, spread
from harp.trace.array.arithmetic import divide, less, multiply
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_tuple, emit, expand_to, to_shape
from harp.trace.graph.node import View, fresh_input
from harp.trace.index.polynomial import Shape
from harp.trace.scalar.dtypes import computing, real_of
from harp.trace.scalar.expr import const
from harp.trace.scalar.ops import Reduce
from harp.trace.sizes.size import resolve, resolve_all, unify, wrap
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.view_rules import view_adjoint


def conv(
    x: object,
    kernel: object,
    stride: object = 1,
    padding: Padding = "valid",
    dilation: object = 1,
    groups: object = 1,
    *,
    channels_last: bool = False,
) -> Array:
    """The sums over channels and windows of products with a kernel: of x[c, stride*y + dilation*i] * kernel[o, c, i].

    The kernel has axes of output channels, of the channels of a group, and of space; with `channels_last` of space, of
    channels, of output channels. The batch's axis may be missing. `stride` and `dilation` are one number or one for
    each axis of space; `padding` is one, one for each, a pair (before, behind) for each, "valid" (nothing), "same" (as
    many outputs as elements, over the stride), or "circular" (the same, of an array whose ends meet). With as many
    groups as channels it is depthwise.

    Raises ShapeError for sizes that do not fit, ArgumentError for other options.

    >>> import harp.numpy as hnp
    >>> conv(hnp.ones((8, 3, 28, 28)), hnp.ones((16, 3, 5, 5)), stride=2, padding="same").shape
    (8, 16, 14, 14)
    """
    array, weights, numbers, single = _operands("conv", x, kernel, channels_last)
    if isinstance(padding, str) and padding.lower() == "circular":
        axes = [*numbers.lhs_spec[2:]]
        sizes = [node_of(weights).shape[axis] for axis in range(2, weights.ndim)]
        around = plan(shape_of(array), axes, sizes, stride, "same", dilation).windows
        widths: list[Any] = [(0, 0)] * array.ndim
        for axis, window in zip(axes, around, strict=True):
            widths[axis] = wrap(window.low), wrap(window.high)
        array, padding = pad(array, widths, mode="wrap"), "valid"
    result = conv_general_dilated(array, weights, stride, padding, None, dilation, numbers, groups)
    return squeeze(result, 0) if single else result


def conv_transpose(
    x: object,
    kernel: object,
    stride: object = 1,
    padding: Padding = 0,
    output_padding: object = 0,
    dilation: object = 1,
    groups: object = 1,
    *,
    channels_last: bool = False,
) -> Array:
    """The gradient of `conv` with this kernel and these options by its array, where `x` is the cotangent.

    So the kernel's output channels are the channels of `x`. With a stride several sizes have the same size of `conv`:
    this makes the least, and `output_padding`, which is below the stride, adds to it. With padding "same" the result
    is `stride` times as large as `x`.

    Raises ShapeError for sizes that do not fit, ArgumentError for other options.

    >>> import harp.numpy as hnp
    >>> conv_transpose(hnp.ones((8, 16, 14, 14)), hnp.ones((16, 3, 5, 5)), stride=2, padding="same").shape
    (8, 3, 28, 28)
    """
    array, weights, numbers, single = _operands("conv_transpose", x, kernel, channels_last)
    rank = array.ndim - 2
    steps, apart, more = (
        each_of(name, given, rank, least)
        for name, given, least in (
            ("stride", stride, 1),
            ("dilation", dilation, 1),
            ("output_padding", output_padding, 0),
        )
    )
    covered = [spread(resolve(n), d) for n, d in zip(node_of(weights).shape[2:], apart, strict=True)]
    if isinstance(padding, str):
        pairs = [transposed_padding(k, s, padding) for k, s in zip(covered, steps, strict=True)]
    else:
        given = zip(covered, pairs_of(padding, rank), strict=True)
        pairs = [(k - 1 - low, k - 1 - high) for k, (low, high) in given]
    count = as_tuple(groups)[0]
    by_group = reshape(weights, (count, -1, *weights.shape[1:]))
    turned = swapaxes(flip(by_group, tuple(range(3, rank + 3))), 1, 2)
    turned = reshape(turned, (turned.shape[0] * turned.shape[1], *turned.shape[2:]))
    widths = [(wrap(low), wrap(high + extra)) for (low, high), extra in zip(pairs, more, strict=True)]
    result = conv_general_dilated(array, turned, 1, widths, [wrap(s) for s in steps], dilation, numbers, groups)
    return squeeze(result, 0) if single else result


def _operands(
    name: str, x: object, kernel: object, channels_last: bool
) -> tuple[Array, Array, ConvDimensionNumbers, bool]:
    """The array with a batch, the kernel as output channels, channels, space, which axis is which, and whether no
    batch was there."""
    array, weights = as_array(x), as_array(kernel)
    rank = weights.ndim
    if array.ndim not in (rank, rank - 1) or rank < 2:
        raise ShapeError(
            f"{name} takes an array with as many axes as the kernel, or one less, not {array.ndim} for "
            f"{plural(rank, 'axes')}{place()}"
        )
    single = array.ndim < rank
    array = expand_dims(array, 0) if single else array
    spec = (0, rank - 1, *range(1, rank - 1)) if channels_last else tuple(range(rank))
    if channels_last:
        weights = moveaxis(weights, (-1, -2), (0, 1))
    return array, weights, ConvDimensionNumbers(spec, tuple(range(rank)), spec), single


# --- pools


def max_pool(
    x: object,
    window: object,
    stride: object = None,
    padding: Padding = "valid",
    dilation: object = 1,
    *,
    channels_last: bool = False,
) -> Array:
    """The largest element of each window along the last axes, or with `channels_last` those before the last one.

    `window` is a size for each axis of space. `stride` is that of the window if it is not given. What padding adds is
    never the largest. The gradient goes to the first of several largest elements.

    Raises ShapeError for other numbers of sizes, ArgumentError for other padding.

    >>> import harp.numpy as hnp
    >>> max_pool(hnp.asarray([3.0, 1.0, 2.0, 5.0]), (2,))
    Array([3., 5.])
    """
    return _pool("max_pool", Reduce.MAX, x, window, stride, padding, dilation, channels_last)[0]


def min_pool(
    x: object,
    window: object,
    stride: object = None,
    padding: Padding = "valid",
    dilation: object = 1,
    *,
    channels_last: bool = False,
) -> Array:
    """The smallest element of each window; the arguments are those of `max_pool`.

    >>> import harp.numpy as hnp
    >>> min_pool(hnp.asarray([3.0, 1.0, 2.0, 5.0]), (2,))
    Array([1., 2.])
    """
    return _pool("min_pool", Reduce.MIN, x, window, stride, padding, dilation, channels_last)[0]


def avg_pool(
    x: object,
    window: object,
    stride: object = None,
    padding: Padding = "valid",
    dilation: object = 1,
    *,
    count_include_pad: bool = True,
    channels_last: bool = False,
) -> Array:
    """The mean of each window; the arguments are those of `max_pool`.

    What padding adds is 0, and counts unless `count_include_pad` is False: then it is the mean of the elements that are
    there. Integers give float64.

    >>> import harp.numpy as hnp
    >>> avg_pool(hnp.asarray([3.0, 1.0, 2.0]), (2,), 1, "same", count_include_pad=False)
    Array([2. , 1.5, 2. ])
    """
    given = as_array(x)
    given = given if given.kind.is_inexact else given.astype("float64")
    array = in_dtype(given, computing(given.kind))  # a sum in float16 would overflow
    total, windows = _pool("avg_pool", Reduce.SUM, array, window, stride, padding, dilation, channels_last)
    for axis, w in zip(windows.axes, windows.windows, strict=True):
        count: object = wrap(w.size)
        if not count_include_pad:
            there = ones((array.shape[axis],), dtype=real_of(array.kind))
            count = pooled(there, Plan((0,), (w,)), Reduce.SUM, const(0, there.kind))
            count = reshape(count, [-1 if k == axis else 1 for k in range(array.ndim)])
        total = divide(total, count)
    return in_dtype(total, given.kind)


def _pool(
    name: str,
    reduce: Reduce,
    x: object,
    window: object,
    stride: object,
    padding: Padding,
    dilation: object,
    channels_last: bool,
) -> tuple[Array, Plan]:
    array, count = as_array(x), len(as_tuple(window))
    sizes = each_of(f"the window of {name}", window, count, 1)
    axes = _space(name, array, count, channels_last)
    steps = [wrap(size) for size in sizes] if stride is None else stride
    windows = plan(shape_of(array), axes, sizes, steps, padding, dilation)
    return pooled(array, windows, reduce, const(reduce.identity(array.kind), array.kind)), windows


def _space(name: str, array: Array, count: int, channels_last: bool) -> list[int]:
    """The last axes, or those before the last one."""
    first = array.ndim - count - bool(channels_last)
    if first < 0:
        raise ShapeError(f"{name} over {plural(count, 'axes')} of an array of {array.ndim}{place()}")
    return list(range(first, first + count))


def global_max_pool(x: object, rank: int = 2, *, channels_last: bool = False) -> Array:
    """The largest element over all `rank` axes of space, which are left out.

    >>> import harp.numpy as hnp
    >>> global_max_pool(hnp.ones((8, 3, 5, 5))).shape
    (8, 3)
    """
    array = as_array(x)
    return max_of(array, tuple(_space("global_max_pool", array, rank, channels_last)))


def global_avg_pool(x: object, rank: int = 2, *, channels_last: bool = False) -> Array:
    """The mean over all `rank` axes of space, which are left out.

    >>> import harp.numpy as hnp
    >>> global_avg_pool(hnp.ones((8, 5, 5, 3)), channels_last=True).shape
    (8, 3)
    """
    array = as_array(x)
    return mean_of(array, tuple(_space("global_avg_pool", array, rank, channels_last)))


def adaptive_max_pool(x: object, output_size: object, *, channels_last: bool = False) -> Array:
    """The largest elements of so many windows along each axis as `output_size` says, which cover it evenly.

    Window i of m along n elements goes from i*n // m up to where the next one begins, rounded up, so windows may share
    an element. Several largest elements have equal shares of the gradient. Raises ShapeError for no elements.

    >>> import harp.numpy as hnp
    >>> adaptive_max_pool(hnp.asarray([3.0, 1.0, 2.0, 5.0, 4.0]), (2,))
    Array([3., 5.])
    """
    array = as_array(x)
    for axis, inside, _ in _evenly("adaptive_max_pool", array, output_size, channels_last):
        rows = moveaxis(array, axis, -1)[..., None, :]
        least = const(Reduce.MAX.identity(array.kind), array.kind).value
        array = moveaxis(max_of(where(inside, rows, least), -1), -1, axis)
    return array


def adaptive_avg_pool(x: object, output_size: object, *, channels_last: bool = False) -> Array:
    """The means of the windows of `adaptive_max_pool`.

    >>> import harp.numpy as hnp
    >>> adaptive_avg_pool(hnp.asarray([3.0, 1.0, 2.0, 5.0]), (2,))
    Array([2. , 3.5])
    """
    given = as_array(x)
    array = in_dtype(given, computing(given.kind))  # a sum in float16 would overflow
    for axis, inside, length in _evenly("adaptive_avg_pool", given, output_size, channels_last):
        rows = moveaxis(array, axis, -1)[..., None, :]
        array = moveaxis(divide(sum_of(where(inside, rows, 0), -1), length), -1, axis)
    return in_dtype(array, given.kind) if given.kind.is_inexact else array


def _evenly(name: str, array: Array, output_size: object, channels_last: bool) -> list[tuple[int, Array, Array]]:
    """For each axis of space, which elements are in which window, and how many."""
    counts = [wrap(size) for size in to_shape(output_size)]
    found = []
    for axis, count in zip(_space(name, array, len(counts), channels_last), counts, strict=True):
        size = array.shape[axis]
        window, element = arange(count)[:, None], arange(size)
        first, end = multiply(window, size) // count, -(multiply(window + 1, -size) // count)
        found.append((axis, logical_and(less_equal(first, element), less(element, end)), (end - first)[:, 0]))
    return found


# --- windows as arrays


def unfold(
    x: object,
    window: object,
    stride: object = 1,
    padding: Padding = "valid",
    dilation: object = 1,
    *,
    channels_last: bool = False,
) -> Array:
    """All windows along the last axes, or those before the last one: in place of these are the windows' numbers, and
    the axes of the windows' elements come last.

    What padding adds is 0. The arguments are those of `max_pool`, with a stride of 1.

    >>> import harp.numpy as hnp
    >>> unfold(hnp.asarray([1, 2, 3, 4, 5]), (3,), stride=2)
    Array([[1, 2, 3],
           [3, 4, 5]])
    """
    array, sizes = as_array(x), to_shape(window)
    axes = _space("unfold", array, len(sizes), channels_last)
    windows = plan(shape_of(array), axes, sizes, stride, padding, dilation)
    return emit(windows.view(node_of(array), const(0, array.kind)), array.weak)


def fold(
    windows: object,
    size: object,
    stride: object = 1,
    padding: Padding = "valid",
    dilation: object = 1,
    *,
    channels_last: bool = False,
) -> Array:
    """The array of this size along its axes of space, in which each element is the sum of the elements of windows that
    `unfold` takes from it: the adjoint of `unfold`.

    Each element adds up its own, so nothing is scattered. Raises ShapeError where `unfold` of such an array has not
    this shape.

    >>> import harp.numpy as hnp
    >>> fold(hnp.asarray([[1, 2, 3], [10, 20, 30]]), (4,))
    Array([ 1, 12, 23, 30])
    """
    array, sizes = as_array(windows), to_shape(size)
    count, rank = len(sizes), array.ndim - len(sizes)
    if rank < count + bool(channels_last):
        raise ShapeError(f"fold takes windows with two axes for each of {plural(count, 'axes')}{place()}")
    first = rank - count - bool(channels_last)
    axes = range(first, first + count)

    def planned() -> tuple[Shape, Plan]:
        shape = resolve_all(node_of(array).shape)
        image = (*shape[:first], *resolve_all(sizes), *shape[first + count : rank])
        return image, plan(image, axes, shape[rank:], stride, padding, dilation)

    image, found = planned()
    for axis, window in zip(axes, found.windows, strict=True):
        same = partial("fold, axis {} of the windows".format, axis)
        unify(window.count(image[axis]), node_of(array).shape[axis], same)
    image, found = planned()
    shown = found.view(fresh_input("image", image, array.kind), const(0, array.kind))
    return emit(view_adjoint(shown, expand_to(node_of(array), shown.shape))) if isinstance(shown, View) else array
