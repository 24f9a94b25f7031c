"""Minima, solutions by iteration and arrays between their elements, against SciPy and dense solutions."""

import numpy as np
import pytest
import scipy.ndimage
import scipy.optimize
import scipy.sparse.linalg

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError
from harp.scipy import ndimage, optimize
from harp.scipy.sparse import linalg


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_minimize():
    found = harp.jit(lambda x: optimize.minimize(rosenbrock, x))
    for n in (2, 3, 7):
        start = np.linspace(-1.5, 1.5, n)
        result = found(start)
        assert result.success and result.status == 0 and result.nfev == result.njev >= result.nit > 5
        np.testing.assert_allclose(result.x, np.ones(n), atol=1e-4)
        np.testing.assert_allclose(result.fun, rosenbrock(np.asarray(result.x)))
        assert np.abs(result.jac).max() < 1e-5
        truth = scipy.optimize.minimize(rosenbrock, start, method="BFGS")
        assert int(result.nfev) < 3 * truth.nfev
    assert found.compilations == 1


@pytest.mark.slow
def test_minimize_stops_and_takes_arguments():
    quadratic = lambda x, a, b: 0.5 * x @ a @ x - b @ x
    a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    result = optimize.minimize(quadratic, np.zeros(2), (a, b), tol=1e-8)
    np.testing.assert_allclose(result.x, np.linalg.solve(a, b), atol=1e-8)
    np.testing.assert_allclose(result.hess_inv, np.linalg.inv(a), atol=0.05)
    once = optimize.minimize(rosenbrock, np.array([-1.0, 2.0]), options={"maxiter": 1})
    assert (int(once.status), int(once.nit), bool(once.success)) == (1, 1, False)
    at_once = optimize.minimize(lambda x: (x**2).sum(), np.zeros(3))
    assert at_once.success and at_once.nit == 0
    down = optimize.minimize(lambda x: x.sum(), np.zeros(1), options={"line_search_maxiter": 20})
    assert int(down.status) == 3 and not down.success
    several = harp.jit(harp.vmap(lambda x: optimize.minimize(rosenbrock, x).x))(np.array([[-1.0, 1.0], [3.0, 0.0]]))
    np.testing.assert_allclose(several, np.ones((2, 2)), atol=1e-4)
    with pytest.raises(ArgumentError, match="no option 'ftol'"):
        optimize.minimize(rosenbrock, b, options={"ftol": 1})
    with pytest.raises(ArgumentError, match="method of minimize is 'BFGS', not 'CG'"):
        optimize.minimize(rosenbrock, b, method="CG")
    with pytest.raises(ShapeError):
        optimize.minimize(rosenbrock, a)


