"""Fourier transforms: NumPy's numbers for all lengths by one program, and derivatives of all orders."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError
from harp.transforms.jit import programs

RNG = np.random.default_rng(33)
REAL = ("rfft", "ihfft")
fft = hnp.fft
ONE = [f.__name__ for f in (fft.fft, fft.ifft, fft.rfft, fft.irfft, fft.hfft, fft.ihfft)]
OF_TWO = [f.__name__ for f in (fft.fft2, fft.ifft2, fft.rfft2, fft.irfft2)]
OF_ALL = [f.__name__ for f in (fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn)]
SEVERAL = [*OF_TWO, *OF_ALL]
NORMS = (None, "backward", "ortho", "forward")


def numbers(dtype, *shape):
    a = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else 0)
    return (10 * a.real).astype(dtype) if np.dtype(dtype).kind in "iub" else a.astype(dtype)


def close(found, expected):
    found = np.asarray(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = 100 * np.finfo(expected.dtype).eps
    npt.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * (1 + np.abs(expected).max(initial=0)))


def both(function):
    """It, and compiled."""
    return function, harp.jit(function)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i4", "?"])
@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_numbers_are_numpys_for_all_lengths_by_one_program(name, dtype):
    if np.dtype(dtype).kind == "c" and name in (*REAL, "rfft2", "rfftn"):
        pytest.skip("takes real numbers")
    for f in both(getattr(hnp.fft, name)):
        for shape in ((3, 8), (2, 5), (4, 97), (1, 2), (0, 4), (5, 64)):
            if shape[0] == 0 and name in SEVERAL:
                continue  # a transform of no numbers
            x = numbers(dtype, *shape)
            expected = getattr(np.fft, name)(x.astype("f8") if np.dtype(dtype).kind in "ib" else x)
            close(f(x), expected)
        assert getattr(f, "compilations", 1) == 1


@pytest.mark.parametrize("name", ONE)
def test_lengths_axes_and_norms(name):
    """By one program; each length and each axis meets several norms."""
    x = numbers("f8", 6, 5, 4)
    pairs = [(n, axis) for n in (None, 1, 3, 4, 9) for axis in (0, 1, -1)]
    cases = [(*pair, NORMS[k % len(NORMS)]) for k, pair in enumerate(pairs)]

    def each(library, x):
        return [getattr(library.fft, name)(x, *case) for case in cases]

    for f in both(partial(each, hnp)):
        for found, expected in zip(f(x), each(np, x), strict=True):
            close(found, expected)


@pytest.mark.parametrize("name", OF_ALL)
def test_several_axes(name):
    x = numbers("f8", 4, 5, 6)
    for s, axes in ((None, (0, 2)), ((3, 8), (2, 0)), ((7, -1), (1, 2)), ((6, 6), (0, 1)), (None, (1, 1))):
        for f in both(partial(getattr(hnp.fft, name), s=s, axes=axes, norm="ortho")):
            close(f(x), getattr(np.fft, name)(x, s, axes, "ortho"))
    close(getattr(hnp.fft, name)(x, 3, 1), getattr(np.fft, name)(x, (3,), (1,)))


def test_no_axes():
    x = numbers("c16", 2, 3)
    close(hnp.fft.fftn(x, axes=()), x)


@given(st.integers(1, 300), st.sampled_from(["f8", "f4", "c16", "c8"]), st.integers(0, 3))
def test_any_length_and_batch(n, dtype, batch):
    x = numbers(dtype, batch, n)
    close(FFT(x), np.fft.fft(x))
    close(BACK(x), np.fft.irfft(x, n))


FFT = harp.jit(hnp.fft.fft)
BACK = harp.jit(lambda x: hnp.fft.irfft(x, x.shape[-1]))


def test_there_and_back_is_one_program_for_even_and_odd_lengths():
    f = harp.jit(lambda x: hnp.fft.irfft(hnp.fft.rfft(x), x.shape[-1]))
    for n in (1, 2, 5, 8, 9):
        x = numbers("f8", 3, n)
        npt.assert_allclose(f(x), x, atol=1e-14)
    assert f.compilations == 1


@pytest.mark.parametrize("name", [f.__name__ for f in (fft.fftfreq, fft.rfftfreq)])
def test_frequencies(name):
    for n in (1, 2, 7, 8):
        for f in (getattr(hnp.fft, name), harp.jit(getattr(hnp.fft, name), static_argnums=0)):
            close(f(n, 0.3), getattr(np.fft, name)(n, 0.3))
    f = harp.jit(lambda x: getattr(hnp.fft, name)(x.shape[0], 0.5, dtype="float32"))
    for n in (1, 2, 7, 8):
        close(f(np.ones(n)), getattr(np.fft, name)(n, 0.5).astype("f4"))
    assert f.compilations == 1


@pytest.mark.parametrize("name", [f.__name__ for f in (fft.fftshift, fft.ifftshift)])
def test_shifts(name):
    x = numbers("f8", 4, 5, 6)
    for axes in (None, 0, (1, 2), -1):
        for f in both(partial(getattr(hnp.fft, name), axes=axes)):
            npt.assert_array_equal(f(x), getattr(np.fft, name)(x, axes))


@pytest.mark.parametrize("n", [1, 4, 5])
@pytest.mark.parametrize("name", ONE)
def test_derivatives_of_both_modes_and_orders_are_the_slopes(name, n):
    """In the real and imaginary parts of what is transformed, also cut and filled up."""
    f, is_real = getattr(hnp.fft, name), name in REAL
    weights = RNG.normal(size=(2, 2, 9))

    def loss(x, y):
        z = f(x if is_real else x + 1j * y, n)
        w = weights[:, :, : z.shape[-1]]
        return hnp.sum(w[0] * hnp.real(z) ** 3) + hnp.sum(w[1] * hnp.imag(z) ** 2)

    point, u, v = ([RNG.normal(size=(2, 4)) for _ in "xy"] for _ in range(3))

    def slope(x, y):
        return sum(hnp.sum(g * d) for g, d in zip(harp.grad(loss, (0, 1))(x, y), u, strict=True))

    for function, along in ((loss, u), (slope, v)):
        ahead, back = (function(*[p + s * d for p, d in zip(point, along, strict=True)]) for s in (1e-5, -1e-5))
        expected = (float(ahead) - float(back)) / 2e-5
        for wrapped in both(function):
            gradient = harp.grad(wrapped, (0, 1))(*point)
            found = sum(float(np.sum(np.asarray(g) * d)) for g, d in zip(gradient, along, strict=True))
            npt.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
            npt.assert_allclose(harp.jvp(wrapped, tuple(point), tuple(along))[1], expected, rtol=1e-6, atol=1e-6)


def test_batches_by_vmap():
    x = numbers("c16", 3, 4, 8)
    for f in both(harp.vmap(lambda row: hnp.fft.irfft(row, 7, axis=0), in_axes=1, out_axes=1)):
        npt.assert_allclose(f(x), np.fft.irfft(x, 7, axis=0), atol=1e-14)


def test_without_the_loops_of_numpy_programs_call_python(monkeypatch):
    monkeypatch.setattr(programs.lapack, "is_there", lambda: False)
    for name in ONE:
        f = harp.jit(lambda x, name=name: getattr(hnp.fft, name)(x, 6) + 1)
        x = numbers("f8", 2, 3, 5)
        close(f(x), getattr(np.fft, name)(x, 6) + 1)


def test_what_is_refused():
    x = np.ones((2, 3))
    with pytest.raises(ArgumentError, match="n of fft is 1 or more"):
        hnp.fft.fft(x, 0)
    with pytest.raises(ArgumentError, match="n of rfft is a size"):
        hnp.fft.rfft(x, 1.5)
    with pytest.raises(ArgumentError, match="norm is 'backward'"):
        hnp.fft.fft(x, norm="max")
    with pytest.raises(ArgumentError, match="rfft takes real numbers"):
        hnp.fft.rfft(x + 1j)
    with pytest.raises(AxisError):
        hnp.fft.fft(x, axis=2)
    with pytest.raises(AxisError):
        hnp.fft.fftshift(x, 5)
    with pytest.raises(ArgumentError, match="3 lengths for 1 axis"):
        hnp.fft.fftn(x, (1, 2, 3), (0,))
    with pytest.raises(ArgumentError, match="rfftn needs an axis"):
        hnp.fft.rfftn(x, axes=())
    for f in both(hnp.fft.fft):
        with pytest.raises(harp.errors.HarpError, match=r"transform of (no|0) numbers"):
            f(np.ones((2, 0)))
