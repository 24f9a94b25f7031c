"""The element types, and NumPy 2's promotion with one difference: a Python scalar never widens an array.

A weak type (a Python number, or a size) takes the other operand's dtype when its kind fits. Where the kind must change,
the width stays: int32 with a float gives float32, int64 gives float64, and bool, which has no width to keep, gives
NumPy's defaults int64 and float64; the same with a complex number gives complex64, and complex128 for 64 bits and bool.
NumPy has no rule for bfloat16 beside float16, which gives float32, nor beside integers of 16 and more bits, which
count as they do for float16.

float8 and int4 are promoted as in JAX: Python numbers and bool take their dtype, for float8 integers too, and any other
dtype beside them raises.

A complex number is two floats side by side, as NumPy has them. float16, bfloat16, float8 and int4 are for storage:
expressions over them are computed in float32, or int8 (`harp.trace.scalar.halves`). NumPy has bfloat16 and what is
smaller from the package ml_dtypes, which is imported when an array of them is made.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Iterable
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from harp.errors import ArgumentError, DTypeError, MissingPackageError, OutOfMemoryError, UnsupportedDTypeError
from harp.lazy import FUNCTIONS
from harp.locks import importing
from harp.trace.index.polynomial import Index
from harp.trace.interning import InternedBase
from harp.trace.source_locations import where
from harp.trace.trees import leaf_type

NDArray = npt.NDArray[np.generic]


class Kind(enum.IntEnum):
    """What sort of number, in the order of promotion."""

    BOOL = 0
    INT = 1
    UINT = 2
    FLOAT = 3
    COMPLEX = 4


class NotFinite(enum.IntEnum):
    """How a float format says infinity and NaN."""

    IEEE = 0  # in the largest exponent
    NAN = 1  # no infinity; NaN has all bits set (fn)
    ZERO = 2  # no infinity, and NaN in the place of -0.0 (fnuz)


class FloatFormat(NamedTuple):
    """The bits of a float: its sign, then exponent + bias, then the fraction."""

    exponent: int
    fraction: int
    bias: int
    not_finite: NotFinite = NotFinite.IEEE

    @property
    def limit(self) -> int:
        """The first code, without the sign, that is no finite number."""
        bits = self.exponent + self.fraction
        return ((1 << bits) - (1 << self.fraction), (1 << bits) - 1, 1 << bits)[self.not_finite]

    @property
    def max(self) -> float:
        """The largest number."""
        power, fraction = divmod(self.limit - 1, 1 << self.fraction)
        return (1 + fraction * self.eps) * 2.0 ** (power - self.bias)

    @property
    def eps(self) -> float:
        """From 1 to the next number."""
        return float(2.0**-self.fraction)

    @property
    def tiny(self) -> float:
        """The smallest positive normal number."""
        return float(2.0 ** (1 - self.bias))


class IntegerLimits(NamedTuple):
    """What an integer dtype holds."""

    bits: int
    min: int
    max: int


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class DType(InternedBase):
    """An element type; one object each. `np.dtype(harp.f32)` works, and it equals NumPy's dtype.

    With sizes in brackets it declares an array, for `harp.jit(signature=...)` and `harp.trace`: a name stands for any
    size, the same name for the same size, and a number for itself.

    >>> import harp
    >>> harp.f32["batch", 784].shape
    ('batch', 784)
    """

    name: str
    kind: Kind
    numpy_name: str
    format: FloatFormat | None = None
    numpy: np.dtype[np.generic] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if not self.is_packaged:
            object.__setattr__(self, "numpy", np.dtype(self.numpy_name))

    def __getattr__(self, name: str) -> np.dtype[np.generic]:
        """Called for what is not there: `numpy` of a dtype of ml_dtypes, until it is asked for."""
        if name != "numpy":
            raise AttributeError(name)
        found = _load(self)
        object.__setattr__(self, "numpy", found)
        return found

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype, so that NumPy accepts this object wherever it takes a dtype."""
        return self.numpy

    @property
    def itemsize(self) -> int:
        """Bytes of an element, also where NumPy does not have the dtype."""
        return _PACKAGED[self.numpy_name][0] if self.is_packaged else self.numpy.itemsize

    @property
    def is_packaged(self) -> bool:
        """Whether NumPy has it from the package ml_dtypes."""
        return self.numpy_name in _PACKAGED

    @property
    def is_tiny(self) -> bool:
        """Whether it is float8 or int4, which meet few other dtypes."""
        return self.is_packaged and self.itemsize == 1

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating-point dtype."""
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex dtype."""
        return self.kind is Kind.COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Whether it is a real or complex floating-point dtype: what has derivatives."""
        return self.kind >= Kind.FLOAT

    @property
    def is_stored(self) -> bool:
        """Whether it is for storage: float16, bfloat16, float8 and int4, which are computed with in a wider dtype."""
        return self.is_packaged or self is f16

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer dtype."""
        return self.kind in (Kind.INT, Kind.UINT)

    def __call__(self, value: object = 0) -> Any:
        """A number, a list or an array in this dtype, as `numpy.float32(value)`."""
        return FUNCTIONS["asarray"](value, self)

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

    def __eq__(self, other: object) -> bool:
        """Also NumPy's dtype, its scalar type and its name are equal to it, as they are to one another."""
        if self is other or not isinstance(other, (np.dtype, type, str)):
            return self is other
        if not self.is_packaged:
            return bool(self.numpy == other)
        if isinstance(other, type):
            return issubclass(other, np.generic) and other.__name__ == self.numpy_name
        return self.numpy_name == (other if isinstance(other, str) else other.name)

    # That of the object: no code of Python runs where nodes are told apart. NumPy's equal dtypes, types and names have
    # different hashes, too.
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return as_dtype, (self.numpy_name,)

    def __repr__(self) -> str:
        return self.name


