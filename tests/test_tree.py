"""Trees, and classes that are registered as such, through all transforms."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import attrs
import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError


@harp.tree.register
@dataclasses.dataclass
class Layer:
    w: object
    b: object


@harp.tree.register(static=("power",))
@attrs.frozen
class Model:
    layers: tuple
    _scale: object
    power: int = 2


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


harp.tree.register(Pair, flatten=lambda p: ((p.a, p.b), "pair"), unflatten=lambda kind, parts: Pair(*parts))


class Unknown:
    pass


def model(power=2):
    rng = np.random.default_rng(0)
    layers = tuple(Layer(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(2))
    return Model(layers, 0.5, power)


def loss(m, x):
    for layer in m.layers:
        x = hnp.tanh(x @ layer.w + layer.b)
    return hnp.sum(x**m.power) * m._scale


def plain(layers, scale, x):
    for w, b in layers:
        x = hnp.tanh(x @ w + b)
    return hnp.sum(x**2) * scale


def test_classes_are_arguments_and_results():
    m, x = model(), np.ones((4, 3))
    pairs = [(layer.w, layer.b) for layer in m.layers]
    expected = harp.grad(plain, (0, 1))(pairs, 0.5, x)
    for run in (lambda f: f, harp.jit):
        found = run(harp.grad(loss))(m, x)
        assert isinstance(found, Model) and found.power == 2 and isinstance(found.layers[1], Layer)
        npt.assert_allclose(np.asarray(found.layers[1].w), np.asarray(expected[0][1][0]), rtol=1e-12)
        npt.assert_allclose(float(found._scale), float(expected[1]), rtol=1e-12)


def test_static_fields_choose_the_program():
    compiled = harp.jit(loss)
    for power in (2, 3, 2):
        npt.assert_allclose(float(compiled(model(power), np.ones((4, 3)))), float(loss(model(power), np.ones((4, 3)))))
    assert compiled.compilations == 2


@dataclasses.dataclass
class Scaled:
    x: object
    by: object


harp.tree.register(static=("by",))(Scaled)


def test_static_values_that_a_function_tells_apart_are_different():
    """2 == 2.0 == True + 1 and 0.0 == -0.0, but products with them have other dtypes and signs."""
    x = np.array([3])
    compiled = harp.jit(lambda scaled: scaled.x * scaled.by)
    for by in (2, 2.0, 0.0, -0.0, 1, 1.0):
        found, expected = np.asarray(compiled(Scaled(x, by))), x * by
        assert found.dtype == expected.dtype and np.signbit(found[0]) == np.signbit(expected[0])
        npt.assert_array_equal(found, expected)
    assert compiled.compilations == 6


@pytest.mark.parametrize("by", [[2.0], np.array([1.0, 2.0]), np.array([2.0])], ids=["list", "array", "one number"])
def test_static_values_that_may_change_are_refused(by):
    """A compiled function would keep what they were when it was traced."""
    with pytest.raises(ArgumentError, match=r"what is static in a Scaled is .* cannot be hashed"):
        harp.jit(lambda scaled: scaled.x * scaled.by[0])(Scaled(1.0, by))


def test_classes_are_carried_and_mapped():
    last, _ = harp.scan(lambda p, x: (Pair(p.b, p.a + x), None), Pair(0.0, 1.0), np.arange(3.0))
    assert (float(last.a), float(last.b)) == (2.0, 2.0)
    found = harp.vmap(lambda p: Pair(p.a * 2, p.b), in_axes=Pair(0, None))(Pair(np.arange(2.0), 5.0))
    npt.assert_array_equal(np.asarray(found.a), [0, 2])
    npt.assert_array_equal(np.asarray(found.b), [5, 5])


def test_functions_of_trees():
    tree = {"b": (1, Pair(2, None)), "a": [3]}
    assert harp.tree.leaves(tree) == [3, 1, 2]
    values, spec = harp.tree.flatten(tree)
    assert harp.tree.unflatten(spec, [v * 2 for v in values])["b"][1].a == 4
    assert harp.tree.structure(tree) == spec
    assert harp.tree.map(lambda x, y: x + y, tree, tree)["a"] == [6]
    assert harp.tree.reduce(lambda a, b: a + b, tree) == 6
    assert harp.tree.reduce(lambda a, b: a + b, (), 7) == 7


class Point(NamedTuple):
    x: object
    y: object


MIXED = {"b": [1, (2, None)], "a": Layer(3, Point(4, Pair(5, OrderedDict(z=6, y=7))))}


def test_paths_name_each_leaf():
    found = {harp.tree.keystr(path): leaf for path, leaf in harp.tree.leaves_with_path(MIXED)}
    pair = "['a'].b.y[<flat index {}>]"
    assert found == {
        "['a'].w": 3,
        "['a'].b.x": 4,
        pair.format(0): 5,
        pair.format(1) + "['z']": 6,
        pair.format(1) + "['y']": 7,
        "['b'][0]": 1,
        "['b'][1][0]": 2,
    }
    assert [*found.values()] == harp.tree.leaves(MIXED)
    pairs, spec = harp.tree.flatten_with_path(MIXED)
    assert spec == harp.tree.structure(MIXED) and [leaf for _, leaf in pairs] == harp.tree.leaves(MIXED)
    keys = harp.tree.DictKey("b"), harp.tree.SequenceKey(1), harp.tree.SequenceKey(0)
    assert pairs[-1] == (keys, 2) and {keys: 1}[pairs[-1][0]]
    assert harp.tree.keystr(keys, simple=True, separator="/") == "b/1/0"
    assert harp.tree.leaves_with_path(5) == [((), 5)] and harp.tree.keystr(()) == ""
    named = harp.tree.map_with_path(lambda path, a, b: (harp.tree.keystr(path), a + b), Layer(1, [2]), Layer(10, [20]))
    assert (named.w, named.b) == ((".w", 11), [(".b[0]", 22)])


def test_what_is_said_to_be_a_leaf_is_one():
    none = lambda x: x is None
    assert harp.tree.leaves(MIXED, is_leaf=none) == [3, 4, 5, 6, 7, 1, 2, None]
    assert harp.tree.leaves(MIXED, is_leaf=lambda x: True) == [MIXED]
    assert harp.tree.structure((None, 1), is_leaf=none) != harp.tree.structure((None, 1))
    layers = harp.tree.leaves(MIXED, is_leaf=lambda x: isinstance(x, Layer))
    assert layers[0] is MIXED["a"] and layers[1:] == [1, 2]
    assert harp.tree.map(lambda x, y: y if x is None else x, (None, 1), (5, 6), is_leaf=none) == (5, 1)
    assert harp.tree.reduce(lambda n, x: n + (x is None), (None, 1, [None]), 0, is_leaf=none) == 2
    assert harp.tree.all((None, 1)) and not harp.tree.all((None, 1), is_leaf=none)
    assert [path for path, _ in harp.tree.leaves_with_path((1, [2]), is_leaf=lambda x: isinstance(x, list))] == [
        (harp.tree.SequenceKey(0),),
        (harp.tree.SequenceKey(1),),
    ]


def test_further_trees_may_have_more_below_a_leaf():
    found = harp.tree.map(
        lambda x, y, z: (x, y, z), {"a": 1, "b": [2]}, {"b": [(3, 4)], "a": None}, {"a": 5, "b": [{}]}
    )
    assert found == {"a": (1, None, 5), "b": [(2, (3, 4), {})]}
    array = np.arange(3.0)
    assert harp.tree.map(lambda a, b: b, (1, 2), (array, [array, array]))[1][1] is array


@pytest.mark.parametrize("inner", [True, False])
def test_transpose(inner):
    tree = {"a": Pair(1, [2]), "b": Pair(3, [4])}
    spec = harp.tree.structure(Pair(0, [0])) if inner else None
    found = harp.tree.transpose(harp.tree.structure({"b": 0, "a": 0}), spec, tree)
    assert (found.a, found.b) == ({"a": 1, "b": 3}, [{"a": 2, "b": 4}])
    assert list(found.a) == ["b", "a"]
    assert harp.tree.transpose(harp.tree.structure([]), harp.tree.structure((0, 0)), []) == ([], [])


def test_broadcast():
    assert harp.tree.broadcast(7, (1, [2, None])) == (7, [7, None])
    assert harp.tree.broadcast((1, None), (5, None)) == (1, None)
    assert harp.tree.broadcast((None, 1), ([5, 6], 7), is_leaf=lambda x: x is None) == ([None, None], 1)


def test_messages_name_fields():
    with pytest.raises(ArgumentError, match=r"argument m\.b\.y"):
        harp.jit(lambda m: m.w)(Layer(1.0, Point(2.0, Unknown())))


LOOSE = dataclasses.make_dataclass("Loose", ["x"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: harp.jit(lambda x: x)(Unknown()), r"argument x is a Unknown[\s\S]*harp.tree.register"),
        (
            lambda: harp.grad(lambda p: p)(Unknown()),
            r"register\(Unknown, flatten=\.\.\., unflatten=\.\.\.\)",
        ),
        (lambda: harp.vmap(lambda p: p)(Unknown()), r"harp\.tree\.register\(Unknown, .*, or what is no array"),
        (lambda: harp.fori_loop(0, 2, lambda i, c: c, Unknown()), r"the carry is a Unknown.*harp\.tree\.register"),
        (lambda: harp.eval_shape(lambda p: p, LOOSE(1.0)), "with @harp.tree.register, or"),
        (lambda: harp.tree.register(Unknown), "neither a dataclass nor an attrs class"),
        (lambda: harp.tree.register(Unknown, flatten=lambda x: ((), None)), "flatten and unflatten, or neither"),
        (lambda: harp.tree.register(Layer), "is a tree already"),
        (lambda: harp.tree.register(static=("depth",))(Layer), "has no field 'depth'"),
        (lambda: harp.tree.map(max, (1, 2), [1, 2]), "map takes trees of one shape"),
        (lambda: harp.tree.unflatten(harp.tree.structure((1, 2)), [1]), "has 2 leaves, but unflatten is given 1"),
        (lambda: harp.tree.unflatten(harp.tree.structure((1, 2)), [1, 2, 3]), "has 2 leaves, but unflatten is given 3"),
        (lambda: harp.tree.unflatten([1], (1, 2)), "takes a structure first"),
        (lambda: harp.tree.map(max, (1, [2]), (1, 2)), "map takes trees of one shape"),
        (lambda: harp.tree.map_with_path(max, {"a": 1}, {"b": 1}), "map takes trees of one shape"),
        (lambda: harp.tree.reduce(max, ()), "has no leaves to combine"),
        (lambda: harp.tree.broadcast((1, 2), [1, 2]), "is not the start of a tree"),
        (lambda: harp.tree.transpose(harp.tree.structure((0, 0)), None, ((1, 2), (3,))), "transpose is given a tree"),
        (lambda: harp.tree.transpose(harp.tree.structure((0, 0)), None, [1, 2]), "transpose is given a tree"),
    ],
)
def test_what_is_no_tree(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
