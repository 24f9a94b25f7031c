"""Programs of the process: how they are called, and who makes them when several ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends.runtime.executable import CExecutable
from harp.backends.toolchain import toolchain
from harp.backends.toolchain.toolchain import find_toolchain

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")
compiled = pytest.mark.skipif(find_toolchain() is None, reason="there is no compiled program")
about_the_compiler = pytest.mark.usefixtures("processor")  # no other device runs it


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def python(code: str, *flags: str, **environment: str) -> subprocess.CompletedProcess:
    """A fresh process that runs this code."""
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("count", [33, 34, 300])
def test_many_arrays(count):
    f = harp.jit(lambda arrays: [x + 1 for x in arrays])
    for sizes in (2, 3):
        arrays = [np.full(sizes + k % 3, float(k)) for k in range(count)]
        for x, y in zip(arrays, f(arrays), strict=True):
            npt.assert_array_equal(y, x + 1)
    assert f.compilations == 1


def test_gradients_of_many_arrays():
    weights = [np.full(2, float(k)) for k in range(100)]  # captured arrays are parameters too

    def f(arrays):
        return sum(hnp.sum(hnp.sin(x) * weights[k % 100][0]) for k, x in enumerate(arrays))

    arrays = [np.full(2 + k % 2, 0.5 + k) for k in range(260)]
    for k, gradient in enumerate(harp.jit(harp.grad(f))(arrays)):
        npt.assert_allclose(gradient, k % 100 * np.cos(arrays[k]))


@compiled
def test_scratch_of_many_arrays():
    f = harp.jit(lambda arrays: [hnp.matmul(hnp.matmul(x, x.T), x) for x in arrays])
    arrays = [np.ones((20 + k % 2, 30)) for k in range(30)]
    for x, y in zip(arrays, f(arrays), strict=True):
        npt.assert_allclose(y, x @ x.T @ x)
    assert harp.stats()["scratch_bytes"] > 0


@compiled
@about_the_compiler
def test_scratch_is_asked_for_when_sizes_change(monkeypatch):
    asked, bytes_of = [], CExecutable.scratch_bytes
    monkeypatch.setattr(CExecutable, "scratch_bytes", lambda kernel, n: asked.append(tuple(n)) or bytes_of(kernel, n))
    f = harp.jit(lambda x: hnp.matmul(hnp.matmul(x, x.T), x))
    for n in (3, 3, 3, 700, 700, 3, 3):
        npt.assert_allclose(f(np.ones((n, 2))), np.full((n, 2), 2.0 * n))
    assert [n for n, *_ in asked] == [3, 700, 3]
    assert harp.stats()["scratch_bytes"] >= 700 * 700 * 8


FORK = """
import os, pathlib, signal, threading, time
import numpy as np, harp
mark = pathlib.Path(os.environ["MARK"])
thread = threading.Thread(target=lambda: harp.jit(lambda x: x * 2.0)(np.ones(3)))
thread.start()
while not mark.exists():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(200)
    harp.stats()
    assert harp.jit(lambda x: x + 1.0)(np.ones(3))[0] == 2.0
    os._exit(0)
