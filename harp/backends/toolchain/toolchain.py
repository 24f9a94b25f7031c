"""The choice of the C compiler, and of its flags.

`$HARP_CC`, `$CC`, `cc`, `gcc`, `clang`, then `python -m ziglang cc`. A candidate counts if it says for which processor
it compiles. If its first program fails it is tested with a one-line C program, and passed over if that does not load
either. `HARP_CC_TIMEOUT` limits each run of it, in seconds. `HARP_CC=none` chooses no compiler. The instruction set is
resolved to names, so that a cache that machines share never serves a wrong program. The result is remembered on disk,
so that later processes start no compiler to find out.
"""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import _cffi_backend

from harp.backends.options import CompileOptions
from harp.backends.toolchain import compilers, process
from harp.backends.toolchain.compilers import Family, Toolchain
from harp.backends.toolchain.leftovers import scratch
from harp.backends.toolchain.trust import damage
from harp.config import log
from harp.locks import forkable_lock

_PROBE = "int harp_probe(int x) { return x + 1; }\n"
_PROBE_SECONDS = 60.0
_DAY = 86400.0
_NOT_FOUND = "not found"


class Attempt(NamedTuple):
    """A candidate and why it was rejected; the reason of the chosen one is empty."""

    command: str
    reason: str


_lock = forkable_lock(sys.modules[__name__])
_found: list[Toolchain | None] = []
_elsewhere: list[list[Toolchain]] = []
_attempts: list[Attempt] = []
_tried: set[tuple[str, ...]] = set()  # commands that have made a library that loads
_refused: set[str] = set()  # values of HARP_CC_TIMEOUT that were reported as wrong


def find_toolchain() -> Toolchain | None:
    """The compiler that this process uses, or None."""
    with _lock:
        if not _found:
            _attempts.clear()
            _found.append(_search())
        return _found[0]


def tried_toolchain() -> Toolchain | None:
    """The same, after a trial: for those who report what works."""
    found = find_toolchain()
    if found is not None:
        examine_again(found)
    return find_toolchain()


def usable_toolchains() -> list[Toolchain]:
    """The compilers whose programs can be loaded from the cache: the one in use. If there is none, those of others who
    share the cache, or whose programs were imported, if this CPU has the features that they need.
    """
    own = find_toolchain()
    if own is not None:
        return [own]
    with _lock:
        if not _elsewhere:
            _elsewhere.append([] if _asked_for_none() else compilers.usable_elsewhere())
        return _elsewhere[0]


def _asked_for_none() -> bool:
    return os.environ.get("HARP_CC", "").strip().lower() == "none"


def attempts() -> list[Attempt]:
    """The candidates that were tried, in order."""
    find_toolchain()
    return list(_attempts)


def problem() -> str | None:
    """A problem of the compiler in use, or that there is none, as a message for the user."""
    chosen, tried, asked = find_toolchain(), attempts(), os.environ.get("HARP_CC", "").strip()
    slow = "harp computes with its NumPy interpreter, which is slow"
    if chosen is None and tried[0].command == "none":
        return f"HARP_CC=none asks for no C compiler: {slow}; unset HARP_CC to use one"
    if chosen is None:
        named = tried[:1] if asked else []
        failed = named + [attempt for attempt in tried if attempt.reason != _NOT_FOUND]
        what = f"works ({failed[-1].command}: {failed[-1].reason})" if failed else "was found"
        advice = "install gcc or clang, or `pip install ziglang`, and see `python -m harp doctor`"
        return f"no C compiler {what}: {slow}; {advice}"
    if asked and tried[0].reason:
        instead = f"harp uses {tried[-1].command}; set HARP_CC to a compiler that works, or unset it"
        return f"the C compiler HARP_CC={asked!r} is passed over ({tried[0].reason}): {instead}"
    return None


def reset() -> None:
    """Forget the choice, after the environment has changed."""
    with _lock:
        _found.clear()
        _elsewhere.clear()
        _tried.clear()


def has_worked(toolchain: Toolchain) -> None:
    """It has made a program: if it fails from now on, that says nothing about the compiler."""
    _tried.add(toolchain.command)


def examine_again(failed: Toolchain) -> bool:
    """Whether there is now another compiler than the one that failed, or the same one with other flags: candidates are
    examined again, and tried.
    """
    with _lock:
        if failed.command not in _tried:
            log.info("%s failed: examined again", shlex.join(failed.command))
            compilers.forget(failed.command)
            _attempts.clear()
            _found[:] = [_search(on_trial=True)]
        return not _found or _found[0] != failed


def _candidates() -> Iterator[tuple[str, ...]]:
    for variable in ("HARP_CC", "CC"):
        text = os.environ.get(variable, "").strip()
        if text:
            yield _command_words(text)
    yield from (("cc",), ("gcc",), ("clang",))
    if importlib.util.find_spec("ziglang") is not None:
        yield sys.executable, "-m", "ziglang", "cc"


