"""What a call costs where there is next to nothing to compute."""

from __future__ import annotations

from functools import partial
from types import ModuleType

import numpy as np

from benchmarks.harness import Goal, Row, Settings, interleaved
from benchmarks.peers import PEERS
from benchmarks.workload import Arguments, Comparison, Measurement


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


def _sum_of_exp(xp: ModuleType, x):
    return xp.sum(xp.exp(x))


def _double(xp: ModuleType, x):
    return x + x


def outside_of_jit(function, settings: Settings, row: Row) -> None:
    """Arrays that compute at once, beside NumPy's."""
    namespaces = {name: PEERS[name].xp() for name in ("harp", "numpy") if name in ("harp", *settings.peers)}
    x = np.arange(4, dtype=np.float32)
    arrays = {name: xp.asarray(x) for name, xp in namespaces.items()}
    row.take(interleaved({n: partial(function, xp, arrays[n]) for n, xp in namespaces.items()}, settings))
    row.figure, row.figure_unit = row.medians["harp"] * 1e6, "us"


def _at_once(name: str, goal: float, function) -> Measurement:
    return Measurement(f"dispatch/{name}-at-once", Goal(goal, "<=", "us"), partial(outside_of_jit, function))


WORKLOADS = (
    _at_once("add", 15, _double),
    _at_once("sum-of-exp", 40, _sum_of_exp),
    _in_microseconds("add-one", 1.5, _four, 4, _add_one),
    _in_microseconds("dict-of-10", 8, _dict, 10, _sum_of_dict),
    _in_microseconds("dict-of-10-to-dict", 8, _dict, 10, _dict_to_dict),
)
