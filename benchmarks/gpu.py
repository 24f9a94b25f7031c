"""Programs on an OpenCL device beside what it can do, and beside others: `python -m benchmarks.gpu --device opencl:0`.

For each program: how long a call takes, how long its kernels take by the clock of the device, what these move and
compute in a second, and what share that is of a copy and of the peak. Beside that the same work by harp's C backend,
by pyopencl's own arrays, and by loopy's kernels, where they have it. Arguments lie on the device; calls are timed to
their end, in turns, and medians are shown. Each result is compared with NumPy's first.

It runs on PoCL, too: then the device is the processor.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pyopencl.clmath
from pyopencl.tools import ImmediateAllocator, MemoryPool

import harp
import harp.numpy as hnp
from benchmarks.harness import Call, Settings, interleaved, problem
from benchmarks.report import quantity
from harp import errors
from harp.backends.devices import known_device
from harp.backends.opencl import devices

F32 = np.float32
Arrays = tuple[np.ndarray, ...]
# From a queue and arrays of pyopencl to a call of it.
Peer = Callable[..., Call]
_TOLERANCE = 1e-4
_TILE = 16


class Program(NamedTuple):
    """One row. `make` takes the number of elements; `moved` and `computed` take the arguments' sizes in its place."""

    name: str
    make: Callable[[np.random.Generator, int], Arrays]
    function: Callable[..., object]  # of harp's arrays
    reference: Callable[..., object]  # of NumPy's, in float64
    moved: Callable[[int], float]  # bytes
    computed: Callable[[int], float] = lambda n: 0.0
    pyopencl: Peer | None = None
    loopy: Peer | None = None
    sizes: tuple[int, int, int] = (1 << 26, 1 << 22, 1 << 14)  # on a graphics processor, elsewhere, with --quick


def _normal(count: int) -> Callable[[np.random.Generator, int], Arrays]:
    return lambda rng, n: tuple(rng.standard_normal(n, dtype=F32) for _ in range(count))


def _square(count: int) -> Callable[[np.random.Generator, int], Arrays]:
    return lambda rng, n: tuple(rng.standard_normal((n, n), dtype=F32) for _ in range(count))


def _with_indices(rng: np.random.Generator, n: int) -> Arrays:
    return rng.standard_normal(n, dtype=F32), rng.integers(0, n, n, dtype=np.int32)


# --- pyopencl's own


def _scan(queue: cl.CommandQueue, x: cla.Array) -> Call:
    from pyopencl.scan import InclusiveScanKernel

    kernel = InclusiveScanKernel(queue.context, F32, "a + b", neutral="0")
    return lambda: kernel(x, cla.empty_like(x), queue=queue)


def _sort(queue: cl.CommandQueue, x: cla.Array) -> Call:
    from pyopencl.bitonic_sort import BitonicSort

    sorter = BitonicSort(queue.context)
    return lambda: sorter(x.copy(queue), queue=queue)[0]  # it sorts in place


# Those that pyopencl makes of templates of Mako, which it does without else.
_TEMPLATES = (_scan, _sort)


# --- kernels of loopy, split as its tutorial does


def _loopy(domain: str, statement: str, split: Mapping[str, int]) -> Peer:
    """A kernel whose loops are split into work-groups of these sizes."""

    def made(queue: cl.CommandQueue, *arrays: cla.Array) -> Call:
        import loopy

        found = loopy.make_kernel(domain, statement, lang_version=(2018, 2))
        for axis, (name, size) in enumerate(split.items()):
            tags = {"outer_tag": f"g.{axis}", "inner_tag": f"l.{axis}"}
            found = loopy.split_iname(found, name, size, **tags)
        given = dict(zip("xy", arrays, strict=False))
        run = found.executor(queue.context)
        return lambda: run(queue, **given)[1][0]

    return made


