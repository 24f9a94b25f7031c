"""`Size` behaves like the integer that it is; what is asked of it becomes a guard."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import harp.numpy as hnp
from harp.errors import (
    ArgumentError,
    InconclusiveSizeError,
    IntegerRangeError,
    LeakedTracerError,
    ShapeError,
    SizeDivisionError,
)
from harp.trace.array.array import Array
from harp.trace.scalar import dtypes
from harp.trace.sizes import ranges
from harp.trace.sizes.size import Size, pin, resolve, to_index, wrap
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


def test_other_powers_are_floats(program):
    """A negative exponent gives a fraction, and a power of a symbolic exponent is no polynomial."""

    def function(x):
        n = x.shape[0]
        return hnp.stack([hnp.asarray(p) for p in (n**-1, n**-2, 2**-n, 2**n, (-2) ** n, n**n, n**50.0, 3 ** (n - 5))])

    p = program(function, np.zeros(3))
    assert p.signature.guards == ()
    for n in (1, 3, 20):
        m = float(n)
        expected = [1 / m, m**-2, 2.0**-m, 2.0**m, (-2.0) ** m, m**m, m**50, 3.0 ** (m - 5)]
        np.testing.assert_allclose(p(np.zeros(n)), expected, rtol=1e-14)
    with pytest.raises(IntegerRangeError, match="float64"):
        in_trace(lambda n: (10**400) ** n, 3)


def test_exponents_are_bounded():
    assert in_trace(lambda n: int(n**64), 1) == 1
    with pytest.raises(IntegerRangeError, match="power of 1000000000") as caught:
        in_trace(lambda n: n**10**9, 3)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    "grow",
    [lambda n: n * 2**70, lambda n: n**50, lambda n: n * 2**62, lambda n: 5 - n * 2**70],
)
@pytest.mark.parametrize("count", [0, 3])
def test_a_number_beyond_int64_raises(grow, count):
    with pytest.raises(IntegerRangeError, match="does not fit int64") as caught:
        trace(lambda x: x[0] * grow(x.shape[1]), np.ones((1, 3), np.int64))
    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    "grow",
    [lambda n: n * 2**70, lambda n: n**50, lambda n: n * 10**20 / 1e20, lambda n: n**40 + n * 3, lambda n: -(n**45)],
)
def test_floats_take_numbers_beyond_int64(grow, program):
    p = program(lambda x: x * grow(x.shape[0]), np.ones(3))
    for n in (3, 9, 1, 0, 4):
        found = p(np.ones(n)) if p.accepts((n,)) else program(lambda x: x * grow(x.shape[0]), np.ones(n))(np.ones(n))
        np.testing.assert_allclose(found, np.ones(n) * float(grow(n)), rtol=1e-15)


def test_floats_do_not_take_differences_beyond_int64():
    """They would cancel."""
    with pytest.raises(IntegerRangeError, match="does not fit int64"):
        trace(lambda x: x * (x.shape[0] ** 50 - x.shape[0] ** 49), np.ones(3))


HUGE = np.empty((0, 2**62), np.int8)


@pytest.mark.parametrize(
    ("function", "small"),
    [
        (lambda n: 2 * n, False),
        (lambda n: n + 2**62, False),
        (lambda n: -3 * n, False),
        (lambda n: -2 * n, True),
        (lambda n: n - 2**62, True),
        (lambda n: (3 * n) // 4, False),
        (lambda n: n // 4 * 3, True),
        (lambda n: n % (n - 5), True),
        (lambda n: n * n - n * n + 1, True),
    ],
)
def test_sizes_near_the_end_of_int64(function, small, program):
    n = HUGE.shape[1]
    if small:
        assert int(program(lambda x: hnp.asarray(function(x.shape[1])), HUGE)(HUGE)) == function(n)
    else:
        with pytest.raises(IntegerRangeError, match="does not fit int64"):
            trace(lambda x: hnp.asarray(function(x.shape[1])), HUGE)
    p = program(lambda x: hnp.asarray(function(x.shape[1])), np.ones((1, 7), np.int8))
    assert p.accepts((1, 9)) and p.accepts(HUGE.shape) <= small


def test_a_remainder_fits_where_its_divisor_does(program):
    p = program(lambda x, y: hnp.asarray(x.shape[0] % y.shape[0]), np.ones(7), np.ones(4))
    assert not any("int64" in g.reason for g in p.signature.guards) and int(p(np.ones(11), np.ones(4))) == 3


def test_products_of_sizes_are_guarded(program):
    p = program(lambda x, y: x * (x.shape[0] * y.shape[0]), np.ones(3), np.ones(4))
    assert [str(g.relation.value) for g in p.signature.guards] == [">= 0"]
    assert p.accepts((1000,), (1000,)) and not p.accepts((2**40,), (2**40,))
    np.testing.assert_array_equal(p(np.ones(5), np.ones(6)), np.full(5, 30.0))


@pytest.mark.parametrize(
    "question",
    [
        lambda x: x * (x.shape[0] * x.shape[1]),
        lambda x: x / x.size + x.shape[1] * x.shape[0],
        lambda x: hnp.mean(x) + x.shape[0] * 3 - x.shape[1] // 2,
        lambda x: x * (x.shape[0] - 5 * x.shape[1] + 7),
    ],
)
def test_ordinary_numbers_need_no_guard(question, program):
    assert program(question, np.ones((3, 4))).signature.guards == ()


def test_a_size_fits_the_integers_that_it_meets(program):
    p = program(lambda x: x * (x.shape[0] * 100), np.ones(2, np.uint8))
    assert p.accepts((1,)) and p.accepts((2,)) and not p.accepts((3,))
    for dtype, size in ((np.uint8, lambda n: n * 100), (np.int8, lambda n: n * 50), (np.uint16, lambda n: n - 4)):
        with pytest.raises(IntegerRangeError, match=f"x_0.* does not fit {np.dtype(dtype)}") as caught:
            trace(lambda x, size=size: x + size(x.shape[0]), np.ones(3, dtype))
        assert __file__ in str(caught.value)
    with pytest.raises(IntegerRangeError):
        trace(lambda x: hnp.full(2, x.shape[0] * 100, np.uint8), np.ones(3))


def test_declared_sizes_are_taken_to_fit():
    assert trace(lambda x, y: x * (x.shape[0] * y.shape[0]) ** 3, dtypes.u8["n"], dtypes.u8["m"])


def test_bounds_beyond_int64():
    x = np.arange(3.0)
    for index in (slice(2**70), slice(2**70, None, -1), slice(-(2**70), None, 2**80), slice(None, -(2**70))):
        assert np.array_equal(hnp.asarray(x)[index], x[index])
    with pytest.raises(IntegerRangeError):
        trace(lambda x: x[: x.shape[0] * 2**70 - 5], x)
    for call in (lambda: hnp.arange(2**70), lambda: hnp.arange(-(2**62), 2**63 - 1), lambda: hnp.roll(x, 2**70)):
        with pytest.raises(IntegerRangeError):
            call()


def test_division_by_zero():
    for divide in (
        lambda n: n / 0,
        lambda n: n / 0.0,
        lambda n: n // 0,
        lambda n: n % 0,
        lambda n: divmod(n, 0),
        lambda n: n // 0.0,
        lambda n: n % np.float32(0),
        lambda n: n // np.int64(0),
        lambda n: n // (n - 3),
        lambda n: 5 % (n - 3),
    ):
        with pytest.raises(SizeDivisionError, match="by zero") as caught:
            in_trace(divide, 3)
        assert isinstance(caught.value, ZeroDivisionError) and __file__ in str(caught.value)


def test_shifts_bits_and_formats(program):
    p = program(lambda x: x * (x.shape[0] << 2) + (x.shape[0] >> 1) + ~x.shape[0], np.ones(3))
    assert p.signature.guards == () and p(np.ones(5)).tolist() == [20 + 2 - 6] * 5
    assert in_trace(lambda n: (n & 1, 6 & n, n | 4, 4 | n, n ^ 1, 1 << n, 64 >> n, n & n), 3) == (
        1,
        2,
        7,
        7,
        2,
        8,
        8,
        3,
    )
    assert in_trace(lambda n: (f"{n}"[-2:], f"{n:05d}", f"{n:>4}"), 3) == ("_0", "00003", "   3")
    for shift in (lambda n: n << -1, lambda n: n << 1.0, lambda n: n >> 64, lambda n: n << n):
        with pytest.raises(ArgumentError, match="shifted"):
            in_trace(shift, 3)
    with pytest.raises(TypeError):
        in_trace(lambda n: n & 1.0, 3)


def test_functions_of_sizes_are_exact_too(program):
    def function(x):
        n = x.shape[0]
        return hnp.stack([hnp.power(n, -1), hnp.power(2, -n), 1.0 * hnp.floor_divide(hnp.multiply(n, 2**62), 2**62)])

    assert program(function, np.ones(1))(np.ones(1)).tolist() == [1.0, 0.5, 1.0]
    for wrong in (lambda n: hnp.multiply(n, 2**62), lambda n: hnp.add(n, 2**70), lambda n: hnp.subtract(-(2**70), n)):
        with pytest.raises(IntegerRangeError, match="int64"):
            in_trace(wrong, 3)
    with pytest.raises(SizeDivisionError):
        in_trace(lambda n: hnp.remainder(n, 0), 3)
    with pytest.raises(IntegerRangeError, match="or so"):
        in_trace(lambda n: n ** (10**5000), 3)


def test_diagonals_beyond_int64():
    assert hnp.eye(2, k=2**70).tolist() == np.zeros((2, 2)).tolist()
    assert hnp.tril(np.ones((2, 2)), 2**70).tolist() == np.ones((2, 2)).tolist()
    graph = trace(lambda x: hnp.eye(3, k=x.shape[0]), np.ones(2))
    assert "x_0" in str(graph)
    with pytest.raises(IntegerRangeError):
        trace(lambda x: hnp.eye(3, k=x.shape[0] * 2**70), np.ones(2))
    with pytest.raises(ArgumentError):
        hnp.eye(2, k=1.5)


OTHERS = [
    np.arange(5),
    np.arange(5) * 1.5,
    Fraction(6, 2),
    Fraction(5, 2),
    Decimal(3),
    Decimal("2.5"),
    Decimal("Infinity"),
    3 + 0j,
    3 + 1j,
    np.True_,
    np.float32(2.5),
    np.complex64(3),
    np.int8(3),
    2.5,
    float("inf"),
    float("nan"),
    True,
    "three",
    None,
    [1, 2],
]
OPERATIONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
OPERATIONS += [operator.add, operator.sub, operator.mul, operator.truediv]
OPERATIONS += [operator.floordiv, operator.mod, operator.pow]


def _outcome(function, n):
    """As an array, or the type of the error; NumPy compares complex numbers in some order, Python and harp do not."""
    try:
        result = function(n)
    except (TypeError, ArithmeticError) as error:
        return type(error)
    found = np.asarray(float(result) if isinstance(result, (Fraction, Decimal)) else result)
    return TypeError if found.dtype.kind in "OU" else found


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.__name__)
def test_a_size_beside_any_value(operation, other, program):
    """A guard, a traced array, or a TypeError: as the number would do, at every size."""
    if isinstance(other, np.complexfloating) and operation in OPERATIONS[2:6]:
        pytest.skip("complex numbers have no order")

    def traced(function, programs, n):
        """By a program that was traced at another size, if its guards hold."""
        served = next((p for p in programs if p.accepts((n,))), None)
        if served is None:
            served = program(lambda x: hnp.asarray(_as_number(function(x.shape[0]))), np.ones(n))
            programs.append(served)
        return served(np.ones(n))

    for function in (lambda n: operation(n, other), lambda n: operation(other, n)):
        programs = []
        for n in (3, 1, 4, 2, 3):
            expected, found = _outcome(function, n), _outcome(partial(traced, function, programs), n)
            if isinstance(expected, type):
                assert isinstance(found, type) and issubclass(found, (expected, TypeError))
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def _as_number(value):
    return float(value) if isinstance(value, (Fraction, Decimal)) else value


def test_rounding_to_tens(program):
    p = program(lambda x: hnp.asarray(round(x.shape[0], -1) + round(x.shape[0], 2) + round(x.shape[0])), np.ones(14))
    assert int(p(np.ones(14))) == 38


class _Money:
    """A class that knows how to meet numbers."""

    def __init__(self, amount):
        self.amount = amount

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("nobody asks for an array")

    def __radd__(self, other):
        return float(other) + self.amount

    __rtruediv__ = __rpow__ = __radd__

    def __eq__(self, other):
        return int(other) == self.amount

    __hash__ = None


def test_other_classes_are_asked_what_they_do_with_a_size():
    assert in_trace(lambda n: n + _Money(2.0), 3) == in_trace(lambda n: n / _Money(2.0), 3) == 5.0
    assert in_trace(lambda n: n ** _Money(2.0), 3) == 5.0
    assert in_trace(lambda n: (n == _Money(3.0), n in [_Money(4.0)]), 3) == (True, False)
    for operation in (operator.add, operator.mul, operator.truediv, operator.lt):
        with pytest.raises(TypeError):
            in_trace(lambda n, operation=operation: operation(n, np.timedelta64(3, "s")), 3)
    assert in_trace(lambda n: n == np.timedelta64(3, "s"), 3) is False


def test_nested_quotients_are_bounded_in_linear_time():
    """The bounds of each expression are asked once, not for each end of each factor: that took seconds from ten on."""

    counts = []
    for depth in (4, 8):
        asked = []
        original = ranges._Bounds._of_sum

        def counted(self, p, original=original, asked=asked):
            asked.append(p)
            return original(self, p)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ranges._Bounds, "_of_sum", counted)
            trace(lambda x, depth=depth: _halved(x, depth), np.ones(1000))
        counts.append(len(asked))
    assert counts[1] < 8 * counts[0]


def _halved(x, times):
    for _ in range(times):
        x = x[x.shape[0] // 2 :]
    return x
