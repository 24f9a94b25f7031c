"""NumPy's functions of traced arrays and sizes, against NumPy's of numbers; in one program for all sizes."""

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ConcretizationError, HarpError, MutationError

UFUNCS = {
    "sin": lambda x: np.sin(x),
    "sqrt of abs": lambda x: np.sqrt(np.abs(x)),
    "add": lambda x: [np.add(x, 1.0), np.add(np.ones(3), x), np.add([1.0, 2.0, 3.0], x), np.float64(2.0) + x],
    "maximum": lambda x: np.maximum(x, 0.0),
    "operators of NumPy's arrays": lambda x: [np.ones(3) * x, np.ones(3) < x, np.ones((2, 3)) @ x.T, np.ones(3) // x],
    "logical": lambda x: [np.logical_and(x > 0, x < 1), np.invert(x > 0), np.isnan(x)],
    "two results": lambda x: [*np.modf(x), *np.divmod(x, 0.7)],
    "integers": lambda x: [np.left_shift(x.astype(int), 2), np.bitwise_and(x.astype(int), 3)],
    "reduce": lambda x: [np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x, axis=None)],
    "kept axes": lambda x: np.add.reduce(x, axis=1, keepdims=True),
    "accumulate": lambda x: [np.add.accumulate(x), np.multiply.accumulate(x, axis=1)],
    "outer": lambda x: [np.subtract.outer(x[0], x), np.add.outer(x, 2.0)],
}
ARRAYS = {
    "concatenate": lambda x: [np.concatenate([x, x]), np.concatenate((x, np.ones((1, 3))), axis=0)],
    "stack": lambda x: [np.stack([x, x], axis=1), np.vstack([x, x[0]]), np.hstack([x, x])],
    "where": lambda x: np.where(x > 0, x, 0.0),
    "dot": lambda x: [np.dot(x, np.arange(3.0)), np.matmul(x, x.T), np.inner(x, x), np.outer(x, x)],
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "sum": lambda x: [np.sum(x), np.sum(x, 1), np.sum(x, axis=0, keepdims=True), np.mean(x, 0), np.std(x, axis=1)],
    "extrema": lambda x: [np.max(x, axis=1), np.amin(x), np.argmax(x, 1), np.ptp(x, 1)],
    "clip": lambda x: [np.clip(x, -0.5, 0.5), np.clip(x, a_min=0.0, a_max=None), np.clip(x, 0.0, None)],
    "shapes": lambda x: [
        np.reshape(x, (-1,)),
        np.transpose(x),
        np.ravel(x),
        np.expand_dims(x, 1),
        np.swapaxes(x, 0, 1),
    ],
    "broadcast": lambda x: [np.broadcast_to(x[0], (4, 3)), *np.broadcast_arrays(x, x[0]), np.tile(x, (2, 1))],
    "order": lambda x: [np.sort(x, axis=0), np.argsort(x[0]), np.searchsorted(np.arange(3.0), x)],
    "pieces": lambda x: [np.flip(x, 0), np.roll(x, 1, axis=0), np.diff(x, axis=1), *np.split(x, 3, axis=1)],
    "pad": lambda x: [np.pad(x, 1), np.pad(x, ((1, 0), (0, 2)), mode="edge"), np.pad(x, 1, constant_values=3)],
    "vecdot": lambda x: np.vecdot(x, x, axis=0),
    "algorithms": lambda x: [np.isin(x, np.array([1.0]), kind="sort"), np.partition(x, 1, kind="introselect")],
    "cumulative": lambda x: [np.cumsum(x, axis=0), np.cumprod(x, 1)],
    "complex": lambda x: [np.real(x), np.angle(x + 1j), np.conj(x + 2j)],
    "interp": lambda x: np.interp(x, np.array([-1.0, 0.0, 1.0]), np.array([3.0, 1.0, 2.0])),
    "take": lambda x: [np.take(x, np.array([2, 0]), axis=1), np.repeat(x, 2, axis=1)],
    "triangles": lambda x: [np.tril(x), np.triu(x, 1), np.trace(x), np.diagonal(x)],
    "like": lambda x: [np.zeros_like(x), np.ones_like(x, dtype=np.float32), np.full_like(x, 3.0)],
    "quantiles": lambda x: [np.median(x, axis=1), np.quantile(x, 0.25, axis=1)],
    "norms": lambda x: [np.linalg.vector_norm(x, axis=1), np.linalg.matrix_norm(x)],
    "rounded": lambda x: [np.round(x, 1), np.nan_to_num(x)],
    "meshgrid": lambda x: [*np.meshgrid(x[:, 0], x[0], indexing="ij")],
}


@pytest.mark.parametrize("call", [*UFUNCS.values(), *ARRAYS.values()], ids=[*UFUNCS, *ARRAYS])
def test_as_of_numbers(call):
    compiled = harp.jit(call)
    for rows in (1, 2, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 3))
        wanted, got = call(x), compiled(x)
        wanted, got = (wanted, got) if isinstance(wanted, list) else ([wanted], [got])
        assert len(wanted) == len(got)
        for w, g in zip(wanted, got, strict=True):
            assert isinstance(g, harp.Array) and g.dtype == np.asarray(w).dtype and g.shape == np.shape(w)
            npt.assert_allclose(g, w, rtol=1e-12, atol=1e-14)
    assert compiled.compilations <= 2  # one row repeats, and has its own program where sizes were asked for 1


