"""How a profile is made: a program with clocks round its kernels runs some times, and its costs are set beside that,
and beside how fast the device is.

Others may use the device meanwhile, so one measurement of it is not enough: the cache remembers the best that was
measured, by the first few processes that asked.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence

from harp import backends
from harp.backends.devices import known_device
from harp.backends.options import CompileOptions
from harp.backends.protocol import Backend, Limits, TimedExecutable
from harp.backends.runtime.pool import usable_cores
from harp.backends.toolchain import cache
from harp.config import log, settings
from harp.errors import ToolchainError
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Kernel
from harp.lower.pipeline import Lowered, lower
from harp.lower.report.operations import KernelCost
from harp.lower.report.report import Cost, report
from harp.progress import announced
from harp.trace.graph.graph import Graph
from harp.trace.scalar.dtypes import c128, f64
from harp.trace.sizes.signature import canonical, sizes_of
from harp.transforms.jit.profile import KernelProfile, Profile, Round, profile_of
from harp.transforms.jit.programs import CompiledProgram, backend_name

_WARM = 2
# Rounds run until this many seconds are over, but at least and at most so many.
_SECONDS, _LEAST, _MOST = 0.5, 5, 50


class Profiling:
    """A timed program in place of the normal one; donated arguments are not taken from the caller."""

    backend: Backend
    device: str
    lowered: Lowered
    kernel: TimedExecutable

    def program(
        self,
        graph: Graph,
        options: CompileOptions,
        donated: tuple[int, ...],
        check: bool,
        device: str | None,
        _: Sequence[int] | None,
    ) -> CompiledProgram:
        """The timed program, in place of that of `program_for`. Raises ToolchainError, DeviceError."""
        renamed = canonical(graph)
        self.backend = backends.get(backend_name(device))
        self.device = known_device(device or settings.device)
        target = self.backend.target()
        if target is None:
            raise ToolchainError(
                "there is no C compiler, and NumPy's interpreter has no kernels whose time could be taken; "
                "`python -m harp doctor` says how to get one"
            )
        self.lowered = lower(renamed, target, (), check)
        self.kernel = self.backend.timed(self.lowered.program, options)
        sizes = len(sizes_of(renamed))
        return CompiledProgram(renamed, self.kernel, sizes, checked=check, accesses=self.lowered.program.accesses)

    def profile(self, name: str, sizes: Sequence[int], threads: int | None, run: Callable[[], object]) -> Profile:
        """The profile of a call, which `run` does, with these sizes."""
        known = limits(self.backend, threads or settings.threads or usable_cores())
        for _ in range(_WARM):
            run()
        rounds: list[Round] = []
        end = time.monotonic() + _SECONDS
        while len(rounds) < _LEAST or (time.monotonic() < end and len(rounds) < _MOST):
            began = time.monotonic_ns()
            run()
            rounds.append(Round(began, time.monotonic_ns(), tuple(self.kernel.spans)))
        program = self.lowered.program
        cost = report(self.lowered.algorithm, program.sizes, [""] * len(sizes), sizes).at()
        calls = list(zip((call.kernel for call in program.calls), self._calls(cost), strict=True))
        return profile_of(
            name, self.device, known, calls, rounds, cost.exact and not any(kernel.loops for kernel in cost.kernels)
        )

    def _calls(self, cost: Cost[int]) -> list[KernelProfile]:
        """The calls of the program, without times. A checked program begins with a call that clears its fault."""
        kernels = self.lowered.algorithm.kernels
        before = len(self.lowered.program.calls) - len(kernels)
        fault_call = KernelProfile("no fault", None, 0, 0.0, 0, 0, False)
        return [fault_call] * before + [_static_profile(k, c) for k, c in zip(kernels, cost.kernels, strict=True)]


def _static_profile(kernel: Kernel, cost: KernelCost[int]) -> KernelProfile:
    """The costs of a kernel. It moves no more bytes than its arrays have, and no more than it reads and writes."""
    is_double = any(buffer.dtype in (f64, c128) for buffer in effects(kernel.body).touched)
    if cost.loops:
        return KernelProfile(cost.name, cost.site, 0, 0.0, None, None, is_double)
    moved = min(cost.arrays, cost.bytes_read + cost.bytes_written)
    return KernelProfile(cost.name, cost.site, 0, 0.0, moved, cost.operations, is_double)


# The version of the measurement, a part of the cache key: to be raised when the measurement changes.
_WAY = 1
_SUFFIX = ".json"
_MEASUREMENTS = 4
_measured: set[str] = set()  # by this process


def limits(backend: Backend, threads: int) -> Limits:
    """The limits of a backend's device, for a CPU with so many threads. Raises ToolchainError, DeviceError."""
    subject = f"{_WAY}\0{backend.limits_key(threads)}"
    key = f"limits-{hashlib.sha256(subject.encode(errors='surrogateescape')).hexdigest()}"
    times, best = _remembered(key)
    if best is not None and (times >= _MEASUREMENTS or key in _measured):
        return best
    with announced("measuring how fast the device is"):
        now = backend.measure(threads)
    best = now if best is None else _best(best, now)
    _measured.add(key)
    cache.put(key, _SUFFIX, json.dumps([key, times + 1, *best]).encode())
    return best


def _best(a: Limits, b: Limits) -> Limits:
    double = None if a.float64 is None or b.float64 is None else max(a.float64, b.float64)
    return Limits(max(a.copy, b.copy), max(a.float32, b.float32), double)


def _remembered(key: str) -> tuple[int, Limits | None]:
    """The number of measurements in the cache, and the best result."""
    content = cache.get(key, _SUFFIX)
    if content is None:
        return 0, None
    try:
        own, times, copy, single, double = json.loads(content)
        speeds = (copy, single, 1.0 if double is None else double)
        if own == key and type(times) is int and all(type(speed) is float and speed > 0 for speed in speeds):
            return times, Limits(copy, single, double)
    except (ValueError, TypeError, RecursionError) as error:
        log.debug("limits %s cannot be read: %s", key, error)
    return 0, None
