"""Claims: where several processes need the same program at once, one compiles it."""

import os
import signal
import subprocess
import sys
import time

import pytest

import harp
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.toolchain import cache, claims
from harp.backends.toolchain.build import build

KEY = "ab" * 32
# Holds a claim, says so, and ends when it reads a line.
HOLDER = f"""
import sys
from harp.backends.toolchain.claims import claimed
with claimed({KEY!r}):
    print("claimed", flush=True)
    sys.stdin.readline()
"""
# Waits for the beginning, and compiles a program.
PROGRAM = """
import sys
import numpy as np
import harp
f = harp.jit(lambda x: x * 3 + 1)
print(flush=True)
sys.stdin.readline()
assert (f(np.ones(3)) == 4).all()
harp.wait_for_compilers()
print(harp.stats()["compiler_runs"])
"""


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def start(code):
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def holder(directory):
    with start(HOLDER) as process:
        assert process.stdout.readline() == "claimed\n"
        yield process
        process.kill()


def test_one_of_many_processes_compiles(directory):
    processes = [start(PROGRAM) for _ in range(4)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    runs = [int(process.communicate(timeout=300)[0]) for process in processes]
    names = [path.name for path in directory.iterdir() if path.name.endswith(".so")]
    assert sum(runs) <= len(names), "each library was compiled once"
    assert (directory / "claims").stat().st_size == 0


def test_nobody_waits_for_another_entry(holder, monkeypatch):
    def failed():
        raise AssertionError("it waits")

    monkeypatch.setattr(claims, "tick", failed)
    with claims.claimed("cd" * 32):
        pass
    with pytest.raises(AssertionError, match="it waits"), claims.claimed(KEY):
        pass


def test_the_claim_ends_with_its_holder(holder):
    started = time.monotonic()
    os.kill(holder.pid, signal.SIGKILL)
    with claims.claimed(KEY):
        assert time.monotonic() - started < claims.PATIENCE / 2


def test_a_claim_outlives_others_of_its_process(directory, monkeypatch):
    """To close a file ends all locks of the process on it, whoever has opened the file."""
    code = f"""
import sys
from harp.backends.toolchain.claims import claimed
with claimed({KEY!r}):
    with claimed({"cd" * 32!r}):
        pass
    print("claimed", flush=True)
    sys.stdin.readline()
"""
    monkeypatch.setattr(claims, "PATIENCE", 0.1)
    with start(code) as process:
        assert process.stdout.readline() == "claimed\n"
        started = time.monotonic()
        with claims.claimed(KEY):
            assert time.monotonic() - started >= 0.1
        monkeypatch.setattr(claims, "tick", None)  # which a wait would call
        with claims.claimed("cd" * 32):
            pass
        process.kill()


def test_a_suspended_holder_is_awaited_for_a_while_only(holder, monkeypatch):
    os.kill(holder.pid, signal.SIGSTOP)
    monkeypatch.setattr(claims, "PATIENCE", 0.1)
    started = time.monotonic()
    with claims.claimed(KEY):
        assert time.monotonic() - started >= 0.1
    os.kill(holder.pid, signal.SIGCONT)


def test_an_interrupt_ends_the_wait(holder):
    code = f"from harp.backends.toolchain.claims import claimed\nprint(flush=True)\nwith claimed({KEY!r}): pass"
    with start(code) as process:
        process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == -signal.SIGINT


@pytest.mark.parametrize("reason", ["no directory", "no locks", "in the way"])
def test_without_claims_each_process_compiles(directory, monkeypatch, reason):
    if reason == "no directory":
        monkeypatch.setattr(cache, "ready", lambda: None)
    elif reason == "in the way":
        (directory / "claims").mkdir(parents=True)
    else:

        def refused(*_):
            raise OSError("no locks available")

        monkeypatch.setattr(claims.fcntl, "lockf", refused)
    monkeypatch.setattr(claims, "tick", None)  # which a wait would call
    with claims.claimed(KEY):
        pass


def test_forked_children_do_not_hold_it(holder, directory, monkeypatch):
    holder.stdin.write("\n")
    holder.stdin.flush()
    holder.wait()
    code = f"""
import os, sys
from harp.backends.toolchain.claims import claimed
with claimed({KEY!r}):
    if os.fork() == 0:
        print(flush=True)
        sys.stdin.readline()
        os._exit(0)
"""
    with start(code) as process:
        process.stdout.readline()
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(0.01)
        monkeypatch.setattr(claims, "tick", None)  # which a wait would call
        with claims.claimed(KEY):
            pass
        process.stdin.write("\n")


def test_an_entry_of_a_moment_ago_is_taken(directory, monkeypatch):
    """Another process may end between the first look into the cache and the claim, which then needs no wait."""
    source = Source((Unit("int f(int x) { return x + 1; }"),))
    key = build(source, CompileOptions()).key
    look, looks = cache.get_library, []
    monkeypatch.setattr(cache, "get_library", lambda k: looks.append(k) or (look(k) if len(looks) > 1 else None))
    before = harp.stats()["compiler_runs"]
    assert build(source, CompileOptions()).key == key and harp.stats()["compiler_runs"] == before
