"""einsum of any number of operands against NumPy, and in which order it multiplies them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.errors import ArgumentError
from harp.numpy.linalg.order import Orders, numbers
from harp.trace.graph.node import MapReduce
from harp.trace.index.polynomial import as_index

DTYPES = ["float64", "float32", "int32", "uint8", "bool", "complex128"]


@st.composite
def sums_of_products(draw, most=5):
    """Subscripts, and shapes that fit them: sizes from 0 to 4, some of 1 for a label that is larger elsewhere."""
    sizes = {name: draw(st.integers(0, 4)) for name in "abcde"}
    terms = draw(st.lists(st.text("abcde", max_size=4), min_size=1, max_size=most))
    known = sorted(set("".join(terms)))
    out = "".join(draw(st.permutations([name for name in known if draw(st.booleans())])))
    shapes = []
    for term in terms:
        ones = {name for name in term if term.count(name) == 1 and draw(st.integers(0, 5)) == 0}
        shapes.append(tuple(1 if name in ones else sizes[name] for name in term))
    return f"{','.join(terms)}->{out}", shapes


def operands(shapes, dtype, seed=0):
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        return [(generator.normal(size=s) + 1j * generator.normal(size=s)).astype(dtype) for s in shapes]
    if np.dtype(dtype).kind == "f":
        return [generator.normal(size=s).astype(dtype) for s in shapes]
    return [generator.integers(0, 2 if dtype == "bool" else 5, s).astype(dtype) for s in shapes]


def exact(subscripts, arrays):
    """By NumPy in one sum over everything, in a wide dtype."""
    dtype = arrays[0].dtype
    wide = {"f": np.float64, "c": np.complex128}.get(dtype.kind, np.int64)
    result = np.einsum(subscripts, *(a.astype(wide) for a in arrays), optimize=False)
    scale = np.einsum(subscripts, *(np.abs(a.astype(wide)) for a in arrays), optimize=False)
    return (result != 0 if dtype.kind == "b" else result.astype(dtype)), np.abs(scale).max(initial=0)


def near(result, subscripts, arrays):
    expected, scale = exact(subscripts, arrays)
    result = np.asarray(result)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    inexact = expected.dtype.kind in "fc"
    np.testing.assert_allclose(result, expected, 0, 256 * np.finfo(expected.dtype).eps * scale if inexact else 0)


@settings(max_examples=150, deadline=None)
@given(sums_of_products(), st.sampled_from(DTYPES), st.sampled_from([True, False, "greedy", "optimal"]))
def test_values(problem, dtype, optimize):
    subscripts, shapes = problem
    arrays = operands(shapes, dtype)
    near(hnp.einsum(subscripts, *arrays, optimize=optimize), subscripts, arrays)


@settings(max_examples=25, deadline=None)
@given(sums_of_products(), st.sampled_from(DTYPES), st.sampled_from([True, False]))
def test_values_when_compiled(problem, dtype, optimize):
    subscripts, shapes = problem
    f = harp.jit(lambda *arrays: hnp.einsum(subscripts, *arrays, optimize=optimize))
    for seed in range(2):
        arrays = operands(shapes, dtype, seed)
        near(f(*arrays), subscripts, arrays)
    assert f.compilations == 1


# Each of a kind of its own: copies, merged axes, batches in front, in the middle and behind, vectors, diagonals.
EXAMPLES = [
    "abc,cd,db->a",
    "ij,kj,k->i",
    "ij,jk,kl->il",
    "ijk,lkj->il",
    "ijk,ljk->il",
    "bji,jk->bik",
    "bik,kj->jbi",
    "aibj,jbc->cia",
    "abij,jicd->cadb",
    "ijb,kjb->ikb",
    "ijb,jkb->kbi",
    "bij,bjk,bkl->lbi",
    "ijk,kj->i",
    "bijk,bkj->ib",
    "ijk,jik->",
    "iij,jkk,lj->il",
    "ij,k,l,kl->ji",
    "ij,jk,kl,lm,mn,no,op->ip",
]


def shapes_of(subscripts, sizes):
    return [tuple(sizes[c] for c in term) for term in subscripts.split("->")[0].split(",")]


def sizes_from(names, first):
    return {name: first + k % 4 for k, name in enumerate(sorted(set(names) - set(",->")))}


@pytest.mark.parametrize("subscripts", EXAMPLES)
def test_one_program_serves_all_sizes(subscripts):
    f = harp.jit(lambda *arrays: hnp.einsum(subscripts, *arrays))
    for first in (3, 20, 1, 0, 9):
        sizes = sizes_from(subscripts, first)
        if len(sizes) > 7:
            sizes = {name: min(size, 3) for name, size in sizes.items()}
        elif len(sizes) > 4:
            sizes = {name: min(size, 10) for name, size in sizes.items()}
        arrays = operands(shapes_of(subscripts, sizes), "float32")
        near(f(*arrays), subscripts, arrays)
    assert f.compilations == 1


@pytest.mark.parametrize("subscripts", EXAMPLES)
def test_gradients_are_those_of_one_sum(subscripts):
    """The derivative of a product with respect to a factor is the product of the others, with the cotangent."""
    terms, out = subscripts.split("->")[0].split(","), subscripts.split("->")[1]
    arrays = operands(shapes_of(subscripts, sizes_from(subscripts, 2)), "float64")
    weights = operands(shapes_of(f"{out}->", sizes_from(subscripts, 2)), "float64", 7)[0]
    places = tuple(range(len(terms)))
    gradient = harp.jit(
        harp.grad(lambda *xs: hnp.sum(weights * hnp.einsum(subscripts, *xs)), argnums=places if len(terms) > 1 else 0)
    )
    f = lambda *xs: np.sum(weights * np.einsum(subscripts, *xs, optimize=True))
    for k, found in zip(places, gradient(*arrays), strict=True):
        direction = operands([arrays[k].shape], "float64", 8)[0]
        # Linear in each factor: the difference is the derivative.
        slope = f(*arrays[:k], direction, *arrays[k + 1 :])
        np.testing.assert_allclose(np.sum(np.asarray(found) * direction), slope, 1e-10, 1e-10)


def degrees(function, *arrays):
    """Over how many loops the sums of a function run."""
    nodes = harp.jit(function).lower(*arrays).graph.nodes()
    return sorted(len(n.domain) for n in nodes if isinstance(n, MapReduce) and n.reduce is not None)


@pytest.mark.parametrize(
    ("subscripts", "most"),
    [
        ("ij,jk,kl->il", 3),
        ("abc,cd,db->a", 3),
        ("ij,kj,k->i", 2),
        ("ij,jk,k->i", 2),
        ("ij,jk,kl,lm,m->i", 2),
        ("i,ij,jk,k->", 2),
        ("ij,kl,jk,l->i", 2),
        ("ij,jk,kl,lm,mn,no,o->i", 2),
        ("i,j,k,ijk->", 3),
        ("ijk,lkj->il", 3),
        ("aibj,jbc->cia", 3),
        ("abcd,cdef->abef", 3),
    ],
)
def test_no_sum_has_more_loops_than_it_needs(subscripts, most):
    arrays = operands(shapes_of(subscripts, sizes_from(subscripts, 4)), "float64")
    assert max(degrees(lambda *xs: hnp.einsum(subscripts, *xs), *arrays)) == most
    every = tuple(range(len(arrays)))
    gradient = harp.grad(lambda *xs: hnp.sum(hnp.einsum(subscripts, *xs) ** 2), argnums=every)
    assert max(degrees(gradient, *arrays)) == most


@pytest.mark.skipif(find_toolchain() is None, reason="without a compiler nothing is known of vectors")
@pytest.mark.parametrize(
    "subscripts", ["ijk,lkj->il", "ijk,jkl->il", "jki,ljk->il", "aibj,jbc->cia", "ijb,kjb->ikb", "bhqd,bhkd->bhqk"]
)
def test_products_of_matrices_are_computed_as_such(processor, subscripts):
    """By the kernel for them."""
    arrays = operands(shapes_of(subscripts, dict.fromkeys(subscripts, 5)), "float32")
    f = harp.jit(lambda *xs: hnp.einsum(subscripts, *xs))
    assert str(f.lower(*arrays).source).count(" harp_gemm_panel_f32_x") == 1


def test_written_order():
    arrays = operands([(4, 5), (5, 6), (6,)], "float64")
    assert degrees(lambda *xs: hnp.einsum("ij,jk,k->i", *xs, optimize=False), *arrays) == [2, 3]
    assert degrees(lambda *xs: hnp.einsum("ij,jk,k->i", *xs), *arrays) == [2, 2]


def test_the_call_being_traced_decides_what_no_proof_does():
    """Without a guard: a call for which another order is faster gets the same program."""
    f = harp.jit(lambda *xs: hnp.einsum("ij,jk,kl->il", *xs))
    for i, j, k, l in ((40, 2, 40, 2), (2, 40, 2, 40)):  # noqa: E741
        arrays = operands([(i, j), (j, k), (k, l)], "float64")
        near(f(*arrays), "ij,jk,kl->il", arrays)
    assert f.compilations == 1


@pytest.mark.skipif(find_toolchain() is None, reason="NumPy's products add in an order that depends on sizes")
def test_rows_have_the_same_bits_in_batches_of_all_sizes():
    f = harp.jit(lambda x, w, v: hnp.einsum("bij,jik,kl->bl", x, w, v))
    x, w, v = operands([(40, 7, 9), (9, 7, 12), (12, 11)], "float32")
    whole = np.asarray(f(x, w, v))
    for rows in (1, 2, 3, 17):
        np.testing.assert_array_equal(np.asarray(f(x[:rows], w, v)), whole[:rows])


@pytest.mark.parametrize("optimize", [None, 1, "best", ["einsum_path", (0, 1)], ("greedy", 100)])
def test_other_values_of_optimize(optimize):
    with pytest.raises(ArgumentError, match="optimize"):
        hnp.einsum("i,i", np.ones(3), np.ones(3), optimize=optimize)


def all_orders(operands):
    """Every tree of pairs."""
    if len(operands) == 1:
        yield operands[0]
    for count in range(len(operands) - 1):
        for others in itertools.combinations(operands[1:], count):
            left = (operands[0], *others)
            right = tuple(k for k in operands if k not in left)
            yield from itertools.product(all_orders(left), all_orders(right))


def count_operations(order, terms, out, sizes):
    """Operations, counted by sets of labels."""

    def visit(part, outside):
        if isinstance(part, int):
            return 0, set(terms[part]) & outside
        left, right = ({name for k in numbers(p) for name in terms[k]} for p in part)
        (first, a), (second, b) = visit(part[0], outside | right), visit(part[1], outside | left)
        product = np.prod([sizes[name] for name in a | b], dtype=object)
        return first + second + product, (a | b) & outside

    return visit(order, set(out))[0]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text("abcde", min_size=1, max_size=3).map(lambda t: tuple(dict.fromkeys(t))), min_size=1, max_size=5),
    st.sets(st.sampled_from("abcde")),
    st.lists(st.integers(2, 9), min_size=5, max_size=5),
)
def test_the_best_order_has_the_fewest_operations(terms, out, numbers_of_elements):
    out = tuple(sorted(out & {name for term in terms for name in term}))
    sizes = dict(zip("abcde", numbers_of_elements, strict=True))
    orders = Orders(terms, out, {name: as_index(size) for name, size in sizes.items()})
    fewest = min(count_operations(order, terms, out, sizes) for order in all_orders(tuple(range(len(terms)))))
    assert count_operations(orders.best(), terms, out, sizes) == fewest
    for order in (orders.best(), orders.greedy(), orders.written()):
        assert sorted(numbers(order)) == list(range(len(terms)))


@pytest.mark.parametrize("subscripts", ["a,c->a", "ab,c->a", "a,b,c->a", "a,bc->a", "ab,ca->b", "a,c->ac"])
def test_sums_of_nothing_are_zero(subscripts):
    """Also where what they are multiplied by is no number."""
    sizes = {"a": 1, "b": 2, "c": 0}
    operands = [np.full([sizes[n] for n in term], np.nan) for term in subscripts.split("->")[0].split(",")]
    expected = np.einsum(subscripts, *operands)
    compiled = harp.jit(lambda *given: hnp.einsum(subscripts, *given))
    for found in (hnp.einsum(subscripts, *operands), compiled(*operands)):
        np.testing.assert_array_equal(found, expected)
    full = [np.ones([sizes[n] + 1 for n in term]) for term in subscripts.split("->")[0].split(",")]
    np.testing.assert_array_equal(compiled(*full), np.einsum(subscripts, *full))
    slopes = harp.grad(lambda *given: hnp.sum(hnp.einsum(subscripts, *given)))(*operands)
    np.testing.assert_array_equal(slopes, np.zeros_like(operands[0]))


LISTS = {
    "outer": ("ab", [0, 1], "ab", [0, 2]),
    "with an output": ("ab", [0, 1], "ab", [0, 2], [2, 1]),
    "dots": ("ab", [..., 3], "ab", [..., 3], [...]),
    "dots first": ("ab", [5, ...], "ab", [5, ...]),
    "in the order of the numbers": ("aa", [30, 7]),
    "a diagonal": ("aa", (1, 1)),
    "a tuple": ("ab", (0, 1), "bc", (1, 2), (0, 2)),
}


@pytest.mark.parametrize("name", LISTS)
def test_operands_and_lists_of_labels(name):
    sizes = {"a": 2, "b": 3, "c": 4}
    rng = np.random.default_rng(0)
    call = [rng.normal(size=[sizes[n] for n in part]) if isinstance(part, str) else part for part in LISTS[name]]
    np.testing.assert_allclose(np.asarray(hnp.einsum(*call)), np.einsum(*call))
    places = [k for k, part in enumerate(call) if isinstance(part, np.ndarray)]

    def compiled(*arrays):
        given = dict(zip(places, arrays, strict=True))
        return hnp.einsum(*[given.get(k, part) for k, part in enumerate(call)])

    np.testing.assert_allclose(np.asarray(harp.jit(compiled)(*[call[k] for k in places])), np.einsum(*call))


@pytest.mark.parametrize("labels", [[0, "a"], [0, 52], [-1, 0], np.arange(2)])
def test_lists_of_labels_that_make_no_sense(labels):
    with pytest.raises(ArgumentError, match="a list of labels after each operand"):
        hnp.einsum(np.ones((2, 2)), [0, 1], np.ones((2, 2)), labels)


def test_operands_of_another_rank_are_an_error_of_shapes():
    """A ValueError, as NumPy's is, so that a program which catches that goes on in the same way."""
    for library in (np, hnp):
        with pytest.raises(ValueError):
            library.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((1, 3, 4)))
