"""Every public function of `harp.numpy` is in a table of checked gradients, or in a list of those that have none.

First and second derivatives against central differences in float64, at once; in programs the rules are the same, and
`tests/property/test_gradients.py` compiles random chains of them.
"""

from __future__ import annotations

import pathlib
import re
import types
from functools import partial

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.numpy.borders import MODES

RNG = np.random.default_rng(7)
X = RNG.uniform(0.2, 0.8, (3, 4))
Y = RNG.uniform(0.3, 0.9, (3, 4))
HOLED = np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, X)
DISTINCT = np.diag([1.0, 3.0, 7.0])
PLACES = np.array([[0, 2, 1, 0], [3, 3, 1, 2], [1, 0, 2, 3]])
BY_AXIS = ("sum", "prod", "mean", "var", "std", "max", "min", "median", "logsumexp", "ptp", "softmax", "log_softmax")
WITHOUT_NAN = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian")
UNARY = (
    *("abs", "absolute", "acos", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "deg2rad", "exp", "exp2"),
    *("expm1", "fabs", "log", "log10", "log1p", "log2", "nan_to_num", "negative", "positive", "rad2deg", "reciprocal"),
    *("relu", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "softplus", "sqrt", "square", "tan", "tanh"),
    *("real", "conj", "flatten", "ravel", "transpose", "matrix_transpose", "flip", "fliplr", "flipud", "squeeze"),
    *("trace", "diag", "tril", "triu", "rot90", "diagonal", "unstack", "atleast_1d", "atleast_2d", "atleast_3d"),
    *("asarray", "array", "sort", "diff", "ediff1d", "unwrap", "trapezoid", "gradient", "cov", "corrcoef", "average"),
    *("cumsum", "cumprod", "cummax", "cummin", "nancumsum", "nancumprod"),
    "i0",
)
BINARY = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "pow", "float_power", "hypot"),
    *("atan2", "logaddexp", "logaddexp2", "copysign", "fmod", "remainder", "vdot", "inner", "kron", "outer"),
    *("append", "vecdot", "matvec"),
)


def whole_and_rows(name):
    function = getattr(hnp, name)
    return lambda x: [function(x), function(x, axis=1)]


TRANSFORMS = [name for name in hnp.fft.__all__ if not name.endswith("freq")]


def transformed(name, x):
    z = getattr(hnp.fft, name)(x)
    return [hnp.real(z), hnp.imag(z)]


