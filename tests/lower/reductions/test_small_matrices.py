"""Products of very small matrices: the numbers are NumPy's at all sizes, and have the same bits in all versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp

PRODUCTS = {
    "matrices": (lambda x, y: x @ y, ("bij", "bjk")),
    "vectors": (lambda x, y: hnp.einsum("bij,bj->bi", x, y), ("bij", "bj")),
    "transposed": (lambda x, y: hnp.einsum("bij,bkj->bik", x, y), ("bij", "bkj")),
    "with a tail": (lambda x, y: hnp.maximum(x @ y + 1, 0), ("bij", "bjk")),
    "two batches": (lambda x, y: x @ y, ("abij", "abjk")),
}
NUMPY = {
    "matrices": lambda x, y: x @ y,
    "vectors": lambda x, y: np.einsum("bij,bj->bi", x, y),
    "transposed": lambda x, y: np.einsum("bij,bkj->bik", x, y),
    "with a tail": lambda x, y: np.maximum(x @ y + 1, 0),
    "two batches": lambda x, y: x @ y,
}
COMPILED = {name: harp.jit(f) for name, (f, _) in PRODUCTS.items()}
GRADIENTS = {
    name: harp.jit(harp.grad(lambda x, y, f=f: hnp.sum(f(x, y) ** 2), argnums=(0, 1)))
    for name, (f, _) in PRODUCTS.items()
}
SIZES = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 9])


def operands(name, batch, sizes, dtype="f8"):
    extents = {"a": 2, "b": batch, **dict(zip("ijk", sizes, strict=True))}
    shapes = ([extents[label] for label in labels] for labels in PRODUCTS[name][1])
    rng = np.random.default_rng(batch)
    return [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]


@pytest.mark.slow
@given(st.sampled_from(sorted(PRODUCTS)), st.integers(0, 5), st.tuples(SIZES, SIZES, SIZES), st.sampled_from("fd"))
def test_as_in_numpy(name, batch, sizes, dtype):
    x, y = operands(name, batch, sizes, dtype)
    np.testing.assert_array_equal(np.asarray(COMPILED[name](x, y)), NUMPY[name](x, y))


@given(st.sampled_from(sorted(PRODUCTS.keys() - {"with a tail"})), SIZES)
def test_gradients_are_products(name, size):
    """Of the square of a product of whole numbers, differences of step 1 are exact; not where there is a kink."""
    x, y = operands(name, 2, (size,) * 3)
    step = np.random.default_rng(1).integers(-2, 3, x.shape).astype("f8")
    found = np.sum(np.asarray(GRADIENTS[name](x, y)[0]) * step)
    high, low = (np.sum(NUMPY[name](x + by, y) ** 2) for by in (step, -step))
    np.testing.assert_allclose(found, (high - low) / 2)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_same_bits_as_in_other_versions(size):
    """A matrix with a row of zeros below it takes another version."""
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=(2, 7, size, size))
    taller = np.concatenate([x, np.zeros((7, 1, size))], 1)
    whole = np.asarray(COMPILED["matrices"](taller, y))
    np.testing.assert_array_equal(np.asarray(COMPILED["matrices"](x, y)), whole[:, :size])


def test_loops_are_written_out():
    text = COMPILED["matrices"].lower(*np.ones((2, 5, 3, 3))).loops
    assert text.count("for unroll") >= 9
    assert "for unroll" not in harp.jit(lambda x, y: x @ y).lower(*np.ones((2, 5, 5))).loops


@pytest.mark.parametrize("size", [4, 8])
def test_no_call_for_a_few_multiply_adds(size):
    """A call of the library for each product of 4 x 4 took five times as long as the product."""
    version = COMPILED["matrices"].lower(*np.ones((2, 5, 4, 4))).loops.split("    else:")
    assert not any("gemm" in part for part in version if f"s1 - {size} >= 0" in part)


def test_matrices_of_one_element_have_a_version():
    """Loops of one iteration round one product took four times as long as matrices of two rows and columns."""
    x, y = np.random.default_rng(0).normal(size=(2, 7, 1, 1))
    text = COMPILED["matrices"].lower(x, y).loops
    assert "for unroll i1 < 1:" in text
    np.testing.assert_array_equal(np.asarray(COMPILED["matrices"](x, y)), x * y)


ROWS_BESIDE = {
    "scaled rows": lambda xp, x, y: y / (1e-3 + xp.sum(x * x, axis=-1, keepdims=True)),
    "running sums": lambda xp, x, y: xp.cumsum(x @ y, axis=-1),
    "sums beside a product": lambda xp, x, y: xp.sum(x * x, axis=-1, keepdims=True) + x @ y,
}


@pytest.mark.parametrize("name", ROWS_BESIDE)
@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("columns", [1, 2, 9])
def test_other_loops_have_lengths_of_their_own(name, size, columns):
    """A version for n x n writes out all loops, so all of them have to be that long."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, size, size)), rng.normal(size=(50, size, columns))
    found = harp.jit(lambda x, y: ROWS_BESIDE[name](hnp, x, y))(x, y)
    np.testing.assert_allclose(np.asarray(found), ROWS_BESIDE[name](np, x, y), rtol=1e-10, atol=1e-12)


def test_deep_nests_have_no_versions():
    """Two products that share the batch only: 8 to the power of 5 statements would be written out."""
    h = lambda x: hnp.swapaxes(x.reshape(*x.shape[:-1], 2, x.shape[-1] // 2), -2, -3)

    def mixed(q, k, v):
        o = (h(q) @ hnp.swapaxes(h(k), -1, -2)) @ h(v)
        return hnp.sum(o * o)

    gradient = harp.jit(harp.grad(mixed, argnums=(0, 1, 2)))
    shapes = ((2, 3, 7, 6), (2, 3, 5, 6), (2, 3, 5, 4))
    text = gradient.lower(*(np.ones(shape) for shape in shapes)).loops
    depths = [0]
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        depths = [d for d in depths if d < indent]
        if "for unroll" in line:
            depths.append(indent)
        assert len(depths) <= 4, line
