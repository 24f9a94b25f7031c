"""The loops that a numba user would write. Without numba they are slow Python, which the tests run."""

from __future__ import annotations

import math

import numpy as np

try:
    from numba import prange
except ImportError:
    prange = range

A, B = 2.5, -0.75
COEFFICIENTS = tuple((-1) ** k / (k + 1) for k in range(200))
_TABLE = np.array(COEFFICIENTS)


def tanh_exp(x, w):
    result = np.empty_like(x)
    for i in prange(x.size):
        result[i] = math.tanh(x[i]) * w[i] + math.exp(-x[i] * x[i])
    return result


def axpby(x, z):
    result = np.empty_like(x)
    a, b = np.float32(A), np.float32(B)
    for i in prange(x.size):
        result[i] = a * x[i] + b * z[i]
    return result


def horner(x):
    result = np.empty_like(x)
    for i in prange(x.size):
        total = x[i] * _TABLE[0] + _TABLE[1]
        for k in range(2, _TABLE.size):
            total = total * x[i] + _TABLE[k]
        result[i] = total
    return result


def gather_rows(table, places):
    result = np.empty((places.size, table.shape[1]), table.dtype)
    for k in prange(places.size):
        result[k] = table[places[k]]
    return result


def scatter_add(table, places, updates):
    result = np.zeros(table.shape, table.dtype)
    for k in range(places.size):
        result[places[k]] += updates[k]
    return result


def sum_all(x):
    rows = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        rows[i] = total
    return np.sum(rows)


def sum_axis1(x):
    result = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        result[i] = total
    return result


def sum_axis0(x):
    strip = 256  # columns that one thread adds up
    result = np.zeros(x.shape[1], x.dtype)
    for part in prange((x.shape[1] + strip - 1) // strip):
        first, last = part * strip, min((part + 1) * strip, x.shape[1])
        for i in range(x.shape[0]):
            for j in range(first, last):
                result[j] += x[i, j]
    return result


def logsumexp(x):
    result = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - top)
        result[i] = top + math.log(total)
    return result


def softmax(x):
    result = np.empty_like(x)
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            result[i, j] = math.exp(x[i, j] - top)
            total += result[i, j]
        for j in range(x.shape[1]):
            result[i, j] /= total
    return result


def layer_norm(x, scale, shift):
    result = np.empty_like(x)
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / np.float32(x.shape[1])
        square = np.float32(0)
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        factor = np.float32(1) / math.sqrt(square / np.float32(x.shape[1]) + np.float32(1e-5))
        for j in range(x.shape[1]):
            result[i, j] = (x[i, j] - mean) * factor * scale[j] + shift[j]
    return result


def cumsum(x):
    result = np.empty_like(x)
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
            result[i, j] = total
    return result


def maxwell(ex, ey, ez, hx, hy, hz, damping):
    ex, ey, ez, hx, hy, hz = ex.copy(), ey.copy(), ez.copy(), hx.copy(), hy.copy(), hz.copy()
    n, m, p = ex.shape
    c = np.float32(0.5)
    for i in prange(n):
        for j in range(m):
            if j < m - 1:
                for k in range(p - 1):
                    hx[i, j, k] += c * ((ey[i, j, k + 1] - ey[i, j, k]) - (ez[i, j + 1, k] - ez[i, j, k]))
            if i < n - 1:
                for k in range(p - 1):
                    hy[i, j, k] += c * ((ez[i + 1, j, k] - ez[i, j, k]) - (ex[i, j, k + 1] - ex[i, j, k]))
            if i < n - 1 and j < m - 1:
                for k in range(p):
                    hz[i, j, k] += c * ((ex[i, j + 1, k] - ex[i, j, k]) - (ey[i + 1, j, k] - ey[i, j, k]))
    layer = damping.size
    for i in prange(n):
        factor = np.float32(1)
        if i < layer:
            factor = factor * damping[i]
        if i >= n - layer:
            factor = factor * damping[n - 1 - i]
        for j in range(m):
            for k in range(p):
                x, y, z = ex[i, j, k], ey[i, j, k], ez[i, j, k]
                if j > 0 and k > 0:
                    x += c * ((hz[i, j, k] - hz[i, j - 1, k]) - (hy[i, j, k] - hy[i, j, k - 1]))
                if i > 0 and k > 0:
                    y += c * ((hx[i, j, k] - hx[i, j, k - 1]) - (hz[i, j, k] - hz[i - 1, j, k]))
                if i > 0 and j > 0:
                    z += c * ((hy[i, j, k] - hy[i - 1, j, k]) - (hx[i, j, k] - hx[i, j - 1, k]))
                across, along = j == 0 or j == m - 1, k == 0 or k == p - 1
                ex[i, j, k] = np.float32(0) if across or along else x * factor
                ey[i, j, k] = np.float32(0) if along else y * factor
                ez[i, j, k] = np.float32(0) if across else z * factor
    return ex, ey, ez, hx, hy, hz
