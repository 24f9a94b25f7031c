"""Rows that are read and written at places that are data: an embedding table and its gradient."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison


def _table(rng: np.random.Generator, rows: int, columns: int, count: int) -> Arguments:
    return rng.standard_normal((rows, columns), np.float32), rng.integers(0, rows, count)


def _updates(rng: np.random.Generator, rows: int, columns: int, count: int) -> Arguments:
    table, places = _table(rng, rows, columns, count)
    return table, places, rng.standard_normal((count, columns), np.float32)


def gather_rows(xp: ModuleType, table, places):
    """Rows of a table."""
    return table[places]


def scatter_add(xp: ModuleType, table, places, updates):
    """Rows added into zeros, in the shape of a table."""
    return xp.zeros(table.shape, table.dtype).at[places].add(updates)


def _scatter_add_numpy(table, places, updates):
    result = np.zeros(table.shape, updates.dtype)
    np.add.at(result, places, updates)
    return result


def _scatter_add_torch(table, places, updates):
    import torch

    return torch.zeros_like(table).index_add(0, places, updates)


ADD = {"numpy": _scatter_add_numpy, "torch": _scatter_add_torch, "numba": "scatter_add"}
LARGE, SMALL = (50_000, 256, 16_384), (20, 6, 50)

WORKLOADS = (
    Comparison(
        "indexing/gather-rows",
        Goal(1),
        _table,
        LARGE,
        SMALL,
        gather_rows,
        {"numba": "gather_rows"},
        against="numpy",
        tolerance=1e-6,
        needs="take",
    ),
    Comparison(
        "indexing/scatter-add",
        Goal(5),
        _updates,
        LARGE,
        SMALL,
        scatter_add,
        ADD,
        against="numpy",
        tolerance=1e-5,
        needs="take",
    ),
)
