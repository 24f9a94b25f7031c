"""`Size` behaves like the integer that it is; what is asked of it becomes a guard."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import harp.numpy as hnp
from harp.errors import InconclusiveSizeError, LeakedTracerError, ShapeError
from harp.trace import dtypes
from harp.trace.array import Array
from harp.trace.sizes import Size, pin, resolve, to_index, wrap
from harp.trace.tracer import trace

BINARY = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def in_trace(question, *sizes):
    """The answer to a question about sizes, asked while tracing; and the number of guards that it took."""
    answers = []

    def function(*arrays):
        answers.append(question(*(a.shape[0] for a in arrays)))
        return arrays[0]

    trace(function, *(np.zeros(n) for n in sizes))
    return answers[0]


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("other", [1, 3, -2, 5, True, np.int32(3), np.uint8(2)])
def test_arithmetic_with_integers(op, other):
    for n in (0, 1, 7):
        assert in_trace(lambda size: int(op(size, other)), n) == op(n, int(other))
        if op not in (operator.floordiv, operator.mod) or n:
            assert in_trace(lambda size: int(op(other, size)), n) == op(int(other), n)


@pytest.mark.parametrize("op", BINARY)
def test_arithmetic_of_sizes(op):
    for n, m in ((7, 2), (2, 7), (4, 4)):
        assert in_trace(lambda a, b: int(op(a, b)), n, m) == op(n, m)


@pytest.mark.parametrize("op", COMPARE)
@pytest.mark.parametrize(
    "other", [3, 4, 5, -1, 3.0, 3.5, 4.5, math.inf, -math.inf, math.nan, np.int64(4), np.float32(3.5)]
)
def test_comparisons(op, other):
    for n in (3, 4, 5):
        answer = in_trace(lambda size: op(size, other), n)
        assert type(answer) is bool and answer is bool(op(n, other))
        answer = in_trace(lambda size: op(other, size), n)
        assert type(answer) is bool and answer is bool(op(other, n))


def test_comparison_with_something_else():
    assert in_trace(lambda n: n == "3", 3) is False
    assert in_trace(lambda n: n != None, 3) is True  # noqa: E711
    with pytest.raises(TypeError):
        in_trace(lambda n: n < "3", 3)
    with pytest.raises(TypeError):
        in_trace(lambda n: n + "3", 3)


def test_unary_and_conversions():
    assert in_trace(lambda n: int(-n), 3) == -3
    assert in_trace(lambda n: +n == 3, 3) is True
    assert in_trace(lambda n: int(abs(n - 5)), 3) == 2
    assert in_trace(lambda n: (float(n), round(n) == 3, math.floor(n) == 3, math.ceil(n) == 3), 3) == (
        3.0,
        True,
        True,
        True,
    )
    assert in_trace(lambda n: tuple(map(int, divmod(n, 2))), 7) == (3, 1)
    assert in_trace(lambda n: tuple(map(int, divmod(20, n))), 7) == (2, 6)
    assert in_trace(lambda n: int(n**3), 3) == 27 and in_trace(lambda n: n**0, 3) == 1
    assert in_trace(lambda n: [*range(n)], 3) == [0, 1, 2]
    assert in_trace(lambda n: "abc"[n - 2], 3) == "b"
    assert in_trace(lambda n: [0] * n, 3) == [0, 0, 0]
    assert in_trace(lambda n: n * [0], 3) == [0, 0, 0]
    assert in_trace(lambda n: (bool(n), bool(n - 3)), 3) == (True, False)


def test_a_number_is_a_number():
    """What is known to be a number is given as one."""
    assert in_trace(lambda n: type(n - n), 3) is int
    assert in_trace(lambda n: type(n * 0), 3) is int
    assert in_trace(lambda n: (int(n), type(n + 0))[1], 3) is int


@pytest.mark.parametrize(
    "question", [int, hash, float, range, lambda n: n in {3, 5}, lambda n: {n: 1}, math.sqrt, operator.index, round]
)
def test_asking_for_the_number_pins(question, program):
    def function(x):
        answer = question(x.shape[0])
        return x * (2.0 if answer else 1.0)

    p = program(function, np.zeros(3))
    assert p.accepts((3,)) and (question is round or not p.accepts((4,)))


def test_hash_of_equal_sizes_is_equal():
    assert in_trace(lambda n: hash(n) == hash(3), 3) is True
    assert in_trace(lambda n, m: len({n, m, 3}), 3, 3) == 1


def test_text_does_not_pin(program):
    p = program(lambda x: x * float(len(f"{x.shape[0]}") > 0), np.zeros(3))
    assert p.accepts((4,)) and repr(p.graph.inputs[0].shape[0]) == "a0_0"


def test_division_and_powers_are_arrays(program):
    kinds = []

    def function(x):
        n = x.shape[0]
        results = [n / 2, 2 / n, n**0.5, n**-1, 2**n, n / n, n * 0.5, 1.5 + n]
        kinds.extend((type(r), r.kind, r.weak) for r in results)
        return hnp.stack([hnp.asarray(r * 1.0) for r in results])

    p = program(function, np.zeros(4))
    assert all(kind == (Array, dtypes.f64, True) for k, kind in enumerate(kinds) if k not in (3, 4))
    assert p.signature.guards == ()
    for n in (1, 2, 9):
        result = p(np.zeros(n))
        np.testing.assert_allclose(result[[0, 1, 2, 4, 5, 6, 7]], [n / 2, 2 / n, n**0.5, 2**n, 1, n / 2, n + 1.5])


def test_a_size_takes_the_dtype_of_the_array():
    for dtype in (np.float32, np.int8, np.float64):
        graph = trace(lambda x: x * x.shape[0], np.zeros(3, dtype))
        assert graph.outputs[0].dtype.numpy == dtype


def test_with_numpy_arrays_and_numbers():
    """NumPy leaves the operation to the size, and does not make an array of objects."""

    def question(n):
        array = np.arange(3.0) * n
        return type(array), array.dtype, type(np.int64(2) * n), type(np.float64(2) * n), bool(np.int64(3) == n)

    array, dtype, number, real, equal = in_trace(question, 3)
    assert array is Array and dtype == np.float64 and number is Size and real is Array and equal


def test_a_leaked_size_raises():
    kept = []

    def leak(x):
        kept.append(x.shape[0])
        return x

    trace(leak, np.zeros(3))
    (size,) = kept
    for use in (int, hash, bool, lambda n: n + 1, lambda n: n == 3, lambda n: n < 3, lambda n: n / 2, lambda n: -n):
        with pytest.raises(LeakedTracerError, match="size"):
            use(size)

    def other(x):
        return x * float(size == x.shape[0])

    with pytest.raises(LeakedTracerError):
        trace(other, np.zeros(3))
    with pytest.raises(LeakedTracerError):
        trace(lambda x: hnp.zeros(size), np.zeros(3))
    assert repr(size)  # printing is no use


def test_divisors():
    with pytest.raises(ZeroDivisionError):
        in_trace(lambda n: n // 0, 3)
    with pytest.raises(ZeroDivisionError):
        in_trace(lambda n, m: n % m, 3, 0)
    with pytest.raises(ZeroDivisionError):
        in_trace(lambda n: 5 // (n - 3), 3)
    assert in_trace(lambda n: int(5 // (n - 5)), 3) == 5 // (3 - 5)
    assert in_trace(lambda n: int(5 % (n - 5)), 3) == 5 % (3 - 5)


def test_declared_sizes_are_inconclusive():
    signature = dtypes.f32["n", "m"]
    for question in (
        lambda x: int(x.shape[0]),
        lambda x: x.shape[0] == 3,
        lambda x: x.shape[0] < x.shape[1],
        lambda x: range(x.shape[0]),
        lambda x: x.shape[0] // x.shape[1],
        lambda x: x.shape[0] in {3},
    ):
        with pytest.raises(InconclusiveSizeError, match="declare") as caught:
            trace(lambda x, question=question: (question(x), x)[1], signature)
        assert __file__ in str(caught.value)


def test_declared_equalities_are_known():
    answers = []

    def function(x, y):
        answers.append((x.shape[0] == y.shape[0], x.shape[1] == 4, x.shape[0] + 1 > 0, len(range(y.shape[1]))))
        return x

    trace(function, dtypes.f32["n", 4], dtypes.f32["n", 2])
    assert answers == [(True, True, True, 2)]


def test_helpers_outside_a_trace():
    assert pin(to_index(3)) == 3 and wrap(to_index(3)) == 3 and resolve(to_index(3)) is to_index(3)
    with pytest.raises(AttributeError):
        to_index("3")


def test_a_shape_of_negative_size():
    with pytest.raises(ShapeError, match="negative"):
        trace(lambda x: hnp.zeros(x.shape[0] - 5), np.zeros(3))
