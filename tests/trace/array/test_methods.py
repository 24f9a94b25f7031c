"""The methods of arrays, against those of NumPy's; in one program for all sizes."""

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ConcretizationError, DTypeError, HarpError, MutationError, UnsupportedDTypeError

METHODS = {
    "all": lambda x: [(x > 0).all(), (x > 0).all(axis=0), (x > 5).any(), (x > 0).any(axis=1)],
    "argmax": lambda x: [x.argmax(), x.argmax(axis=1), x.argmin(axis=0)],
    "argsort": lambda x: [x.argsort(), x.argsort(0), x.argsort(axis=1, kind="stable"), x.argsort(1, stable=True)],
    "astype": lambda x: [x.astype(np.float32), x.astype("int32"), x.astype(int, copy=False)],
    "clip": lambda x: [x.clip(-0.5, 0.5), x.clip(min=0), x.clip(max=0)],
    "conj": lambda x: [x.conj(), (x + 1j * x).conj(), (x - 1j).conjugate()],
    "copy": lambda x: [x.copy(), x.copy(order="C"), x.view(), x.view(np.float64)],
    "cumulative": lambda x: [x.cumsum(), x.cumsum(axis=0), x.cumprod(1), x.cumsum(axis=1, dtype=np.float32)],
    "diagonal": lambda x: [x.diagonal(), x.diagonal(1), x.diagonal(-1, 0, 1), x[None].diagonal(axis1=1, axis2=2)],
    "dot": lambda x: [x.dot(x.T), x.dot(np.arange(3.0))],
    "extrema": lambda x: [x.max(), x.min(axis=1), x.max(0, keepdims=True)],
    "flatten": lambda x: [x.flatten(), x.flatten("F"), x.ravel(), x.ravel(order="F"), x.ravel("K")],
    "moments": lambda x: [x.mean(), x.mean(axis=0), x.std(axis=1), x.var(axis=1, ddof=0)],
    "parts": lambda x: [x.real, x.imag, x.T, x.mT, (x + 2j).imag],
    "prod": lambda x: [x.prod(), x.prod(axis=1), x.sum(axis=0), x.sum(axis=(0, 1))],
    "repeat": lambda x: [x.repeat(2), x.repeat(3, axis=1), x.repeat(np.array([1, 0, 2]), 1)],
    "reshape": lambda x: [
        *(x.reshape(-1), x.reshape((3, -1)), x.reshape(1, -1, 3), x.transpose(), x.transpose(1, 0)),
        *(x.reshape(-1, order="F"), x.reshape((3, -1), order="F"), x.reshape(1, -1, 3, order="F")),
        x.reshape(-1, order="A"),
    ],
    "round": lambda x: [x.round(), x.round(2), x.round(decimals=1)],
    "searchsorted": lambda x: [x[0].searchsorted([0.0]) * 0, (x[0] * 0 + 1).cumsum().searchsorted(x, side="right")],
    "squeeze": lambda x: [x[None].squeeze(0), x[:, :1].squeeze(axis=1)],
    "swapaxes": lambda x: [x.swapaxes(0, 1), x[None].swapaxes(-1, 0)],
    "take": lambda x: [x.take(np.array([0, 2])), x.take(np.array([[2, 0]]), axis=1), x.take(1, 1)],
    "trace": lambda x: [x.trace(), x.trace(1), x.trace(dtype=np.float32)],
}


@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_as_numpys(call):
    compiled = harp.jit(call)
    for rows in (1, 2, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 3))
        for wanted, *got in zip(call(x), call(hnp.asarray(x)), compiled(x), strict=True):
            for g in got:
                assert isinstance(g, harp.Array) and g.dtype == wanted.dtype and g.shape == wanted.shape
                npt.assert_allclose(g, wanted, rtol=1e-6 if wanted.dtype == np.float32 else 1e-12, atol=1e-15)
    assert compiled.compilations <= 2


def test_sort():
    compiled = harp.jit(lambda x: (x.sort(), x.sort(0), x.sort(axis=1, kind="stable"), x.sort(descending=True)))
    for rows in (1, 4):
        x = np.random.default_rng(rows).normal(size=(rows, 3))
        wanted = np.sort(x), np.sort(x, 0), np.sort(x, 1), -np.sort(-x)
        for w, g in zip(wanted, compiled(x), strict=True):
            npt.assert_array_equal(g, w)


def test_a_sort_that_nobody_takes_is_an_error():
    def in_place(x):
        x.sort()
        return x

    with pytest.raises(MutationError, match=r"write x = x\.sort\(\)") as caught:
        harp.jit(in_place)(np.ones(3))
    assert __file__ in str(caught.value)
    with pytest.raises(MutationError):
        in_place(hnp.ones(3))
    assert len(hnp.ones(3).sort()) == 3


def test_nonzero():
    x = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    for wanted, got in zip(x.nonzero(), hnp.asarray(x).nonzero(), strict=True):
        npt.assert_array_equal(got, wanted)
    rows, columns = harp.jit(lambda x: x.nonzero(size=4, fill_value=-1))(x)
    npt.assert_array_equal(rows, [0, 0, 1, -1])
    npt.assert_array_equal(columns, [1, 2, 0, -1])
    with pytest.raises(ConcretizationError, match="size=n"):
        harp.jit(lambda x: x.nonzero())(x)


