"""Views: random compositions with symbolic sizes, against NumPy on the same numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harp.trace.eval.interpret import interpret
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Input, View, fresh_input, positions
from harp.trace.graph.verify import verify_graph
from harp.trace.index.division import floordiv, mod
from harp.trace.index.polynomial import ONE, ZERO, Symbol, as_index, evaluate, loop, of, product
from harp.trace.scalar.dtypes import as_dtype, f64
from harp.trace.scalar.expr import const

SYMBOLS = tuple(Symbol(0, number, name) for number, name in enumerate("nmk"))
n, m, k = map(of, SYMBOLS)
SIZES = [(2, 3, 4), (1, 1, 1), (0, 2, 3), (3, 0, 1), (1, 4, 2), (5, 2, 0)]


class Steps:
    """The same views of a node, and of one array for each choice of sizes."""

    def __init__(self, rng, dtype):
        self.rng = rng
        self.node = self.source = fresh_input("x", (n, m, k), as_dtype(dtype))
        self.inputs = [np.arange(1, 1 + np.prod(s), dtype=np.float64).reshape(s).astype(dtype) for s in SIZES]
        self.arrays = list(self.inputs)

    def number(self, p, sizes):
        return evaluate(p, dict(zip(SYMBOLS, sizes, strict=True)).__getitem__)

    def apply(self, build, numpy):
        """One step on the node, and on every array with its sizes as numbers."""
        self.node = build(self.node)
        self.arrays = [numpy(a, lambda p, s=s: self.number(p, s)) for a, s in zip(self.arrays, SIZES, strict=True)]

    def permute(self):
        order = self.rng.sample(range(len(self.node.shape)), len(self.node.shape))
        self.apply(lambda x: view.permute(x, order), lambda a, value: a.transpose(order))

    def flip(self):
        axes = [axis for axis in range(len(self.node.shape)) if self.rng.random() < 0.5]
        self.apply(lambda x: view.flip(x, axes), lambda a, value: np.flip(a, axes))

    def merge(self):
        shape = self.node.shape
        if len(shape) > 1:
            cut = self.rng.randrange(len(shape) - 1)
            merged = (*shape[:cut], shape[cut] * shape[cut + 1], *shape[cut + 2 :])
            self.reshape(merged)

    def split(self):
        """Split an axis that is a product by one of its factors."""
        shape = self.node.shape
        products = [axis for axis, p in enumerate(shape) if len(p.terms) == 1 and len(p.terms[0][0]) > 1]
        if products:
            axis = self.rng.choice(products)
            atoms = shape[axis].terms[0][0]
            first, rest = of(atoms[0]), product(map(of, atoms[1:])) * shape[axis].terms[0][1]
            self.reshape((*shape[:axis], first, rest, *shape[axis + 1 :]))

    def ravel(self):
        self.reshape((product(self.node.shape),))

    def reshape(self, shape):
        self.apply(lambda x: view.reshape(x, shape), lambda a, value: a.reshape([value(p) for p in shape]))

    def expand(self):
        front = self.rng.choice([as_index(2), n, ONE])
        shape = (front, *self.node.shape)
        if len(shape) <= 5:
            kept = [False] * len(self.node.shape)
            self.apply(
                lambda x: view.expand(x, shape, kept), lambda a, value: np.broadcast_to(a, [value(p) for p in shape])
            )

    def insert(self):
        if len(self.node.shape) < 5:
            axis = self.rng.randrange(len(self.node.shape) + 1)
            self.apply(lambda x: view.insert_axes(x, [axis]), lambda a, value: np.expand_dims(a, axis))

    def drop(self):
        ones = [axis for axis, p in enumerate(self.node.shape) if p is ONE]
        if ones:
            axis = self.rng.choice(ones)
            self.apply(lambda x: view.drop_axes(x, {axis: ZERO}), lambda a, value: np.squeeze(a, axis))

    def pad(self):
        fill = self.rng.choice((0.0, 0.0, 3.0))
        amounts = [(self.rng.choice((0, 0, 1, n)), self.rng.choice((0, 0, 2))) for _ in self.node.shape]
        self.apply(
            lambda x: view.pad(x, [a for a, _ in amounts], [b for _, b in amounts], const(fill, x.dtype)),
            lambda a, value: np.pad(
                a, [(value(as_index(p)), value(as_index(q))) for p, q in amounts] or 0, constant_values=fill
            ) if a.ndim else a,
        )  # fmt: skip

    def crop(self):
        """Every other element of an axis grown by 3, from the second on: it exists for all sizes."""
        if self.node.shape:
            axis = self.rng.randrange(len(self.node.shape))
            low = [3 if a == axis else 0 for a in range(len(self.node.shape))]
            none = [0] * len(low)
            self.apply(
                lambda x: view.pad(x, low, none, const(9.0, x.dtype)),
                lambda a, value: np.pad(a, [(p, 0) for p in low], constant_values=9.0),
            )
            step = self.rng.choice((1, 2, -1))
            size = self.node.shape[axis]
            start = ONE if step > 0 else size - 1
            length = as_index(2) if step == 2 or step < 0 else size - 1
            if step == 2:
                length = ONE
            self.slice(axis, start, step, length)

    def slice(self, axis, start, step, length):
        shape = self.node.shape
        starts = [start if a == axis else ZERO for a in range(len(shape))]
        steps = [step if a == axis else 1 for a in range(len(shape))]
        lengths = tuple(length if a == axis else p for a, p in enumerate(shape))

        def numpy(a, value):
            index = value(start) + step * np.arange(value(length))
            return np.take(a, index, axis)

        self.apply(lambda x: view.take_slices(x, starts, steps, lengths), numpy)

    ALL = (permute, flip, merge, split, ravel, expand, insert, drop, pad, crop)

    def check(self):
        graph = Graph((self.source,), (self.node,))
        verify_graph(graph)
        for array, expected, sizes in zip(self.inputs, self.arrays, SIZES, strict=True):
            result = interpret(graph, [array], dict(zip(SYMBOLS, sizes, strict=True)))[0]
            np.testing.assert_array_equal(result, expected, strict=True)


@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@given(
    st.lists(st.sampled_from(range(len(Steps.ALL))), max_size=6),
    st.integers(0, 99),
    st.sampled_from([np.float64, np.int16]),
)
def test_random_compositions(choices, seed, dtype):
    steps = Steps(random.Random(seed), dtype)
    for choice in choices:
        if sum(len(p.terms) for p in steps.node.shape) < 24:
            Steps.ALL[choice](steps)
    steps.check()


X = Input(-1, "x", (n, m, k), f64)


def test_views_of_views_are_one_view():
    node = view.flip(view.permute(view.pad(X, [1, 0, 0], [0, 0, 2], const(0.0, f64)), (2, 0, 1)), (0, 2))
    assert isinstance(node, View) and node.src is X


def test_views_with_other_fills_stay_two():
    first = view.pad(X, [1, 0, 0], [0, 0, 0], const(0.0, f64))
    for value, merged in ((0.0, True), (-0.0, False), (1.0, False)):
        node = view.pad(first, [0, 1, 0], [0, 0, 0], const(value, f64))
        assert (node.src is X) is merged


@pytest.mark.parametrize(
    "both",
    [
        lambda x: view.permute(view.permute(x, (1, 2, 0)), (2, 0, 1)),
        lambda x: view.flip(view.flip(x, (0, 2)), (2, 0)),
        lambda x: view.reshape(view.reshape(x, (n * m, k)), (n, m, k)),
        lambda x: view.reshape(view.reshape(x, (n * m * k,)), (n, m, k)),
        lambda x: view.drop_axes(view.insert_axes(x, (0, 2)), {0: ZERO, 2: ZERO}),
        lambda x: view.pad(
            view.pad(x, (1, n, 0), (0, 2, m), const(0.0, f64)), (-1, -n, 0), (0, -2, -m), const(0.0, f64)
        ),
        lambda x: view.expand(x, x.shape, (False, False, False)),
        lambda x: view.pad(x, (0, 0, 0), (0, 0, 0), const(0.0, f64)),
        lambda x: view.take_slices(x, (ZERO, ZERO, ZERO), (1, 1, 1), x.shape),
        lambda x: view.permute(x, (0, 1, 2)),
    ],
)
def test_what_cancels_is_the_node_itself(both):
    assert both(X) is X


def test_a_prefix_is_not_all():
    assert view.take_slices(X, (ZERO, ZERO, ZERO), (1, 1, 1), (n, m, as_index(2))) is not X


def test_conditions_that_always_hold_are_dropped():
    node = view.pad(X, (0, 2, 0), (0, 0, 0), const(0.0, f64))
    assert node.conditions == (loop(1, m + 2) - 2,)
    assert view.view(X, (n,), (loop(0, n), ZERO, ZERO), (loop(0, n),), const(1.0, f64)).fill is None


def test_reshapes_are_affine_where_factors_match():
    y = Input(-4, "y", (n * m, k, n), f64)
    for shape in ((n, m, k, n), (n, m, k, ONE, n), (ONE, n, m, k, n)):
        assert "//" not in repr(view.reshape(y, shape).index)
    i = loop(1, m * k)
    assert view.reshape(X, (n, m * k)).index == (loop(0, n), floordiv(i, k), mod(i, k))
    assert view.reshape(X, (n * m, k)).index[2] is loop(1, k)
    assert "//" in repr(view.reshape(X, (m, n, k)).index)
    guarded = view.reshape(X, (n, m, floordiv(k, 4), as_index(4)))  # a guard says that k has the factor 4
    assert guarded.index == (loop(0, n), loop(1, m), 4 * loop(2, floordiv(k, 4)) + loop(3, as_index(4)))


def test_broadcast_reads_the_first_element():
    y = Input(-2, "y", (ONE, m), f64)
    assert view.expand(y, (n, k, m), (True, False)).index == (ZERO, loop(2, m))
    assert view.expand(Input(-3, "z", (), f64), positions_shape := (n, m), ()).shape == positions_shape


def test_digits():
    shape = (n, m, k)
    assert view.flatten_index(positions(shape), shape) is loop(0, n) * m * k + loop(1, m) * k + loop(2, k)
    assert view.unflatten_index(view.flatten_index(positions(shape), shape), shape) == positions(shape)
    assert view.flatten_index((), ()) is ZERO and view.unflatten_index(ZERO, ()) == ()
