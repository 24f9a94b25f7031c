"""What other libraries ask of the namespace: which dtypes and devices there are. Their arrays and files as harp's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from harp.config import CPU
from harp.errors import ArgumentError, HarpError, InterchangeError, MissingPackageError
from harp.locks import importing
from harp.trace.array.array import Array, from_numpy
from harp.trace.array.conversions import STANDARDS, require_device
from harp.trace.array.primitives import as_array
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, Kind, as_dtype
from harp.trace.source_locations import plural, where

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    *("from_dlpack", "frombuffer", "fromfile", "fromiter", "fromstring", "load"),
]

__array_api_version__ = STANDARDS[-1]

_CPU_TYPES = (1, 3)  # kDLCPU, and kDLCUDAHost, which the CPU reads as well


def from_dlpack(x: object, /, *, device: object = None, copy: bool | None = None) -> Array:
    """The array of another library, through DLPack: torch's, JAX's, NumPy's.

    Memory is shared unless `copy` is true; nobody may write to it any more. Raises InterchangeError for memory of
    another device, ArgumentError for what has no `__dlpack__`, UnsupportedDTypeError.

    >>> from_dlpack(np.arange(3.0))
    Array([0., 1., 2.])
    """
    require_device(device)
    if isinstance(x, Array):
        value = x._concrete("the memory of the values")
    else:
        value = _imported(x)
    as_dtype(value.dtype)
    if copy:
        return from_numpy(value.copy())
    return x if isinstance(x, Array) else from_numpy(value)


def _imported(x: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise ArgumentError(f"{type(x).__name__} has no __dlpack__; convert it with harp.numpy.asarray{where()}")
    kind = x.__dlpack_device__()[0]
    if int(kind) not in _CPU_TYPES:
        raise InterchangeError(f"the array is on device type {kind} of DLPack; copy it to the CPU first{where()}")
    try:
        return np.from_dlpack(x)
    except HarpError:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InterchangeError(f"its memory cannot be shared: {error}; convert it with asarray{where()}") from None


def to_arrow(x: Array, schema: object) -> tuple[object, object]:
    """A vector in Arrow's C data interface, which libraries of tables read: read-only and not copied, but for bool.

    Raises InterchangeError for other numbers of axes and for dtypes that Arrow does not have, MissingPackageError.
    """
    values = x._concrete("the memory of the values")
    name = values.dtype.name
    if values.ndim != 1:
        raise InterchangeError(f"a column has one axis, and the array {plural(values.ndim, 'axes')}{where()}")
    if name not in _COLUMNS:
        raise InterchangeError(f"Arrow has no numbers of {name}; convert them with .astype{where()}")
    try:
        with importing:
            arrow = import_module("nanoarrow")
    except ImportError:
        advice = "install harp-compiler[arrow], or give np.asarray(x)"
        raise MissingPackageError(f"Arrow's columns need the package nanoarrow; {advice}{where()}") from None
    kind, memory = getattr(arrow, _COLUMNS[name])(), np.ascontiguousarray(values)
    if memory.dtype == bool:
        memory = np.packbits(memory.view(np.uint8), bitorder="little")
    column: Any = arrow.c_array_from_buffers(kind, len(values), [None, memory])
    result: tuple[object, object] = column.__arrow_c_array__(schema)
    return result


_NUMBERS = (*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32", "float64")
_COLUMNS = {"bool": "bool_", **{name: name for name in _NUMBERS}}  # nanoarrow's names


def _through(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that reads numbers, as one that gives arrays of harp; by name where a file has several.

    Raises ArgumentError where NumPy raises ValueError.
    """

    @wraps(function)
    def read(*arguments: object, **options: object) -> Array | dict[str, Array]:
        try:
            found: Any = function(*arguments, **options)
        except ValueError as error:
            raise ArgumentError(f"{function.__name__}: {error}{where()}") from None
        if not isinstance(found, np.lib.npyio.NpzFile):
            return as_array(found)
        with found:  # a file
            return {name: as_array(value) for name, value in found.items()}

    return read


frombuffer, fromfile = _through(np.frombuffer), _through(np.fromfile)
fromiter, fromstring = _through(np.fromiter), _through(np.fromstring)
load = _through(np.load)


class _Info:
    """What the namespace can do, by the names of the array API standard."""

    def capabilities(self) -> dict[str, bool | int]:
        """Which optional behaviour there is, outside of traced functions, and how many axes an array can have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of new arrays."""
        return CPU

    def devices(self) -> list[str]:
        """All devices."""
        return [CPU]

    def default_dtypes(self, *, device: object = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of new arrays of Python numbers, by kind."""
        require_device(device)
        integral = dtypes.i64.numpy
        floating = {"real floating": dtypes.f64.numpy, "complex floating": dtypes.c128.numpy}
        return {**floating, "integral": integral, "indexing": integral}

    def dtypes(self, *, device: object = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of the standard by name, all or of some kinds, as arrays have them: those of NumPy.

        Raises ArgumentError for unknown kinds.
        """
        require_device(device)
        kinds = _KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ArgumentError(f"{unknown[0]!r} is no kind of dtypes; {', '.join(_KINDS)} are{where()}")
        of_kinds = (d for d in dtypes.ALL if d.numpy_name in _STANDARD and any(_KINDS[k](d) for k in kinds))
        return {d.numpy_name: d.numpy for d in of_kinds}


def _is(*kinds: Kind) -> Callable[[DType], bool]:
    return lambda dtype: dtype.kind in kinds


_KINDS: dict[str, Callable[[DType], bool]] = {
    "bool": _is(Kind.BOOL),
    "signed integer": _is(Kind.INT),
    "unsigned integer": _is(Kind.UINT),
    "integral": _is(Kind.INT, Kind.UINT),
    "real floating": _is(Kind.FLOAT),
    "complex floating": _is(Kind.COMPLEX),
    "numeric": _is(Kind.INT, Kind.UINT, Kind.FLOAT, Kind.COMPLEX),
}
_STANDARD = {
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "complex64", "complex128"),
}


def __array_namespace_info__() -> _Info:
    """The dtypes, devices and capabilities of the namespace, as the array API standard asks for them.

    >>> __array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32'), 'float64': dtype('float64')}
    """
    return _Info()
