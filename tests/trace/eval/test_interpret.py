"""The interpreter: what a graph means, by NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from harp.errors import OutOfMemoryError
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Captured, Constant, Contiguous, MapReduce, View, fresh_input, positions
from harp.trace.graph.view import expand, flip, permute
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import ONE, ZERO, Symbol, as_index, loop, of
from harp.trace.scalar.dtypes import ALL, as_dtype, bool_, f64
from harp.trace.scalar.expr import Operand, Position, apply, cast, const
from harp.trace.scalar.ops import Op, Reduce

SYMBOLS = tuple(Symbol(0, number, name) for number, name in enumerate("nmkj"))
n, m, k, j = map(of, SYMBOLS)


def run(node, *pairs, **sizes):
    """The value of a node for inputs given as pairs of node and array."""
    graph = Graph(tuple(i for i, _ in pairs), (node,))
    values = {s: sizes[s.name] for s in SYMBOLS if s.name in sizes}
    return interpret(graph, [a for _, a in pairs], values)[0]


def multiply(*nodes):
    return apply(Op.MUL, *(Operand(node.dtype, slot) for slot, node in enumerate(nodes)))


REDUCTIONS = [
    (reduce, dtype, axes)
    for reduce in Reduce
    for dtype in ALL
    if not dtype.is_tiny  # tests/numpy/test_float8.py
    for axes in ((0,), (1,), (0, 2), (0, 1, 2))
    if dtype is not bool_ or reduce in (Reduce.MAX, Reduce.MIN)
]


@pytest.mark.parametrize(("reduce", "dtype", "axes"), REDUCTIONS)
def test_reductions(reduce, dtype, axes, numbers):
    x = fresh_input("x", (n, m, k), dtype)
    node = MapReduce(x.shape, (x,), Operand(dtype, 0), reduce, axes)
    for shape in ((2, 3, 4), (1, 1, 1), (0, 3, 2), (2, 0, 0), (5, 1, 2)):
        a = numbers(shape, dtype.numpy)
        result = run(node, (x, a), n=shape[0], m=shape[1], k=shape[2])
        with np.errstate(all="ignore"):
            initial = reduce.identity(dtype)[()]
            expected = reduce.ufunc.reduce(a, axis=axes, dtype=dtype.numpy, initial=initial)
        np.testing.assert_array_equal(result, np.asarray(expected), strict=True)


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf, -np.inf], [-0.0, -0.0], [1e308, 1e308], [np.inf, 0.0]])
def test_reductions_of_special_values(values):
    a, x = np.array(values), fresh_input("x", (n,), f64)
    for reduce in Reduce:
        result = run(MapReduce((n,), (x,), Operand(f64, 0), reduce, (0,)), (x, a), n=2)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(result, reduce.ufunc.reduce(a))


def brute(a, b, axes):
    """The sum of products, term by term."""
    with np.errstate(all="ignore"):
        return np.add.reduce(a * b, axis=axes, dtype=a.dtype)


def same(result, expected):
    """Equal up to the order of summation, infinities and NaN in the same places."""
    assert result.dtype == expected.dtype and result.shape == expected.shape
    if result.dtype.kind == "f":
        np.testing.assert_allclose(result, expected, rtol=1e-6 if result.dtype == np.float32 else 1e-12)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int8, np.uint8], ids=lambda d: d.__name__)
def test_sums_of_products(dtype, numbers):
    """Every way in which two operands can repeat along the axes of the domain, reduced over every set of axes."""
    domain, shape = (n, m, k), (3, 2, 4)
    for owned_a, owned_b in itertools.product(itertools.product((True, False), repeat=3), repeat=2):
        pairs = []
        for name, owned in (("x", owned_a), ("y", owned_b)):
            node = fresh_input(
                name, tuple(s if o else ONE for s, o in zip(domain, owned, strict=True)), as_dtype(dtype)
            )
            array = numbers([s if o else 1 for s, o in zip(shape, owned, strict=True)], dtype, seed=len(name))
            pairs.append((node, array, expand(node, domain, [not o for o in owned])))
        (x, a, wide_x), (y, b, wide_y) = pairs
        for axes in ((0,), (2,), (0, 1), (1, 2), (0, 1, 2)):
            node = MapReduce(domain, (wide_x, wide_y), multiply(x, y), Reduce.SUM, axes)
            expected = brute(np.broadcast_to(a, shape), np.broadcast_to(b, shape), axes)
            same(run(node, (x, a), (y, b), n=3, m=2, k=4), expected)


def test_a_product_with_itself(numbers):
    x, a = fresh_input("x", (n, m), f64), numbers((3, 4))
    square = Operand(f64, 0) * Operand(f64, 0)
    same(run(MapReduce((n, m), (x,), square, Reduce.SUM, (1,)), (x, a), n=3, m=4), (a * a).sum(axis=1))
    node = MapReduce((n, m), (x, x), multiply(x, x), Reduce.SUM, (0,))
    same(run(node, (x, a), n=3, m=4), (a * a).sum(axis=0))


def test_a_product_of_other_slots(numbers):
    """The factors are those that the expression names, in its order."""
    nodes = [fresh_input(name, (n,), f64) for name in "xyz"]
    arrays = [numbers((4,), seed=seed) for seed in range(3)]
    for first, second in itertools.product(range(3), repeat=2):
        product = Operand(f64, first) * Operand(f64, second)
        node = MapReduce((n,), tuple(nodes), product, Reduce.SUM, (0,))
        same(run(node, *zip(nodes, arrays, strict=True), n=4), np.asarray((arrays[first] * arrays[second]).sum()))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 1e308, 0.0])
def test_a_repeated_factor_stays_in_the_sum(special):
    """The sum of a[i]*b is not (sum of a)*b where b is infinite."""
    x, y = fresh_input("x", (n, m), f64), fresh_input("y", (ONE, m), f64)
    node = MapReduce((n, m), (x, expand(y, (n, m), [True, False])), multiply(x, y), Reduce.SUM, (0,))
    a, b = np.array([[0.0, 1.0, 1.5], [1.0, -1.0, 1.2], [2.0, 0.5, 0.7]]), np.array([[special, special, 0.25]])
    np.testing.assert_array_equal(run(node, (x, a), (y, b), n=3, m=3), brute(a, np.broadcast_to(b, a.shape), (0,)))
    overflow = np.array([[1e308] * 3] * 3)
    same(run(node, (x, overflow), (y, b), n=3, m=3), brute(overflow, np.broadcast_to(b, a.shape), (0,)))


def test_empty_contractions():
    x, y = fresh_input("x", (n, m, ONE), f64), fresh_input("y", (ONE, m, k), f64)
    wide = expand(x, (n, m, k), [False, False, True]), expand(y, (n, m, k), [True, False, False])
    node = MapReduce((n, m, k), wide, multiply(x, y), Reduce.SUM, (1,))
    for sizes in itertools.product((0, 1, 3), repeat=3):
        a, b = np.ones((sizes[0], sizes[1], 1)), np.ones((1, sizes[1], sizes[2]))
        result = run(node, (x, a), (y, b), **dict(zip("nmk", sizes, strict=True)))
        np.testing.assert_array_equal(result, np.full((sizes[0], sizes[2]), float(sizes[1])), strict=True)


def test_positions_and_casts():
    values = Position(loop(0, n) * m + loop(1, m)) + Position(n)
    node = MapReduce((n, m), (), cast(values, f64))
    expected = (np.arange(3)[:, None] * 4 + np.arange(4) + 3).astype(float)
    np.testing.assert_array_equal(run(node, n=3, m=4), expected, strict=True)
    assert run(node, n=0, m=4).shape == (0, 4)


def test_a_map_without_operands_fills_its_domain():
    node = MapReduce((n, m), (), const(2.5, f64))
    np.testing.assert_array_equal(run(node, n=2, m=3), np.full((2, 3), 2.5), strict=True)
    total = MapReduce((n, m), (), const(2.5, f64), Reduce.SUM, (0,))
    np.testing.assert_array_equal(run(total, n=2, m=3), np.full(3, 5.0), strict=True)


def test_outputs_are_fresh_and_contiguous(numbers):
    x, a = fresh_input("x", (n, m), f64), numbers((3, 4))
    graph = Graph((x,), (x, permute(x, (1, 0)), flip(x, (0,)), x))
    results = interpret(graph, [a], dict(zip(SYMBOLS, a.shape, strict=False)))
    for result, expected in zip(results, (a, a.T, a[::-1], a), strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.flags.c_contiguous and result.flags.writeable and not np.shares_memory(result, a)
    assert not np.shares_memory(results[0], results[3])


def test_inputs_may_be_strided(numbers):
    x, a = fresh_input("x", (n, m), f64), numbers((6, 8))[::2, ::-2]
    node = MapReduce((n, m), (flip(x, (1,)),), Operand(f64, 0), Reduce.SUM, (0,))
    np.testing.assert_array_equal(run(node, (x, a), n=3, m=4), a[:, ::-1].sum(axis=0))
    node = MapReduce((n, m), (x, x), multiply(x, x), Reduce.SUM, (1,))
    same(run(node, (x, a), n=3, m=4), (a * a).sum(axis=1))


def test_contiguous_and_captured(numbers):
    a = numbers((3, 4))
    node = Contiguous(permute(Constant(Captured(a)), (1, 0)))
    np.testing.assert_array_equal(run(node), a.T)
    x = fresh_input("x", (), f64)
    assert run(Contiguous(x), (x, np.array(2.0))).shape == ()


def test_a_view_by_conditions_of_an_empty_array():
    x = fresh_input("x", (n,), f64)
    padded = View(x, (n + 2,), (loop(0, n + 2) - 1,), (loop(0, n + 2) - 1, n - loop(0, n + 2)), const(7.0, f64))
    assert run(padded, (x, np.zeros(0)), n=0).tolist() == [7.0, 7.0]
    assert run(padded, (x, np.ones(2)), n=2).tolist() == [7.0, 1.0, 1.0, 7.0]


def test_views_of_a_number():
    x = fresh_input("x", (), f64)
    assert run(View(x, (n,), ()), (x, np.array(3.0)), n=2).tolist() == [3.0, 3.0]
    triangle = View(x, (n, n), (), (loop(0, n) - loop(1, n),), const(0.0, f64))
    np.testing.assert_array_equal(run(triangle, (x, np.array(3.0)), n=3), np.tril(np.full((3, 3), 3.0)))


def test_views_that_are_not_affine(numbers):
    x, a = fresh_input("x", (n,), f64), numbers((7,))
    folded = View(x, (n,), (loop(0, n) * 2 - 7 * floordiv(loop(0, n) * 2, 7),))
    expected = [a[2 * i - 7 * (2 * i // 7)] for i in range(7)]
    assert run(folded, (x, a), n=7).tolist() == expected


def test_diagonal(numbers):
    x, a = fresh_input("x", (n, n), f64), numbers((4, 4))
    assert run(View(x, (n,), (loop(0, n), loop(0, n))), (x, a), n=4).tolist() == a.diagonal().tolist()
    assert run(View(x, (), (n - 1, ZERO)), (x, a), n=4) == a[3, 0]


def test_too_large():
    huge = as_index(2**50)
    node = Contiguous(MapReduce((huge,), (), cast(Position(loop(0, huge)), f64)))
    with pytest.raises(OutOfMemoryError, match="1125899906842624"):
        run(node)


def test_positions_of_a_shape():
    assert positions((n, ONE)) == (loop(0, n), ZERO)
    with pytest.raises(KeyError):
        run(fresh_input("x", (), f64))


@pytest.mark.parametrize("reduce", Reduce)
def test_reductions_of_nothing_need_no_room(reduce):
    """The terms would be too large for NumPy, which multiplies the sizes that are not 0."""
    x = fresh_input("x", (n, m), as_dtype(np.int8))
    huge = np.empty((0, 2**60), np.int8)
    for axes, shape in (((0, 1), ()), ((1,), (0,)), ((0,), (2**60,))):
        node = MapReduce((n, m), (x,), cast(Operand(x.dtype, 0), f64), reduce, axes)
        if shape == (2**60,):
            with pytest.raises(OutOfMemoryError, match="does not fit into memory"):
                run(node, (x, huge), n=0, m=2**60)
            continue
        known = np.full(shape, reduce.identity(f64))
        np.testing.assert_array_equal(run(node, (x, huge), n=0, m=2**60), known, strict=True)


def test_what_has_no_elements_computes_no_positions():
    x = fresh_input("x", (n, m), as_dtype(np.int8))
    inner = View(x, (n, m), positions((n, m)), (positions((n, m))[1] - 3,), const(0, x.dtype))
    assert run(inner, (x, np.empty((0, 2**62), np.int8)), n=0, m=2**62).shape == (0, 2**62)
    wide = MapReduce((n, m), (x,), cast(Operand(x.dtype, 0), f64))
    with pytest.raises(OutOfMemoryError, match=r"\(0, 4611686018427387904\)"):
        run(wide, (x, np.empty((0, 2**62), np.int8)), n=0, m=2**62)
