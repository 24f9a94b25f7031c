"""The table of scalar derivatives: complete, right against central differences, accurate at the edges."""

from __future__ import annotations

import math

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import MissingRuleError
from harp.trace.scalar.dtypes import f32, f64, i32
from harp.trace.scalar.expr import Apply, Operand, apply, cast, const, evaluate, select, walk
from harp.trace.scalar.ops import INFO, Op
from harp.transforms.autodiff.scalar_rules import NONDIFFERENTIABLE, RULES, pullback

X = [Operand(f64, k) for k in range(3)]
SEED = Operand(f64, 9)
INF, NAN = math.inf, math.nan


def value(e, *xs, seed=1.0):
    """The value of an expression at these operands, in their dtype."""
    return evaluate(e, lambda x: np.asarray(seed if x.slot == 9 else xs[x.slot], x.dtype.numpy)).item()


def partial(e, slot=0):
    return pullback(e, SEED).get(slot, const(0.0, f64))


def gradient(e, *xs, seed=1.0):
    return [value(partial(e, slot), *xs, seed=seed) for slot in range(len(xs))]


def differences(f, xs, step=1e-6):
    result = []
    for k in range(len(xs)):
        up, down = list(xs), list(xs)
        up[k] += step
        down[k] -= step
        result.append((f(*up) - f(*down)) / (2 * step))
    return result


def test_every_operation_has_a_row_or_is_exempt():
    assert set(RULES) | NONDIFFERENTIABLE == set(Op)
    assert not set(RULES) & NONDIFFERENTIABLE
    assert {op: len(row) for op, row in RULES.items()} == {op: INFO[op].arity for op in RULES}


POINTS = {
    Op.ADD: (0.3, -1.2),
    Op.MUL: (0.3, -1.2),
    Op.DIV: (0.3, -1.2),
    Op.MOD: (7.3, -1.7),
    Op.MAX: (0.3, -1.2),
    Op.MIN: (0.3, -1.2),
    Op.POW: (1.3, -1.2),
    Op.NEG: (0.4,),
    Op.ABS: (-0.4,),
    Op.RECIP: (-0.7,),
    Op.SQRT: (0.7,),
    Op.EXP: (0.7,),
    Op.EXP2: (0.7,),
    Op.EXPM1: (0.7,),
    Op.LOG: (0.7,),
    Op.LOG2: (0.7,),
    Op.LOG10: (0.7,),
    Op.LOG1P: (0.7,),
    Op.SIN: (0.7,),
    Op.COS: (0.7,),
    Op.TAN: (0.7,),
    Op.TANH: (-0.7,),
    Op.FMA: (0.3, -1.2, 0.5),
    Op.ASIN: (-0.4,),
    Op.ACOS: (0.6,),
    Op.ATAN: (1.7,),
    Op.ATAN2: (0.8, -1.2),
    Op.SINH: (-0.7,),
    Op.COSH: (1.1,),
    Op.ASINH: (0.7,),
    Op.ACOSH: (1.7,),
    Op.ATANH: (-0.4,),
    Op.HYPOT: (0.8, -1.2),
    Op.CBRT: (-0.7,),
    Op.ERF: (0.6,),
    Op.ERFC: (1.3,),
    Op.ERFINV: (0.45,),
    Op.COPYSIGN: (0.8, -1.2),
}
# several dtypes, the latter in test_complex.py; steps that no difference can see; one that has no derivative
ODD = {Op.SELECT, Op.CAST, Op.COMPLEX, Op.REAL, Op.IMAG, Op.NEXTAFTER, Op.OPAQUE}


@pytest.mark.parametrize("op", [op for op in RULES if op not in ODD], ids=lambda op: op.value)
def test_first_to_third_order_against_central_differences(op):
    xs = POINTS[op]
    e = apply(op, *X[: INFO[op].arity])
    for _ in range(3):
        expected = differences(lambda *at, e=e: value(e, *at, seed=1.3), xs)
        npt.assert_allclose(gradient(e, *xs, seed=1.0), np.array(expected), rtol=2e-7, atol=1e-8)
        # the next order: of a weighted sum of all partials
        parts = [partial(e, slot) for slot in range(len(xs))]
        e = parts[0]
        for k, part in enumerate(parts[1:]):
            e = e + part * const(k + 0.5, f64)
        e = _without_seed(e)


def _without_seed(e):
    """The expression with the seed, an operand, as the number 1."""
    new = {}
    for x in walk((e,)):
        if isinstance(x, Apply):
            new[x] = apply(x.op, *(new[a] for a in x.operands), cast_to=x.dtype)
        else:
            new[x] = const(1.0, f64) if x is SEED else x
    return new[e]