def _command_words(text: str) -> tuple[str, ...]:
    """The words of a command; a program whose path contains spaces is one word."""
    if compilers.found(text):
        return (text,)
    try:
        return tuple(shlex.split(text))
    except ValueError:  # unbalanced quotes
        return (text,)


def _search(on_trial: bool = False) -> Toolchain | None:
    if _asked_for_none():
        _attempts.append(Attempt("none", "HARP_CC=none: no compiler is to be used"))
        return None
    for command in _candidates():
        program = compilers.found(command[0])
        if program is None:
            _attempts.append(Attempt(shlex.join(command), _NOT_FOUND))
            continue
        whole = (os.path.abspath(program), *command[1:])
        result = (None if on_trial else compilers.recall(whole)) or _examine(whole, on_trial)
        if isinstance(result, Toolchain):
            _attempts.append(Attempt(shlex.join(command), ""))
            return result
        _attempts.append(Attempt(shlex.join(command), result))
        log.debug("compiler %s passed over: %s", shlex.join(command), result)
    return None


def time_limit(seconds: float) -> float:
    """How long a compiler may take: `$HARP_CC_TIMEOUT` if that is a positive number, else `seconds`."""
    text = os.environ.get("HARP_CC_TIMEOUT", "").strip()
    try:
        limit = float(text) if text else seconds
    except ValueError:
        limit = 0.0
    if limit > 0 and math.isfinite(limit):
        return min(limit, _DAY)  # the system cannot wait longer than some limit
    if text not in _refused:
        _refused.add(text)
        log.warning("HARP_CC_TIMEOUT=%r is not a number of seconds: ignored", text)
    return seconds


def run(command: tuple[str, ...], directory: Path) -> process.Done:
    """Run a compiler to learn about it, with its temporary files in `directory`."""
    return process.run(command, time_limit(_PROBE_SECONDS), directory)


def _examine(command: tuple[str, ...], on_trial: bool) -> Toolchain | str:
    """The properties of a candidate, or why it is rejected."""
    try:
        with scratch() as directory:
            version = run((*command, "--version"), directory).stdout.strip()
            family = _family(command, version)
            isa = _native_isa(command, family, directory)
            source, library = directory / "probe.c", directory / "probe.so"
            source.write_text(_PROBE)
            macros = _macros(command, isa, source)
            problem = _try(command, isa, source, library) if on_trial or "__STDC_VERSION__" not in macros else ""
            if problem and isa != _plain(family):  # some feature may have no flag
                isa = _plain(family)
                problem = _try(command, isa, source, library)
                macros = "" if problem else _macros(command, isa, source)
            if problem:
                return problem
    except (OSError, process.TimedOut) as error:
        return f"does not run: {error}"
    toolchain = Toolchain(command, family, version, isa, _vector_bytes(macros), _has_fma(macros))
    compilers.remember(toolchain)
    if on_trial:
        _tried.add(command)
    return toolchain


def _macros(command: tuple[str, ...], isa: tuple[str, ...], source: Path) -> str:
    """What the compiler predefines with these flags."""
    return run((*command, *isa, "-dM", "-E", str(source)), source.parent).stdout


