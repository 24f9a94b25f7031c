"""The error function and its kin by NumPy, against libm and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

from harp.trace.scalar import special

REFERENCES = {
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "erfinv": scipy.special.erfinv,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REFERENCES)
def test_within_a_few_units_in_the_last_place(name, dtype):
    rng = np.random.default_rng(0)
    inside = np.concatenate([rng.uniform(-1, 1, 4000), 1 - 10.0 ** rng.uniform(-15, -1, 1000), [0.5, 0.6, -0.5, -0.6]])
    outside = np.concatenate([rng.uniform(-30, 30, 4000), [-1.0, 1.0, 28.0]])
    spread = 10.0 ** rng.uniform(-300, 0, 500)
    x = np.concatenate([inside, spread, *([outside] if name != "erfinv" else [])]).astype(dtype)
    with np.errstate(all="ignore"):  # as the evaluator has it
        got, expected = getattr(special, name)(x), REFERENCES[name](x.astype(np.float64))
    assert got.dtype == x.dtype
    info = np.finfo(dtype)
    finite = np.isfinite(expected)
    error = np.abs(got[finite].astype(np.float64) - expected[finite])
    assert (error <= 5 * float(info.eps) * np.abs(expected[finite]) + float(info.smallest_subnormal)).all()


def test_special_values():
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0])
    with np.errstate(all="ignore"):
        for name, reference in REFERENCES.items():
            got, expected = getattr(special, name)(x), reference(x)
            np.testing.assert_allclose(got, expected, rtol=1e-15)
            known = ~np.isnan(expected)
            signs = np.signbit(x if name == "erfinv" else expected)  # SciPy's erfinv(-0.0) is 0.0
            np.testing.assert_array_equal(np.signbit(got[known]), signs[known])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype):
    """Near 0 against more digits, elsewhere and at infinities and NaN against exp(z) - 1 and log(1 + z)."""
    rng = np.random.default_rng(0)
    z = (rng.normal(size=2000) + 1j * rng.normal(size=2000)) * 10.0 ** rng.uniform(-18, 1, 2000)
    z = z.astype(dtype)
    wide, eps = z.astype(np.clongdouble), np.finfo(dtype).eps
    ends = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    corners = np.array([complex(a, b) for a in ends for b in ends], dtype)
    with np.errstate(all="ignore"):
        series = wide + wide**2 / 2 + wide**3 / 6 + wide**4 / 24
        expected = np.where(np.abs(z) < 1e-4, series, np.exp(wide) - 1)
        assert (np.abs(special.expm1(z) - expected) <= 4 * eps * np.abs(expected)).all()
        series = wide - wide**2 / 2 + wide**3 / 3 - wide**4 / 4
        expected = np.where(np.abs(z) < 1e-4, series, np.log(1 + wide))
        assert (np.abs(special.log1p(z) - expected) <= 4 * eps * np.abs(expected)).all()
        np.testing.assert_allclose(special.expm1(corners), np.exp(corners) - 1, rtol=4 * eps)
        above = corners.copy()
        above.real += 1  # 1 + corners would lose the sign of a zero
        np.testing.assert_allclose(special.log1p(corners), np.log(above), rtol=4 * eps)