CASES = {
    **{name: (getattr(hnp, name), X) for name in UNARY},
    **{name: (getattr(hnp, name), X, Y) for name in BINARY},
    **{name: (whole_and_rows(name), X) for name in BY_AXIS},
    **{name: (whole_and_rows(name), HOLED) for name in WITHOUT_NAN},
    "acosh": (hnp.acosh, 1.3 + X),
    "amax": (hnp.amax, X),
    "amin": (hnp.amin, X),
    "apply_along_axis": (lambda x: hnp.apply_along_axis(lambda r: r[:2] * hnp.sum(r * r), 0, x), X),
    "apply_over_axes": (lambda x: hnp.apply_over_axes(hnp.std, x, (0, 1)), X),
    "array_split": (lambda x: hnp.array_split(x, 3, 1), X),
    "astype": (lambda x: hnp.astype(x, hnp.float64), X),
    "bincount": (lambda w: hnp.bincount(np.array([0, 2, 2, 1]), w) ** 2, X[0]),
    "block": (lambda x, y: hnp.block([[x, y], [y, x]]), X, Y),
    "broadcast_arrays": (hnp.broadcast_arrays, X, Y[0]),
    "broadcast_to": (lambda x: hnp.broadcast_to(x, (2, 3, 4)), X),
    "choose": (lambda x, y: hnp.choose(PLACES % 3, [x, y, x * y]), X, Y),
    "clip": (lambda x: hnp.clip(x, 0.3, 0.6), X),
    "column_stack": (lambda x, y: hnp.column_stack([x, y]), X, Y),
    "compress": (lambda x: hnp.compress(np.array([1, 0, 1, 1]), x, 1, size=2), X),
    "concatenate": (lambda x, y: hnp.concatenate([x, y], 1), X, Y),
    "convolve": (hnp.convolve, X[0], Y[0, :3]),
    "correlate": (lambda x, y: hnp.correlate(x, y, "full"), X[0], Y[0, :3]),
    "cumulative_prod": (lambda x: hnp.cumulative_prod(x, axis=1, include_initial=True), X),
    "cumulative_sum": (lambda x: hnp.cumulative_sum(x, axis=0), X),
    "diagflat": (lambda x: hnp.diagflat(x, -1), X),
    "divmod": (lambda x, y: hnp.divmod(x, y)[1], X, Y),
    "dot": (lambda x, y: hnp.dot(x, y.T), X, Y),
    "dsplit": (lambda x: hnp.dsplit(x[None], 2), X),
    "dstack": (lambda x, y: hnp.dstack([x, y]), X, Y),
    "cross": (lambda x, y: [hnp.cross(x, y, axis=0), hnp.cross(x[:, :2], y[:, :3])], X, Y),
    "delete": (lambda x: [hnp.delete(x, [0, 2], 1), hnp.delete(x, 1)], X),
    "einsum": (lambda x, y: hnp.einsum("ij,kj,ij->ik", x, y, x), X, Y),
    "expand_dims": (lambda x: hnp.expand_dims(x, 1), X),
    "extract": (lambda x: hnp.extract(PLACES > 1, x, size=5), X),
    "fill_diagonal": (lambda x, v: hnp.fill_diagonal(x, v), X[:, :3], Y[0, :3]),
    "frexp": (lambda x: hnp.frexp(x)[0], X),
    "full": (lambda v: hnp.full((2, 2), v), X[0, 0]),
    "full_like": (lambda v: hnp.full_like(X, v), X[0, 0]),
    "geomspace": (lambda a, b: hnp.geomspace(a, b, 4), X[0, 0], Y[0, 0]),
    "heaviside": (lambda x, h: hnp.heaviside(hnp.where(PLACES > 1, 0.0, x), h), X, Y),
    "frompyfunc": (lambda x, y: hnp.frompyfunc(lambda a, b: a * hnp.sin(b), 2, 1)(x, y), X, Y),
    "histogram": (lambda w: hnp.histogram(X, 3, (0, 1), weights=w)[0] ** 2, Y),
    "histogram2d": (lambda w: hnp.histogram2d(X[0], Y[0], 2, [(0, 1), (0, 1)], weights=w)[0] ** 2, Y[0]),
    "histogramdd": (lambda w: hnp.histogramdd(X, 2, [(0, 1)] * 4, weights=w)[0] ** 2, Y[:, 0]),
    "histogram_bin_edges": (lambda x: hnp.histogram_bin_edges(x, 3), X),
    "hsplit": (lambda x: hnp.hsplit(x, 2), X),
    "hstack": (lambda x, y: hnp.hstack([x, y]), X, Y),
    "interp": (hnp.interp, X, np.array([0.0, 0.35, 1.0]), Y[0, :3]),
    "ldexp": (lambda x: hnp.ldexp(x, PLACES), X),
    "linspace": (lambda a, b: hnp.linspace(a, b, 5), X[0, 0], Y[0, 0]),
    "logspace": (lambda a, b: hnp.logspace(a, b, 5), X[0, 0], Y[0, 0]),
    "insert": (lambda x, y: [hnp.insert(x, [0, 2], y[:, :2], 1), hnp.insert(x, 1, y[0], 0)], X, Y),
    "kaiser": (lambda b: hnp.kaiser(5, b), np.array(2.0)),
    "matmul": (lambda x, y: hnp.matmul(x, y.T), X, Y),
    "meshgrid": (lambda x, y: hnp.meshgrid(x, y), X[0], Y[0]),
    "modf": (lambda x: hnp.modf(x)[0], 5 * X),
    "moveaxis": (lambda x: hnp.moveaxis(x, 0, 1), X),
    "nanpercentile": (lambda x: hnp.nanpercentile(x, 40, 1), HOLED),
    "nanquantile": (lambda x, q: hnp.nanquantile(x, q, 1), HOLED, np.array([0.15, 0.83])),
    "nextafter": (lambda x: hnp.nextafter(x, 1.0) ** 2, X),
    "pad": (lambda x: [hnp.pad(x, 2, mode=mode) for mode in MODES], X),
    "percentile": (lambda x: hnp.percentile(x, 40, 1), X),
    "permute_dims": (lambda x: hnp.permute_dims(x, (1, 0)), X),
    "piecewise": (lambda x: hnp.piecewise(x, [x > 0.5], [lambda y: y**3, lambda y: y**2]), X),
    "partition": (lambda x: hnp.partition(x, 1), X),
    "place": (lambda x, v: hnp.place(x, PLACES > 1, v), X, Y[0, :3]),
    "poly": (hnp.poly, X[0]),
    **{name: (getattr(hnp, name), X[0], Y[1, :2]) for name in ("polyadd", "polydiv", "polymul", "polysub")},
    "polyder": (hnp.polyder, X[0]),
    "polyfit": (lambda x, y: hnp.polyfit(x, y, 2), X[0], Y[0]),
    "polyint": (lambda x: hnp.polyint(x, 2, x[:2]), X[0]),
    "polyval": (hnp.polyval, Y[0], X),
    "put": (lambda x, v: hnp.put(x, np.array([3, 0, 7]), v), X, Y[0]),
    "put_along_axis": (lambda x, v: hnp.put_along_axis(x, PLACES[:, :1], v, 1), X, Y[:, :1]),
    "quantile": (lambda x, q: hnp.quantile(x, q, 1), X, np.array([0.15, 0.83])),
    "repeat": (lambda x: hnp.repeat(x, [2, 0, 1], 0), X),
    "copy": (lambda x: hnp.copy(x) * 2, X),
    "reshape": (lambda x: hnp.reshape(x, (2, 6)), X),
    "roll": (lambda x: hnp.roll(x, 2, 1), X),
    "rollaxis": (lambda x: hnp.rollaxis(x, 1), X),
    "resize": (lambda x: hnp.resize(x, (2 * x.shape[0] + 1, x.shape[1])), X),
    "roots": (lambda x: hnp.abs(hnp.roots(x + np.array([1.0, -5, -3, 4]))), X[0]),
    "select": (lambda x, y: hnp.select([PLACES > 2, PLACES > 0], [x, y], x * y), X, Y),
    "split": (lambda x: hnp.split(x, 2, 1), X),
    "stack": (lambda x, y: hnp.stack([x, y], 1), X, Y),
    "swapaxes": (lambda x: hnp.swapaxes(x, 0, 1), X),
    "take": (lambda x: hnp.take(x, PLACES[0], 1), X),
    "sort_complex": (lambda x: hnp.real(hnp.sort_complex(x)), X),
    "take_along_axis": (lambda x: hnp.take_along_axis(x, PLACES, 1), X),
    "tensordot": (lambda x, y: hnp.tensordot(x, y, ((1,), (1,))), X, Y),
    "tile": (lambda x: hnp.tile(x, (2, 2)), X),
    "top_k": (lambda x: hnp.top_k(x, 2)[0], X),
    "vander": (lambda x: hnp.vander(x, 4), X[0]),
    "vsplit": (lambda x: hnp.vsplit(x, 3), X),
    "vstack": (lambda x, y: hnp.vstack([x, y]), X, Y),
    "where": (lambda x, y: hnp.where(PLACES > 1, x, y), X, Y),
    **{f"special.{name}": (getattr(hnp.special, name), X) for name in ("erf", "erfc", "erfinv", "expit", "logit")},
    **{f"special.{name}": (getattr(hnp.special, name), 3 * X) for name in ("gammaln", "digamma")},
    **{f"special.{name}": (getattr(hnp.special, name), X, Y) for name in ("betaln", "xlogy", "xlog1py")},
    **{f"fft.{name}": (partial(transformed, name), X) for name in TRANSFORMS},
    "linalg.cross": (lambda x, y: hnp.linalg.cross(x[:, :3], y[:, :3]), X, Y),
    "linalg.diagonal": (hnp.linalg.diagonal, X),
    "linalg.matmul": (lambda x, y: hnp.linalg.matmul(x.T, y), X, Y),
    "linalg.matrix_norm": (lambda x: [hnp.linalg.matrix_norm(x, ord=o) for o in ("fro", 1, -1, np.inf)], X),
    "linalg.matrix_power": (lambda x: hnp.linalg.matrix_power(x[:, :3], 3), X),
    "linalg.matrix_transpose": (hnp.linalg.matrix_transpose, X),
    "linalg.outer": (lambda x, y: hnp.linalg.outer(x[0], y[1]), X, Y),
    "linalg.tensordot": (lambda x, y: hnp.linalg.tensordot(x, y.T, 1), X, Y),
    "linalg.trace": (hnp.linalg.trace, X),
    "linalg.vecdot": (hnp.linalg.vecdot, X, Y),
    "linalg.norm": (lambda x: [hnp.linalg.norm(x, ord=o) for o in (None, 1, np.inf)] + [hnp.linalg.norm(x, axis=1)], X),
    "linalg.vector_norm": (lambda x: [hnp.linalg.vector_norm(x, ord=o, axis=1) for o in (2, 1, 3, 0.5, -np.inf)], X),
    "linalg.cholesky": (lambda x: hnp.linalg.cholesky(x @ x.T + np.eye(3)), X),
    "linalg.det": (lambda x: hnp.linalg.det(x[:, :3] + np.eye(3)), X),
    "linalg.inv": (lambda x: hnp.linalg.inv(x[:, :3] + np.eye(3)), X),
    "linalg.slogdet": (lambda x: [*hnp.linalg.slogdet(x[:, :3] + np.eye(3))], X),
    "linalg.cond": (lambda x: [hnp.linalg.cond(x[:, :3] + np.eye(3), p) for p in (None, 1, "fro")], X),
    "linalg.eig": (lambda x: hnp.abs(hnp.linalg.eig(x[:, :3] + DISTINCT)[1]), X),
    "linalg.eigh": (lambda x: [*hnp.linalg.eigh(x @ x.T + DISTINCT)], X),
    "linalg.eigvals": (lambda x: hnp.real(hnp.linalg.eigvals(x[:, :3] + DISTINCT)), X),
    "linalg.eigvalsh": (lambda x: hnp.linalg.eigvalsh(x @ x.T + DISTINCT), X),
    "linalg.lstsq": (lambda x, y: hnp.linalg.lstsq(x.T, y.T)[0], X, Y),
    "linalg.matrix_rank": (lambda x: hnp.linalg.matrix_rank(x) * x, X),
    "linalg.multi_dot": (lambda x, y: hnp.linalg.multi_dot([x, y.T, x]), X, Y),
    "linalg.pinv": (hnp.linalg.pinv, X),
    "linalg.qr": (lambda x: [*hnp.linalg.qr(x.T)], X),
    "linalg.svd": (lambda x: [*hnp.linalg.svd(x, full_matrices=False)], X),
    "linalg.svdvals": (hnp.linalg.svdvals, X),
    "vecmat": (lambda x, y: hnp.vecmat(x, y.T), X, Y),
    "linalg.tensorinv": (lambda x: hnp.linalg.tensorinv(x[:, :3] + np.eye(3), ind=1), X),
    "linalg.tensorsolve": (lambda x, y: hnp.linalg.tensorsolve(x[:, :3] + np.eye(3), y[:, 0]), X, Y),
    "linalg.solve": (lambda x, y: hnp.linalg.solve(x[:, :3] + np.eye(3), y), X, Y),
    "linalg.solve_triangular": (lambda x, y: hnp.linalg.solve_triangular(x[:, :3] + np.eye(3), y, lower=True), X, Y),
    "vectorize": (lambda x, y: hnp.vectorize(lambda a, b: hnp.sin(a @ b), signature="(n),(n)->()")(x, y), X, Y),
}


