"""What programs cost: against counts of what their loop nests do when they run, and against formulas of textbooks."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest
from counting import compare, compare_function
from graphs import FUSED, SMALL, arrays, random_graphs, sized
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.nn as hnn
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.trace.graph.graph import Graph
from harp.trace.index import polynomial
from harp.trace.sizes.signature import sizes_of

F32 = np.float32
PATH = pathlib.Path(__file__).resolve().parents[2] / "numpy" / "test_gradients.py"
SPEC = importlib.util.spec_from_file_location("checked_gradients", PATH)
assert SPEC is not None and SPEC.loader is not None
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)


@settings(max_examples=60)
@given(random_graphs(), st.sampled_from([(0, 3), (1, 1), (3, 5), (6, 2)]), st.sampled_from([SMALL, FUSED]))
def test_random_graphs_cost_what_they_do(g: Graph, values, target):
    sizes = sized(g, values)
    inputs = [*arrays(g, sizes), *(c.captured.array for c in g.captured)]
    compare(lower(g, target).algorithm, sizes_of(g), inputs, sizes)


# What LAPACK and NumPy's transforms compute, whose operations are about so many.
BY_LIBRARIES = [
    *(f"fft.{name}" for name in TABLE.TRANSFORMS if "shift" not in name),
    *TABLE.words("""
        linalg.cholesky linalg.cond linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv
        linalg.lstsq linalg.matrix_rank linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_triangular
        linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve polyfit roots
    """),
]
# Functions, or gradients of functions, of which something is an upper bound only: conditions on data, on the digits
# of a flattened array, and on places of parts that are copied, and what only the borders of a padded array read.
BOUNDS = {
    ("pad", "function"),
    *(
        (name, which)
        for name in TABLE.words("bincount compress delete histogram histogram2d histogramdd put put_along_axis")
        for which in ("function", "gradient")
    ),
    *((name, which) for name in BY_LIBRARIES for which in ("function", "gradient")),
    *(
        (name, "gradient")
        for name in (
            "ediff1d",
            "cumprod",
            "nancumprod",
            "prod",
            "nanprod",
            "vdot",
            "reshape",
            "resize",
        )
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.CASES)
def test_functions_and_their_gradients_cost_what_they_do(name):
    function, *arguments = TABLE.CASES[name]

    def loss(*given):
        result = function(*given)
        return sum(hnp.sum(p * p) for p in ([result] if isinstance(result, harp.Array) else result))

    gradient = harp.grad(loss, argnums=tuple(range(len(arguments))))
    for which, f in (("function", function), ("gradient", gradient)):
        exact = compare_function(f, arguments)
        assert exact is ((name, which) not in BOUNDS), which


# --- formulas


def cost(f, *shapes, dtype=F32):
    return harp.jit(f).lower(*(np.ones(shape, dtype) for shape in shapes)).cost()


def softmax(x):
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


def test_matrix_products():
    found = cost(lambda x, w: x @ w, (2, 3), (3, 4))
    assert repr(found.operations) == repr(found.reads) == "2*n*m*k"
    assert repr(found.writes) == "n*k" and repr(found.bytes_written) == "4*n*k"
    assert repr(found.bytes_read) == "8*n*m*k"
    assert repr(found.arrays) == "4*n*m + 4*n*k + 4*m*k"
    twice = cost(lambda x, w: x @ w, (2, 3), (3, 4), dtype=np.complex128)
    assert twice.at(10, 10, 10).operations == 4 * 2000 + 2 * 100  # four real products, a sum and a difference


@pytest.mark.parametrize("axis, writes", [(0, "m"), (1, "n"), (None, "1")])
def test_sums(axis, writes):
    found = cost(lambda x: hnp.sum(x, axis=axis), (2, 3))
    assert (repr(found.operations), repr(found.reads), repr(found.writes)) == ("n*m", "n*m", writes)


def test_elementwise():
    found = cost(lambda x: hnp.exp(x) * 2 + x, (5,))
    assert (repr(found.operations), repr(found.special)) == ("3*n", "n")
    assert (repr(found.reads), repr(found.writes), repr(found.scratch)) == ("n", "n", "0")
    assert (repr(found.bytes_read), repr(found.arrays)) == ("4*n", "8*n")


def test_views_move_elements():
    assert repr(cost(lambda x: x.T, (2, 3)).steps) == "2*n*m"
    joined = cost(lambda x, y: hnp.concatenate([x, y]), (2,), (3,))
    assert repr(joined.reads) == repr(joined.writes) == "n + m" and joined.exact
    assert repr(cost(lambda x: hnp.pad(x, 2), (4,)).reads) == "n"


def test_a_softmax_computes_each_exponential_once():
    found = cost(softmax, (2, 3))
    assert repr(found.special) == "n*m"
    assert repr(found.operations) == "5*n*m"  # a maximum, a difference, an exponential, a sum, a quotient


def test_a_difference_is_one_operation():
    assert repr(cost(lambda x, y: x - y, (5,), (5,)).operations) == "n"
    assert repr(cost(lambda x, y: -x - y, (5,), (5,)).operations) == "2*n"
    assert repr(cost(lambda x: hnp.sum(-x), (5,)).operations) == "n"
    assert repr(cost(lambda x: -x, (5,)).operations) == "n"


def test_what_stays_the_same_along_a_row_is_computed_once_for_it():
    found = cost(lambda x, y: hnp.sin(x)[:, None] * y, (2,), (2, 3))
    assert repr(found.special) == "n" and repr(found.operations) == "n*m + n" and repr(found.reads) == "n*m + n"
    scaled = cost(lambda x, y: x[:, None] * y, (2,), (2, 3))
    assert repr(scaled.reads) == "n*m + n" and scaled.at(2, 0).reads == 0


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_convolution_of_which_all_sizes_are_symbols(axes, monkeypatch):
    """Each padded axis makes the count of reads ten times as long: only so many terms are sorted."""
    terms, from_terms = 0, polynomial.from_terms

    def counted(given):
        nonlocal terms
        terms += len(given)
        assert terms < 1_000_000
        return from_terms(given)

    monkeypatch.setattr(polynomial, "from_terms", counted)
    image, kernel = (6, 5, 4)[:axes], (3, 2, 3)[:axes]
    found = cost(lambda x, w: hnn.conv(x, w, padding=1), (2, 3, *image), (4, 3, *kernel))
    assert str(found) and not found.exact
    x, w = np.pad(np.ones(image), 1), np.ones(kernel)
    inside = 2 * 4 * 3 * np.sum(np.lib.stride_tricks.sliding_window_view(x, kernel))  # elements that are read
    outputs = 2 * 4 * np.prod([n + 3 - k for n, k in zip(image, kernel, strict=True)])
    assert 2 * inside <= found.at().reads <= 4 * outputs * 3 * w.size
    assert found.at().writes == outputs and found.at().operations == 2 * outputs * 3 * w.size


def test_what_a_mask_hides_is_not_computed():
    triangle = cost(lambda x: hnp.sum(hnp.tril(x[:, None] * x)), (5,))
    assert triangle.exact and repr(triangle.operations) == "n*n + n"
    assert cost(lambda x: hnp.triu(hnp.exp(x), 1), (5, 5)).at(6, 4).special == 6
    assert cost(lambda x: hnp.tril(x @ x.T), (5, 6)).exact  # all of the product is computed
    assert not cost(lambda x: hnp.tril(hnp.sum(hnp.sin(x[:, None, :] * x), -1)), (5, 6)).exact
    joined = cost(lambda x, y: hnp.concatenate([hnp.sin(x), hnp.cos(y), x]), (2,), (3,))
    assert joined.exact and repr(joined.special) == "n + m" and repr(joined.reads) == "2*n + m"


def test_loops_that_data_ends_name_the_number_of_their_steps():
    def cost_of(step):
        return harp.jit(lambda x, k: harp.fori_loop(0, k, step, x)).lower(np.ones(5), np.array(3)).cost()

    found = cost_of(lambda i, c: hnp.sin(c) * 2)
    assert list(found.names) == ["n", "m"] and "steps of the loop at test_operations.py" in found.names["m"]
    assert repr(found.special) == "n*m" and found.exact
    assert found.at(5, 7).special == 35 and found.at(5).special == found.at().special == 5
    nested = cost_of(lambda i, c: harp.fori_loop(0, i, lambda j, c: hnp.sin(c), c))
    assert repr(nested.special) == "n*k" and nested.at(5, 7, 21).special == 5 * 21


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_loops_that_data_ends_cost_what_they_do(steps):
    x, k = np.linspace(0.1, 1, 4), np.array(steps)
    f = lambda x, k: harp.fori_loop(0, k, lambda i, c: hnp.tril(c[:, None] * x).sum(1) - hnp.sin(c), x)
    assert compare_function(f, (x, k))
    halved = lambda x: harp.while_loop(lambda c: hnp.sum(c) > 1e-3, lambda c: c / 2 - 0.1 * c, x)
    assert compare_function(halved, (x * steps,))
    pairs = lambda x, k: harp.fori_loop(0, k, lambda i, c: harp.fori_loop(0, i, lambda j, c: hnp.sin(c) - x, c), x)
    assert compare_function(pairs, (x, k))


def test_a_layer_norm_is_linear():
    def norm(x):
        centred = x - hnp.mean(x, axis=1, keepdims=True)
        return centred / hnp.sqrt(hnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)

    assert cost(norm, (2, 3)).steps.degree == 2


@pytest.mark.parametrize("f", [hnp.cumsum, hnp.cumprod, hnp.cummax])
def test_running_reductions_are_linear(f):
    found = cost(f, (5,))
    assert (repr(found.operations), repr(found.reads), repr(found.writes)) == ("n", "n", "n")


def test_the_gradient_of_a_running_sum_is_linear():
    found = cost(harp.grad(lambda x: hnp.sum(hnp.cumsum(x) ** 2)), (5,))
    assert found.steps.degree == 1 and found.at(1000).operations <= 5000


def test_sorts_and_searches():
    found = cost(lambda x: hnp.sort(x), (3, 4))
    assert repr(found.comparisons) == "n*m*log2(m)" and repr(found.reads) == repr(found.writes) == "n*m"
    assert found.at(10, 1024).comparisons == 10 * 1024 * 10
    search = cost(lambda t, x: hnp.searchsorted(t, x), (8,), (5,))
    assert repr(search.comparisons) == "m*log2(n)" and search.at(8, 5).reads == 8 + 5


def test_scratch_memory():
    found = cost(lambda x: hnp.sort(hnp.sort(x * 2) + x), (5,))
    assert found.scratch.degree == 1
    assert found.at(100).scratch >= 400


def test_all_sizes_of_a_reduction_over_everything():
    for size in (0, 1, 100, 8192, 8193, 10**6):
        assert cost(lambda x: hnp.sum(x), (3,)).at(size).operations == size, "chunks cost nothing"


def test_a_loop_that_ends_before_its_bound_counts_up_to_it():
    def swapped(x):
        def step(i, x):
            return harp.fori_loop(0, x.shape[0] - 1 - i, lambda j, x: x.at[j].set(hnp.sin(x[j]) * x[j + 1]), x)

        return hnp.sum(harp.fori_loop(0, x.shape[0], step, x))

    assert not compare_function(harp.grad(swapped), (np.linspace(0.1, 1, 5),))
    halved = lambda x: harp.cond(hnp.sum(x) > 0, hnp.sin, lambda x: x / 2, x)
    assert not compare_function(halved, (np.ones(3),))
