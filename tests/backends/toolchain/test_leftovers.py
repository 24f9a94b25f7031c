"""Temporary directories: what a killed process has left is removed, and nothing else."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime.load import build_and_load
from harp.backends.toolchain import cache, leftovers, toolchain

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(leftovers, "_looked_in", set())
    return tmp_path


def left(path: Path, days: float = 2.0) -> Path:
    path.mkdir()
    (path / "unit0.c").write_text("")
    moment = path.stat().st_mtime - days * 86400
    os.utime(path, (moment, moment))
    return path


def finished() -> int:
    """The number of a process that is no more."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_what_was_left_behind_is_removed(directory):
    gone = [left(directory / name) for name in ("harp-build-a", f"harp-private-{finished()}-a", "harp-private-²-a")]
    kept = [left(directory / name) for name in ("mine", f"harp-private-{os.getpid()}-a", "harp-builder")]
    kept.append(left(directory / "harp-build-young", 0.5))
    (directory / "harp-build-link").symlink_to(kept[0])
    (directory / "harp-build-file").write_text("")
    with leftovers.scratch() as made:
        assert not any(path.exists() for path in gone) and all((path / "unit0.c").exists() for path in kept)
        assert Path(made).is_dir()
    assert (directory / "harp-build-link").is_symlink() and (directory / "harp-build-file").exists()


def test_a_directory_that_cannot_be_removed_hides_no_interrupt(monkeypatch):
    """A compiler that was stopped may be writing its last file."""

    def fail(path, **_):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))

    monkeypatch.setattr(os, "rmdir", fail)
    with pytest.raises(KeyboardInterrupt), leftovers.scratch():
        raise KeyboardInterrupt


@root
def test_what_others_have_left_stays(directory):
    path = left(directory / "harp-build-a")
    os.chown(path, 12345, -1)
    with leftovers.scratch():
        assert path.exists()


@pytest.mark.skipif(CC is None, reason="no C compiler")
def test_the_temporary_files_of_a_compiler_are_where_it_works(monkeypatch, tmp_path, directory):
    """A compiler that is killed cannot remove them."""
    log, compiler = tmp_path / "log", tmp_path / "my-cc"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *.c*) echo "$TMPDIR" >> "{log}";; esac\nexec "{CC}" "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("HARP_CC", str(compiler))
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    toolchain.reset()
    source = Source((Unit('__attribute__((visibility("default"))) int f(int x) { return x + 2; }\n'),))
    assert build_and_load(source, CompileOptions()).function("f", "int(*)(int)")(1) == 3
    toolchain.reset()
    places = {Path(line) for line in log.read_text().splitlines()}
    assert places and all(place.name.startswith("harp-build-") and place.parent == directory for place in places)