thread.join()
assert os.waitpid(child, 0)[1] == 0, "the child did not finish"
"""


@pytest.mark.slow
@needs_cc
@pytest.mark.parametrize("moment", ["--version", "unit"])
@about_the_compiler
def test_fork_while_another_thread_compiles(tmp_path, moment):
    mark = tmp_path / "mark"
    body = f'case "$*" in *{moment}*) : > "{mark}"; sleep 1;; esac; exec "{CC}" "$@"'
    compiler = script(tmp_path / "slow", body)
    done = python(FORK, HARP_CC=str(compiler), HARP_CACHE_DIR=str(tmp_path / "cache"), MARK=str(mark))
    assert done.returncode == 0, done.stderr


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """Chooses a compiler of this process, and an empty cache."""

    def choose(body: str) -> None:
        monkeypatch.setenv("HARP_CC", str(script(tmp_path / "my-cc", body)))
        toolchain.reset()

    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    yield choose
    monkeypatch.undo()
    toolchain.reset()


def in_threads(count: int, work) -> None:
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


@needs_cc
@about_the_compiler
def test_different_programs_are_made_at_the_same_time(compiler, tmp_path):
    meet = f"""case "$*" in *unit*.c*)
        : > "{tmp_path}/$$.met"
        for i in $(seq 1000); do [ $(ls "{tmp_path}" | grep -c met) -ge 2 ] && exec "{CC}" "$@"; sleep 0.1; done
        echo alone >&2; exit 1;;
    esac
    exec "{CC}" "$@" """
    compiler(meet)
    in_threads(2, lambda k: npt.assert_array_equal(harp.jit(lambda x: x * (k + 17.0))(np.ones(2)), (k + 17.0)))


@needs_cc
@about_the_compiler
def test_the_same_program_is_made_once(compiler, tmp_path):
    compiler(f'case "$*" in *unit*.c*) sleep 0.3;; esac; exec "{CC}" "$@"')
    before = harp.stats()["programs"]
    in_threads(4, lambda k: npt.assert_array_equal(harp.jit(lambda x: x * 19.0)(np.ones(2)), 19.0))
    assert harp.stats()["programs"] == before + 1


CALL = """import numpy as np, harp
f = harp.jit(lambda x: x * 2.0)
assert f(np.ones(2))[0] == 2.0
assert harp.jit(lambda x: x * 3.0)(np.ones(2))[0] == 3.0
"""


def warning_of(path: Path, **environment: str) -> str:
    """The one warning of a process, which names the line of the user."""
    program = path / "program.py"
    program.write_text(CALL)
    environment = {**os.environ, "HARP_CACHE_DIR": str(path / "cache"), **environment}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.count("Warning") == 1 and f"{program}:3: RuntimeWarning: " in done.stderr, done.stderr
    return done.stderr


@needs_cc
@about_the_compiler
def test_a_wrong_compiler_is_named(tmp_path):
    text = warning_of(tmp_path, HARP_CC="/nonsense")
    assert "HARP_CC='/nonsense' is passed over (not found): harp uses cc" in text and "unset it" in text
    text = warning_of(tmp_path, HARP_CC=str(script(tmp_path / "bad", "echo no licence >&2; exit 1")))
    assert "no licence" in text and "harp uses cc" in text


@about_the_compiler
def test_the_interpreter_is_a_warning(tmp_path):
    assert "HARP_CC=none asks for no C compiler" in warning_of(tmp_path, HARP_CC="none")
    bad = script(tmp_path / "gcc", "echo no licence >&2; exit 1")
    nowhere = {"PATH": str(tmp_path), "PYTHONPATH": blocked(tmp_path), "HARP_CC": "", "CC": ""}
    text = warning_of(tmp_path, **nowhere)
    assert "no C compiler works (gcc: does not make a library: no licence)" in text and "doctor" in text
    bad.unlink()
    assert "no C compiler was found: " in warning_of(tmp_path, **nowhere)
    assert "no C compiler works (nonsense: not found): " in warning_of(tmp_path, **nowhere | {"HARP_CC": "nonsense"})


def blocked(path: Path) -> str:
    """A search path of modules on which ziglang is not found."""
    (path / "sitecustomize.py").write_text("import sys; sys.modules['ziglang'] = None")
    return os.pathsep.join([str(path), str(Path(harp.__file__).parent.parent)])


@needs_cc
@about_the_compiler
def test_no_warning_where_nothing_is_wrong(tmp_path):
    done = python(CALL, "-W", "error", HARP_CC=str(CC), HARP_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


AT_THE_END = """
import atexit, sys
import numpy as np, harp, harp.numpy as hnp
def call(what, function):
    try:
        print(what, np.asarray(harp.jit(function)(np.array([2.0, 1.0]))).tolist())
    except harp.errors.HarpError as error:
        print(what, str(error).partition(": ")[0])
class Late:
    def __del__(self, call=call, np=np, harp=harp):
        call("module", lambda x: x * 23.5)
sys.modules["late"] = Late()  # dies with the modules
atexit.register(call, "atexit", lambda x: hnp.sort(x) * 21.5)
"""


@needs_cc
@about_the_compiler
def test_a_program_is_made_while_python_ends(tmp_path):
    """Where no thread can be started any more, a program is made; where no module can be imported, an error says so."""
    done = python(AT_THE_END, HARP_CC=str(CC), HARP_CACHE_DIR=str(tmp_path))
    made, late = done.stdout.splitlines()
    assert made == "atexit [21.5, 43.0]" and late in ("module [47.0, 23.5]", LATE), done.stderr
    done = python(AT_THE_END.replace("atexit.register", "0 and call"), HARP_CC=str(CC), HARP_CACHE_DIR=str(tmp_path))
    assert done.stdout.splitlines()[-1] == LATE, done.stderr


LATE = "module the compiler of harp cannot be imported"
