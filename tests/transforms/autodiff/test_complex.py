"""Gradients with respect to complex numbers: JAX's figures, differences, holomorphic functions, errors."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ComplexGradientError, CotangentError, IntegerGradientError

Z = np.array([0.3 - 0.7j, -1.2 + 0.4j])
W = np.array([1.1 + 0.2j, 0.5 - 0.9j])

FUNCTIONS = {
    "abs squared": lambda z: hnp.sum(hnp.abs(z) ** 2),
    "abs": lambda z: hnp.sum(hnp.abs(z)),
    "real of a product": lambda z: hnp.sum(hnp.real(z * W)),
    "imag of exp": lambda z: hnp.sum(hnp.imag(hnp.exp(z))),
    "angle": lambda z: hnp.sum(hnp.angle(z)),
    "conj": lambda z: hnp.sum(hnp.real(hnp.conj(z) * W * z)),
    "quotient": lambda z: hnp.sum(hnp.abs(W / z)),
    "log": lambda z: hnp.sum(hnp.real(hnp.log(z) * W)),
    "sqrt": lambda z: hnp.sum(hnp.imag(hnp.sqrt(z))),
    "sin": lambda z: hnp.sum(hnp.real(hnp.sin(z) * W)),
    "tanh": lambda z: hnp.sum(hnp.real(hnp.tanh(z) * W)),
    "power": lambda z: hnp.sum(hnp.imag(z**W)),
    "where": lambda z: hnp.sum(hnp.real(hnp.where(hnp.real(z) > 0, z * z, W * z))),
    "mean": lambda z: hnp.abs(hnp.mean(z * z)),
    "prod": lambda z: hnp.real(hnp.prod(z)),
    "cumsum": lambda z: hnp.sum(hnp.real(hnp.cumsum(z) * W)),
}
# jax.grad of the same functions, by JAX 0.4 to 0.7 in float64.
JAX = {
    "abs squared": [(0.6 + 1.4j), (-2.4 - 0.8j)],
    "abs": [(0.393919298579 + 0.919145030018j), (-0.948683298051 - 0.316227766017j)],
    "real of a product": [(1.1 + 0.2j), (0.5 - 0.9j)],
    "imag of exp": [(-0.869602919114 - 1.032428962912j), (0.117290550716 - 0.277418240212j)],
    "angle": [(1.206896551724 - 0.51724137931j), (-0.25 + 0.75j)],
    "conj": [(0.66 + 1.54j), (-1.2 - 0.4j)],
    "quotient": [(-0.759336490752 - 1.771785145087j), (0.610455772354 + 0.203485257451j)],
    "log": [(0.327586206897 + 1.431034482759j), (-0.6 + 0.55j)],
    "sqrt": [(0.31540112343 - 0.478318109095j), (-0.438829325456 - 0.071212196148j)],
    "sin": [(1.274184263741 + 0.486416243791j), (0.540420978613 - 0.161142850227j)],
    "tanh": [(1.302158891077 + 1.012876894353j), (0.305045629231 - 0.123953060724j)],
    "power": [(0.012075220922 - 1.373658597588j), (-5.105363197639 + 10.39656317529j)],
    "where": [(0.6 - 1.4j), (0.5 - 0.9j)],
    "mean": [(0.751510350215 - 0.123418772962j), (-0.982462311501 - 0.796723168033j)],
    "prod": [(-1.2 + 0.4j), (0.3 - 0.7j)],
    "cumsum": [(1.6 - 0.7j), (0.5 - 0.9j)],
}


def by_differences(function, z, step=1e-6):
    """df/dx - i df/dy of each element."""
    result = np.empty_like(z)
    for k in range(len(z)):
        ends = []
        for direction in (step, 1j * step):
            up, down = z.copy(), z.copy()
            up[k] += direction
            down[k] -= direction
            ends.append((complex(function(hnp.asarray(up))) - complex(function(hnp.asarray(down)))) / (2 * step))
        result[k] = ends[0] - 1j * ends[1]
    return result


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_jaxs(name):
    gradient = harp.grad(FUNCTIONS[name])(Z)
    np.testing.assert_allclose(gradient, JAX[name], rtol=1e-10)
    np.testing.assert_allclose(gradient, by_differences(FUNCTIONS[name], Z), rtol=1e-6)


@pytest.mark.slow
def test_compiled_and_of_second_order():
    compiled = harp.jit(lambda z: {name: harp.grad(f)(z) for name, f in FUNCTIONS.items()})
    for name, found in compiled(Z).items():
        np.testing.assert_allclose(found, JAX[name], rtol=1e-10, err_msg=name)
    for name, found in compiled(Z.astype("complex64")).items():
        assert found.dtype == np.complex64
        np.testing.assert_allclose(found, JAX[name], rtol=2e-5, err_msg=name)

    def steepness(f):
        return lambda z: hnp.sum(hnp.abs(harp.grad(f)(z)) ** 2)

    second = harp.jit(lambda z: {name: harp.grad(steepness(f))(z) for name, f in FUNCTIONS.items()})
    for name, found in second(Z).items():
        wanted = by_differences(steepness(FUNCTIONS[name]), Z)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-8, err_msg=name)


def test_products_of_matrices():
    rng = np.random.default_rng(0)
    a, b, c = ((rng.normal(size=s) + 1j * rng.normal(size=s)) for s in ((3, 4), (4, 5), (3, 5)))
    f = lambda a, b: hnp.sum(hnp.real(a @ b * c))
    for grad in (harp.grad(f, (0, 1)), harp.jit(harp.grad(f, (0, 1)))):
        of_a, of_b = grad(a, b)
        np.testing.assert_allclose(of_a, c @ b.T)
        np.testing.assert_allclose(of_b, a.T @ c)


def test_real_arguments_of_complex_arithmetic():
    f = lambda x: hnp.real((x + 1j) ** 2 * 1j)
    gradient = harp.grad(f)(2.0)
    assert gradient.dtype == np.float64 and float(gradient) == -2.0
    g = harp.grad(lambda x: hnp.abs(hnp.exp(1j * x) + 0.5))(0.7)
    np.testing.assert_allclose(float(g), -0.5 * np.sin(0.7) / abs(np.exp(0.7j) + 0.5), rtol=1e-12)


def test_holomorphic_functions():
    """With `holomorphic` the gradient is df/dz."""
    table = {
        "sin": (hnp.sin, np.cos), "cos": (hnp.cos, lambda z: -np.sin(z)), "exp": (hnp.exp, np.exp),
        "log": (hnp.log, lambda z: 1 / z), "sqrt": (hnp.sqrt, lambda z: 0.5 / np.sqrt(z)),
        "tan": (hnp.tan, lambda z: 1 + np.tan(z) ** 2), "tanh": (hnp.tanh, lambda z: 1 - np.tanh(z) ** 2),
        "cube": (lambda z: z**3, lambda z: 3 * z**2), "inverse": (lambda z: 1 / z, lambda z: -1 / z**2),
        "power": (lambda z: z**2.5, lambda z: 2.5 * z**1.5), "expm1": (hnp.expm1, np.exp),
        "log1p": (hnp.log1p, lambda z: 1 / (1 + z)), "log10": (hnp.log10, lambda z: 1 / (z * np.log(10))),
        "sinh": (hnp.sinh, np.cosh), "cosh": (hnp.cosh, np.sinh),
        "asin": (hnp.asin, lambda z: 1 / np.sqrt(1 - z**2)), "acos": (hnp.acos, lambda z: -1 / np.sqrt(1 - z**2)),
        "atan": (hnp.atan, lambda z: 1 / (1 + z**2)), "asinh": (hnp.asinh, lambda z: 1 / np.sqrt(1 + z**2)),
        "acosh": (hnp.acosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))),
        "atanh": (hnp.atanh, lambda z: 1 / (1 - z**2)),
    }  # fmt: skip
    for name, (function, derivative) in table.items():
        found = harp.grad(lambda z, f=function: hnp.sum(f(z)), holomorphic=True)(Z)
        np.testing.assert_allclose(found, derivative(Z), rtol=1e-12, err_msg=name)
    value, gradient = harp.value_and_grad(hnp.sin, holomorphic=True)(0.3 - 0.7j)
    assert complex(value) == pytest.approx(np.sin(0.3 - 0.7j))
    assert complex(gradient) == pytest.approx(np.cos(0.3 - 0.7j))


def test_vjp():
    value, pullback = harp.vjp(lambda z: z * z * W, Z)
    np.testing.assert_allclose(value, Z * Z * W)
    (found,) = pullback(np.array([1 + 0j, 2j]))
    np.testing.assert_allclose(found, [0.94 - 1.42j, -5.12 - 0.96j])  # JAX's
    with pytest.raises(CotangentError, match="float64"):
        pullback(np.ones(2))


def test_at_zero():
    assert complex(harp.grad(lambda z: hnp.abs(z))(0j)) == 0j
    assert complex(harp.grad(lambda z: hnp.abs(z) ** 2)(0j)) == 0j
    np.testing.assert_array_equal(harp.grad(lambda z: hnp.real(hnp.prod(z)))(np.array([0j, 2j, 3])), [6j, 0, 0])


def test_errors():
    with pytest.raises(ComplexGradientError, match=r"returns complex128.*holomorphic=True"):
        harp.grad(lambda z: hnp.sum(z))(Z)
    with pytest.raises(ComplexGradientError, match="from complex numbers to complex numbers"):
        harp.grad(lambda z: hnp.abs(z[0]), holomorphic=True)(Z)
    with pytest.raises(ComplexGradientError, match="from complex numbers to complex numbers"):
        harp.grad(lambda x: hnp.sum(x * 1j), holomorphic=True)(Z.real)
    with pytest.raises(IntegerGradientError):
        harp.grad(lambda x: hnp.real(x * 1j))(1)
