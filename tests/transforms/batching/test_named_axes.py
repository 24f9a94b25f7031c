"""Functions of one example that ask about all examples of a batch, against NumPy on the whole batch.

The derivative of a function of one example, taken inside of the batch, is that of the sum over all examples of what
they compute.
"""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ArgumentError, BatchError, MissingRuleError, ShapeError
from harp.jax import pmap

SIZES = (0, 1, 2, 5)


def batch(size: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(size, *shape))


FUNCTIONS = {
    "psum": (lambda x: lax.psum(x, "b"), lambda x: np.broadcast_to(x.sum(0), x.shape)),
    "pmean": (lambda x: lax.pmean(x, "b") * x, lambda x: x.mean(0) * x),
    "normalised": (
        lambda x: (x - lax.pmean(x, "b")) / hnp.sqrt(lax.pmean((x - lax.pmean(x, "b")) ** 2, "b") + 0.1),
        lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 0.1),
    ),
    "axis_index": (lambda x: x * lax.axis_index("b"), lambda x: x * np.arange(len(x))[:, None]),
    "axis_size": (lambda x: x * lax.axis_size("b") + lax.psum(1, "b"), lambda x: x * len(x) + len(x)),
    "all_gather": (
        lambda x: hnp.tensordot(lax.all_gather(x, "b"), x, ([1], [0])).sum() * x,
        lambda x: (x @ x.T).sum(0)[:, None] * x,
    ),
    "of what is the same": (lambda x: lax.psum(hnp.ones(3), "b") * x, lambda x: len(x) * x),
    "in a loop": (
        lambda x: harp.scan(lambda c, _: (c + 0.1 * lax.psum(hnp.sin(c), "b"), None), x, None, length=3)[0],
        lambda x: stepped(x),
    ),
    "of neighbours": (
        lambda x: lax.ppermute(x, "b", [(0, 1), (1, 0), (3, 4)]) + x,
        lambda x: (
            x + np.stack([x[k] if k is not None and k < len(x) else 0 * x[0] for k in (1, 0, None, None, 3)])[: len(x)]
        ),
    ),
}
NEED_TWO = {"of neighbours"}


def stepped(x: np.ndarray) -> np.ndarray:
    for _ in range(3):
        x = x + 0.1 * np.sin(x).sum(0)
    return x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str) -> None:
    """At all sizes by one program, and outside of programs."""
    function, expected = FUNCTIONS[name]
    batched = harp.vmap(function, axis_name="b")
    compiled = harp.jit(batched)
    for size in SIZES[2 if name in NEED_TWO else 1 :]:
        x = batch(size, 3)
        npt.assert_allclose(np.asarray(batched(x)), expected(x), rtol=1e-12)
        npt.assert_allclose(np.asarray(compiled(x)), expected(x), rtol=1e-12)
    assert compiled.compilations == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    """Of one example inside of the batch, and of the batch, in both modes; and of second order."""
    function, expected = FUNCTIONS[name]
    x, step = batch(5, 3), 1e-6
    direction = np.random.default_rng(7).normal(size=x.shape)

    def weighted(example):  # a scalar, to which elements contribute differently
        return hnp.sum(function(example) * hnp.arange(1.0, 4.0) * hnp.cos(example))

    def whole(x: np.ndarray) -> float:
        return float((expected(x) * np.arange(1.0, 4.0) * np.cos(x)).sum())

    inside = harp.vmap(harp.grad(weighted), axis_name="b")
    outside = harp.grad(lambda x: hnp.sum(harp.vmap(weighted, axis_name="b")(x)))
    slope = (whole(x + step * direction) - whole(x - step * direction)) / (2 * step)
    npt.assert_allclose(np.sum(np.asarray(inside(x)) * direction), slope, rtol=1e-6, atol=1e-6)
    npt.assert_allclose(np.asarray(outside(x)), np.asarray(inside(x)), rtol=1e-9, atol=1e-9)
    npt.assert_allclose(np.asarray(harp.jit(inside)(x)), np.asarray(inside(x)), rtol=1e-9, atol=1e-9)
    pushed = harp.vmap(lambda e, d: harp.jvp(weighted, (e,), (d,))[1], axis_name="b")(x, direction)
    npt.assert_allclose(np.sum(np.asarray(pushed)), slope, rtol=1e-6, atol=1e-6)
    _, second = harp.jvp(inside, (x,), (direction,))
    difference = (np.asarray(inside(x + step * direction)) - np.asarray(inside(x - step * direction))) / (2 * step)
    npt.assert_allclose(np.asarray(second), difference, rtol=1e-5, atol=1e-5)


