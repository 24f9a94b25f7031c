"""Factorisations and shortest paths, written as loops over rows that are changed in place."""

from __future__ import annotations

import numpy as np

from benchmarks.blind.spelling import at
from benchmarks.loops import natural
from benchmarks.loops.spelling import Array, Namespace, both, control, forward
from benchmarks.workload import Arguments, Comparison


def _square(rng: np.random.Generator, n: int) -> Arguments:
    return (rng.standard_normal((n, n)) + 3 * np.sqrt(n) * np.eye(n),)


def _positive(rng: np.random.Generator, n: int) -> Arguments:
    a = rng.standard_normal((n, n))
    return (a @ a.T + n * np.eye(n),)


def lu(xp: Namespace, a: Array) -> Array:
    """Both factors in one matrix; each step subtracts an outer product, masked where nothing changes."""
    k = xp.arange(a.shape[0])

    def step(i: Array, a: Array) -> Array:
        factors = xp.where(k > i, a[:, i] / a[i, i], 0.0)
        a = a - factors[:, None] * xp.where(k > i, a[i], 0.0)
        return at(xp, a)[:, i].set(xp.where(k > i, factors, a[:, i]))

    return control(xp).fori_loop(0, a.shape[0], step, xp.asarray(a))


def lu_rows(xp: Namespace, a: Array) -> Array:
    """The same by a loop in a loop: one row is changed at a time."""
    n, loops = a.shape[0], control(xp)
    k = xp.arange(n)

    def column(i: Array, a: Array) -> Array:
        def row(j: Array, a: Array) -> Array:
            factor = a[j, i] / a[i, i]
            return at(xp, a)[j].set(xp.where(k > i, a[j] - factor * a[i], xp.where(k == i, factor, a[j])))

        return loops.fori_loop(i + 1, n, row, a)

    return loops.fori_loop(0, n, column, xp.asarray(a))


def cholesky(xp: Namespace, a: Array) -> Array:
    """One column after the other."""
    k = xp.arange(a.shape[0])

    def step(j: Array, root: Array) -> Array:
        column = a[:, j] - root @ root[j]
        return at(xp, root)[:, j].set(xp.where(k >= j, column / xp.sqrt(column[j]), 0.0))

    return control(xp).fori_loop(0, a.shape[0], step, xp.zeros_like(a))


def lu_elements(xp: Namespace, a: Array) -> Array:
    """The same, one element at a time: three loops, of which two have bounds that are numbers of those round them."""
    n, loops = a.shape[0], control(xp)

    def column(i: Array, a: Array) -> Array:
        def row(j: Array, a: Array) -> Array:
            factor = a[j, i] / a[i, i]

            def element(k: Array, a: Array) -> Array:
                return at(xp, a)[j, k].add(-factor * a[i, k])

            return loops.fori_loop(i + 1, n, element, at(xp, a)[j, i].set(factor))

        return loops.fori_loop(i + 1, n, row, a)

    return loops.fori_loop(0, n, column, xp.asarray(a))


def cholesky_rows(xp: Namespace, a: Array) -> Array:
    """A row of the transposed factor, which is then subtracted from those below, from the diagonal on."""
    n, loops = a.shape[0], control(xp)
    k = xp.arange(n)

    def step(i: Array, a: Array) -> Array:
        root = xp.where(k >= i, a[i] / xp.sqrt(a[i, i]), 0.0)

        def row(j: Array, a: Array) -> Array:
            return at(xp, a)[j].set(xp.where(k >= j, a[j] - root[j] * root, a[j]))

        return loops.fori_loop(i + 1, n, row, at(xp, a)[i].set(root))

    return loops.fori_loop(0, n, step, xp.asarray(a)).T


def cholesky_elements(xp: Namespace, a: Array) -> Array:
    """One element after the other, each less a sum over the elements before."""
    n, loops = a.shape[0], control(xp)

    def row(i: Array, root: Array) -> Array:
        def column(j: Array, root: Array) -> Array:
            total = loops.fori_loop(0, j, lambda k, total: total - root[i, k] * root[j, k], a[i, j])
            return at(xp, root)[i, j].set(total / root[j, j])

        root = loops.fori_loop(0, i, column, root)
        total = loops.fori_loop(0, i, lambda k, total: total - root[i, k] * root[i, k], a[i, i])
        return at(xp, root)[i, i].set(xp.sqrt(total))

    return loops.fori_loop(0, n, row, xp.zeros_like(a))


def gram_schmidt(xp: Namespace, a: Array) -> Array:
    """Orthonormal rows: each is subtracted from those below."""
    k = xp.arange(a.shape[0])

    def step(i: Array, q: Array) -> Array:
        row = q[i] / xp.sqrt(xp.sum(q[i] * q[i]))
        q = q - xp.where(k > i, q @ row, 0.0)[:, None] * row
        return at(xp, q)[i].set(row)

    return control(xp).fori_loop(0, a.shape[0], step, xp.asarray(a))


def gram_schmidt_rows(xp: Namespace, a: Array) -> Array:
    """The same by a loop in a loop."""
    loops = control(xp)

    def step(i: Array, q: Array) -> Array:
        unit = q[i] / xp.sqrt(xp.sum(q[i] * q[i]))

        def row(j: Array, q: Array) -> Array:
            return at(xp, q)[j].add(-(q[j] @ unit) * unit)

        return loops.fori_loop(i + 1, a.shape[0], row, at(xp, q)[i].set(unit))

    return loops.fori_loop(0, a.shape[0], step, xp.asarray(a))


def _distances(rng: np.random.Generator, n: int) -> Arguments:
    return (rng.uniform(1, 100, (n, n)),)


def floyd_warshall(xp: Namespace, d: Array) -> Array:
    """Shortest paths between all pairs."""

    def step(k: Array, d: Array) -> Array:
        return xp.minimum(d, d[:, k][:, None] + d[k])

    return control(xp).fori_loop(0, d.shape[0], step, xp.asarray(d))


SIDE, SMALL = (100,), (6,)
MATRICES: list[Comparison] = [
    *both("matrix/lu", _square, SIDE, SMALL, lu, {"numba": natural.lu}),
    forward("matrix/lu-by-rows", _square, SIDE, SMALL, lu_rows, {"numba": natural.lu}),
    forward("matrix/lu-by-elements", _square, SIDE, SMALL, lu_elements, {"numba": natural.lu}),
    forward("matrix/cholesky-by-rows", _positive, SIDE, SMALL, cholesky_rows, {"numba": natural.cholesky}),
    forward("matrix/gram-schmidt-by-rows", _square, SIDE, SMALL, gram_schmidt_rows, {"numba": natural.gram_schmidt}),
    forward("matrix/cholesky-by-elements", _positive, SIDE, SMALL, cholesky_elements, {"numba": natural.cholesky}),
    *both("matrix/cholesky", _positive, SIDE, SMALL, cholesky, {"numba": natural.cholesky}),
    *both("matrix/gram-schmidt", _square, SIDE, SMALL, gram_schmidt, {"numba": natural.gram_schmidt}),
    *both("matrix/floyd-warshall", _distances, SIDE, SMALL, floyd_warshall, {"numba": natural.floyd_warshall}),
]
