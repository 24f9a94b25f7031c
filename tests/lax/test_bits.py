"""The bits of numbers in other dtypes, beside NumPy's views of memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import lax

NAMES = "int8 uint8 float8_e4m3fn float8_e5m2 int16 uint16 float16 bfloat16 int32 uint32 float32 int64 uint64 float64"
DTYPES = [np.dtype(getattr(ml_dtypes, name, name)) for name in NAMES.split()]
RNG = np.random.default_rng(0)


def some(dtype, shape):
    """Numbers of any bits, NaN and infinities among them."""
    return RNG.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8).view(dtype).reshape(shape)


def seen(x, dtype):
    if x.dtype.itemsize > dtype.itemsize:
        return x[..., None].view(dtype)
    return x.view(dtype)[..., 0] if x.dtype.itemsize < dtype.itemsize else x.view(dtype)


def same_bits(found, expected):
    found = np.asarray(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


SIZES = [[d for d in DTYPES if d.itemsize == size] for size in (1, 2, 4, 8)]
# Each dtype becomes, and comes from, dtypes of all sizes.
TARGETS = {a: [same[number % len(same)] for same in SIZES] for number, a in enumerate(DTYPES)}
PAIRS = {f"{a} {b}": (a, b) for a in DTYPES for b in TARGETS[a]}
ARRAYS = {
    name: some(a, (3, 4, b.itemsize // a.itemsize) if a.itemsize < b.itemsize else (3, 4))
    for name, (a, b) in PAIRS.items()
}


def test_every_pair_of_sizes():
    def program(arrays):
        return {name: lax.bitcast_convert_type(x, PAIRS[name][1]) for name, x in arrays.items()}

    for found in (program(ARRAYS), harp.jit(program)(ARRAYS)):
        for name, (_, to) in PAIRS.items():
            same_bits(found[name], seen(ARRAYS[name], to))


def test_views_in_a_program():
    arrays = {name: some(a, (3, 16)) for name, (a, _) in PAIRS.items()}
    found = harp.jit(lambda xs: {name: x.view(PAIRS[name][1]) for name, x in xs.items()})(arrays)
    for name, (_, to) in PAIRS.items():
        same_bits(found[name], arrays[name].view(to))


def test_sizes_are_free_and_batches():
    f = harp.jit(lambda x: (lax.bitcast_convert_type(x, "uint16"), x.view("int8")), signature=[harp.f32["n"]])
    for n in (0, 1, 5):
        x = RNG.normal(size=n).astype(np.float32)
        same_bits(f(x)[0], x[:, None].view(np.uint16))
        same_bits(f(x)[1], x.view(np.int8))
    x = some(np.dtype("uint16"), (3, 5, 2))
    same_bits(harp.vmap(lambda a: lax.bitcast_convert_type(a, "float32"), 1)(x), seen(x, np.dtype("f4")).swapaxes(0, 1))
    same_bits(lax.bitcast_convert_type(np.float64(1.5), "int64"), np.float64(1.5).view(np.int64)[()])


def test_derivatives_are_zero():
    def f(x):
        return hnp.sum(lax.bitcast_convert_type(lax.bitcast_convert_type(x, "uint32") ^ 1, "float32") + 2 * x)

    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(harp.grad(f)(x), [2, 2])
    np.testing.assert_array_equal(harp.jvp(f, (x,), (x,))[1], 6)


def test_four_bits():
    x = hnp.asarray([0x21, 0xF7], dtype="uint8")
    parts = lax.bitcast_convert_type(x, "int4")
    np.testing.assert_array_equal(np.asarray(parts).astype(int), [[1, 2], [7, -1]])
    np.testing.assert_array_equal(harp.jit(lambda p: lax.bitcast_convert_type(p, "uint8"))(parts), [0x21, 0xF7])


def test_what_has_no_bits():
    for x, to in ((np.array([True]), "uint8"), (np.ones(2, "c8"), "uint64"), (np.ones(2), "complex128")):
        with pytest.raises(harp.errors.DTypeError, match="take real and imag"):
            lax.bitcast_convert_type(x, to)
    with pytest.raises(harp.errors.ShapeError, match="a last axis of 4"):
        lax.bitcast_convert_type(np.ones(3, np.uint8), "float32")
    with pytest.raises(harp.errors.ShapeError):
        harp.jit(lambda x: x.view("float32"))(np.ones(3, np.uint8))
    with pytest.raises(harp.errors.DTypeError, match="no axis"):
        harp.jit(lambda x: x.view("uint8"))(np.float32(1))
