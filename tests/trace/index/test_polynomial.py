"""Canonical index expressions: what is decided by identity, and that no answer about them is ever wrong."""

from __future__ import annotations

import copy
import itertools
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp.numpy as hnp
from harp.trace.graph.node import positions
from harp.trace.graph.view import flatten_index, unflatten_index
from harp.trace.index import bounds, polynomial
from harp.trace.index.bounds import (
    at_least_zero,
    below,
    divmod_polynomial,
    exact_quotient,
    is_zero,
    less_equal,
    nonnegative,
)
from harp.trace.index.division import Substitution, ceildiv, floordiv, maximum, minimum, mod, relu
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Counter,
    Index,
    Relu,
    Symbol,
    as_index,
    evaluate,
    loop,
    loops_in,
    of,
    product,
    split_linear,
    symbols_in,
)
from harp.trace.index.samples import is_negative_somewhere
from harp.trace.sizes.signature import python_source
from harp.trace.tracer import trace

SYMBOLS = tuple(Symbol(0, number, name) for number, name in enumerate("nmkbshd"))
n, m, k, b, s, h, d = map(of, SYMBOLS)


def window(size, kernel, stride=1, dilation=1, padding=0):
    return floordiv(size + 2 * padding - dilation * (kernel - 1) - 1, stride) + 1


IDENTITIES = {
    "a polynomial does not depend on the order": lambda: (n * (m + k) + 3 - n * k, 3 + m * n),
    "sums cancel": lambda: (n + m - n, m),
    "products of sums": lambda: ((n + m) * (n - m), n * n - m * m),
    "concatenation": lambda: ((n + m) + k, n + (k + m)),
    "remainder of a quotient": lambda: (floordiv(mod(n, 12), 4), mod(floordiv(n, 4), 3)),
    "quotient of a quotient": lambda: (floordiv(floordiv(n, m), k), floordiv(n, m * k)),
    "max + min": lambda: (maximum(n, m) + minimum(n, m), n + m),
    "max is symmetric": lambda: (maximum(n, m), maximum(m, n)),
    "min is symmetric": lambda: (minimum(n, m), minimum(m, n)),
    "n - min(1, n)": lambda: (n - minimum(1, n), maximum(n - 1, 0)),
    "rounding up": lambda: (-floordiv(-n, 4), floordiv(n + 3, 4)),
    "ceildiv": lambda: (-floordiv(-n, m), ceildiv(n, m)),
    "quotient and remainder": lambda: (m * floordiv(n, m) + mod(n, m), n),
    "multiples leave": lambda: (floordiv(6 * n + m, 3), 2 * n + floordiv(m, 3)),
    "even products": lambda: (floordiv(n * m * k, m), n * k),
    "even remainders": lambda: (mod(4 * n, 2), ZERO),
    "lowest terms": lambda: (floordiv(6 * n, 4), floordiv(3 * n, 2)),
    "a convolution's two spellings": lambda: (window(n, k), n - k + 1),
    "same padding": lambda: (window(n, 2 * k + 1, padding=k), n),
    "with stride": lambda: (floordiv(n - k, 2) + 1, floordiv(n - k + 2, 2)),
    "dilated twice": lambda: (window(n, 3, dilation=2), n - 4),
    "divisor by a negative number": lambda: (floordiv(n, -3), floordiv(-n, 3)),
    "relu of a multiple": lambda: (relu(3 * n - 3 * m), 3 * relu(n - m)),
    "relu of the opposite": lambda: (relu(m - n), relu(n - m) + m - n),
    "max with a smaller one": lambda: (maximum(n + 1, n), n + 1),
    "min with zero": lambda: (minimum(n, 0), ZERO),
    "a loop of one": lambda: (loop(0, ONE), ZERO),
    "a loop is below its extent": lambda: (floordiv(loop(0, n), n), ZERO),
    "a loop is its own remainder": lambda: (mod(loop(0, n), n), loop(0, n)),
    "digits": lambda: (floordiv(loop(0, n) * m + loop(1, m), m), loop(0, n)),
    "low digits": lambda: (mod(loop(0, n) * m + loop(1, m), m), loop(1, m)),
    "part of a digit": lambda: (floordiv(4 * loop(0, n) + loop(1, as_index(4)), 8), floordiv(loop(0, n), 2)),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_equal_expressions_are_one_object(name):
    left, right = IDENTITIES[name]()
    assert left is right, f"{left} and {right}"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda: n * m, lambda: n + m),
        (lambda: floordiv(2 * n, 3), lambda: 2 * floordiv(n, 3)),
        (lambda: floordiv(n + 1, 2), lambda: floordiv(n, 2)),
        (lambda: maximum(n, m), lambda: minimum(n, m)),
        (lambda: loop(0, n), lambda: loop(0, m)),
        (lambda: loop(0, n), lambda: loop(1, n)),
    ],
)
def test_different_expressions_are_different_objects(left, right):
    assert left() is not right()


