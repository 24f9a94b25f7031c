"""Sums of products against NumPy."""

import itertools

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, ShapeError
from harp.trace.scalar import dtypes

DTYPES = [d.numpy for d in dtypes.ALL if not d.is_complex and not d.is_stored]

rng = np.random.default_rng(2)


def sample(shape, dtype=np.float64):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 9, shape).astype(dtype)


def near(result, expected):
    result, expected = np.asarray(result), np.asarray(expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    tolerance = 64 * np.finfo(result.dtype).eps if result.dtype.kind == "f" else 0
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


PAIRS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((1, 1), (1, 1)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((0, 2, 3), (1, 3, 4)),
    ((0,), (0,)),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_matmul(left, right):
    a, b = sample(left), sample(right)
    near(hnp.matmul(a, b), np.matmul(a, b))
    near(hnp.asarray(a) @ b, a @ b)
    near(a @ hnp.asarray(b), a @ b)


@pytest.mark.parametrize("left", DTYPES, ids=str)
@pytest.mark.parametrize("right", DTYPES, ids=str)
def test_matmul_dtypes(left, right):
    a, b = sample((3, 4), left), sample((4, 2), right)
    near(hnp.matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((), (3,), "multiply"),
        ((2, 3), (4, 2), "3 is not 4"),
        ((3,), (4,), "3 is not 4"),
        ((2, 2, 3), (3, 3, 4), "broadcast"),
    ],
)
def test_matmul_errors(left, right, message):
    with pytest.raises(ShapeError, match=message):
        hnp.matmul(np.zeros(left), np.zeros(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [((), ()), ((), (3,)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((2, 3), (5, 3, 4))],
)
def test_dot(left, right):
    a, b = sample(left), sample(right)
    near(hnp.dot(a, b), np.dot(a, b))
    near(hnp.asarray(a).dot(b), np.dot(a, b))


@pytest.mark.parametrize(("left", "right"), [((3,), (3,)), ((2, 3), (4, 3)), ((), (2,))])
def test_inner_outer_vdot(left, right):
    a, b = sample(left), sample(right)
    near(hnp.inner(a, b), np.inner(a, b))
    near(hnp.outer(a, b), np.outer(a, b))
    near(hnp.vdot(a, a), np.vdot(a, a))


@pytest.mark.parametrize("axes", [0, 1, 2, ([0], [2]), ([1, 0], [0, 1]), ([-1, -2], [1, 0]), (0, -1)])
def test_tensordot(axes):
    a = sample((2, 3) if axes in (1, 2) else (2, 2) if axes not in (([1, 0], [0, 1]), ([-1, -2], [1, 0])) else (2, 3))
    b = sample({1: (3, 2), 2: (2, 3, 4)}.get(axes if isinstance(axes, int) else -1, (2, 3, 2)))
    if axes == ([1, 0], [0, 1]):
        b = sample((3, 2, 4))
    if axes == ([-1, -2], [1, 0]):
        b = sample((2, 3, 4))
    near(hnp.tensordot(a, b, axes), np.tensordot(a, b, axes))


def test_tensordot_errors():
    with pytest.raises(ShapeError, match="tensordot"):
        hnp.tensordot(np.zeros((2, 3)), np.zeros((4, 2)), 1)
    with pytest.raises(ShapeError):
        hnp.tensordot(np.zeros(2), np.zeros(2), 2)
    with pytest.raises(AxisError):
        hnp.tensordot(np.zeros(2), np.zeros(2), ([1], [0]))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 3), (1, 1), (2, 3, 4)])
@pytest.mark.parametrize("offset", [0, 1, -1, 3, -9])
def test_diagonals(shape, offset):
    x = sample(shape)
    near(hnp.diagonal(x, offset), np.diagonal(x, offset))
    near(hnp.diagonal(x, offset, 1, 0), np.diagonal(x, offset, 1, 0))
    near(hnp.diagonal(x, offset, -1, 0), np.diagonal(x, offset, -1, 0))
    near(hnp.trace(x, offset), np.trace(x, offset))