_ROW = {"i": 64}
_BLOCK = {"j": _TILE, "i": _TILE}
PROGRAMS = (
    Program(
        "axpby",
        _normal(2),
        lambda x, y: 2.5 * x - 0.75 * y,
        lambda x, y: 2.5 * x - 0.75 * y,
        lambda n: 12.0 * n,
        lambda n: 3.0 * n,
        lambda queue, x, y: lambda: F32(2.5) * x - F32(0.75) * y,
        _loopy("{[i]: 0<=i<n}", "out[i] = 2.5f*x[i] - 0.75f*y[i]", _ROW),
    ),
    Program(
        "tanh exp",
        _normal(1),
        lambda x: hnp.tanh(x) * hnp.exp(-x),
        lambda x: np.tanh(x) * np.exp(-x),
        lambda n: 8.0 * n,
        lambda n: 4.0 * n,
        lambda queue, x: lambda: cl.clmath.tanh(x) * cl.clmath.exp(-x),
        _loopy("{[i]: 0<=i<n}", "out[i] = tanh(x[i]) * exp(-x[i])", _ROW),
    ),
    Program(
        "where",
        _normal(2),
        lambda x, y: hnp.where(x > 0, x, y),
        lambda x, y: np.where(x > 0, x, y),
        lambda n: 12.0 * n,
        lambda n: 1.0 * n,
        lambda queue, x, y: lambda: cla.if_positive(x, x, y),
    ),
    Program(
        "sum",
        _normal(1),
        hnp.sum,
        np.sum,
        lambda n: 4.0 * n,
        lambda n: 1.0 * n,
        lambda queue, x: lambda: cla.sum(x, queue=queue),
    ),
    Program(
        "dot",
        _normal(2),
        lambda x, y: hnp.sum(x * y),
        lambda x, y: np.sum(x * y),
        lambda n: 8.0 * n,
        lambda n: 2.0 * n,
        lambda queue, x, y: lambda: cla.dot(x, y, queue=queue),
    ),
    Program(
        "max",
        _normal(1),
        hnp.max,
        np.max,
        lambda n: 4.0 * n,
        lambda n: 1.0 * n,
        lambda queue, x: lambda: cla.max(x, queue=queue),
    ),
    Program(
        "row sums",
        _square(1),
        lambda x: hnp.sum(x, axis=1),
        lambda x: np.sum(x, axis=1),
        lambda n: 4.0 * n * n,
        lambda n: 1.0 * n * n,
        None,
        _loopy("{[i,k]: 0<=i,k<n}", "out[i] = sum(k, x[i, k])", _ROW),
        sizes=(8192, 2048, 128),
    ),
    Program(
        "transpose",
        _square(1),
        lambda x: hnp.ascontiguousarray(x.T) if hasattr(hnp, "ascontiguousarray") else x.T,
        lambda x: x.T,
        lambda n: 8.0 * n * n,
        lambda n: 0.0,
        None,
        _loopy("{[i,j]: 0<=i,j<n}", "out[i, j] = x[j, i]", _BLOCK),
        sizes=(8192, 2048, 128),
    ),
    Program(
        "matmul",
        _square(2),
        lambda x, y: x @ y,
        lambda x, y: x @ y,
        lambda n: 12.0 * n * n,
        lambda n: 2.0 * n**3,
        None,
        _loopy("{[i,j,k]: 0<=i,j,k<n}", "out[i, j] = sum(k, x[i, k]*y[k, j])", _BLOCK),
        sizes=(4096, 1024, 64),
    ),
    Program("scan", _normal(1), hnp.cumsum, np.cumsum, lambda n: 8.0 * n, lambda n: 1.0 * n, _scan),
    Program(
        "sort", _normal(1), hnp.sort, np.sort, lambda n: 8.0 * n, pyopencl=_sort, sizes=(1 << 22, 1 << 20, 1 << 12)
    ),
    Program(
        "gather",
        _with_indices,
        lambda x, y: x[y],
        lambda x, y: x[y],
        lambda n: 12.0 * n,
        pyopencl=lambda queue, x, y: lambda: cla.take(x, y, queue=queue),
        loopy=_loopy("{[i]: 0<=i<n}", "out[i] = x[y[i]]", _ROW),
    ),
)


class Found(NamedTuple):
    """The figures of a program: medians of calls in seconds, those of its kernels, and what is to be said of it."""

    medians: Mapping[str, float]
    kernels: float
    notes: list[str]


