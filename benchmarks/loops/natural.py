"""The loops of this group as a numba user would write them. Without numba they are slow Python, which the tests run."""

from __future__ import annotations

import math

import numpy as np


def lorenz(start, pushes):
    x, y, z = start[0], start[1], start[2]
    result = np.empty_like(pushes)
    for t in range(pushes.size):
        dx, dy, dz = 10 * (y - x) + pushes[t], x * (28 - z) - y, x * y - 2.5 * z
        x, y, z = x + 0.001 * dx, y + 0.001 * dy, z + 0.001 * dz
        result[t] = x
    return result


def matrix_chain(matrices):
    made, new = np.eye(4), np.empty((4, 4))
    for t in range(matrices.shape[0]):
        for i in range(4):
            for j in range(4):
                total = 0.0
                for k in range(4):
                    total += made[i, k] * matrices[t, k, j]
                new[i, j] = total
        made, new = new, made
    return made


def recurrent(w, xs):
    steps, batch, units = xs.shape
    h = np.zeros((batch, units), xs.dtype)
    total = np.empty(units, xs.dtype)
    for t in range(steps):
        for b in range(batch):
            for j in range(units):
                total[j] = xs[t, b, j]
            for k in range(units):
                for j in range(units):
                    total[j] += h[b, k] * w[k, j]
            for j in range(units):
                h[b, j] = math.tanh(total[j])
    return h


def ring(start, pushes):
    state, new = start.copy(), np.empty_like(start)
    n = state.size
    for t in range(pushes.size):
        for k in range(n):
            new[k] = state[k] + 0.001 * (state[(k + 1) % n] - state[k]) * state[k - 1]
        new[0] += 0.001 * pushes[t]
        state, new = new, state
    return state


def newton(c):
    x = np.ones_like(c)
    while True:
        worst = 0.0
        for i in range(c.size):
            worst = max(worst, abs(x[i] * math.exp(x[i]) - c[i]))
        if worst <= 1e-12:
            return x
        for i in range(c.size):
            x[i] -= (x[i] * math.exp(x[i]) - c[i]) / ((x[i] + 1) * math.exp(x[i]))


def tridiagonal(rhs, lower, diagonal, upper):
    n, m, size = rhs.shape
    result = np.empty_like(rhs)
    ratio = np.empty(size)
    for i in range(n):
        for j in range(m):
            ratio[0] = upper[0] / diagonal[0]
            result[i, j, 0] = rhs[i, j, 0] / diagonal[0]
            for k in range(1, size):
                pivot = diagonal[k] - lower[k] * ratio[k - 1]
                ratio[k] = upper[k] / pivot
                result[i, j, k] = (rhs[i, j, k] - lower[k] * result[i, j, k - 1]) / pivot
            for k in range(size - 2, -1, -1):
                result[i, j, k] -= ratio[k] * result[i, j, k + 1]
    return result


def heat_1d(steps):
    def run(u):
        u, new = u.copy(), u.copy()
        for _ in range(steps):
            for i in range(1, u.size - 1):
                new[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1])
            u, new = new, u
        return u

    return run


def heat_2d(steps):
    def run(u):
        u, new = u.copy(), u.copy()
        n, m = u.shape
        for _ in range(steps):
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                    new[i, j] = u[i, j] + 0.2 * (around - 4 * u[i, j])
            u, new = new, u
        return u

    return run


def heat_3d(steps):
    def run(u):
        u, new = u.copy(), u.copy()
        n, m, p = u.shape
        for _ in range(steps):
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    for k in range(1, p - 1):
                        around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                        around += u[i, j, k - 1] + u[i, j, k + 1]
                        new[i, j, k] = u[i, j, k] + 0.1 * (around - 6 * u[i, j, k])
            u, new = new, u
        return u

    return run


def edit_distance(a, b):
    before, row = np.arange(b.size + 1), np.empty(b.size + 1, np.int64)
    for i in range(a.size):
        row[0] = i + 1
        for j in range(b.size):
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + (a[i] != b[j]))
        before, row = row, before
    return before[b.size]


def lu(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            a[i, k] = factor
    return a


def cholesky(a):
    n = a.shape[0]
    root = np.zeros_like(a)
    for j in range(n):
        for i in range(j, n):
            total = a[i, j]
            for k in range(j):
                total -= root[i, k] * root[j, k]
            root[i, j] = math.sqrt(total) if i == j else total / root[j, j]
    return root


def gram_schmidt(a):
    q = a.copy()
    n = q.shape[0]
    for i in range(n):
        total = 0.0
        for k in range(n):
            total += q[i, k] * q[i, k]
        factor = 1 / math.sqrt(total)
        for k in range(n):
            q[i, k] *= factor
        for j in range(i + 1, n):
            total = 0.0
            for k in range(n):
                total += q[i, k] * q[j, k]
            for k in range(n):
                q[j, k] -= total * q[i, k]
    return q


def floyd_warshall(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d
