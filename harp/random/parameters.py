"""Parameters of distributions: numbers or arrays, their common dtype, and the shape that they have together."""

from __future__ import annotations

import numpy as np

from harp.numpy.manipulation import broadcast_to
from harp.random.floats import float_dtype
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, broadcast_shapes, common_dtype, map_, to_shape
from harp.trace.index.polynomial import Shape
from harp.trace.scalar.dtypes import DType, inexact


def is_number(value: object) -> bool:
    """Whether it is a number of Python's own, whose value is known."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def common_float(name: str, *values: object) -> DType:
    """The floating-point dtype of the parameters: float64 for numbers. Raises DTypeError for what is not drawn."""
    return float_dtype(name, inexact(common_dtype(values)[0]))


def sample_shape(shape: object, *values: object) -> Shape:
    """The shape that was asked for, or if it is None, the one to which the parameters broadcast. Raises ShapeError."""
    if shape is not None:
        return to_shape(shape)
    return broadcast_shapes([node_of(as_array(value)).shape for value in values if not is_number(value)])


def spread(value: object, dtype: DType, shape: Shape) -> Array:
    """A parameter in this dtype and shape. Raises ShapeError where it does not broadcast to the shape."""
    return broadcast_to(map_(lambda x: x, value, to=dtype), shape)
