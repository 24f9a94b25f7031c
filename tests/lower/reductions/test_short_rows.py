"""Reductions of a few terms have the numbers of longer ones and no inner loop; over short rows vectors run across.

Products of very small matrices: the numbers are NumPy's at all sizes, and have the same bits in all versions.
"""

from __future__ import annotations

import numpy as np
import pytest
from graphs import FUSED, K, M, N, along, binary, check, fold, graph, layernorm, log_softmax, parameter, softmax
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.lower.reductions.short_rows import SHORT
from harp.trace.graph.graph import Graph
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.ops import Op, Reduce

FUNCTIONS = {
    "sum": lambda np, x: x.sum(axis=0),
    "of what is computed": lambda np, x: (abs(x) * 2 - 1).sum(axis=0),
    "maximum": lambda np, x: x.max(axis=0),
    "what follows": lambda np, x: x.sum(axis=0) / (abs(x).max(axis=0) + 1),
    "product": lambda np, x: (x * x[::-1]).sum(axis=0),
    "two axes": lambda np, x: x[:, None].min(axis=(0, 1)),
}


DTYPES = {"float32": harp.f32, "float64": harp.f64, "int32": harp.i32}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", [1, 2, 3, 16, 17])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, terms: int, dtype: str) -> None:
    compiled = harp.jit(lambda x: FUNCTIONS[name](hnp, x), signature=(DTYPES[dtype][terms, "n"],))
    rng = np.random.default_rng(0)
    for columns in (0, 1, 7, 64, 1000):
        x = (9 * rng.standard_normal((terms, columns))).astype(dtype)
        np.testing.assert_allclose(np.asarray(compiled(x)), FUNCTIONS[name](np, x), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("terms", [2, 16])
def test_same_bits_as_more_terms(terms: int) -> None:
    """More terms, of which the last are zeros, are added in a loop, in the same order."""

    def total(terms: int) -> harp.JitFunction:
        return harp.jit(lambda x: (x * 1.5).sum(axis=0), signature=(harp.f64[terms, "n"],))

    x = np.random.default_rng(0).standard_normal((terms, 100))
    taller = np.concatenate([x, np.zeros((20, 100))])
    np.testing.assert_array_equal(np.asarray(total(terms)(x)), np.asarray(total(terms + 20)(taller)))


def test_which_reductions_are_written_out() -> None:
    def loops(function, *signature) -> str:
        arrays = (np.ones([n if isinstance(n, int) else 9 for n in s.shape], s.dtype.numpy) for s in signature)
        return harp.jit(function, signature=signature).lower(*arrays).loops

    few = loops(lambda x: x.sum(axis=0), harp.f64[4, "n"])
    assert "local" not in few and few.count("for") == 2, "strips of a loop along memory"
    assert "local" in loops(lambda x: x.sum(axis=0), harp.f64[40, "n"]), "there are many terms"
    assert "local" in loops(lambda x: x.sum(axis=0), harp.f64["m", "n"]), "nobody knows how many"
    twice = loops(lambda x: hnp.repeat(x, 2).reshape(-1, 2).sum(1), harp.f64["n"])
    assert "local" not in twice


X = parameter(N, M)
GRAPHS = {
    "sum": graph(fold(Reduce.SUM, X, 1)),
    "max": graph(fold(Reduce.MAX, X, 1)),
    "softmax": graph(softmax(X)),
    "log_softmax": graph(log_softmax(X)),
    "layernorm": graph(layernorm(X)),
    "middle": graph(fold(Reduce.SUM, parameter(N, M, K), 1)),
    "both": graph(fold(Reduce.SUM, parameter(N, M, K), 1, 2)),
    "batched": graph(binary(Op.ADD, parameter(N, K, M, name="y"), along(Reduce.MIN, parameter(N, K, M, name="y")))),
}


def text(g: Graph) -> str:
    return lower(g, FUSED).loops


@given(st.sampled_from(sorted(GRAPHS)), st.integers(0, 5), st.sampled_from([1, 2, 3, 16, SHORT, SHORT + 1, 70]))
def test_same_as_the_interpreter(name, rows, length):
    check(GRAPHS[name], (rows, length, 3))


def test_the_version_depends_on_the_length_only():
    assert f"if -s1 + {SHORT} >= 0:" in text(GRAPHS["softmax"])
    assert f" + {SHORT} >= 0" not in text(graph(fold(Reduce.SUM, X, 0)))
    few, many = (text(graph(softmax(parameter(N, as_index(count))))) for count in (10, 100))
    assert "lanes" not in few and "lanes" in many and "if" not in few


@pytest.mark.parametrize("length", [1, 3, 10, SHORT, SHORT + 1])
def test_a_row_has_the_same_bits_in_every_batch(length):
    f = harp.jit(lambda x: (hnp.softmax(x, axis=1), hnp.sum(x, axis=1), hnp.var(x, axis=1)))
    x = np.random.default_rng(0).normal(size=(1100, length)).astype(np.float32)
    whole = [np.asarray(a) for a in f(x)]
    for start, stop in ((0, 1), (511, 514), (1000, 1100), (7, 7)):
        for a, b in zip(whole, f(x[start:stop]), strict=True):
            np.testing.assert_array_equal(a[start:stop], np.asarray(b))
    assert f.compilations == 1


def test_special_values_stay_in_their_row():
    x = np.array([[np.nan, 1], [np.inf, 2], [-np.inf, 3], [-0.0, 0.0]])
    found = harp.jit(lambda x: (hnp.max(x, axis=1), hnp.sum(x, axis=1)))(x)
    for a, b in zip(found, (x.max(axis=1), x.sum(axis=1)), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


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


@pytest.mark.slow
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


def test_functions_of_many_elements_are_not_written_out():
    """Versions of a product beside cosines of an array with five axes took the C compiler minutes."""

    def mixed(x, y):
        scaled = x / y[..., None]
        return hnp.cos(scaled), hnp.sum(hnp.cos(scaled) * scaled, axis=-1)

    text = harp.jit(mixed).lower(np.ones((2, 3, 3, 3, 5)), np.ones((2, 3, 3, 3))).loops
    assert "cos" in text and len(text) < 15_000


PAIRS = {
    "distances": lambda np, x, y: np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
    "largest differences": lambda np, x, y: abs(x[:, None] - y[None]).max(-1),
    "both lie apart": lambda np, x, y: (abs(x[:, None] - y[None]) + y[None] * x[:, None]).min(-1),
    "of each matrix": lambda np, x, y: abs(x[None, :, None] - y.reshape(1, 1, *y.shape)).sum(-1),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_short_rows(name: str) -> None:
    """Of each with each: panels of the one are read by several rows of the other."""
    compiled = harp.jit(lambda x, y: PAIRS[name](hnp, x, y))
    assert "panel" in compiled.lower(np.ones((9, 4)), np.ones((9, 4))).loops
    rng = np.random.default_rng(0)
    for rows, others, terms in [(2, 3, 1), (33, 65, 32), (70, 200, 5), (1, 64, 7), (40, 0, 3), (0, 4, 2), (9, 9, 33)]:
        x, y = rng.normal(size=(rows, terms)), rng.normal(size=(others, terms))
        np.testing.assert_allclose(compiled(x, y), PAIRS[name](np, x, y), rtol=1e-12, atol=1e-12)
    x, y = rng.normal(size=(70, 6)), rng.normal(size=(90, 6))
    np.testing.assert_array_equal(np.asarray(compiled(x, y))[..., 40:, :], np.asarray(compiled(x[40:], y)))
    assert compiled.compilations == 1


def test_no_panel_has_what_moves_with_a_loop_between() -> None:
    """In the derivative a loop lies between the lanes and the sum, and a factor of the sum moves with it."""
    c = np.array([[1.0], [2.0]])

    def f(x):
        s = x * c
        return hnp.sum(hnp.sum(hnp.sin(s)[:, :, None] * s[:, None, :] * s[:, None, :], 2), 0)

    for n in (1, 5, 40):
        x = np.linspace(0.1, 2, n)
        columns = [harp.jvp(f, (x,), (e,))[1] for e in np.eye(n)]
        np.testing.assert_allclose(harp.jit(harp.jacfwd(f))(x), np.stack(columns, 1), rtol=1e-12)


def test_updates_of_one_element_by_several_pairs_keep_their_order() -> None:
    """Different pairs store to one element: their loops are not exchanged."""

    def f(x, y, at):
        return hnp.zeros(3).at[at].set(abs(x[:, None] - y[None]).max(-1))

    rng = np.random.default_rng(1)
    x, y, at = rng.normal(size=(40, 5)), rng.normal(size=(70, 5)), rng.integers(0, 3, (40, 70))
    expected = np.zeros(3)
    for k, value in zip(at.ravel(), abs(x[:, None] - y[None]).max(-1).ravel(), strict=True):
        expected[k] = value
    np.testing.assert_allclose(harp.jit(f)(x, y, at), expected)
