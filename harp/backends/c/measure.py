"""How fast the CPU is: copies of a large array by all threads, and multiply-adds in registers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harp.backends.options import CompileOptions
from harp.backends.protocol import Limits, Source, Unit
from harp.backends.runtime.load import Library, build_and_load, pointer
from harp.backends.runtime.pool import runtime, threads_of_this_thread
from harp.backends.toolchain import machine
from harp.backends.toolchain.toolchain import find_toolchain
from harp.errors import ToolchainError
from harp.trace.scalar.dtypes import DType, NDArray, f32, f64

# Bytes that a copy reads: more than caches hold.
_COPIED = 64 << 20
_TIMES = 7
# Arithmetic is measured in many short runs: on a busy machine some of them are not interrupted.
_SHORT_TIMES, _SECONDS = 24, 1e-3
# Independent chains of multiply-adds: see `linalg/multiply_adds.c`.
_CHAINS = 12
_FUSED = "-ffp-contract=fast"
# A function that the pool of threads runs.
_PART = "void(*)(void *, int64_t, int64_t)"


def limits_key(threads: int) -> str:
    """The cache key of the limits."""
    toolchain = find_toolchain()
    return f"{machine.facts()}, {toolchain.vector_bytes if toolchain else 0} bytes, {threads} threads"


def measure(threads: int) -> Limits:
    """The limits, in some 100 ms. Raises ToolchainError where there is no compiler."""
    toolchain = find_toolchain()
    if toolchain is None:
        raise ToolchainError("there is no C compiler; `python -m harp doctor` says how to get one")
    names = {dtype: toolchain.vector_bytes // dtype.itemsize for dtype in (f32, f64)}
    units = tuple(_unit(dtype, lanes) for dtype, lanes in names.items())
    library = build_and_load(Source(units), CompileOptions())
    with threads_of_this_thread(threads):
        single, double = (_multiply_adds(library, dtype, lanes, threads) for dtype, lanes in names.items())
        return Limits(_copy_speed(library, names[f32], threads), single, double)


def _unit(dtype: DType, lanes: int) -> Unit:
    macros = {"HARP_T": "float" if dtype is f32 else "double", "HARP_DTYPE": dtype.name, "HARP_LANES": lanes}
    lines = [*(f"#define {name} {value}" for name, value in macros.items()), '#include "linalg/multiply_adds.c"', ""]
    return Unit("\n".join(lines), (_FUSED,), shared=True)


def _multiply_adds(library: Library, dtype: DType, lanes: int, threads: int) -> float:
    """The multiplications and additions per second."""
    parts = library.function(f"harp_multiply_adds_parts_{dtype.name}_x{lanes}", _PART)
    steps = np.array([1 << 12])
    while _fastest(partial(parts, pointer(steps), 0, 1), 1) < _SECONDS:
        steps *= 2
    seconds = _fastest(partial(_run, parts, steps, threads), _SHORT_TIMES)
    return 2.0 * _CHAINS * lanes * int(steps[0]) * threads / seconds


def _copy_speed(library: Library, lanes: int, threads: int) -> float:
    """The bytes read and written per second."""
    source = np.ones(_COPIED, np.uint8)
    target = np.zeros_like(source)
    operands = np.array([target.ctypes.data, source.ctypes.data, _COPIED // threads])
    parts = library.function(f"harp_copy_parts_f32_x{lanes}", _PART)
    return 2.0 * _COPIED / _fastest(partial(_run, parts, operands, threads))


def _run(parts: Callable[..., Any], operands: NDArray, threads: int) -> None:
    """Run this many parts in the pool of threads."""
    pool = runtime()
    if pool is None:
        parts(pointer(operands), 0, threads)
    else:
        pool.function("harp_pool_run", f"void(*)({_PART}, void *, int64_t, double)")(
            parts, pointer(operands), threads, math.inf
        )


def _fastest(run: Callable[[], object], times: int = _TIMES) -> float:
    """The shortest time of several runs, in seconds. An additional first run is not counted."""
    run()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
