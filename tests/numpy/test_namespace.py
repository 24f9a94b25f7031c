"""The functions of NumPy beyond the standard, against NumPy: at once for all cases, and in one program for each group.

A case is written once, for both namespaces; what NumPy lacks or changes in place has its meaning beside it.
"""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors

INF, NAN = np.inf, np.nan

STACKING = {
    "atleast_1d": lambda xp, x, v: xp.atleast_1d(v[0], x),
    "atleast_2d": lambda xp, x, v: xp.atleast_2d(v[0], v, x),
    "atleast_3d": lambda xp, x, v: xp.atleast_3d(v[0], v, x),
    "vstack": lambda xp, x, v: xp.vstack([x, v]),
    "hstack": lambda xp, x, v: [xp.hstack([x, x]), xp.hstack([v, v[:1]])],
    "stacks of one array": lambda xp, x, v: [xp.vstack(x[None]), xp.hstack(x), xp.column_stack(x), xp.dstack(x)],
    "stacks in a dtype": lambda xp, x, v: [xp.vstack([x, v], dtype="float32"), xp.hstack([v, v], dtype="float32")],
    "dstack": lambda xp, x, v: [xp.dstack([x, x]), xp.dstack([v, v])],
    "column_stack": lambda xp, x, v: xp.column_stack([v, x.T, v]),
    "append": lambda xp, x, v: [xp.append(x, v), xp.append(x, x, axis=1)],
    "block": lambda xp, x, v: [xp.block([[x, x], [x, x]]), xp.block([v, v]), xp.block([x, v[None]][:1])],
    "array_split": lambda xp, x, v: [xp.array_split(x, 3), xp.array_split(x, 2, axis=1), xp.array_split(v, [1, 2])],
    "vsplit": lambda xp, x, v: xp.vsplit(xp.vstack([x, x]), 2),
    "hsplit": lambda xp, x, v: [xp.hsplit(xp.hstack([x, x]), 2), xp.hsplit(xp.hstack([v, v]), 2)],
    "dsplit": lambda xp, x, v: xp.dsplit(xp.dstack([x, x]), 2),
    "flips": lambda xp, x, v: [xp.fliplr(x), xp.flipud(x)],
    "rot90": lambda xp, x, v: [xp.rot90(x, k) for k in range(-1, 4)],
    "rot90 of axes": lambda xp, x, v: xp.rot90(x[None], 1, (2, 0)),
    "rollaxis": lambda xp, x, v: [xp.rollaxis(x[None], 2), xp.rollaxis(x[None], 0, 3), xp.rollaxis(x[None], -1, 1)],
    "kron": lambda xp, x, v: [xp.kron(x, v), xp.kron(v, x), xp.kron(v, v), xp.kron(x, x[:, :1]), xp.kron(v[0], x)],
    "resize": lambda xp, x, v: [xp.resize(x, (3, 5)), xp.resize(v, 7)],
    "joined in a dtype": lambda xp, x, v: [
        xp.concatenate([x, x], 1, dtype="float32"),
        xp.stack([v, v], dtype="complex128"),
    ],
    "pad": lambda xp, x, v: xp.pad(x, [(1, 2), (0, 3)], constant_values=7),
    "edge": lambda xp, x, v: xp.pad(x, ((1, 2), (0, 3)), mode="edge"),
    "symmetric": lambda xp, x, v: xp.pad(x, ((1, 1), (0, 1)), mode="symmetric"),
    "wrap": lambda xp, x, v: xp.pad(x, 1, mode="wrap"),
    "reflect": lambda xp, x, v: xp.pad(xp.vstack([x, x]), ((1, 1), (0, 0)), mode="reflect"),
}
CHOOSING = {
    "select": lambda xp, x, v: xp.select([x > 1, x < -0.5], [x * 2, v + x], 9.0),
    "piecewise": lambda xp, x, v: xp.piecewise(x, [x > 0, x > 1], [lambda y: y * y, 5.0, lambda y: -y]),
    "diag": lambda xp, x, v: [xp.diag(v), xp.diag(v, 2), xp.diag(v, -1), xp.diag(x), xp.diag(x, 1)],
    "diagflat": lambda xp, x, v: xp.diagflat(x[:2, :1], 1),
    "indices": lambda xp, x, v: [xp.indices((3, 2)), *xp.indices((3, 2, 4), sparse=True)],
    "ix_": lambda xp, x, v: x[xp.ix_(xp.asarray([0, 0]), xp.asarray([0]))],
    "unravel_index": lambda xp, x, v: xp.unravel_index(xp.asarray([5, 0, 23]), (2, 3, 4)),
    "ravel_multi_index": lambda xp, x, v: xp.ravel_multi_index((xp.asarray([1, 0]), xp.asarray([2, 1])), (2, 3)),
    "wrapped": lambda xp, x, v: xp.ravel_multi_index((xp.asarray([5, -1]), xp.asarray([7, 1])), (2, 3), mode="wrap"),
    "clipped": lambda xp, x, v: xp.ravel_multi_index((xp.asarray([5, -1]), xp.asarray([7, 1])), (2, 3), mode="clip"),
    "taken and clipped": lambda xp, x, v: [
        xp.take(v, xp.asarray([-1, -7, 1, 99]), mode="clip"),
        xp.take(x, xp.asarray(-1), axis=0, mode="clip"),
    ],
    "diag_indices": lambda xp, x, v: xp.diag_indices(3, 3),
    "triangles": lambda xp, x, v: [*xp.tril_indices(3, 1), *xp.triu_indices(3, 0, 4)],
    "diagonals": lambda xp, x, v: [*xp.diag_indices_from(xp.zeros((3, 3))), *xp.tril_indices_from(x, 1)],
    "triangles of x": lambda xp, x, v: [*xp.triu_indices_from(x)],
    "array_equiv": lambda xp, x, v: [xp.array_equiv(x, v), xp.array_equiv(v, x[:1]), xp.array_equiv(x, x[:, :-1])],
    "array_equal": lambda xp, x, v: [xp.array_equal(x, x), xp.array_equal(x, x[None]), xp.array_equal(v, v + 1)],
}
FLOATS = {
    "frexp": lambda xp, x, v: xp.frexp(x),
    "modf": lambda xp, x, v: xp.modf(x),
    "divmod": lambda xp, x, v: xp.divmod(x, 0.75),
    "rounded": lambda xp, x, v: [xp.rint(x), xp.fix(x), xp.fabs(x)],
    "ldexp": lambda xp, x, v: xp.ldexp(x, xp.asarray([[3], [-70]])[: x.shape[0]] if x.shape[0] < 3 else 5),
    "fmax": lambda xp, x, v: [xp.fmax(x, v), xp.fmin(x, v)],
    "tests": lambda xp, x, v: [xp.isposinf(x), xp.isneginf(x), xp.isreal(x), xp.iscomplex(x)],
    "bits": lambda xp, x, v: [xp.packbits(x > 0, axis=0), xp.packbits(x > 0), xp.packbits(v > 0, bitorder="little")],
    "bytes": lambda xp, x, v: [
        xp.unpackbits(xp.packbits(x > 0, 1), 1, n, o) for n, o in ((None, "big"), (11, "little"), (-5, "big"))
    ],
    "spacing": lambda xp, x, v: xp.spacing(x),
    "float_power": lambda xp, x, v: xp.float_power(x, 2),
}
NANS = {
    **{
        name: lambda xp, x, v, name=name: [getattr(xp, name)(x), getattr(xp, name)(x, axis=1, keepdims=True)]
        for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian")
    },
    "nanvar of samples": lambda xp, x, v: xp.nanvar(x, axis=0, ddof=1),
    "running": lambda xp, x, v: [xp.nancumsum(x, axis=1), xp.nancumprod(x, axis=0)],
    "nanquantile": lambda xp, x, v: [xp.nanquantile(x, 0.3, axis=1), xp.nanquantile(x, xp.asarray([0.1, 0.9]), axis=0)],
    "nanpercentile": lambda xp, x, v: xp.nanpercentile(x, 40, keepdims=True),
    "nanquantile between": lambda xp, x, v: xp.nanquantile(x, 0.4, axis=1, method="hazen"),
}
NUMERICAL = {
    "interp": lambda xp, x, v: xp.interp(x, xp.cumsum(xp.abs(v)), v),
    "interp beyond": lambda xp, x, v: xp.interp(x, xp.cumsum(xp.abs(v)), v, left=-7.0, right=8.0),
    "gradient": lambda xp, x, v: [*xp.gradient(xp.vstack([x, x, v])[:, :1] * 1.0, 0.5, axis=(0,))],
    "trapezoid": lambda xp, x, v: [xp.trapezoid(x), xp.trapezoid(x, v), xp.trapezoid(x, dx=2.0, axis=0)],
    "unwrap": lambda xp, x, v: [xp.unwrap(x * 5), xp.unwrap(x * 9, axis=0, period=4.0), xp.unwrap(x * 5, discont=5.0)],
    "ediff1d": lambda xp, x, v: [xp.ediff1d(x), xp.ediff1d(v, to_begin=v[:1], to_end=xp.asarray([1.0, 2.0]))],
    "convolve": lambda xp, x, v: [xp.convolve(v, xp.asarray([1.0, 2.0, 0.5]), m) for m in ("full", "same", "valid")],
    "correlate": lambda xp, x, v: [xp.correlate(v, xp.asarray([1.0, -2.0]), m) for m in ("full", "same", "valid")],
    "polyval": lambda xp, x, v: [xp.polyval(xp.asarray([1.0, -2.0, 3.0]), x), xp.polyval(xp.zeros(0), v)],
    "grids": lambda xp, x, v: [*xp.meshgrid(v, v[:1], sparse=True), *xp.meshgrid(v, v, copy=False)],
    "between, rounded down": lambda xp, x, v: [
        xp.linspace(-3, 10, 7, dtype="int64"),
        xp.linspace(-7.5, 3.2, 6, dtype="int8"),
        xp.linspace(-1, 1, 5, endpoint=False, dtype="int32"),
        *(xp.arange(*a, dtype="int64") for a in ((-3.5, 3), (0, 5, 0.5), (1.2, 9, 1.7), (9, -2.5, -1.3))),
    ],
    "between": lambda xp, x, v: [*xp.linspace(v, 1.0, 4, retstep=True), xp.linspace(x, v, 3, axis=-1)],
    "like": lambda xp, x, v: [xp.zeros_like(x, shape=(2, 2)), xp.ones_like(v, shape=3), xp.eye(N=2, M=3)],
    "along rows": lambda xp, x, v: xp.apply_along_axis(lambda r: xp.cumsum(r) / (1 + xp.sum(r * r)), 1, x),
    "along columns": lambda xp, x, v: xp.apply_along_axis(lambda r, k: r[:1] * xp.ones((k, 2)), 0, x[None] * 1.0, 3),
    "over axes": lambda xp, x, v: [xp.apply_over_axes(xp.sum, x, (0, 1)), xp.apply_over_axes(xp.cumsum, x, [1])],
    "fromfunction": lambda xp, x, v: xp.fromfunction(lambda i, j, k: i * k + j, (2, 3), k=4),
    "matvec": lambda xp, x, v: [xp.matvec(x, v), xp.vecmat(v, x.T), xp.matvec(x[:, None], x), xp.vecmat(x, x.T)],
    "vander": lambda xp, x, v: [xp.vander(v), xp.vander(v, 3, increasing=True)],
    "scales": lambda xp, x, v: [xp.logspace(0, 2, 4), xp.geomspace(1.0, 1000.0, 4), xp.geomspace(-8.0, -1.0, 4)],
}
EDGES = ([-1.0, 0, 1, 1], [2, 1, 0, 0, -1.0], [1.0])
COUNTING = {
    "ptp": lambda xp, x, v: [xp.ptp(x), xp.ptp(x, axis=1)],
    "average": lambda xp, x, v: [xp.average(x), xp.average(x, axis=0), xp.average(x, axis=1, weights=v * v + 1)],
    "average of all, returned": lambda xp, x, v: [*xp.average(x, returned=True), *xp.average(x, 1, returned=True)],
    "average, returned": lambda xp, x, v: xp.average(x, weights=x * x + 1, returned=True),
    # of one row NumPy's covariance is a number, harp's is a matrix, as for all other sizes
    "cov": lambda xp, x, v: [xp.ravel(xp.cov(x)), xp.cov(x, v), xp.cov(v), xp.ravel(xp.cov(x, ddof=0))],
    "spread about a known mean": lambda xp, x, v: [
        f(x, axis=1, mean=xp.mean(x, axis=1, keepdims=True) + 1, correction=1)
        for f in (xp.var, xp.std, xp.nanvar, xp.nanstd)
    ],
    "angles in degrees": lambda xp, x, v: [xp.angle(x + 1j * x[::-1], deg=True), xp.angle(x)],
    "cov in a dtype": lambda xp, x, v: [
        xp.ravel(xp.cov(x, dtype="float64")),
        xp.ravel(xp.corrcoef(x, dtype="float64")),
    ],
    "cov by weights": lambda xp, x, v: [
        xp.ravel(xp.cov(x, ddof=d, fweights=f, aweights=a))
        for d in (None, 0, 1, 2)
        for f in (None, xp.arange(1, 1 + x.shape[1]))
        for a in (None, xp.linspace(0.5, 2.0, x.shape[1]))
    ],
    "cov of columns": lambda xp, x, v: xp.ravel(xp.cov(x, rowvar=False, bias=True)),
    "corrcoef": lambda xp, x, v: xp.corrcoef(xp.vstack([v, x * 2 - v])),
    "digitize": lambda xp, x, v: [xp.digitize(x, xp.asarray(e), r) for e in ([-1.0, 0, 1], [1, 0.0]) for r in (0, 1)],
    "digitize with NaN": lambda xp, x, v: xp.digitize(xp.asarray([0.5, 2.5]), xp.asarray([1.0, 2.0, np.nan])),
    "polyder of small integers": lambda xp, x, v: [
        xp.polyder(xp.asarray(np.array([100, 2, 1], "int8"))),
        xp.polyder(xp.asarray(np.array([True, True, True]))),
    ],
    "digitize at edges": lambda xp, x, v: [xp.digitize(xp.round(x), xp.asarray(e), r) for e in EDGES for r in (0, 1)],
    "histogram": lambda xp, x, v: [*xp.histogram(x, 4, (-1.0, 2.0)), *xp.histogram(x, xp.asarray([-1.0, 0.5, 1.0]))],
    "histogram2d": lambda xp, x, v: [*xp.histogram2d(v, x[0], [2, [-9.0, 0, 9]], [(-9, 9), None], True, weights=v)],
    "histogramdd": lambda xp, x, v: xp.histogramdd(x.T[:1].T, [3])[0],
    "histogram of all": lambda xp, x, v: [*xp.histogram(v, 3), *xp.histogram(x, 3, (-9, 9), weights=x, density=True)],
}
GROUPS = {
    "stacking": STACKING,
    "choosing": CHOOSING,
    "floats": FLOATS,
    "nans": NANS,
    "numerical": NUMERICAL,
    "counting": COUNTING,
}
SHAPES = [(2, 3), (1, 4), (2, 1), (1, 1), (5, 8)]


