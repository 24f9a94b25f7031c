"""Cosine transforms beside SciPy's, and their derivatives."""

import itertools

import numpy as np
import pytest
import scipy.fft as truth
import scipy.integrate

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, ShapeError
from harp.scipy import fft, integrate
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
NORMS = (None, "ortho", "forward", "backward")


@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_along_an_axis(name, type):
    ours, theirs = getattr(fft, name), getattr(truth, name)
    for n, norm, ortho in itertools.product((1, 2, 3, 8), NORMS, (None, True, False)):
        if n > 1 or type > 1:
            x = RNG.normal(size=(2, n))
            found = ours(x, type, norm=norm, orthogonalize=ortho)
            np.testing.assert_allclose(found, theirs(x, type, norm=norm, orthogonalize=ortho), atol=1e-13)
    x = RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3))
    for n, axis in ((None, 0), (3, 0), (7, 0), (5, -1)):
        np.testing.assert_allclose(ours(x, type, n, axis), theirs(x, type, n, axis), atol=1e-13)
    single = ours(x.real.astype("float32"), type)
    assert single.dtype == "float32" and ours(np.arange(4), type).dtype == "float64"
    np.testing.assert_allclose(single, theirs(x.real, type), atol=1e-5)
    assert ours(x.astype("complex64"), type).dtype == "complex64"
    check_grads(lambda x: ours(x, type, 4, norm="ortho"), (x.real,), 1)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_along_several_axes(name):
    ours, theirs = getattr(fft, name), getattr(truth, name)
    x = RNG.normal(size=(3, 4, 2))
    for s, axes in ((None, None), ((5, 2), (0, 1)), (None, (0, 2)), ((3, 3), None)):
        for type, norm in ((2, None), (3, "ortho"), (4, "forward")):
            found = ours(x, type, s, axes, norm)
            np.testing.assert_allclose(found, theirs(x, type, s, axes, norm), atol=1e-12)
    assert hnp.asarray(ours(x, axes=())).shape == x.shape


def test_one_program_for_all_lengths():
    program = harp.jit(lambda x: [fft.dct(x, type) for type in (2, 3, 4)])
    for n in (1, 2, 5, 6):
        x = RNG.normal(size=(n, n))
        for type, found in zip((2, 3, 4), program(x), strict=True):
            np.testing.assert_allclose(found, truth.dct(x, type), atol=1e-13)
    assert program.compilations == 1
    np.testing.assert_allclose(harp.vmap(fft.dct, 1, 1)(x), truth.dct(x, axis=0), atol=1e-13)


def test_what_is_not_defined():
    x = np.ones(3)
    for call, message in (
        (lambda: fft.dct(x, 5), "type of dct is 1, 2, 3 or 4, not 5"),
        (lambda: fft.idct(x, norm="other"), "norm of idct"),
        (lambda: fft.dct(x, n=0), "1 or more"),
        (lambda: fft.dctn(x, s=(1, 2), axes=(0,)), "2 lengths for 1 axis"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(ShapeError, match="two elements at least"):
        fft.dct(np.ones(1), 1)
    with pytest.raises(ShapeError, match="takes an element"):
        fft.dct(np.ones((2, 0)))
    with pytest.raises(AxisError):
        fft.dct(x, axis=1)


def test_an_integral_of_samples():
    y, x = RNG.normal(size=(3, 4)), np.sort(RNG.normal(size=4))
    np.testing.assert_allclose(integrate.trapezoid(y, x), scipy.integrate.trapezoid(y, x))
    np.testing.assert_allclose(integrate.trapezoid(y, dx=0.5, axis=0), scipy.integrate.trapezoid(y, dx=0.5, axis=0))
