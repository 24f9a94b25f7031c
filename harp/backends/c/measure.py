"""How fast the processor is: copies of a large array by all threads, and multiply-adds in registers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from harp.backends.options import CompileOptions
from harp.backends.protocol import Limits, Source, Unit
from harp.backends.runtime.load import Library, build_and_load
from harp.backends.toolchain import machine
from harp.backends.toolchain.toolchain import find_toolchain
from harp.errors import ToolchainError
from harp.trace.scalar.dtypes import DType, f32, f64

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# More than caches hold: bytes that a copy reads.
_COPIED = 64 << 20
_TIMES = 7
# Many short runs of arithmetic: where others use the machine, some are not interrupted.
_SHORT_TIMES, _SECONDS = 24, 1e-3
# Multiply-adds of a step: see `linalg/multiply_adds.c`.
_CHAINS = 12
_FUSED = "-ffp-contract=fast"


def limits_key(threads: int) -> str:
    """What the limits depend on."""
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
    try:
        # It cannot be imported when Python ends, and logs, so it is not imported with the backend.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            single, double = (_multiply_adds(library, dtype, lanes, pool, threads) for dtype, lanes in names.items())
            return Limits(_copy(pool, threads), single, double)
    except RuntimeError as error:  # no threads are started any more
        raise ToolchainError(
            f"the speed of the processor cannot be measured: {error}; profile the function before Python ends"
        ) from None


def _unit(dtype: DType, lanes: int) -> Unit:
    macros = {"HARP_T": "float" if dtype is f32 else "double", "HARP_DTYPE": dtype.name, "HARP_LANES": lanes}
    lines = [*(f"#define {name} {value}" for name, value in macros.items()), '#include "linalg/multiply_adds.c"', ""]
    return Unit("\n".join(lines), (_FUSED,), shared=True)


def _multiply_adds(library: Library, dtype: DType, lanes: int, pool: ThreadPoolExecutor, threads: int) -> float:
    """Multiplications and additions in a second."""
    function = library.function(f"harp_multiply_adds_{dtype.name}_x{lanes}", "double(*)(int64_t, double, double)")
    steps = 1 << 12
    while _fastest(partial(function, steps, 0.5, 0.25), 1) < _SECONDS:
        steps *= 2
    seconds = _fastest(lambda: list(pool.map(function, [steps] * threads, repeat(0.5), repeat(0.25))), _SHORT_TIMES)
    return 2.0 * _CHAINS * lanes * steps * threads / seconds


def _copy(pool: ThreadPoolExecutor, threads: int) -> float:
    """Bytes read and written in a second."""
    source = np.ones(_COPIED, np.uint8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    seconds = _fastest(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))
    return 2.0 * _COPIED / seconds


def _fastest(run: Callable[[], object], times: int = _TIMES) -> float:
    """Seconds. The first run, which is one more, does not count."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)
