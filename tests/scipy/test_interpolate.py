"""Against SciPy in float64; derivatives against differences; one program for all sizes."""

import numpy as np
import pytest
import scipy.interpolate as truth

import harp
from harp.errors import ArgumentError, ShapeError
from harp.scipy import interpolate
from harp.test_util import check_grads

ENDS = ["not-a-knot", "clamped", "natural", "periodic", ("natural", (1, 0.5)), ("not-a-knot", (2, -1.0))]


def points(n, *rest, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x, y = np.cumsum(rng.uniform(0.2, 1.5, n)), rng.standard_normal((n, *rest))
    y = y + 1j * rng.standard_normal(y.shape) if dtype[0] == "c" else y
    return x.astype("float32" if dtype in ("float32", "complex64") else "float64"), y.astype(dtype)


def places(x):
    """Between the points, at them, and beyond them."""
    return np.concatenate([np.linspace(x[0] - 1, x[-1] + 1, 23), x, [np.nan]]).astype(x.dtype)


def close(found, expected, dtype="float64"):
    eps = 2e4 * np.finfo(dtype).eps
    assert found.shape == expected.shape and found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps * np.nanmax(np.abs(expected), initial=1))


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_cubic_spline(ends, dtype):
    compiled = harp.jit(lambda x, y, at: [interpolate.CubicSpline(x, y, 0, ends)(at, nu) for nu in (0, 1, 3)])
    for n in (2, 3, 4, 5, 12):
        x, y = points(n, 2, dtype=dtype)
        if ends == "periodic":
            y[-1] = y[0]
        given = [end if isinstance(end, str) else (end[0], np.full(2, end[1])) for end in ends]
        expected = truth.CubicSpline(x, y, 0, ends if isinstance(ends, str) else tuple(given))
        at = places(x)
        for nu, found in zip((0, 1, 3), compiled(x, y, at), strict=True):
            close(found, expected(at, nu), dtype)
        eager = interpolate.CubicSpline(x, y, 0, ends)
        close(eager.c, expected.c, dtype)
    assert compiled.compilations == (3 if isinstance(ends, str) and ends in ("not-a-knot", "periodic") else
                                     2 if "not-a-knot" in ends else 1)  # fmt: skip


