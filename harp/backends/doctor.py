"""The report of `python -m harp doctor`: what was found on this machine, and one thing to do for each problem."""

from __future__ import annotations

import platform
import shlex
import textwrap
from collections.abc import Iterator
from importlib.metadata import version

from harp.backends.devices import opencl
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime.load import build_and_load
from harp.backends.toolchain import cache, toolchain
from harp.errors import DeviceError, ToolchainError
from harp.trace.source_locations import printable

_TRIAL = Source((Unit('__attribute__((visibility("default"))) int harp_trial(int x) { return x + 1; }\n'),))
_INSTALL = "install a C compiler (`apt install gcc`, or `pip install ziglang`), or name one in HARP_CC"


def main() -> int:
    """Print the report; 0 if programs compile and run, 1 if harp has to use its NumPy interpreter."""
    lines, healthy = examine()
    print("\n".join(map(printable, "\n".join(lines).splitlines())))
    return 0 if healthy else 1


def examine() -> tuple[list[str], bool]:
    """The lines of the report, and whether compiled programs work."""
    lines = [f"python     {platform.python_version()} on {platform.platform()}"]
    lines += [f"{name:<10} {version(name)}" for name in ("numpy", "cffi", "optree", "attrs")]
    compiler = toolchain.tried_toolchain()
    for attempt in toolchain.attempts():
        lines.append(f"compiler   {attempt.command}: {attempt.reason or 'chosen'}")
    if compiler is None:
        advice = "unset HARP_CC to use a compiler" if toolchain.attempts()[0].command == "none" else _INSTALL
        lines.append(f"           no compiler: harp uses its NumPy interpreter; {advice}")
        if toolchain.usable_toolchains():
            lines.append(
                "           but for programs in the cache that other machines have compiled for this processor"
            )
        return [*lines, *_cache(), *_devices()], False
    lines.append(f"           {(compiler.version or 'of unknown version').splitlines()[0]}")
    fma = "yes" if compiler.fma else "no"
    lines.append(f"           vectors of {compiler.vector_bytes} bytes, fused multiply-add: {fma}")
    lines.append(f"           {textwrap.shorten(shlex.join(compiler.isa), 100, placeholder=' ...')}")
    lines += _cache()
    problem = _trial()
    lines.append(f"trial      {problem or 'a program compiles, loads and runs'}")
    return [*lines, *_devices()], problem is None


def _devices() -> Iterator[str]:
    """Lines about OpenCL devices, with a trial on each. It is no fault if there are none."""
    try:
        trial = opencl()
        yield f"opencl     pyopencl {version('pyopencl')}"
        all_devices = trial.devices()
    except DeviceError as error:
        yield f"opencl     {error}"
        return
    for device in all_devices:
        name, _, what = repr(device).partition(" ")
        yield f"{name:<10} {what.strip('()')}"
        yield f"           {trial.facts(device)}"
        problem = trial.examine(device)
        yield f"           {problem or 'a program is built, runs and is right'}"
        if problem is not None:
            yield f"           it is left out; {trial.advice(device)}"


def _cache() -> Iterator[str]:
    for directory in cache.places():
        reason = cache.prepare(directory)
        yield f"cache      {directory}: {reason or 'in use'}"
        if reason is None:
            return
        yield "           set HARP_CACHE_DIR to a directory of your own that others cannot write to"
    yield "cache      memory: each process compiles its programs anew"


def _trial() -> str | None:
    """Compile, load and call a small program; returns what went wrong."""
    try:
        library = build_and_load(_TRIAL, CompileOptions(), again=True)  # it must outlive the call
        result = library.function("harp_trial", "int(*)(int)")(1)
    except ToolchainError as error:
        return str(error)
    return None if result == 2 else f"the compiled program gave {result} instead of 2; {_INSTALL}"
