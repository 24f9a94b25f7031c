"""A vector in Arrow's C data interface, through which libraries of tables read it: polars, pyarrow, DuckDB.

Source: https://arrow.apache.org/docs/format/CDataInterface.html and .../CDataInterface/PyCapsuleInterface.html. Two
structures describe the type and the memory. Whoever takes a structure calls its `release` once; until then `_lent`
keeps what it points to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from harp.errors import InterchangeError
from harp.trace.array.array import Array
from harp.trace.source_locations import plural, where

_FORMATS = {
    "bool": b"b", "int8": b"c", "uint8": b"C", "int16": b"s", "uint16": b"S", "int32": b"i", "uint32": b"I",
    "int64": b"l", "uint64": b"L", "float16": b"e", "float32": b"f", "float64": b"g",
}  # fmt: skip
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_WORD, _POINTER = ctypes.c_int64, ctypes.c_void_p


class _Schema(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("format", "name", "metadata")),
        *(("flags", _WORD), ("n_children", _WORD), ("children", _POINTER), ("dictionary", _POINTER)),
        *(("release", _Release), ("private_data", _POINTER)),
    )


class _Vector(ctypes.Structure):
    _fields_ = (
        *((name, _WORD) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *(("buffers", ctypes.POINTER(_POINTER)), ("children", _POINTER), ("dictionary", _POINTER)),
        *(("release", _Release), ("private_data", _POINTER)),
    )


_lent: dict[int, tuple[object, ...]] = {}  # by the address at which a structure was made
_new_capsule: Callable[..., object] = ctypes.PYFUNCTYPE(ctypes.py_object, _POINTER, ctypes.c_char_p, _POINTER)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer: Callable[..., int] = ctypes.PYFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_name: Callable[..., bytes] = ctypes.PYFUNCTYPE(ctypes.c_char_p, _POINTER)(("PyCapsule_GetName", ctypes.pythonapi))
_KINDS: dict[bytes, Any] = {b"arrow_schema": _Schema, b"arrow_array": _Vector}


def _release(address: int) -> None:
    """A consumer may have moved the structure, so the key stands in it."""
    for kind in _KINDS.values():
        held = kind.from_address(address)
        if held.private_data in _lent and isinstance(_lent[held.private_data][0], kind):
            del _lent[held.private_data]
            held.release = _Release()
            return


def _forget(capsule: int) -> None:
    """The end of a capsule; nobody has taken its structure where that is not released."""
    name = _name(capsule)
    address = _pointer(capsule, name)
    held = _KINDS[name].from_address(address)
    if held.release:
        held.release(address)


_released, _forgotten = _Release(_release), _Release(_forget)


def to_arrow(x: Array) -> tuple[object, object]:
    """The capsules of the type and the memory of a vector: read-only and not copied, but bools, which become bits.

    Raises InterchangeError for other numbers of axes, and for dtypes that Arrow does not have.
    """
    values = x._concrete("the memory of the values")
    if values.ndim != 1:
        raise InterchangeError(
            f"a column of a table has one axis, and the array {plural(values.ndim, 'axes')}{where()}"
        )
    if values.dtype.name not in _FORMATS:
        raise InterchangeError(f"Arrow has no numbers of {values.dtype}; convert them with .astype{where()}")
    memory = np.ascontiguousarray(values)
    if memory.dtype == bool:
        memory = np.packbits(memory.view(np.uint8), bitorder="little")
    buffers = (_POINTER * 2)(None, memory.ctypes.data)
    schema = _Schema(_FORMATS[values.dtype.name], b"", None, 0, 0, None, None, _released)
    vector = _Vector(len(values), 0, 0, 2, 0, ctypes.cast(buffers, ctypes.POINTER(_POINTER)), None, None, _released)
    return _capsule(b"arrow_schema", schema), _capsule(b"arrow_array", vector, buffers, memory)


def _capsule(name: bytes, structure: Any, *held: object) -> object:
    address = ctypes.addressof(structure)
    structure.private_data = address
    _lent[address] = (structure, *held)
    return _new_capsule(address, name, _forgotten)
