"""Cases that move elements: reshapes, transposes, joins, pads, slices, updates, indices that are data."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.costs.case import Case, bits, both, forward, gradient, integers, normal, piece, pieces

VECTOR = 100_000
JOINED = 50_000  # elements of the result of a concatenation
COUNTS = (2, 8, 64)
SEGMENTS = 1000


def heads(xp, x):
    """The columns of each head: (heads, n, d // heads)."""
    return x.reshape(x.shape[0], 8, x.shape[1] // 8).transpose(1, 0, 2)


def life(xp, x):
    """A step of Conway's game on a torus."""
    near = sum(xp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return xp.where((near == 3) | ((near == 2) & (x == 1)), 1.0, 0.0).astype(x.dtype)


def wave(xp, u, before):
    """A step of the wave equation in the interior of a plane."""
    inner = u[1:-1, 1:-1]
    spread = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner
    return 2 * inner - before[1:-1, 1:-1] + 0.1 * spread


def set_numbers(count, xp, x):
    """Slices of 50 elements become numbers, one after the other."""
    for k in range(count):
        x = x.at[100 * k : 100 * k + 50].set(k)
    return x


def _set_numbers_numpy(count, x):
    x = x.copy()
    for k in range(count):
        x[100 * k : 100 * k + 50] = k
    return x


def set_arrays(count, xp, x, values):
    """Slices of 50 elements become rows of a matrix, one after the other."""
    for k in range(count):
        x = x.at[100 * k : 100 * k + 50].set(values[k])
    return x


def _set_arrays_numpy(count, x, values):
    x = x.copy()
    for k in range(count):
        x[100 * k : 100 * k + 50] = values[k]
    return x


def _set_row_numpy(x, v):
    x = x.copy()
    x[3] = v
    return x


def _set_column_numpy(x, v):
    x = x.copy()
    x[:, 3] = v
    return x


def segment_sums(xp, x, ids):
    """The sum of the elements of each segment."""
    return xp.zeros(SEGMENTS, x.dtype).at[ids].add(x)


def _segment_sums_numpy(x, ids):
    return np.bincount(ids, x, SEGMENTS)


def _segment_maxima_numpy(x, ids, v):
    x = x.copy()
    np.maximum.at(x, ids, v)
    return x


def windows(xp, x):
    """All windows of nine elements, as rows."""
    return x[xp.arange(x.shape[0] - 8)[:, None] + xp.arange(9)]


def _windows_numpy(x):
    return np.lib.stride_tricks.sliding_window_view(x, 9)


def toeplitz(xp, c):
    """The symmetric matrix that has c[k] on the k-th diagonals."""
    i = xp.arange(c.shape[0])
    return c[xp.abs(i[:, None] - i)]


RESHAPES = [
    *gradient("reshape/split", 1000, [normal("n", 64)], lambda xp, x: x.reshape(x.shape[0], 4, 16)),
    *gradient("reshape/split-first-minus-one", 1000, [normal("n", 64)], lambda xp, x: x.reshape(-1, 4, 16)),
    *gradient("reshape/split-middle-minus-one", 1000, [normal("n", 64)], lambda xp, x: x.reshape(x.shape[0], -1, 16)),
    *both("reshape/heads", 1000, [normal("n", 64)], heads),
    *both(
        "reshape/tokens-of-batch",
        200,
        [normal(8, "n", 64)],
        lambda xp, x: (x + 1).reshape(x.shape[0], x.shape[1], 8, x.shape[2] // 8),
    ),
    *both("reshape/sin-transposed-flat", 300, [normal("n", 300)], lambda xp, x: xp.sin(x).T.reshape(-1)),
    *both(
        "reshape/fours-and-back",
        VECTOR,
        [normal("n"), normal(4)],
        lambda xp, x, v: (x.reshape(-1, 4) * v).reshape(-1),
    ),
    *forward("transpose/021", 64, [normal("n", 64, 64)], lambda xp, x: xp.transpose(x, (0, 2, 1))),
    *forward("transpose/210", 64, [normal("n", 64, 64)], lambda xp, x: xp.transpose(x, (2, 1, 0))),
    *forward("transpose/102", 64, [normal("n", 64, 64)], lambda xp, x: xp.transpose(x, (1, 0, 2))),
]

PADS = [
    case
    for mode in ("edge", "wrap", "reflect", "symmetric", "constant")
    for case in both(f"pad/{mode}", 256, [normal("n", 256)], lambda xp, x, mode=mode: xp.pad(x, 3, mode=mode))
]

JOINS = [
    *(
        case
        for k in COUNTS
        for case in (
            *both(f"join/concatenate-{k}", JOINED, [pieces(k)], lambda xp, x: xp.concatenate(x), beside_copy=True),
            *both(f"join/stack-axis0-{k}", JOINED, [pieces(k)], lambda xp, x: xp.stack(x), beside_copy=True),
            *both(f"join/stack-axis1-{k}", JOINED, [pieces(k)], lambda xp, x: xp.stack(x, 1), beside_copy=True),
            *both(f"join/tile-{k}", JOINED, [piece(k)], lambda xp, x, k=k: xp.tile(x, k), beside_copy=True),
        )
    ),
    *both("join/window-of-8", JOINED, [pieces(8)], lambda xp, x: xp.concatenate(x)[5:-5], beside_copy=True),
    *both("join/block", 300, [normal("n", 300)] * 4, lambda xp, a, b, c, d: xp.block([[a, b], [c, d]])),
    *both("join/interleave", VECTOR, [normal("n")] * 2, lambda xp, x, y: xp.stack((x, y), 1).reshape(-1)),
    *both("join/upsample", 256, [normal("n", 256)], lambda xp, x: xp.repeat(xp.repeat(x, 2, 0), 2, 1)),
]

STENCILS = [
    *both("stencil/roll", VECTOR, [normal("n")], lambda xp, x: xp.roll(x, 1) + xp.roll(x, -1) - 2 * x),
    *forward("stencil/life-float32", 512, [bits("n", 512)], life),
    *both("stencil/wave", 256, [normal("n", 256)] * 2, wave),
    *both("stencil/even-plus-odd", VECTOR, [normal("n")], lambda xp, x: x[::2] + x[1::2]),
    *both("stencil/reversed", VECTOR, [normal("n")], lambda xp, x: x[::-1]),
    *both("stencil/windows", VECTOR // 10, [normal("n")], windows, numpy=_windows_numpy),
    *both("stencil/convolve", VECTOR, [normal("n"), normal(9)], lambda xp, x, v: xp.convolve(x, v)),
]

UPDATES = [
    *(
        case
        for k in (10, 40)
        for case in (
            *both(
                f"update/{k}-numbers",
                VECTOR,
                [normal("n")],
                partial(set_numbers, k),
                numpy=partial(_set_numbers_numpy, k),
            ),
            *both(
                f"update/{k}-arrays",
                VECTOR,
                [normal("n"), normal(40, 50)],
                partial(set_arrays, k),
                numpy=partial(_set_arrays_numpy, k),
            ),
        )
    ),
    *both("update/row", 300, [normal("n", 300), normal(300)], lambda xp, x, v: x.at[3].set(v), numpy=_set_row_numpy),
    *both(
        "update/column",
        300,
        [normal("n", 300), normal("n")],
        lambda xp, x, v: x.at[:, 3].set(v),
        numpy=_set_column_numpy,
    ),
    *both(
        "update/segment-sums",
        VECTOR,
        [normal("n"), integers(0, SEGMENTS, "n")],
        segment_sums,
        numpy=_segment_sums_numpy,
    ),
    *forward(
        "update/segment-maxima",
        VECTOR,
        [normal(SEGMENTS), integers(0, SEGMENTS, "n"), normal("n")],
        lambda xp, x, ids, v: x.at[ids].max(v),
        numpy=_segment_maxima_numpy,
    ),
]

GATHERS = [
    *both("gather/rows", 2000, [normal("n", 64), integers(0, "n", "n")], lambda xp, x, ids: x[ids]),
    *both("gather/columns", 2000, [normal("n", 64), integers(0, 64, 64)], lambda xp, x, ids: x[:, ids]),
    *both(
        "gather/outer",
        300,
        [normal("n", 300), integers(0, "n", "n"), integers(0, 300, 300)],
        lambda xp, x, i, j: x[i[:, None], j[None]],
    ),
    *both("gather/diag", 300, [normal("n")], lambda xp, x: xp.diag(x)),
    *both("gather/toeplitz", 300, [normal("n")], toeplitz),
]

MOVES: list[Case] = [*RESHAPES, *PADS, *JOINS, *STENCILS, *UPDATES, *GATHERS]
