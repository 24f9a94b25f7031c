"""Trees: unpacked and put together, beside optree, which says what a tree is."""

from __future__ import annotations

import collections
import subprocess
import sys

import numpy as np
import optree
import pytest

import harp
from harp import errors
from harp.trace.trees import LEAF, alike, count_leaves, flatten, labels, map_leaves, spec_text, unflatten

Point = collections.namedtuple("Point", "x y")
ARRAY = np.ones(2)


class Pair(tuple):
    """Of no type that is known: a leaf."""


TREES = [
    1,
    None,
    (),
    [],
    {},
    (1, [2.0, None, ARRAY], {"b": np.float32(3), "a": (True,)}),
    {"b": {2: 1, 1: [2]}, "a": (None, 3)},
    {1: "x", "a": 2j},
    Point(1, [2, Point(3, None)]),
    [collections.OrderedDict(b=1, a=(2, 3)), collections.deque([4, 5]), collections.defaultdict(int, c=6)],
    Pair((1, 2)),
    [harp.f32["n"], harp.Array],
    (range(3), object),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_as_optree_has_it(tree):
    leaves, spec = flatten(tree)
    expected, theirs = optree.tree_flatten(tree, is_leaf=lambda part: isinstance(part, harp.ArraySignature))
    if not isinstance(tree, dict) or 1 not in tree:  # keys that do not compare stay in their order
        assert all(a is b for a, b in zip(leaves, expected, strict=True))
    assert count_leaves(spec) == theirs.num_leaves == len(leaves) and (spec == LEAF) == theirs.is_leaf()
    assert len(labels("x", tree)) == len(leaves)
    rebuilt = unflatten(spec, leaves)
    assert type(rebuilt) is type(tree) and repr(rebuilt) == repr(tree)
    assert hash(flatten(rebuilt)[1]) == hash(spec) and flatten(rebuilt)[1] == spec and alike(spec, spec)


def test_names_of_leaves():
    tree = (1, [2, None], {"b": 3, "a": {"c": Point(4, 5)}})
    assert labels("x", tree) == ["x[0]", "x[1][0]", "x[2]['a']['c'].x", "x[2]['a']['c'].y", "x[2]['b']"]


def test_none_can_be_a_leaf():
    assert flatten((None, [None, 1], {"a": Point(None, 2)}), none_is_leaf=True)[0] == [None, None, 1, None, 2]


def test_order_of_keys():
    """It is part of the shape, for a function may ask for it; leaves come by key all the same."""
    (first, one), (second, other) = flatten({"b": 1, "a": 2}), flatten({"a": 2, "b": 1})
    assert first == second == [2, 1] and one != other and alike(one, other)
    assert list(unflatten(one, first).items()) == [("b", 1), ("a", 2)]
    assert map_leaves(lambda leaf: leaf * 10, {"b": 1, "a": (2, None)}) == {"b": 10, "a": (20, None)}


@pytest.mark.parametrize(
    "other", [1, None, (1, 2), [1], [1, 2, 3], {"a": 1, "b": 2}, [1, (2,)], [None, 2], Point(1, 2)], ids=repr
)
def test_shapes_that_are_not_alike(other):
    spec, given = flatten([1, 2])[1], flatten(other)[1]
    assert given != spec and not alike(spec, given) and not alike(given, spec)


def test_a_shape_as_text():
    assert (
        spec_text(flatten({"w": 1, "b": (2, None, Point(3, [4]))})[1]) == "{'w': *, 'b': (*, None, Point(x=*, y=[*]))}"
    )


def test_a_tree_that_holds_itself():
    tree: list[object] = []
    tree.append(tree)
    with pytest.raises(errors.ArgumentError, match="nested too deep, or holds itself"):
        flatten(tree)


def test_the_order_of_keys_is_that_of_the_call():
    f = harp.jit(lambda d: list(d.values()))
    for order in (["b", "a"], ["a", "b"], ["b", "a"]):
        given = {key: np.full(3, float(ord(key))) for key in order}
        for got, expected in zip(f(given), given.values(), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_cotangent_with_keys_in_another_order():
    _, pullback = harp.vjp(lambda x: {"b": x * 2.0, "a": x * 3.0}, np.ones(2))
    np.testing.assert_array_equal(pullback({"a": np.ones(2), "b": np.zeros(2)})[0], [3.0, 3.0])


def test_optree_is_not_imported_for_plain_trees():
    code = """
import sys, numpy as np, harp
step = harp.jit(lambda params, x: ({"w": [w * x for w in params["w"]], "b": (x, None, 1)}, {}))
step({"w": [np.ones(2), np.ones(2)]}, np.float64(2))
print(sorted({"optree", "numpy.ma"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_keys_that_are_equal_and_not_the_same(kind):
    """A function sees its keys: 2 is not 2.0, 0.0 is not -0.0, True is not 1; in the long way and in the short one."""
    scaled = harp.jit(lambda d: [v * k for k, v in d.items()])
    u = np.array([200, 100], np.uint8)
    inverse = harp.jit(lambda d: [v / k for k, v in d.items()])
    same = harp.jit(lambda d: {k: v + 1 for k, v in d.items()})
    for _ in range(3):
        assert scaled(kind({2: u}))[0].dtype == np.uint8
        assert scaled(kind({2.0: u}))[0].dtype.kind == "f"
        assert np.asarray(inverse(kind({-0.0: np.ones(2)}))[0]).tolist() == [-np.inf, -np.inf]
        assert np.asarray(inverse(kind({0.0: np.ones(2)}))[0]).tolist() == [np.inf, np.inf]
        for key in (
            1,
            True,
            1.0,
            (1, 0.0),
            (1, -0.0),
            np.float64(0.0),
            np.float64(-0.0),
            frozenset([0.0]),
            frozenset([-0.0]),
        ):
            assert [repr(k) for k in same(kind({key: np.ones(2)}))] == [repr(key)]


def test_cotangents_of_dicts_in_another_order():
    kind = lambda items: collections.defaultdict(int, items)
    x = np.ones(2)
    _, pull = harp.vjp(lambda x: kind({"b": x, "a": 3 * x}), x)
    np.testing.assert_array_equal(np.asarray(pull(kind({"a": x, "b": x}))[0]), 4 * x)
    _, pull = harp.vjp(lambda x: kind({2: x, 1: 3 * x}), x)
    np.testing.assert_array_equal(np.asarray(pull(kind({1: x, 2: x}))[0]), 4 * x)