Dim = str | int | Index


def _is_dim(size: object) -> bool:
    if isinstance(size, str):
        return bool(size.strip())
    if isinstance(size, (int, np.integer)):
        return not isinstance(size, bool) and int(size) >= 0
    return isinstance(getattr(size, "index", size), Index)  # a size is a handle on one


@leaf_type
class ArraySignature(NamedTuple):
    """dtype and sizes of an array: a name (equal names are equal sizes), a number, or an index expression.

    >>> f32["batch", 784]
    f32[batch, 784]
    """

    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def sharding(self) -> None:
        """JAX's name for the devices that share an array: it lies on one."""
        return None

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


# The dtypes of ml_dtypes: the bytes of an element, and the dtype of NumPy by way of which they are converted.
_PACKAGED: dict[str, tuple[int, str]] = {
    "bfloat16": (2, "float32"),
    **{
        f"float8_{form}": (1, "float32")
        for form in ["e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"]
    },
    "int4": (1, "int8"),
    "uint4": (1, "uint8"),
}


def _load(dtype: DType) -> np.dtype[np.generic]:
    """NumPy's dtype for one of ml_dtypes. Raises MissingPackageError."""
    name = dtype.numpy_name
    try:
        with importing:
            found: np.dtype[np.generic] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        raise MissingPackageError(
            f"{name} needs the package ml_dtypes, for NumPy has no such dtype; install harp-compiler[bfloat16]{where()}"
        ) from None
    OF_NUMPY[found] = dtype
    CONVERTED_BY[found] = np.dtype(_PACKAGED[name][1])
    return found


