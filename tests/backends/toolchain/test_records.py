"""Records of programs: a process that finds one does not lower, and nothing but the right one is believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import harp
from harp import sources
from harp.backends.options import CompileOptions
from harp.backends.toolchain import cache, records, toolchain
from harp.backends.toolchain.records import Record, recall, record_key, remember

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")

# Prints what was compiled, what was found, and whether the compiler of harp was imported.
PROGRAM = """
import sys
import numpy as np, harp, harp.numpy as hnp
w = np.arange(6.0).reshape(2, 3)
f = harp.jit(harp.value_and_grad(lambda x: hnp.sum(hnp.tanh(x @ w) * 2.0)))
for n in (3, 0, 5):
    x = np.linspace(-1.0, 1.0, 2 * n).reshape(n, 2)
    value, gradient = f(x)
    t = np.tanh(x @ w)
    np.testing.assert_allclose(value, 2 * t.sum(), atol=1e-13)
    np.testing.assert_allclose(gradient, 2 * (1 - t * t) @ w.T, atol=1e-13)
assert f.compilations == 1
lowered = [m for m in ("harp.lower.pipeline", "harp.backends.c.emit.render") if m in sys.modules]
stats = harp.stats()
print(stats["compiler_runs"], stats["cache_hits"], len(lowered))
"""
COLD, WARM, LOWERED = [1, 0, 2], [0, 1, 0], [0, 1, 2]


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HARP_CC", str(CC))
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HARP_VERIFY", "0")
    monkeypatch.setattr(cache, "_private", [])
    toolchain.reset()
    yield tmp_path / "cache"
    toolchain.reset()


def start(program: str = PROGRAM, place: Path | None = None, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=place,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> list[int]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return [int(word) for word in out.splitlines()[-1].split()]


def run(program: str = PROGRAM, place: Path | None = None, **environment: str) -> list[int]:
    return finish(start(program, place, **environment))


def content(path: Path) -> bytes:
    return path.read_bytes()[:-32]


def only_record(directory: Path) -> Path:
    (path,) = directory.glob("program-*.json")
    return path


def test_a_second_process_does_not_lower(directory):
    assert run() == COLD
    assert only_record(directory).stat().st_mode & 0o777 == 0o700
    assert run() == WARM == run()


READERS = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
"""
COUNT = """
print(sum("library" in path and path.endswith((".c", ".h")) for path in opened))
"""


def test_a_second_process_reads_no_c():
    """Neither for the program nor for the pool of threads."""
    (first,), (second,) = (run(READERS + PROGRAM + COUNT) for _ in range(2))
    assert first > 1 and second == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HARP_VERIFY", "HARP_DEBUG"])
def test_those_who_watch_the_compiler_see_it(directory, name):
    assert run(**{name: "1"}) == COLD
    assert not list(directory.glob("program-*"))
    assert run() == LOWERED and run() == WARM
    assert run(**{name: "1"}) == LOWERED


def test_the_stages_can_be_seen_after_all():
    show = "\nassert 'harp_run' in f.lower(x).source and 'harp.lower.pipeline' in sys.modules"
    assert run(PROGRAM + show) == COLD and run(PROGRAM + show) == WARM


@pytest.mark.slow
def test_many_processes_at_once(directory):
    for result in [finish(process) for process in [start() for _ in range(6)]]:
        assert result[0] in (0, 1)
    only_record(directory)
    assert not [path for path in directory.iterdir() if path.name.startswith(".")]
    assert run() == WARM


def test_many_parameters(directory):
    program = """
import sys
import numpy as np, harp
f = harp.jit(lambda arrays: [x + 1 for x in arrays])
for size in (2, 3):
    for k, y in enumerate(f([np.full(size, float(k)) for k in range(120)])):
        np.testing.assert_array_equal(y, np.full(size, k + 1.0))
print(harp.stats()["compiler_runs"], harp.stats()["cache_hits"], int("harp.lower" in sys.modules))
"""
    assert run(program) == [1, 0, 1] and run(program) == [0, 1, 0]


