"""Creation against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp.numpy as hnp
from harp.errors import ArgumentError, IntegerRangeError, ShapeError, UnsupportedDTypeError
from harp.trace.scalar import dtypes
from harp.trace.trees import flatten

DTYPES = [d.numpy for d in dtypes.ALL]


def same(result, expected):
    np.testing.assert_array_equal(np.asarray(result), expected, strict=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), 0, 3, (2, 0), [1, 2]])
def test_constants(shape, dtype):
    same(hnp.zeros(shape, dtype), np.zeros(shape, dtype))
    same(hnp.ones(shape, dtype), np.ones(shape, dtype))
    same(hnp.full(shape, 1, dtype), np.full(shape, 1, dtype))
    assert hnp.empty(shape, dtype).dtype == dtype
    x = np.ones(shape, dtype)
    same(hnp.zeros_like(x), np.zeros_like(x))
    same(hnp.ones_like(x, "float32"), np.ones_like(x, "float32"))
    same(hnp.full_like(x, 0), np.full_like(x, 0))
    assert hnp.empty_like(x).shape == x.shape


@pytest.mark.parametrize("value", [True, 3, 2.5, np.float32(1), np.array([1, 2, 3], "int8")])
def test_full(value):
    same(hnp.full((2, 3), value), np.full((2, 3), value))


def test_defaults():
    same(hnp.zeros(2), np.zeros(2))
    same(hnp.ones(2), np.ones(2))


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
def test_arange_of_integers(start, stop, step):
    same(hnp.arange(start, stop, step), np.arange(start, stop, step))
    same(hnp.arange(stop), np.arange(stop))
    same(hnp.arange(start, stop, step, "float32"), np.arange(start, stop, step, "float32"))


@pytest.mark.parametrize("args", [(2.5,), (0, 1, 0.1), (1.0, 0.0, -0.25), (0.0, 1), (1, 0, 0.5), (0, 1, 0.3)])
def test_arange_of_floats(args):
    same(hnp.arange(*args), np.arange(*args))


@pytest.mark.parametrize("args", [(0, 5, 0), (0.0, 5.0, 0.0), (0, np.inf), (np.ones(2),)])
def test_arange_errors(args):
    with pytest.raises(ArgumentError):
        hnp.arange(*args)


@pytest.mark.parametrize("num", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (-3.5, 2), (1.0, 1.0), (5, -5), (0.1, 0.7)])
def test_linspace(start, stop, num, endpoint):
    result = np.asarray(hnp.linspace(start, stop, num, endpoint))
    expected = np.linspace(start, stop, num, endpoint)
    np.testing.assert_allclose(result, expected, rtol=1e-15, atol=1e-15)
    assert result.dtype == expected.dtype
    if num > 1 and endpoint:
        assert result[0] == start and result[-1] == stop


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (2, 4), (4, 2), (0, 3)])
@pytest.mark.parametrize("k", [0, 1, -1, 5])
def test_matrices(shape, k, dtype):
    same(hnp.eye(*shape, k=k, dtype=dtype), np.eye(*shape, k=k, dtype=dtype))
    same(hnp.tri(*shape, k=k, dtype=dtype), np.tri(*shape, k=k, dtype=dtype))
    same(hnp.identity(shape[0], dtype), np.identity(shape[0], dtype))
    if len(shape) == 2:
        for x in (np.ones(shape, dtype), np.arange(2 * shape[0] * shape[1]).reshape(2, *shape).astype(dtype)):
            same(hnp.tril(x, k), np.tril(x, k))
            same(hnp.triu(x, k), np.triu(x, k))


def test_triangles_keep_what_is_not_finite_out():
    x = np.full((2, 2), np.nan)
    same(hnp.tril(x), np.array([[np.nan, 0], [np.nan, np.nan]]))
    with pytest.raises(ShapeError):
        hnp.tril(np.zeros(3))


VALUES = [1, 2.5, True, [], [1, 2], [[1, 2], [3, 4.5]], (1, True), [[], []], np.arange(3), np.int8(3)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("dtype", [None, "float32", "int16", np.bool_])
def test_asarray(value, dtype):
    same(hnp.asarray(value, dtype), np.asarray(value, dtype))
    same(hnp.array(value, dtype), np.array(value, dtype))


def test_lists_of_arrays():
    same(hnp.asarray([hnp.arange(2), [3, 4]]), np.array([[0, 1], [3, 4]]))
    same(hnp.asarray([[hnp.sum(1.5), 2], [3, 4]]), np.array([[1.5, 2], [3, 4]]))


def test_an_array_is_copied():
    x = np.zeros(2)
    y = hnp.asarray(x)
    x[0] = 1
    same(y, np.zeros(2))
    assert hnp.asarray(y) is y


def test_arrays_do_not_take_other_dtypes():
    # what went through asarray is an array: it widens
    assert (hnp.asarray(1.0) * hnp.ones(2, "float32")).dtype == np.float64


def test_errors():
    with pytest.raises(ShapeError):
        hnp.asarray([[1, 2], [3]])
    with pytest.raises(UnsupportedDTypeError):
        hnp.asarray(["a"])
    with pytest.raises(UnsupportedDTypeError):
        hnp.asarray(np.ones(1, "g"))
    with pytest.raises(ArgumentError):
        hnp.asarray("a")
    with pytest.raises(ShapeError, match="negative"):
        hnp.zeros((2, -1))
    with pytest.raises(ShapeError, match="not an integer"):
        hnp.zeros(2.5)
    with pytest.raises(IntegerRangeError):
        hnp.full(2, 300, "int8")


def test_result_type():
    assert hnp.result_type("int8", np.ones(2, "uint8"), 3) == np.int16
    assert hnp.result_type(hnp.float32, 2.0) == np.float32
    assert hnp.result_type(1, 2.0) == np.float64
    with pytest.raises(ArgumentError):
        hnp.result_type()


def test_integers_that_do_not_fit():
    for values, dtype in (
        (300, "u1"),
        ([300], "u1"),
        (-1, "u8"),
        ([[2**70]], None),
        (2**70, None),
        ([2**63], "i8"),
        ([2**63, 1], "i8"),
    ):
        with pytest.raises(IntegerRangeError, match="fit") as caught:
            hnp.asarray(values, dtype)
        assert __file__ in str(caught.value)
    assert hnp.asarray([2**70, 1], "f8").tolist() == [2.0**70, 1.0] and hnp.asarray(2**70, "f8").item() == 2.0**70
    assert hnp.asarray(2**63, "u8").item() == hnp.asarray([2**63]).tolist()[0] == 2**63
    assert hnp.asarray([[2**64 - 1], [5]], "u8").tolist() == [[2**64 - 1], [5]]  # NumPy's common dtype is float64
    assert hnp.asarray((2**63, 2**63 - 1), "u8").tolist() == [2**63, 2**63 - 1]
    with pytest.raises(IntegerRangeError, match=r"2\*\*2000 or so"):
        np.ones(2) * hnp.asarray(1.0) * 2**2000


def test_lists_that_hold_themselves():
    endless: list[object] = []
    endless.append(endless)
    deep: list[object] = [1.0]
    for _ in range(2000):
        deep = [deep]
    mixed: list[object] = [hnp.ones(1)]
    mixed.append(mixed)
    for values in (endless, deep, mixed):
        with pytest.raises(ArgumentError, match="nested"):
            hnp.asarray(values)
        with pytest.raises(ArgumentError, match="nested"):
            flatten(values)


def test_numbers_that_are_none():
    for call in (
        lambda: hnp.arange("a"),
        lambda: hnp.arange(0.0, 2**2000),
        lambda: hnp.arange(None, 1j),
    ):
        with pytest.raises(ArgumentError, match="arange takes numbers") as caught:
            call()
        assert __file__ in str(caught.value)
    with pytest.raises(IntegerRangeError):
        hnp.pad(np.ones(2, np.uint8), 1, constant_values=300)