bool_ = DType("bool", Kind.BOOL, "bool")
i8 = DType("i8", Kind.INT, "int8")
i16 = DType("i16", Kind.INT, "int16")
i32 = DType("i32", Kind.INT, "int32")
i64 = DType("i64", Kind.INT, "int64")
u8 = DType("u8", Kind.UINT, "uint8")
u16 = DType("u16", Kind.UINT, "uint16")
u32 = DType("u32", Kind.UINT, "uint32")
u64 = DType("u64", Kind.UINT, "uint64")
i4 = DType("i4", Kind.INT, "int4")
u4 = DType("u4", Kind.UINT, "uint4")
f8_e3m4 = DType("f8_e3m4", Kind.FLOAT, "float8_e3m4", FloatFormat(3, 4, 3))
f8_e4m3 = DType("f8_e4m3", Kind.FLOAT, "float8_e4m3", FloatFormat(4, 3, 7))
f8_e4m3b11fnuz = DType("f8_e4m3b11fnuz", Kind.FLOAT, "float8_e4m3b11fnuz", FloatFormat(4, 3, 11, NotFinite.ZERO))
f8_e4m3fn = DType("f8_e4m3fn", Kind.FLOAT, "float8_e4m3fn", FloatFormat(4, 3, 7, NotFinite.NAN))
f8_e4m3fnuz = DType("f8_e4m3fnuz", Kind.FLOAT, "float8_e4m3fnuz", FloatFormat(4, 3, 8, NotFinite.ZERO))
f8_e5m2 = DType("f8_e5m2", Kind.FLOAT, "float8_e5m2", FloatFormat(5, 2, 15))
f8_e5m2fnuz = DType("f8_e5m2fnuz", Kind.FLOAT, "float8_e5m2fnuz", FloatFormat(5, 2, 16, NotFinite.ZERO))
f16 = DType("f16", Kind.FLOAT, "float16", FloatFormat(5, 10, 15))
bf16 = DType("bf16", Kind.FLOAT, "bfloat16", FloatFormat(8, 7, 127))
f32 = DType("f32", Kind.FLOAT, "float32", FloatFormat(8, 23, 127))
f64 = DType("f64", Kind.FLOAT, "float64", FloatFormat(11, 52, 1023))
c64 = DType("c64", Kind.COMPLEX, "complex64")
c128 = DType("c128", Kind.COMPLEX, "complex128")

FLOAT8 = (f8_e3m4, f8_e4m3, f8_e4m3b11fnuz, f8_e4m3fn, f8_e4m3fnuz, f8_e5m2, f8_e5m2fnuz)
ALL = (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, c64, c128, *FLOAT8, i4, u4)
# By the native dtypes of NumPy; those of ml_dtypes are there from their first use on.
OF_NUMPY: dict[np.dtype[np.generic], DType] = {d.numpy: d for d in ALL if not d.is_packaged}
# The dtype by way of which one of ml_dtypes is converted.
CONVERTED_BY: dict[np.dtype[np.generic], np.dtype[np.generic]] = {}
_BY_NAME = {d.numpy_name: d for d in ALL if d.is_packaged}
_by_python: dict[object, DType] = {bool: bool_, int: i64, float: f64, complex: c128}
# The types of numbers: the dtype as arrays, and whether that is weak.
NUMBERS: dict[type, tuple[DType, bool]] = {
    **{d.numpy.type: (d, False) for d in OF_NUMPY.values()}, bool: (bool_, True), int: (i64, True),
    float: (f64, True), complex: (c128, True),
}  # fmt: skip
_REAL = {c64: f32, c128: f64}
_COMPLEX = {**dict.fromkeys((f16, bf16, f32, *FLOAT8), c64), f64: c128}

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
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    try:
        numpy_dtype = np.dtype(value)  # type: ignore[call-overload]
    except Exception:  # of a name that is none in UTF-8, of an attribute of the user's
        advice = "use for example harp.f32 or np.float32"
        if isinstance(value, int):
            advice = (
                "a shape is one argument, shape=(2, 3), several axes are, axis=(0, 1); for another shape, x.reshape"
            )
        raise UnsupportedDTypeError(f"{value!r} is not a dtype; {advice}{where()}") from None
    found = OF_NUMPY.get(numpy_dtype if numpy_dtype.isnative else numpy_dtype.newbyteorder("="))
    named = _BY_NAME.get(numpy_dtype.name) if found is None else None
    if named is not None and numpy_dtype == named.numpy:
        return named
    if found is None:
        supported = ", ".join(d.numpy_name for d in ALL)
        raise UnsupportedDTypeError(
            f"dtype {numpy_dtype} is not supported; convert the array with .astype to one of {supported}{where()}"
        )
    return found


