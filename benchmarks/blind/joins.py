"""Padding by all modes, joining, repeating, interleaving."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, at, both, normal
from benchmarks.costs import case


def box(xp: Namespace, x: Array) -> Array:
    """The mean of four neighbours, zeros around."""
    p = xp.pad(x, 1)
    n, m = x.shape
    return (p[:n, 1 : m + 1] + p[2:, 1 : m + 1] + p[1 : n + 1, :m] + p[1 : n + 1, 2:]) * 0.25


def squared_slopes(xp: Namespace, x: Array) -> Array:
    """Central differences, the edges repeated."""
    p = xp.pad(x, ((1, 1), (1, 1)), mode="edge")
    n, m = x.shape
    down = p[2:, 1 : m + 1] - p[:n, 1 : m + 1]
    right = p[1 : n + 1, 2:] - p[1 : n + 1, :m]
    return down * down + right * right


def blur(xp: Namespace, x: Array) -> Array:
    """Five binomial weights along rows, reflected at the ends."""
    p = xp.pad(x, ((0, 0), (2, 2)), mode="reflect")
    m = x.shape[1]
    return (p[:, :m] + 4 * p[:, 1 : m + 1] + 6 * p[:, 2 : m + 2] + 4 * p[:, 3 : m + 3] + p[:, 4:]) / 16


def torus_laplacian(xp: Namespace, x: Array) -> Array:
    """Neighbours across the ends."""
    p = xp.pad(x, 1, mode="wrap")
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


def statistics(xp: Namespace, x: Array) -> Array:
    """The sum of three pads."""
    return xp.pad(x, 1, mode="mean") + xp.pad(x, 1, mode="maximum") - xp.pad(x, 1, mode="minimum")


def mixed(xp: Namespace, a: Array, b: Array, c: Array) -> Array:
    """Three computed matrices side by side."""
    return xp.concatenate([xp.sin(a), b[:, ::-1] * 2, c * c], axis=1)


def block_matrix(xp: Namespace, a: Array, b: Array, c: Array, v: Array) -> Array:
    """A matrix of four blocks times a vector, and its sums of columns."""
    m = xp.block([[a, b], [b.T, c]])
    return m @ v + m.sum(axis=0)


def haar(xp: Namespace, x: Array) -> Array:
    """Scaled sums and differences of pairs."""
    even, odd = x[::2], x[1::2]
    return xp.concatenate([(even + odd) * 0.70710678, (even - odd) * 0.70710678])


def reversed_strides(xp: Namespace, x: Array) -> Array:
    """Every third element, from both ends."""
    return x[::-3] * x[::3][::-1] + xp.roll(x[::-3], 5)


def interleaved_updates(xp: Namespace, a: Array, b: Array) -> Array:
    """Even and odd places, set one after the other."""
    z = xp.zeros(2 * a.shape[0], dtype=a.dtype)
    z = at(xp, z)[::2].set(a * 0.5)
    return at(xp, z)[1::2].set(b - a)


PADS = [
    *both("pad/constant-box", 200, [normal("n", "n")], box),
    *both("pad/edge-slopes", 200, [normal("n", "n")], squared_slopes),
    *both("pad/reflect-blur", 200, [normal("n", 150)], blur),
    *both("pad/symmetric", 500, [normal("n", 120)], lambda xp, x: xp.pad(x, ((3, 2), (2, 5)), mode="symmetric")),
    *both("pad/wrap-laplacian", 160, [case.normal("n", "n")], torus_laplacian, tolerance=1e-9),
    *both("pad/linear-ramp", 160, [normal("n", "n")], lambda xp, x: xp.pad(x, 2, mode="linear_ramp")),
    *both("pad/statistics", 160, [normal("n", "n")], statistics),
]
JOINED = [
    *both("join/interleave", 50_000, [normal("n")] * 2, lambda xp, a, b: xp.stack([a + b, a - b], axis=-1).reshape(-1)),
    *both("join/mixed", 300, [normal("n", 40), normal("n", 50), normal("n", 30)], mixed),
    *both("join/tile", 100, [normal("n", 60), normal("3n", 120)], lambda xp, x, y: xp.tile(x, (3, 2)) * y + y),
    *both("join/repeat", 300, [normal("n", 50), normal(150)], lambda xp, x, w: xp.repeat(x, 3, axis=1) * w),
    *both("join/block-matrix", 120, [*[normal("n", "n")] * 3, normal("2n")], block_matrix),
    *both("join/haar", 100_000, [normal("n")], haar),
    *both("join/reversed-strides", 150_000, [normal("n")], reversed_strides),
    *both("join/interleaved-updates", 60_000, [normal("n")] * 2, interleaved_updates),
]
JOINS = [*PADS, *JOINED]
