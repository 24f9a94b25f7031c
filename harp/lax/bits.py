"""The bits of numbers as elements of another dtype."""

from __future__ import annotations

from harp.errors import DTypeError, ShapeError
from harp.numpy.creation import arange
from harp.numpy.elementwise import bitwise_left_shift, bitwise_right_shift
from harp.numpy.manipulation import expand_dims, reshape
from harp.numpy.reductions import sum
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, map_
from harp.trace.scalar.dtypes import DType, DTypeLike, as_dtype, integer_limits
from harp.trace.scalar.expr import bitcast
from harp.trace.source_locations import where


def _width(dtype: DType) -> int:
    return integer_limits(dtype).bits if dtype.is_integer else 8 * dtype.itemsize


def bitcast_convert_type(operand: object, new_dtype: DTypeLike) -> Array:
    """The same bits as elements of another dtype, the lowest bits first.

    A narrower dtype adds a last axis, of the parts of each element; a wider one takes the last axis away, whose size is
    the number of parts. The derivative is 0. Raises DTypeError for bool and complex dtypes, beside others, ShapeError
    where the last axis does not fit.

    >>> import harp.numpy as hnp
    >>> bitcast_convert_type(hnp.asarray([1.0, -2.0], dtype="float32"), "uint16")
    Array([[    0, 16256],
           [    0, 49152]], dtype=uint16)
    """
    array, dtype = as_array(operand), as_dtype(new_dtype)
    if array.kind is dtype:
        return array
    for kind in (array.kind, dtype):
        if not (kind.is_integer or kind.is_float):
            raise DTypeError(
                f"bitcast_convert_type from {array.dtype} to {dtype.numpy}: bool and complex numbers have no bits of "
                f"other dtypes; convert with astype, or take real and imag{where()}"
            )
    before, after = _width(array.kind), _width(dtype)
    narrow, wide = (as_dtype(f"uint{width}") for width in sorted((before, after)))
    source, target = (wide, narrow) if after < before else (narrow, wide)
    bits = map_(lambda x: bitcast(x, source), array) if array.kind.is_float else array.astype(source)
    shifts = arange(0, _width(wide), _width(narrow), dtype=wide)
    if after < before:
        bits = bitwise_right_shift(expand_dims(bits, -1), shifts).astype(target)
    elif after > before:
        parts = after // before
        if not array.ndim or array.shape[-1] != parts:
            raise ShapeError(
                f"bitcast_convert_type from {array.dtype} to {dtype.numpy} takes a last axis of {parts}, not the shape "
                f"{array.shape}{where()}"
            )
        bits = sum(bitwise_left_shift(bits.astype(target), shifts), axis=-1, dtype=target)
    return map_(lambda x: bitcast(x, dtype), bits) if dtype.is_float else bits.astype(dtype)


def view(array: Array, dtype: DType) -> Array:
    """NumPy's `array.view(dtype)`, whose parts are along the last axis, in a traced function."""
    parts = _width(dtype) // _width(array.kind)
    if _width(dtype) == _width(array.kind) or array.kind.is_complex or dtype.is_complex:
        return bitcast_convert_type(array, dtype)
    if not array.ndim:
        raise DTypeError(f"a view of {array.dtype} as {dtype.numpy}: a number has no axis for parts{where()}")
    if parts:
        return bitcast_convert_type(reshape(array, (*array.shape[:-1], -1, parts)), dtype)
    seen = bitcast_convert_type(array, dtype)
    return reshape(seen, (*array.shape[:-1], array.shape[-1] * seen.shape[-1]))