def leaves(tree):
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree)]


def numbers(group, shape):
    rng = np.random.default_rng(shape[0])
    x, v = rng.normal(size=shape).round(2), rng.normal(size=shape[1]).round(2)
    if group in ("nans", "floats"):
        x[rng.random(shape) < 0.3] = NAN
        x[rng.random(shape) < 0.1] = INF if group == "floats" else 4.0
    return x, v


def compare(found, expected, name, tolerance=1e-12):
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected), name
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape, (name, a.shape, b.shape)
        assert a.dtype.kind == b.dtype.kind, (name, a.dtype, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
def test_at_once(group):
    for shape in SHAPES:
        x, v = numbers(group, shape)
        for name, case in GROUPS[group].items():
            with np.errstate(all="ignore"):
                expected = case(np, x, v)
            compare(case(hnp, hnp.asarray(x), hnp.asarray(v)), expected, f"{name} {shape}")
            back = hnp.asarray(x[::-1])[::-1]
            compare(case(hnp, back, hnp.asarray(v)), expected, f"{name} {shape}, backwards")


# Where NumPy takes no observations, or no variables, for a number or for nothing; and what nothing has no value of.
NOT_EMPTY = {
    "cov",
    "cov by weights",
    "cov in a dtype",
    "corrcoef",
    "histogram of all",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
def test_of_no_elements(group):
    for shape in [(0, 3), (2, 0), (0, 0)]:
        x, v = np.zeros(shape), np.zeros(shape[1])
        for name, case in GROUPS[group].items():
            try:
                with np.errstate(all="ignore"):
                    expected = case(np, x, v)
            except (ValueError, IndexError, TypeError, ZeroDivisionError):
                continue
            if name not in NOT_EMPTY and (shape[1] or name != "nanquantile between"):
                compare(case(hnp, hnp.asarray(x), hnp.asarray(v)), expected, f"{name} {shape}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_other_dtypes(dtype):
    """float32 stays float32, where NumPy often has float64; and uint8 with a Python float becomes that."""
    x, v = (np.arange(6).reshape(2, 3) * 7 % 5).astype(dtype), np.array([3, 1, 2], dtype)
    for group in ("stacking", "choosing", "nans", "counting"):
        for name, case in GROUPS[group].items():
            found, expected = leaves(case(hnp, hnp.asarray(x), hnp.asarray(v))), leaves(case(np, x, v))
            for a, b in zip(found, expected, strict=True):
                assert a.shape == b.shape, name
                assert a.dtype in (b.dtype, np.float32), (name, a.dtype, b.dtype)
                tolerance = 1e-5 if a.dtype == np.float32 else 1e-12
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
def test_in_a_program(group):
    cases = GROUPS[group]
    compiled = harp.jit(lambda x, v: {name: leaves_of(case(hnp, x, v)) for name, case in cases.items()})
    for shape in [(2, 3), (5, 8)]:
        x, v = numbers(group, shape)
        found = compiled(x, v)
        for name, case in cases.items():
            with np.errstate(all="ignore"):
                compare(found[name], case(np, x, v), f"{name} {shape}")


def leaves_of(tree):
    return [leaf for part in tree for leaf in leaves_of(part)] if isinstance(tree, (list, tuple)) else [tree]


# --- what NumPy has not, or has otherwise


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_taken_apart_and_put_together(dtype):
    tiny, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    x = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.7, tiny, -7 * tiny, most, -most, INF, -INF, NAN], dtype)
    x = np.concatenate([x, np.exp2(np.arange(-160, 120, dtype=dtype)), np.nextafter(np.exp2(np.arange(90.0)), 0)])
    x = x.astype(dtype)
    powers = np.arange(-2200, 2200, 37)
    program = harp.jit(lambda x, n: (hnp.frexp(x), hnp.ldexp(x[:, None], n)))
    with np.errstate(all="ignore"):
        expected = np.frexp(x), np.ldexp(x[:, None], powers)
    for found in (program(x, powers), (hnp.frexp(x), hnp.ldexp(hnp.asarray(x)[:, None], powers))):
        np.testing.assert_array_equal(found[0][0], expected[0][0])
        np.testing.assert_array_equal(np.asarray(found[0][1])[np.isfinite(x)], expected[0][1][np.isfinite(x)])
        np.testing.assert_array_equal(found[1], expected[1])
    assert hnp.frexp(x)[1].dtype == np.int32
    assert hnp.ldexp(1.0, np.uint64(2**64 - 1)) == INF
    with pytest.raises(errors.DTypeError, match="ldexp by this exponent is not defined for float64"):
        hnp.ldexp(1.0, 2.5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64", "bool"])
def test_bits_are_counted(dtype):
    x = np.array([0, 1, 2, 3, 127]).astype(dtype)
    x = np.append(x, [np.iinfo(dtype).max, np.iinfo(dtype).min]).astype(dtype) if dtype != "bool" else x
    np.testing.assert_array_equal(hnp.bitwise_count(x), np.bitwise_count(x), strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("span", [None, (0.0, 1.0), (-0.1, 0.7), (0, 3)])
def test_histograms_have_the_edges_of_numpy(dtype, span):
    for bins in (7, 30, 1000):
        x = (np.random.default_rng(0).integers(0, bins + 1, 3000) / bins * 3).astype(dtype)  # many are on an edge
        counts, edges = np.histogram(x, bins, span)
        np.testing.assert_array_equal(hnp.histogram_bin_edges(x, bins, span), edges, strict=True)
        np.testing.assert_array_equal(hnp.histogram(x, bins, span)[0], counts)
        np.testing.assert_array_equal(harp.jit(lambda x, b=bins: hnp.histogram(x, b, span))(x)[0], counts)
    # those of several axes are not rounded to float32 over a range
    found, expected = (xp.histogram2d(x, x, [30, 7], [span, span]) for xp in (hnp, np))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


def test_bincount():
    x, w = np.array([0, 2, 2, 5]), np.array([0.5, 1.0, 2.0, 4.0])
    for given in ({}, {"minlength": 9}, {"weights": w}):
        np.testing.assert_array_equal(hnp.bincount(x, **given), np.bincount(x, **given), strict=True)
    np.testing.assert_array_equal(hnp.bincount(np.zeros(0, np.int64)), [])
    counted = harp.jit(lambda x, w: (hnp.bincount(x, length=4), hnp.bincount(x, w, length=4)))
    np.testing.assert_array_equal(counted(np.array([0, -1, 3, 9]), w)[0], [1, 0, 0, 1])
    np.testing.assert_array_equal(counted(np.array([0, -1, 3, 9]), w)[1], [0.5, 0, 0, 2.0])
    with pytest.raises(errors.ConcretizationError, match="length=n"):
        harp.jit(hnp.bincount)(x)
    with pytest.raises(errors.ArgumentError, match="from 0 on, not -1"):
        hnp.bincount(np.array([-1]))


def test_put_along_axis_and_fill_diagonal_return_new_arrays():
    x, rng = np.zeros((3, 4)), np.random.default_rng(0)
    for axis, shape in ((1, (3, 2)), (0, (2, 4)), (-1, (1, 2))):
        places = rng.permuted(np.broadcast_to(np.arange(x.shape[axis]), (4, x.shape[axis])), axis=1)[: shape[0], :2]
        places = places.T[: shape[0]].T if axis else np.array([[0, 1, 2, 0], [1, 2, 0, 2]])
        places = places[: shape[0], : shape[1]]
        expected = x.copy()
        np.put_along_axis(expected, np.broadcast_to(places, (3, 2) if axis else shape), 5.0, axis)
        np.testing.assert_array_equal(hnp.put_along_axis(x, places, 5.0, axis), expected)
        np.testing.assert_array_equal(
            harp.jit(lambda x, i, a=axis: hnp.put_along_axis(x, i, 5.0, a))(x, places), expected
        )
    for value in (2.0, np.array([1.0, 2.0, 3.0])):
        expected = x.copy()
        np.fill_diagonal(expected, value)
        np.testing.assert_array_equal(hnp.fill_diagonal(x, value), expected)
    for refused in (lambda: hnp.put_along_axis(x, np.array([[0]]), 1.0, 1, inplace=True),):
        with pytest.raises(errors.ArgumentError, match="arrays do not change"):
            refused()
    slope = harp.grad(lambda v, x: hnp.sum(hnp.put_along_axis(x, np.array([[0], [2], [1]]), v, 1) ** 2))
    np.testing.assert_array_equal(slope(np.array([[1.0], [2.0], [3.0]]), x), [[2.0], [4.0], [6.0]])


def test_nan_is_never_the_position_of_an_extremum():
    x = np.array([[NAN, -INF, -INF], [NAN, NAN, NAN], [1.0, NAN, 2.0]])
    for find in (hnp.nanargmax, harp.jit(hnp.nanargmax, static_argnums=1)):
        np.testing.assert_array_equal(find(x, 1), [1, -1, 2])
    np.testing.assert_array_equal(hnp.nanargmin(-x, 1), [1, -1, 2])
    np.testing.assert_array_equal(hnp.nanargmin(np.array([3, 1])), 1)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_pads_for_all_sizes(mode):
    program = harp.jit(lambda x: hnp.pad(x, (2, 1), mode=mode))
    slope = harp.grad(lambda x: hnp.sum(hnp.pad(x, (2, 1), mode=mode) ** 2))
    for size in (3, 4, 9):
        x = np.arange(1.0, size + 1)
        np.testing.assert_array_equal(program(x), np.pad(x, (2, 1), mode=mode))
        counts = np.bincount(np.pad(np.arange(size), (2, 1), mode=mode), minlength=size)
        np.testing.assert_array_equal(slope(x), 2 * x * counts)
    if mode != "edge":
        with pytest.raises(errors.ShapeError, match=f"mode='{mode}' needs more elements; pad in several steps"):
            hnp.pad(np.ones(1), 2, mode=mode)
    with pytest.raises(errors.ShapeError):
        hnp.pad(np.ones(0), 2, mode=mode)


ERRORS = [
    (lambda: hnp.pad(np.ones(2), 1, mode="other"), errors.ArgumentError, "modes 'constant', .*not 'other'"),
    (lambda: hnp.convolve(np.ones(2), np.ones(0)), errors.ShapeError, "at least one element"),
    (lambda: hnp.convolve(np.ones(2), np.ones((2, 2))), errors.ShapeError, "one axis, not 2"),
    (lambda: hnp.convolve(np.ones(2), np.ones(2), "some"), errors.ArgumentError, "not 'some'"),
    (lambda: hnp.interp(1.0, np.ones(2), np.ones(3)), errors.ShapeError, "as many fp as xp"),
    (lambda: hnp.interp(1.0, np.ones(0), np.ones(0)), errors.ShapeError, "at least one point"),
    (lambda: hnp.gradient(np.ones(1)), errors.ShapeError, "at least two samples"),
    (lambda: hnp.gradient(np.ones((2, 2)), 1.0, 2.0, 3.0), errors.ArgumentError, "3 spacings for 2 axes"),
    (lambda: hnp.gradient(np.ones(3), edge_order=2), errors.ArgumentError, "edge_order=1 only"),
    (lambda: hnp.gradient(np.ones((2, 2)), axis=(0, -2)), errors.AxisError, "named twice"),
    (lambda: hnp.geomspace(-1, 2, 3), errors.ArgumentError, "above 0 or two below, not -1 and 2"),
    (lambda: hnp.geomspace(0.0, 2, 3), errors.ArgumentError, "above 0 or two below"),
    (lambda: hnp.select([], []), errors.ArgumentError, "at least one"),
    (lambda: hnp.piecewise(np.ones(2), [True], []), errors.ArgumentError, "not 0"),
    (lambda: hnp.diag(np.ones((2, 2, 2))), errors.ShapeError, "not 3 axes"),
    (lambda: hnp.unravel_index(np.array([6]), (2, 3)), errors.IndexOutOfRangeError, "array of 6 elements"),
    (lambda: hnp.ravel_multi_index((2, 0), (2, 3)), errors.IndexOutOfRangeError, "index 2 .* axis 0 of size 2"),
    (lambda: hnp.block([[np.ones(1)], np.ones(1)]), errors.ArgumentError, "equally deep"),
    (lambda: hnp.array_split(np.ones(3), 0), errors.ArgumentError, "into 0 sections"),
    (lambda: hnp.average(np.ones((2, 3)), weights=np.ones(3)), errors.ShapeError, "vector along the one axis"),
    (lambda: hnp.histogram(np.ones(3), "auto"), errors.ArgumentError, "rule 'auto'"),
    (lambda: hnp.rot90(np.ones((2, 2)), 1, (0, 0)), errors.AxisError, "two different axes"),
    (lambda: hnp.vsplit(np.ones(2), 2), errors.ShapeError, "at least 2 axes"),
    (lambda: hnp.isposinf(np.ones(1, complex)), errors.DTypeError, "isposinf"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_errors_say_what_to_do(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_convolution_beside_infinities_and_of_changing_sizes():
    program = harp.jit(lambda a, v: hnp.convolve(a, v, "same"))
    for n, m in ((5, 3), (7, 2), (3, 3)):
        a, v = np.arange(1.0, n + 1), np.arange(2.0, m + 2)
        np.testing.assert_allclose(program(a, v), np.convolve(a, v, "same"))
        np.testing.assert_allclose(program(v, a), np.convolve(v, a, "same"))
    np.testing.assert_array_equal(hnp.convolve(np.array([1.0, 2.0]), np.array([INF, 1.0])), [INF, INF, 2.0])


def test_interpolation_is_differentiable_by_everything():
    xp, fp, x = np.array([0.0, 1.0, 3.0]), np.array([1.0, 4.0, 2.0]), np.array([0.25, 2.0, 5.0])
    by_x, by_xp, by_fp = harp.grad(lambda *a: hnp.sum(hnp.interp(*a)), argnums=(0, 1, 2))(x, xp, fp)
    np.testing.assert_allclose(by_x, [3.0, -1.0, 0.0])
    np.testing.assert_allclose(by_fp, [0.75, 0.25 + 0.5, 0.5 + 1.0])
    step = 1e-6
    for k in range(3):
        e = step * (np.arange(3) == k)
        slope = (np.interp(x, xp + e, fp).sum() - np.interp(x, xp - e, fp).sum()) / (2 * step)
        np.testing.assert_allclose(np.asarray(by_xp)[k], slope, atol=1e-6)


def test_a_star_imports_all_names():
    found: dict[str, object] = {}
    exec("from harp.numpy import *", found)
    public = [name for name in dir(hnp) if not name.startswith("_")]
    assert {"sinh", "finfo", "pad", "sort", "sum", "special"} <= {*public} <= {*found}
    assert not hasattr(hnp, "nonsense")
