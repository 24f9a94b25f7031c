"""The functions of LAPACK, and the Fourier transforms, that compiled programs call: those that NumPy itself calls.

A library finds a name in those that it is linked with. Wheels of NumPy bring an OpenBLAS with integers of 64 bits, in
which `dpotrf` is `scipy_dpotrf_64_`; a distribution's NumPy has `dpotrf_` of whatever LAPACK the system has. A NumPy
without them does not matter: then NumPy computes what programs ask for. Transforms are universal functions of NumPy,
whose loops are C functions by dtype: the fields of a universal function are part of NumPy's C interface.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

import _cffi_backend
import numpy as np

from harp.locks import importing

_ffi = _cffi_backend.FFI()
_ANY = _ffi.typeof("void(*)(void)")

# The variable of programs that points to the table of functions.
VARIABLE = "harp_lapack"
# For each function that programs call: the names for float, double, complex float and complex double.
NAMES = (
    "spotrf dpotrf cpotrf zpotrf",
    "sgetrf dgetrf cgetrf zgetrf",
    "strsm dtrsm ctrsm ztrsm",
    "sgelqf dgelqf cgelqf zgelqf",
    "sorglq dorglq cunglq zunglq",
    "ssyevd dsyevd cheevd zheevd",
    "sgeev dgeev cgeev zgeev",
    "sgesdd dgesdd cgesdd zgesdd",
    "sgees dgees cgees zgees",
    "sgehrd dgehrd cgehrd zgehrd",
    "sorghr dorghr cunghr zunghr",
)
# The transforms, for the dtypes of their operands.
LOOPS = ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")
# The spellings of names in libraries, and whether integers then have 64 bits.
_SPELLINGS = (
    ("scipy_{}_64_", True), ("{}_64_", True), ("{}$NEWLAPACK$ILP64", True), ("scipy_{}_", False), ("{}_", False)
)  # fmt: skip


@cache
def _table() -> object:
    """The table, in C; None if there is no such library, or a name is missing."""
    lapack, transforms = _functions(), _loops()
    return None if lapack is None or transforms is None else _ffi.new("void *[]", [*lapack, *transforms])


def _functions() -> list[object] | None:
    """Whether integers have 64 bits, then the functions of LAPACK."""
    try:
        library = _cffi_backend.load_library(np.linalg._umath_linalg.__file__, 0)
    except (AttributeError, OSError):
        return None
    names = [name for row in NAMES for name in row.split()]
    for spelling, is_wide in _SPELLINGS:
        try:
            functions = [library.load_function(_ANY, spelling.format(name)) for name in names]
        except AttributeError:
            continue
        return [_pointer(int(is_wide)), *map(_pointer, functions)]
    return None


def _loops() -> list[object] | None:
    """For each transform, its loops for float, double, complex float and complex double, and their data pointers."""
    with importing:  # a fork waits for this import, too
        functions = getattr(getattr(import_module("numpy.fft"), "_pocketfft", None), "pfu", None)
    pointers = []
    for name in LOOPS:
        function = getattr(functions, name, None)
        if not isinstance(function, np.ufunc) or not _is_as_declared(function):
            return None
        kinds = [types[0] for types in function.types]
        for array in _ffi.cast("void ***", id(function))[4:6]:
            pointers += [_pointer(array[kinds.index(kind)] if array and kind in kinds else 0) for kind in "fdFD"]
    return pointers


def _is_as_declared(function: np.ufunc) -> bool:
    """Whether `struct PyUFuncObject` begins as in NumPy's header: an object, four integers, the loops, their data
    pointers, and the number of loops."""
    numbers = _ffi.cast("int *", id(function))
    return [*numbers[4:7], numbers[12]] == [function.nin, function.nout, function.nargs, function.ntypes]


def _pointer(value: object) -> object:
    return _ffi.cast("void *", value)


def is_there() -> bool:
    """Whether programs can call these functions."""
    return _table() is not None


def table() -> object:
    """The value of a program's variable."""
    return _pointer(_table() or 0)
