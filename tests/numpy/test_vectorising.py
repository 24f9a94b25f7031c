"""`vectorize` against NumPy's."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)


def test_numbers_broadcast():
    ours = hnp.vectorize(lambda a, b: hnp.where(a > b, a - b, a + b))
    theirs = np.vectorize(lambda a, b: a - b if a > b else a + b)
    compiled = harp.jit(ours)
    for shapes in (((3, 1), (2, 1, 4)), ((), (3,)), ((), ()), ((2, 0), (1, 1))):
        x, y = (RNG.normal(size=shape) for shape in shapes)
        found = ours(x, y)
        assert found.shape == np.broadcast_shapes(*shapes)
        if found.size:
            npt.assert_array_equal(found, theirs(x, y))
        npt.assert_array_equal(compiled(x, y), found)
    assert ours(1, 2).dtype == np.int64 and ours(np.float32(1), 2).dtype == np.float32


@pytest.mark.parametrize("signature", ["(m,n),(n)->(m),()", " (m, n), (n) -> (m), ( ) "])
def test_signatures(signature):
    function = lambda a, v: (a @ v, v.sum())
    ours, theirs = hnp.vectorize(function, signature=signature), np.vectorize(function, signature=signature)
    compiled = harp.jit(ours)
    for batch, other in (((5, 1), (4,)), ((), ()), ((2,), ()), ((), (3, 1))):
        a, v = RNG.normal(size=(*batch, 2, 3)), RNG.normal(size=(*other, 3))
        for found, expected in ((ours(a, v), theirs(a, v)), (compiled(a, v), theirs(a, v))):
            for x, y in zip(found, expected, strict=True):
                npt.assert_allclose(x, y, rtol=1e-12)


def test_one_program_for_all_sizes():
    compiled = harp.jit(hnp.vectorize(lambda a, v: a @ v + v.shape[0], signature="(m,n),(n)->(m)"))
    for batch, m, n in ((3, 2, 4), (1, 1, 1), (0, 2, 3), (2, 0, 5), (4, 3, 0)):
        a, v = RNG.normal(size=(batch, m, n)), RNG.normal(size=(batch, n))
        npt.assert_allclose(compiled(a, v), np.einsum("bmn,bn->bm", a, v) + n, rtol=1e-12)
    assert compiled.compilations == 1


def test_options():
    @hnp.vectorize(excluded={1, "scale"}, otypes="f", doc="p(x)")
    def poly(x, coefficients, scale=1):
        assert isinstance(coefficients, tuple) and isinstance(scale, int)
        return hnp.polyval(hnp.asarray(coefficients), x) * scale

    x = np.array([1.0, 2.0])
    npt.assert_array_equal(poly(x, (1, 2, 3), scale=2), [12.0, 22.0])
    assert poly(x, (1, 2, 3)).dtype == np.float32 and poly.__name__ == "poly" and poly.__doc__ == "p(x)"
    by_name = hnp.vectorize(lambda x, y: x - 2 * y)
    npt.assert_array_equal(by_name(x, y=np.ones((3, 1))), np.broadcast_to(x - 2, (3, 2)))
    rounded = hnp.vectorize(lambda x: (x, x), otypes=[np.int32, "f8"])(x)
    assert [each.dtype for each in rounded] == [np.int32, np.float64]


def test_transforms():
    ours = hnp.vectorize(lambda a, v: a @ hnp.sin(v), signature="(m,n),(n)->(m)")
    a, v = RNG.normal(size=(4, 2, 3)), RNG.normal(size=3)
    gradient = harp.jit(harp.grad(lambda v: hnp.sum(ours(a, v))))(v)
    npt.assert_allclose(gradient, a.sum((0, 1)) * np.cos(v), rtol=1e-12)
    npt.assert_allclose(harp.vmap(ours, in_axes=(0, None))(a, v), a @ np.sin(v), rtol=1e-12)
    assert harp.jit(hnp.vectorize(lambda v: v[:2], signature="(n)->(k)"))(a).shape == (4, 2, 2)


def test_errors():
    pair = hnp.vectorize(lambda a, v: (a @ v, v.sum()), signature="(m,n),(n)->(m),()")
    a, v = np.ones((2, 3)), np.ones(3)
    for call, error, match in (
        (lambda: hnp.vectorize(lambda x: x, signature="n->n"), ArgumentError, "'n->n' is no signature such as"),
        (lambda: hnp.vectorize(lambda x: x, signature="(2)->()"), ArgumentError, "has '2'; axes have names"),
        (lambda: hnp.vectorize(3), ArgumentError, "vectorize takes a function"),
        (lambda: hnp.vectorize(lambda x: x, excluded=[1.5]), ArgumentError, "positions and names"),
        (lambda: pair(a), ArgumentError, "has 2 arguments, but the call has 1 array"),
        (lambda: pair(a, 1.0), ShapeError, "argument 1 of '<lambda>' has 0 axes, fewer than in signature"),
        (lambda: pair(a, v[:2]), ShapeError, "the size of axis 'n' of the signature: 3 is not 2"),
        (lambda: hnp.vectorize(lambda x: hnp.stack([x, x]))(v), ShapeError, "result 0 .* has 1 axis, but 0 without"),
        (lambda: hnp.vectorize(lambda x: x, signature="(n)->(),()")(v), ArgumentError, "returns 1 array, but 2 by its"),
        (lambda: hnp.vectorize(lambda x: x, otypes="dd")(v), ArgumentError, "returns 1 array, but 2 by otypes"),
        (lambda: hnp.vectorize(lambda x: x, otypes=float), ArgumentError, r"otypes .* such as \[float\]"),
        (lambda: hnp.vectorize(lambda x, n: x, excluded=1), ArgumentError, r"excluded .* such as \[1\]"),
    ):
        with pytest.raises(error, match=match):
            call()
