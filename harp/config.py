"""What the environment says, the counters behind `harp.stats()`, and the log.

HARP_VERIFY  0 off, 1 between stages, 2 after each pass, 3 also runs the program before and after each pass
HARP_CHECK   1 compares every index with its array, in all functions, as `harp.jit(f, check=True)` does
HARP_THREADS how many threads run parallel loops; 0 for as many as there are cores. Where it is not set, OMP_NUM_THREADS
             is asked, which schedulers of many processes set
HARP_DEVICE  where functions run that do not say otherwise: cpu, or opencl:0 for the first OpenCL device
HARP_WIDE    1 for kernels as wide OpenCL devices need them on all, 0 for those for cores; else each has its own kind
HARP_QUICK   0 compiles each program with optimisation before its first call; else a first call that has little to do
             runs a program that is compiled quickly, and the optimised one takes its place when it is there
HARP_DEBUG   0 quiet, 1 what is compiled, 2 graphs, 3 schedules and loop nests, 4 C source, 5 every pass
HARP_TRACEBACK  full shows the frames of harp in the tracebacks of errors; else they end with the line of the user
None changes any result, but for the last digits of sums in checked programs and on wide devices, which have cache keys
of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module

from harp.errors import ArgumentError
from harp.locks import forkable_lock


class _Log:
    """The logger "harp". Where `logging` has not been imported nobody listens, and only a warning imports it.

    While another thread imports it, it is there without its functions, and nobody listens yet.
    """

    def debug(self, text: str, *values: object) -> None:
        self._write("debug", text, values)

    def info(self, text: str, *values: object) -> None:
        self._write("info", text, values)

    def warning(self, text: str, *values: object) -> None:
        import_module("logging")
        self._write("warning", text, values)

    def _write(self, level: str, text: str, values: tuple[object, ...]) -> None:
        get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
        if get_logger is not None:
            getattr(get_logger("harp"), level)(text, *values, stacklevel=3)


log = _Log()


def _level(name: str, highest: int, default: int = 0) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) < 10  # "²" is a digit, and int has limits
    level = min(int(text), highest) if is_number else default
    if not is_number or int(text) > highest:
        log.warning("%s=%r is not a number from 0 to %d: taken as %d", name, text, highest, level)
    return level


_NAMES = (
    *("HARP_CACHE_DIR", "HARP_CC", "HARP_CC_TIMEOUT", "HARP_CHECK", "HARP_DEBUG", "HARP_DEVICE", "HARP_QUICK"),
    *("HARP_THREADS", "HARP_TRACEBACK", "HARP_VERIFY", "HARP_WIDE"),
)


def _warn_of_unknown() -> None:
    """Warn of settings that are not understood: names that are nearly those of settings, and texts."""
    for name in os.environ:
        if name.startswith("HARP_") and name not in _NAMES:
            nearest = import_module("difflib").get_close_matches(name, _NAMES, n=1, cutoff=0.85)
            if nearest:
                log.warning("harp has no setting %s; the nearest is %s", name, nearest[0])
    if os.environ.get("HARP_TRACEBACK", "").strip() not in ("", "full"):
        log.warning('HARP_TRACEBACK=%r is not "full": ignored', os.environ["HARP_TRACEBACK"])


MOST_THREADS = 256
# The device that all machines have.
CPU = "cpu"


def _threads() -> int:
    """How many threads the environment asks for."""
    if os.environ.get("HARP_THREADS", "").strip():
        return _level("HARP_THREADS", MOST_THREADS)
    outermost = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # behind commas: of nested loops
    return min(int(outermost), MOST_THREADS) if outermost.isascii() and outermost.isdigit() else 0


class Settings:
    """Levels read from the environment at import; tests and users may set them at run time."""

    __slots__ = ("check", "debug", "device", "infinities", "jit", "nans", "quick", "threads", "verify", "wide")

    def __init__(self) -> None:
        self.verify = _level("HARP_VERIFY", 3)
        self.debug = _level("HARP_DEBUG", 5)
        self.check = bool(_level("HARP_CHECK", 1))
        self.threads = _threads()
        self.device = os.environ.get("HARP_DEVICE", "").strip() or CPU
        self.wide = bool(_level("HARP_WIDE", 1)) if os.environ.get("HARP_WIDE", "").strip() else None
        self.quick = bool(_level("HARP_QUICK", 1, default=1))
        self.nans = False  # whether results are searched for NaN, and if so for infinities, too
        self.infinities = False
        self.jit = True  # whether jitted functions are compiled


settings = Settings()
_warn_of_unknown()


def __getattr__(name: str) -> object:
    if name == "update":
        text = (
            "set_threads, default_device, default_dtype and harp.debug.nans; harp.jax.config.update takes JAX's names"
        )
        raise AttributeError(f"harp.config.update is not there: harp's settings are functions, {text}", name=name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


# Called with the number of threads when it changes.
on_threads: list[Callable[[int], None]] = []


def set_threads(count: int) -> None:
    """Run the parallel loops of programs in this many threads, in all functions that do not say otherwise.

    1 starts no thread; 0 stands for as many as there are cores that the process may use, which is also the default,
    unless the environment has `HARP_THREADS` or `OMP_NUM_THREADS`. Results are the same, bit for bit, with any number.

    Raises ArgumentError for anything but a number from 0 to 256.

    >>> set_threads(2)
    """
    if type(count) is not int or not 0 <= count <= MOST_THREADS:
        raise ArgumentError(f"set_threads takes a number from 0 to {MOST_THREADS}, not {count!r}")
    settings.threads = count
    for listener in on_threads:
        listener(count)


# Called when functions that do not say otherwise are to run on another device.
on_device: list[Callable[[], None]] = []


def set_device(device: str) -> None:
    """Say where such functions run from now on."""
    settings.device = device
    for listener in on_device:
        listener()


# Called when it changes what results are searched for, whether functions are compiled, and which dtype floats have.
on_search: list[Callable[[], None]] = []


def search_results(nans: bool, infinities: bool) -> None:
    """Say whether results are searched for NaN and infinities."""
    settings.nans, settings.infinities = nans, infinities
    for listener in on_search:
        listener()


def compile_functions(value: bool) -> None:
    """Say whether jitted functions are compiled."""
    settings.jit = value
    for listener in on_search:
        listener()


def show(level: int, title: str, text: object) -> None:
    """Print one stage of a compilation to the log when HARP_DEBUG asks for it."""
    if settings.debug >= level:
        print(f"--- harp: {title}\n{text}", flush=True)


class Counters:
    """Process-wide counts, safe to bump from several threads."""

    NAMES = (
        *("traces", "programs", "compiler_runs", "cache_hits", "cache_misses"),
        *("kernels_compiled", "kernels_reused", "scratch_bytes"),
        *("bytes_to_devices", "bytes_from_devices"),
    )

    def __init__(self) -> None:
        self._lock = forkable_lock(self)
        self._values = dict.fromkeys(self.NAMES, 0)

    def add(self, name: str, amount: int = 1) -> None:
        """Count something that happened."""
        with self._lock:
            self._values[name] += amount

    def raise_to(self, name: str, value: int) -> None:
        """Keep the largest value seen (peak scratch)."""
        with self._lock:
            self._values[name] = max(self._values[name], value)

    def snapshot(self) -> dict[str, int]:
        """All counts at one moment."""
        with self._lock:
            return dict(self._values)


counters = Counters()


def stats() -> dict[str, int]:
    """Counts since the process started.

    Returns a dict with `traces`, `programs` (made, whether compiled or loaded), `compiler_runs` (one for each library),
    `cache_hits`, `cache_misses` (of the disk cache), `kernels_compiled`, `kernels_reused` (the distinct kernels of
    those libraries, and which of them an earlier library had, too), `scratch_bytes` (the largest scratch memory of any
    one call), `bytes_to_devices` and `bytes_from_devices` (copied between the host and other devices).

    >>> sorted(stats())[:5]
    ['bytes_from_devices', 'bytes_to_devices', 'cache_hits', 'cache_misses', 'compiler_runs']
    >>> sorted(stats())[5:]
    ['kernels_compiled', 'kernels_reused', 'programs', 'scratch_bytes', 'traces']
    """
    return counters.snapshot()
