"""Guards: a program's check accepts a call exactly where its graph is what the function does there."""

from __future__ import annotations

import itertools
import math
import operator
import random

import numpy as np
import pytest

import harp.numpy as hnp
from harp.errors import InconclusiveSizeError, ShapeError
from harp.trace.graph.node import Input, View
from harp.trace.index import bounds
from harp.trace.index.division import floordiv, mod, relu
from harp.trace.index.polynomial import ZERO, as_index, of
from harp.trace.sizes.scope import Relation, Scope

SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12)


def pinned(function):
    """The function of `int(n)`, as a multiple of x."""
    return lambda x: x * float(function(x.shape[0]))


# name: (function of arrays, shapes of the first call, sizes that it must accept)
ONE = {
    "elementwise": (lambda x: x * 2.0 + 1.0, 3, lambda n: True),
    "sum": (lambda x: x.sum(), 3, lambda n: True),
    "mean by a size": (lambda x: x.sum() / x.shape[0], 3, lambda n: True),
    "less": (lambda x: x * 2.0 if x.shape[0] < 4 else x * 3.0, 3, lambda n: n < 4),
    "not less": (lambda x: x * 2.0 if x.shape[0] < 4 else x * 3.0, 5, lambda n: n >= 4),
    "less than a fraction": (lambda x: x * 2.0 if x.shape[0] < 3.5 else x, 3, lambda n: n < 3.5),
    "more than a fraction": (lambda x: x * 2.0 if x.shape[0] >= 3.5 else x, 3, lambda n: n < 3.5),
    "less than infinity": (lambda x: x * 2.0 if x.shape[0] < math.inf else x, 3, lambda n: True),
    "equal": (lambda x: x * 2.0 if x.shape[0] == 3 else x, 3, lambda n: n == 3),
    "unequal": (lambda x: x * 2.0 if x.shape[0] == 3 else x, 4, lambda n: n != 3),
    "equal to a fraction": (lambda x: x * 2.0 if x.shape[0] == 2.5 else x, 4, lambda n: True),
    "true": (lambda x: x * 2.0 if x.shape[0] else x, 4, lambda n: n != 0),
    "false": (lambda x: x * 2.0 if x.shape[0] else x, 0, lambda n: n == 0),
    "even": (lambda x: x * 2.0 if x.shape[0] % 2 == 0 else x, 4, lambda n: n % 2 == 0),
    "odd": (lambda x: x * 2.0 if x.shape[0] % 2 == 0 else x, 5, lambda n: n % 2 == 1),
    "remainder": (lambda x: x * 2.0 if x.shape[0] % 3 == 1 else x, 4, lambda n: n % 3 == 1),
    "quotient": (lambda x: x * 2.0 if x.shape[0] // 3 == 1 else x, 4, lambda n: n // 3 == 1),
    "half": (lambda x: x * float(x.shape[0] // 2), 5, lambda n: n // 2 == 2),
    "smallest": (lambda x: x * 2.0 if min(x.shape[0], 4) == 4 else x, 5, lambda n: n > 4),
    "largest": (lambda x: x * 2.0 if max(x.shape[0], 4) == 4 else x, 5, lambda n: n > 4),
    "range": (pinned(lambda n: len(list(range(n)))), 4, lambda n: n == 4),
    "int": (pinned(int), 4, lambda n: n == 4),
    "square root": (pinned(math.sqrt), 4, lambda n: n == 4),
    "a set of sizes": (lambda x: x * 2.0 if x.shape[0] in {1, 3} else x, 3, lambda n: n == 3),
    "a tuple of sizes": (lambda x: x * 2.0 if x.shape[0] in (1, 3) else x, 4, lambda n: n not in (1, 3)),
    "a list times a size": (lambda x: x * float(len([0] * x.shape[0])), 2, lambda n: n == 2),
    "abs": (lambda x: x * 2.0 if abs(x.shape[0] - 4) <= 1 else x, 5, lambda n: 4 <= n <= 5),
    "chained": (lambda x: x * 2.0 if 2 < x.shape[0] <= 6 else x, 4, lambda n: 2 < n <= 6),
    "proved": (lambda x: x * 2.0 if x.shape[0] + 1 > 0 else x, 4, lambda n: True),
    "zeros of a size": (lambda x: hnp.zeros(x.shape[0]), 4, lambda n: True),
    "the size itself": (lambda x: x.shape[0] * 1, 4, lambda n: True),
    "floor": (lambda x: x * 2.0 if math.floor(x.shape[0]) > 2 else x, 4, lambda n: n > 2),
    "a root that keeps all sizes": (lambda x: x / x.shape[0] ** 0.5, 4, lambda n: True),
    "maximum": (lambda x: x.max(), 4, lambda n: n >= 1),
    "negative divisor": (lambda x: x * 2.0 if x.shape[0] % -3 == 0 else x, 6, lambda n: n % 3 == 0),
    "divisor of changing sign": (lambda x: x * float(7 // (x.shape[0] - 4)), 2, lambda n: n == 2),
    "slices that meet": (lambda x: x[1:] - x[:-1], 4, lambda n: True),
}


@pytest.mark.parametrize("name", ONE)
def test_one_axis(name, program, numbers):
    function, first, accepted = ONE[name]
    p = program(function, numbers((first,)))
    for n in SIZES:
        assert p.accepts((n,)) is accepted(n), f"{n}\n{p.signature}"
        if accepted(n):
            x = numbers((n,))
            np.testing.assert_array_equal(p(x), p.eager(x), strict=True)


def eq(n, m):
    return n == m


# Calls of two vectors with n and m elements: (function, first call, which calls it must accept)
TWO = {
    "added, equal": (lambda x, y: x + y, (3, 3), eq),
    "added, both 1": (lambda x, y: x + y, (1, 1), eq),
    "added, first 1": (lambda x, y: x + y, (1, 3), lambda n, m: n == 1),
    "added, second 1": (lambda x, y: x + y, (3, 1), lambda n, m: m == 1),
    "added, first 1 to none": (lambda x, y: x + y, (1, 0), lambda n, m: n == 1),
    "less": (lambda x, y: x * 2.0 if x.shape[0] < y.shape[0] else x, (2, 4), lambda n, m: n < m),
    "not less": (lambda x, y: x * 2.0 if x.shape[0] < y.shape[0] else x, (4, 4), lambda n, m: n >= m),
    "equal": (lambda x, y: x * 2.0 if x.shape[0] == y.shape[0] else x, (4, 4), eq),
    "twice": (lambda x, y: x * 2.0 if x.shape[0] == 2 * y.shape[0] else x, (4, 2), lambda n, m: n == 2 * m),
    "not twice": (lambda x, y: x * 2.0 if x.shape[0] == 2 * y.shape[0] else x, (4, 4), lambda n, m: n != 2 * m),
    "divides": (lambda x, y: x * 2.0 if x.shape[0] % y.shape[0] == 0 else x, (6, 3), lambda n, m: m and n % m == 0),
    "quotients": (
        lambda x, y: x * 2.0 if x.shape[0] // 2 == y.shape[0] // 3 else x,
        (5, 7),
        lambda n, m: n // 2 == m // 3,
    ),
    "product": (lambda x, y: x * 2.0 if x.shape[0] * y.shape[0] == 12 else x, (3, 4), lambda n, m: n * m == 12),
    "smaller one": (
        lambda x, y: x * float(min(x.shape[0], y.shape[0])),
        (3, 5),
        lambda n, m: n == 3 and m >= 3,
    ),
    "larger one": (
        lambda x, y: x * float(max(x.shape[0], y.shape[0])),
        (3, 5),
        lambda n, m: m == 5 and n < 5,
    ),
    "strides that meet": (lambda x, y: x[::2] + y[1::2], (5, 6), lambda n, m: (n + 1) // 2 == m // 2),
    "halves that meet": (lambda x, y: x[: x.shape[0] // 2] + y, (6, 3), lambda n, m: n // 2 == m),
    "joined": (lambda x, y: hnp.concatenate([x, y]), (6, 3), lambda n, m: True),
    "outer": (lambda x, y: x[:, None] * y, (6, 3), lambda n, m: True),
    "outer of 1": (lambda x, y: x[:, None] * y, (1, 1), lambda n, m: True),
    "dot": (lambda x, y: x @ y, (3, 3), eq),
    "first elements": (lambda x, y: x[0] + y, (3, 4), lambda n, m: n >= 1),
    "a size of the other": (lambda x, y: x * y.shape[0], (3, 4), lambda n, m: True),
    "tried twice": (lambda x, y: (x + y) * (y + x), (4, 4), eq),
    "both pinned": (
        lambda x, y: x * float(int(x.shape[0]) + 8 * int(y.shape[0])),
        (2, 3),
        lambda n, m: (n, m) == (2, 3),
    ),
    "equal, then pinned": (lambda x, y: (x + y) * float(int(y.shape[0])), (2, 2), lambda n, m: n == m == 2),
}


@pytest.mark.parametrize("name", TWO)
def test_two_axes(name, program, arrays):
    function, first, accepted = TWO[name]
    p = program(function, *arrays((first[0],), (first[1],)))
    for n, m in itertools.product(SIZES, SIZES):
        assert p.accepts((n,), (m,)) is bool(accepted(n, m)), f"{n}, {m}\n{p.signature}"
        if accepted(n, m):
            x, y = arrays((n,), (m,))
            np.testing.assert_array_equal(p(x, y), p.eager(x, y), strict=True)


def test_three_operands_of_all_patterns(program, arrays):
    """Whatever pattern was traced first: what its check accepts, its graph computes."""
    patterns = list(itertools.product((1, 3), repeat=3))
    for first in patterns:
        p = program(lambda x, y, z: (x + y) * z, *arrays(*((n,) for n in first)))
        assert p.accepts(*((n,) for n in first))
        for sizes in itertools.product((0, 1, 2, 3), repeat=3):
            given = arrays(*((n,) for n in sizes))
            if p.accepts(*((n,) for n in sizes)):
                np.testing.assert_array_equal(p(*given), p.eager(*given), strict=True)


def test_matrices_that_meet(program, arrays):
    p = program(lambda x, w, b: hnp.tanh(x @ w + b), *arrays((4, 3), (3, 5), (5,)))
    assert len(p.signature.guards) == 2
    assert p.accepts((1, 1), (1, 1), (1,)) and p.accepts((0, 3), (3, 5), (5,)) and p.accepts((9, 0), (0, 2), (2,))
    assert not p.accepts((4, 3), (4, 5), (5,)) and not p.accepts((4, 3), (3, 5), (4,))
    assert not p.accepts((4, 3), (3, 5), (1,))


# -- random functions


ARITHMETIC = [
    lambda n, m, c: n + c,
    lambda n, m, c: n * c - m,
    lambda n, m, c: n // (c + 1),
    lambda n, m, c: n % (c + 1),
    lambda n, m, c: n // (m + 1),
    lambda n, m, c: n % (m + 1),
    lambda n, m, c: n // m,
    lambda n, m, c: min(n, m + c),
    lambda n, m, c: max(n - c, m),
    lambda n, m, c: -n,
    lambda n, m, c: c - n,
    lambda n, m, c: abs(n - m),
    lambda n, m, c: n * m,
    lambda n, m, c: divmod(n, c + 2)[1],
]
QUESTIONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def random_function(rng):
    """A function that asks about two sizes: gives its answers, and sizes that differ with each of them."""
    steps = [(rng.choice(ARITHMETIC), rng.choice(ARITHMETIC), rng.randrange(4), rng.randrange(8)) for _ in range(3)]

    def function(n, m):
        answers = []
        for first, second, c, kind in steps:
            a, b = first(n, m, c), second(m, n, c)
            if kind < len(QUESTIONS):
                answers.append(QUESTIONS[kind](a, b))
            elif kind == 6:
                answers.append(len(range(a)))
            else:
                answers.append(int(b))
            n, m = (m, n + 1) if answers[-1] else (n, m)
        return tuple(answers), a, b

    return function


def outcome(function, n, m):
    try:
        return function(n, m)
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize("seed", range(60))
def test_random_functions_of_sizes(seed, program):
    """A check accepts exactly the sizes with the same answers, `min` and `max` among the questions."""
    rng = random.Random(seed)
    function = random_function(rng)
    asked = []

    def traced(x, y):
        answers, a, b = function(x.shape[0], y.shape[0])
        asked.append(answers)
        return hnp.stack([hnp.asarray(a * 1.0), hnp.asarray(b * 1.0)])

    for n, m in rng.sample(list(itertools.product(range(6), repeat=2)), 4):
        if outcome(function, n, m) is None:
            with pytest.raises(ZeroDivisionError):
                program(traced, np.zeros(n), np.zeros(m))
            continue
        p = program(traced, np.zeros(n), np.zeros(m))
        answers = asked[-1]
        assert answers == function(n, m)[0] and p.accepts((n,), (m,))
        for other in itertools.product(range(9), repeat=2):
            there = outcome(function, *other)
            if p.accepts((other[0],), (other[1],)):
                assert there is not None and there[0] == answers, f"{other}\n{p.signature}"
                result = p(np.zeros(other[0]), np.zeros(other[1]))
                np.testing.assert_array_equal(result, [float(v) for v in there[1:]])


# -- unification


def test_splitting_heads_is_the_identity_view(program, arrays):
    """(b, s, h*d) -> (b, s, h, d) -> (b, s, h*d): the question whether h divides the axis gives a quotient size."""

    def heads(x, like):
        h = like.shape[0]
        b, s, width = x.shape
        assert width % h == 0
        split = x.reshape(b, s, h, width // h).transpose(0, 2, 1, 3)
        return split.transpose(0, 2, 1, 3).reshape(b, s, width)

    p = program(heads, *arrays((2, 3, 12), (4,)))
    assert isinstance(p.graph.outputs[0], Input)
    assert len(p.signature.quotients) == 1
    assert p.accepts((5, 0, 8), (2,)) and p.accepts((1, 1, 1), (1,)) and not p.accepts((2, 3, 12), (5,))
    assert not p.accepts((2, 3, 12), (0,))


def test_splitting_heads_is_affine(program, arrays):
    def heads(x):
        b, s, width = x.shape
        assert width % 4 == 0
        return x.reshape(b, s, 4, width // 4).transpose(0, 2, 1, 3)

    p = program(heads, *arrays((2, 3, 12)))
    (node,) = p.graph.outputs
    assert isinstance(node, View) and "//" not in repr(node.index)
    (x,) = arrays((3, 2, 8))
    np.testing.assert_array_equal(p(x), x.reshape(3, 2, 4, 2).transpose(0, 2, 1, 3))


def scope_of(*hints):
    scope = Scope()
    return scope, *(of(scope.symbol(f"n{k}", f"x.shape[{k}]", hint)) for k, hint in enumerate(hints))


def test_equal_sizes_become_one():
    scope, n, m, k = scope_of(3, 3, 3)
    assert scope.decide(Relation.ZERO, n - m, "") and scope.decide(Relation.ZERO, m - k, "")
    assert scope.resolve(n) is scope.resolve(m) is scope.resolve(k)
    assert len(scope.guards) == 2
    assert scope.decide(Relation.ZERO, n - k, "") and len(scope.guards) == 2


def test_the_newest_size_is_replaced():
    scope, n, m = scope_of(3, 5)
    assert scope.decide(Relation.ZERO, m - n - 2, "")
    assert scope.resolve(m) is n + 2 and scope.resolve(n) is n


def test_a_quotient_is_replaced_where_no_size_can_be():
    scope, n = scope_of(7)
    assert scope.decide(Relation.ZERO, floordiv(n, 2) - 3, "")
    assert scope.resolve(floordiv(n, 2)) is as_index(3)
    assert scope.resolve(relu(floordiv(n, 2) - 1)) is as_index(2)


def test_what_a_quotient_is_known_to_be_survives_later_equalities():
    scope, n, m = scope_of(7, 7)
    assert scope.decide(Relation.ZERO, floordiv(m, 2) - 3, "")
    assert scope.decide(Relation.ZERO, m - n, "")
    assert scope.resolve(floordiv(n, 2)) is scope.resolve(floordiv(m, 2)) is as_index(3)


def test_divisibility_makes_a_quotient_size():
    scope, n, m = scope_of(12, 4)
    assert scope.decide(Relation.ZERO, mod(n, m), "")
    (t, value), *others = scope.quotients
    assert not others and value is floordiv(n, m) and scope.hint(of(t)) == 3
    assert scope.resolve(n) is m * of(t) and scope.resolve(mod(n, m)) is ZERO
    assert scope.resolve(floordiv(n, m)) is of(t)


def test_nothing_is_solved_where_nothing_can_be():
    scope, n, m, k, j = scope_of(2, 6, 3, 4)
    assert scope.decide(Relation.ZERO, n * m - k * j, "")
    assert scope.resolve(n * m) is n * m and len(scope.guards) == 1


def test_the_substitution_is_idempotent():
    rng = random.Random(1)
    for _ in range(50):
        scope, *sizes = scope_of(*(rng.choice((1, 2, 3, 4, 6)) for _ in range(5)))
        for _ in range(4):
            a, b = rng.choice(sizes), rng.choice(sizes)
            p = rng.choice([a - b, a - 2 * b, mod(a, b), floordiv(a, 2) - b, a + b - 4, relu(a - b)])
            scope.decide(Relation.ZERO, p, "")
        for p in [*sizes, *(floordiv(a, 2) * b for a in sizes for b in sizes)]:
            once = scope.resolve(p)
            assert scope.resolve(once) is once
            assert scope.hint(once) == scope.hint(p)


def test_proved_facts_are_not_guarded():
    scope, n, m = scope_of(3, 4)
    assert scope.decide(Relation.NONNEGATIVE, n + m, "")
    assert scope.decide(Relation.NONZERO, 2 * n + 1, "")
    assert not scope.decide(Relation.ZERO, n + 1, "")
    assert scope.guards == []


def test_a_fact_is_guarded_once():
    scope, n = scope_of(3)
    for _ in range(3):
        assert scope.decide(Relation.NONNEGATIVE, n - 2, "")
        assert not scope.decide(Relation.NONNEGATIVE, 1 - n, "")
        assert scope.decide(Relation.NONZERO, n - 7, "")
    assert [g.relation for g in scope.guards] == [Relation.NONNEGATIVE, Relation.NONZERO]


def test_guards_run_in_order(program):
    """The divisor is checked before what is divided by it."""

    def function(x, y):
        return x * 2.0 if x.shape[0] // y.shape[0] < 2 else x

    p = program(function, np.zeros(3), np.zeros(2))
    assert p.check(3, 0) is None and p.check(3, 2) is not None


def test_a_guard_can_be_evaluated_and_printed():
    scope, n = scope_of(3)
    scope.decide(Relation.NONNEGATIVE, n - 2, "asked")
    (guard,) = scope.guards
    assert guard.holds({n.atom: 2}.__getitem__) and not guard.holds({n.atom: 1}.__getitem__)
    assert str(guard) == "n0 - 2 >= 0  (asked)"


def test_names_are_unique_and_described():
    scope, n = scope_of(3)
    other = scope.symbol("n0", "y.shape[0]", 5)
    assert other is not n.atom and other.name != "n0"
    assert scope.describe(of(other)) == "y.shape[0] = 5"
    assert scope.describe(as_index(4)) == "4"


def test_without_a_call_nothing_is_guessed():
    scope = Scope(concrete=False)
    n = of(scope.symbol("n", "x.shape[0]", None))
    assert scope.decide(Relation.ZERO, n - 3, "") is None
    assert scope.decide(Relation.NONNEGATIVE, n - 3, "") is None
    assert scope.decide(Relation.NONNEGATIVE, n, "") is True
    assert scope.guards == [] and scope.hint(n) is None


def test_sizes_that_do_not_fit(program):
    with pytest.raises(ShapeError, match=r"a0\.shape\[0\] = 3 is not a1\.shape\[0\] = 4"):
        program(lambda x, y: x + y, np.zeros(3), np.zeros(4))
    with pytest.raises(ZeroDivisionError):
        program(lambda x, y: x * float(x.shape[0] // y.shape[0]), np.zeros(3), np.zeros(0))


def test_inconclusive_is_an_error_of_its_own():
    assert issubclass(InconclusiveSizeError, ValueError)


def test_what_comes_about_by_a_substitution_is_substituted():
    """max(1 - n - m, 0) has max(2*n - 1, 0) in it once m is n."""
    scope, n, m = scope_of(0, 0)
    waiting = relu(1 - n - m)
    assert scope.decide(Relation.ZERO, relu(2 * n - 1) - n, "") and scope.decide(Relation.ZERO, m - n, "")
    assert scope.resolve(waiting) is scope.resolve(scope.resolve(waiting)) is 1 - n


def test_nothing_is_tried_that_the_call_contradicts(monkeypatch):
    asked = []

    def nonnegative(p, steps=0):
        asked.append(p)
        return False

    scope = Scope()
    n, m = (of(scope.symbol(name, name, value)) for name, value in (("n", 6), ("m", 4)))
    monkeypatch.setattr(bounds, "nonnegative", nonnegative)
    for relation, p in ((Relation.NONNEGATIVE, n - m), (Relation.ZERO, n - m), (Relation.NONNEGATIVE, m - n)):
        assert scope.known(relation, p) is None
    assert scope.known(Relation.ZERO, 2 * n - 3 * m) is None
    assert len(asked) == 3 and all(scope.hint(p) >= 0 for p in asked)
