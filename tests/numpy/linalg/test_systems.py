"""Factorisations and systems of equations: NumPy's numbers, derivatives against differences, and JAX's."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends.runtime import lapack
from harp.errors import ArgumentError, LinAlgError, ShapeError

linalg = hnp.linalg
RNG = np.random.default_rng(15)
SIZES = (2, 0, 1, 5, 33)


def general(n, *batch):
    return RNG.normal(size=(*batch, n, n)) + 2 * np.eye(n)


def positive(n, *batch):
    a = RNG.normal(size=(*batch, n, n))
    return a @ np.swapaxes(a, -1, -2) + np.eye(n)


def triangle_solution(a, b, **options):
    """By NumPy, of what is read of `a`."""
    read = np.tril(a) if options.get("lower") else np.triu(a)
    if options.get("unit_diagonal"):
        read = read - read * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    turned = {"T": np.swapaxes(read, -1, -2), "C": np.swapaxes(read, -1, -2).conj()}
    return np.linalg.solve(turned.get(options.get("trans"), read), b)


OPTIONS = [{}, {"lower": True}, {"lower": True, "trans": "T"}, {"unit_diagonal": True}, {"trans": "C", "lower": False}]
TRIANGLES = {
    f"triangle{k}": (
        lambda a, options=options: linalg.solve_triangular(a, a[..., :2] + 1, **options),
        lambda a, options=options: triangle_solution(a, a[..., :2] + 1, **options),
        general,
    )
    for k, options in enumerate(OPTIONS)
}
SAME = {
    "cholesky": (linalg.cholesky, np.linalg.cholesky, positive),
    "cholesky-upper": (
        lambda a: linalg.cholesky(a, upper=True),
        lambda a: np.swapaxes(np.linalg.cholesky(a), -1, -2),
        positive,
    ),
    "solve": (lambda a: linalg.solve(a, a[..., :2] + 1), lambda a: np.linalg.solve(a, a[..., :2] + 1), general),
    "solve-vector": (
        lambda a: linalg.solve(a, hnp.arange(a.shape[-1]) + 1.0),
        lambda a: np.linalg.solve(a, np.arange(a.shape[-1]) + 1.0),
        general,
    ),
    "inv": (linalg.inv, np.linalg.inv, general),
    "det": (linalg.det, np.linalg.det, general),
    "slogdet": (lambda a: tuple(linalg.slogdet(a)), lambda a: tuple(np.linalg.slogdet(a)), general),
    "power": (lambda a: linalg.matrix_power(a, -2), lambda a: np.linalg.matrix_power(a, -2), general),
    **TRIANGLES,
}


def close(ours, theirs, rtol=1e-7, atol=1e-9):
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (ours, theirs)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        npt.assert_allclose(np.asarray(a), b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", SAME)
def test_one_program_for_all_sizes(name):
    ours, theirs, made = SAME[name]
    compiled = harp.jit(ours)
    for n in SIZES:
        if n < 2 and (name.startswith("triangle") or name == "solve"):
            continue  # two columns are read of it
        a = made(n) / max(n, 1) + np.eye(n)
        expected = theirs(a)
        close(compiled(a), expected)
        close(ours(hnp.asarray(a)), expected)
    assert compiled.compilations == 1


def test_columns_and_rows_of_any_number():
    compiled = harp.jit(lambda a, b: (linalg.solve(a, b), linalg.solve_triangular(a, b, lower=True)))
    for n, m in ((3, 2), (1, 1), (0, 0), (0, 2), (4, 0), (5, 33)):
        a, b = np.tril(general(n), -1) / 9 + 2 * np.eye(n), RNG.normal(size=(n, m))
        expected = np.linalg.solve(a, b)
        close(compiled(a, b), (expected, expected))
    assert compiled.compilations == 1


@pytest.mark.parametrize("name", ["cholesky", "triangle1", "solve", "solve-vector", "slogdet"])
def test_batches_with_axes_in_front(name):
    ours, theirs, made = SAME[name]
    compiled = harp.jit(ours)
    for batch in ((2, 3), (1, 1), (0, 2)):
        a = made(4, *batch)
        close(compiled(a), theirs(a))
    assert compiled.compilations <= 2  # a vector broadcasts along an axis of one matrix or more
    a = made(4, 3)
    close(harp.vmap(ours)(a), theirs(a))


@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "det", "slogdet"])
def test_batches_of_matrices_of_any_size(name):
    """One program, also of matrices without rows, and where sizes are declared."""
    ours, theirs = getattr(linalg, name), getattr(np.linalg, name)
    columns = [harp.f64["b", "n", "m"]] if name == "solve" else []
    harp.trace(lambda *arrays: ours(*arrays), harp.f64["b", "n", "n"], *columns)
    compiled = harp.jit(lambda *arrays: ours(*arrays))
    for n in (3, 0, 2):
        a = RNG.normal(size=(2, n, n)) / 9 + 2 * np.eye(n)
        arrays = [a @ np.swapaxes(a, 1, 2), *(RNG.normal(size=(2, n, 2)) for _ in columns)]
        close(compiled(*arrays), theirs(*arrays))
    assert compiled.compilations == 1


def test_matrices_and_columns_broadcast():
    a, b = general(3, 2, 1), RNG.normal(size=(4, 3, 2))
    close(linalg.solve(a, b), np.linalg.solve(a, b))
    close(linalg.solve(a, b[0, :, 0]), np.linalg.solve(a, b[0, :, 0]))
    close(harp.jit(linalg.solve)(a[0, 0], b), np.linalg.solve(a[0, 0], b))
    low = np.tril(a)
    close(harp.jit(lambda a, b: linalg.solve_triangular(a, b, lower=True))(low, b), np.linalg.solve(low, b))


def test_pivots():
    """Zeros on the diagonal, rows in any order, and rows of any magnitude."""
    compiled = harp.jit(lambda a, b: (linalg.solve(a, b), linalg.det(a), *linalg.slogdet(a)))
    for n in (2, 5, 20):
        permutation = np.eye(n)[RNG.permutation(n)]
        scaled = general(n) * 10.0 ** RNG.integers(-8, 8, size=(n, 1))
        for a in (permutation, np.eye(n)[::-1].copy(), permutation @ np.triu(general(n)), scaled):
            x, *others = compiled(a, a @ np.arange(1.0, n + 1))
            npt.assert_allclose(x, np.arange(1.0, n + 1), rtol=1e-6)
            for found, expected in zip(others, (np.linalg.det(a), *np.linalg.slogdet(a)), strict=True):
                npt.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "?", "c16", "c8"])
def test_dtypes(dtype):
    a = (np.array([[4, 1, 0], [1, 5, 2], [0, 2, 3]]) * (1 + 0.5j if dtype[0] == "c" else 1)).astype(dtype)
    if dtype == "?":
        a = np.eye(3, dtype=bool)
    wide = a.dtype if a.dtype.kind in "fc" else np.dtype("f8")
    computed = a.astype("f4" if dtype == "f2" else wide)
    tolerance = {"f4": 1e-5, "f2": 4e-3, "c8": 1e-5}.get(dtype, 1e-12)

    def compute(a):
        conjugated = linalg.solve_triangular(a, a[0], trans=2)
        return (linalg.inv(a), linalg.det(a), *linalg.slogdet(a), linalg.solve(a, a[0]), conjugated)

    expected = (
        np.linalg.inv(computed),
        np.linalg.det(computed),
        *np.linalg.slogdet(computed),
        np.linalg.solve(computed, computed[0]),
        triangle_solution(computed, computed[0], trans="C"),
    )
    for f in (lambda x: x, harp.jit):
        for found, by_numpy in zip(f(compute)(a), expected, strict=True):
            npt.assert_allclose(found, by_numpy, rtol=tolerance, atol=tolerance)
            assert found.dtype == (wide if by_numpy.dtype == computed.dtype else np.zeros(0, wide).real.dtype)
        close(f(linalg.cholesky)(a), np.linalg.cholesky(computed).astype(wide), tolerance, tolerance)


def test_matrices_that_are_singular():
    """In programs results are not finite, of these matrices only; arrays that have numbers raise, as in NumPy."""
    zero, low = np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 4.0]])
    every = np.stack([zero, low, np.eye(2)])
    compute = lambda a: (linalg.inv(a), linalg.solve(a, hnp.ones(2)), linalg.det(a), *linalg.slogdet(a))
    inverse, solution, *others = harp.jit(compute)(every)
    assert not np.isfinite(np.asarray(inverse)[:2]).any()
    assert not np.isfinite(np.asarray(solution)[:2]).any()
    npt.assert_array_equal(inverse[2], np.eye(2))
    npt.assert_array_equal(solution[2], np.ones(2))
    for found in (others, [linalg.det(every), *linalg.slogdet(every)]):
        for value, expected in zip(found, ([0, 0, 1], [0, 0, 1], [-np.inf, -np.inf, 0]), strict=True):
            npt.assert_array_equal(value, expected)
    triangular = harp.jit(lambda a: linalg.solve_triangular(a, hnp.ones(2), lower=True))
    assert not np.isfinite(np.asarray(triangular(TRIANGLE))).any()


TRIANGLE = np.array([[0.0, 5.0], [1.0, 1.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
REFUSED = {
    "inv": (lambda a: linalg.inv(a), np.array([[1.0, 2.0], [2.0, 4.0]]), "singular"),
    "matrix_power": (lambda a: linalg.matrix_power(a, -2), np.zeros((2, 2)), "singular"),
    "solve": (lambda a: linalg.solve(a, hnp.ones(a.shape[-1])), np.array([[1.0, 0.0], [0.0, 0.0]]), "singular"),
    "solve-matrix": (lambda a: linalg.solve(a, hnp.ones((a.shape[-1], 3))), np.zeros((2, 2), np.complex64), "singular"),
    "triangle": (lambda a: linalg.solve_triangular(a, hnp.ones(a.shape[-1]), lower=True), TRIANGLE, "singular"),
    "large": (lambda a: linalg.inv(a), np.ones((20, 20), np.float32), "singular"),
    "cholesky": (lambda a: linalg.cholesky(a), INDEFINITE, "not positive definite"),
    "cholesky-large": (lambda a: linalg.cholesky(a), -np.eye(20), "not positive definite"),
    "cholesky-upper": (lambda a: linalg.cholesky(a, upper=True), INDEFINITE, "not positive definite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses(name):
    f, a, text = REFUSED[name]
    good = np.eye(len(a), dtype=a.dtype)
    programs = harp.jit(f), harp.jit(f, check=True)
    for given in (a, np.stack([good, a])):
        for g in (f, programs[1]):
            with pytest.raises(LinAlgError, match=text) as caught:
                g(given)
            assert isinstance(caught.value, np.linalg.LinAlgError)
            assert f"{__file__}:" in str(caught.value)
        assert not np.isfinite(np.asarray(programs[0](given))).all()
    assert "at [1]" in str(caught.value)
    for g in (f, *programs):
        assert np.isfinite(np.asarray(g(good))).all()
        assert g(np.zeros((0, *a.shape), a.dtype)).shape[0] == 0
        assert 0 in g(np.zeros((3, 0, 0), a.dtype)).shape


def test_what_numpy_refuses_in_loops_and_derivatives():
    """Programs end with the step and the line; a solution that is not used is none that is missed."""
    every = np.stack([np.eye(2), INDEFINITE])
    loop = harp.jit(lambda xs: harp.scan(lambda c, x: (c + hnp.sum(linalg.cholesky(x)), None), 0.0, xs)[0], check=True)
    with pytest.raises(LinAlgError, match=r"not positive definite.*, in step 1 of a loop"):
        loop(every)
    with pytest.raises(LinAlgError, match="singular"):
        harp.jit(harp.grad(lambda a: hnp.sum(linalg.inv(a))), check=True)(np.zeros((2, 2)))
    chosen = harp.jit(lambda a: hnp.where(linalg.det(a) == 0, 0.0, linalg.inv(a)[0, 0]), check=True)
    assert chosen(np.zeros((2, 2))) == 0
    with harp.debug.nans():
        for f in (linalg.cholesky, harp.jit(linalg.cholesky)):
            with pytest.raises(LinAlgError, match="not positive definite"):
                f(INDEFINITE)
    assert np.isnan(np.asarray(harp.grad(lambda a: hnp.sum(linalg.cholesky(a)))(INDEFINITE))).all()


def test_iterations_that_do_not_end(monkeypatch):
    def fails(*args, **kwargs):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(lapack, "is_there", lambda: False)
    for name in ("eig", "eigvals", "eigh", "eigvalsh", "svd", "svdvals"):
        monkeypatch.setattr(np.linalg, name, fails)
    for name in ("eig", "eigvals", "eigh", "eigvalsh", "svd", "svdvals"):
        f = getattr(linalg, name)
        for g in (f, harp.jit(f, check=True)):
            with pytest.raises(LinAlgError, match="that iterations have found"):
                g(np.eye(3))


def test_factors_of_what_is_not_finite_are_not_refused():
    with pytest.raises(LinAlgError, match="not positive definite"):
        linalg.cholesky(np.array([[0.0, np.nan], [0.0, 1.0]]))  # the half that is not read
    a = np.array([[np.nan, 0.0], [0.0, 1.0]])
    for f in (linalg.inv, linalg.cholesky, linalg.eigvals, linalg.eigvalsh, linalg.svdvals):
        assert np.isnan(np.asarray(f(a))).any()


def test_matrices_that_are_not_positive_definite():
    bad = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    semidefinite = np.diag([1.0, 0.0, 1.0])
    found = np.asarray(harp.jit(linalg.cholesky)(np.stack([bad, np.eye(3) * 4, semidefinite, bad * np.nan])))
    assert np.isnan(found[[0, 2, 3]]).all()
    npt.assert_array_equal(found[1], np.eye(3) * 2)


def test_only_one_triangle_is_read():
    a, noise, ones = positive(6), np.triu(np.full((6, 6), np.nan), 1), np.ones(6)
    for f in (lambda x: x, harp.jit):
        close(f(linalg.cholesky)(a + noise), np.linalg.cholesky(a))
        close(f(lambda a: linalg.cholesky(a, upper=True))(a + noise.T), np.linalg.cholesky(a).T)
        low = np.tril(a)
        close(f(lambda a: linalg.solve_triangular(a, ones, lower=True))(low + noise), np.linalg.solve(low, ones))
        unit = np.tril(a, -1) / 50
        found = f(lambda a: linalg.solve_triangular(a, ones, lower=True, unit_diagonal=True))(
            unit + np.diag(np.full(6, np.nan)) + noise
        )
        close(found, np.linalg.solve(unit + np.eye(6), ones))


W, V = RNG.normal(size=(4, 4)), RNG.normal(size=4)
SCALARS = {
    "cholesky": lambda a: hnp.sum(W * linalg.cholesky(a @ a.T + hnp.eye(4))),
    "cholesky-upper": lambda a: hnp.sum(W * linalg.cholesky(a @ a.T + hnp.eye(4), upper=True)),
    "triangle": lambda a: hnp.sum(W * linalg.solve_triangular(a, W * hnp.sum(a), lower=True)),
    "triangle-unit": lambda a: V @ linalg.solve_triangular(a, a[0] ** 2, trans="T", unit_diagonal=True),
    "solve": lambda a: hnp.sum(W * linalg.solve(a, W * hnp.sum(a**2))),
    "solve-vector": lambda a: V @ linalg.solve(a, a[0] ** 2),
    "solve-broadcast": lambda a: hnp.sum(V * linalg.solve(a, hnp.stack([a, W]))[..., 0]),
    "inv": lambda a: hnp.sum(W * linalg.inv(a)),
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a).logabsdet,
    "power": lambda a: hnp.sum(W * linalg.matrix_power(a, -2)),
}


def slope(function, x, step=1e-6):
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        result[index] = (float(function(moved[0])) - float(function(moved[1]))) / (2 * step)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALARS)
def test_derivatives(name):
    f = SCALARS[name]
    a, direction = RNG.normal(size=(4, 4)) + 3 * np.eye(4), RNG.normal(size=(4, 4))
    gradient = harp.jit(harp.grad(f))
    expected = slope(harp.jit(f), a)
    npt.assert_allclose(gradient(a), expected, rtol=1e-5, atol=1e-6)
    # The others without a compiler: the graphs are those that it would get.
    tangent = harp.jvp(f, (a,), (direction,))[1]
    npt.assert_allclose(tangent, np.sum(expected * direction), rtol=1e-5, atol=1e-6)
    second = harp.grad(lambda a: hnp.sum(harp.grad(f)(a) * direction))(a)
    npt.assert_allclose(second, slope(lambda x: np.sum(np.asarray(gradient(x)) * direction), a), rtol=1e-4, atol=1e-5)
    forward = harp.jvp(harp.grad(f), (a,), (direction,))[1]
    npt.assert_allclose(forward, second, rtol=1e-7, atol=1e-9)
    some = np.stack([a, a.T, a + 1])
    every = np.stack([np.asarray(gradient(each)) for each in some])
    npt.assert_allclose(harp.vmap(harp.grad(f))(some), every, rtol=1e-9, atol=1e-11)


C = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
COMPLEX = {
    "inv": lambda a: hnp.sum(hnp.real(C * linalg.inv(a * (1 + 0.5j) + C))),
    "det": lambda a: hnp.imag(linalg.det(a + C)),
    "slogdet": lambda a: hnp.real(linalg.slogdet(a + C).sign) + linalg.slogdet(a + C).logabsdet,
    "solve": lambda a: hnp.real(hnp.sum(C * linalg.solve(a + C, a * C))),
    "triangle": lambda a: hnp.real(hnp.sum(C * linalg.solve_triangular(a + C, a * C, trans=2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLEX)
def test_derivatives_through_complex_matrices(name):
    f, a = COMPLEX[name], RNG.normal(size=(3, 3)) + 2 * np.eye(3)
    npt.assert_allclose(harp.jit(harp.grad(f))(a), slope(harp.jit(f), a), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_gradients_at_all_sizes():
    f = harp.jit(harp.grad(lambda a: hnp.sum(linalg.cholesky(a @ a.T + hnp.eye(a.shape[0]))) + linalg.slogdet(a)[1]))
    for n in (3, 0, 1, 7):
        a = general(n)
        theirs = lambda a: np.sum(np.linalg.cholesky(a @ a.T + np.eye(len(a)))) + np.linalg.slogdet(a)[1]
        npt.assert_allclose(f(a), slope(theirs, a), rtol=1e-5, atol=1e-6)
    assert f.compilations == 1


@pytest.mark.slow
def test_a_gradient_costs_a_few_solutions():
    """And no loop of elimination run backward: its count of operations grows as that of the function."""
    a, b = general(64), RNG.normal(size=64)
    total = lambda f: harp.jit(f).lower(a, b).cost().at().operations
    of_function = total(lambda a, b: hnp.sum(linalg.solve(a, b)))
    assert total(harp.grad(lambda a, b: hnp.sum(linalg.solve(a, b)))) < 1.5 * of_function


def test_the_gradient_of_cholesky_is_symmetric():
    gradient = np.asarray(harp.grad(lambda a: hnp.sum(W * linalg.cholesky(a)))(positive(4)))
    npt.assert_allclose(gradient, gradient.T, rtol=1e-12)
    assert np.abs(gradient).min() > 0


def test_the_same_as_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp, triangular = jax.numpy, jax.scipy.linalg.solve_triangular
    a = positive(6)
    for ours, theirs in (
        (lambda a: hnp.sum(hnp.sin(linalg.cholesky(a))), lambda a: jnp.sum(jnp.sin(jnp.linalg.cholesky(a)))),
        (lambda a: linalg.slogdet(a)[1], lambda a: jnp.linalg.slogdet(a)[1]),
        (linalg.det, jnp.linalg.det),
        (lambda a: hnp.sum(linalg.inv(a) ** 2), lambda a: jnp.sum(jnp.linalg.inv(a) ** 2)),
        (lambda a: hnp.sum(linalg.solve(a, a[0] ** 2)), lambda a: jnp.sum(jnp.linalg.solve(a, a[0] ** 2))),
        (
            lambda a: hnp.sum(linalg.solve_triangular(a, a[0] ** 2, trans=1)),
            lambda a: jnp.sum(triangular(a, a[0] ** 2, trans=1)),
        ),
    ):
        npt.assert_allclose(harp.jit(ours)(a), theirs(a), rtol=1e-9)
        npt.assert_allclose(harp.jit(harp.grad(ours))(a), jax.grad(theirs)(a), rtol=1e-7, atol=1e-9)
        hessians = harp.jit(harp.hessian(ours))(a), jax.hessian(theirs)(a)
        npt.assert_allclose(*hessians, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_hessians_of_triangular_systems():
    """Its loops ask whether two positions are equal, one side of which is known."""
    a = positive(6)

    def f(a):
        return hnp.sum(linalg.solve_triangular(a, a[0] ** 2, trans=1))

    found, gradient, step = np.asarray(harp.jit(harp.hessian(f))(a)), harp.jit(harp.grad(f)), 1e-5
    for i, j in ((0, 0), (3, 2), (2, 3), (5, 1)):
        e = np.zeros_like(a)
        e[i, j] = step
        difference = (np.asarray(gradient(a + e)) - np.asarray(gradient(a - e))) / (2 * step)
        npt.assert_allclose(found[:, :, i, j], difference, rtol=1e-6, atol=1e-7)


def test_a_row_of_a_batch_has_the_same_bits():
    compiled = harp.jit(lambda a: (linalg.inv(a), linalg.cholesky(a)))
    a = positive(5, 9)
    for all_of_them, some in zip(compiled(a), compiled(a[4:6]), strict=True):
        npt.assert_array_equal(np.asarray(all_of_them)[4:6], some)


def test_errors():
    x = np.ones((2, 3))
    for call, error, match in (
        (lambda: linalg.inv(x), ShapeError, "inv takes square matrices: axes 0 and 1 of a: 2 is not 3"),
        (lambda: harp.jit(linalg.det)(x), ShapeError, r"det takes square matrices.*a\.shape\[0\] = 2"),
        (lambda: linalg.cholesky(np.ones(3)), ShapeError, "argument a of cholesky has 1 axis; it is a matrix"),
        (lambda: linalg.solve(np.eye(3), np.ones(2)), ShapeError, "solve: the size of a and axis 0 of b: 3 is not 2"),
        (lambda: linalg.solve(np.eye(3), 1.0), ShapeError, "argument b of solve has no axes"),
        (
            lambda: linalg.solve(np.ones((2, 3, 3)), np.ones((4, 3, 1))),
            ShapeError,
            "do not broadcast: axis -1 of those in front",
        ),
        (lambda: linalg.solve_triangular(np.eye(2), np.ones(2), trans="X"), ArgumentError, "'N', 'T' or 'C', not 'X'"),
        (lambda: linalg.slogdet("a"), ArgumentError, "argument a of slogdet"),
    ):
        with pytest.raises(error, match=match):
            call()


def test_a_right_side_has_the_same_bits_in_every_batch():
    """Also with one matrix for all: as columns of one solution, which takes a tenth of the time, it would not."""
    a, right = RNG.normal(size=(17, 17)) + 17 * np.eye(17), RNG.normal(size=(37, 17))
    solve = harp.jit(harp.vmap(linalg.solve, in_axes=(None, 0)))
    for rows in (1, 2, 3, 13):
        npt.assert_array_equal(solve(a, right[:rows]), np.asarray(solve(a, right))[:rows])