def test_select_and_cast():
    x, y, _ = X
    e = select(x < y, apply(Op.SIN, x), x * y)
    npt.assert_allclose(gradient(e, 0.3, 1.0), [math.cos(0.3), 0])
    npt.assert_allclose(gradient(e, 0.3, 0.2), [0.2, 0.3])
    single = cast(apply(Op.SIN, cast(x, f32)), f64)
    npt.assert_allclose(gradient(single, 0.3), [math.cos(0.3)], rtol=1e-6)
    assert partial(single).dtype is f64
    rounded = cast(cast(x, i32), f64)
    assert pullback(rounded, SEED) == {}
    assert pullback(x * rounded, SEED) == {0: SEED * rounded}


@pytest.mark.parametrize("op", [Op.FLOOR, Op.RINT, Op.STOP])
def test_no_gradient_flows_through(op):
    assert pullback(apply(op, X[0]), SEED) == {}


def test_an_opaque_value_has_no_gradient_and_says_so():
    with pytest.raises(MissingRuleError, match="no derivative with respect to this parameter"):
        pullback(apply(Op.OPAQUE, X[0]), SEED)
    assert pullback(apply(Op.STOP, apply(Op.OPAQUE, X[0])) * X[1], SEED).keys() == {1}
    assert value(apply(Op.OPAQUE, X[0]), 0.3) == 0.3


