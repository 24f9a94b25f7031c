"""Convolutions under `jax.lax`'s names: sums over channels and windows of an array, in any number of dimensions.

A window is a view, and a convolution one map, reduced at once: nothing is copied that windows share, and derivatives
by both operands are views and sums again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harp.errors import ArgumentError, ShapeError
from harp.lax.products import in_wanted
from harp.numpy.checks import as_count
from harp.numpy.linalg.order import Labels
from harp.numpy.manipulation import expand_dims, flip, reshape, shape_of, swapaxes
from harp.numpy.sliding import Padding, correlate_windows, each_of, pairs_of, plan, spread
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_tuple
from harp.trace.index.division import ceildiv, floordiv, minimum, relu
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import DTypeLike
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, describe, hint, resolve, wrap
from harp.trace.source_locations import where


class ConvDimensionNumbers(NamedTuple):
    """Which axis is which: batch, features and space of the array; output and input features and space of the kernel;
    batch, features and space of the result.

    >>> ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 2, 1)).out_spec
    (0, 2, 1)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


def conv_dimension_numbers(
    lhs_shape: Sequence[object], rhs_shape: Sequence[object], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Which axis is which, of three texts such as `("NCHW", "OIHW", "NCHW")`; None is batch, features, space for all.

    Letters other than N, C, O, I name axes of space, in the order of the kernel's, as strides and pads are. Raises
    ArgumentError for others.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 5), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    rank = len(lhs_shape)
    if rank != len(rhs_shape) or rank < 2:
        raise ShapeError(
            f"a convolution takes an array and a kernel of as many axes, two or more, not {rank} and "
            f"{len(rhs_shape)}{where()}"
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise ArgumentError(f"dimension_numbers are three texts, not {dimension_numbers!r}{where()}")
    if isinstance(dimension_numbers, ConvDimensionNumbers) or not isinstance(dimension_numbers[0], str):
        found = ConvDimensionNumbers(*(tuple(spec) for spec in dimension_numbers))
        valid = all(sorted(spec) == list(range(rank)) for spec in found)
    else:
        space = [letter for letter in str(dimension_numbers[1]) if letter not in "OI"]
        orders = [[*"NC", *space], [*"OI", *space], [*"NC", *space]]
        valid = all(
            sorted(text) == sorted(order) and len({*text}) == rank
            for text, order in zip(dimension_numbers, orders, strict=True)
        )
        if valid:
            found = ConvDimensionNumbers(
                *(tuple(map(text.index, order)) for text, order in zip(dimension_numbers, orders, strict=True))
            )
    if not valid:
        raise ArgumentError(
            f"dimension_numbers name each of {rank} axes once, as ('NCHW', 'OIHW', 'NCHW') does, not "
            f"{dimension_numbers!r}{where()}"
        )
    return found


def conv_general_dilated(
    lhs: object,
    rhs: object,
    window_strides: object,
    padding: Padding,
    lhs_dilation: object = None,
    rhs_dilation: object = None,
    dimension_numbers: object = None,
    feature_group_count: object = 1,
    batch_group_count: object = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum over input features and windows of products with a kernel, in as many dimensions as there are.

    `lhs` has axes of the batch, of features and of space; `rhs` of output features, of input features and of space;
    `dimension_numbers` is as for `conv_dimension_numbers`. `window_strides` is a number for each axis of space;
    `padding` "VALID", "SAME", "SAME_LOWER", or a pair (before, behind) for each, also of negative numbers;
    `lhs_dilation` and `rhs_dilation` the distance between elements of the array, and of a window. With
    `feature_group_count` the features, or with `batch_group_count` the batch, and the output features are so many
    groups, which do not mix. `precision` changes nothing; `preferred_element_type` is the dtype of the result, and of
    the sum if it is the wider one. All may be sizes. Outside of the array are zeros, which are multiplied like others:
    infinities beside them give NaN. Zeros between elements are left out where `lhs_dilation` is a number; for that the
    kernel is filled up with zeros to a multiple of it.

    Raises ShapeError for sizes that do not fit, ArgumentError for other options.

    >>> import harp.numpy as hnp
    >>> conv_general_dilated(hnp.ones((1, 3, 8, 9)), hnp.ones((5, 3, 3, 3)), (1, 2), "SAME").shape
    (1, 5, 8, 5)
    """
    left, right, wanted = in_wanted(lhs, rhs, preferred_element_type)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    space = tuple(f"y{k}" for k in range(left.ndim - 2))
    of_left = _labelled(numbers.lhs_spec, ("n", "c", *space))
    of_right = _labelled(numbers.rhs_spec, ("o", "c", *(f"i{k}" for k in range(left.ndim - 2))))
    out = _labelled(numbers.out_spec, ("n", "o", *space))
    by_features, by_batch = (
        as_count(f"{name}_group_count", count, 1)
        for name, count in (("feature", feature_group_count), ("batch", batch_group_count))
    )
    if by_features is not ONE and by_batch is not ONE:
        raise ArgumentError(f"a convolution has feature_group_count or batch_group_count, not both{where()}")
    groups = by_batch if by_features is ONE else by_features
    if groups is not ONE:
        left, of_left = _in_groups(left, of_left, "c" if by_batch is ONE else "n", groups)
        right, of_right = _in_groups(right, of_right, "o", groups)
        place = out.index("o")
        out = (*out[:place], "g", *out[place:])
    if isinstance(padding, str) and lhs_dilation is not None and any(n != 1 for n in as_tuple(lhs_dilation)):
        raise ArgumentError(f"give padding by numbers where lhs_dilation is not 1, or use conv_transpose{where()}")
    axes = [of_left.index(name) for name in space]
    sizes = [node_of(right).shape[of_right.index(f"i{k}")] for k in range(len(space))]
    windows = plan(shape_of(left), axes, sizes, window_strides, padding, rhs_dilation, lhs_dilation)
    result = correlate_windows(left, right, windows, (of_left, of_right), out).astype(wanted)
    if groups is not ONE:
        shape: list[object] = [*result.shape]
        shape[place : place + 2] = [result.shape[place] * result.shape[place + 1]]
        result = reshape(result, shape)
    return result


def _labelled(spec: Sequence[int], names: Labels) -> Labels:
    """The names by axis."""
    return tuple(names[tuple(spec).index(axis)] for axis in range(len(names)))


def _in_groups(array: Array, labels: Labels, name: str, groups: Index) -> tuple[Array, Labels]:
    """An axis as two: of the groups, and of what is in each."""
    place = labels.index(name)
    size = resolve(node_of(array).shape[place])
    if hint(size) == hint(groups) and ask(Relation.ZERO, size - groups, "each feature is a group"):
        return expand_dims(array, place + 1), (*labels[:place], "g", *labels[place:])
    each = resolve(floordiv(size, groups))
    if not ask(Relation.ZERO, size - groups * each, "groups are of one size"):
        raise ShapeError(f"axis {place} of size {describe(size)} is not {describe(groups)} groups of one size{where()}")
    shape: list[object] = [*array.shape]
    shape[place : place + 1] = [wrap(groups), wrap(resolve(each))]
    return reshape(array, shape), (*labels[:place], "g", *labels[place:])


def conv(
    lhs: object,
    rhs: object,
    window_strides: object,
    padding: Padding,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv_general_dilated` of an array (batch, features, space...) and a kernel (output, input features, space...).

    >>> import harp.numpy as hnp
    >>> conv(hnp.ones((1, 3, 8)), hnp.ones((5, 3, 3)), (1,), "VALID").shape
    (1, 5, 6)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type)


def conv_with_general_padding(
    lhs: object,
    rhs: object,
    window_strides: object,
    padding: Padding,
    lhs_dilation: object,
    rhs_dilation: object,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv` with dilations.

    >>> import harp.numpy as hnp
    >>> conv_with_general_padding(hnp.ones((1, 3, 8)), hnp.ones((5, 3, 3)), (1,), [(1, 1)], None, (2,)).shape
    (1, 5, 6)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type=preferred_element_type
    )


def conv_transpose(
    lhs: object,
    rhs: object,
    strides: object,
    padding: Padding,
    rhs_dilation: object = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The convolution of an array with `strides - 1` zeros between its elements: a larger one, as the gradient of a
    convolution with these strides is.

    Without `dimension_numbers` the axes are batch, space, features, and of the kernel space, input, output features.
    `padding` is "SAME" or "VALID" of that convolution, or pairs of numbers: of this one, or with
    `use_consistent_padding` of that one. With `transpose_kernel` the kernel is that of the convolution, of which this
    is the gradient by its array.

    >>> import harp.numpy as hnp
    >>> conv_transpose(hnp.ones((1, 4, 3)), hnp.ones((3, 3, 5)), (2,), "SAME").shape
    (1, 8, 5)
    """
    left, kernel = as_array(lhs), as_array(rhs)
    rank = left.ndim
    if dimension_numbers is None:
        last = ConvDimensionNumbers
        space = tuple(range(1, rank - 1))
        dimension_numbers = last((0, rank - 1, *space), (rank - 1, rank - 2, *range(rank - 2)), (0, rank - 1, *space))
    numbers = conv_dimension_numbers(left.shape, kernel.shape, dimension_numbers)
    steps, apart = each_of("strides", strides, rank - 2, 1), each_of("rhs_dilation", rhs_dilation, rank - 2, 1)
    sizes = [node_of(kernel).shape[axis] for axis in numbers.rhs_spec[2:]]
    covered = [spread(resolve(size), d) for size, d in zip(sizes, apart, strict=True)]
    if isinstance(padding, str):
        pairs = [transposed_padding(k, s, padding) for k, s in zip(covered, steps, strict=True)]
    else:
        pairs = pairs_of(padding, rank - 2)
        if use_consistent_padding:
            pairs = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(covered, pairs, strict=True)]
    if transpose_kernel:
        kernel = swapaxes(flip(kernel, tuple(numbers.rhs_spec[2:])), numbers.rhs_spec[0], numbers.rhs_spec[1])
    return conv_general_dilated(
        left,
        kernel,
        1,
        [(wrap(low), wrap(high)) for low, high in pairs],
        [wrap(s) for s in steps],
        rhs_dilation,
        numbers,
        preferred_element_type=preferred_element_type,
    )


def transposed_padding(size: Index, stride: Index, padding: str) -> tuple[Index, Index]:
    """What "same" or "valid" of a convolution puts round its transpose, for a window that covers so much."""
    name = padding.lower()
    if name == "valid":
        return size - 1, stride - 1 + relu(size - stride)
    if name != "same":
        raise ArgumentError(
            f"padding of conv_transpose is 'SAME', 'VALID' or pairs of numbers, not {padding!r}{where()}"
        )
    total = size + stride - 2
    low = minimum(size - 1, ceildiv(total, 2))
    return low, total - low
