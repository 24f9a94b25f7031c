"""Arrays of what stands in brackets, and what an array is, against NumPy; in one program for all sizes."""

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError

GRIDS = {
    "one axis": lambda xp, n, x: [xp.mgrid[0:n], xp.mgrid[n:0:-1], xp.ogrid[1:n]],
    "two axes": lambda xp, n, x: [xp.mgrid[0:n, 1:3], *xp.ogrid[0:n, 1:3]],
    "three axes": lambda xp, n, x: [xp.mgrid[0:n, :2, 0 : 2 * n : 2], *xp.ogrid[0:n, :2, 0:4]],
    "numbers of points": lambda xp, n, x: [xp.mgrid[0:1:5j], xp.mgrid[0:n:3j, 0:2], *xp.ogrid[0:1:4j, 0:n]],
    "rows": lambda xp, n, x: [xp.r_[x, x], xp.r_[0.5, x, 0:n], xp.r_[1:4], xp.r_[1, 2, 3], xp.r_[0:1:3j, x]],
    "rows of matrices": lambda xp, n, x: xp.r_[x[None], x[None]],
    "columns": lambda xp, n, x: [xp.c_[x, x], xp.c_[x, 0:n], xp.c_[x[:, None], x], xp.c_[x[None], x[None]]],
}


@pytest.mark.parametrize("call", GRIDS.values(), ids=GRIDS)
def test_as_numpy(call):
    compiled = harp.jit(lambda x: call(hnp, x.shape[0], x))
    for n in (2, 3, 6):
        x = np.linspace(-1.0, 2.0, n)
        for wanted, got, at_once in zip(call(np, n, x), compiled(x), call(hnp, n, hnp.asarray(x)), strict=True):
            for g in (got, at_once):
                assert g.dtype == wanted.dtype and g.shape == wanted.shape
                npt.assert_allclose(g, wanted, rtol=1e-15)
    assert compiled.compilations == 1


def test_index_expressions():
    assert hnp.s_[1:3] == np.s_[1:3] and hnp.index_exp[0, ...] == np.index_exp[0, ...] and hnp.index_exp[1] == (1,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hnp.mgrid[3], "mgrid takes slices"),
        (lambda: hnp.ogrid[0:], "a slice of ogrid needs its end"),
        (lambda: hnp.r_["0,2", 1], "r_ does not read directives"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        call()
    assert __file__ in str(caught.value)


def test_what_an_array_is():
    for value in (3.0, [1, 2], [[1.0, 2.0, 3.0]], np.ones((2, 3)), ()):
        assert hnp.shape(value) == np.shape(value) and hnp.ndim(value) == np.ndim(value)
        assert hnp.size(value) == np.size(value)
    x = np.ones((2, 3, 4))
    assert hnp.size(x, 1) == 3 and hnp.size(x, axis=(0, 2)) == 8
    with pytest.raises(AxisError):
        hnp.size(x, 3)
    npt.assert_array_equal(hnp.copy([1, 2]), [1, 2])
    assert isinstance(hnp.ones(2), hnp.ndarray) and not isinstance(np.ones(2), hnp.ndarray)
    f = harp.jit(lambda x: x * hnp.size(x) + hnp.shape(x)[0] * hnp.ndim(x) + hnp.size(x, 1))
    for n in (1, 3):
        npt.assert_array_equal(f(np.ones((n, 2))), np.full((n, 2), 2 * n + 2 * n + 2))
    assert f.compilations == 1


DTYPES = [
    *(hnp.float16, hnp.float32, hnp.float64, hnp.complex64, hnp.bool),
    *(hnp.int8, hnp.int64, hnp.uint16),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_make_arrays(dtype):
    for value in (1, 2.7, True, [0, 1, 2], np.arange(3.0)):
        got, wanted = dtype(value), np.asarray(value).astype(dtype)
        assert isinstance(got, harp.Array) and got.dtype == wanted.dtype and not got.weak
        npt.assert_array_equal(got, wanted)
    assert dtype() == 0 and dtype().dtype == dtype.dtype
    traced = harp.jit(lambda x: dtype(x))
    assert traced(np.arange(3.0)).dtype == dtype.dtype


def test_issubdtype():
    kinds = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating]
    for dtype in DTYPES:
        for kind in [*kinds, np.complexfloating]:
            assert hnp.issubdtype(dtype, kind) is bool(np.issubdtype(dtype.dtype, kind)), (dtype, kind)
        assert [hnp.issubdtype(dtype, other) for other in DTYPES] == [other is dtype for other in DTYPES]
    assert hnp.issubdtype(hnp.bfloat16, hnp.floating) and not hnp.issubdtype(hnp.bfloat16, hnp.float16)
    assert hnp.issubdtype(hnp.floating, hnp.number) and not hnp.issubdtype(hnp.number, hnp.floating)
    assert hnp.issubdtype(hnp.ones(2, "float32").dtype, hnp.float32)
    for a in DTYPES:
        for b in DTYPES:
            assert hnp.promote_types(a, b) == np.promote_types(a.dtype, b.dtype)
