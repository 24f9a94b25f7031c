"""All workloads, in the order of the table."""

from __future__ import annotations

from fnmatch import fnmatch

from benchmarks.workload import Workload
from benchmarks.workloads import (
    bandwidth,
    by_data,
    dispatch,
    elementwise,
    matmul,
    maxwell,
    mlp,
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
    matmul,
    maxwell,
    mlp,
    dispatch,
    processes,
    bandwidth,
    symbolic,
)
WORKLOADS: dict[str, Workload] = {workload.name: workload for module in _MODULES for workload in module.WORKLOADS}


def chosen(words: list[str]) -> list[Workload]:
    """The workloads of these names; part of a name, or a pattern with `*`, stands for all that have it."""
    unknown = [word for word in words if not any(_named(name, word) for name in WORKLOADS)]
    if unknown:
        raise ValueError(f"no workload is called {unknown[0]!r}; --list shows all")
    return [w for name, w in WORKLOADS.items() if not words or any(_named(name, word) for word in words)]


def _named(name: str, word: str) -> bool:
    return name == word if word in WORKLOADS else word in name or fnmatch(name, word)