def test_splitting_and_merging_axes_is_affine():
    shape, merged = (b, s, h), (b * s, h)
    there = unflatten_index(flatten_index(positions(shape), shape), merged)
    assert there == (loop(0, b) * s + loop(1, s), loop(2, h))
    back = unflatten_index(flatten_index(positions(merged), merged), shape)
    onto = Substitution({loop(a, x).atom: p for a, (x, p) in enumerate(zip(merged, there, strict=True))})
    assert onto.each(back) == positions(shape)


def test_four_axes_merge_and_split_again():
    shape = (b, s, h, d)
    for cut in range(1, 4):
        merged = (product(shape[:cut]), product(shape[cut:]))
        there = unflatten_index(flatten_index(positions(shape), shape), merged)
        back = unflatten_index(flatten_index(positions(merged), merged), shape)
        onto = Substitution({loop(a, x).atom: p for a, (x, p) in enumerate(zip(merged, there, strict=True))})
        assert onto.each(back) == positions(shape)


def test_substitution_reaches_what_is_inside_of_atoms_and_the_extents_of_loops():
    """And leaves the rest as it is."""
    position = loop(0, loop(1, n) + 1)
    inside = (floordiv(m * 3 + 1, 2), relu(m - 4), loop(2, m), position + m)
    moved = Substitution({SYMBOLS[0]: k, SYMBOLS[1]: b})
    there = loop(0, loop(1, k) + 1)
    assert moved.each(inside) == (floordiv(b * 3 + 1, 2), relu(b - 4), loop(2, b), there + b)
    assert moved(s * h + floordiv(s, 3)) is s * h + floordiv(s, 3)
    assert symbols_in(position + m) == {SYMBOLS[0], SYMBOLS[1]}


def test_nothing_wraps():
    huge = (n + 2**70) * 2**70
    assert evaluate(huge, {SYMBOLS[0]: 3}.__getitem__) == (3 + 2**70) * 2**70
    assert floordiv(huge, 2**70) is n + 2**70


def test_numbers_of_numpy_and_bools_are_plain_integers():
    assert type(as_index(np.int64(5)).constant) is int
    assert repr(as_index(True)) == "1" and as_index(True) is ONE
    assert as_index(np.int64(2**62)) * 4 is as_index(2**64)


def test_a_quotient_by_zero_is_zero():
    quotient = floordiv(n, m)
    assert evaluate(quotient, {SYMBOLS[0]: 7, SYMBOLS[1]: 0}.__getitem__) == 0
    assert floordiv(n, 0) is ZERO and floordiv(0, n) is ZERO


def test_constant_and_atom():
    assert as_index(-4).constant == -4 and ZERO.constant == 0 and n.constant is None and (n + 1).constant is None
    assert n.atom is SYMBOLS[0] and (2 * n).atom is None and (n + 1).atom is None and as_index(3).atom is None


def test_text():
    assert repr(ZERO) == "0"
    assert repr(3 - n) == "-n + 3"
    assert repr(2 * n * m - 1) == "2*n*m - 1"
    assert repr(floordiv(n + 1, 2)) == "((n + 1)//2)"
    assert repr(of(Relu(n - m))) == "max(n - m, 0)"
    assert repr(loop(3, n)) == "i3"


