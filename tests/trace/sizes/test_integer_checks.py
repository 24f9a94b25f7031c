"""Python integers as arguments: where NumPy raises OverflowError for the same numbers, so does harp, at every call."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import DTypeError, IntegerRangeError
from harp.transforms.jit import programs

NARROW = ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"]


@pytest.fixture(params=["c", "numpy"])
def backend(request, monkeypatch):
    monkeypatch.setattr(programs, "backend_name", lambda *_: request.param)


MEETINGS = {
    "add": lambda np, x, s: x + s,
    "multiply": lambda np, x, s: s * x,
    "floor_divide": lambda np, x, s: x // s,
    "remainder": lambda np, x, s: np.remainder(x, s),
    "maximum": lambda np, x, s: np.maximum(x, s),
    "and": lambda np, x, s: x & s,
    "minimum": lambda np, x, s: np.minimum(x, s),
    "full_like": lambda np, x, s: np.full_like(x, s),
    "asarray": lambda np, x, s: np.asarray(s, x.dtype),
    "list": lambda np, x, s: np.asarray([s, 1], x.dtype),
    "sum of two": lambda np, x, s: x * (s + 1),
    "difference": lambda np, x, s: x * (s - 1),
    "quotient": lambda np, x, s: x * (s // 2),
    "product with a size": lambda np, x, s: x + s * x.shape[0],
}


# Each function with each dtype; each function, and each dtype, in a program of C too.
CASES = [
    ("numpy" if number % len(NARROW) != place else "c", name, dtype)
    for number, name in enumerate(MEETINGS)
    for place, dtype in enumerate(NARROW)
]


@pytest.mark.parametrize(("backend", "name", "dtype"), CASES, indirect=["backend"])
def test_the_limits_are_numpys(backend, name, dtype):
    function, x = MEETINGS[name], np.array([1, 2], dtype)
    f = harp.jit(lambda x, s: function(hnp, x, s))
    limits = np.iinfo(dtype)
    values = [limits.min, limits.max, limits.min - 1, limits.max + 1, limits.max - 1, limits.max // 2, 3]
    for value in (v for v in values if abs(v) < 2**40):
        try:
            with np.errstate(all="ignore"):
                expected = function(np, x, value)
        except OverflowError:
            with pytest.raises(IntegerRangeError, match=f"does not fit {dtype}"):
                f(x, value)
        else:
            np.testing.assert_array_equal(f(x, value), expected)
    assert f.compilations == 1


def loss(w, x, s):
    return hnp.sum(w * (x * s))


inner = harp.jit(lambda x, s: x * s)

WAYS = {
    "plain": (lambda x, s: x * s, [3, 6]),
    "nested": (inner, [3, 6]),
    "gradient": (lambda x, s: harp.grad(loss)(hnp.ones(2), x, s), [3, 6]),
    "gradient of jit": (lambda x, s: harp.grad(harp.jit(loss))(hnp.ones(2), x, s), [3, 6]),
    "vjp": (lambda x, s: harp.vjp(lambda w: loss(w, x, s), hnp.ones(2))[1](1.0)[0], [3, 6]),
    "outer": (lambda x, s: hnp.outer(x, s), [[3], [6]]),
    "einsum": (lambda x, s: hnp.einsum("i,->i", x, s), [3, 6]),
    "clip": (lambda x, s: hnp.clip(x, 0, s), [1, 2]),
    "where": (lambda x, s: hnp.where(x > 1, x, s), [3, 2]),
    "where, then": (lambda x, s: x * hnp.where(x > 1, s, 0), [0, 6]),
    "expanded": (lambda x, s: x * hnp.broadcast_to(s, (2,)), [3, 6]),
    "joined": (lambda x, s: hnp.concatenate([x, s], axis=None), [1, 2, 3]),
    "unused": (lambda x, s: (x * s, x)[1], [1, 2]),
}


def check(call, expected):
    for number in (3, 300, -1, 3):
        if number == 3:
            np.testing.assert_array_equal(call(number), expected)
        else:
            with pytest.raises(IntegerRangeError, match=f"{number} does not fit uint8"):
                call(number)


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_meet(name, backend):
    function, expected = WAYS[name]
    x, f, of_tree = np.array([1, 2], np.uint8), harp.jit(function), harp.jit(lambda tree: function(*tree))
    check(lambda s: f(x, s), expected)
    check(lambda s: of_tree((x, s)), expected)
    check(lambda s: harp.jit(lambda x: function(x, s))(x), expected)  # closed over
    check(lambda s: function(hnp.asarray(x), s), expected)
    assert f.compilations == of_tree.compilations == 1


def test_a_size_and_numbers_in_the_function():
    x = np.ones(3, np.uint8)
    assert harp.jit(lambda x: x * (x.shape[0] * 80))(x)[0] == 240
    for wrong in (
        lambda x: x * (x.shape[0] * 100),
        lambda x: hnp.outer(x, x.shape[0] * 100),
        lambda x: hnp.outer(x, 300),
        lambda x: x * hnp.where(x > 0, 300, 0),
    ):
        with pytest.raises(IntegerRangeError, match="300 does not fit uint8"):
            harp.jit(wrong)(x)


def test_the_message_says_which_argument_and_where(backend):
    f = harp.jit(lambda x, scale, offset: x * scale + (offset + scale))
    x = np.ones(2, np.int8)
    with pytest.raises(
        IntegerRangeError, match=r"^argument scale = 1000 does not fit int8; convert the array first"
    ) as e:
        f(x, 1000, 0)
    assert f"at {__file__}" in str(e.value)
    with pytest.raises(IntegerRangeError, match=r"^computed from offset, scale: 200 does not fit int8"):
        f(x, 100, 100)


def test_weak_arrays_are_looked_at_whole():
    many = harp.jit(lambda s: hnp.broadcast_to(s, (3,)) * 1)(300)
    f = harp.jit(lambda x, s: x + s)
    for x, expected in ((np.ones(3, np.int16), 301), (np.ones(3, np.float32), 301.0)):
        np.testing.assert_array_equal(f(x, many), np.full(3, expected, x.dtype))
    with pytest.raises(IntegerRangeError, match="argument s with 300 does not fit int8"):
        f(np.ones(3, np.int8), many)
    with pytest.raises(IntegerRangeError, match="300 does not fit int8"):
        hnp.asarray(np.ones(3, np.int8)) + many


def test_what_wraps_on_the_way_is_an_error(backend):
    f = harp.jit(lambda x, s: x * (s * s // s))
    assert f(np.array([1], np.uint64), 2**20)[0] == 2**20
    with pytest.raises(IntegerRangeError, match=f"computed from s: {2**80} does not fit int64"):
        f(np.array([1], np.uint64), 2**40)


def test_what_always_fits_is_not_looked_at():
    for dtype in (np.float32, np.int64):
        assert harp.jit(lambda x, s: x * s)(np.array([1], dtype), 300)[0] == 300
    assert harp.jit(lambda x, s: x * s.astype(np.uint8))(np.array([1], np.uint8), 300)[0] == 44  # as asked for
    assert harp.jit(lambda x, flag: x + flag)(np.array([255], np.uint8), True)[0] == 0


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_negative_powers(dtype, backend):
    f = harp.jit(lambda x, k: x**k)
    x = np.array([2, 3], dtype)
    np.testing.assert_array_equal(f(x, 2), x**2)
    with pytest.raises(DTypeError, match=f"argument k = -1 is a negative power, and {dtype} has no fractions"):
        f(x, -1)
    assert f.compilations == 1


def test_casts_and_conditions_may_wrap(backend):
    f = harp.jit(lambda x, s: x + hnp.where(s.astype(np.uint8) > 100, s, 7))
    x = np.array([1], np.uint8)
    assert f(x, 3)[0] == 8 and f(x, 101)[0] == 102 and f(x, 256 + 50)[0] == 8
    with pytest.raises(IntegerRangeError, match="computed from s: 406 does not fit uint8"):
        f(x, 256 + 150)
    g = harp.jit(lambda x, y, s: x + hnp.where(hnp.any(y > 0), s, 7))
    assert g(x, np.zeros(0), 5)[0] == 8 and g(x, np.ones(2), 5)[0] == 6


STEPS = st.sampled_from(
    [
        lambda s, k: s + k,
        lambda s, k: k - s,
        lambda s, k: s * k,
        lambda s, k: s // (abs(k) + 1),
        lambda s, k: s % (abs(k) + 1),
        lambda s, k: abs(s),
        lambda s, k: -s,
    ]
)
PROGRAMS = st.lists(st.tuples(STEPS, st.integers(-9, 9)), max_size=5)


@given(PROGRAMS, st.lists(st.integers(-400, 400), min_size=1, max_size=4))
def test_what_is_computed_from_it_is_exact(steps, values):
    def program(s):
        for step, k in steps:
            s = step(s, k)
        return s

    f = harp.jit(lambda x, s: x + program(s))
    x = np.zeros(1, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "backend_name", lambda *_: "numpy")
        for value in values:
            exact = program(value)
            if 0 <= exact <= 255:
                assert f(x, value)[0] == exact
            else:
                with pytest.raises(IntegerRangeError, match=f"{exact} does not fit uint8"):
                    f(x, value)


def test_what_only_the_program_knows_needs_a_dtype():
    """What a loop makes of a Python integer may be any number."""

    def f(start):
        count = lambda s: (s[0] + 1, s[1] + s[0])
        return harp.jit(lambda x: harp.while_loop(lambda s: s[0] < 3, count, (start(), x))[1])

    x = np.arange(3, dtype=np.int32)
    with pytest.raises(IntegerRangeError, match=r"nobody would notice that one of them does not fit int32; begin with"):
        f(lambda: 0)(x)
    np.testing.assert_array_equal(f(lambda: hnp.int32(0))(x), x + 3)


def test_a_bound_for_any_number_is_no_reason_to_refuse_the_number_of_a_call():
    f, g = harp.jit(lambda x, s: x + (2 - (s & 3))), harp.jit(lambda x, s: x + (s % 5) * 60)
    x = np.zeros(1, np.uint8)
    assert f(x, 5)[0] == 1 and g(x, 9)[0] == 240 and g(x, 5)[0] == 0
    with pytest.raises(IntegerRangeError, match="-1 does not fit uint8"):
        f(x, 7)