def real_of(dtype: DType) -> DType:
    """The dtype of the parts of a complex one; others stay."""
    return _REAL.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex dtype of numbers whose parts have this floating dtype; complex ones stay."""
    return _COMPLEX.get(dtype, dtype)


def computing(dtype: DType) -> DType:
    """The dtype in which an expression over this one is computed: float32, int8 or uint8 for those of storage."""
    if dtype.is_stored:
        return f32 if dtype.is_float else i8 if dtype is i4 else u8
    return dtype


def tiny_of(dtype: DType) -> float:
    """The smallest positive normal number of an inexact dtype."""
    return format_of(dtype).tiny


def format_of(dtype: DType) -> FloatFormat:
    """The bits of a floating dtype, or of the parts of a complex one."""
    found = real_of(dtype).format
    assert found is not None, dtype
    return found


def integer_limits(dtype: DType) -> IntegerLimits:
    """The bits of an integer dtype, its least and its largest number."""
    bits = 4 if dtype.is_tiny else 8 * dtype.itemsize
    low = -(1 << bits - 1) if dtype.kind is Kind.INT else 0
    return IntegerLimits(bits, low, low + (1 << bits) - 1)


def refuse_masked(array: NDArray | np.generic, name: str = "an array") -> None:
    """Raise ArgumentError for a masked array, whose mask would be lost."""
    # Where numpy.ma is not imported there are none, and to import it takes longer than to trace a function.
    if type(array) is not np.ndarray and "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(f"{name} is masked, and harp has no masks; pass x.filled(number) or x.data{where()}")


def plain(array: NDArray, dtype: np.dtype[np.generic] | None = None, copy: bool = False) -> NDArray:
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


_DEFAULTS = {Kind.BOOL: bool_, Kind.INT: i64, Kind.UINT: u64, Kind.FLOAT: f64, Kind.COMPLEX: c128}


def promote(dtypes: Iterable[DType]) -> DType:
    """The common dtype of arrays."""
    return reduce(_join, sorted(set(dtypes), key=lambda d: (d.kind, d.name)))


@lru_cache(maxsize=512)
def _join(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a.is_tiny or b.is_tiny:
        tiny, other = (a, b) if a.is_tiny else (b, a)
        if other is bool_ or (tiny.is_float and other.is_integer and not other.is_tiny):
            return tiny
        raise _no_common(tiny, other.numpy_name)
    if {a, b} == {f16, bf16}:
        return f32
    if bf16 not in (a, b):
        return OF_NUMPY[np.result_type(a.numpy, b.numpy)]
    other = b if a is bf16 else a
    return bf16 if _join(f16, other) is f16 else _join(f16, other)


def _no_common(tiny: DType, other: str) -> DTypeError:
    name = tiny.numpy_name
    return DTypeError(
        f"{name} and {other} have no common dtype, for {name} is for storage and either might lose digits; convert one "
        f"of them with .astype, for example x.astype('float32'){where()}"
    )


def promote_weak(strong: DType, weak: Kind) -> DType:
    """The dtype of an array of `strong` dtype combined with a Python number of this kind."""
    if weak <= strong.kind or (weak is Kind.INT and strong.is_integer):
        return strong
    if strong.is_tiny:
        raise _no_common(strong, "a complex number" if weak is Kind.COMPLEX else "a float")
    if strong is bool_:
        return default_of(weak)
    if weak is Kind.UINT:
        return strong if strong.is_integer else u64
    real = strong if strong.is_float else f64 if strong.itemsize == 8 else f32
    return complex_of(real) if weak is Kind.COMPLEX else real


def default_of(kind: Kind) -> DType:
    """The dtype of a Python number on its own."""
    return _DEFAULTS[kind]


def set_default(real: DType) -> None:
    """Make this floating dtype that of Python's floats, and its complex dtype that of complex numbers."""
    for python, kind, dtype in ((float, Kind.FLOAT, real), (complex, Kind.COMPLEX, complex_of(real))):
        _by_python[python] = _DEFAULTS[kind] = dtype


def of_python(dtype: DType) -> DType:
    """The dtype in which numbers of Python are stored, given that which NumPy makes of them."""
    return default_of(dtype.kind) if dtype in (f64, c128) else dtype


def inexact(dtype: DType) -> DType:
    """The dtype in which exp, sqrt or a quotient of this dtype is computed: NumPy's, but for bool and integers at least
    float32."""
    if dtype.is_inexact:
        return dtype
    return f32 if dtype.itemsize < 4 else f64


def accumulator(dtype: DType) -> DType:
    """The dtype of a sum or product: as NumPy's, small integers widen to 64 bits."""
    if dtype.kind in (Kind.BOOL, Kind.INT):
        return i64
    return u64 if dtype.kind is Kind.UINT else dtype