def test_floor_division_has_no_gradient_and_the_remainder_has_its_quotient():
    assert pullback(X[0] // X[1], SEED) == {}
    # 1 mod 0.1 is 1 - 9*0.1, although floor(1 / 0.1) is 10
    assert gradient(X[0] % X[1], 1.0, 0.1) == [1, -9]
    assert gradient(X[0] % X[1], -1.0, 3.0) == [1, 1]


SPECIAL = [
    # op, point, first derivative, second derivative
    (Op.TANH, 0.0, 1, 0),
    (Op.TANH, 20.0, 1 / np.cosh(20.0) ** 2, -2 / np.cosh(20.0) ** 2),
    (Op.TANH, -300.0, 1 / np.cosh(300.0) ** 2, 2 / np.cosh(300.0) ** 2),
    (Op.TANH, INF, 0, 0),
    (Op.TANH, -1e300, 0, 0),
    (Op.TANH, NAN, NAN, NAN),
    (Op.EXPM1, -40.0, np.exp(-40.0), np.exp(-40.0)),
    (Op.EXPM1, 1e-20, 1, 1),
    (Op.LOG1P, 1e300, 1e-300, 0),
    (Op.LOG1P, 0.0, 1, -1),
    (Op.SQRT, 0.0, INF, -INF),
    (Op.SQRT, 1e-300, 0.5e150, None),
    (Op.ABS, 0.0, 0, 0),
    (Op.ABS, -0.0, 0, 0),
    (Op.ABS, -3.0, -1, 0),
    (Op.EXP, -INF, 0, 0),
    (Op.RECIP, 0.5, -4, 16),
    (Op.RECIP, INF, 0, 0),
    (Op.LOG, INF, 0, 0),
    (Op.COS, 0.0, 0, -1),
    (Op.ASIN, 1.0, INF, INF),
    (Op.ACOS, -1.0, -INF, INF),
    (Op.ATAN, 1e200, 0, 0),
    (Op.ATAN, INF, 0, None),
    (Op.ASINH, 1e200, 1e-200, None),
    (Op.ASINH, 0.0, 1, 0),
    (Op.ACOSH, 1.0, INF, -INF),
    (Op.ACOSH, 1e200, 1e-200, None),
    (Op.ATANH, 1.0, INF, INF),
    (Op.ATANH, 0.0, 1, 0),
    (Op.SINH, 0.0, 1, 0),
    (Op.COSH, -0.0, 0, 1),
    (Op.CBRT, 0.0, INF, None),
    (Op.CBRT, -1e300, 1e-200 / 3, None),
    (Op.TANH, 1e-9, 1, -2e-9),
    (Op.TANH, -1e-160, 1, 2e-160),
    (Op.ASIN, 1e-9, 1, 1e-9),
    (Op.ASIN, -1e-300, 1, -1e-300),
    (Op.ACOS, 1e-17, -1, -1e-17),
    (Op.ATANH, -3e-12, 1, -6e-12),
    (Op.CBRT, 0.0, INF, -INF),
    (Op.CBRT, -0.0, INF, INF),
    (Op.CBRT, INF, 0, 0),
    (Op.CBRT, -INF, 0, 0),
    (Op.ERF, 0.0, 2 / math.sqrt(math.pi), 0),
    (Op.ERF, INF, 0, None),
    (Op.ERFC, 0.0, -2 / math.sqrt(math.pi), 0),
    (Op.ERFINV, 0.0, math.sqrt(math.pi) / 2, 0),
    (Op.ERFINV, 1.0, INF, None),
]


@pytest.mark.parametrize(("op", "x", "first", "second"), SPECIAL)
def test_special_points(op, x, first, second):
    once = _without_seed(partial(apply(op, X[0])))
    npt.assert_allclose(value(once, x), first, rtol=1e-14)
    if second is not None:
        npt.assert_allclose(value(partial(once), x), second, rtol=1e-13)


@pytest.mark.parametrize("op", [Op.TANH, Op.ASIN, Op.ACOS, Op.ATANH])
def test_derivatives_agree_where_their_formula_changes(op):
    e = apply(op, X[0])
    for _ in range(3):
        e = _without_seed(partial(e))
        npt.assert_allclose(value(e, np.nextafter(0.5, 0)), value(e, 0.5), rtol=1e-13)


def test_second_derivatives_of_hypot_at_the_origin_are_zero():
    parts = [_without_seed(partial(apply(Op.HYPOT, *X[:2]), slot)) for slot in (0, 1)]
    assert [value(partial(p, slot), 0.0, 0.0) for p in parts for slot in (0, 1)] == [0, 0, 0, 0]


def test_third_derivative_of_tanh_at_zero():
    e = apply(Op.TANH, X[0])
    for _ in range(3):
        e = _without_seed(partial(e))
    assert value(e, 0.0) == -2


POWERS = [
    # x, y, d/dx, d/dy
    (0.0, 2.0, 0, 0),
    (0.0, 1.0, 1, 0),
    (0.0, 0.0, 0, 0),
    (5e-324, 0.0, 0, math.log(5e-324)),
    (3.0, 0.0, 0, math.log(3)),
    (0.0, 0.5, INF, 0),
    (-2.0, 3.0, 12, NAN),
    (NAN, 2.0, NAN, NAN),
]


@pytest.mark.parametrize(("x", "y", "by_x", "by_y"), POWERS)
def test_powers(x, y, by_x, by_y):
    npt.assert_allclose(gradient(apply(Op.POW, X[0], X[1]), x, y), [by_x, by_y], rtol=1e-14)


PAIRS = [
    # op, x, y, d/dx, d/dy
    (Op.ATAN2, 0.0, 0.0, NAN, NAN),
    (Op.ATAN2, 0.0, -1.0, -1, 0),
    (Op.ATAN2, 3e200, 4e200, 4 / 25e200, -3 / 25e200),
    (Op.ATAN2, 3e-200, 4e-200, 4 / 25e-200, -3 / 25e-200),
    (Op.HYPOT, 0.0, 0.0, 0.5, 0.5),
    (Op.HYPOT, 3.0, 0.0, 1, 0),
    (Op.HYPOT, -3e200, 4e200, -0.6, 0.8),
    (Op.COPYSIGN, 0.0, -1.0, -1, 0),
    (Op.COPYSIGN, -2.0, -0.0, 1, 0),
    (Op.COPYSIGN, -0.0, 3.0, -1, 0),
    (Op.NEXTAFTER, 1.0, 2.0, 1, 0),
]


@pytest.mark.parametrize(("op", "x", "y", "by_x", "by_y"), PAIRS)
def test_special_pairs(op, x, y, by_x, by_y):
    npt.assert_allclose(gradient(apply(op, X[0], X[1]), x, y), [by_x, by_y], rtol=1e-14)


@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, -2.0])
def test_constant_integer_powers_to_fourth_order(x, y):
    e, factor, degree = apply(Op.POW, X[0], const(y, f64)), 1.0, y
    for _ in range(4):
        e = _without_seed(partial(e))
        assert not any(isinstance(a, Apply) and a.op is Op.LOG for a in walk((e,)))
        factor, degree = factor * degree, degree - 1
        assert value(e, x) == (factor * x**degree if factor else 0)


def test_mixed_derivatives_of_powers():
    e = _without_seed(partial(apply(Op.POW, X[0], X[1])))
    npt.assert_allclose(value(partial(e, 1), 4.0, 0.0), 0.25)
    npt.assert_allclose(value(partial(e, 1), 4.0, 3.0), 16 + 3 * 16 * math.log(4))
    assert value(partial(e), 0.0, 2.0) == 2