def words(text):
    return text.split()


# Results that are no floats, or do not depend on the numbers of their arguments.
DISCRETE = words("""
    all allclose any argmax argmin argpartition argsort argwhere array_equal array_equiv bitwise_and bitwise_count
    bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor count_nonzero digitize
    equal flatnonzero gcd greater greater_equal isclose iscomplex isfinite isin isinf isnan isneginf isposinf isreal lcm
    less less_equal lexsort logical_and logical_not logical_or logical_xor nanargmax nanargmin nonzero not_equal
    packbits ravel_multi_index searchsorted signbit unpackbits unravel_index
""")
CONSTANT = words("""
    fft.fftfreq fft.rfftfreq arange bartlett blackman broadcast_shapes can_cast diag_indices diag_indices_from
    einsum_path empty empty_like eye finfo fromfunction hamming hanning identity iinfo indices iscomplexobj isdtype
    isrealobj isscalar issubdtype ix_ mask_indices ndim ones ones_like promote_types result_type shape size tri
    tril_indices tril_indices_from triu_indices triu_indices_from zeros zeros_like
""")
# Steps: the derivative is zero wherever there is one.
STEPS = {
    "angle": hnp.angle,
    "ceil": hnp.ceil,
    "fix": hnp.fix,
    "floor": hnp.floor,
    "floor_divide": lambda x: hnp.floor_divide(x, 0.3),
    "imag": hnp.imag,
    "rint": hnp.rint,
    "round": lambda x: hnp.round(x, 1),
    "sign": hnp.sign,
    "spacing": hnp.spacing,
    "trunc": hnp.trunc,
}
# Functions of a set of numbers outside of a trace go by NumPy: with size= they are those of sort, checked here.
SETS = {
    "intersect1d": lambda x: hnp.intersect1d(x, x[0], size=4),
    "setdiff1d": lambda x: hnp.setdiff1d(x, x[0], size=6),
    "setxor1d": lambda x: hnp.setxor1d(x, x[0], size=6),
    "union1d": lambda x: hnp.union1d(x, x, size=12),
    "unique": lambda x: hnp.unique(x, size=12),
    "unique_all": lambda x: hnp.unique_all(x, size=12).values,
    "unique_counts": lambda x: hnp.unique_counts(x, size=12).values,
    "unique_inverse": lambda x: hnp.unique_inverse(x, size=12).values,
    "unique_values": lambda x: hnp.unique_values(x, size=12),
}
# Arrays of other libraries are constants, and so is what only known numbers are given to.
FOREIGN = ("from_dlpack", "trim_zeros")


