"""How large a cache directory grows, what goes first, and what is left alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harp.backends.toolchain import bound, cache, trust

SIZE = 40_000


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def put(number: int) -> Path:
    path = cache.put(key(number), ".so", bytes(SIZE))
    assert path is not None
    return path


def total(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def limit(directory: Path, size: int) -> None:
    opened = trust.open_directory(directory)
    bound.set_limit(opened, size)
    os.close(opened)


def test_no_more_than_the_limit(directory):
    put(0)
    limit(directory, 20 * SIZE)
    for number in range(100):
        put(number)
        assert total(directory) <= 20 * SIZE
    assert len(list(directory.glob("*.so"))) >= 10
    assert cache.get(key(99), ".so") is not None and cache.get(key(1), ".so") is None


def test_what_was_used_last_stays(directory):
    """A use counts once in an hour."""
    for number in range(20):
        path = put(number)
        moment = time.time() - 86400 + number
        os.utime(path, (moment, moment))
    assert cache.get(key(0), ".so") is not None
    opened = trust.open_directory(directory)
    bound.shrink(opened, 3 * (SIZE + 4096))
    os.close(opened)
    left = {path.stem for path in directory.glob("*.so")}
    assert left == {key(0), key(19), key(18)}


def test_other_files_are_left_alone(directory):
    put(0)
    kept = [directory / name for name in ("notes.txt", "a.so", "README", ".hidden")]
    for path in kept:
        path.write_text("mine" * SIZE)
    half = directory / f".{key(1)}.so.0123abcd"
    young = directory / f".{key(2)}.so.0123abcd"
    for path in (half, young):
        path.write_text("not whole")
    os.utime(half, (1, 1))
    opened = trust.open_directory(directory)
    bound.shrink(opened, 0)
    assert bound.entries(opened) == [] and all(path.exists() for path in kept)
    assert young.exists() and not half.exists(), "somebody may still write to the young one"
    put(0)
    assert bound.clear(opened) == 1 and all(path.exists() for path in kept)
    os.close(opened)


@pytest.mark.parametrize("content", [b"", b"plenty", b"-1", b"\xff" * 50])
def test_a_limit_that_is_none(directory, content):
    put(0)
    (directory / "limit").write_bytes(content)
    opened = trust.open_directory(directory)
    assert bound.limit(opened) == bound.USUAL
    (directory / "limit").unlink()
    os.mkfifo(directory / "limit")
    assert bound.limit(opened) == bound.USUAL, "nobody is waited for"
    os.close(opened)


STORM = """
import hashlib, sys
from harp.backends.toolchain import cache
first = int(sys.argv[1])
for number in range(first, first + 60):
    key = hashlib.sha256(str(number % 90).encode()).hexdigest()
    content = key.encode() * 600
    cache.put(key, ".so", content)
    for other in (number, number - 20, number - 50):
        key = hashlib.sha256(str(other % 90).encode()).hexdigest()
        found = cache.get(key, ".so")
        assert found is None or found == key.encode() * 600
print("done")
"""


def test_many_processes_at_once(directory):
    put(1000)  # none of those that the processes write, with other content
    limit(directory, 20 * SIZE)
    started = [subprocess.Popen([sys.executable, "-c", STORM, str(k * 17)], stdout=subprocess.PIPE) for k in range(6)]
    started[0].kill()
    said = [process.communicate(timeout=300)[0] for process in started]
    assert said[1:] == [b"done\n"] * 5
    put(1000)
    assert total(directory) <= 32 * SIZE, "what others wrote during the last look"