def test_numbers_of_arrays_that_have_them():
    x = np.array([[1.5, -2.0], [0.0, 3.0]])
    h = hnp.asarray(x)
    assert h.tolist() == x.tolist() and h.item(3) == 3.0 and h.item(0, 1) == -2.0 and h.tobytes() == x.tobytes()
    assert h.T.tobytes() == x.T.tobytes()
    npt.assert_array_equal(h.view(np.int64), x.view(np.int64))
    npt.assert_array_equal(h.view("uint8"), x.view("uint8"))
    for dtype in (np.float32, "int16"):
        npt.assert_array_equal(h.view(dtype), x.view(dtype))
    with pytest.raises(DTypeError, match=r"view of int8 as float64"):
        hnp.ones(3, "int8").view(np.float64)
    with pytest.raises(DTypeError, match="take real and imag"):
        harp.jit(lambda x: x.view(np.complex128))(x)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda x: x.fill(0.0), r"full_like\(x, value\)"),
        (lambda x: x.put([0], [1.0]), r"\.at\[indices\]\.set\(values\)"),
        (lambda x: x.partition(1), r"harp\.numpy\.sort"),
        (lambda x: x.resize(2), r"x\.reshape"),
        (lambda x: x.setflags(write=True), r"np\.array\(x\)"),
        (lambda x: x.setfield(1, "int32"), r"x\.at\[index\]"),
    ],
)
def test_methods_that_change_an_array(call, instead):
    for run in (harp.jit(call), lambda x: call(hnp.asarray(x))):
        with pytest.raises(MutationError, match=instead) as caught:
            run(np.ones(3))
        assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("numpy", r"np\.asarray\(x\)"),
        ("unsqueeze", "expand_dims"),
        ("flat", r"\.ravel\(\)"),
        ("compress", r"x\[mask\]"),
    ],
)
def test_methods_of_others_say_what_to_use(name, advice):
    with pytest.raises(AttributeError, match=rf"'Array' object has no attribute '{name}'; .*{advice}"):
        getattr(hnp.ones(2), name)
    assert not hasattr(hnp.ones(2), name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        hnp.ones(2).nothing


def test_every_method_of_numpys_arrays_is_decided():
    x = hnp.ones((2, 2))
    for name in (n for n in dir(np.ndarray) if not n.startswith("_")):
        try:
            getattr(x, name)
        except AttributeError as error:
            assert "; " in str(error), f"{name} is neither there nor has an advice"


@pytest.mark.parametrize("sizes", [(3, 1), (-1,)])
def test_a_view_of_another_shape(sizes):
    for f in (lambda x: x.view(*sizes), harp.jit(lambda x: x.view(*sizes))):
        with pytest.raises(HarpError, match=r"for another shape,? (use )?x\.reshape"):
            f(hnp.ones(3))


def test_wrong_options():
    x = hnp.ones((2, 2))
    for call in (lambda: len(x.sort(order="a")), lambda: x.argsort(order="a"), lambda: x.ravel("Q")):
        with pytest.raises(ArgumentError) as caught:
            call()
        assert isinstance(caught.value, HarpError) and __file__ in str(caught.value)


@pytest.mark.parametrize(
    "index", [0, slice(1, None), np.array([2, 0]), (slice(None), 1), np.array([True, False, True])]
)
def test_divide_power_and_apply(index):
    x = np.random.default_rng(0).uniform(0.5, 2.0, size=(3, 4))
    divided, raised, applied, multiplied = x.copy(), x.copy(), x.copy(), x.copy()
    divided[index] /= 3.0
    raised[index] **= 2.5
    applied[index] = np.sqrt(applied[index])
    multiplied[index] *= 1.5

    def update(x):
        at = x.at[index]
        return at.divide(3.0), at.power(2.5), at.apply(hnp.sqrt), at.mul(1.5)

    for run in (update, harp.jit(update)):
        for got, wanted in zip(run(hnp.asarray(x)), (divided, raised, applied, multiplied), strict=True):
            npt.assert_allclose(got, wanted, rtol=1e-14)


def test_factors_of_an_element_that_stands_twice():
    x, index = np.array([8.0, 3.0]), np.array([0, 0])
    npt.assert_array_equal(hnp.asarray(x).at[index].divide(np.array([2.0, 4.0])), [1.0, 3.0])
    npt.assert_array_equal(hnp.asarray(x).at[index].power(np.array([2.0, 1.5])), [512.0, 3.0])
    npt.assert_array_equal(hnp.asarray(x).at[index].apply(lambda e: e + 1), [9.0, 3.0])
    npt.assert_array_equal(hnp.asarray([2, 3]).at[0].power(3), [8, 3])
    with pytest.raises(DTypeError, match=r"\.divide does not accept int64"):
        hnp.asarray([2, 3]).at[0].divide(2)


def test_gradients_of_divide_and_power():
    x = np.array([2.0, 3.0])
    npt.assert_allclose(harp.grad(lambda x: x.at[0].divide(4.0).sum())(x), [0.25, 1.0])
    npt.assert_allclose(harp.grad(lambda x: x.at[0].power(3.0).sum())(x), [12.0, 1.0])
    npt.assert_allclose(harp.grad(lambda x: x.at[0].apply(hnp.exp).sum())(x), [np.exp(2.0), 1.0])


def test_waiting_for_an_array():
    x = hnp.asarray([1.0, 2.0])
    assert x.block_until_ready() is x
    assert harp.jit(lambda x: (x * 2).block_until_ready())(x).tolist() == [2.0, 4.0]


def test_at_takes_an_index_first():
    with pytest.raises(AttributeError, match=r"x\.at has no set: it takes an index first"):
        hnp.ones(3).at.set(1)
    with pytest.raises(AttributeError, match="nobody needs a copy"):
        hnp.ones(3).clone()
    with pytest.raises(AttributeError, match=r"harp\.numpy\.where\(mask, value, x\)"):
        hnp.ones(3).masked_fill(True, 0)


def test_several_axes_are_one_argument():
    with pytest.raises(UnsupportedDTypeError, match=r"several axes are, axis=\(0, 1\)"):
        hnp.ones((2, 2)).sum(0, 1)
