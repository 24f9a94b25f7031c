"""Elementwise work on operands that lie across each other, by transposed tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp

SIZES = st.sampled_from([0, 1, 3, 15, 16, 17, 31, 32, 33, 48, 63, 65, 100, 129])
# Bytes from which on a matrix is transposed.
MUCH = 512 << 10
DTYPES = ["?", "i1", "u2", "f2", "i4", "u4", "f4", "i8", "f8", "c8", "c16"]


def is_turned(function, *given) -> bool:
    return "tile0" in harp.jit(function).lower(*given).loops


def numbers(shape, dtype="f8", seed=0):
    return (100 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


transposed = harp.jit(lambda x: hnp.transpose(x))


@settings(max_examples=100)
@given(st.sampled_from(DTYPES), SIZES, st.integers(-1, 130), st.booleans())
def test_transposes_of_all_dtypes(dtype, n, more, wide):
    m = -(-MUCH // (max(n, 16) * np.dtype(dtype).itemsize)) + more
    x = numbers((n, m) if wide else (m, n), dtype)
    np.testing.assert_array_equal(np.asarray(transposed(x)), x.T)
    assert transposed.compilations <= len(DTYPES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_four_and_eight_bytes_are_turned_over(dtype):
    x = numbers((3, 4), dtype)
    assert is_turned(lambda x: hnp.transpose(x), x) == (x.itemsize in (4, 8)), "there are squares of these"
    assert not is_turned(lambda x: x[::-1], x)


def test_bits_are_moved_as_they_are():
    odd = np.array([0x7F800001, 0xFFC00001, 0x80000000, 1, 0x7FC00000], np.uint32)
    x = np.resize(odd, (400, 337)).view(np.float32)
    np.testing.assert_array_equal(np.asarray(transposed(x)).view(np.uint32), x.T.copy().view(np.uint32))


MIXED = {
    "with another one": (lambda x, y: x.T * 2 + y, True),
    "flipped": (lambda x, y: x[::-1].T - y, True),
    "flipped along it": (lambda x, y: x[:, ::-1].T - y, False),
    "every third": (lambda x, y: x[::3].T - y[:, ::3], True),
    "sliced": (lambda x, y: (x[1:-1, 2:].T - y[2:, 1:-1]) * x[2:, 2:].T, True),
    "twice": (lambda x, y: (x.T + y, x.T * x[::-1].T), True),
    "by row and by column": (lambda x, y: x.T * x[:, 0] + y[:, :1], True),
    "padded": (lambda x, y: hnp.pad(x, 1).T[:-2, :-2] + y, True),
    "with positions": (lambda x, y: x.T * hnp.arange(x.shape[0]) + hnp.arange(x.shape[1])[:, None], True),
    "gathered": (lambda x, y: x.T + y[:, hnp.arange(x.shape[0])[::-1]], True),
}
compiled = {name: harp.jit(f) for name, (f, _) in MIXED.items()}


@pytest.mark.parametrize("name", MIXED)
def test_with_other_operands(name):
    _, transposed = MIXED[name]
    assert ("tile0" in compiled[name].lower(numbers((4, 5)), numbers((5, 4))).loops) == transposed
    for n, m in [(4, 5), (3, 90), (70, 3), (16, 4200), (1100, 64), (300, 257)]:
        x, y = numbers((n, m)), numbers((m, n), seed=1)
        found, wanted = compiled[name](x, y), _by_numpy(name, x, y)
        for a, b in zip(_flat(found), _flat(wanted), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-13, atol=1e-12)
    assert compiled[name].compilations == 1


def _by_numpy(name, x, y):
    x1, columns, rows = np.pad(x, 1), np.arange(x.shape[0]), np.arange(x.shape[1])[:, None]
    return {
        "with another one": lambda: x.T * 2 + y,
        "flipped": lambda: x[::-1].T - y,
        "flipped along it": lambda: x[:, ::-1].T - y,
        "every third": lambda: x[::3].T - y[:, ::3],
        "sliced": lambda: (x[1:-1, 2:].T - y[2:, 1:-1]) * x[2:, 2:].T,
        "twice": lambda: (x.T + y, x.T * x[::-1].T),
        "by row and by column": lambda: x.T * x[:, 0] + y[:, :1],
        "padded": lambda: x1.T[:-2, :-2] + y,
        "with positions": lambda: x.T * columns + rows,
        "gathered": lambda: x.T + y[:, ::-1],
    }[name]()


def _flat(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("axes", [(0, 2, 1), (1, 2, 0), (2, 0, 1), (2, 1, 0), (1, 0, 2)])
def test_three_axes(axes):
    f = harp.jit(lambda x, axes=axes: hnp.permute_dims(x, axes) + 1)
    for shape in [
        (0, 3, 4),
        (1, 1, 1),
        (2, 9, 33),
        (40, 3, 17),
        (17, 40, 3),
        (20, 90, 75),
        (3, 390, 350),
        (350, 3, 390),
    ]:
        x = numbers(shape, "f4")
        np.testing.assert_array_equal(np.asarray(f(x)), np.transpose(x, axes) + 1)
    assert f.compilations == 1


def test_known_sizes():
    f = harp.jit(lambda x: x.T + 1, signature=harp.f32["n", 3])
    assert "tile0" not in f.lower(numbers((50, 3), "f4")).loops, "three columns are not worth it"
    for shape in [(40, 50), (400, 350)]:
        g, x = harp.jit(lambda x: x.T + 1, signature=harp.f32[shape]), numbers(shape, "f4")
        assert ("tile0" in g.lower(x).loops) == (x.nbytes >= MUCH), "what fits into a cache stays as it is"
        np.testing.assert_array_equal(np.asarray(g(x)), x.T + 1)


def test_donated_memory_is_not_written_before_it_is_read():
    f = harp.jit(lambda x, y: x.T + y, donate_argnums=(0, 1))
    x, y = numbers((300, 300)), numbers((300, 300), seed=1)
    np.testing.assert_array_equal(np.asarray(f(hnp.array(x), hnp.array(y))), x.T + y)


def test_gradients_and_threads():
    f = harp.grad(lambda x, y: hnp.sum(hnp.sin(x.T) * y))
    x, y = numbers((300, 250)), numbers((250, 300), seed=1)
    for threads in (1, 3):
        np.testing.assert_allclose(np.asarray(harp.jit(f, threads=threads)(x, y)), np.cos(x) * y.T, rtol=1e-12)


def test_rows_that_the_loop_chooses_stay_where_they_are():
    """Which column is read is known inside the loop only, so that no tile can be transposed before it."""
    f = harp.jit(lambda x, i, y: x.T[hnp.arange(x.shape[1])[:, None], i * 2 // 2] + y)
    rng = np.random.default_rng(0)
    x, i, y = rng.random((300, 500)), rng.integers(0, 300, (500, 300)), rng.random((500, 300))
    np.testing.assert_array_equal(np.asarray(f(x, i, y)), np.take_along_axis(x.T, i, 1) + y)