@pytest.mark.parametrize("op", [Op.MAX, Op.MIN])
def test_ties_share_and_nan_is_not_lost(op):
    e = apply(op, X[0], X[1])
    assert gradient(e, 2.0, 2.0) == [0.5, 0.5]
    assert gradient(e, 0.0, -0.0) == [0.5, 0.5]
    assert gradient(e, 1.0, 2.0) == ([0, 1] if op is Op.MAX else [1, 0])
    assert gradient(e, NAN, 2.0) == [1, 1]
    assert gradient(apply(op, X[0], X[0]), 2.0) == [1]


def test_division_where_products_would_overflow():
    assert gradient(X[0] / X[1], 1e200, 1e200) == [1e-200, -1e-200]


def test_a_deep_dag_takes_one_sweep():
    e = X[0]
    for _ in range(2000):
        e = (e + e) * const(0.5, f64)
    made = list(walk((partial(e),)))
    assert len(made) < 3 * 4000
    assert value(partial(e), 3.0) == 1


def test_only_the_wanted_slots():
    e = apply(Op.SIN, X[0]) * X[1]
    assert set(pullback(e, SEED, {1})) == {1}
    assert pullback(e, SEED, set()) == {}
    assert pullback(X[0], SEED) == {0: SEED}
    assert pullback(const(1.0, f64), SEED) == {}


_SMOOTH = [Op.ADD, Op.MUL, Op.NEG, Op.SIN, Op.COS, Op.TANH, Op.FMA, Op.MAX, Op.MIN, Op.ABS]


@st.composite
def expressions(draw):
    made = [*X, const(0.7, f64)]
    for _ in range(draw(st.integers(1, 8))):
        op = draw(st.sampled_from(_SMOOTH))
        made.append(apply(op, *(draw(st.sampled_from(made)) for _ in range(INFO[op].arity))))
    return made[-1]


# points where no max, min or abs of a few of them has a kink
_generic = st.tuples(*(st.integers(-40, 40).map(lambda n, c=c: (n + c) / 30) for c in (0.3713, 0.4537, 0.5619)))


@settings(max_examples=150)
@given(expressions(), _generic)
def test_random_expressions(e, xs):
    expected = differences(lambda *at: value(e, *at), xs)
    npt.assert_allclose(gradient(e, *xs), expected, rtol=1e-4, atol=1e-4)


def test_second_derivatives_of_hypot_far_from_the_diagonal():
    """Terms that cancel are added within one expression: (y*y - x*y)/r**3 where x is far larger than y."""
    first = harp.grad(lambda a, b: hnp.sum(hnp.hypot(a, b)), argnums=(0, 1))
    second = harp.jit(harp.grad(lambda a, b: sum(hnp.sum(part) for part in first(a, b))))
    x, y = np.array([39765222.26, 1e6, 3.0]), np.array([1.9448e-09, 1e-7, 4.0])
    wide_x, wide_y = x.astype(np.longdouble), y.astype(np.longdouble)
    exact = (wide_y * wide_y - wide_x * wide_y) / np.hypot(wide_x, wide_y) ** 3
    np.testing.assert_allclose(np.asarray(second(x, y)), exact.astype(float), rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_magnitudes_at_the_ends_of_the_range(compiled):
    wrapped = harp.jit if compiled else lambda f: f
    gradient = wrapped(harp.grad(lambda z: hnp.sum(hnp.abs(z))))
    z = np.array([3e-310 + 4e-310j, 3e200 + 4e200j, complex(-INF, 1), complex(1, INF), complex(INF, INF), 0j])
    found = np.asarray(gradient(z))
    npt.assert_allclose(found[:2], [0.6 - 0.8j] * 2, rtol=1e-12)
    npt.assert_array_equal(found[2:4], [-1, -1j])
    assert math.isnan(found[4].real) and math.isnan(found[4].imag) and found[5] == 0
    tangent = wrapped(lambda z, t: harp.jvp(hnp.abs, (z,), (t,))[1])
    npt.assert_allclose(tangent(z[1:4], np.array([1e200 + 1e200j, 5 + 7j, 5 + 7j])), [1.4e200, -5, 7], rtol=1e-12)
    sides = wrapped(harp.grad(hnp.hypot, argnums=(0, 1)))
    npt.assert_array_equal(sides(-INF, 2.0), [-1, 0])
