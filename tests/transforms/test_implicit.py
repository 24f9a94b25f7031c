"""Derivatives of solutions beside those of dense solutions and differences, however the solutions are found."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import MissingRuleError, TreeError
from harp.test_util import check_grads


def dense(matvec, b):
    matrix = harp.vmap(matvec, out_axes=1)(hnp.eye(b.shape[0], dtype=b.dtype))
    return hnp.linalg.solve(matrix, hnp.asarray(b))


def twice(m, b):
    return lax.custom_linear_solve(lambda x: hnp.asarray(m) @ x * m[0, 0], b, dense, dense)


def system(dtype="float64", n=3):
    rng = np.random.default_rng(0)
    m, b = rng.standard_normal((n, n)) + 3 * np.eye(n), rng.standard_normal(n)
    if dtype == "complex128":
        m, b = m + 1j * rng.standard_normal((n, n)), b + 1j * rng.standard_normal(n)
    return m, b


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_linear_solutions(dtype):
    check_grads(harp.jit(twice), system(dtype), 2)
    m, b = system(dtype)
    np.testing.assert_allclose(twice(m, b), np.linalg.solve(m, b) / m[0, 0])


@pytest.mark.slow
def test_second_derivatives_batches_and_loops():
    m, b = system()
    own = lambda m, b: hnp.sum(twice(m, b) ** 3)
    theirs = lambda m, b: hnp.sum(hnp.linalg.solve(m * m[0, 0], b) ** 3)
    for call in (harp.hessian, lambda f: harp.vmap(harp.grad(f), (None, 0))):
        given = (m, b) if call is harp.hessian else (m, np.stack([b, 2 * b]))
        np.testing.assert_allclose(harp.jit(call(own))(*given), call(theirs)(*given), rtol=1e-7, atol=1e-12)

    def looped(f):
        return harp.jit(harp.grad(lambda m: harp.fori_loop(0, 2, lambda k, x: x + f(m, b + x), 0.0)))

    np.testing.assert_allclose(looped(own)(m), looped(theirs)(m), rtol=1e-7)


def test_symmetric_functions_and_trees():
    m, b = system()
    tree = {"x": b[:1], "y": (b[1:],)}

    def solution(m, tree):
        join = lambda t: hnp.concatenate([t["x"], t["y"][0]])
        split = lambda v: {"x": v[:1], "y": (v[1:],)}
        both = hnp.asarray(m + m.T)
        solve = lambda f, t: (split(dense(lambda v: join(f(split(v))), join(t))), 1)
        return lax.custom_linear_solve(lambda t: split(both @ join(t)), tree, solve, symmetric=True, has_aux=True)

    check_grads(harp.jit(lambda m, tree: solution(m, tree)[0]), (m, tree), 2)
    assert solution(m, tree)[1] == 1


def test_what_is_missing():
    m, b = system()
    with pytest.raises(MissingRuleError, match="without transpose_solve"):
        harp.grad(lambda b: lax.custom_linear_solve(lambda x: m @ x, b, dense).sum())(b)
    for call in (
        lambda: lax.custom_linear_solve(lambda x: x, b, lambda f, b: (b, b)),
        lambda: lax.custom_root(lambda x: x, b, lambda f, x: [x], None),
    ):
        with pytest.raises(TreeError, match=r"what solve of custom_.* returns is a tree"):
            call()


def newton(f, x):
    return harp.fori_loop(0, 12, lambda k, x: x - hnp.linalg.solve(harp.jacfwd(f)(x), f(x)), x)


def curve(a):
    """Where a circle and a hyperbola meet."""
    f = lambda x: hnp.stack([x[0] ** 2 + x[1] - a[0], x[0] * x[1] - a[1] ** 2])
    return lax.custom_root(f, hnp.ones(2), newton, dense)


@pytest.mark.slow
def test_roots():
    a = np.array([3.0, 1.2])
    check_grads(harp.jit(curve), (a,), 3)
    x = np.asarray(curve(a))
    np.testing.assert_allclose([x[0] ** 2 + x[1], x[0] * x[1]], [a[0], a[1] ** 2])
    many = np.stack([a, a + 0.2])
    slopes = harp.jit(harp.vmap(harp.jacrev(curve)))(many)
    np.testing.assert_allclose(slopes[1], harp.jacfwd(curve)(many[1]), rtol=1e-9)
    steps = lambda f, x: harp.fori_loop(0, 60, lambda k, x: x - 0.1 * f(x), x)
    cubic = lambda a, start: lax.custom_root(
        lambda x: x**3 - a * x - 2, start, lambda f, x: (steps(f, x), 7), lambda g, y: y / g(1.0), has_aux=True
    )
    assert cubic(1.3, 1.0)[1] == 7
    check_grads(harp.jit(lambda a: cubic(a, 1.0)[0]), (1.3,), 2)
    assert float(harp.grad(lambda start: cubic(1.3, start)[0])(1.0)) == 0
