"""The number of threads, set where all libraries see it: the environment and the CPUs of a process, before imports."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

VARIABLES = (
    "HARP_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
)


def cpus() -> list[int]:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def variables(threads: int) -> dict[str, str]:
    """The environment of a process that measures with this number of threads."""
    found = {**os.environ, **dict.fromkeys(VARIABLES, str(threads))}
    found["JAX_PLATFORMS"] = "cpu"
    found.setdefault("HARP_QUICK", "0")  # what is timed is the optimised program, however soon it is called
    found["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of processes that competes with what is timed
    if threads == 1:
        flags = found.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false"
        found["XLA_FLAGS"] = " ".join(flags).strip()
    return found


@contextlib.contextmanager
def affinity(threads: int) -> Iterator[None]:
    """Processes that start meanwhile are bound to the last `threads` CPUs (the first one serves most interrupts)."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-threads:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
