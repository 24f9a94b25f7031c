"""Stencils, pooling and convolutions written with slices; updates of parts of an array."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, at, both, normal


def pool_pairs(xp: Namespace, x: Array) -> Array:
    """The largest of each two by two elements."""
    return xp.maximum(xp.maximum(x[::2, ::2], x[1::2, ::2]), xp.maximum(x[::2, 1::2], x[1::2, 1::2]))


def pool_threes(xp: Namespace, x: Array) -> Array:
    """The largest of each three by three elements, windows overlapping."""
    n, m = x.shape
    y = xp.maximum(xp.maximum(x[: n - 2], x[1 : n - 1]), x[2:])
    return xp.maximum(xp.maximum(y[:, : m - 2], y[:, 1 : m - 1]), y[:, 2:])


def convolution(xp: Namespace, x: Array, k: Array) -> Array:
    """A kernel of 3 x 3, as a sum of nine slices."""
    h, w = x.shape
    return sum(k[i, j] * x[i : h - 2 + i, j : w - 2 + j] for i in range(3) for j in range(3))


def convolution_of_channels(xp: Namespace, x: Array, w: Array) -> Array:
    """Five products of shifted matrices, then relu."""
    n = x.shape[0]
    return xp.maximum(sum((x[j : n - 4 + j] @ w[j] for j in range(1, 5)), x[: n - 4] @ w[0]), 0)


def patches(xp: Namespace, x: Array, w: Array) -> Array:
    """A convolution as one product, with all windows copied side by side."""
    h, v, c = x.shape
    columns = xp.concatenate([x[i : h - 2 + i, j : v - 2 + j] for i in range(3) for j in range(3)], axis=-1)
    return columns.reshape((h - 2) * (v - 2), 9 * c) @ w


def gathered_windows(xp: Namespace, x: Array, w: Array) -> Array:
    """All windows of nine elements, by indices, times a matrix."""
    return x[xp.arange(x.shape[0] - 8)[:, None] + xp.arange(9)[None, :]] @ w


def heat(xp: Namespace, u: Array) -> Array:
    """A step of the heat equation in the interior."""
    inner = u[1:-1, 1:-1]
    new = inner + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner)
    return at(xp, u)[1:-1, 1:-1].set(new)


def gray_scott(xp: Namespace, u: Array, v: Array) -> Array:
    """A step of reaction and diffusion on a torus."""

    def laplacian(a: Array) -> Array:
        return xp.roll(a, 1, 0) + xp.roll(a, -1, 0) + xp.roll(a, 1, 1) + xp.roll(a, -1, 1) - 4 * a

    r = u * v * v
    return xp.stack([u + 0.16 * laplacian(u) - r + 0.035 * (1 - u), v + 0.08 * laplacian(v) + r - 0.1 * v])


def waves(xp: Namespace, u: Array, before: Array) -> Array:
    """Three steps of the wave equation on a circle."""
    for _ in range(3):
        u, before = 2 * u - before + 0.2 * (xp.roll(u, 1) - 2 * u + xp.roll(u, -1)), u
    return u


def laplacian_of_volume(xp: Namespace, x: Array) -> Array:
    """Six neighbours of each inner element."""
    inner = x[1:-1, 1:-1, 1:-1]
    rows = x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1]
    columns = x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1]
    return rows + columns + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2] - 6 * inner


def rows(xp: Namespace, x: Array, v: Array) -> Array:
    """Four updates of rows."""
    x = at(xp, x)[0].set(v)
    x = at(xp, x)[-1].add(2 * v)
    x = at(xp, x)[2:5].add(v * v)
    return at(xp, x)[7].multiply(0.5)


def boundaries(xp: Namespace, x: Array) -> Array:
    """All four borders set from their neighbours."""
    x = at(xp, x)[0, :].set(x[1, :])
    x = at(xp, x)[-1, :].set(x[-2, :])
    x = at(xp, x)[:, 0].set(-x[:, 1])
    x = at(xp, x)[:, -1].set(-x[:, -2])
    return x * 1.5


def lifting(xp: Namespace, x: Array) -> Array:
    """A step of a wavelet transform, in place."""
    x = at(xp, x)[1::2].add(-0.5 * (x[::2] + xp.roll(x[::2], -1, axis=0)))
    return at(xp, x)[::2].add(0.25 * (x[1::2] + xp.roll(x[1::2], 1, axis=0)))


STENCILS = [
    *both("pool/pairs", 384, [normal("n", "n")], pool_pairs),
    *both("pool/threes", 180, [normal("n", "n")], pool_threes),
    *both("convolution/slices", 220, [normal("n", "n"), normal(3, 3)], convolution),
    *both("convolution/channels", 400, [normal("n", 16), normal(5, 16, 24)], convolution_of_channels),
    *both("convolution/patches", 48, [normal("n", "n", 4), normal(36, 16)], patches),
    *both("convolution/gathered-windows", 2000, [normal("n"), normal(9, 8)], gathered_windows),
    *both("stencil/heat", 160, [normal("n", "n")], heat),
    *both("stencil/gray-scott", 160, [normal("n", "n")] * 2, gray_scott),
    *both("stencil/waves", 16_000, [normal("n")] * 2, waves),
    *both("stencil/volume", 36, [normal("n", "n", "n")], laplacian_of_volume),
    *both("update/rows", 500, [normal("n", 200), normal(200)], rows),
    *both("update/boundaries", 160, [normal("n", "n")], boundaries),
    *both("update/lifting", 400, [normal("n", 100)], lifting),
]
