"""What a new process costs: the first call, imports, memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import cache

from benchmarks.harness import Goal, Row, Settings
from benchmarks.import_time import once
from benchmarks.peers import PEERS
from benchmarks.workload import Measurement, fewer

STEPS = ("numpy", "jax", "torch", "torch.compile")
Runs = dict[str, list[dict[str, float]]]


def _child(name: str, cache_directory: str, small: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.child", name, *["--small"] * small]
    places = {"HARP_CACHE_DIR": cache_directory, "TORCHINDUCTOR_CACHE_DIR": cache_directory}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **places})
    if done.returncode:
        raise RuntimeError(f"{name} in a new process: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


@cache
def runs(settings: Settings) -> tuple[Runs, Runs]:
    """Processes that find an empty cache, and processes that find what these left there."""
    cold: Runs = defaultdict(list)
    warm: Runs = defaultdict(list)
    for turn in range(fewer(settings, 3).rounds):
        for name in ("harp", *(n for n in settings.peers if n in STEPS)):
            if turn and name == "torch.compile":  # half a minute and more each time
                continue
            with tempfile.TemporaryDirectory(prefix="harp-bench-") as directory:
                cold[name].append(_child(name, directory, settings.quick))
                for _ in range(fewer(settings, 3).rounds):
                    warm[name].append(_child(name, directory, settings.quick))
    return cold, warm


def _of(found: Runs, what: str) -> dict[str, list[float]]:
    return {name: [run[what] for run in results] for name, results in found.items()}


def first_cold(settings: Settings, row: Row) -> None:
    """With an empty cache; the compiler of harp has to be found and examined too."""
    row.take(_of(runs(settings)[0], "first"))
    if "jax" in row.medians:
        row.figure = row.medians["jax"] / row.medians["harp"]


def first_cached(settings: Settings, row: Row) -> None:
    """With what an earlier process left on disk."""
    row.take(_of(runs(settings)[1], "first"))
    row.figure, row.figure_unit = row.medians["harp"] * 1e3, "ms"


def memory(settings: Settings, row: Row) -> None:
    """The peak of a process that finds its program in the cache and makes eleven steps."""
    row.take(_of(runs(settings)[1], "peak_mib"))
    row.unit = "MiB"
    others = [value for name, value in row.medians.items() if name != "harp"]
    row.figure = min(others) / row.medians["harp"] if others else None


def imports(settings: Settings, row: Row) -> None:
    """What `import` of each package costs beyond that of numpy."""
    packages = dict.fromkeys(["numpy", "harp", *(PEERS[name].package for name in settings.peers)])
    times: dict[str, list[float]] = {package: [] for package in packages}
    for turn in range(fewer(settings, 7).rounds + 1):
        for package in packages:
            seconds = once(package) / 1e3
            if turn or settings.quick:  # the first reads byte code from the disk
                times[package].append(seconds)
    beyond = statistics.median(times.pop("numpy"))
    row.take({package: [max(0.0, t - beyond) for t in taken] for package, taken in times.items()})
    row.figure, row.figure_unit = row.medians["harp"] * 1e3, "ms"


WORKLOADS = (
    Measurement("first-call/cold-cache", Goal(1.0), first_cold),
    Measurement("first-call/disk-cache", Goal(30, "<=", "ms"), first_cached),
    Measurement("process/import", Goal(30, "<=", "ms"), imports),
    Measurement("process/memory", None, memory),
)
