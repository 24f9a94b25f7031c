"""The report of `python -m harp doctor` and its exit status."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

import harp
from harp.__main__ import main
from harp.backends import doctor
from harp.backends.protocol import Source, Unit
from harp.backends.toolchain import build as building
from harp.backends.toolchain import cache, toolchain

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    for name in ("HARP_CC", "CC", "HARP_CC_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setattr(doctor, "_devices", lambda: iter(()))  # test_devices.py is about them
    toolchain.reset()
    yield tmp_path / "cache"
    toolchain.reset()


def fake(monkeypatch, path, body: str):
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("HARP_CC", str(path))
    return path


@needs_cc
def test_working(capsys, directory):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for text in ("python ", "numpy ", ": chosen", "-m", f"{directory}: in use", "compiles, loads and runs"):
        assert text in out


def test_no_compiler(monkeypatch, capsys):
    monkeypatch.setenv("HARP_CC", "none")
    assert main(["doctor"]) == 1
    assert "unset HARP_CC" in capsys.readouterr().out
    toolchain.reset()
    monkeypatch.delenv("HARP_CC")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "gcc: not found" in out and "pip install ziglang" in out


@needs_cc
def test_broken_compiler_is_passed_over(monkeypatch, capsys, tmp_path):
    fake(monkeypatch, tmp_path / "bad", "echo oh no >&2; exit 1")
    assert main(["doctor"]) == 0
    assert "bad: does not make a library: oh no" in capsys.readouterr().out


@needs_cc
def test_compiler_that_breaks_later(monkeypatch, capsys, tmp_path):
    path = fake(monkeypatch, tmp_path / "my-cc", f'exec "{CC}" "$@"')
    assert main(["doctor"]) == 0
    fake(monkeypatch, path, "echo out of licences >&2; exit 1")
    assert main(["doctor"]) == 1
    assert "out of licences" in capsys.readouterr().out


@needs_cc
def test_wrong_answer_and_silent_version(monkeypatch, capsys, tmp_path):
    body = f'[ "$1" = --version ] && exit 0; exec "{CC}" "$@"'
    fake(monkeypatch, tmp_path / "my-cc", body)
    monkeypatch.setattr(doctor, "_TRIAL", Source((Unit(str(doctor._TRIAL).replace("x + 1", "x + 2")),)))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "gave 3 instead of 2" in out and "of unknown version" in out


@needs_cc
def test_cache_that_cannot_be_used(monkeypatch, capsys, tmp_path, directory):
    directory.write_text("a file")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"{directory}: File exists" in out and "set HARP_CACHE_DIR" in out and out.count("in use") == 1
    if hasattr(os, "memfd_create"):
        monkeypatch.setattr(cache, "prepare", lambda directory: "is full")
        assert main(["doctor"]) == 0
        assert "memory: each process" in capsys.readouterr().out
    monkeypatch.setattr(cache, "prepare", lambda directory: "is full")
    monkeypatch.setattr(building, "in_memory", lambda content: None)
    assert main(["doctor"]) == 1
    assert "cannot be stored" in capsys.readouterr().out


@pytest.mark.slow
def test_command_line():
    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-m", "harp", *words], capture_output=True, text=True, check=False)

    assert run("--version").stdout == f"harp {harp.__version__}\n"
    report = run("doctor")
    assert report.returncode == (0 if ": chosen" in report.stdout else 1) and report.stderr == ""
    alone = run()
    assert alone.returncode == 0 and "doctor" in alone.stdout and run("nurse").returncode == 2


@needs_cc
def test_what_a_compiler_says_of_itself_does_not_reach_the_terminal_raw(monkeypatch, tmp_path, capsys):
    says = r"""[ "$1" = --version ] && printf 'cc \033[2J 1.0\n' && exit; """
    fake(monkeypatch, tmp_path / "cc", f'{says}exec {CC} "$@"')
    assert main(["doctor"]) == 0
    assert r"cc \x1b[2J 1.0" in capsys.readouterr().out