def measure(program: Program, device: str, n: int, settings: Settings) -> Found:
    """All that can be called of a program, in turns."""
    rng = np.random.default_rng(1)
    arguments = program.make(rng, n)
    on = devices.device(int(device.partition(":")[2]))
    put = getattr(harp, "device_put", None)
    given = [put(array, device) for array in arguments] if put else arguments
    jitted = harp.jit(program.function, device=device)
    calls: dict[str, Call] = {
        "harp": _finished(partial(jitted, *given), on.queue),
        "harp c": partial(harp.jit(program.function, device="cpu"), *arguments),
    }
    queue = cl.CommandQueue(on.context, on.device)
    pool = MemoryPool(ImmediateAllocator(queue))
    arrays = [cla.to_device(queue, array, allocator=pool) for array in arguments]
    if program.pyopencl is not None and (program.pyopencl not in _TEMPLATES or importlib.util.find_spec("mako")):
        calls["pyopencl"] = _finished(program.pyopencl(queue, *arrays), queue)
    if program.loopy is not None and importlib.util.find_spec("loopy"):
        calls["loopy"] = _finished(program.loopy(queue, *arrays), queue)
    expected = np.asarray(program.reference(*(a.astype(float) if a.dtype == F32 else a for a in arguments)))
    notes = []
    for name, call in list(calls.items()):
        wrong = _problem(call, expected)
        if wrong:
            notes.append(f"{name}: {wrong}")
            del calls[name]
    samples = interleaved(calls, settings) if calls else {}
    medians = {name: statistics.median(values) for name, values in samples.items()}
    return Found(medians, sum(k.seconds for k in jitted.profile(*given).kernels), notes)


def _finished(call: Call, queue: cl.CommandQueue) -> Call:
    """The call to its end."""

    def finished() -> object:
        result = call()
        queue.finish()
        return result

    return finished


def _problem(call: Call, expected: np.ndarray) -> str:
    """What is wrong with a result; one that cannot be had is wrong."""
    try:
        result = call()
    except (errors.HarpError, cl.Error, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return problem(result.get() if isinstance(result, cla.Array) else result, expected, _TOLERANCE)


_HEAD = ("program", "size", "harp", "kernels", "GB/s", "of copy", "GFLOP/s", "of peak", "harp c", "pyopencl", "loopy")


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description="Programs on a device, beside others.")
    parser.add_argument("--device", default="opencl", help="as harp names it (default: the first one that works)")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="parts of names")
    parser.add_argument("--rounds", type=int, default=11, help="samples of each candidate (default: 11)")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether everything works, not how fast")
    chosen = parser.parse_args(arguments)
    try:
        device = known_device(chosen.device)
    except errors.DeviceError as error:
        print(error)
        return 1
    settings = Settings(rounds=chosen.rounds, quick=chosen.quick, budget=8.0, pause=0.0 if chosen.quick else 0.02)
    limits = harp.jit(lambda x: x + 1, device=device).profile(np.ones(8, F32)).limits
    on = devices.device(int(device.partition(":")[2]))
    print(f"{on!r}")
    print(f"copies {limits.copy / 1e9:.1f} GB/s, peak {limits.float32 / 1e9:.0f} GFLOP/s of float32")
    widths = [10, 9, *[9] * (len(_HEAD) - 2)]
    print(_line(_HEAD, widths))
    failed = False
    for program in PROGRAMS:
        if chosen.only and not any(part in program.name for part in chosen.only):
            continue
        n = program.sizes[2 if chosen.quick else int(not on.device.type & cl.device_type.GPU)]
        found = measure(program, device, n, settings)
        failed |= bool(found.notes)
        cells = _cells(program, n, found, limits.copy, limits.float32)
        print(_line([program.name, f"{n:,}", *cells], widths), *found.notes, sep="\n  ", flush=True)
    return int(failed)


def _cells(program: Program, n: int, found: Found, copy: float, peak: float) -> list[str]:
    speed, rate = program.moved(n) / found.kernels, program.computed(n) / found.kernels
    own = [found.medians.get("harp"), found.kernels]
    shares = [f"{speed / 1e9:.1f}", f"{100 * speed / copy:.0f} %", f"{rate / 1e9:.1f}", f"{100 * rate / peak:.1f} %"]
    others = [found.medians.get(name) for name in _HEAD[-3:]]
    own_cells, other_cells = (["-" if s is None else quantity(s, "s") for s in group] for group in (own, others))
    return [*own_cells, *shares, *other_cells]


def _line(cells: list[str] | tuple[str, ...], widths: list[int]) -> str:
    texts = [c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))]
    return "  ".join(texts).rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