SOLVERS = ["cg", "bicgstab", "gmres"]


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions_by_iteration(name):
    rng, solve = np.random.default_rng(1), getattr(linalg, name)
    found = harp.jit(lambda a, b: solve(a, b, tol=1e-12)[0])
    for dtype in ("float64", "complex128"):
        for n in (0, 1, 2, 6, 20):
            a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype[0] == "c" else 0)
            a = a @ a.conj().T / (n + 1) + np.eye(n) if name == "cg" else a / (n + 1) + 2 * np.eye(n)
            b = rng.standard_normal(n).astype(dtype)
            np.testing.assert_allclose(found(a, b), np.linalg.solve(a, b), rtol=1e-8, atol=1e-9)
    assert found.compilations == 2  # by dtypes
    a = a.real @ a.real.T + 5 * np.eye(n)
    tree = {"x": b.real[:5], "y": b.real[5:].reshape(3, 5)}

    def multiplied(v):
        flat = a @ harp.numpy.concatenate([v["x"], v["y"].ravel()])
        return {"x": flat[:5], "y": flat[5:].reshape(3, 5)}

    x, info = solve(multiplied, tree, tol=1e-10, M=lambda v: {k: p / 5 for k, p in v.items()})
    expected = np.linalg.solve(a, b.real)
    assert info is None
    np.testing.assert_allclose(x["x"], expected[:5], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(x["y"], expected[5:].reshape(3, 5), rtol=1e-6, atol=1e-8)
    few = solve(a, b.real, b.real, maxiter=0)[0]
    np.testing.assert_array_equal(few, b.real)
    slope = harp.grad(lambda b: solve(a, b, tol=1e-12)[0].sum())(b.real)
    np.testing.assert_allclose(slope, np.linalg.solve(a.T, np.ones(n)), rtol=1e-5)
    with pytest.raises(ArgumentError, match=f"x0 of {name} is another tree"):
        solve(multiplied, tree, b)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_solutions_by_iteration(name, dtype):
    """Against those of a dense solution, also where the steps end early: they are not differentiated."""
    rng, n = np.random.default_rng(5), 4
    a, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    if dtype == "complex128":
        a, b = a + 1j * rng.standard_normal((n, n)), b + 1j * rng.standard_normal(n)
    a, direction = a / 2 + 2 * np.eye(n), rng.standard_normal(n)
    solve = lambda a, b, **more: getattr(linalg, name)(lambda x: a @ x, b, tol=1e-13, **more)[0]
    whole = (lambda a: a @ hnp.conj(a).T) if name == "cg" else lambda a: a

    def total(solve, a, b, **more):
        a, b = map(hnp.asarray, (a, b))
        return hnp.sum(hnp.abs(solve(whole(a), b * a[0, 0], **more)) ** 2)

    found = harp.jit(lambda a, b: harp.vjp(lambda a, b: total(solve, a, b), a, b)[1](1.0))
    expected = harp.vjp(lambda a, b: total(hnp.linalg.solve, a, b), a, b)[1](1.0)
    for one, other in zip(found(a, b), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    forward = harp.jit(lambda a, b: harp.jvp(lambda b: total(solve, a, b), (b,), (direction.astype(dtype),))[1])
    np.testing.assert_allclose(forward(a, b), np.real((expected[1] * direction).sum()), rtol=1e-9)
    if dtype == "float64":
        preconditioner = lambda x: x * hnp.asarray([0.3, 0.5, 0.4, 0.5])  # any one is right
        for start in ({}, {"x0": np.linalg.solve(np.asarray(whole(a)), b * a[0, 0]), "M": preconditioner}):
            second = harp.jit(harp.hessian(lambda a, b, start=start: total(solve, a, b, **start), (0, 1)))(a, b)
            wanted = harp.hessian(lambda a, b: total(hnp.linalg.solve, a, b), (0, 1))(a, b)
            for one, other in zip(harp.tree.leaves(second), harp.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
        batch = np.stack([a, a + np.eye(n), 2 * a])
        slopes = harp.jit(harp.vmap(harp.grad(lambda a: total(solve, a, b))))(batch)
        wanted = harp.vmap(harp.grad(lambda a: total(hnp.linalg.solve, a, b)))(batch)
        np.testing.assert_allclose(slopes, wanted, rtol=1e-9, atol=1e-10)


def test_gmres_begins_anew():
    rng, n = np.random.default_rng(6), 30
    a, b = rng.standard_normal((n, n)) / 6 + 2 * np.eye(n), rng.standard_normal(n)
    left = [
        np.linalg.norm(b - a @ linalg.gmres(a, b, tol=0.0, restart=restart, maxiter=maxiter)[0])
        for restart, maxiter in ((3, 1), (3, 4), (12, 1), (30, 1))
    ]
    truth = [
        scipy.sparse.linalg.gmres(a, b, rtol=0.0, restart=restart, maxiter=maxiter)[0]
        for restart, maxiter in ((3, 1), (3, 4), (12, 1))
    ]
    np.testing.assert_allclose(left[:3], [np.linalg.norm(b - a @ x) for x in truth], rtol=1e-6)
    assert left[3] < 1e-12
    one = linalg.gmres(np.zeros((2, 2)), np.ones(2), maxiter=3)[0]  # there is no solution, and no NaN
    assert np.array_equal(one, np.zeros(2))
    assert linalg.gmres(a, 0 * b)[0].tolist() == [0.0] * n
    with pytest.raises(ArgumentError, match="restart of gmres is at least 1, not 0"):
        linalg.gmres(a, b, restart=0)


@pytest.mark.parametrize("order", [0, 1])
def test_between_elements(order):
    rng = np.random.default_rng(2)
    modes = {
        "constant": "constant",
        "nearest": "nearest",
        "wrap": "grid-wrap",
        "mirror": "mirror",
        "reflect": "reflect",
    }
    found = harp.jit(
        lambda a, x, y: {mode: ndimage.map_coordinates(a, [x, y], order, mode, cval=7.0) for mode in modes}
    )
    for shape in ((4, 5), (1, 3), (6, 2)):
        a = rng.standard_normal(shape)
        inside = [rng.uniform(0, n - 1, 30) for n in shape]
        beyond = [rng.uniform(-9, n + 9, 30) for n in shape]
        for places in (inside, beyond):
            for mode, values in found(a, *places).items():
                if mode == "constant" and places is beyond:
                    continue  # where the constant begins: JAX's and harp's half an element, or one, after SciPy's
                wanted = scipy.ndimage.map_coordinates(a, places, order=order, mode=modes[mode], cval=7.0)
                np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-12, err_msg=mode)
    assert found.compilations <= 2
    half = ndimage.map_coordinates(np.array([1, 2, 4]), [np.array([0.6, 1.6])], order)
    assert half.dtype == np.int64 and half.tolist() == [2, 4 if order == 0 else 3]
    if order:
        slope = harp.grad(lambda x: ndimage.map_coordinates(np.array([1.0, 2.0, 5.0]), [x], 1).sum())(np.array([1.5]))
        np.testing.assert_allclose(slope, [3.0])


def test_places_that_do_not_fit():
    with pytest.raises(ShapeError, match="1 coordinates for 2 axes"):
        ndimage.map_coordinates(np.ones((2, 2)), [np.zeros(2)], 1)
    with pytest.raises(ArgumentError, match="order of map_coordinates is 0 or 1, not 3"):
        ndimage.map_coordinates(np.ones(2), [np.zeros(2)], 3)
    with pytest.raises(ArgumentError, match="mode of map_coordinates is one of constant"):
        ndimage.map_coordinates(np.ones(2), [np.zeros(2)], 1, "edge")
