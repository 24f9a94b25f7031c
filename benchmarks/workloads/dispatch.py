"""What a call costs where there is next to nothing to compute."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison


def _four(rng: np.random.Generator, count: int) -> Arguments:
    return (np.arange(count, dtype=np.float32),)


def _dict(rng: np.random.Generator, count: int) -> Arguments:
    return ({f"w{k}": np.full(4, k, np.float32) for k in range(count)},)


def _add_one(xp: ModuleType, x):
    return x + 1


def _sum_of_dict(xp: ModuleType, arrays):
    return sum(arrays.values())


def _dict_to_dict(xp: ModuleType, arrays):
    return {name: array + 1 for name, array in arrays.items()}


def _in_microseconds(name: str, goal: float, arguments, count: int, function) -> Comparison:
    limit = Goal(goal, "<=", "us")
    return Comparison(f"dispatch/{name}", limit, arguments, (count,), (count,), function, in_harp_seconds=True)


WORKLOADS = (
    _in_microseconds("add-one", 1.5, _four, 4, _add_one),
    _in_microseconds("dict-of-10", 8, _dict, 10, _sum_of_dict),
    _in_microseconds("dict-of-10-to-dict", 8, _dict, 10, _dict_to_dict),
)
