"""Polynomials against NumPy: at once, in one program for all sizes, and what a data-dependent length would be."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors

P, Q = np.array([2.0, -3.0, 0.5, 1.0]), np.array([1.0, 0.5])
T = np.linspace(-1, 2, 9)
Y = np.sin(T) + 0.1 * np.cos(7 * T)

CASES = {
    "polyadd": lambda xp, p, q: [xp.polyadd(p, q), xp.polyadd(q, p), xp.polyadd(p, p[:0]), xp.polyadd(p, 2.0)],
    "polysub": lambda xp, p, q: [xp.polysub(p, q), xp.polysub(q, p)],
    "polymul": lambda xp, p, q: [xp.polymul(p, q), xp.polymul(q, p)],
    "polyder": lambda xp, p, q: [xp.polyder(p, m) for m in (0, 1, 2)],
    "polyint": lambda xp, p, q: [xp.polyint(p), xp.polyint(p, 2, [3.0, -1.0]), xp.polyint(p, 2, 1.5)],
}


def check(found, wanted, tolerance=1e-13):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_at_once(dtype):
    p, q = (P * 2).astype(dtype), (Q * 2).astype(dtype)
    for name, case in CASES.items():
        found, wanted = case(hnp, p, q), case(np, p, q)
        check(found, wanted, 1e-13 if dtype in ("float64", "int64") else 1e-6)
        if dtype != "int64" or name not in ("polyint", "polyadd"):
            assert [f.dtype for f in found][:1] == [np.dtype(dtype)], name


def test_one_program_for_all_sizes():
    program = harp.jit(lambda p, q: [part for case in CASES.values() for part in case(hnp, p, q)])
    for n, m in ((4, 2), (7, 3), (6, 2)):
        p, q = np.arange(n) + 1.0, np.arange(m) + 2.0
        check(program(p, q), [part for case in CASES.values() for part in case(np, p, q)])
    assert program.compilations == 1


@pytest.mark.parametrize("of", ["eager", "jit"])
def test_quotients_and_roots(of):
    run = (lambda f: f) if of == "eager" else harp.jit
    for u, v in ((P, Q), (Q, P), (P, P), (P, Q[:1] * 4)):
        quotient, rest = run(hnp.polydiv)(u, v)
        expected, remainder = np.polydiv(u, v)
        np.testing.assert_allclose(quotient, expected)
        np.testing.assert_allclose(np.asarray(rest)[len(u) - len(remainder) :], remainder, atol=1e-13)
        assert not np.any(np.asarray(rest)[: len(u) - len(remainder)]) and rest.shape == u.shape
    for p in (P, P.astype(complex) * 1j, np.array([1.0, 0, 4]), np.array([1.0, -1, 0, 0])):
        found = np.sort_complex(run(hnp.roots)(p))
        np.testing.assert_allclose(found, np.sort_complex(np.roots(p)), atol=1e-12)
    z = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(run(hnp.poly)(z), np.poly(z))
    np.testing.assert_allclose(run(hnp.poly)(z + 1j), np.poly(z + 1j))
    a = np.array([[2.0, 1.0, 0], [1, 3, 1], [0, 1, 4]])
    np.testing.assert_allclose(run(hnp.poly)(a), np.poly(a), atol=1e-12)


def test_leading_zeros():
    np.testing.assert_allclose(np.sort(np.real(hnp.roots(np.array([0.0, 1, -3, 2])))), [1, 2])
    assert hnp.roots(np.array([3.0])).shape == hnp.roots(np.zeros(2)).shape == (0,)
    with pytest.raises(errors.ShapeError, match="at least one coefficient"):
        hnp.polydiv(P, Q[:0])
    with pytest.raises(errors.ShapeError, match="polyadd needs coefficients of one axis"):
        hnp.polyadd(np.ones((2, 2)), Q)
    with pytest.raises(errors.ArgumentError, match="at least 0"):
        hnp.polyder(P, -1)


def test_fits():
    w = 1 + T**2
    program = harp.jit(lambda t, y, w: (hnp.polyfit(t, y, 3, w=w), *hnp.polyfit(t, y, 2, cov=True)))
    for n in (9, 6):
        found = program(T[:n], Y[:n], w[:n])
        check(found[:1], [np.polyfit(T[:n], Y[:n], 3, w=w[:n])], 1e-9)
        check(found[1:], np.polyfit(T[:n], Y[:n], 2, cov=True), 1e-9)
    assert program.compilations == 1
    both = np.stack([Y, Y**2], 1)
    for found, wanted in zip(hnp.polyfit(T, Y, 2, cov="unscaled"), np.polyfit(T, Y, 2, cov="unscaled"), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert hnp.polyfit(T, both, 2, cov=True)[1].shape == (3, 3, 2)
    for found, wanted in zip(hnp.polyfit(T, both, 2, full=True), np.polyfit(T, both, 2, full=True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert hnp.polyfit(T.astype("float32"), Y.astype("float32"), 2).dtype == np.float32
    with pytest.raises(errors.ShapeError, match="a value for each place"):
        hnp.polyfit(T, Y[1:], 1)