def test_order_does_not_depend_on_creation():
    """Sort keys are structural: creating the atoms in another order changes nothing."""
    for order in itertools.permutations([n, m, floordiv(n, 2), relu(n - m)]):
        total = ZERO
        for part in order:
            total = total + part
        assert repr(total) == repr(n + m + floordiv(n, 2) + relu(n - m))


def test_copies_and_pickles_are_the_same_object():
    for p in (n, n * m + 3, floordiv(n, m), relu(n - m), loop(1, n), ZERO):
        assert copy.copy(p) is p and copy.deepcopy(p) is p and pickle.loads(pickle.dumps(p)) is p


def test_split_linear():
    i = loop(0, n)
    assert split_linear(3 * i * m + k, i.atom) == (3 * m, k)
    assert split_linear(i * i, i.atom) is None
    assert split_linear(floordiv(i, 2), i.atom) is None
    assert split_linear(n * i, SYMBOLS[0]) == (i, ZERO)  # a loop's extent is not its value


def test_what_occurs():
    assert symbols_in(loop(0, n * m) + floordiv(k, b)) == {*SYMBOLS[:4]}
    assert loops_in(floordiv(loop(0, n), 2) * loop(1, m)) == {loop(0, n).atom, loop(1, m).atom}


def test_long_division():
    assert exact_quotient(n * n - m * m, n + m) is n - m
    assert exact_quotient(n * n + 1, n) is None
    quotient, rest = divmod_polynomial(n * m + 2 * m + 5, m)
    assert quotient is n + 2 and rest is as_index(5)


KNOWN = [
    (lambda: n, True),
    (lambda: -n - 1, False),
    (lambda: n - 1, None),
    (lambda: n * m, True),
    (lambda: n - m, None),
    (lambda: n - 1 - loop(0, n), True),
    (lambda: loop(0, n) - n, False),
    (lambda: n * m - 1 - (loop(0, n) * m + loop(1, m)), True),
    (lambda: n - floordiv(n, 2), True),
    (lambda: n - 3 * floordiv(n, 3), True),
    (lambda: 2 - mod(n, 3), True),
    (lambda: m - 1 - mod(n, m), True),
    (lambda: mod(n, m), True),
    (lambda: maximum(n, m) - n, True),
    (lambda: maximum(n, m) - m, True),
    (lambda: n - minimum(n, m), True),
    (lambda: n + m - maximum(n, m), True),
    (lambda: relu(n - m), True),
    (lambda: n - relu(n - m), True),
    (lambda: floordiv(n - 3, 2), None),
]


@pytest.mark.parametrize(("p", "answer"), KNOWN)
def test_signs(p, answer):
    assert at_least_zero(p()) is answer
    assert nonnegative(p()) is (answer is True)


def test_comparisons():
    assert less_equal(n, n + 1) is True and less_equal(n + 1, n) is False and less_equal(n, m) is None
    assert is_zero(n - n) is True and is_zero(2 * n + 1) is False and is_zero(n + 1) is False and is_zero(n) is None
    assert is_zero(6 * n - 4 * m + 3) is False and is_zero(6 * n - 4 * m + 2) is None
    assert below(loop(0, n), n) and below(mod(n, 5), as_index(5)) and not below(n, m)


# -- random expressions: a tree that builds the canonical form and computes the integer in one go


class Negative(Exception):
    """A divisor is not positive here: no rule promises anything about this point."""


def leaf_strategy():
    sizes = st.integers(0, 3).map(lambda number: ("size", number))
    loops = st.integers(0, 2).map(lambda axis: ("loop", axis))
    return sizes | loops | st.integers(-6, 12).map(lambda value: ("number", value))


TREES = st.recursive(
    leaf_strategy(),
    lambda inner: st.tuples(st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "max", "min"]), inner, inner),
    max_leaves=10,
)
EXTENTS = (n, m * 2 + 1, as_index(5))
EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": floordiv,
    "mod": mod,
    "max": maximum,
    "min": minimum,
}


def build(tree) -> Index:
    if tree[0] == "size":
        return of(SYMBOLS[tree[1]])
    if tree[0] == "loop":
        return loop(tree[1], EXTENTS[tree[1]])
    if tree[0] == "number":
        return as_index(tree[1])
    return EXACT[tree[0]](build(tree[1]), build(tree[2]))


