"""The error function and its kin by NumPy, which has none; and the polynomials, which generated C has as well. Also
expm1 and log1p of complex numbers, where NumPy's own lose digits.

All is computed in float64 and rounded once. Polynomials are near-minimax (interpolated at Chebyshev's points in 60
digits), the highest power first:

    ERF_NEAR    erf(x)/x in x*x, for |x| <= 1
    ERFC_FAR    (1 + 2x) exp(x*x) erfc(x) in (x - 4)/(x + 4), for 1/2 <= x <= 28
    ERFINV_NEAR erfinv(x)/x in w = -log(1 - x*x), for w < 5, to 2^-27
    ERFINV_FAR  erfinv(x)/x in sqrt(w) - 4, for the others, to 2^-24
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harp.trace.scalar.dtypes import NDArray

Doubles = np.ndarray[Any, np.dtype[np.float64]]

ERF_NEAR = (
    *("0x1.05ffd737faabap-34", "-0x1.389d4f26412d7p-30", "0x1.f7b4bf3b13841p-27", "-0x1.5f1ecb6f0762fp-23"),
    *("0x1.b9df224ca4b94p-20", "-0x1.f4d1e3183f7aep-17", "0x1.f9a321d5b8e1ep-14", "-0x1.c02db3dac435fp-11"),
    *("0x1.565bcd0dbaa38p-8", "-0x1.b82ce31284e00p-6", "0x1.ce2f21a042b30p-4", "-0x1.812746b0379e6p-2"),
    "0x1.20dd750429b6dp+0",
)
ERFC_FAR = (
    *("0x1.0dfda8356c02ap-29", "-0x1.4b9f9f4f16542p-27", "-0x1.3bd47c8d78956p-26", "0x1.bb796a644b068p-24"),
    *("0x1.43ba3f7063ea8p-24", "-0x1.b7f7f6721ba0ap-21", "0x1.3ac5f5a5c124bp-22", "0x1.7ef4cab4caa97p-18"),
    *("-0x1.78897f736b663p-17", "-0x1.9954da84115cbp-16", "0x1.3be05579d16a4p-13", "-0x1.a1df44dc2b137p-13"),
    *("-0x1.8d4a9b1930f9ep-11", "0x1.49c672aa18854p-8", "-0x1.09623883eaff1p-6", "0x1.3079edf61e415p-5"),
    *("-0x1.0fb06dfe4e683p-4", "0x1.7fee004e14c52p-4", "-0x1.9ddb23c3e8df2p-4", "0x1.16ecefcfa52b5p-4"),
    *("0x1.f7f5df66fd76bp-7", "-0x1.1df1ad154a28ep-3", "0x1.3ba5916e9fd7fp+0"),
)
ERFINV_NEAR = (
    *("0x1.00d7b840a2ef1p-31", "-0x1.5ecb1ca0d9fcap-26", "0x1.7160db6cea747p-22", "-0x1.69ec3cedb2f4ep-19"),
    *("0x1.b6513b378781fp-18", "0x1.47006585aced0p-15", "-0x1.f76c972e45e11p-14", "-0x1.32b647b5e9416p-9"),
    *("0x1.7a7ffa7784ce6p-7", "0x1.db29e139bbe9cp-3", "0x1.c5bf893d96d1fp-1"),
)
ERFINV_FAR = (
    *("-0x1.8736701071999p-22", "0x1.a24a03abec521p-20", "0x1.3a29bea450113p-20", "-0x1.ffae0b7425b69p-17"),
    *("0x1.c0fa03dcfcd34p-16", "-0x1.721a1c7820b4cp-16", "0x1.5f237462ed9fep-15", "-0x1.09e61bbd3b744p-13"),
    *("0x1.5b69d0c8c4acap-12", "-0x1.c5c8c047a6236p-11", "0x1.4984bd694a813p-10", "0x1.026e1f76a3f7ap+0"),
    "0x1.eb7e0a230a187p+1",
)
HALF_ROOT_PI = float.fromhex("0x1.c5bf891b4ef6bp-1")


def _polynomial(x: Doubles, coefficients: Sequence[str]) -> Doubles:
    value = np.zeros_like(x)
    for c in coefficients:
        value = value * x + float.fromhex(c)
    return value


def _erf_near(x: Doubles) -> Doubles:
    return x * _polynomial(x * x, ERF_NEAR)


def _erfc_far(x: Doubles) -> Doubles:
    """exp(-x*x) in two factors, for the square is not exact: the first one has 26 bits of x."""
    x = np.minimum(x, 30.0)
    high = x.astype(np.float32).astype(np.float64)
    scaled = _polynomial((x - 4) / (x + 4), ERFC_FAR) / (1 + 2 * x)
    product: Doubles = np.exp(-high * high) * np.exp(-(x - high) * (x + high)) * scaled
    return product


def _rounded(function: str, x: NDArray) -> NDArray:
    wide = np.asarray(x, np.float64)
    return np.asarray(_WIDE[function](wide).astype(x.dtype))


def erf(x: NDArray) -> NDArray:
    """The error function."""
    return _rounded("erf", x)


def erfc(x: NDArray) -> NDArray:
    """1 - erf(x)."""
    return _rounded("erfc", x)


def erfinv(x: NDArray) -> NDArray:
    """The inverse of erf."""
    return _rounded("erfinv", x)


def _erf(x: Doubles) -> Doubles:
    size = np.abs(x)
    return np.where(size < 1, _erf_near(x), np.copysign(1 - _erfc_far(size), x))


def _erfc(x: Doubles) -> Doubles:
    far = _erfc_far(np.abs(x))
    return np.where(x < 0.5, np.where(x > -1, 1 - _erf_near(x), 2 - far), far)


def _erfinv(x: Doubles) -> Doubles:
    """A polynomial, and a step of Halley's method."""
    size = np.abs(x)
    w = -np.log((1 - size) * (1 + size))
    first = size * np.where(w < 5, _polynomial(w, ERFINV_NEAR), _polynomial(np.sqrt(w) - 4, ERFINV_FAR))
    above = np.where(size < 0.6, _erf_near(first) - size, (1 - size) - _erfc_far(first))
    step = above * HALF_ROOT_PI * np.exp(first * first)
    found = np.where(size == 1, np.inf, first - step / (1 + first * step))
    signed: Doubles = np.copysign(found, x)
    return signed


