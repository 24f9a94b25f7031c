"""grad, value_and_grad, vjp: against central differences in float64, nested, in trees, with captured tracers."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import errors

FUNCTIONS = {
    "polynomial": lambda x: x * x * x - 2.0 * x,
    "trigonometric": lambda x: hnp.sin(x) * hnp.cos(2.0 * x) + hnp.tan(0.3 * x),
    "exponential": lambda x: hnp.exp(x) + hnp.exp2(x) + hnp.expm1(x),
    "logarithms": lambda x: hnp.log(x * x + 1) + hnp.log2(x * x + 1) + hnp.log1p(x * x),
    "roots": lambda x: hnp.sqrt(x * x + 0.5) + 1.0 / (x * x + 1) + (x * x + 1.0) ** 1.7,
    "squashing": lambda x: hnp.tanh(x) + hnp.sigmoid(x),
    "softmax": lambda x: hnp.softmax(x) * x,
    "logsumexp": lambda x: hnp.logsumexp(x, axis=0),
    "moments": lambda x: hnp.var(x) * hnp.mean(x) + hnp.std(x + 3 * hnp.arange(4)),
    "extremes": lambda x: hnp.max(x) * hnp.min(x) + hnp.maximum(x, 0.1) + hnp.clip(x, -0.5, 0.5),
    "product": lambda x: hnp.prod(x) + hnp.prod(hnp.stack([x, x * 2]), axis=0),
    "views": lambda x: x[::-1] * hnp.concatenate([x[1:], x[:1]]) + hnp.pad(x[1:-1], [(1, 1)]),
    "matrices": lambda x: (x[:, None] * x).reshape(2, 8) @ hnp.outer(x, x).reshape(8, 2),
    "einsum": lambda x: hnp.einsum("i,j,ij->i", x, x, hnp.outer(x, x)),
    "where": lambda x: hnp.where(x > 0, x * x, -x),
}
POINT = np.array([0.3, -0.7, 1.1, 0.45])


def differences(f, x, step=1e-6):
    """Central differences of a scalar function."""
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(x.size)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_order(name):
    def scalar(x):
        return hnp.sum(FUNCTIONS[name](x) * hnp.cos(hnp.sum(x)))

    def value(x):
        return float(scalar(hnp.asarray(x)))

    gradient = harp.jit(harp.grad(scalar))
    npt.assert_allclose(gradient(POINT), differences(value, POINT), rtol=1e-6, atol=1e-7)
    directional = harp.jit(harp.grad(lambda x: hnp.sum(harp.grad(scalar)(x) * hnp.arange(1.0, 5.0))))
    expected = differences(lambda x: float(np.asarray(gradient(x)) @ np.arange(1.0, 5.0)), POINT)
    npt.assert_allclose(directional(POINT), expected, rtol=1e-5, atol=1e-6)


def test_product_with_zeros_to_second_order():
    hessian = [harp.grad(lambda x, k=k: harp.grad(hnp.prod)(x)[k]) for k in range(3)]
    x = np.array([0.0, 0.0, 3.0])
    npt.assert_array_equal(harp.grad(hnp.prod)(x), [0, 0, 0])
    npt.assert_array_equal(np.array([np.asarray(h(x)) for h in hessian]), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
    npt.assert_array_equal(harp.grad(hnp.prod)(np.array([2.0, 0.0, 3.0])), [0, 6, 0])


def test_ties_share_equally():
    npt.assert_allclose(harp.grad(hnp.max)(np.array([1.0, 3.0, 3.0])), [0, 0.5, 0.5])


def test_conventions_at_the_edges():
    assert float(harp.grad(hnp.relu)(0.0)) == 0.0
    assert float(harp.grad(hnp.sigmoid)(0.0)) == 0.25
    assert float(harp.grad(hnp.abs)(0.0)) == 0.0
    npt.assert_allclose(float(harp.grad(hnp.tanh)(20.0)), 1 / np.cosh(20.0) ** 2, rtol=1e-12)
    npt.assert_allclose(float(harp.grad(lambda x: x**2.0)(0.0)), 0.0)


def test_argnums_aux_and_trees():
    def f(params, x, scale):
        loss = hnp.sum((x @ params["w"] + params["b"]) * scale)
        return loss, {"twice": loss * 2, "shape": x.shape[0]}

    params = {"w": np.ones((3, 2)), "b": np.zeros(2)}
    x = np.arange(6.0).reshape(2, 3)
    (value, aux), (gradient, by_scale) = harp.jit(harp.value_and_grad(f, argnums=(0, -1), has_aux=True))(params, x, 2.0)
    assert float(value) == 2 * x.sum() * 2
    assert float(aux["twice"]) == 2 * float(value)
    assert int(aux["shape"]) == 2
    npt.assert_array_equal(gradient["w"], 2 * np.repeat(x.sum(0)[:, None], 2, 1))
    npt.assert_array_equal(gradient["b"], [4, 4])
    assert float(by_scale) == 2 * x.sum()


def test_vjp_and_its_errors():
    x, y = np.arange(3.0), np.ones((2, 3))
    value, pullback = harp.vjp(lambda x, y: (y @ x, x * 2), x, y)
    npt.assert_array_equal(value[0], y @ x)
    gx, gy = pullback((np.array([1.0, 2.0]), np.ones(3)))
    npt.assert_array_equal(gx, y.T @ [1, 2] + 2)
    npt.assert_array_equal(gy, np.outer([1, 2], x))
    with pytest.raises(errors.CotangentError):
        pullback(np.ones(2))
    with pytest.raises(errors.CotangentError):
        pullback((np.ones((2, 1)), np.ones(3)))
    with pytest.raises((errors.CotangentError, errors.ShapeError)):
        pullback((np.ones(5), np.ones(3)))


def test_perturbations_are_not_confused():
    # d/dx x * d/dy (x + y) at y = 1 is 1, not 2
    f = harp.grad(lambda x: x * harp.grad(lambda y: x + y)(1.0))
    assert float(f(1.0)) == 1.0
    assert float(harp.jit(f)(1.0)) == 1.0
    third = harp.grad(harp.grad(harp.grad(lambda x: x * x * x * x)))
    assert float(third(2.0)) == 48.0


def test_captured_tracers():
    @harp.jit
    def f(x, w):
        inner = harp.grad(lambda v: hnp.sum(hnp.sin(v * w) + x[0]))
        return inner(x) * x.shape[0]

    x, w = np.arange(1.0, 4.0), np.array([0.5, 1.0, 2.0])
    npt.assert_allclose(f(x, w), np.cos(x * w) * w * 3, rtol=1e-12)


def test_stop_gradient_and_integers():
    x = np.array([1.0, 2.0])
    npt.assert_array_equal(harp.grad(lambda x: hnp.sum(x * harp.stop_gradient(x)))(x), x)
    npt.assert_array_equal(harp.grad(lambda x: hnp.sum(x * hnp.astype(x, "int32")))(x), x)
    with pytest.raises(errors.IntegerGradientError, match="argument x"):
        harp.grad(lambda x: hnp.sum(x))(np.arange(3))
    with pytest.raises(errors.IntegerGradientError):
        harp.grad(lambda x: hnp.sum(hnp.astype(x, "int32")))(x)
    with pytest.raises(errors.NonScalarGradientError):
        harp.grad(lambda x: x)(x)
    with pytest.raises(errors.NonScalarGradientError):
        harp.grad(lambda x: (x[0], x[1]))(x)
    with pytest.raises(errors.ArgumentError):
        harp.grad(lambda x: hnp.sum(x), argnums=1)(x)


@pytest.mark.parametrize("argnums", [(0, 0), (1, -1), [0, 1, -2]])
def test_an_argument_is_named_once(argnums):
    with pytest.raises(errors.ArgumentError, match="twice"):
        harp.grad(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


def test_no_dependence_gives_zeros():
    gradient = harp.jit(harp.grad(lambda x, y: hnp.sum(y)))
    for n in (0, 1, 3):
        npt.assert_array_equal(gradient(np.ones((n, 2)), np.ones(2)), np.zeros((n, 2)))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: harp.grad(5)(1.0), "grad takes a function"),
        (lambda: harp.value_and_grad(np.ones(3)), "function"),
        (lambda: harp.vjp(3.0, 1.0), "vjp takes a function"),
        (lambda: harp.trace(5, np.ones(3)), "trace takes a function"),
        (lambda: harp.jit("f"), "jit takes a function"),
        (lambda: harp.grad(lambda x: x, argnums="x"), "argnums"),
        (lambda: harp.grad(lambda x: x, argnums=1.0), "argnums"),
        (lambda: harp.grad(lambda x: x, argnums=None), "argnums"),
        (lambda: harp.trace(lambda x, y: x, np.ones(3), harp.f32["n"]), "not both"),
    ],
)
def test_arguments_of_transforms(call, match):
    with pytest.raises(errors.ArgumentError, match=match) as caught:
        call()
    assert __file__ in str(caught.value)


def test_argnums_may_be_numpys():
    assert float(harp.grad(lambda x, y: x * y, argnums=np.int64(1))(2.0, 3.0)) == 2.0


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "exp2"])
def test_what_the_function_computed_is_not_computed_again(name):
    function = getattr(hnp, name)
    text = repr(harp.trace(harp.value_and_grad(lambda x: hnp.sum(function(x))), harp.f64["n"]))
    assert text.count(f"{name}(") == 1


def test_second_derivatives_through_what_was_computed():
    x = np.array([-1.3, -0.2, 0.4, 0.9])
    twice = harp.grad(lambda x: hnp.sum(harp.grad(lambda x: hnp.sum(hnp.exp(x) * x))(x)))(x)
    npt.assert_allclose(twice, (2 + x) * np.exp(x))
    twice = harp.grad(lambda x: hnp.sum(harp.grad(lambda x: hnp.sum(hnp.tanh(x)))(x)))(x)
    npt.assert_allclose(twice, -2 * np.tanh(x) / np.cosh(x) ** 2)