def compute(tree, sizes, loops) -> int:
    if tree[0] == "size":
        return sizes[tree[1]]
    if tree[0] == "loop":
        return loops[tree[1]]
    if tree[0] == "number":
        return tree[1]
    left, right = compute(tree[1], sizes, loops), compute(tree[2], sizes, loops)
    if tree[0] in ("floordiv", "mod"):
        if right <= 0:
            raise Negative
        return left // right if tree[0] == "floordiv" else left % right
    return {"add": left + right, "sub": left - right, "mul": left * right, "max": max(left, right)}.get(
        tree[0], min(left, right)
    )


def points(tree, count=40, seed=0):
    """Values of sizes and loops at which every divisor is positive, with the value of the tree there."""
    rng = random.Random(seed)
    for _ in range(count):
        sizes = [rng.choice((0, 1, 2, 3, 4, 5, 7, 12, 30)) for _ in range(4)]
        extents = (sizes[0], sizes[1] * 2 + 1, 5)
        if not all(extents):
            continue
        loops = [rng.choice((0, extent - 1, rng.randrange(extent))) for extent in extents]
        try:
            value = compute(tree, sizes, loops)
        except Negative:
            continue
        environment = dict(zip(SYMBOLS, sizes, strict=False))
        environment.update({loop(axis, extent).atom: loops[axis] for axis, extent in enumerate(EXTENTS)})
        yield environment, value


@settings(max_examples=2000, derandomize=True, database=None, deadline=None)
@given(TREES)
def test_random_expressions(tree):
    p = build(tree)
    sign, zero, inside = at_least_zero(p), is_zero(p), below(p, n + 3)
    for environment, value in points(tree):
        assert evaluate(p, environment.__getitem__) == value
        assert sign is None or sign is (value >= 0)
        assert zero is None or zero is (value == 0)
        assert not inside or 0 <= value < environment[SYMBOLS[0]] + 3


def proved(p: Index) -> bool:
    nonnegative.cache_clear()
    bounds._known.clear()
    return nonnegative(p)


def test_no_proof_is_lost_to_a_refutation(monkeypatch):
    """What is negative at a point has no proof; without the points a proof may only take too many steps."""

    @settings(max_examples=1000, derandomize=True, database=None, deadline=None)
    @given(TREES)
    def check(tree):
        p = build(tree)
        with_points, refuted = proved(p), is_negative_somewhere(p)
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "is_negative_somewhere", lambda p: False)
            assert with_points >= proved(p)
        assert not (refuted and with_points)

    check()


@settings(max_examples=500, derandomize=True, database=None, deadline=None)
@given(TREES, TREES, st.integers(0, 3))
def test_substitution_agrees_with_evaluation(tree, replacement, number):
    """Putting an expression for a size: the value is that of evaluating with the expression's value."""
    p, q, symbol = build(tree), build(replacement), SYMBOLS[number]
    if loops_in(p) or loops_in(q):
        p, q = (Substitution({a: as_index(1) for a in loops_in(x)})(x) for x in (p, q))
    result = Substitution({symbol: q})(p)
    for sizes in ((0, 1, 2, 3), (5, 3, 2, 1), (4, 4, 1, 12), (1, 1, 1, 1)):
        environment = dict(zip(SYMBOLS, sizes, strict=False))
        value = evaluate(q, environment.__getitem__)
        if value < 0:
            continue
        there = {**environment, symbol: value}
        if divisors_positive(p, there) and divisors_positive(q, environment) and divisors_positive(result, environment):
            assert evaluate(result, environment.__getitem__) == evaluate(p, there.__getitem__)


def test_names_that_change_places_are_replaced_once():
    """max(n - m, 0) is n - m + max(m - n, 0), or the other way round."""
    for a, b in ((n, m), (loop(0, n), loop(1, n))):
        swap = Substitution({a.atom: b, b.atom: a})
        assert swap(relu(a - b)) is relu(b - a) and swap(relu(b - a)) is relu(a - b)
        assert swap(floordiv(relu(a - b), 3)) is floordiv(relu(b - a), 3)