@given(st.permutations("ijk"), st.sampled_from("ijk"), st.integers(0, 3), st.integers(1, 3))
def test_batches_in_batches(order: list[str], name: str, i: int, j: int) -> None:
    """Each axis is found by its name, however deep the batch is in which it is asked for."""
    sizes = {"i": i, "j": j, "k": 2}
    x = np.random.default_rng(i + 7 * j).normal(size=[sizes[n] for n in order])
    function = lambda e: lax.psum(hnp.sin(e), name) + 10.0 * lax.axis_index(order[0]) + e
    for n in reversed(order):
        function = harp.vmap(function, axis_name=n)
    axis = order.index(name)
    expected = np.sin(x).sum(axis, keepdims=True) + 10.0 * np.arange(x.shape[0])[:, None, None] + x
    npt.assert_allclose(np.asarray(function(x)), expected, rtol=1e-12)


def test_several_names_trees_and_dtypes() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    both = lambda f: harp.vmap(harp.vmap(f, axis_name="j"), axis_name="i")
    assert np.asarray(both(lambda e: lax.psum(e, ("i", "j")))(x)).tolist() == [[15] * 3] * 2
    assert np.asarray(both(lambda e: lax.axis_index(("i", "j")))(x)).tolist() == x.tolist()
    assert np.asarray(both(lambda e: e + lax.axis_size(("i", "j")))(x)).tolist() == (x + 6).tolist()
    tree = harp.vmap(lambda e: lax.pmax({"a": e, "b": (-e,)}, "n"), axis_name="n")(x)
    assert np.asarray(tree["a"]).tolist() == [[3, 4, 5]] * 2
    assert np.asarray(tree["b"][0]).tolist() == [[0, -1, -2]] * 2
    assert np.asarray(harp.vmap(lambda e: lax.pmin(e, "n"), axis_name="n")(x)).tolist() == [[0, 1, 2]] * 2
    assert tree["a"].dtype == np.int32


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathered_along_an_axis(axis: int) -> None:
    x = batch(4, 2, 3)
    found = harp.vmap(lambda e: lax.all_gather(e, "n", axis=axis), axis_name="n")(x)
    npt.assert_array_equal(np.asarray(found), np.broadcast_to(np.stack(list(x), axis), np.asarray(found).shape))
    found = harp.vmap(lambda e: lax.all_gather(e, "n", axis=axis, tiled=True), axis_name="n")(x)
    npt.assert_array_equal(np.asarray(found)[1], np.concatenate(list(x), axis))


@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_exchanged(split: int, concat: int) -> None:
    x = batch(3, 3, 3)
    parts = [[np.take(x[sender], k, split) for sender in range(3)] for k in range(3)]
    found = harp.vmap(lambda e: lax.all_to_all(e, "n", split, concat), axis_name="n")(x)
    npt.assert_array_equal(np.asarray(found), np.stack([np.stack(p, concat) for p in parts]))
    y = batch(3, 6, 6)
    pieces = [[np.split(y[sender], 3, split)[k] for sender in range(3)] for k in range(3)]
    found = harp.vmap(lambda e: lax.all_to_all(e, "n", split, concat, tiled=True), axis_name="n")(y)
    npt.assert_array_equal(np.asarray(found), np.stack([np.concatenate(p, concat) for p in pieces]))
    found = harp.vmap(lambda e: lax.psum_scatter(e, "n", scatter_dimension=split, tiled=True), axis_name="n")(y)
    npt.assert_allclose(np.asarray(found), np.stack(np.split(y.sum(0), 3, split)))