def _try(command: tuple[str, ...], isa: tuple[str, ...], source: Path, library: Path) -> str:
    """The reason why a compiler's library cannot be used; empty if it can."""
    done = run((*command, *isa, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"), library.parent)
    if done.returncode or not library.is_file():
        return f"does not make a library: {(done.stderr.strip() or 'it printed nothing')[:300]}"
    problem = damage(library)
    if problem:
        return f"makes a library that does not load: it {problem}"
    try:
        _cffi_backend.load_library(str(library), 0)
    except UnicodeEncodeError:  # cffi cannot take the name of the temporary directory
        return ""
    except OSError as error:
        # a temporary directory that is mounted noexec says nothing about the compiler
        return "" if "not permitted" in str(error) else f"makes a library that does not load: {error}"
    return ""


def _family(command: tuple[str, ...], version: str) -> Family:
    if any(Path(word).name.startswith("zig") for word in command):
        return Family.ZIG
    return Family.CLANG if "clang" in version else Family.GCC


def _native_isa(command: tuple[str, ...], family: Family, directory: Path) -> tuple[str, ...]:
    """The flags that -march=native stands for on this machine."""
    arm = platform.machine().lower() in ("aarch64", "arm64")
    native = "-mcpu=native" if arm else "-march=native"
    try:
        said = run((*command, native, "-###", "-E", "-x", "c", os.devnull), directory).stderr
        words = shlex.split(said.replace("\n", " "))
    except ValueError:  # an unexpected output
        return _plain(family)
    if family is Family.GCC:
        kept = [w for w in words if w.startswith(("-march=", "-mcpu=", "-mtune=")) or _is_feature(w)]
        caches = [f"--param={w}" for w in words if w.startswith(("l1-cache", "l2-cache"))]
        return tuple(w for w in dict.fromkeys(kept + caches) if "native" not in w)
    cpus = [value for flag, value in pairwise(words) if flag == "-target-cpu" and value != "native"]
    features = dict.fromkeys(value for flag, value in pairwise(words) if flag == "-target-feature")
    if not cpus:
        return _plain(family)
    if family is Family.ZIG:  # one flag, in which names contain no other sign than _
        named = [value[0] + value[1:].replace("-", "_").replace(".", "_") for value in features]
        return (f"-mcpu={cpus[-1]}{''.join(named)}",)
    if arm:
        return (f"-mcpu={cpus[-1]}",)
    return (f"-march={cpus[-1]}", *(f"-m{v[1:]}" if v[0] == "+" else f"-mno-{v[1:]}" for v in features))


def _plain(family: Family) -> tuple[str, ...]:
    """The baseline instruction set of this kind of CPU. Without a flag zig would take this machine's."""
    return ("-mcpu=baseline",) if family is Family.ZIG else ()


def _is_feature(word: str) -> bool:
    return word.startswith("-m") and "=" not in word and word not in ("-m64", "-m32")


def _vector_bytes(macros: str) -> int:
    if "__AVX512F__" in macros:
        return 64
    return 32 if "__AVX2__" in macros else 16


def _has_fma(macros: str) -> bool:
    return "__FMA__" in macros or "__ARM_FEATURE_FMA" in macros


def base_flags(toolchain: Toolchain) -> tuple[str, ...]:
    """The flags of all programs. None changes NaN, infinity, signed zero, or the order of additions."""
    flags = [
        "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-ftree-vectorize", "-fno-math-errno",
        "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", *toolchain.isa,
    ]  # fmt: skip
    if toolchain.family is Family.GCC:
        # Passes over scalar code take a tenth of the compile time. What they hoist out of loops hinders vectorisation,
        # and so do separate paths for one of two conditions.
        passes = ["-fno-tree-pre", "-fno-gcse", "-fno-tree-vrp", "-fno-schedule-insns2", "-fno-thread-jumps"]
        flags += ["-fvect-cost-model=dynamic", *passes]
        # Pipes between compiler and assembler instead of files: a few milliseconds of each run.
        flags.append("-pipe")
        # For some CPUs gcc 8 and later turn a chain of fused multiply-adds into products and sums, with other bits.
        if _major(toolchain.version) >= 8:
            flags.append("--param=avoid-fma-max-bits=0")
    if toolchain.family is Family.ZIG:
        flags += ["-fno-sanitize=undefined", "-g0"]
    if toolchain.vector_bytes == 64:
        flags.append("-mprefer-vector-width=512")
        # An older gcc takes an AMD CPU with AVX-512 for one without. Its costs of such vectors were never measured:
        # values that are read twice are loaded twice, which makes stencils a fifth slower.
        if any(flag in toolchain.isa for flag in ("-mtune=znver1", "-mtune=znver2", "-mtune=znver3")):
            flags.append("-mtune=skylake-avx512")
    return tuple(flags)


def linked_libraries(toolchain: Toolchain, options: CompileOptions, of_user: bool) -> tuple[str, ...]:
    """The libraries of a program. `of_user` says that there is code of the user in it.

    The C library is in the process: without a search in its file, and files for start and end, gcc takes three fourths
    of the time for a small program (32 ms of 43, Zen 3). What a user's own flags or code ask for may need more, such as
    a sanitiser, or `atexit`, which is in no shared library.
    """
    plain = len(toolchain.command) == 1 and not options.extra_flags and not of_user
    if plain and toolchain.family is Family.GCC and sys.platform == "linux":
        return "-nostdlib", "-lm", "-lgcc"
    return ("-lm",)


def _major(version: str) -> int:
    """The first number of a compiler's version, which ends the first line of what it says; 0 if there is none.

    >>> [
    ...     _major(text)
    ...     for text in ("cc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-20)")
    ... ]
    [12, 8]
    """
    match = re.search(r"(\d+)\.\d+(\.\d+)?(?: \S+)?( \(.*\))?$", version.splitlines()[0] if version else "")
    return int(match[1]) if match else 0


def program_flags(toolchain: Toolchain) -> tuple[str, ...]:
    """The flags of a program's own units: many loops, most of them run rarely, and little else.

    Vectors come from loops, not from adjacent statements; registers are allocated for a function as a whole; induction
    variables with many uses are left as they are. That saves a sixth of the compile time, and code is as fast.
    """
    if toolchain.family is not Family.GCC:
        return ()
    return ("-fno-tree-slp-vectorize", "-fira-region=one", "--param=iv-max-considered-uses=16")