@settings(max_examples=500, derandomize=True, database=None, deadline=None)
@given(TREES, st.permutations(range(4)))
def test_other_names_make_the_expression_of_the_other_names(tree, order):
    def renamed(tree, names):
        """The tree with other sizes, and numbers for loops."""
        if tree[0] in ("size", "loop"):
            return ("size", names[tree[1]]) if tree[0] == "size" else ("number", tree[1] + 2)
        return tree if tree[0] == "number" else (tree[0], *(renamed(part, names) for part in tree[1:]))

    names = {SYMBOLS[k]: of(SYMBOLS[other]) for k, other in enumerate(order)}
    assert Substitution(names)(build(renamed(tree, range(4)))) is build(renamed(tree, order))


def divisors_positive(p: Index, environment) -> bool:
    """Whether all divisors inside are positive."""
    for monomial, _ in p.terms:
        for atom in monomial:
            inner = [getattr(atom, name) for name in ("num", "den", "arg") if hasattr(atom, name)]
            if hasattr(atom, "den") and evaluate(atom.den, environment.__getitem__) <= 0:
                return False
            if not all(divisors_positive(q, environment) for q in inner):
                return False
    return True


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(TREES)
def test_generated_source_agrees_with_evaluation(tree):
    p = build(tree)
    p = Substitution({a: as_index(1) for a in loops_in(p)})(p)
    source = compile(python_source(p), "size", "eval")
    for sizes in itertools.product((0, 1, 3), repeat=4):
        environment = dict(zip(SYMBOLS, sizes, strict=False))
        names = {f"n{number}": value for number, value in enumerate(sizes)}
        assert eval(source, names) == evaluate(p, environment.__getitem__)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(TREES, TREES, TREES)
def test_polynomials_are_a_ring(x, y, z):
    a, c, e = build(x), build(y), build(z)
    assert a + c is c + a and a * c is c * a
    assert (a + c) + e is a + (c + e) and (a * c) * e is a * (c * e)
    assert a * (c + e) is a * c + a * e
    assert a - a is ZERO and a + 0 is a and a * 1 is a


def test_a_proof_ends_after_so_many_steps(monkeypatch):
    """Also where bounds can be taken in many orders. The answer is the same whatever was asked before."""
    steps = []
    search = bounds._Proof._search
    monkeypatch.setattr(bounds._Proof, "_search", lambda self, p, depth: steps.append(p) or search(self, p, depth))
    n, m = (of(Symbol(0, number, name)) for number, name in enumerate("nm"))
    p = ZERO
    for size in (n, m, n + m, n * m):
        p = floordiv(p + size * size - relu(size - 3), 2) - relu(p - size)
    answers = []
    for forgets in (True, False):
        nonnegative.cache_clear()
        if forgets:
            bounds._known.clear()
            steps.clear()
        answers.append(nonnegative(p - n * m))
        assert len(steps) <= bounds._STEPS
    assert answers == [False, False]


def test_a_reshape_by_quotients_of_extremes_is_traced_at_once(monkeypatch):
    """It took millions of steps."""
    sums = []
    from_terms = polynomial.from_terms
    monkeypatch.setattr(polynomial, "from_terms", lambda terms: sums.append(terms) or from_terms(terms))

    def function(x):
        y = hnp.kron(x[:3], x[:2])
        return y.reshape(y.shape[0], max(y.shape[1] // 2, 1), -1)

    trace(function, np.ones((5, 4)))
    assert len(sums) < 20_000


def test_the_number_of_a_step_is_below_the_length_of_its_loop():
    t = of(Counter(0, n))
    assert nonnegative(t) and below(t, n) and below(n - 1 - t, n)
    assert not nonnegative(t - 1) and not below(t + 1, n)
    assert below(t + 1, n + 1)
    other = of(Counter(1, n))
    assert t is not other and at_least_zero(t - other) is None
    moved = Substitution({of(Counter(0, n)).atom: n - 1 - loop(0, n)})(2 * t + other)
    assert moved is 2 * (n - 1 - loop(0, n)) + other