_WIDE = {"erf": _erf, "erfc": _erfc, "erfinv": _erfinv}


# --- complex numbers


def expm1(a: NDArray) -> NDArray:
    """exp(a) - 1; of complex numbers expm1(x)*cos(y) - 2*sin(y/2)**2 + i exp(x)*sin(y) near 0."""
    if a.dtype.kind != "c":
        return np.asarray(np.expm1(a))
    wide = a.astype(np.complex128)
    whole, x, y = np.exp(wide), wide.real, wide.imag
    half = np.sin(y / 2)
    near = np.expm1(x) * np.cos(y) - 2 * half * half
    return _complex(np.where(y == 0, np.expm1(x), np.where(np.abs(x) < 1, near, whole.real - 1)), whole.imag, a.dtype)


def log1p(a: NDArray) -> NDArray:
    """log(1 + a); of complex numbers log1p(x*(2 + x) + y*y)/2 + i atan2(y, 1 + x) near 0."""
    if a.dtype.kind != "c":
        return np.asarray(np.log1p(a))
    wide = a.astype(np.complex128)
    x, y = wide.real, wide.imag
    whole = np.log(_complex(1 + x, y, wide.dtype))
    small = np.maximum(np.abs(x), np.abs(y)) < 0.5
    near = np.log1p(np.where(small, x * (2 + x) + y * y, 0)) / 2
    return _complex(np.where(small, near, whole.real), whole.imag, a.dtype)


def _complex(real: Doubles, imag: Doubles, dtype: np.dtype[Any]) -> NDArray:
    result = np.empty(np.shape(real), dtype)
    result.real, result.imag = real, imag
    return result
