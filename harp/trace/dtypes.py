"""The element types, and NumPy 2's promotion with one difference: a Python scalar never widens an array.

A weak type (a Python number, or a size) takes the other operand's dtype when its kind fits. Where the kind must change,
the width stays: int32 with a float gives float32, int64 gives float64, and bool, which has no width to keep, gives
NumPy's defaults int64 and float64.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable
from typing import NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from harp.errors import ArgumentError, OutOfMemoryError, UnsupportedDTypeError
from harp.trace.index import Index
from harp.trace.interning import InternedBase
from harp.trace.sites import where
from harp.trace.trees import leaf_type

Buffer = npt.NDArray[np.generic]


class Kind(enum.IntEnum):
    """What sort of number, in the order of promotion. Complex comes after FLOAT when it comes."""

    BOOL = 0
    INT = 1
    UINT = 2
    FLOAT = 3


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class DType(InternedBase):
    """An element type; one object each, compared with `is`. `np.dtype(harp.f32)` works."""

    name: str
    kind: Kind
    numpy: np.dtype[np.generic]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype, so that NumPy accepts this object wherever it takes a dtype."""
        return self.numpy

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point dtype."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer dtype."""
        return self.kind in (Kind.INT, Kind.UINT)

    def __getitem__(self, sizes: Dim | tuple[Dim, ...]) -> ArraySignature:
        """The signature of an array of this dtype: `harp.f32["batch", 784]`, `harp.f32[()]` for a number."""
        listed = sizes if isinstance(sizes, tuple) else (sizes,)
        for axis, size in enumerate(listed):
            if not _is_dim(size):
                raise ArgumentError(
                    f"size {size!r} of axis {axis} of a signature is neither a name nor a number from 0 on; write for "
                    f"example harp.{self.name}['batch', 784]{where()}"
                )
        return ArraySignature(self, listed)

    def __reduce__(self) -> tuple[object, ...]:
        return as_dtype, (self.numpy.name,)

    def __repr__(self) -> str:
        return self.name


Dim = str | int | Index


def _is_dim(size: object) -> bool:
    if isinstance(size, str):
        return bool(size.strip())
    if isinstance(size, (int, np.integer)):
        return not isinstance(size, bool) and int(size) >= 0
    return isinstance(size, Index)


@leaf_type
class ArraySignature(NamedTuple):
    """dtype and sizes of an array: a name (equal names are equal sizes), a number, or an index expression.

    >>> f32["batch", 784]
    f32[batch, 784]
    """

    dtype: DType
    shape: tuple[Dim, ...]

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def _make(name: str, kind: Kind, numpy_name: str) -> DType:
    return DType(name, kind, np.dtype(numpy_name))


bool_ = _make("bool", Kind.BOOL, "bool")
i8 = _make("i8", Kind.INT, "int8")
i16 = _make("i16", Kind.INT, "int16")
i32 = _make("i32", Kind.INT, "int32")
i64 = _make("i64", Kind.INT, "int64")
u8 = _make("u8", Kind.UINT, "uint8")
u16 = _make("u16", Kind.UINT, "uint16")
u32 = _make("u32", Kind.UINT, "uint32")
u64 = _make("u64", Kind.UINT, "uint64")
f32 = _make("f32", Kind.FLOAT, "float32")
f64 = _make("f64", Kind.FLOAT, "float64")

ALL = (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64)
OF_NUMPY: dict[np.dtype[np.generic], DType] = {d.numpy: d for d in ALL}
_by_python: dict[object, DType] = {bool: bool_, int: i64, float: f64}

DTypeLike = DType | npt.DTypeLike


def as_dtype(value: object) -> DType:
    """The harp dtype for a harp dtype, a NumPy dtype (of any byte order), a NumPy scalar type or a name.

    Raises UnsupportedDTypeError for object, string, structured and other dtypes that harp does not compute with.

    >>> as_dtype("float32"), as_dtype(np.int8), as_dtype(float)
    (f32, i8, f64)
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, np.dtype) and value in OF_NUMPY:
        return OF_NUMPY[value]
    if isinstance(value, type) and value in _by_python:
        return _by_python[value]
    try:
        numpy_dtype = np.dtype(value)  # type: ignore[call-overload]
    except TypeError:
        raise UnsupportedDTypeError(
            f"{value!r} is not a dtype; use for example harp.f32 or np.float32{where()}"
        ) from None
    found = OF_NUMPY.get(numpy_dtype.newbyteorder("="))
    if found is None:
        supported = ", ".join(d.numpy.name for d in ALL)
        raise UnsupportedDTypeError(
            f"dtype {numpy_dtype} is not supported; convert the array with .astype to one of {supported}{where()}"
        )
    return found


def refuse_masked(array: Buffer | np.generic, name: str = "an array") -> None:
    """Raise ArgumentError for a masked array, whose mask would be lost."""
    # Where numpy.ma is not imported there are none, and to import it takes longer than to trace a function.
    if type(array) is not np.ndarray and "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(f"{name} is masked, and harp has no masks; pass x.filled(number) or x.data{where()}")


def plain(array: Buffer, dtype: np.dtype[np.generic] | None = None, copy: bool = False) -> Buffer:
    """The numbers in C order and aligned. Raises OutOfMemoryError where that repeats too many, after a broadcast."""
    try:
        if copy:
            return np.array(array, dtype, order="C", copy=True)
        return np.require(array, dtype, ("C", "A"))
    except MemoryError as error:
        raise OutOfMemoryError(
            f"an array of shape {array.shape}, strided {array.strides}, does not fit into memory in C order; "
            f"call it on smaller parts: {error}{where()}"
        ) from None


def promote(dtypes: Iterable[DType]) -> DType:
    """NumPy's common dtype of arrays."""
    dtypes = list(dtypes)
    if all(d is dtypes[0] for d in dtypes):
        return dtypes[0]
    result = np.result_type(*(d.numpy for d in dtypes))
    return OF_NUMPY[result]


def promote_weak(strong: DType, weak: Kind) -> DType:
    """The dtype of an array of `strong` dtype combined with a Python number of this kind."""
    if weak is Kind.BOOL or strong.kind is Kind.FLOAT or (weak is Kind.INT and strong.is_integer):
        return strong
    if strong is bool_:
        return i64 if weak is Kind.INT else f64
    return f64 if strong.itemsize == 8 else f32


def default_of(kind: Kind) -> DType:
    """The dtype of a Python number on its own."""
    return {Kind.BOOL: bool_, Kind.INT: i64, Kind.UINT: u64, Kind.FLOAT: f64}[kind]


def inexact(dtype: DType) -> DType:
    """The floating dtype in which exp, sqrt or a quotient of this dtype is computed: NumPy's, but at least float32."""
    if dtype.is_float:
        return dtype
    return f32 if dtype.itemsize < 4 else f64


def accumulator(dtype: DType) -> DType:
    """The dtype of a sum or product: as NumPy's, small integers widen to 64 bits."""
    if dtype.kind in (Kind.BOOL, Kind.INT):
        return i64
    return u64 if dtype.kind is Kind.UINT else dtype