def public():
    """Every function by the first of its names."""
    found = {}
    for prefix, space in (("", hnp), ("fft.", hnp.fft), ("linalg.", hnp.linalg), ("special.", hnp.special)):
        for name in getattr(space, "__all__", dir(space)):
            value = getattr(space, name)
            checked_elsewhere = prefix == "special." and f"special.{name}" not in CASES  # in tests/scipy
            of_harp = isinstance(value, types.FunctionType) and value.__module__.startswith("harp.")
            if not name.startswith("_") and of_harp and not checked_elsewhere:
                found[prefix + name] = value
    return found


def test_every_function_is_in_a_table():
    functions = public()
    listed = {*CASES, *DISCRETE, *CONSTANT, *STEPS, *SETS, *FOREIGN}
    known = {functions[name] for name in listed if name in functions}
    assert sorted(name for name, f in functions.items() if f not in known) == []
    assert sorted(listed - set(functions)) == []
    groups = [{*CASES}, {*DISCRETE}, {*CONSTANT}, {*STEPS}, {*SETS}, {*FOREIGN}]
    assert sum(map(len, groups)) == len(listed)


def weighed(tree):
    """One number that depends on every element differently, and not linearly."""
    parts = [tree] if isinstance(tree, harp.Array) else list(tree)
    weights = [np.cos(np.arange(1.0, p.size + 1) + k).reshape(p.shape) for k, p in enumerate(parts)]
    return sum(hnp.sum(hnp.where(hnp.isnan(p), 0.0, p) * w) for p, w in zip(parts, weights, strict=True))


