"""Sums of products: einsum, tensordot, batches of small matrices, distances, forces."""

from __future__ import annotations

from functools import partial

from benchmarks.blind.spelling import Array, Namespace, both, normal, uniform


def einsum(text: str, xp: Namespace, *arrays: Array) -> Array:
    """Of NumPy with the order of products left as it is by default."""
    return xp.einsum(text, *arrays)


def covariances(xp: Namespace, rotations: Array, scales: Array) -> Array:
    """R diag(s) R^T of each."""
    return (rotations * scales[:, None, :]) @ rotations.transpose(0, 2, 1)


def inverses(xp: Namespace, m: Array) -> Array:
    """Of matrices of 2 x 2, by the formula."""
    a, b, c, d = m[:, 0, 0], m[:, 0, 1], m[:, 1, 0], m[:, 1, 1] + 3
    adjugates = xp.stack([xp.stack([d, -b], -1), xp.stack([-c, a], -1)], 1)
    return adjugates / (a * d - b * c)[:, None, None]


def gaussians(xp: Namespace, x: Array, y: Array) -> Array:
    """Of the distances of all pairs in three dimensions."""
    d = x[:, None, :] - y[None, :, :]
    return xp.exp(-0.5 * (d * d).sum(axis=-1))


def distances(xp: Namespace, x: Array, y: Array) -> Array:
    """Of all pairs, by a matrix product."""
    d = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * x @ y.T
    return xp.sqrt(xp.maximum(d, 0) + 1e-3)


def forces(xp: Namespace, x: Array, m: Array) -> Array:
    """Of gravity, between all pairs."""
    d = x[None, :, :] - x[:, None, :]
    r2 = (d * d).sum(-1) + 0.01
    return (d * (m[None, :] / (r2 * xp.sqrt(r2)))[:, :, None]).sum(axis=1)


EINSUMS = [
    case
    for name, n, text, shapes in (
        ("permuted", 24, "bij,jk,k->kbi", [("n", 20, 48), (48, 32), (32,)]),
        ("three", 64, "ab,cb,dc->da", [("n", 40), (64, 40), (36, 64)]),
        ("bilinear", 600, "bi,ij,bj->b", [("n", 40), (40, 50), ("n", 50)]),
        ("four", 12, "ia,jb,ijk,kc->cab", [("n", 10), (16, 12), ("n", 16, 20), (20, 8)]),
        ("batch-last", 1500, "bji,bjk->kib", [("n", 4, 4), ("n", 4, 4)]),
        ("heads", 64, "hqd,khd->qhk", [(4, "n", 24), ("n", 4, 24)]),
    )
    for case in both(f"einsum/{name}", n, [normal(*shape) for shape in shapes], partial(einsum, text))
]
CONTRACTIONS = [
    *EINSUMS,
    *both(
        "product/tensordot",
        30,
        [normal("n", 24, 20), normal(20, 32, "n")],
        lambda xp, a, b: xp.tensordot(a, b, axes=([2, 0], [0, 2])),
    ),
    *both("product/covariances", 3000, [normal("n", 3, 3), normal("n", 3)], covariances),
    *both(
        "product/batch-of-8x8-relu",
        500,
        [normal("n", 8, 8), normal("n", 8, 8), normal(8)],
        lambda xp, a, b, c: xp.maximum(a @ b + c, 0),
    ),
    *both("product/batch-of-2x2", 12_000, [normal("n", 2, 2)] * 2, lambda xp, a, b: a @ b),
    *both("product/inverses-2x2", 8000, [uniform(1, 2, "n", 2, 2)], inverses),
    *both("product/cross-of-rows", 40_000, [normal(3, "n")] * 2, lambda xp, a, b: xp.cross(a, b, axis=0)),
    *both("pairs/gaussians", 150, [normal("n", 3)] * 2, gaussians),
    *both("pairs/distances", 160, [normal("n", 32)] * 2, distances),
    *both("pairs/forces", 100, [normal("n", 3), normal("n")], forces),
]
