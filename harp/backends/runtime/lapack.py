"""The functions of LAPACK that compiled programs call: those of the library that NumPy itself is linked with.

A library finds a name in those that it is linked with. Wheels of NumPy bring an OpenBLAS with integers of 64 bits, in
which `dpotrf` is `scipy_dpotrf_64_`; a distribution's NumPy has `dpotrf_` of whatever LAPACK the system has. A NumPy
without them does not matter: then NumPy computes what programs ask for.
"""

from __future__ import annotations

from functools import cache

import _cffi_backend
import numpy as np

_ffi = _cffi_backend.FFI()
_ANY = _ffi.typeof("void(*)(void)")

# The variable of programs that points to the table.
VARIABLE = "harp_lapack"
# By what a program asks for: the names for float, double, complex float and complex double.
NAMES = (
    "spotrf dpotrf cpotrf zpotrf",
    "sgetrf dgetrf cgetrf zgetrf",
    "strsm dtrsm ctrsm ztrsm",
    "sgelqf dgelqf cgelqf zgelqf",
    "sorglq dorglq cunglq zunglq",
    "ssyevd dsyevd cheevd zheevd",
    "sgeev dgeev cgeev zgeev",
    "sgesdd dgesdd cgesdd zgesdd",
)
# How libraries call a function, and whether its integers have 64 bits.
_SPELLINGS = (
    ("scipy_{}_64_", True), ("{}_64_", True), ("{}$NEWLAPACK$ILP64", True), ("scipy_{}_", False), ("{}_", False)
)  # fmt: skip


@cache
def _found() -> object:
    """The table as C has it; None where there is no such library, or a name is missing."""
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
        return _ffi.new("void *[]", [_ffi.cast("void *", int(is_wide)), *(_ffi.cast("void *", f) for f in functions)])
    return None


def is_there() -> bool:
    """Whether programs can call LAPACK."""
    return _found() is not None


def table() -> object:
    """What the variable of a program is set to."""
    return _ffi.cast("void *", _found() or 0)
