"""A call of each function of `harp.lax` that has no function among its arguments, and what NumPy makes of the same.

A call takes the namespace, so that the same call can be made of `jax.lax`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import mpmath
import numpy as np

from tests.lax.windows import convolved, pooled

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 3, 4))
P, U = np.abs(X) + 0.1, np.tanh(X)
N = np.array([[7, -7, 6, 0], [-6, 5, 127, -128], [1, -1, 3, 2]])
M = np.array([[2, 2, -4, 3], [-4, -3, 7, 7], [-1, -1, 2, 5]])
NARROW = N.astype(np.int32)
B, C = X > 0, Y > 0.3
HALVES = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, -0.2, 3.7, 4503599627370497.5, 1e300, 0.0])
Z = X + 1j * Y
V = X[0]
BYTES = np.array([128, 255, 64, 200, 129], np.uint8), np.array([1, 3, 2, 7, 250], np.uint8)


class Case(NamedTuple):
    """A call `f(namespace, *args)`, what it gives by NumPy, and the arguments."""

    call: Callable[..., object]
    expected: Callable[..., object]
    args: tuple[np.ndarray, ...] = (X,)


def same(name: str, expected: Callable[..., object], *args: np.ndarray) -> tuple[str, Case]:
    """An elementwise function, called with nothing but its arguments."""
    return name, Case(lambda lax, *a: getattr(lax, name)(*a), expected, args or (X,))


def truncated(a, b):
    return np.trunc(a / b).astype(a.dtype)


def away(x):
    """The nearest integer, in exact arithmetic."""
    nearest = [math.floor(abs(Fraction(float(v))) + Fraction(1, 2)) for v in x.ravel()]
    return np.copysign(np.array(nearest, float).reshape(x.shape), x)


def bits(x):
    return np.vectorize(lambda v: (int(v) & 0xFFFFFFFFFFFFFFFF).bit_count())(x)


def padded(x, value, config):
    """One element after the other."""
    for axis, (low, high, interior) in enumerate(config):
        rows = np.moveaxis(x, axis, 0)
        fill = np.full(rows.shape[1:], value)
        spaced = [part for row in rows for part in (row, *[fill] * interior)][: len(rows) * (interior + 1) - interior]
        spaced = [fill] * low + spaced if low >= 0 else spaced[-low:]
        spaced = spaced + [fill] * high if high >= 0 else spaced[:high]
        x = np.moveaxis(np.stack(spaced), 0, axis)
    return x


def stretch(x, starts, sizes):
    """The slice that is moved inside."""
    begins = [min(max(s + n if s < 0 else s, 0), n - k) for s, n, k in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(b, b + k) for b, k in zip(begins, sizes, strict=True))


def updated(x, update, starts):
    x = x.copy()
    x[stretch(x, [int(s) for s in starts], update.shape)] = update
    return x


def pads(*config):
    value = np.asarray(2.5)
    return Case(lambda lax, x, v: lax.pad(x, v, config), lambda x, v: padded(x, v, config), (X, value))


def special(name: str) -> Callable[[np.ndarray], np.ndarray]:
    return np.vectorize(getattr(math, name))


def exact(function: Callable[..., object]) -> Callable[..., np.ndarray]:
    return np.vectorize(lambda *a: float(function(*a)))


def slope(f: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: (f(v + 1e-5) - f(v - 1e-5)) / 2e-5)(x)


ELEMENTWISE = dict(
    [
        *[
            same(n, getattr(np, n))
            for n in (["abs", "ceil", "cos", "exp", "exp2", "expm1", "floor", "sign", "sin", "square", "tan", "tanh"])
        ],
        *[same(n, getattr(np, n)) for n in (["asinh", "atan", "cbrt", "cosh", "sinh"])],
        *[same(n, getattr(np, n), P) for n in (["log", "log1p", "reciprocal", "sqrt"])],
        *[same(n, getattr(np, n), U) for n in (["acos", "asin", "atanh"])],
        *[same(n, getattr(np, n), Z) for n in (["conj", "imag", "real"])],
        *[same(n, getattr(np, n), X, Y) for n in (["add", "atan2", "nextafter"])],
        same("acosh", np.acosh, 1 + P),
        same("neg", np.negative),
        same("is_finite", np.isfinite, np.array([1.0, np.inf, np.nan])),
        same("logistic", lambda x: 1 / (1 + np.exp(-x))),
        same("rsqrt", lambda x: 1 / np.sqrt(x), P),
        same("erf", special("erf")),
        same("erfc", special("erfc")),
        same("erf_inv", np.vectorize(lambda u: NormalDist().inv_cdf((u + 1) / 2) / math.sqrt(2)), U),
        same("lgamma", special("lgamma"), P),
        same("polygamma", exact(lambda n, x: mpmath.psi(int(n), x)), np.ones(P.shape, int), P + 1),
        same("zeta", lambda x, q: np.sum([(q + k) ** -x for k in range(4000)], 0), P + 5, P),
        same("igamma", exact(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)), P, P),
        same("igammac", exact(lambda a, x: mpmath.gammainc(a, x, regularized=True)), P, P),
        same("betainc", exact(lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)), P, P, (U + 1) / 2),
        same("bessel_i0e", lambda x: np.i0(x) * np.exp(-np.abs(x))),
        same("bessel_i1e", exact(lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)))),
        same("digamma", lambda x: slope(math.lgamma, x), P + 1),
        same("sub", np.subtract, X, Y),
        same("mul", np.multiply, X, Y),
        same("pow", np.power, P, Y),
        same("max", np.maximum, X, Y),
        same("min", np.minimum, X, Y),
        same("div", np.divide, X, P),
        same("rem", np.fmod, X, P),
        same("complex", lambda x, y: x + 1j * y, X, Y),
        same("eq", np.equal, N, M),
        same("ne", np.not_equal, N, M),
        same("lt", np.less, N, M),
        same("le", np.less_equal, N, M),
        same("gt", np.greater, N, M),
        same("ge", np.greater_equal, N, M),
        same("bitwise_and", np.bitwise_and, N, M),
        same("bitwise_or", np.bitwise_or, N, M),
        same("bitwise_xor", np.bitwise_xor, B, C),
        same("bitwise_not", np.bitwise_not, N),
        same("shift_left", np.left_shift, N, abs(M)),
        same("shift_right_arithmetic", np.right_shift, N, abs(M)),
        same("shift_right_logical", lambda x, y: (x.astype("u8") >> y.astype("u8")).astype("i8"), N, abs(M)),
        same("population_count", bits, N),
        same("clz", lambda x: np.vectorize(lambda v: 64 - (int(v) & 0xFFFFFFFFFFFFFFFF).bit_length())(x), N),
        (
            "reduce_precision",
            Case(lambda lax, x: lax.reduce_precision(x, 5, 10), lambda x: x.astype("f2").astype("f8"), (X * 1e3,)),
        ),
        (
            "bitcast_convert_type",
            Case(lambda lax, x: lax.bitcast_convert_type(x, "uint16"), lambda x: x[..., None].view("u2")),
        ),
        same("round", away, HALVES),
        same("select", np.where, B, X, Y),
        (
            "clamp",
            Case(lambda lax, x, y: lax.clamp(-0.5, x, y), lambda x, y: np.minimum(np.maximum(x, -0.5), y), (X, Y)),
        ),
        ("select_n", Case(lambda lax, b, x, y: lax.select_n(b, x, y), lambda b, x, y: np.where(b, y, x), (B, X, Y))),
        ("integer_pow", Case(lambda lax, x: lax.integer_pow(x, -3), lambda x: x**-3.0)),
        ("convert_element_type", Case(lambda lax, x: lax.convert_element_type(x, "int32"), lambda x: x.astype("i4"))),
        ("stop_gradient", Case(lambda lax, x: lax.stop_gradient(x), lambda x: x)),
    ]
)

SHAPES = {
    "broadcast": Case(lambda lax, x: lax.broadcast(x, (2, 5)), lambda x: np.broadcast_to(x, (2, 5, 3, 4))),
    "broadcast_in_dim": Case(
        lambda lax, x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)),
        lambda x: np.broadcast_to(x[:, None, :], (3, 2, 4)),
    ),
    "broadcast_shapes": Case(
        lambda lax, x: x * len(lax.broadcast_shapes((2, 1), (3,))) + lax.broadcast_shapes((2, 1), (1, 3))[1],
        lambda x: x * 2 + 3,
    ),
    "broadcasted_iota": Case(
        lambda lax, x: x * lax.broadcasted_iota("float64", (3, 4), 1), lambda x: x * np.arange(4.0)
    ),
    "collapse": Case(lambda lax, x: lax.collapse(x, 0, 2), np.ravel),
    "concatenate": Case(lambda lax, x, y: lax.concatenate([x, y], 1), lambda x, y: np.concatenate([x, y], 1), (X, Y)),
    "empty": Case(lambda lax, x: x * 1.0 + 0 * lax.empty((3, 1), "float64").shape[0], lambda x: x),
    "expand_dims": Case(lambda lax, x: lax.expand_dims(x, (0, 2)), lambda x: x[None, :, None]),
    "full": Case(lambda lax, x: x + lax.full((3, 1), 2.0), lambda x: x + 2),
    "full_like": Case(lambda lax, x: lax.full_like(x, 3, shape=(2,)), lambda x: np.full(2, 3.0)),
    "iota": Case(lambda lax, x: x + lax.iota("float64", 4), lambda x: x + np.arange(4)),
    "pad": pads((1, 2, 0), (0, -1, 2)),
    "reshape": Case(lambda lax, x: lax.reshape(x, (6, 2), (1, 0)), lambda x: x.T.reshape(6, 2)),
    "rev": Case(lambda lax, x: lax.rev(x, (1,)), lambda x: x[:, ::-1]),
    "split": Case(lambda lax, x: tuple(lax.split(x, (1, 3), 1)), lambda x: (x[:, :1], x[:, 1:])),
    "squeeze": Case(lambda lax, x: lax.squeeze(x, (1,)), lambda x: x[:, 0], (X[:, None],)),
    "stack": Case(lambda lax, x, y: lax.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), (X, Y)),
    "tile": Case(lambda lax, x: lax.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
    "transpose": Case(lambda lax, x: lax.transpose(x, (1, 0)), np.transpose),
    "unstack": Case(lambda lax, x: tuple(lax.unstack(x, 1)), lambda x: tuple(x.T)),
}

START, AT = np.array([1, 7]), np.asarray(-2)
SLICES = {
    "slice": Case(lambda lax, x: lax.slice(x, (1, 0), (3, 4), (1, 2)), lambda x: x[1:3, 0:4:2]),
    "slice_in_dim": Case(lambda lax, x: lax.slice_in_dim(x, 1, -1, axis=1), lambda x: x[:, 1:-1]),
    "index_in_dim": Case(lambda lax, x: lax.index_in_dim(x, -1, 1), lambda x: x[:, -1:]),
    "dynamic_slice": Case(
        lambda lax, x, s: lax.dynamic_slice(x, s, (2, 3)), lambda x, s: x[stretch(x, s, (2, 3))], (X, START)
    ),
    "dynamic_slice_in_dim": Case(
        lambda lax, x, s: lax.dynamic_slice_in_dim(x, s, 2, axis=1), lambda x, s: x[stretch(x, (0, s), (3, 2))], (X, AT)
    ),
    "dynamic_index_in_dim": Case(
        lambda lax, x, s: lax.dynamic_index_in_dim(x, s, 1, keepdims=False), lambda x, s: x[:, s], (X, AT)
    ),
    "dynamic_update_slice": Case(
        lambda lax, x, u, s: lax.dynamic_update_slice(x, u, s), updated, (X, Y[:2, 1:], START)
    ),
    "dynamic_update_slice_in_dim": Case(
        lambda lax, x, u, s: lax.dynamic_update_slice_in_dim(x, u, s, axis=1),
        lambda x, u, s: updated(x, u, (0, s)),
        (X, Y[:, :2], AT),
    ),
    "dynamic_update_index_in_dim": Case(
        lambda lax, x, u, s: lax.dynamic_update_index_in_dim(x, u, s, axis=1),
        lambda x, u, s: updated(x, u[:, None], (0, s)),
        (X, Y[:, 0], AT),
    ),
}


ENDS = [(0, 0), (0, 2), (1, 0), (1, 2)]


def windows(x, reduce, fill):
    """Those of 2 x 3 elements, begun 1 and 2 apart, as many as there are such places."""
    high, wide = x.shape[0], -(-x.shape[1] // 2)
    missing = max(2 * (wide - 1) + 3 - x.shape[1], 0)
    whole = np.pad(x, ((0, 1), (missing // 2, missing - missing // 2)), constant_values=fill)
    return np.array([[reduce(whole[i : i + 2, 2 * j : 2 * j + 3]) for j in range(wide)] for i in range(high)])


def window(name, reduce, fill):
    return Case(
        lambda lax, x: lax.reduce_window(x, fill, getattr(lax, name), (2, 3), (1, 2), "SAME"),
        lambda x: windows(x, reduce, fill),
    )


LEFT, RIGHT = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(3, 5, 4))
REDUCTIONS = {
    "argmax": Case(lambda lax, x: lax.argmax(x, 1, "int32"), lambda x: x.argmax(1).astype("i4")),
    "argmin": Case(lambda lax, x: lax.argmin(x, 0, "int64"), lambda x: x.argmin(0)),
    "reduce_sum": Case(lambda lax, x: lax.reduce_sum(x, (0, 1)), np.sum),
    "reduce_prod": Case(lambda lax, x: lax.reduce_prod(x, (1,)), lambda x: x.prod(1)),
    "reduce_max": Case(lambda lax, x: lax.reduce_max(x, (1,)), lambda x: x.max(1)),
    "reduce_min": Case(lambda lax, x: lax.reduce_min(x, (0,)), lambda x: x.min(0)),
    "reduce": Case(lambda lax, x: lax.reduce(x, 0.5, lax.add, (0,)), lambda x: 0.5 + x.sum(0)),
    "reduce_window": window("max", np.max, -np.inf),
    "reduce_and": Case(lambda lax, i: lax.reduce_and(i, (0,)), lambda i: np.bitwise_and.reduce(i, 0), (N,)),
    "reduce_or": Case(lambda lax, i: lax.reduce_or(i, (0, 1)), lambda i: np.bitwise_or.reduce(i.ravel()), (N,)),
    "reduce_xor": Case(lambda lax, i: lax.reduce_xor(i, (1,)), lambda i: np.bitwise_xor.reduce(i, 1), (N,)),
    "cumsum": Case(lambda lax, x: lax.cumsum(x, 1, reverse=True), lambda x: x[:, ::-1].cumsum(1)[:, ::-1]),
    "cumprod": Case(lambda lax, x: lax.cumprod(x), lambda x: x.cumprod(0)),
    "cummax": Case(lambda lax, x: lax.cummax(x, 1), lambda x: np.maximum.accumulate(x, 1)),
    "cummin": Case(lambda lax, x: lax.cummin(x, 0), lambda x: np.minimum.accumulate(x, 0)),
    "cumlogsumexp": Case(lambda lax, x: lax.cumlogsumexp(x, 1), lambda x: np.log(np.exp(x).cumsum(1))),
    "sort": Case(lambda lax, x: lax.sort(x, 0), lambda x: np.sort(x, 0)),
    "sort_key_val": Case(
        lambda lax, x, y: lax.sort_key_val(x, y, 1),
        lambda x, y: (np.sort(x, 1), np.take_along_axis(y, x.argsort(1), 1)),
        (X, Y),
    ),
    "top_k": Case(lambda lax, x: lax.top_k(x, 2)[0], lambda x: np.sort(x, -1)[:, :-3:-1]),
    "dot": Case(lambda lax, x, y: lax.dot(x, y), np.dot, (X, Y.T)),
    "dot_general": Case(
        lambda lax, x, y: lax.dot_general(x, y, (((2,), (0,)), ((0,), (1,)))),
        lambda x, y: np.einsum("bij,jbk->bik", x, y),
        (LEFT, RIGHT),
    ),
    "batch_matmul": Case(
        lambda lax, x, y: lax.batch_matmul(x, y), np.matmul, (LEFT, np.ascontiguousarray(RIGHT.swapaxes(0, 1)))
    ),
}

ROW, KERNEL = RNG.normal(size=(2, 3, 6)), RNG.normal(size=(4, 3, 2))
WINDOWS = {
    "conv": Case(
        lambda lax, x, w: lax.conv(x, w, (2,), "VALID"),
        lambda x, w: convolved(x, w, (2,), [(0, 0)]),
        (ROW, KERNEL),
    ),
    "conv_dimension_numbers": Case(
        lambda lax, x: x * lax.conv_dimension_numbers((1, 1, 1), (1, 1, 1), ("NHC", "HIO", "NHC")).lhs_spec[1],
        lambda x: x * 2,
    ),
    "conv_general_dilated": Case(
        lambda lax, x, w: lax.conv_general_dilated(x, w, (1,), [(1, 2)], (2,), (2,), ("NCH", "OIH", "NCH")),
        lambda x, w: convolved(x, w, (1,), [(1, 2)], (2,), (2,)),
        (ROW, KERNEL),
    ),
    "conv_transpose": Case(
        lambda lax, x, w: lax.conv_transpose(x, w, (2,), "VALID", None, ("NCH", "OIH", "NCH")),
        lambda x, w: convolved(x, w, (1,), [(1, 1)], (2,)),
        (ROW, KERNEL),
    ),
    "conv_with_general_padding": Case(
        lambda lax, x, w: lax.conv_with_general_padding(x, w, (1,), [(1, 1)], None, (2,)),
        lambda x, w: convolved(x, w, (1,), [(1, 1)], None, (2,)),
        (ROW, KERNEL),
    ),
    "reduce_window": Case(
        lambda lax, x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 2), "VALID"),
        lambda x: pooled(np.maximum, -np.inf, x, (2, 2), (1, 2), [(0, 0)] * 2),
    ),
}

CASES = {**ELEMENTWISE, **SHAPES, **SLICES, **REDUCTIONS, **WINDOWS}

# Further calls of some of these.
MORE = {
    "div of integers": Case(lambda lax, i, j: lax.div(i, j), truncated, (N, M)),
    "rem of integers": Case(lambda lax, i, j: lax.rem(i, j), lambda i, j: i - truncated(i, j) * j, (N, M)),
    "round to even": Case(lambda lax, x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.round, (HALVES,)),
    "shift_right_arithmetic of unsigned integers": Case(
        lambda lax, x, y: lax.shift_right_arithmetic(x, y),
        lambda x, y: (x.view("i1") >> np.minimum(y, 7).view("i1")).view("u1"),
        BYTES,
    ),
    "select_n by integers": Case(
        lambda lax, i, x, y: lax.select_n(i, x, y, x + y),
        lambda i, x, y: np.choose(i, [x, y, x + y]),
        (abs(N) % 3, X, Y),
    ),
    "reduce by a loop": Case(
        lambda lax, x: lax.reduce(x, 2.0, lambda a, b: lax.mul(a, b), (1, 0)), lambda x: 2 * x.prod()
    ),
    "reduce of several": Case(
        lambda lax, x, y: lax.reduce((x, y), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
        lambda x, y: (x.sum(0), y.prod(0)),
        (X, Y),
    ),
    "reduce of integers": Case(lambda lax, i: lax.reduce(i, 3, lax.max, (1,)), lambda i: np.maximum(i.max(1), 3), (N,)),
    "reduce_window of sums": window("add", np.sum, 0.0),
    "reduce_window of dilated windows": Case(
        lambda lax, x: lax.reduce_window(x, 1.0, lambda a, b: a * b, (2, 2), (1, 1), ((0, 1), (1, 0)), None, (1, 2)),
        lambda x: np.prod([np.pad(x, ((0, 1), (1, 0)), constant_values=1.0)[i : i + 3, j : j + 3] for i, j in ENDS], 0),
    ),
    "reduce_window of what is moved apart": Case(
        lambda lax, x: lax.reduce_window(x, 0.0, lax.add, (1, 3), None, "VALID", (1, 2)),
        lambda x: np.stack([x[:, k // 2 + 1] + x[:, k // 2] * (k % 2 == 0) for k in range(5)], 1),
    ),
    "reduce_and of bool": Case(lambda lax, b: lax.reduce_and(b, (0,)), lambda b: b.all(0), (B,)),
    "reduce_or of bool": Case(lambda lax, b: lax.reduce_or(b, (0,)), lambda b: b.any(0), (B,)),
    "reduce_xor of bool": Case(lambda lax, b: lax.reduce_xor(b, (0,)), lambda b: b.sum(0) % 2 == 1, (B,)),
    "cumsum stays narrow": Case(lambda lax, i: lax.cumsum(i), lambda i: i.cumsum(0, dtype="i4"), (NARROW,)),
    "reduce_sum stays narrow": Case(
        lambda lax, i: lax.reduce_sum(i, (0,)), lambda i: i.sum(0, "i4"), (N.astype("i4"),)
    ),
    "pad crops what is between": pads((-1, 0, 1), (-2, 3, 2)),
    "pad crops": pads((-1, -1, 0), (2, -3, 0)),
    "pad by a number": Case(
        lambda lax, i: lax.pad(i, 7, ((0, 1, 1), (1, 0, 0))), lambda i: padded(i, 7, ((0, 1, 1), (1, 0, 0))), (N,)
    ),
    "a slice that is moved in": Case(
        lambda lax, x, s: lax.dynamic_slice(x, (s, 0), (2, 4)),
        lambda x, s: x[stretch(x, (s, 0), (2, 4))],
        (X, np.asarray(9)),
    ),
    "a slice with an int8 start": Case(
        lambda lax, x, s: lax.dynamic_slice_in_dim(x, s, 2),
        lambda x, s: x[stretch(x, (s, 0), (2, 4))],
        (X, np.asarray(-2, "i1")),
    ),
    "a slice between two starts": Case(
        lambda lax, x, s: lax.dynamic_slice(x, (s, 1, s), (2, 1, 2)),
        lambda x, s: x[1:3, 1:2, 1:3],
        (LEFT, np.asarray(1)),
    ),
    "an update between two starts": Case(
        lambda lax, x, u, s: lax.dynamic_update_slice(x, u, (s, 1, s)),
        lambda x, u, s: updated(x, u, (s, 1, s)),
        (LEFT, np.ones((2, 1, 2)), np.asarray(1)),
    ),
    "an update between a computed and a known start": Case(
        lambda lax, x, u, s: lax.dynamic_update_slice(x, u, (s, 1)),
        lambda x, u, s: updated(x, u, (s, 1)),
        (X, Y[:2, :2], np.asarray(1)),
    ),
    "an update of one element": Case(
        lambda lax, x, u, s: lax.dynamic_update_slice(x, u, (1, s)),
        lambda x, u, s: updated(x, u, (1, s)),
        (X, Y[:1, :1], np.asarray(-1)),
    ),
    "an update of whole rows": Case(
        lambda lax, x, u, s: lax.dynamic_update_slice(x, u, (s, 3)),
        lambda x, u, s: updated(x, u, (s, 3)),
        (X, Y[:1], np.asarray(-1)),
    ),
    "a slice between a computed and a known start": Case(
        lambda lax, x, s: lax.dynamic_slice(x, (1, s), (2, 2)),
        lambda x, s: x[stretch(x, (1, s), (2, 2))],
        (X, np.asarray(9)),
    ),
    "an update at a known place": Case(
        lambda lax, x, u: lax.dynamic_update_slice(x, u, (1, -2)), lambda x, u: updated(x, u, (1, -2)), (X, Y[:2, :2])
    ),
    "sort by two keys": Case(
        lambda lax, a, b, c: lax.sort((a, b, c), num_keys=2),
        lambda a, b, c: tuple(k[np.lexsort((b, a))] for k in (a, b, c)),
        (np.array([1, 0, 1, 0]), np.array([2, 1, 0, 3]), V),
    ),
    "dot in a wider dtype": Case(
        lambda lax, i, j: lax.dot(i, j, preferred_element_type="int32"),
        lambda i, j: i.astype("i4") @ j.astype("i4"),
        (N.astype("i1"), N.T.astype("i1")),
    ),
    "dot_general of all axes": Case(
        lambda lax, x, y: lax.dot_general(x, y, (((1, 0), (1, 0)), ((), ()))), lambda x, y: (x * y).sum(), (X, Y)
    ),
    "dot_general without a sum": Case(
        lambda lax, x, y: lax.dot_general(x, y, (((), ()), ((1,), (0,)))),
        lambda x, y: np.einsum("ij,j->ji", x, y),
        (X, V),
    ),
    "real part": Case(lambda lax, z: lax.convert_element_type(z, "float64"), np.real, (Z,)),
}
