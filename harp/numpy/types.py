"""What is to be known of dtypes: their limits, their kinds, and which becomes which.

A dtype is given as harp's own object, as NumPy's, as a scalar type or by name, and comes back as NumPy's.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from harp.errors import ArgumentError, DTypeError
from harp.trace.array import arithmetic
from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import (
    DType,
    Kind,
    as_dtype,
    bool_,
    computing,
    format_of,
    integer_limits,
    promote,
    real_of,
)
from harp.trace.source_locations import where


@attrs.frozen
class FloatInfo:
    """The limits of a floating dtype; of a complex one, those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[np.generic]


@attrs.frozen
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[np.generic]


def _dtype_of(value: object) -> DType:
    return as_dtype(value.dtype) if isinstance(value, (Array, np.ndarray, np.generic)) else as_dtype(value)


def finfo(dtype: object, /) -> FloatInfo:
    """Bits, eps, max, min, smallest_normal and dtype of a floating dtype, or of an array of one.

    Raises DTypeError for others. `bits` and `dtype` of a complex dtype are those of its parts.

    >>> finfo("float16").max
    65504.0
    """
    found = real_of(_dtype_of(dtype))
    if not found.is_float:
        raise DTypeError(f"finfo is for floating dtypes, not {found.numpy}; use iinfo{where()}")
    info = format_of(found)
    return FloatInfo(8 * found.itemsize, info.eps, info.max, -info.max, info.tiny, found.numpy)


def iinfo(dtype: object, /) -> IntegerInfo:
    """Bits, max, min and dtype of an integer dtype, or of an array of one. Raises DTypeError for others.

    >>> iinfo("int8").max
    127
    """
    found = _dtype_of(dtype)
    if not found.is_integer:
        raise DTypeError(f"iinfo is for integer dtypes, not {found.numpy}; use finfo{where()}")
    info = integer_limits(found)
    return IntegerInfo(info.bits, info.max, info.min, found.numpy)


def can_cast(from_: object, to: object) -> bool:
    """Whether an array or dtype becomes another dtype where both meet: no number is lost but to rounding.

    >>> can_cast("int8", "int16"), can_cast("float64", "float32")
    (True, False)
    """
    source, target = _dtype_of(from_), as_dtype(to)
    if target.is_tiny:
        return source in (target, bool_)
    return promote((computing(source) if source.is_tiny else source, target)) is target


_KINDS: Mapping[str, frozenset[Kind]] = {
    "bool": frozenset({Kind.BOOL}),
    "signed integer": frozenset({Kind.INT}),
    "unsigned integer": frozenset({Kind.UINT}),
    "integral": frozenset({Kind.INT, Kind.UINT}),
    "real floating": frozenset({Kind.FLOAT}),
    "complex floating": frozenset({Kind.COMPLEX}),
    "numeric": frozenset({Kind.INT, Kind.UINT, Kind.FLOAT, Kind.COMPLEX}),
}


def isdtype(dtype: object, kind: object) -> bool:
    """Whether a dtype is another one, or of a kind, or one of several of these.

    Kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" and
    "numeric". Raises ArgumentError for another word.

    >>> isdtype("float16", "real floating"), isdtype("int8", ("bool", "int16"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    found = as_dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return found.kind in _KINDS[kind]
    try:
        return found is as_dtype(kind)
    except DTypeError:
        raise ArgumentError(
            f"isdtype takes a dtype, a tuple, or one of the kinds {', '.join(map(repr, _KINDS))}, not {kind!r}{where()}"
        ) from None


def astype(x: object, dtype: object, /, *, copy: bool = True, device: object = None) -> Array:
    """The array in another dtype, elementwise; `copy` changes nothing, for arrays do not change.

    Floats are truncated to integers; a number out of range gives the lowest integer, for narrow dtypes its last bits.
    Raises DTypeError from complex to real dtypes, but for bool: take `real`, `imag` or `abs` first.

    >>> astype(2.75, "int32")
    Array(2, dtype=int32)
    """
    return arithmetic.astype(x, dtype, device=device)


def issubdtype(arg1: object, arg2: object) -> bool:
    """Whether a dtype is another one, or of a kind such as `harp.numpy.floating`.

    >>> import harp.numpy as hnp
    >>> issubdtype(np.float32, hnp.floating), issubdtype(hnp.int8, hnp.floating), issubdtype("int8", hnp.int8)
    (True, False, True)
    """
    if not (isinstance(arg2, type) and arg2 in _ABSTRACT):
        return _dtype_of(arg1) is _dtype_of(arg2)
    if isinstance(arg1, type) and arg1 in _ABSTRACT:
        return issubclass(arg1, arg2)
    kinds = _ABSTRACT[arg2]
    return _dtype_of(arg1).kind in kinds


_ABSTRACT: dict[type, set[Kind]] = {
    np.generic: {*Kind},
    np.flexible: set(),
    np.character: set(),
    np.object_: set(),
    np.number: {Kind.INT, Kind.UINT, Kind.FLOAT, Kind.COMPLEX},
    np.integer: {Kind.INT, Kind.UINT},
    np.signedinteger: {Kind.INT},
    np.unsignedinteger: {Kind.UINT},
    np.inexact: {Kind.FLOAT, Kind.COMPLEX},
    np.floating: {Kind.FLOAT},
    np.complexfloating: {Kind.COMPLEX},
}


def promote_types(type1: object, type2: object) -> np.dtype[np.generic]:
    """The dtype in which elements of both are held.

    >>> promote_types(np.float32, np.int64)
    dtype('float64')
    """
    return promote([_dtype_of(type1), _dtype_of(type2)]).numpy
