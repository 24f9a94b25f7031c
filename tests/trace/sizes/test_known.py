"""Branches of Python on values in gradients outside of jit, which are traced for the numbers that they are given."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ConcretizationError
from harp.trace.sizes import known


def size(x):
    return x if x > 0 else -x


def root(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def counted(x, n):
    total = 0.0
    for k in range(n):
        if x[k] > 0.5:
            total = total + x[k] ** k
    return total


def test_branches_and_loops_of_python():
    assert float(harp.grad(size)(2.0)) == 1 and float(harp.grad(size)(-2.0)) == -1
    value, slope = harp.value_and_grad(root)(2.0)
    np.testing.assert_allclose([value, slope], [np.sqrt(2), 0.5 / np.sqrt(2)], rtol=1e-10)
    x = np.array([0.2, 0.7, 0.9, 0.1, 0.6])
    expected = np.where(x > 0.5, np.arange(5) * x ** np.maximum(np.arange(5) - 1, 0), 0)
    np.testing.assert_allclose(harp.grad(counted)(x, 5), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "second",
    [
        lambda f: harp.grad(harp.grad(f)),
        lambda f: harp.hessian(f),
        lambda f: lambda x: harp.jvp(harp.grad(f), (x,), (1.0,))[1],
    ],
    ids=["grad of grad", "hessian", "jvp of grad"],
)
def test_derivatives_of_higher_order(second):
    cube = second(lambda x: x**3 if x > 0 else -(x**3))
    assert float(cube(2.0)) == 12 and float(cube(-2.0)) == 12


def test_all_transforms_of_one_array():
    pulled = harp.vjp(size, -3.0)
    assert float(pulled[0]) == 3 and float(pulled[1](1.0)[0]) == -1
    value, push = harp.linearize(size, -3.0)
    assert float(value) == 3 and float(push(2.0)) == -2
    np.testing.assert_array_equal(harp.jacrev(lambda x: x * 2 if x[0] > 0 else x)(np.array([1.0, 2.0])), 2 * np.eye(2))
    assert float(harp.grad(lambda x: [x, 2 * x][x.astype(int)])(1.0)) == 2  # an index of a list


@pytest.mark.parametrize(
    "call",
    [
        lambda: harp.jit(size)(1.0),
        lambda: harp.jit(harp.grad(size))(1.0),
        lambda: harp.jit(lambda x: x if hnp.sum(hnp.ones(x.shape)) > 2 else 0)(np.ones(3)),
        lambda: harp.grad(harp.jit(size))(1.0) and harp.jit(harp.grad(size))(1.0),
        lambda: harp.vmap(harp.grad(size))(np.ones(3)),
        lambda: harp.grad(lambda x: harp.fori_loop(0, 3, lambda i, c: size(c), x))(1.0),
        lambda: harp.grad(lambda x: float(x) * x)(1.0),
        lambda: harp.grad(lambda x: np.sin(np.asarray(x)) * x)(1.0),
    ],
    ids=["jit", "jit of grad", "ones", "grad of jit", "vmap", "loop", "float", "asarray"],
)
def test_elsewhere_numbers_are_not_known(call):
    """And numbers that would leave the trace, so that their derivative was lost, are not given away."""
    with pytest.raises(ConcretizationError):
        call()


def test_python_functions_are_called_once():
    seen = []

    def f(x):
        harp.debug.callback(lambda x: seen.append(float(x)), x)
        return x if x > 0 else -x

    assert float(harp.grad(f)(2.0)) == 1
    assert seen == [2.0]


def test_a_loop_of_python_computes_each_step_once(monkeypatch):
    steps = []
    evaluate = known.evaluate_node
    monkeypatch.setattr(known, "evaluate_node", lambda *args: steps.append(args[0]) or evaluate(*args))

    def halved(x):
        for _ in range(50):
            x = x / 2 if x > 0 else -x
        return x

    np.testing.assert_allclose(harp.grad(halved)(3.0), 2.0**-50)
    assert len(steps) == len(set(steps)) <= 50 * 4