DONATING = """
import sys
import numpy as np, harp, harp.numpy as hnp
step = lambda x, y: (x - y, y * 2.0, hnp.sum(x))
f, plain = harp.jit(step, donate_argnums=(0, 1)), harp.jit(step)
address = lambda a: np.asarray(a).__array_interface__["data"][0]
for size in (3, 1, 1000):
    for g in (f, plain, f):
        x, y = hnp.asarray(np.full(size, 5.0)), hnp.asarray(np.ones(size))
        places = address(x), address(y)
        a, b, c = g(x, y)
        np.testing.assert_array_equal(a, np.full(size, 4.0))
        np.testing.assert_array_equal(b, np.full(size, 2.0))
        assert float(c) == 5.0 * size
        assert ((address(a), address(b)) == places) is (g is f)
print(harp.stats()["compiler_runs"], harp.stats()["cache_hits"], int("harp.lower" in sys.modules))
"""


def test_what_is_donated_is_remembered(directory):
    assert run(DONATING) == [2, 0, 1] and len(list(directory.glob("program-*.json"))) == 2
    assert run(DONATING) == [0, 2, 0]
    for path in directory.glob("program-*.json"):  # a pair that the caller has not offered is not believed
        rewrite(lambda fields: [*fields[:6], [[0, 0], [1, 0]]])(path)
    assert run(DONATING) == [0, 2, 1] and run(DONATING) == [0, 2, 0]


def rewrite(change: Callable[[list], object]) -> Callable[[Path], object]:
    """An entry that is whole, with other content."""
    return lambda path: cache.put(path.stem, ".json", json.dumps(change(json.loads(content(path)))).encode())


def swap(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


DAMAGE = {
    "flipped bit": lambda path: path.write_bytes(path.read_bytes().replace(b"program", b"qrogram", 1)),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "others can write": lambda path: path.chmod(0o722),
    "link": swap,
    "not JSON": lambda path: cache.put(path.stem, ".json", b"\xff{"),
    "deep JSON": lambda path: cache.put(path.stem, ".json", b"[" * 100_000),
    "not a list": rewrite(lambda fields: {"library": fields[1]}),
    "of another program": rewrite(lambda fields: ["program-" + "0" * 64, *fields[1:]]),
    "library elsewhere": rewrite(lambda fields: [fields[0], "../" + fields[1], *fields[2:]]),
    "library unknown": rewrite(lambda fields: [fields[0], "0" * 64, *fields[2:]]),
    "fewer arrays": rewrite(lambda fields: [*fields[:2], fields[2] - 1, *fields[3:]]),
    "negative": rewrite(lambda fields: [*fields[:4], -1, *fields[5:]]),
    "number for bool": rewrite(lambda fields: [*fields[:5], 1, *fields[6:]]),
    "pairs that are none": rewrite(lambda fields: [*fields[:6], [[0]]]),
    "pairs of texts": rewrite(lambda fields: [*fields[:6], [["0", "0"]]]),
    "arrays that are not donated": rewrite(lambda fields: [*fields[:6], [[0, 0]]]),
    "too long": rewrite(lambda fields: [*fields, 0]),
}


@pytest.mark.slow
def test_bad_records_are_not_believed_and_are_mended(directory):
    """Each of them is that of another program of one process."""
    programs = f"""
import sys
import numpy as np, harp
for k in range({len(DAMAGE)}):
    np.testing.assert_array_equal(harp.jit(lambda x: x * (k + 2.0))(np.ones(3)), np.full(3, k + 2.0))
print(harp.stats()["compiler_runs"], harp.stats()["cache_hits"], int("harp.lower" in sys.modules))
"""
    assert run(programs) == [len(DAMAGE), 0, 1]
    good = {path: content(path) for path in sorted(directory.glob("program-*.json"))}
    for path, damage in zip(good, DAMAGE.values(), strict=True):
        damage(path)
    assert run(programs) == [0, len(DAMAGE), 1]
    for path, name in zip(good, DAMAGE, strict=True):
        assert content(path) == good[path] and not path.is_symlink(), name
    assert run(programs) == [0, len(DAMAGE), 0]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["missing", "flipped bit", "other functions"])
def test_a_record_of_a_bad_library(directory, damage):
    assert run() == COLD
    path = directory / (json.loads(content(only_record(directory)))[1] + ".so")
    data = content(path)
    path.unlink()
    if damage == "flipped bit":
        path.write_bytes(data[:500] + b"X" + data[501:])
    elif damage == "other functions":
        cache.put(path.stem, ".so", data.replace(b"harp_run", b"harp_rum"))
    compiled, _, lowered = run()
    assert (compiled, lowered) == (1, 2) and run() == WARM