def test_in_branches_programs_and_custom_derivatives() -> None:
    x = np.arange(4.0)
    branch = lambda e: harp.cond(lax.psum(e, "n") > 1, lambda: lax.psum(e, "n"), lambda: 0.0 * e)
    assert np.asarray(harp.vmap(branch, axis_name="n")(x)).tolist() == [6] * 4
    assert np.asarray(harp.vmap(harp.grad(branch), axis_name="n")(x)).tolist() == [4] * 4
    assert np.asarray(harp.vmap(branch, axis_name="n")(0 * x)).tolist() == [0] * 4
    inner = harp.jit(lambda e: lax.psum(e, "n"))
    outer = harp.jit(harp.vmap(inner, axis_name="n"))
    assert np.asarray(outer(x)).tolist() == [6] * 4
    assert np.asarray(outer(np.arange(5.0))).tolist() == [10] * 5

    @harp.custom_vjp
    def doubled(e):
        return lax.psum(e, "n")

    doubled.defvjp(lambda e: (doubled(e), None), lambda _, ct: (2 * lax.psum(ct, "n"),))
    assert np.asarray(harp.vmap(harp.grad(doubled), axis_name="n")(x)).tolist() == [8] * 4


def test_a_gradient_is_linear_in_the_examples() -> None:
    """Not quadratic, as if each example were told of each other one."""
    program = harp.jit(harp.vmap(harp.grad(lambda e: lax.psum(e * e, "n")), axis_name="n"))
    cost = program.lower(batch(10)).cost()
    assert cost.operations.degree == 1


def test_a_step_of_training_in_parallel() -> None:
    """As written for several devices: gradients are averaged over the examples."""
    x, y = batch(8, 3), batch(8)

    def step(w, x, y):
        slope = harp.grad(lambda w: (hnp.dot(w, x) - y) ** 2)(w)
        return w - 0.1 * lax.pmean(slope, "devices")

    found = pmap(step, "devices", in_axes=(None, 0, 0), out_axes=None)(np.ones(3), x, y)
    npt.assert_allclose(np.asarray(found), 1 - 0.1 * (2 * (x @ np.ones(3) - y)[:, None] * x).mean(0))
    scaled = pmap(lambda n, x: x * n, in_axes=(None, 0), static_broadcasted_argnums=0)
    assert np.asarray(scaled(3, np.ones(2))).tolist() == [3, 3]


@pytest.mark.parametrize(
    "function",
    [
        lambda e: harp.cond(e > 1, lambda: lax.psum(e, "n"), lambda: e),
        lambda e: harp.while_loop(lambda c: c < 5, lambda c: c + lax.psum(c, "n"), e),
        lambda e: harp.cond(e > 1, lambda: harp.fori_loop(0, 3, lambda k, c: c + lax.pmax(c, "n"), e), lambda: e),
        harp.grad(lambda e: harp.cond(e > 1, lambda: lax.psum(e, "n"), lambda: e)),
    ],
)
def test_not_all_examples_come_there(function) -> None:
    """Of others nobody can say what they have there."""
    with pytest.raises(MissingRuleError, match=r"asks about all examples(.|\n)*test_named_axes"):
        harp.vmap(function, axis_name="n")(np.arange(4.0))


def test_mistakes() -> None:
    with pytest.raises(BatchError, match="no axis of a batch is called 'n': no axis has a name here"):
        lax.psum(1.0, "n")
    with pytest.raises(BatchError, match="the names here are 'm'"):
        harp.vmap(lambda x: lax.psum(x, "n"), axis_name="m")(np.ones(2))
    with pytest.raises(ArgumentError, match="two arrays to one example"):
        harp.vmap(lambda x: lax.ppermute(x, "n", [(0, 1), (2, 1)]), axis_name="n")(np.ones(3))
    with pytest.raises(ShapeError, match="axis 0, of size 2, among 3 examples"):
        harp.vmap(lambda x: lax.all_to_all(x, "n", 0, 0), axis_name="n")(np.ones((3, 2)))
    with pytest.raises(ShapeError, match="into 3 equal parts"):
        harp.vmap(lambda x: lax.all_to_all(x, "n", 0, 0, tiled=True), axis_name="n")(np.ones((3, 4)))