def moved(arguments, directions, step):
    return [a + step * d for a, d in zip(arguments, directions, strict=True)]


def along(function, arguments, directions, step=1e-6):
    """The central difference in these directions."""
    ahead, back = (function(*moved(arguments, directions, s)) for s in (step, -step))
    return (float(ahead) - float(back)) / (2 * step)


def dot(parts, directions):
    return sum(float(np.sum(np.asarray(p) * d)) for p, d in zip(parts, directions, strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*CASES, *SETS])
def test_first_and_second_derivatives(name):
    function, *arguments = CASES[name] if name in CASES else (SETS[name], X)
    which = tuple(range(len(arguments)))
    rng = np.random.default_rng(1)
    u, v = ([rng.normal(size=np.shape(a)) for a in arguments] for _ in range(2))

    def loss(*given):
        return weighed(function(*given))

    gradient = harp.grad(loss, argnums=which)

    def slope(*given):
        return sum(hnp.sum(g * d) for g, d in zip(gradient(*given), u, strict=True))

    first, expected = dot(gradient(*arguments), u), along(loss, arguments, u)
    assert abs(first - expected) < 1e-6 * (1 + abs(expected)), (first, expected)
    second, expected = dot(harp.grad(slope, argnums=which)(*arguments), v), along(slope, arguments, v)
    assert abs(second - expected) < 1e-5 * (1 + abs(expected)), (second, expected)


