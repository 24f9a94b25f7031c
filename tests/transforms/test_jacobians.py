"""Jacobians in both modes, beside each other and central differences, and second derivatives."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ComplexGradientError, IntegerGradientError

PATH = pathlib.Path(__file__).resolve().parents[1] / "numpy" / "test_gradients.py"
SPEC = importlib.util.spec_from_file_location("checked_gradients", PATH)
assert SPEC is not None and SPEC.loader is not None
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)


def leaves(result) -> list[np.ndarray]:
    return [np.asarray(result)] if isinstance(result, harp.Array) else [a for part in result for a in leaves(part)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.CASES)
def test_both_modes_agree(name):
    function, *arguments = TABLE.CASES[name]
    which = tuple(range(len(arguments)))
    forward, backward = (transform(function, which)(*arguments) for transform in (harp.jacfwd, harp.jacrev))
    for a, b in zip(leaves(forward), leaves(backward), strict=True):
        npt.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def loss(w, x):
    return hnp.sum(hnp.tanh(x @ w) ** 2) + hnp.sum(w**3) / (1 + hnp.sum(x**2))


def differences(function, x, step=1e-5):
    """The Jacobian by central differences; the axes of `x` go last."""
    columns = []
    for at in np.ndindex(*x.shape):
        d = np.zeros_like(x)
        d[at] = step
        columns.append((np.asarray(function(x + d)) - np.asarray(function(x - d))) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


def test_hessians_have_one_program_for_all_sizes():
    hessian = harp.jit(harp.hessian(loss))
    rng = np.random.default_rng(0)
    for rows, inner, outer in ((4, 3, 2), (2, 2, 5), (7, 4, 4)):
        w, x = rng.normal(size=(inner, outer)), rng.normal(size=(rows, inner))
        found = np.asarray(hessian(w, x))
        assert found.shape == (inner, outer, inner, outer)
        npt.assert_allclose(found, differences(lambda w, x=x: harp.grad(loss)(w, x), w), rtol=1e-6, atol=1e-7)
    assert hessian.compilations == 1


@pytest.mark.parametrize("shape", [(0, 2), (1, 1), (3, 0)])
def test_sizes_of_zero_and_one(shape):
    w, x = np.ones(shape), np.ones((2, shape[0]))
    assert np.asarray(harp.jit(harp.hessian(loss))(w, x)).shape == (*shape, *shape)
    assert np.asarray(harp.jit(harp.jacrev(lambda w: w * 2))(w)).shape == (*shape, *shape)


COMBINED = {
    "forward over reverse": lambda f: harp.jacfwd(harp.grad(f)),
    "reverse over reverse": lambda f: harp.jacrev(harp.grad(f)),
    "reverse over forward": lambda f: harp.jacrev(harp.jacfwd(f)),
    "forward over forward": lambda f: harp.jacfwd(harp.jacfwd(f)),
    "hessian": harp.hessian,
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", COMBINED)
def test_second_derivatives_in_any_order(name, compiled):
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=(3, 2)), rng.normal(size=(4, 3))
    second = COMBINED[name](lambda w: loss(w, x))
    found = (harp.jit(second) if compiled else second)(w)
    npt.assert_allclose(np.asarray(found), differences(harp.grad(lambda w: loss(w, x)), w), rtol=1e-6, atol=1e-7)


def test_products_with_hessians():
    rng = np.random.default_rng(1)
    (w, v), x = rng.normal(size=(2, 3, 2)), rng.normal(size=(4, 3))
    whole = np.asarray(harp.hessian(loss)(w, x))
    for product in (harp.hvp, harp.jit(lambda f, p, t: harp.hvp(f, p, t), static_argnums=0)):
        found = product(lambda w: loss(w, x), (w,), (v,))
        npt.assert_allclose(np.asarray(found), np.tensordot(whole, v, 2), rtol=1e-10)
    both = harp.hvp(loss, (w, x), (v, np.zeros_like(x)))
    npt.assert_allclose(np.asarray(both[0]), np.tensordot(whole, v, 2), rtol=1e-10)


@pytest.mark.parametrize("name", ["jvp", "hvp"])
def test_arguments_that_are_no_tuples(name):
    product, x = getattr(harp, name), np.ones(2)
    with pytest.raises(ArgumentError, match=rf"^{name} takes a tuple .*the primals are of type ndarray"):
        product(lambda x: hnp.sum(x * x), x, x)
    with pytest.raises(ArgumentError, match=rf"^{name} takes a tuple .*the tangents are of type ndarray"):
        product(lambda x: hnp.sum(x * x), (x,), x)


def test_trees_values_and_what_comes_beside():
    def function(p, x):
        return {"y": p["a"] * x, "z": (p["b"] @ x,)}, x.shape[0]

    p, x = {"a": np.array([1.0, 2.0]), "b": np.ones((3, 2))}, np.array([5.0, 7.0])
    for transform in (harp.value_and_jacfwd, harp.value_and_jacrev):
        (value, aux), jacobian = transform(function, argnums=(0, 1), has_aux=True)(p, x)
        assert int(aux) == 2
        npt.assert_array_equal(np.asarray(value["y"]), p["a"] * x)
        by_p, by_x = jacobian["y"]
        npt.assert_array_equal(np.asarray(by_p["a"]), np.diag(x))
        npt.assert_array_equal(np.asarray(by_p["b"]), np.zeros((2, 3, 2)))
        npt.assert_array_equal(np.asarray(by_x), np.diag(p["a"]))
        by_p, by_x = jacobian["z"][0]
        npt.assert_array_equal(np.asarray(by_p["b"]), np.eye(3)[:, :, None] * x)
        npt.assert_array_equal(np.asarray(by_x), p["b"])
    jacobian, aux = harp.jacrev(function, has_aux=True)(p, x)
    assert set(jacobian["y"]) == {"a", "b"} and int(aux) == 2


def test_complex_numbers():
    z = np.array([1 + 2j, 0.5 - 1j])
    for transform in (harp.jacfwd, harp.jacrev):
        npt.assert_allclose(np.asarray(transform(lambda z: z**2, holomorphic=True)(z)), np.diag(2 * z))
    npt.assert_allclose(np.asarray(harp.jacfwd(lambda x: hnp.exp(1j * x))(z.real)), np.diag(1j * np.exp(1j * z.real)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.jacfwd(lambda x: x)(np.arange(3)), IntegerGradientError, "argument x has dtype int64"),
        (lambda: harp.jacrev(lambda x: hnp.argmax(x))(np.ones(3)), IntegerGradientError, "returns int64"),
        (lambda: harp.jacfwd(lambda x: hnp.argmax(x))(np.ones(3)), IntegerGradientError, "returns int64"),
        (lambda: harp.jacfwd(lambda z: z)(np.ones(3) * 1j), ComplexGradientError, "takes complex128"),
        (lambda: harp.jacrev(lambda z: z * 1j)(np.ones(3)), ComplexGradientError, "returns complex128"),
        (lambda: harp.jacrev(lambda x: x, holomorphic=True)(np.ones(3)), ComplexGradientError, "returns float64"),
        (lambda: harp.jacfwd(lambda x: x, argnums=1)(np.ones(3)), ArgumentError, "argnums names argument 1"),
        (lambda: harp.jacfwd(lambda x: x, has_aux=True)(np.ones(3)), ArgumentError, "must return a pair"),
    ],
)
def test_what_has_no_jacobian(call, error, words):
    with pytest.raises(error, match=words):
        call()
