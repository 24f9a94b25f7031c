"""Sums, and the row functions that consist of reductions and elementwise parts."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison


def matrix(rng: np.random.Generator, rows: int, columns: int) -> Arguments:
    """Numbers between 0 and 1, so that sums do not cancel."""
    return (rng.random((rows, columns), np.float32),)


def scores(rng: np.random.Generator, rows: int, columns: int) -> Arguments:
    """Numbers around 0."""
    return (rng.standard_normal((rows, columns), np.float32),)


def _normed(rng: np.random.Generator, rows: int, columns: int) -> Arguments:
    return (*scores(rng, rows, columns), *(rng.standard_normal(columns, np.float32) for _ in range(2)))


def sum_all(xp: ModuleType, x):
    """The sum of all elements."""
    return xp.sum(x)


def _complex(rng: np.random.Generator, count: int) -> Arguments:
    """Two vectors around 0."""
    return tuple(rng.standard_normal(2 * count, np.float32).view(np.complex64) for _ in range(2))


def product_sum(xp: ModuleType, p, q):
    """The sum of the products of complex numbers."""
    return xp.sum(p * q)


def sum_axis0(xp: ModuleType, x):
    """The sum of each column."""
    return xp.sum(x, axis=0)


def sum_axis1(xp: ModuleType, x):
    """The sum of each row."""
    return xp.sum(x, axis=1)


def _top(xp: ModuleType, x):
    return xp.amax(x, axis=1, keepdims=True)


def logsumexp(xp: ModuleType, x):
    """By rows, with the namespace's own function where it has one."""
    if hasattr(xp, "logsumexp"):
        return xp.logsumexp(x, 1)
    top = _top(xp, x)
    return (xp.log(xp.sum(xp.exp(x - top), axis=1, keepdims=True)) + top)[:, 0]


def softmax(xp: ModuleType, x):
    """By rows, with the namespace's own function where it has one."""
    if hasattr(xp, "softmax"):
        return xp.softmax(x, 1)
    raised = xp.exp(x - _top(xp, x))
    return raised / xp.sum(raised, axis=1, keepdims=True)


def layer_norm(xp: ModuleType, x, scale, shift):
    """Rows with mean 0 and variance 1, then scaled and shifted."""
    centred = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centred * centred, axis=1, keepdims=True)
    return centred / xp.sqrt(variance + 1e-5) * scale + shift


def _layer_norm_torch(x, scale, shift):
    from torch.nn.functional import layer_norm as own

    return own(x, scale.shape, scale, shift, 1e-5)


def cumsum(xp: ModuleType, x):
    """Running sums along each row."""
    return xp.cumsum(x, axis=1)


def _sum_numexpr(axis: int | None):
    def function(x):
        import numexpr

        return numexpr.evaluate("sum(x)" if axis is None else f"sum(x, axis={axis})", {"x": x}, {})

    return function


def _sum(axis: int | None, numba: str) -> dict[str, object]:
    return {"numba": numba, "numexpr": _sum_numexpr(axis)}


NORM = {"numba": "layer_norm", "torch": _layer_norm_torch}
LARGE, ROWS, SMALL = (4096, 4096), (4096, 1024), (16, 24)

WORKLOADS = (
    Comparison("reductions/sum-all", Goal(1.1), matrix, LARGE, SMALL, sum_all, _sum(None, "sum_all")),
    Comparison("reductions/sum-axis0", Goal(1.1), matrix, LARGE, SMALL, sum_axis0, _sum(0, "sum_axis0")),
    Comparison("reductions/sum-axis1", Goal(1.1), matrix, LARGE, SMALL, sum_axis1, _sum(1, "sum_axis1")),
    Comparison("reductions/logsumexp", Goal(1.1), scores, ROWS, SMALL, logsumexp, {"numba": "logsumexp"}),
    Comparison("reductions/layer-norm", Goal(1.1), _normed, ROWS, SMALL, layer_norm, NORM),
    Comparison("reductions/softmax", Goal(1.0), scores, ROWS, SMALL, softmax, {"numba": "softmax"}),
    Comparison("complex/product-sum", Goal(2), _complex, (4_000_000,), (300,), product_sum, {}, against="numpy"),
    Comparison("scan/cumsum", Goal(4), matrix, (1000, 10_000), SMALL, cumsum, {"numba": "cumsum"}, needs="cumsum"),
    Comparison("scan/cumsum-one-row", Goal(1), matrix, (1, 10_000_000), SMALL, cumsum, {"numba": "cumsum"}),
)
