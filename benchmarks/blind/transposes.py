"""Transposes and arithmetic with them; diagonals and triangles."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, both, normal


def triangles(xp: Namespace, a: Array) -> Array:
    """Three triangles of a matrix, one of them transposed."""
    return xp.tril(a, -1) * 2 + xp.triu(a, 1).T - xp.triu(a)


TRANSPOSES = [
    *both("transpose/201", 32, [normal("n", "n", 64)], lambda xp, x: xp.transpose(x, (2, 0, 1)) + 1),
    *both("transpose/102", 60, [normal("n", "n", 32)], lambda xp, x: x * xp.swapaxes(x, 0, 1) + x),
    *both(
        "transpose/021-flat",
        40,
        [normal("n", 24, "n")],
        lambda xp, x: xp.moveaxis(x, 2, 1).reshape(x.shape[0], -1) * 2,
    ),
    *both(
        "transpose/symmetrised",
        200,
        [normal("n", "n")],
        lambda xp, x: 0.5 * (x + x.T) - xp.eye(x.shape[0], dtype=x.dtype),
    ),
    *both(
        "diagonal/scaled",
        220,
        [normal("n", "n"), normal("n")],
        lambda xp, a, v: xp.diag(v) + a * v + xp.diag(xp.diag(a)),
    ),
    *both("diagonal/triangles", 160, [normal("n", "n")], triangles),
    *both(
        "outer/rank-two-update",
        250,
        [normal("n"), normal("n"), normal("n", "n")],
        lambda xp, u, v, a: a - xp.outer(u, v) - xp.outer(v, u),
    ),
]