EINSUMS = [
    "i->",
    "i->i",
    "ij->ji",
    "ij->j",
    "ij",
    "ji",
    "ii",
    "ii->i",
    "iij->ij",
    "ij,jk->ik",
    "ij,jk",
    "ij,ij->",
    "i,j->ij",
    "i,i",
    "ij,j->i",
    "ij,k->",
    "ij,jk,kl->il",
    "ij,jk,kl",
    "ij,ik,il->jkl",
    "i,i,i->",
    "ij,j,j->i",
    "b...,b...->...",
    "...i->...",
    "...ij,...jk->...ik",
    "...ij,jk",
    "i...->...",
    "i...,i->...",
    "ij...,j->...i",
    "ii,i->i",
    "ij, jk -> ki",
    "Ab,bA->A",
    ",ij->ij",
    "ij,->j",
]


@pytest.mark.parametrize("subscripts", EINSUMS)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_einsum(subscripts, size):
    terms = subscripts.replace(" ", "").split("->")[0].split(",")
    extra = [(4, 2), (1, 2), (2,)]
    arrays = []
    for k, term in enumerate(terms):
        names = [c for c in term if c.isalpha()]
        sizes = [size + (c in "kb") for c in names]
        at = term.find("...")
        if at >= 0:
            sizes[at:at] = extra[k % 3]
        arrays.append(sample(sizes))
    near(hnp.einsum(subscripts, *arrays), np.einsum(subscripts, *arrays))


BROADCASTS = [
    "ij,ij->ij",
    "ij,ij->",
    "ij,ij,ij->i",
    "ij,ij,j",
    "ij,jk->ik",
    "ii,i->i",
    "ii,ii",
    "...i,...i->...",
    "ij,kj,j->",
]


@pytest.mark.parametrize("subscripts", BROADCASTS)
def test_einsum_broadcasts(subscripts):
    f = harp.jit(lambda *arrays: hnp.einsum(subscripts, *arrays))
    terms = subscripts.split("->")[0].replace("...", ".").split(",")
    for ones in itertools.product((False, True), repeat=len(terms)):
        for size in (3, 1, 0, 5):
            arrays = [sample((1 if one else size,) * len(term)) for one, term in zip(ones, terms, strict=True)]
            expected = np.einsum(subscripts, *arrays)
            near(hnp.einsum(subscripts, *arrays), expected)
            near(f(*arrays), expected)
    assert f.compilations <= 2 ** len(terms)


def test_einsum_broadcasts_one_axis_and_has_a_gradient():
    a, b = sample((1, 4)), sample((3, 4))
    near(harp.jit(lambda a, b: hnp.einsum("ij,ij->ij", a, b))(a, b), np.einsum("ij,ij->ij", a, b))
    gradient = harp.jit(harp.grad(lambda a, b: hnp.einsum("ij,ij->", a, b)))
    near(gradient(a, b), b.sum(0, keepdims=True))
    near(gradient(b, b), b)
    near(gradient(a, a), a)
    for subscripts, shapes in (("ij,ij", ((2, 3), (3, 3))), ("ii,i", ((1, 3), (3,))), ("...i,...", ((2, 3), (3, 3)))):
        with pytest.raises(ShapeError, match=r"einsum '.*sizes of"):
            hnp.einsum(subscripts, *map(sample, shapes))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_einsum_dtypes(dtype):
    a, b = sample((3, 4), dtype), sample((4, 2), dtype)
    near(hnp.einsum("ij,jk->ik", a, b), np.einsum("ij,jk->ik", a, b))
    near(hnp.einsum("ij->i", a), np.einsum("ij->i", a))


@pytest.mark.parametrize(
    ("subscripts", "error"),
    [
        ("ij,jk->ik", ArgumentError),
        ("ijk->i", ShapeError),
        ("ij->k", ArgumentError),
        ("ij->ii", ArgumentError),
        ("i...->i", ArgumentError),
        ("i1->i", ArgumentError),
        ("ii->i", ShapeError),
    ],
)
def test_einsum_errors(subscripts, error):
    with pytest.raises(error, match="einsum"):
        hnp.einsum(subscripts, np.zeros((2, 3)))
