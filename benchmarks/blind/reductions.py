"""Means, variances and extrema, along axes of few and of many elements."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, both, normal
from benchmarks.costs import case


def unit_box(xp: Namespace, x: Array) -> Array:
    """Points moved and scaled to lie between 0 and 1."""
    low, high = x.min(axis=0), x.max(axis=0)
    return (x - low) / (high - low)


REDUCTIONS = [
    *both(
        "reduce/mean-and-minimum-of-3",
        15_000,
        [normal("n", 3)],
        lambda xp, x: xp.sum(x, axis=0) / x.shape[0] + xp.min(x, axis=0),
    ),
    *both(
        "reduce/mean-and-variance-of-rows",
        60_000,
        [normal(3, "n")],
        lambda xp, x: xp.stack([xp.mean(x, axis=1), xp.var(x, axis=1)]),
    ),
    *both("reduce/variance-of-3", 40_000, [normal("n", 3)], lambda xp, x: xp.var(x, axis=0)),
    *both("reduce/unit-box", 20_000, [case.normal("n", 3)], unit_box, tolerance=1e-9),
    *both("reduce/volume-axis0", 48, [normal("n", "n", 40)], lambda xp, x: xp.sum(xp.abs(x), axis=0)),
    *both(
        "reduce/volume-two-axes",
        48,
        [normal("n", "n", 40)],
        lambda xp, x: xp.sum(x, axis=1) * xp.mean(x, axis=2).sum(axis=1, keepdims=True),
    ),
]
