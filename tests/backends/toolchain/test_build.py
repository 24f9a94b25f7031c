"""From source to a loaded library, in one process and in many."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import progress
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime import load
from harp.backends.runtime.load import Library, build_and_load
from harp.backends.toolchain import build as building
from harp.backends.toolchain import cache, library, toolchain
from harp.backends.toolchain.trust import Stored
from harp.errors import ToolchainError

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")
SOURCE = '__attribute__((visibility("default"))) int f(int x) { return x + 1; }\n'
PROGRAM = """
import sys
started = []
starts = ("subprocess.Popen", "os.posix_spawn", "os.system")
sys.addaudithook(lambda event, args: started.append(event) if event in starts else None)
import numpy as np, harp, harp.numpy as hnp
f = harp.jit(lambda x: hnp.sum(x * 2.0 + 1.0))
assert f(np.arange(5.0)) == 25.0
print(harp.stats()["compiler_runs"], harp.stats()["cache_hits"], len(started))
"""


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    for name in ("CC", "HARP_CC_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARP_CC", CC)
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    toolchain.reset()
    yield tmp_path / "cache"
    toolchain.reset()


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def runs() -> int:
    return harp.stats()["compiler_runs"]


def call(options=CompileOptions()) -> int:  # noqa: B008
    library = build_and_load(Source((Unit(SOURCE),)), options)
    return library.function("f", "int(*)(int)")(1)


def start(**environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> list[int]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return [int(word) for word in out.split()]


def test_second_process_starts_nothing(tmp_path):
    log = tmp_path / "log"
    compiler = script(tmp_path / "my-cc", f'echo run >> "{log}"; exec "{CC}" "$@"')
    first = finish(start(HARP_CC=str(compiler)))
    assert first[:2] == [1, 0] and first[2] > 1
    log.unlink()
    assert finish(start(HARP_CC=str(compiler))) == [0, 1, 0]
    assert not log.exists()


@pytest.mark.slow
def test_many_processes_at_once(directory):
    assert all(finish(process)[0] in (0, 1) for process in [start() for _ in range(8)])
    names = [path.name for path in directory.iterdir()]
    assert len([n for n in names if n.endswith(".so")]) == 2, "the program and the pool of threads"
    assert not [n for n in names if n.startswith(".")]
    assert finish(start()) == [0, 1, 0]


def test_killed_while_compiling(tmp_path, directory):
    mark = tmp_path / "started"
    body = f'case "$*" in *unit*.c*) "{CC}" "$@"; : > "{mark}"; exec sleep 100;; esac; exec "{CC}" "$@"'
    process = start(HARP_CC=str(script(tmp_path / "slow", body)))
    deadline = time.monotonic() + 100
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()
    assert mark.exists() and not list(directory.glob("*.so"))
    assert finish(start())[:2] == [1, 0]


def test_the_entry_of_another_program_is_not_run(directory):
    """Copied over by somebody who sorts files: what it computes is something else."""
    other = Source((Unit(SOURCE.replace("+ 1", "+ 5")),))
    build_and_load(other, CompileOptions())
    (wrong,) = directory.glob("*.so")
    before = runs()
    key = building.build(Source((Unit(SOURCE),)), CompileOptions())
    os.close(key.stored.handle)
    shutil.copy2(wrong, directory / f"{key.key}.so")
    assert call() == 2 and runs() == before + 2


@pytest.mark.parametrize("damage", ["flip", "truncate", "writable", "link"])
def test_bad_entries_are_built_again(directory, damage):
    assert call() == 2
    (path,) = directory.glob("*.so")
    data = path.read_bytes()
    # the loaded library keeps its own file
    path.rename(path.with_suffix(".old"))
    if damage == "link":
        path.symlink_to(path.with_suffix(".old"))
    else:
        middle = len(data) // 2
        bad = {"flip": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :], "truncate": data[:middle]}
        path.write_bytes(bad.get(damage, data))
        path.chmod(0o777 if damage == "writable" else 0o700)
    before = runs()
    assert call() == 2 and runs() == before + 1
    assert call() == 2 and runs() == before + 1
    assert not path.is_symlink()


def test_options_are_in_the_key():
    before = runs()
    for options in (CompileOptions(0), CompileOptions(1), CompileOptions(1, debug=True), CompileOptions(1)):
        assert call(options) == 2
    assert call(CompileOptions(extra_flags=("-DX=1",))) == 2
    assert runs() == before + 4


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo 'out of licences' >&2; exit 7", "exit status 7.*out of licences.*doctor"),
        ("exit 0", "made no library.*it printed nothing.*HARP_CC"),
        ("exec sleep 100", r"took longer than 0\.3 s.*doctor"),
        (None, "could not be run.*doctor"),
    ],
)
def test_failing_compiler(monkeypatch, tmp_path, body, message):
    compiler = script(tmp_path / "my-cc", f'exec "{CC}" "$@"')
    monkeypatch.setenv("HARP_CC", str(compiler))
    assert toolchain.tried_toolchain() is not None
    if body and "sleep" in body:
        monkeypatch.setattr(building, "_SECONDS", 0.3)
    compiler.unlink()
    if body:
        script(compiler, body)
    with pytest.raises(ToolchainError) as caught:
        call()
    assert re.search(message, str(caught.value), re.DOTALL), caught.value


def test_a_full_disk_is_named_where_it_cuts_what_the_compiler_says(monkeypatch, tmp_path):
    """The messages of compilers are in files on the same disk."""
    compiler = script(tmp_path / "my-cc", f'exec "{CC}" "$@"')
    monkeypatch.setenv("HARP_CC", str(compiler))
    assert toolchain.tried_toolchain() is not None
    script(compiler, "exit 1")
    full = list(os.statvfs(tmp_path))
    full[4] = 3  # blocks that a user may have
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(full))
    with pytest.raises(ToolchainError, match=r"the disk of /.* has only [\d,]+ bytes left: make room, or set TMPDIR"):
        call()


def alive(pids: Path) -> list[int]:
    """Which of these processes are still there after a while, in which they would not end by themselves."""
    deadline = time.monotonic() + 60
    found = [int(pid) for pid in pids.read_text().split()]
    while time.monotonic() < deadline:
        states = [Path(f"/proc/{pid}/stat") for pid in found]
        left = [path for path in states if path.exists() and path.read_text().split()[2] != "Z"]
        if not left:
            return []
        time.sleep(0.02)
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
UNITS = Source(tuple(Unit(SOURCE.replace("f(", f"{name}(")) for name in "fgh"))


@needs_proc
@pytest.mark.parametrize("source", [Source((Unit(SOURCE),)), UNITS], ids=["one unit", "many units"])
def test_timeout_leaves_no_process(monkeypatch, tmp_path, source):
    pids = tmp_path / "pids"
    body = f'case "$*" in *unit*) sleep 300 & echo $$ $! >> "{pids}"; wait;; esac; exec "{CC}" "$@"'
    monkeypatch.setenv("HARP_CC", str(script(tmp_path / "my-cc", body)))
    for seconds in (0.3, 3, 30):  # until a compiler comes to write its number
        monkeypatch.setattr(building, "_SECONDS", seconds)
        with pytest.raises(ToolchainError, match="took longer"):
            build_and_load(source, CompileOptions())
        if pids.exists() and pids.read_text():
            break
    assert alive(pids) == []


@needs_proc
def test_a_failing_unit_stops_the_others(monkeypatch, tmp_path):
    pids = tmp_path / "pids"
    body = f"""case "$*" in
        *unit1.c*) while [ ! -s "{pids}" ]; do sleep 0.02; done; echo broken >&2; exit 1;;
        *unit0.c*) sleep 300 & echo $$ $! >> "{pids}"; wait;;
    esac
    exec "{CC}" "$@" """
    monkeypatch.setenv("HARP_CC", str(script(tmp_path / "my-cc", body)))
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    started = time.monotonic()
    with pytest.raises(ToolchainError, match="broken"):
        build_and_load(UNITS, CompileOptions())
    assert alive(pids) == [] and time.monotonic() - started < 200


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the tests may ignore it
from harp.backends.runtime.load import build_and_load
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
build_and_load(Source(tuple(map(Unit, ({units})))), CompileOptions())
"""