KINDS = {
    "cubic": (interpolate.CubicSpline, truth.CubicSpline, {}),
    "pchip": (interpolate.PchipInterpolator, truth.PchipInterpolator, {}),
    "akima": (interpolate.Akima1DInterpolator, truth.Akima1DInterpolator, {}),
    "makima": (interpolate.Akima1DInterpolator, truth.Akima1DInterpolator, {"method": "makima", "extrapolate": True}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_axes_and_beyond(kind):
    own, theirs, options = KINDS[kind]
    compiled = harp.jit(lambda x, y, at: own(x, y, 1, **options)(at))
    for n in (2, 3, 7):
        x, y = points(n, 3, 2, seed=n)
        y[: n // 2] = np.round(y[: n // 2])
        y = np.moveaxis(y, 0, 1)
        at = places(x).reshape(2, -1) if (24 + n) % 2 == 0 else places(x)
        found, expected = own(x, y, 1, **options), theirs(x, y, 1, **options)
        close(compiled(x, y, at), expected(at))
        for beyond in (True, False, "periodic"):
            close(found(at, 1, beyond), expected(at, 1, beyond))
        close(found(x[0]), expected(x[0]))
        close(found.antiderivative(2)(at), expected.antiderivative(2)(at))
        close(found.derivative(5)(x), expected.derivative(5)(x))
        for beyond in (True, "periodic"):
            ends = x[0] + 0.1, x[-1] + 0.3
            close(found.integrate(*ends, beyond), expected.integrate(*ends, beyond))
            close(found.integrate(*ends[::-1], beyond), expected.integrate(*ends[::-1], beyond))
    x = np.arange(6.0)
    y = np.array([0.0, 0, 0, 1, 1, 1])  # flat, where slopes have no sign
    close(own(x, y, **options)(places(x)), theirs(x, y, **options)(places(x)))


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind):
    own, _, options = KINDS[kind]
    x, y = points(6, 2, seed=3)
    at = np.array([x[0] + 0.1, x[2] + 0.05, x[3] + 0.11, x[-1] - 0.07])
    check_grads(harp.jit(lambda x, y, at: own(x, y, **options)(at)), (x, y, at), 2)
    slopes = harp.jit(harp.vmap(harp.grad(lambda at, y: own(x, y, **options)(at)), (0, None)))(at, y[:, 0])
    close(slopes, np.asarray(own(x, y[:, 0], **options)(at, 1)))


@pytest.mark.parametrize("ends", ["clamped", "periodic", ((1, 0.5), "natural")], ids=str)
def test_derivatives_with_other_ends(ends):
    x, y = points(5)
    y = np.append(y[:-1], y[0])

    def values(x, inner, at):
        spline = interpolate.CubicSpline(x, harp.numpy.append(inner, inner[:1]), 0, ends)
        return spline(at), spline.integrate(at[0], at[1])

    check_grads(harp.jit(values), (x, y[:-1], x[:2] + 0.1), 2)


def test_splines_are_trees():
    x, y = points(5)
    spline = interpolate.CubicSpline(x, y, extrapolate=False)
    called = harp.jit(lambda spline, at: (spline(at), spline.derivative()))
    value, slope = called(spline, x)
    close(value, y)
    assert type(slope) is interpolate.PPoly and slope.extrapolate is False
    doubled = harp.tree.map(lambda part: 2 * part, spline)
    assert type(doubled) is interpolate.CubicSpline and np.array_equal(doubled.x, 2 * x)
    many = harp.vmap(lambda y: interpolate.CubicSpline(x, y))(np.stack([y, 2 * y]))
    close(harp.vmap(lambda spline: spline(x[:2]))(many), np.stack([y, 2 * y])[:, :2])
    close(interpolate.CubicHermiteSpline(x, y, 0 * y)(x + 0.1), truth.CubicHermiteSpline(x, y, 0 * y)(x + 0.1))
    c = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    for axis in (0, 1):
        x = np.arange({0: 4, 1: 5}[axis], dtype=float)
        close(interpolate.PPoly(c, x, axis=axis)(x[:2] + 0.5), truth.PPoly(c, x, axis=axis)(x[:2] + 0.5))


def test_points_that_do_not_fit():
    x = np.arange(4.0)
    spline = interpolate.CubicSpline
    for call in (
        lambda: spline(x, x[:3]),
        lambda: spline(x[:1], x[:1]),
        lambda: spline(x[:0], x[:0]),
        lambda: spline(x[None], x),
        lambda: spline(x, 1.0),
        lambda: interpolate.CubicHermiteSpline(x, x, x[None]),
        lambda: interpolate.PPoly(np.ones((2, 4)), x),
        lambda: spline(x, x).integrate(x, x),
    ):
        with pytest.raises(ShapeError):
            call()
    for call, text in (
        (lambda: spline(x[::-1], x), "x of CubicSpline must increase"),
        (lambda: spline(x * 1j, x), "x of CubicSpline has real numbers"),
        (lambda: spline(x, x, bc_type="periodic"), "ends with the point"),
        (lambda: spline(x, x, bc_type="free"), "bc_type of CubicSpline"),
        (lambda: spline(x, x, bc_type=("periodic", "natural")), "bc_type of CubicSpline"),
        (lambda: spline(x, x, bc_type=((3, 0.0), "natural")), "an order, 1 or 2"),
        (lambda: spline(x, x, extrapolate="no"), "extrapolate is True, False or 'periodic'"),
        (lambda: interpolate.PchipInterpolator(x, x * 1j), "interpolate real and imaginary"),
        (lambda: interpolate.Akima1DInterpolator(x, x, method="x"), "'akima' or 'makima'"),
    ):
        with pytest.raises(ArgumentError, match=text):
            call()
    assert np.isnan(harp.jit(lambda x: spline(x, x)(x))(x[::-1])).all()
    assert np.isnan(harp.jit(lambda x: spline(x, x, bc_type="periodic")(x))(x)).all()


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_regular_grids(method):
    def values(points, values, at):
        inside = interpolate.RegularGridInterpolator(points, values, method)
        beyond = interpolate.RegularGridInterpolator(points, values, method, fill_value=None)
        return inside(at), beyond((at[..., 0], at[..., 1])), inside(at, "nearest")

    compiled = harp.jit(values)
    rng = np.random.default_rng(4)
    for m, n, down in ((4, 5, False), (2, 3, True), (6, 2, False)):
        x, y = np.cumsum(rng.uniform(0.2, 2, m)), np.cumsum(rng.uniform(0.2, 2, n))
        x, grid = x[::-1] if down else x, rng.standard_normal((m, n, 3))
        at = np.stack([rng.uniform(x.min() - 0.5, x.max() + 0.5, 40), rng.uniform(y[0] - 0.5, y[-1] + 0.5, 40)], -1)
        at[:2], at[2] = [[x[0], y[0]], [x[-1], y[-1]]], np.nan
        options = {"method": method, "bounds_error": False}
        inside = truth.RegularGridInterpolator((x, y), grid, **options)
        beyond = truth.RegularGridInterpolator((x, y), grid, fill_value=None, **options)
        expected = inside(at), beyond(at), inside(at, "nearest")
        for found in (compiled((x, y), grid, at), values((x, y), grid, at)):
            for one, other in zip(found, expected, strict=True):
                close(one, other)
    assert compiled.compilations == 1
    one = (x.astype("float32"), np.ones(1, "float32")), grid[:, :1].astype("complex64")
    at = np.array([x[0] + 0.1, 1.0], "float32")
    expected = truth.RegularGridInterpolator(*one, method)(at)[0].astype("complex64")
    close(interpolate.RegularGridInterpolator(*one, method)(at), expected, "complex64")
    row = interpolate.RegularGridInterpolator((x,), np.arange(6), method, fill_value=-1)
    close(row(x - 0.1), truth.RegularGridInterpolator((x,), np.arange(6), method, False, -1)(x - 0.1))


def test_derivatives_on_grids():
    rng = np.random.default_rng(5)
    x, y = points(4)[0], points(3, seed=1)[0][::-1].copy()
    grid, at = rng.standard_normal((4, 3, 2)), np.stack([x[[0, 1, 2]] + 0.1, y[[1, 2, 1]] + 0.07], -1)
    found = lambda x, y, grid, at: interpolate.RegularGridInterpolator((x, y), grid)(at)
    check_grads(harp.jit(found), (x, y, grid, at), 2)
    both = interpolate.RegularGridInterpolator((x, y), grid)
    close(harp.jit(lambda both, at: both(at))(both, at), np.asarray(both(at)))
    close(harp.vmap(both)(at), np.asarray(both(at)))


def test_grids_that_do_not_fit():
    x = np.arange(3.0)
    grid = interpolate.RegularGridInterpolator
    for call in (
        lambda: grid((x,), np.ones(4)),
        lambda: grid((x, x), x),
        lambda: grid((), x),
        lambda: grid((x[:0],), x[:0]),
        lambda: grid((x[None],), x),
        lambda: grid((x,), x)(np.ones((2, 2))),
        lambda: grid((x, x), np.ones((3, 3)))((1.0,)),
    ):
        with pytest.raises(ShapeError):
            call()
    for call, text in (
        (lambda: grid((x,), x, "cubic"), "'linear' or 'nearest', not 'cubic'"),
        (lambda: grid((x,), x, bounds_error=True), "leave bounds_error"),
        (lambda: grid((np.array([0.0, 2.0, 1.0]),), x), r"points\[0\] of RegularGridInterpolator must increase"),
    ):
        with pytest.raises(ArgumentError, match=text):
            call()
    for method in ("linear", "nearest"):
        folded = harp.jit(lambda x, method=method: grid((x,), x, method)(x[:1]))(np.array([0.0, 2.0, 1.0]))
        assert np.isnan(folded).all()
