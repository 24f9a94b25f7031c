"""Functions of complex numbers, integrals with two results, and numbers that are counted: special points, derivatives,
programs. How accurate they are, test_accuracy.py says."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError
from harp.scipy import special
from harp.test_util import check_grads

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(0)
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 1e-300, 1e8, -1e305, INF, NAN])


def test_faddeeva():
    z = np.array([0.1, 1j, -1j, 3 - 1j, 1e5 + 1e-3j, -1e200 + 1e200j, 2 - 6j, 5.0, -0.5 + 1e-12j, 26 + 0j])
    np.testing.assert_allclose(special.wofz(z), truth.wofz(z), rtol=1e-13)
    x = RNG.uniform(-9, 9, 50)
    np.testing.assert_allclose(special.wofz(x).real, np.exp(-x * x), rtol=1e-13)  # not only beside the other part
    np.testing.assert_array_equal(special.wofz(np.array([INF, 1j * INF])), [0, 0])
    assert [special.wofz(np.dtype(d).type(1)).dtype for d in ("complex64", "float32", "int64")] == [
        "complex64", "complex64", "complex128",
    ]  # fmt: skip
    check_grads(special.wofz, (np.array([0.1, 4.0, 1j, 3 - 1j, 7 + 2j, -1 - 1j]),), 1)


def test_logarithm_of_gamma():
    z = np.array([-0.5 + 0j, complex(-0.5, -0.0), -3.2 + 1e-9j, 1e5 - 1e5j, 0.3 + 300j, -300.5 - 0.1j])
    np.testing.assert_allclose(special.loggamma(z), truth.loggamma(z), rtol=1e-13)
    assert np.isnan(special.loggamma(np.array([0j, -1 + 0j, -7 + 0j]))).all()
    x = np.array([0.0, 0.5, 3.0, 1e300, INF, -0.5, -INF, NAN])
    np.testing.assert_allclose(special.loggamma(x), truth.loggamma(x))
    assert special.loggamma(np.complex64(1 + 1j)).dtype == "complex64"
    check_grads(special.loggamma, (np.array([0.1 + 0.2j, -3.3 + 1j, 4 - 2j, 20 + 1j, 0.5 + 12j, 2.5]),), 1)
    check_grads(special.loggamma, (np.array([0.1, 2.0, 30.0]),), 2)


@pytest.mark.parametrize("name", ["fresnel", "sici"])
def test_integrals_with_two_results(name):
    function = getattr(special, name)
    x = np.delete(EDGES, [5, 6]) if name == "fresnel" else EDGES  # from 36974 on SciPy has 1/2, or NaN
    for found, expected in zip(function(x), getattr(truth, name)(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)
    check_grads(function, (np.array([0.1, 1.0, 3.9, 4.1, 7.0]),), 2)
    program = harp.jit(lambda x: (function(x), harp.grad(lambda x: hnp.sum(function(x)[0]))(x)))
    for n in (0, 1, 5):
        x = RNG.uniform(-9, 9, n)
        found, slope = program(x)
        for one, other in zip(found, getattr(truth, name)(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
        np.testing.assert_allclose(slope, np.sin(np.pi * x * x / 2) if name == "fresnel" else np.sin(x) / x, rtol=1e-12)
    assert program.compilations == 1
    for one, other in zip(harp.vmap(function)(x), function(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    assert [part.dtype for part in function(np.float32(1))] == ["float32", "float32"]
    with pytest.raises(DTypeError):
        function(1j)


def test_fresnel_integrals_of_large_numbers():
    """In a program as well, where the remainder of the square must not be lost."""
    x = np.array([1e5 + 0.3, 1.2345678e8, 3.0e9 + 0.125, 2.0**60])
    with mpmath.workdps(60):
        angles = [mpmath.pi * mpmath.mpf(float(v)) ** 2 / 2 for v in x]
        exact = [
            [float(sign * wave(a) / (mpmath.pi * float(v))) for a, v in zip(angles, x, strict=True)]
            for sign, wave in ((-1, mpmath.cos), (1, mpmath.sin))
        ]
    for function in (special.fresnel, harp.jit(special.fresnel)):
        for found, expected in zip(function(x), exact, strict=True):
            np.testing.assert_allclose(np.asarray(found) - 0.5, expected, rtol=1e-5, atol=1e-16)


def test_owens_function():
    h, a = (
        e.ravel() for e in np.meshgrid([0, 1.0, -2, INF, -INF, NAN, 50.0], [0, -0.0, 0.5, -2, INF, -INF, NAN, 1e200])
    )
    np.testing.assert_allclose(special.owens_t(h, a), truth.owens_t(h, a), rtol=1e-12)


def test_combinations():
    n, k = (e.ravel() for e in np.meshgrid(np.arange(-1.0, 50), np.arange(-1.0, 50)))
    exact = [float(math.comb(int(a), int(b))) if min(a, b) >= 0 else 0.0 for a, b in zip(n, k, strict=True)]
    found = special.comb(n, k)
    small = np.array(exact) < 2.0**49
    np.testing.assert_array_equal(np.asarray(found)[small], np.array(exact)[small])
    np.testing.assert_allclose(found, exact, rtol=1e-14)
    n, k = np.array([4.0, 10, 2.5, 0, 0, 3, INF]), np.array([2.0, 3, 1.2, 0, 1, 0, 2])
    np.testing.assert_allclose(special.comb(n, k, repetition=True), truth.comb(n, k, repetition=True), rtol=1e-14)
    edges = [special.comb(INF, k) for k in (0.0, 1.0)] + [special.comb(NAN, 0.0), special.comb(1.0, NAN)]
    np.testing.assert_array_equal(edges, [1, INF, NAN, NAN])
    with pytest.raises(ArgumentError, match="comb of arrays is a float"):
        special.comb(5, 2, exact=True)


def test_powers_of_zero_and_of_numbers_whose_powers_overflow():
    x, power = np.array([0.0, 0.0, 2.0, 1e300, 1e-300]), np.array([0.5, -1.0, 1023.9, 1.02, -1.02])
    for name, given in (("boxcox", x), ("boxcox1p", x - 1)):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                getattr(special, name)(given, power)[:4], getattr(truth, name)(given, power)[:4], rtol=1e-12
            )
    np.testing.assert_allclose(special.boxcox(x[4], power[4]), -np.exp(-1.02 * np.log(1e-300)) / 1.02, rtol=1e-12)
    check_grads(special.boxcox, (np.array([0.1, 2.0]), np.zeros(2)), 3)  # of the power at 0


def test_bernoulli_numbers():
    numbers = special.bernoulli(262)
    exact = [float(mpmath.bernoulli(k)) for k in range(259)]
    exact[1] = -0.5
    np.testing.assert_allclose(numbers[:259], exact, rtol=1e-15)
    np.testing.assert_array_equal(numbers[259:], [0, -INF, 0, INF])
    program = harp.jit(lambda x: special.bernoulli(x.shape[0]))
    for n in (0, 1, 300):
        np.testing.assert_array_equal(program(np.zeros(n))[:259], numbers[: min(n + 1, 259)])
    assert program.compilations == 1
    with pytest.raises(ArgumentError, match="n of bernoulli is 0 or more, not -1"):
        special.bernoulli(-1)