@needs_proc
@pytest.mark.parametrize("units", ["'int f;',", "'int f;', 'int g;', 'int h;'"], ids=["one unit", "many units"])
def test_interrupt_leaves_no_process(tmp_path, units):
    pids = tmp_path / "pids"
    body = f'case "$*" in *unit*) sleep 300 & echo $$ $! >> "{pids}"; wait;; esac; exec "{CC}" "$@"'
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(units=units)],
        env={**os.environ, "HARP_CC": str(script(tmp_path / "my-cc", body))},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 100
    while not (pids.exists() and pids.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert "KeyboardInterrupt" in process.communicate(timeout=200)[1]
    assert alive(pids) == [] and time.monotonic() - started < 200


CUT = f"""{CC} "$@" || exit 1
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
case "$out" in *program.so) truncate -s 9000 "$out";; esac"""
needs_elf = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no ELF files")


@needs_elf
def test_library_that_is_cut_short(monkeypatch, tmp_path, directory):
    compiler = script(tmp_path / "my-cc", CUT)
    monkeypatch.setenv("HARP_CC", str(compiler))
    for _ in range(2):
        with pytest.raises(ToolchainError, match=r"library that is cut short; .*set TMPDIR .*doctor"):
            call()
    assert not list(directory.glob("*.so"))


@needs_elf
def test_entry_that_is_cut_short(directory):
    assert call() == 2
    (path,) = directory.glob("*.so")
    content = path.read_bytes()[:-32]
    path.rename(path.with_suffix(".old"))
    cache.put(path.stem, ".so", content[: len(content) // 2])
    before = runs()
    assert call() == 2 and runs() == before + 1
    assert call() == 2 and runs() == before + 1


def test_entry_without_the_function(directory):
    other = build_and_load(Source((Unit(SOURCE.replace("f(", "g(")),)), CompileOptions(), names=["g"])
    content = Path(other.place).read_bytes()[:-32]
    assert call() == 2
    (path,) = set(directory.glob("*.so")) - {Path(other.place)}
    path.rename(path.with_suffix(".old"))
    cache.put(path.stem, ".so", content)
    before = runs()
    library = build_and_load(Source((Unit(SOURCE),)), CompileOptions(), names=["f"])
    assert library.function("f", "int(*)(int)")(1) == 2 and runs() == before + 1
    assert library.place == str(path)


def test_no_library_with_the_function():
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    with pytest.raises(ToolchainError, match=r"cannot be loaded: .* has no function g"):
        build_and_load(Source((Unit(SOURCE),)), CompileOptions(), names=["g"])
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_error_in_the_source():
    with pytest.raises(ToolchainError, match="error: "):
        build_and_load(Source((Unit("int f("),)), CompileOptions())


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("HARP_CC", "none")
    with pytest.raises(ToolchainError, match=r"there is no C compiler; .*doctor"):
        call()


def refuse(monkeypatch, times: int, reason: str = "failed to map segment") -> list[Stored]:
    """The loader fails so many times, as it does on a file system without execution."""
    tried: list[Stored] = []

    class Refusing(Library):
        def __init__(self, stored: Stored, keep: bool = False) -> None:
            tried.append(stored)
            if len(tried) <= times:
                raise OSError(f"{stored}: {reason}")
            super().__init__(stored, keep)

    monkeypatch.setattr(load, "Library", Refusing)
    return tried


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory")
@pytest.mark.parametrize(("times", "compiled"), [(1, 0), (2, 1), (3, 1)])
def test_directory_without_execution(monkeypatch, times, compiled):
    assert call() == 2
    before, tried = runs(), refuse(monkeypatch, times)
    assert call() == 2
    assert runs() - before == compiled
    assert (tried[-1].place is None) == (times % 2 == 1)


LIMITED = """
import resource
import numpy as np, harp
from harp.backends.runtime import load
class Refusing(load.Library):
    def __init__(self, stored, keep=False):
        if stored.place is not None:
            raise OSError("failed to map segment")
        super().__init__(stored, keep)
load.Library = Refusing
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
functions = [harp.jit(lambda x, k=k: x * float(k)) for k in range(60)]
assert all(f(np.ones(2))[0] == k for k, f in enumerate(functions))
assert all(f(np.ones(2))[0] == k for k, f in enumerate(functions)), "each is its own"
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory")
def test_programs_in_memory_need_no_descriptors():
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(command, env=os.environ | {"HARP_VERIFY": "0"}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr


def test_nothing_can_be_loaded(monkeypatch):
    refuse(monkeypatch, 100)
    monkeypatch.setattr(Stored, "in_memory", lambda self: None)
    with pytest.raises(ToolchainError, match=r"cannot be loaded: .*noexec"):
        call()


def test_no_file_system_is_blamed_for_another_error_of_the_loader(monkeypatch):
    refuse(monkeypatch, 100, "undefined symbol: smoothed")
    with pytest.raises(ToolchainError, match=r"cannot be loaded: .*undefined symbol: smoothed$"):
        call()


def test_nothing_can_be_stored(monkeypatch):
    monkeypatch.setattr(cache, "put", lambda *args: None)
    if hasattr(os, "memfd_create"):
        assert call() == 2
    monkeypatch.setattr(building, "in_memory", lambda content: None)
    with pytest.raises(ToolchainError, match="set HARP_CACHE_DIR"):
        call()


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8")
@pytest.mark.parametrize("variable", ["HARP_CACHE_DIR", "TMPDIR", "HARP_CC"])
def test_names_that_are_not_utf8(monkeypatch, tmp_path, variable):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/x\xff")
    os.mkdir(odd)
    if variable == "HARP_CC":
        monkeypatch.setenv(variable, str(script(Path(odd, "my-cc"), f'exec "{CC}" "$@"')))
    else:
        monkeypatch.setenv(variable, odd)
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = runs()
    assert [call(), call()] == [2, 2] and runs() == before + 1


def test_missing_function():
    with pytest.raises(ToolchainError, match="has no function g"):
        build_and_load(Source((Unit(SOURCE),)), CompileOptions()).function("g", "int(*)(int)")


def test_shared_units_are_compiled_once(directory):
    """Two programs with products use one object file."""
    first, second = harp.jit(lambda a, b: a @ b + 111), harp.jit(lambda a, b: a @ b + 1)
    a = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(first(a, a.T), a @ a.T + 111)
    before = {path.name: path.stat().st_mtime_ns for path in directory.glob("*.o")}
    assert before
    np.testing.assert_array_equal(second(a, a.T), a @ a.T + 1)
    after = {path.name: path.stat().st_mtime_ns for path in directory.glob("*.o")}
    assert len(after) == len(before) + 1, "the kernel that adds another number"
    assert {name: after[name] for name in before} == before


def test_kernels_of_an_earlier_program_are_not_compiled_again(directory):
    """A gradient has the layers of its function; an edited model has the layers that were left alone."""

    def model(ws, x, last):
        for w in ws:
            x = hnp.tanh(x @ w + 1)
        return hnp.sum(last(x))

    ws, x = [np.eye(3)] * 3, np.ones((2, 3))
    before = harp.stats()
    harp.jit(lambda ws, x: model(ws, x, hnp.square))(ws, x)
    forward = harp.stats()
    layers = forward["kernels_compiled"] - before["kernels_compiled"]
    harp.jit(lambda ws, x: model(ws, x, hnp.exp))(ws * 2, x)
    edited = harp.stats()
    assert edited["kernels_compiled"] - forward["kernels_compiled"] < layers
    assert edited["kernels_reused"] > forward["kernels_reused"]
    harp.jit(harp.value_and_grad(lambda ws, x: model(ws, x, hnp.exp)))(ws * 4, x)
    assert harp.stats()["kernels_reused"] > edited["kernels_reused"]


def test_a_damaged_object_is_made_again(directory):
    a = np.arange(12.0).reshape(3, 4)
    harp.jit(lambda a, b: a @ b - 1)(a, a.T)
    for kept in directory.glob("*.o"):
        kept.write_bytes(kept.read_bytes()[:-100])
    np.testing.assert_array_equal(harp.jit(lambda a, b: a @ b - 2)(a, a.T), a @ a.T - 2)


def test_a_slow_compiler_is_announced(tmp_path, monkeypatch, caplog):
    said, say = tmp_path / "said", progress._Wait._say
    monkeypatch.setattr(progress, "PATIENCE", 0.2)
    monkeypatch.setattr(progress._Wait, "_say", lambda wait, text: (say(wait, text), said.touch()))
    wait = f'for i in $(seq 1000); do [ -e "{said}" ] && break; sleep 0.1; done'
    slow = script(tmp_path / "slow-cc", f'case "$*" in *program.so*) {wait};; esac; exec {CC} "$@"')
    monkeypatch.setenv("HARP_CC", str(slow))
    toolchain.reset()
    with caplog.at_level("INFO", "harp"):
        assert build_and_load(Source((Unit(SOURCE),)), CompileOptions()) is not None
    assert [m for m in caplog.messages if m.startswith("compiling 1 lines of C with ") and "slow-cc" in m]


def test_what_programs_share_is_not_counted_in_lines(tmp_path, caplog):
    shared = Unit("int harp_of_a_test(void) { return 1; }", shared=True)  # as a line that includes a file of harp
    with caplog.at_level("INFO", "harp"):
        build_and_load(Source((shared,)), CompileOptions())
    assert [m for m in caplog.messages if m.startswith("compiled functions that programs share in ")]
    assert not [m for m in caplog.messages if "0 lines" in m]


@pytest.mark.slow
def test_harp_in_an_archive_brings_its_c(tmp_path):
    """Read through the loader, for the compiler has no path into it."""
    package = Path(harp.__file__).parent
    archive = tmp_path / "harp.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in package.rglob("*"):
            if "__pycache__" not in path.parts:
                file.write(path, path.relative_to(package.parent))
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, harp, harp.numpy as hnp
x = np.arange(12.0).reshape(3, 4)
np.testing.assert_allclose(harp.jit(lambda x: hnp.sort(hnp.sin(x @ x.T)))(x), np.sort(np.sin(x @ x.T)), rtol=1e-13)
print(harp.__file__.startswith(sys.argv[1]), harp.stats()["compiler_runs"])
"""
    command = [sys.executable, "-c", program, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.split() == ["True", "1"], done.stderr


def test_the_key_covers_what_is_included(monkeypatch):
    unit = Unit('#include "linalg/gemm.h"\n')
    known = toolchain.find_toolchain()
    before = building.cache_key((unit,), (), known)
    assert building.cache_key((unit,), (), known) == before
    real = library.text
    assert "names.h" in library.included(unit.text), "a file that this file includes"
    monkeypatch.setattr(library, "text", lambda name: real(name) + ("/**/" if name == "names.h" else ""))
    assert building.cache_key((unit,), (), known) != before
