"""Runs of compilers: nothing is left of them, whatever comes between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harp.backends.toolchain import process
from harp.backends.toolchain.process import Done, Job, TimedOut

INTERRUPTED = """
import collections, os, random, signal, sys, tempfile, threading, time
from harp.backends.toolchain import leftovers, process

tempfile.tempdir = sys.argv[1]
rng, raised, armed = random.Random(1), collections.Counter(), False

def interrupt(number, frame):
    if armed:
        raise KeyboardInterrupt

def interrupts(parent):
    while os.getppid() == parent:
        time.sleep(10 ** rng.uniform(-4, -1.3))
        os.kill(parent, signal.SIGINT)

signal.signal(signal.SIGINT, interrupt)
parent = os.getpid()
sender = os.fork()
if sender == 0:
    try:
        interrupts(parent)
    finally:
        os._exit(0)
end = time.monotonic() + 100
opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
while raised.total() < 50 and time.monotonic() < end:
    try:
        armed = True
        with leftovers.scratch() as directory:
            (directory / "inside").mkdir()
            (directory / "inside" / "file").write_text("")
            jobs = [process.Job(("/bin/sh", "-c", f"sleep {s}; exit 0"), lambda done: None) for s in (0, 0, 0, 30)]
            process.run_all(jobs[: rng.randint(2, 4)], 100.0, directory)
    except BaseException as error:
        armed = False
        raised[type(error).__name__] += 1
    armed = False
os.kill(sender, signal.SIGKILL)
os.waitpid(sender, 0)
try:
    left = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    left = None
leftovers._remove_unused()
assert not opened or len(os.listdir("/proc/self/fd")) == opened
print(list(raised), raised.total() >= 50, left, threading.active_count(), os.listdir(sys.argv[1]))
"""


def test_nothing_is_left_of_what_was_interrupted(tmp_path):
    """No process, no thread, no directory; and each interrupt comes as what it is."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "['KeyboardInterrupt'] True None 1 []\n", done.stderr


LIMITED = """
import resource, sys
import numpy as np, harp, harp.numpy as hnp
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]) * 2**20,) * 2)
try:
    print(np.asarray(harp.jit(lambda x: hnp.cumsum(x * 3.0))(np.ones(3)))[2])
except (MemoryError, harp.errors.HarpError) as error:
    print("refused")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
@pytest.mark.parametrize("room", [0, 20])
def test_a_limit_of_memory_is_no_hang(tmp_path, room):
    command = [sys.executable, "-c", LIMITED, str(room)]
    environment = os.environ | {"HARP_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.stdout in ("9.0\n", "refused\n") or "MemoryError" in done.stderr, done.stderr


def run(tmp_path, script: str, seconds: float = 100.0) -> Done:
    return process.run(("/bin/sh", "-c", script), seconds, tmp_path)


def test_what_became_of_a_run(tmp_path):
    done = run(tmp_path, 'read line; echo "$LC_ALL $TMPDIR $line"; printf "\\377" >&2; exit 3')
    assert done == Done(3, f"C {tmp_path} \n", "\ufffd")
    assert run(tmp_path, "kill -9 $$").returncode == -9
    with pytest.raises(TimedOut, match=r"longer than 0\.1 s"):
        run(tmp_path, "sleep 100", 0.1)
    with pytest.raises(FileNotFoundError):
        process.run((str(tmp_path / "missing"),), 1.0, tmp_path)


def test_descriptors_are_not_passed_on(tmp_path):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        assert run(tmp_path, f"echo open >&{writing}").returncode != 0
    finally:
        os.close(reading)
        os.close(writing)


def test_jobs_are_asked_for_when_there_is_room(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    events: list[str] = []

    def jobs():
        for _ in range(4):
            events.append("asked")
            yield Job(("/bin/sh", "-c", "exit 0"), lambda done: events.append("ended"))

    process.run_all(jobs(), 100.0, tmp_path)
    assert events[:3] == ["asked", "asked", "ended"] and events.count("ended") == 4


@pytest.mark.parametrize("missing", [AttributeError, OSError])
def test_where_the_system_does_not_say_when_a_process_ends(monkeypatch, tmp_path, missing):
    def refuse(pid):
        raise missing

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    assert process.run(("/bin/sh", "-c", "sleep 0.05; echo it ends"), 10.0, tmp_path).stdout == "it ends\n"
