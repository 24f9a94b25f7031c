"""`Array` outside a trace: NumPy's operators and conversions, and nothing that changes it."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, MutationError, OutOfMemoryError, ShapeError
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.scalar.dtypes import ALL, bool_, f32
from harp.trace.tracer import trace

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
BITS = [operator.and_, operator.or_, operator.xor]
SHIFTS = [operator.lshift, operator.rshift]
REAL = [d for d in ALL if not d.is_complex and not d.is_stored]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]


def same(result, expected):
    assert isinstance(result, Array)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected), strict=True)


def operands(dtype):
    if dtype.is_float:
        values = np.array([0.0, -0.0, 1.5, -2.0, np.nan, np.inf, 3.0], dtype.numpy)
        return values, values[::-1].copy()
    if dtype is bool_:
        return np.array([True, True, False, False]), np.array([True, False, True, False])
    a = np.array([7, 3, 0, 5, 100], dtype.numpy)
    return a, np.array([2, 1, 3, 0, 6], dtype.numpy)


def defined(op, dtype):
    if op in BITS or op is operator.invert:
        return not dtype.is_float
    if op in SHIFTS:
        return dtype.is_integer
    if op in COMPARE or op in (operator.add, operator.mul, operator.abs):
        return True
    return dtype is not bool_


PAIRS = [(op, d) for op in (*ARITHMETIC, *BITS, *SHIFTS, *COMPARE) for d in REAL if defined(op, d)]


@pytest.mark.parametrize(("op", "dtype"), PAIRS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_binary_operators(op, dtype):
    a, b = operands(dtype)
    with np.errstate(all="ignore"):
        expected = op(a, b)
        if op is operator.truediv and dtype.itemsize < 4:  # at least float32
            expected = a.astype(np.float32) / b.astype(np.float32)
    same(op(as_array(a), as_array(b)), expected)
    same(op(as_array(a), b), expected)
    same(op(a, as_array(b)), expected)
    same(op(as_array(a)[0], b), op(as_array(a[0]), as_array(b)))


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.__name__)
def test_unary_operators(op):
    for dtype in REAL:
        a, _ = operands(dtype)
        if defined(op, dtype):
            same(op(as_array(a)), op(a))
        else:
            with pytest.raises(DTypeError):
                op(as_array(a))


@pytest.mark.parametrize("scalar", [2, 3, -1, 2.5, True])
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARE], ids=lambda op: op.__name__)
def test_operators_with_python_numbers(op, scalar):
    for dtype in (np.float32, np.float64, np.int32):
        a = np.array([1, 2, 3, 5], dtype)
        if op is operator.pow and scalar == -1 and dtype is np.int32:
            continue  # NumPy raises
        for arguments, wrapped in (((a, scalar), (as_array(a), scalar)), ((scalar, a), (scalar, as_array(a)))):
            expected = np.asarray(op(*arguments))
            if type(scalar) is float and dtype is np.int32 and op not in COMPARE:
                expected = expected.astype(np.float32)
                np.testing.assert_allclose(np.asarray(op(*wrapped)), expected, rtol=1e-6)
                assert op(*wrapped).dtype == np.float32
            else:
                result = op(*wrapped)
                assert result.dtype == expected.dtype
                np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_operators_with_numpy_numbers():
    a = np.arange(3, dtype=np.float32)
    for number in (np.float64(2), np.float32(2), np.int64(2), np.int8(2)):
        same(as_array(a) * number, a * number)
        same(number * as_array(a), number * a)


def test_reflected_matmul():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for result in (as_array(a) @ as_array(b), as_array(a) @ b, a @ as_array(b)):
        same(result, a @ b)


def test_broadcasting():
    a, b = np.arange(3.0).reshape(3, 1), np.arange(4.0)
    same(as_array(a) + as_array(b), a + b)
    same(as_array(a[:0]) + as_array(b), a[:0] + b)
    same(as_array(np.ones((1, 1))) * as_array(np.zeros((0, 4))), np.zeros((0, 4)))
    with pytest.raises(ShapeError, match="axis -1"):
        as_array(np.ones(3)) + as_array(np.ones(4))


@pytest.mark.parametrize("other", ["text", None, object(), {}], ids=lambda value: type(value).__name__)
def test_other_operands(other):
    a = as_array(np.ones(1))
    for op in (operator.add, operator.matmul, operator.lt):
        with pytest.raises(TypeError):
            op(a, other)
        with pytest.raises(TypeError):
            op(other, a)
    assert (a == other) is False and (a != other) is True


@pytest.mark.parametrize("other", [[1.0], (1.0,)], ids=["list", "tuple"])
def test_lists_are_no_operands(other):
    a = as_array(np.ones(1))
    for op in (operator.add, operator.mul, operator.matmul, operator.lt, operator.eq, operator.ne):
        for operands in ((a, other), (other, a)):
            with pytest.raises(ArgumentError, match=r"convert it with harp\.numpy\.asarray"):
                op(*operands)


def test_other_types_get_their_turn():
    class Other:
        def __radd__(self, array):
            return "radd"

        def __lt__(self, array):
            return "lt"

    assert as_array(np.ones(1)) + Other() == "radd"
    assert (as_array(np.ones(1)) > Other()) == "lt"


def test_what_it_is():
    a = as_array(np.zeros((2, 3), np.float32))
    assert a.shape == (2, 3) and a.dtype == np.float32 and a.kind is f32 and a.ndim == 2 and a.size == 6
    assert a.itemsize == 4 and a.nbytes == 24 and a.T.shape == (3, 2) and a.mT.shape == (3, 2) and len(a) == 2
    assert np.dtype(a.dtype) == np.dtype(a.kind) and not a.weak and as_array(2.0).weak


def test_conversions():
    a = as_array(np.array([[1.5]]))
    assert float(a) == 1.5 and int(a) == 1 and bool(a) is True and a.item() == 1.5 and a.tolist() == [[1.5]]
    assert operator.index(as_array(np.int32(3))) == 3 and [5, 6][as_array(np.int64(1))] == 6
    assert type(as_array(np.int8(3)).item()) is int and type(as_array(np.True_).item()) is bool
    for several in (np.zeros(2), np.zeros(0)):
        for use in (float, int, bool, Array.item):
            with pytest.raises(ShapeError, match="one element"):
                use(as_array(several))
    for wrong in (as_array(1.5), as_array(np.arange(3))):
        with pytest.raises(TypeError):
            operator.index(wrong)
    with pytest.raises(TypeError):
        len(as_array(1.0))
    with pytest.raises(TypeError):
        iter(as_array(1.0))


def test_numpy_conversion():
    a = as_array(np.arange(3.0))
    shared = np.asarray(a)
    assert not shared.flags.writeable and np.shares_memory(shared, np.asarray(a))
    own = np.array(a)
    own[0] = 9.0
    assert np.asarray(a)[0] == 0.0
    assert np.asarray(a, dtype=np.float32).dtype == np.float32
    assert np.asarray(a, copy=False).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError):
        np.asarray(a, dtype=np.float32, copy=False)
    np.testing.assert_array_equal(np.sin(a), np.sin(np.arange(3.0)))


def test_it_does_not_change():
    source = np.arange(3.0)
    a = as_array(source)
    source[0] = 5.0
    assert a.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(MutationError):
        a[0] = 1.0
    with pytest.raises(MutationError):
        del a[0]
    with pytest.raises(AttributeError):
        a.anything = 1
    with pytest.raises(AttributeError):
        a.shape = (3, 1)
    with pytest.raises(ValueError):
        np.asarray(a)[0] = 1.0
    with pytest.raises(TypeError):
        hash(a)
    before = a
    a += 1.0
    assert before.tolist() == [0.0, 1.0, 2.0] and a.tolist() == [1.0, 2.0, 3.0]


def test_results_do_not_share_memory_with_what_can_be_written():
    source = np.zeros((2, 3))
    a = as_array(source)
    for result in (a.T, a.reshape(3, 2), a[0], a[::-1], +a, a.astype(np.float64)):
        assert not np.shares_memory(np.asarray(result), source)
        assert not np.asarray(result).flags.writeable


@pytest.mark.parametrize(
    "make",
    [
        lambda x: as_array(x),
        lambda x: as_array(x) + 1,
        lambda x: as_array(x)[::2],
        lambda x: as_array(x).T,
        lambda x: hnp.broadcast_to(as_array(x[:1]), (2, 2)),
        lambda x: as_array(np.float64(3)),
        lambda x: as_array(2),
        lambda x: hnp.sum(x, axis=0),
        lambda x: hnp.arange(4)[1:],
        lambda x: pickle.loads(pickle.dumps(as_array(x))),
    ],
)
def test_views_cannot_be_made_writable(make):
    view = np.asarray(make(np.arange(4.0).reshape(2, 2)))
    with pytest.raises(ValueError):
        view.flags.writeable = True
    while isinstance(view, np.ndarray):
        assert not view.flags.writeable
        view = view.base


def test_weakness_does_not_change():
    a = as_array(2.0)
    with pytest.raises(AttributeError):
        a.weak = False
    strong = a.astype(np.float64)
    assert a.weak and not strong.weak and (a / 2).weak and not (a == 2).weak


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for use in (as_array, hnp.asarray, hnp.sin, lambda m: as_array(1.0) + m):
        with pytest.raises(ArgumentError, match=r"masked.*filled") as caught:
            use(masked)
        assert __file__ in str(caught.value)
    kept = masked + as_array(1.0)  # which NumPy computes, and keeps the mask
    assert kept.tolist() == [None, 3.0]


def test_arrays_beyond_memory():
    big = np.broadcast_to(1.0, 2**50)
    for use in (
        lambda: as_array(big),
        lambda: hnp.zeros((10**10, 10**10)),
        lambda: hnp.zeros(2**70),
        lambda: hnp.arange(2**62),
        lambda: trace(lambda x: x + big[: 2**49], np.ones(2)),
    ):
        with pytest.raises(OutOfMemoryError) as caught:
            use()
        assert __file__ in str(caught.value)


NUMPY_CALLS = [
    *(
        lambda a, f=f, k=k: f(a, **k)
        for f in (np.sum, np.prod, np.max, np.min, np.mean, np.std, np.var, np.any, np.all, np.argmax, np.argmin)
        for k in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"out": None})
    ),
    lambda a: np.sum(a, dtype=np.float32),
    lambda a: np.mean(a, 0, np.float32),
    lambda a: np.std(a, axis=1, ddof=1),
    lambda a: np.sum(a, where=True),
    np.transpose,
    lambda a: np.transpose(a, (1, 0)),
    lambda a: a.transpose(None),
    lambda a: np.reshape(a, (3, 2)),
    lambda a: np.reshape(a, -1),
    lambda a: np.clip(a, 1.0, 3.0),
    lambda a: np.squeeze(a[:1]),
    lambda a: a.astype(np.float32, copy=False),
    lambda a: divmod(a, 2)[0],
    lambda a: divmod(a, 2)[1],
    lambda a: divmod(5.0, a + 1)[1],
]


@pytest.mark.parametrize("call", NUMPY_CALLS)
def test_numpys_functions_that_call_methods(call):
    a = np.array([[1.0, 2.0, 0.0], [4.0, 3.0, 5.0]])
    same(call(as_array(a)), call(a))
    assert trace(call, a).outputs[0].dtype.numpy == call(a).dtype


def test_options_of_numpys_functions():
    a = as_array(np.ones((2, 2)))
    for call in (
        lambda: np.sum(a, out=np.zeros(())),
        lambda: a.reshape(4, order="B"),
    ):
        with pytest.raises(ArgumentError) as caught:
            call()
        assert __file__ in str(caught.value)
    with pytest.raises(ShapeError) as caught:
        np.sum(a, axis=5)
    assert __file__ in str(caught.value)
    assert float(np.max(a, where=np.zeros((2, 2), bool), initial=0.0)) == 0.0
    assert float(np.sum(a, initial=1.0)) == 5.0


def test_iteration():
    a = np.arange(6.0).reshape(3, 2)
    for row, expected in zip(as_array(a), a, strict=True):
        same(row, expected)
    assert (2.0 in as_array(a)) is True and (7.0 in as_array(a)) is False


def test_text():
    assert repr(as_array(np.array([1.0, 2.5]))) == "Array([1. , 2.5])"
    assert repr(as_array(np.array([1, 2], np.int8))) == "Array([1, 2], dtype=int8)"
    assert str(as_array(np.array([1, 2]))) == "[1 2]"
    assert f"{as_array(1.23456):.2f}" == "1.23" and f"{as_array(np.arange(2))}" == "[0 1]"


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_pickling(dtype):
    a = as_array(np.ones((2, 3), dtype.numpy))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        same(pickle.loads(pickle.dumps(a, protocol)), np.asarray(a))
    assert pickle.loads(pickle.dumps(as_array(2.0))).weak


def test_copies_share_memory_and_stay_where_the_array_is_donated():
    a = as_array(np.ones(3))
    step = harp.jit(lambda x: x + 1, donate_argnums=0)
    for copied in (copy.copy, lambda x: copy.deepcopy([x])[0], lambda x: x.copy(), hnp.copy):
        a = step(a)
        other = copied(a)
        assert np.shares_memory(np.asarray(other), np.asarray(a))
        expected = np.asarray(a).tolist()
        step(a)
        assert other.tolist() == expected
        a = other


def test_astype():
    a = np.array([-1.5, 0.0, 2.7])
    for dtype in (np.float32, "int32", bool, f32, float):
        same(as_array(a).astype(dtype), a.astype(getattr(dtype, "numpy", dtype)))
    assert not as_array(2.0).astype(np.float64).weak


METHODS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum", "cumprod"]


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    a = np.array([[1.0, 2.0, 0.0], [4.0, 3.0, 5.0]])
    for axis in (None, 0, 1):
        result = getattr(as_array(a), name)(axis=axis)
        np.testing.assert_allclose(np.asarray(result), getattr(a, name)(axis=axis))
        assert result.dtype == getattr(a, name)(axis=axis).dtype
    same(as_array(a).ravel(), a.ravel())
    same(as_array(a).flatten(), a.flatten())
    same(as_array(a).reshape((3, 2)), a.reshape(3, 2))
    same(as_array(a).transpose(1, 0), a.T)
    same(as_array(a[:1]).squeeze(), a[0])
    same(as_array(a).clip(1.0, 3.0), a.clip(1.0, 3.0))
    same(hnp.asarray(a).dot(as_array(a.T)), a.dot(a.T))
