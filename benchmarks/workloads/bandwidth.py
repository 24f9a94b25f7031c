"""How much of the memory's bandwidth harp uses, beside a sum and a triad in C that run in turns with it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Goal, Row, Settings, interleaved
from benchmarks.workload import Comparison, Measurement
from benchmarks.workloads import elementwise, reductions

SOURCE = """
#pragma GCC visibility push(default)
void triad(float *restrict to, const float *restrict x, const float *restrict z, long count) {
    for (long i = 0; i < count; i++) to[i] = 2.5f * x[i] + -0.75f * z[i];
}
typedef float vector __attribute__((vector_size(64), aligned(4), may_alias));
float read_all(const float *x, long count) {
    vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    const vector *v = (const vector *)x;
    long i = 0;
    for (; i + 128 <= count; i += 128, v += 8) {
        s0 += v[0], s1 += v[1], s2 += v[2], s3 += v[3];
        s4 += v[4], s5 += v[5], s6 += v[6], s7 += v[7];
    }
    s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;
    float total = 0;
    for (int k = 0; k < 16; k++) total += s0[k];
    for (; i < count; i++) total += x[i];
    return total;
}
"""


@cache
def library() -> ctypes.CDLL:
    """The loops above by harp's compiler."""
    from harp.backends.toolchain.toolchain import base_flags, find_toolchain

    toolchain = find_toolchain()
    if toolchain is None:
        raise RuntimeError("there is no C compiler")
    with tempfile.TemporaryDirectory(prefix="harp-bench-") as directory:
        source, made = Path(directory, "loops.c"), Path(directory, "loops.so")
        source.write_text(SOURCE)
        flags = (*base_flags(toolchain), "-O3", "-shared", "-o", str(made), str(source))
        subprocess.run((*toolchain.command, *flags), check=True, capture_output=True)
        loaded = ctypes.CDLL(os.fspath(made))
    loaded.read_all.restype = ctypes.c_float
    return loaded


def _parts(function: Callable[..., object], arrays: list[np.ndarray], threads: int) -> list[Callable[[], object]]:
    """The loop on one part of the arrays for each thread."""
    step, found = -(-arrays[0].size // threads), []
    for start in range(0, arrays[0].size, step):
        cut = [array.reshape(-1)[start : start + step] for array in arrays]
        pointers = [ctypes.c_void_p(part.ctypes.data) for part in cut]
        found.append(partial(function, *pointers, ctypes.c_long(cut[0].size)))
    return found


def _together(parts: list[Callable[[], object]]) -> Callable[[], object]:
    if len(parts) == 1:
        return parts[0]
    pool = ThreadPoolExecutor(len(parts))  # ctypes releases the GIL
    return lambda: [done.result() for done in [pool.submit(part) for part in parts]]


def measure(workload: Comparison, reads_only: bool, settings: Settings, row: Row) -> None:
    """Both move the same bytes once, so that the ratio of their times is that of their bandwidths."""
    arguments = [np.asarray(argument) for argument in workload.make(settings.quick)]
    loop = "read_all" if reads_only else "triad"
    arrays = arguments if reads_only else [np.zeros_like(arguments[0]), *arguments]
    calls = {
        "harp": workload.call("harp", tuple(arguments), settings.threads),
        loop: _together(_parts(getattr(library(), loop), arrays, settings.threads)),
    }
    row.take(interleaved(calls, settings))
    row.figure = row.medians[loop] / row.medians["harp"]
    moved = sum(array.nbytes for array in arrays) / 1e9
    speeds = [f"{name} {moved / row.medians[name]:.1f} GB/s" for name in (loop, "harp")]
    row.notes.append(", ".join(speeds))


def _workloads() -> list[Measurement]:
    named = {workload.name: workload for workload in (*elementwise.WORKLOADS, *reductions.WORKLOADS)}
    reads = {"elementwise/axpby-10M": False, **{f"reductions/sum-{k}": True for k in ("all", "axis0", "axis1")}}
    found = []
    for name, reads_only in reads.items():
        short = name.split("/")[1]
        found.append(Measurement(f"bandwidth/{short}", Goal(0.85), partial(measure, named[name], reads_only)))
    return found


WORKLOADS = tuple(_workloads())
