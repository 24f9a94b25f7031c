"""vmap beside a loop in Python, over all public functions that have derivatives, and round other transforms."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import BatchError, ShapeError
from harp.trace.graph.node import KINDS
from harp.transforms.batching import rules

PATH = pathlib.Path(__file__).resolve().parents[2] / "numpy" / "test_gradients.py"
SPEC = importlib.util.spec_from_file_location("checked_gradients", PATH)
assert SPEC is not None and SPEC.loader is not None
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)


def leaves(result) -> list[np.ndarray]:
    parts = [result] if isinstance(result, harp.Array) else list(result)
    return [np.asarray(p) for p in parts]


def test_the_table_is_complete():
    assert set(rules.RULES) == set(KINDS)


def batches(arguments, count=3):
    """Several examples of each argument, with elements in another order."""
    rng = np.random.default_rng(0)
    return [np.stack([rng.permuted(a, axis=-1) if np.ndim(a) else a for _ in range(count)]) for a in arguments]


def looped(function, arguments, mapped):
    """What a loop over the examples gives, stacked."""
    count = next(len(a) for a, m in zip(arguments, mapped, strict=True) if m)
    each = [leaves(function(*(a[k] if m else a for a, m in zip(arguments, mapped, strict=True)))) for k in range(count)]
    return [np.stack(parts) for parts in zip(*each, strict=True)]


def same(found, expected):
    for a, b in zip(leaves(found), expected, strict=True):
        npt.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.CASES)
def test_every_function(name):
    """Of all arguments, and of each one with the others the same for all examples."""
    function, *arguments = TABLE.CASES[name]
    stacked = batches(arguments)
    try:
        expected = looped(function, stacked, [True] * len(arguments))
    except ShapeError:  # the shape of the result depends on what is in an example
        pytest.skip("needs these numbers")
    same(harp.vmap(function)(*stacked), expected)
    for k in range(len(arguments) if len(arguments) > 1 else 0):
        mapped = [j == k for j in range(len(arguments))]
        mixed = [s if m else a for s, a, m in zip(stacked, arguments, mapped, strict=True)]
        axes = tuple(0 if m else None for m in mapped)
        same(harp.vmap(function, in_axes=axes)(*mixed), looped(function, mixed, mapped))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["matmul", "cumsum", "sort", "pad", "max", "prod", "take", "searchsorted", "linalg.cross", "convolve"]
)
def test_compiled_round_gradients(name):
    """Per-example gradients: one program for all batches."""
    if name not in TABLE.CASES:
        function, arguments = lambda x: hnp.searchsorted(hnp.sort(x[0]), x) * x, [TABLE.X]
    else:
        function, *arguments = TABLE.CASES[name]

    def loss(*given):
        result = function(*given)
        return sum(hnp.sum(p**2) for p in ([result] if isinstance(result, harp.Array) else result))

    gradient = harp.grad(loss)
    compiled = harp.jit(harp.vmap(gradient))
    for count in (2, 1, 5, 0):
        stacked = batches(arguments, count) if count else [np.zeros((0, *np.shape(a))) for a in arguments]
        expected = looped(gradient, stacked, [True] * len(arguments)) if count else [stacked[0]]
        for a, b in zip(leaves(compiled(*stacked)), expected, strict=True):
            npt.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_one_program_for_all_sizes():
    compiled = harp.jit(harp.vmap(lambda w, x: hnp.tanh(w @ x), in_axes=(None, 0)))
    rng = np.random.default_rng(0)
    for batch, inner, outer in ((0, 2, 3), (4, 0, 3), (5, 2, 0), (2, 5, 4), (33, 7, 2)):
        w, x = rng.normal(size=(outer, inner)), rng.normal(size=(batch, inner))
        npt.assert_allclose(np.asarray(compiled(w, x)), np.tanh(x @ w.T), rtol=1e-12)
    assert compiled.compilations == 1


def test_a_row_has_the_same_bits_in_every_batch():
    compiled = harp.jit(harp.vmap(lambda x: hnp.exp(x - hnp.max(x)) / hnp.sum(hnp.exp(x))))
    x = np.random.default_rng(0).normal(size=(9, 37)).astype("f4")
    whole = np.asarray(compiled(x))
    for k in (1, 2, 5):
        npt.assert_array_equal(np.asarray(compiled(x[:k])), whole[:k])


@given(st.data())
def test_axes_anywhere(data):
    """A function of two arrays, one of which may be the same for all; nested in itself."""
    a_axis, b_axis = (data.draw(st.sampled_from([0, 1, 2, -1, -2, -3])) for _ in range(2))
    out = data.draw(st.sampled_from([0, 1, 2, -1, -3]))
    rng = np.random.default_rng(0)

    def function(a, b):
        return a * 2 + b[::-1]

    x, y = np.moveaxis(rng.normal(size=(5, 3, 4)), 0, a_axis), np.moveaxis(rng.normal(size=(5, 3, 4)), 0, b_axis)
    found = harp.vmap(function, in_axes=(a_axis, b_axis), out_axes=out)(x, y)
    first, second = np.moveaxis(x, a_axis, 0), np.moveaxis(y, b_axis, 0)
    npt.assert_allclose(np.asarray(found), np.moveaxis(first * 2 + second[:, ::-1], 0, out))
    pairs = harp.vmap(harp.vmap(function, in_axes=(None, 0)), in_axes=(0, None))(first, second)
    npt.assert_allclose(np.asarray(pairs), first[:, None] * 2 + second[None, :, ::-1])


def test_trees_and_keywords():
    params = {"w": np.arange(6.0).reshape(3, 2), "b": (1.0, np.arange(3.0))}
    mapped = harp.vmap(
        lambda p, x, *, shift: {"y": p["w"] * x + p["b"][1] + shift, "same": p["b"][0]},
        in_axes=({"w": 0, "b": (None, 0)}, None),
        out_axes={"y": -1, "same": None},
    )
    found = mapped(params, 10.0, shift=np.array([0.0, 100.0, 200.0]))
    expected = params["w"] * 10 + params["b"][1][:, None] + np.array([0.0, 100.0, 200.0])[:, None]
    npt.assert_array_equal(np.asarray(found["y"]), expected.T)
    assert float(found["same"]) == 1.0
    prefix = harp.vmap(lambda p: p["a"] + p["b"], in_axes=({"a": 0, "b": 0},))({"a": np.ones(2), "b": np.ones(2)})
    npt.assert_array_equal(np.asarray(prefix), [2, 2])


def test_without_arguments():
    npt.assert_array_equal(np.asarray(harp.vmap(lambda: hnp.arange(3), axis_size=2)()), [[0, 1, 2]] * 2)
    npt.assert_array_equal(np.asarray(harp.vmap(lambda x: x, in_axes=None, axis_size=2)(5.0)), [5, 5])


def test_random_numbers_of_each_example():
    keys = harp.random.split(harp.random.key(0), 4)
    found = np.asarray(harp.vmap(lambda key: harp.random.normal(key, (3,)))(keys))
    for k in range(4):
        npt.assert_array_equal(found[k], np.asarray(harp.random.normal(keys[k], (3,))))


def test_what_is_asked_of_sizes_is_asked_of_an_example():
    def function(x):
        assert x.ndim == 1 and x.shape == (3,)
        return hnp.reshape(x, (-1, 3)).sum(0) if x.shape[0] == 3 else x

    compiled = harp.jit(harp.vmap(function))
    npt.assert_array_equal(np.asarray(compiled(np.ones((2, 3)))), np.ones((2, 3)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.vmap(lambda x: x)(1.0), BatchError, "argument x has 0 axes, but in_axes maps axis 0"),
        (lambda: harp.vmap(lambda x: x, in_axes=2)(np.ones(3)), BatchError, "maps axis 2 of it"),
        (lambda: harp.vmap(lambda x, y: x)(np.ones(3), np.ones(2)), ShapeError, "argument x and argument y"),
        (lambda: harp.vmap(lambda x: x, axis_size=4)(np.ones(3)), ShapeError, "argument x and axis_size"),
        (lambda: harp.vmap(lambda x, y: x, in_axes=(0,))(np.ones(3), 1), BatchError, "in_axes has 1 entry"),
        (lambda: harp.vmap(lambda x: x["a"], in_axes=({"b": 0},))({"a": np.ones(3)}), BatchError, "entry 0 of in_axes"),
        (lambda: harp.vmap(lambda x: x, in_axes=("x",))(np.ones(3)), BatchError, "an axis is an integer"),
        (lambda: harp.vmap(lambda x: x, in_axes=None)(np.ones(3)), BatchError, "axis_size"),
        (lambda: harp.vmap(lambda x: x, out_axes=None)(np.ones(3)), BatchError, "out_axes is None for a result"),
        (lambda: harp.vmap(lambda x: x, out_axes=3)(np.ones(3)), BatchError, "out_axes has 3"),
        (lambda: harp.vmap(lambda x: (x, x), out_axes=(0,))(np.ones(3)), BatchError, "out_axes of"),
    ],
)
def test_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()
    with pytest.raises(error, match=words):
        harp.jit(call)()
