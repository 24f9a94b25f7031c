"""Running sums, products and maxima, forward and backward."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, both, cummax, normal, uniform


def centred(xp: Namespace, x: Array) -> Array:
    """Running sums of rows without their means."""
    return xp.cumsum(x - x.mean(axis=1, keepdims=True), axis=1)


def running_means(xp: Namespace, x: Array) -> Array:
    """Of the squares of columns."""
    return xp.cumsum(x * x, axis=0) / (1 + xp.arange(x.shape[0])[:, None].astype(x.dtype))


def drawdown(xp: Namespace, x: Array) -> Array:
    """How far each running sum is below the highest before it."""
    p = xp.cumsum(x, axis=1)
    return cummax(xp, p, 1) - p


def symmetrised(xp: Namespace, x: Array) -> Array:
    """A vector and its reverse, one of two formulas for each element."""
    y = x[::-1]
    return xp.where(y > x, y - x, 0.5 * (x + y)) * xp.flip(x)


SCANS = [
    *both("scan/centred-rows", 200, [normal("n", 200)], centred),
    *both("scan/means-of-columns", 200, [normal("n", 128)], running_means),
    *both("scan/cumprod", 8000, [normal("n")], lambda xp, x: xp.cumprod(1 + 0.01 * x), tolerance=1e-3),
    *both(
        "scan/returns-to-go",
        200,
        [normal("n", 100)],
        lambda xp, x: xp.flip(xp.cumsum(xp.flip(x, axis=1), axis=1), axis=1),
    ),
    *both("scan/drawdown", 128, [normal("n", 100)], drawdown),
    *both("scan/products-of-rows", 8000, [uniform(0.5, 1.5, "n", 8)], lambda xp, x: xp.prod(x, axis=1)),
    *both("scan/summed-area", 96, [uniform(0, 1, "n", "n")], lambda xp, x: xp.cumsum(xp.cumsum(x, axis=0), axis=1)),
    *both("scan/flipped-vector", 80_000, [normal("n")], symmetrised),
]