def copy_of_harp(path: Path) -> Path:
    source = Path(harp.__file__).parent
    shutil.copytree(source, path / "harp", ignore=shutil.ignore_patterns("__pycache__"))
    return path / "harp"


@pytest.mark.slow
def test_an_edited_compiler_serves_none_of_its_old_programs(tmp_path):
    """Whatever the edit does to size and modification time."""
    package = copy_of_harp(tmp_path)
    assert run(place=tmp_path) == COLD and run(place=tmp_path) == WARM
    edited = package / "lower" / "cost_model.py"
    text, status = edited.read_text(), edited.stat()
    edited.write_text(text.replace("the", "teh", 1))
    os.utime(edited, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert edited.stat().st_size == status.st_size and edited.stat().st_mtime_ns == status.st_mtime_ns
    assert run(place=tmp_path) == LOWERED and run(place=tmp_path) == WARM
    (package / "lower" / "another.py").write_text("")
    assert run(place=tmp_path) == LOWERED


@pytest.mark.slow
def test_an_edit_while_the_process_runs(tmp_path, directory):
    package = copy_of_harp(tmp_path)
    edit = PROGRAM.replace(
        "w = np", f"open({str(package / 'lower' / 'cost_model.py')!r}, 'a').write('# more')\nw = np", 1
    )
    assert run(edit, tmp_path) == COLD
    assert not list(directory.glob("program-*"))


def test_harp_that_is_not_made_of_files(monkeypatch):
    monkeypatch.setattr(sources, "LOADED", "")
    assert not sources.unchanged() and record_key(b"graph", CompileOptions()) is None
    monkeypatch.setattr(sources.os, "scandir", lambda path: (_ for _ in ()).throw(NotADirectoryError()))
    assert sources.snapshot() == ""


def test_what_is_in_the_key(monkeypatch):
    keys = {record_key(graph, CompileOptions(level)) for graph in (b"a", b"b") for level in (1, 2)}
    monkeypatch.setattr(records.np, "__version__", "0")
    keys.add(record_key(b"a", CompileOptions()))
    found = toolchain.find_toolchain()
    for changed in ({"fma": not found.fma}, {"vector_bytes": 8}, {"isa": ()}, {"version": ""}, {"command": ("x",)}):
        monkeypatch.setattr(records, "find_toolchain", lambda changed=changed: found._replace(**changed))
        keys.add(record_key(b"a", CompileOptions()))
    keys |= {record_key(b"a", CompileOptions(), donated) for donated in ((0,), (1,), (0, 1), (10,))}
    assert len(keys) == 14 and None not in keys
    monkeypatch.setattr(records, "find_toolchain", lambda: None)
    assert record_key(b"a", CompileOptions()) is None


RECORD = Record("0" * 64, 1, 2, 3, False, ((0, 1),))
KEY = "program-" + "1" * 64


def test_round_trip():
    assert recall(KEY) is None
    remember(KEY, RECORD)
    assert recall(KEY) == RECORD


def test_a_record_that_cannot_be_stored(monkeypatch):
    def full(source, target, **directories):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    remember(KEY, RECORD)
    assert recall(KEY) is None


@pytest.mark.slow
def test_a_directory_that_cannot_be_used(tmp_path):
    """Nothing is kept there, and everything still computes."""
    (tmp_path / "cache").write_text("a file")
    assert run() == COLD == run()


@pytest.mark.slow
def test_a_directory_without_execution(monkeypatch, directory):
    """What is loaded from memory has a record too."""
    assert run() == COLD
    refuse = """
from harp.backends.runtime import load
class Refusing(load.Library):
    def __init__(self, stored, keep=False):
        if stored.place is not None:
            raise OSError("failed to map segment")
        super().__init__(stored, keep)
load.Library = Refusing
"""
    program = PROGRAM.replace("w = np", f"{refuse}w = np", 1)
    if hasattr(os, "memfd_create"):
        assert run(program) == WARM
        only_record(directory).unlink()
        assert run(program) == LOWERED and run(program) == WARM
