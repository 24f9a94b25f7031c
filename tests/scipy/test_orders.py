"""Bessel functions of integer orders and spherical harmonics, against SciPy's and 40 digits, and their derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.special as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError
from harp.scipy import special
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
POINTS = np.concatenate([10 ** RNG.uniform(-8, 5, 30), RNG.uniform(-60, 60, 30), [0.0, 1.0, 5.0, 50.0]])


@pytest.mark.parametrize("v", [0, 1, 5, 50])
def test_bessel_functions(v):
    """To the last digits of 1, and those above |z|, which may be tiny, of themselves."""
    found = np.asarray(special.bessel_jn(POINTS, v=v))
    with mpmath.workdps(40):
        exact = np.array([[float(mpmath.besselj(k, mpmath.mpf(float(z)))) for z in POINTS] for k in range(v + 1)])
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-15)
    small = (np.arange(v + 1)[:, None] > np.abs(POINTS)) & (np.abs(exact) > 1e-300)
    np.testing.assert_allclose(found[small], exact[small], rtol=1e-14)


def test_bessel_functions_in_programs():
    program = harp.jit(lambda z: special.bessel_jn(z, v=6))
    for n in (0, 1, 5):
        z = RNG.uniform(-9, 9, (n, 2))
        np.testing.assert_allclose(program(z), truth.jv(np.arange(7)[:, None, None], z), atol=1e-14)
    assert program.compilations == 1
    batched = harp.vmap(lambda z: special.bessel_jn(z, v=3))(z)
    np.testing.assert_allclose(batched, np.moveaxis(special.bessel_jn(z, v=3), 0, 1), atol=1e-15)
    assert special.bessel_jn(np.float32(2), v=2, n_iter=10).dtype == "float32"
    check_grads(lambda z: special.bessel_jn(z, v=4), (np.array([0.3, -2.0, 7.5, 4.0, 0.0]),), 2)
    with pytest.raises(ArgumentError, match="v of bessel_jn is 0 or more, not -1"):
        special.bessel_jn(z, v=-1)
    with pytest.raises(DTypeError):
        special.bessel_jn(1j, v=1)


DEGREES, ORDERS = (a.ravel() for a in np.meshgrid(np.arange(7), np.arange(-8, 9)))


def test_spherical_harmonics():
    for theta, phi in ((0.3, 1.0), (2.5, -2.0), (0.0, 0.5), (np.pi, 0.1), (-0.4, 0.7), (4.0, 0.2)):
        found = special.sph_harm_y(DEGREES, ORDERS, theta, phi)
        np.testing.assert_allclose(found, truth.sph_harm_y(DEGREES, ORDERS, theta, phi), atol=1e-14)
    n, m = np.array([50, 100, 200, 86, -1]), np.array([30, -99, 0, 85, 0])
    np.testing.assert_allclose(special.sph_harm_y(n, m, 1.1, 0.3), truth.sph_harm_y(n, m, 1.1, 0.3), atol=1e-14)
    assert special.sph_harm_y(n, m, np.float32(1), np.float32(2)).dtype == "complex64"
    for call in (lambda: special.sph_harm_y(1.0, 1, 0.0, 0.0), lambda: special.sph_harm_y(1, 1, 1j, 0.0)):
        with pytest.raises(DTypeError):
            call()
    with pytest.raises(ArgumentError, match="take harp"):
        special.sph_harm_y(1, 1, 0.0, 0.0, diff_n=1)


def test_spherical_harmonics_in_programs():
    """Degrees are data: one program."""
    program = harp.jit(lambda n, m, theta: special.sph_harm_y(n, m, theta, 0.4, n_max=5))
    for n, m in ((DEGREES, ORDERS), (DEGREES[:0], ORDERS[:0]), (np.array([20]), np.array([3]))):
        np.testing.assert_allclose(program(n, m, 0.7), truth.sph_harm_y(n, m, 0.7, 0.4), atol=1e-14)
    assert program.compilations == 1
    slope = harp.jit(harp.grad(lambda theta, n: hnp.real(special.sph_harm_y(n, 1, theta, 0.2))))(0.7, 3)
    ends = [truth.sph_harm_y(3, 1, 0.7 + h, 0.2).real for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-8)
    check_grads(lambda *angles: special.sph_harm_y(DEGREES, ORDERS, *angles), (0.7, 1.1), 1)
    batched = harp.vmap(lambda n: special.sph_harm_y(n, 1, 0.7, 0.4))(np.arange(5))
    np.testing.assert_allclose(batched, truth.sph_harm_y(np.arange(5), 1, 0.7, 0.4), atol=1e-15)
