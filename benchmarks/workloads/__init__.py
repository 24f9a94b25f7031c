"""All workloads, in the order of the table."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch

from benchmarks.workload import Workload
from benchmarks.workloads import (
    bandwidth,
    by_data,
    convolutions,
    dispatch,
    elementwise,
    linear_algebra,
    matmul,
    maxwell,
    mlp,
    networks,
    processes,
    random,
    reductions,
    sorting,
    symbolic,
)

_MODULES = (
    elementwise,
    reductions,
    by_data,
    sorting,
    random,
    linear_algebra,
    matmul,
    maxwell,
    mlp,
    convolutions,
    networks,
    dispatch,
    processes,
    bandwidth,
    symbolic,
)
WORKLOADS: dict[str, Workload] = {workload.name: workload for module in _MODULES for workload in module.WORKLOADS}


def chosen(words: list[str], group: Mapping[str, Workload] = WORKLOADS) -> list[Workload]:
    """The workloads of these names; part of a name, or a pattern with `*`, stands for all that have it."""
    unknown = [word for word in words if not any(_named(name, word, group) for name in group)]
    if unknown:
        raise ValueError(f"no workload is called {unknown[0]!r}; --list shows all")
    return [w for name, w in group.items() if not words or any(_named(name, word, group) for word in words)]


def _named(name: str, word: str, group: Mapping[str, Workload]) -> bool:
    return name == word if word in group else word in name or fnmatch(name, word)
