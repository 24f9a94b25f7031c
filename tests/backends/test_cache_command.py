"""`python -m harp cache`: what it shows, removes, and moves between machines."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harp.__main__ import main
from harp.backends.toolchain import cache, machine

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")
PROGRAM = """
import numpy as np, harp
assert (harp.jit(lambda x: x * 2.0 + 1.0)(np.arange(3.0)) == np.array([1.0, 3.0, 5.0])).all()
print(harp.stats()["compiler_runs"], harp.stats()["cache_hits"])
"""


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HARP_VERIFY", "0")
    return tmp_path / "cache"


def run(directory: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "HARP_CC")}
    kept |= {"HARP_CACHE_DIR": str(directory)} | environment
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=kept, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_a_command_it_says_what_there_is(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "doctor" in out and "cache" in out


def test_nothing_is_there(capsys, tmp_path):
    assert main(["cache"]) == 0 and "no cache directory" in capsys.readouterr().out
    assert main(["cache", "export", str(tmp_path / "file")]) == 1 and not (tmp_path / "file").exists()


@pytest.mark.slow
@needs_cc
def test_what_is_shown_and_cleared(directory, capsys):
    assert [run(directory) for _ in range(3)] == ["1 0", "0 1", "0 1"]
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert str(directory) in out and "1 programs, 2 libraries" in out and "at most 1 GB" in out
    assert "2 programs found" in out
    assert main(["cache", "--max-size", "1.5 MB"]) == 0 and "at most 1.5 MB" in capsys.readouterr().out
    assert run(directory) == "0 1"
    assert main(["cache", "clear"]) == 0
    out = capsys.readouterr().out
    assert "entries    0" in out and "hits       0" in out and "at most 1.5 MB" in out
    assert run(directory) == "1 0"
    assert main(["cache", "--max-size", "0"]) == 0 and "entries    0" in capsys.readouterr().out
    assert run(directory) == "1 0", "nothing is kept, and all is computed"


@needs_cc
@pytest.mark.skipif(not machine.features(), reason="the system does not say what the processor can do")
def test_programs_move_to_another_machine(directory, capsys, monkeypatch, tmp_path):
    assert run(directory) == "1 0"
    file = tmp_path / "programs.harp"
    assert main(["cache", "export", str(file)]) == 0 and "exported" in capsys.readouterr().out
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "other"))
    assert main(["cache", "import", str(file)]) == 0
    assert "imported" in capsys.readouterr().out
    assert run(tmp_path / "other", PATH="/nonexistent") == "0 1"
    assert run(tmp_path / "other") == "0 1", "the same compiler"


def changed(file: Path, change) -> Path:
    """The export with other versions, or content of its entries, and their digests."""
    made = file.with_name("changed")
    with gzip.open(file) as old, gzip.open(made, "wb") as new:
        new.write(change("versions", old.readline()[:-1]) + b"\n")
        while line := old.readline():
            name, size, _ = json.loads(line)
            data = change(name, old.read(size))
            if data is not None:
                new.write(json.dumps([name, len(data), cache.digest(name, data).hex()]).encode() + b"\n" + data)
    return made


def with_fields(kind: str, change):
    return lambda name, data: json.dumps(change(json.loads(data))).encode() if name.startswith(kind) else data


WRONG = {
    "another processor": (with_fields("toolchain-", lambda f: [*f[:7], [*f[7], "avx4096"]]), "lacks avx4096"),
    "another system": (
        with_fields("toolchain-", lambda f: [*f[:6], "plan9\x1b]0;\x07", f[7]]),
        r"lacks plan9\x1b]0;\x07;",
    ),
    "no compiler": (lambda name, data: None if name.startswith("toolchain-") else data, "lacks a compiler"),
    "a crafted compiler": (with_fields("toolchain-", lambda f: [[]]), "lacks what it is for"),
    "another harp": (with_fields("versions", lambda f: [f[0], "harp \x1b[2J", *f[2:]]), r"made by harp \x1b[2J,"),
    "no versions": (lambda name, data: b"{}" if name == "versions" else data, "no export of a cache"),
    "deep versions": (lambda name, data: b"[" * 10**5 if name == "versions" else data, "no export"),
}


@needs_cc
@pytest.mark.skipif(not machine.features(), reason="the system does not say what the processor can do")
def test_files_that_are_of_no_use(directory, capsys, monkeypatch, tmp_path):
    assert run(directory) == "1 0"
    file = tmp_path / "programs.harp"
    main(["cache", "export", str(file)])
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "other"))
    capsys.readouterr()
    for change, message in WRONG.values():
        assert main(["cache", "import", str(changed(file, change))]) == 1
        assert message in capsys.readouterr().err
    file.write_bytes(file.read_bytes()[:2000])
    assert main(["cache", "import", str(file)]) == 1 and "cannot be read" in capsys.readouterr().err
    assert main(["cache", "import", str(tmp_path / "missing")]) == 1
    assert not (tmp_path / "other").exists() or not list((tmp_path / "other").glob("*.so"))


@pytest.mark.parametrize("words", [["export"], ["clear", "file"], ["file"], ["import"]])
def test_wrong_words(words):
    with pytest.raises(SystemExit):
        main(["cache", *words])


def test_sizes_that_are_none(directory, capsys):
    directory.mkdir(mode=0o700)
    for text in ("plenty", "-1", "1e9", "", "1 XB", "9" * 40, "٣M", "3\N{KELVIN SIGN}"):
        assert main(["cache", f"--max-size={text}"]) == 1 and "is no size" in capsys.readouterr().err
