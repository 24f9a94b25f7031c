"""`map` beside a loop in Python: one element after the other, and by blocks of any size."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
SIZES = (7, 0, 1, 3, 6, 20)


def function(x):
    """A tree of results, of which one does not depend on the element."""
    return {"sorted": hnp.sort(x["a"]), "sums": (hnp.sum(x["a"]) * x["b"], 2.0)}


def expected(x):
    return np.sort(x["a"]), x["a"].sum(-1) * x["b"], np.full(len(x["b"]), 2.0)


@pytest.mark.parametrize("batch_size", [None, 1, 3, 100])
def test_blocks_of_one_program(batch_size):
    compiled = harp.jit(lambda x: harp.map(function, x, batch_size=batch_size))
    for size in SIZES:
        x = {"a": RNG.normal(size=(size, 4)), "b": RNG.normal(size=size)}
        for found in (compiled(x), harp.map(function, x, batch_size=batch_size)):
            for a, b in zip(harp.tree.leaves(found), expected(x), strict=True):
                npt.assert_allclose(a, b, rtol=1e-12)
    assert compiled.compilations == 1


def test_blocks_of_a_size_of_an_argument():
    compiled = harp.jit(lambda x, block: harp.map(lambda row: hnp.sum(row**2), x, batch_size=block.shape[0]))
    for size in SIZES:
        for block in (1, 2, 5):
            x = RNG.normal(size=(size, 3))
            npt.assert_allclose(compiled(x, np.zeros(block)), (x**2).sum(1), rtol=1e-12)
    assert compiled.compilations == 1


def test_blocks_of_a_size_of_the_array():
    """All of it at once, but for nothing."""
    compiled = harp.jit(lambda x: harp.map(hnp.sin, x, batch_size=x.shape[0]))
    for size in (4, 1, 9):
        x = RNG.normal(size=size)
        npt.assert_allclose(compiled(x), np.sin(x), rtol=1e-12)
    assert compiled.compilations == 1


def test_what_the_function_sees():
    shapes = []
    harp.map(lambda x: shapes.append(x.shape) or x, np.ones((7, 2)), batch_size=3)
    assert {*shapes} == {(2,)}


def test_derivatives_and_batches():
    x = RNG.normal(size=(7, 3))

    def total(x):
        return hnp.sum(harp.map(lambda row: hnp.prod(row), x, batch_size=3) ** 2)

    expected = 2 * (x.prod(1) ** 2)[:, None] / x
    npt.assert_allclose(harp.jit(harp.grad(total))(x), expected, rtol=1e-10)
    npt.assert_allclose(harp.jvp(total, (x,), (np.ones_like(x),))[1], expected.sum(), rtol=1e-10)
    npt.assert_allclose(
        harp.vmap(total)(np.stack([x, 2 * x])), [(x.prod(1) ** 2).sum(), (8 * x.prod(1) ** 2 * 8).sum()]
    )


ERRORS = [
    (lambda: harp.map(hnp.sin, np.ones(3), batch_size=0), ShapeError, "batch_size of map must be at least 1, not 0"),
    (lambda: harp.map(hnp.sin, np.ones(3), batch_size=1.5), ArgumentError, "batch_size of map must be an integer"),
    (lambda: harp.map(hnp.sin, (), batch_size=2), ArgumentError, "no array to map over"),
    (lambda: harp.map(hnp.sin, 1.0, batch_size=2), ArgumentError, "no axis to map over"),
    (lambda: harp.map(hnp.sin, (np.ones(2), np.ones(3)), batch_size=2), ShapeError, "different lengths"),
    (lambda: harp.map(3, np.ones(2)), ArgumentError, "map"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_errors_say_what_to_do(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_as_in_jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
    x = RNG.normal(size=(7, 3))
    for batch_size in (None, 1, 2, 3, 7, 9):
        theirs = jax.lax.map(lambda row: (row[::-1], row.sum()), x, batch_size=batch_size)
        mine = lax.map(lambda row: (row[::-1], row.sum()), x, batch_size=batch_size)
        for a, b in zip(mine, theirs, strict=True):
            npt.assert_allclose(a, b, rtol=1e-12)