def test_gradients_go_through():
    x = np.array([0.3, -1.2])
    npt.assert_allclose(harp.grad(lambda x: np.sum(np.sin(x) * np.concatenate([x[1:], x[:1]])))(x), [
        np.cos(x[0]) * x[1] + np.sin(x[1]),
        np.cos(x[1]) * x[0] + np.sin(x[0]),
    ])  # fmt: skip


SIZES = {
    "sqrt": lambda n: np.sqrt(n),
    "log": lambda n: np.log(n) + np.exp(-n / 4),
    "maximum": lambda n: np.maximum(n, 3),
    "NumPy's numbers": lambda n: np.float32(2.0) * n,
    "exact": lambda n: np.int64(2) * n + np.add(n, 1) + np.subtract(5, n) + np.multiply(n, n) + np.floor_divide(n, 2),
    "arrays": lambda n: np.array([1.0, 2.0]) * n + np.power(np.array([1.0, 2.0]), n),
    "product": lambda n: np.prod((n, n, 2)),
    "clip": lambda n: np.clip(n, 2, 4),
}


@pytest.mark.parametrize("call", SIZES.values(), ids=SIZES)
def test_functions_of_sizes(call):
    compiled = harp.jit(lambda x: call(x.shape[0]))
    for n in (1, 3, 6):
        npt.assert_allclose(compiled(np.ones(n)), call(n), rtol=1e-6)
    assert compiled.compilations == 1


def test_comparisons_of_numpys_numbers_with_sizes_are_guards():
    f = harp.jit(lambda x: x * 2 if np.int64(3) > x.shape[0] else x)
    npt.assert_array_equal(f(np.ones(2)), [2, 2])
    npt.assert_array_equal(f(np.ones(4)), np.ones(4))
    assert f.compilations == 2


def test_arrays_with_numbers():
    """A ufunc of one is harp's, where it has one; other functions are NumPy's own."""
    h, x = hnp.arange(3.0), np.arange(3.0)
    assert isinstance(np.sin(h), harp.Array) and isinstance(x + h, harp.Array)
    npt.assert_array_equal(np.sin(h), np.sin(x))
    npt.assert_array_equal(np.spacing(h), np.spacing(x))
    assert isinstance(np.concatenate([h, h]), harp.Array) and np.allclose(h, x)
    out = np.zeros(3)
    assert np.multiply(h, 2.0, out=out) is out
    out += h
    npt.assert_array_equal(out, x * 3)
    np.add.at(out, [0], h[1:2])
    npt.assert_array_equal(out, [1, 3, 6])


OUT = np.zeros(3)


def _in_place(x):
    buffer = np.zeros(3)
    buffer += x


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.sin(x, out=OUT), ArgumentError, "np.sin of a traced array has no out; arrays do not change"),
        (lambda x: np.add(x, x, where=x > 0), ArgumentError, "np.add of a traced array has no where; use harp.numpy"),
        (lambda x: np.add(x, 1, dtype=np.float32), ArgumentError, r"no dtype; convert with \.astype"),
        (lambda x: np.sum(x, out=OUT), ArgumentError, "np.sum of a traced array has no out"),
        (lambda x: np.cumsum(x).cumsum(where=x > 0), ArgumentError, "no where"),
        (lambda x: np.isnat(x), ConcretizationError, "harp.numpy has no isnat yet"),
        (lambda x: np.array_str(x), ConcretizationError, r"np\.array_str .* harp\.numpy has NumPy's array_str"),
        (lambda x: np.real_if_close(x), ConcretizationError, r"harp\.numpy has no real_if_close yet"),
        (lambda x: np.fill_diagonal(x, 0), MutationError, r"np\.fill_diagonal changes an array"),
        (lambda x: np.put(x, 0, 1), MutationError, r"x\.at\[index\]\.set"),
        (lambda x: np.copyto(OUT, x), MutationError, "np.copyto"),
        (lambda x: np.add.at(OUT, 0, x[0]), MutationError, r"x\.at\[index\]\.add"),
        (_in_place, MutationError, r"x = x \+ y instead of x \+= y"),
        (lambda x: np.sqrt(x.shape[0], out=OUT), ArgumentError, "no out"),
    ],
)
def test_what_cannot_be_done(call, error, message):
    with pytest.raises(error, match=message) as caught:
        harp.jit(call)(np.ones(3))
    assert __file__ in str(caught.value) and isinstance(caught.value, HarpError)
    assert not OUT.any()


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda x: np.add(x, x, out=x), "use the result instead of out"),
        (lambda x: np.add(OUT, OUT, out=x), "use the result instead of out"),
        (lambda x: np.add.reduce(x, out=x), "use the result instead of out"),
        (lambda x: np.clip(x, 0, 1, out=x), "use the result instead of out"),
        (lambda x: np.add.at(x, 0, 1), r"write x = x\.at\[index\]\.add"),
    ],
    ids=["add", "of NumPy's arrays", "reduce", "clip", "at"],
)
def test_ufuncs_change_no_array_of_harp(call, advice):
    x = hnp.ones(3)
    with pytest.raises(MutationError, match=advice) as caught:
        call(x)
    assert __file__ in str(caught.value) and (np.asarray(x) == 1).all()


def test_other_types_get_their_turn():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, array):
            return "radd"

    class Function:
        def __array_function__(self, function, types, arguments, options):
            return "function"

    assert hnp.ones(2) + Other() == "radd"
    assert np.concatenate([hnp.ones(2), Function()]) == "function"
    with pytest.raises(TypeError):
        np.add(hnp.ones(2), "text")