@pytest.mark.parametrize("name", STEPS)
def test_steps_have_the_derivative_zero(name):
    np.testing.assert_array_equal(harp.grad(lambda x: hnp.sum(STEPS[name](x)))(5 * X - 2), np.zeros_like(X))


# --- special points: the table of docs/gradients.md

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "gradients.md"
ROW = re.compile(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \| `(.*?)` \|", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text("utf-8"))
NAMES = {"inf": np.inf, "nan": np.nan}


def test_the_page_has_its_rows():
    assert len(ROWS) > 80


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} at {row[1]}")
def test_special_points(row):
    text, point, first, second = row
    value = eval(point, NAMES)
    is_vector = isinstance(value, list)
    arguments = (np.array(value, float),) if is_vector else tuple(map(float, value if point.count(",") else (value,)))
    names = ("v",) if is_vector else ("x", "y")[: len(arguments)]
    space = NAMES | {name: getattr(hnp, name) for name in dir(hnp) if not name.startswith("_")}

    def function(*given):
        return eval(text, dict(space, **dict(zip(names, given, strict=True))))

    def listed(parts):
        return [float(number) for part in parts for number in np.atleast_1d(np.asarray(part))]

    which = tuple(range(len(arguments)))
    slopes = harp.grad(function, argnums=which)
    wanted, wanted_twice = ([eval(number, NAMES) for number in cell.split(",")] for cell in (first, second))
    np.testing.assert_allclose(listed(slopes(*arguments)), wanted, rtol=2e-6)
    count = len(wanted)
    if is_vector:
        twice = [np.asarray(harp.grad(lambda v, k=k: slopes(v)[0][k])(*arguments))[k] for k in range(count)]
    else:
        twice = [harp.grad(lambda *a, k=k: slopes(*a)[k], argnums=k)(*arguments) for k in range(count)]
    np.testing.assert_allclose(listed(twice), wanted_twice, rtol=2e-6)
