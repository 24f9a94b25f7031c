"""Threads: the same bits with any number of them, and a pool that survives what processes do."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors
from harp.backends.runtime import pool
from harp.backends.toolchain.toolchain import find_toolchain
from harp.config import settings

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
rng = np.random.default_rng(0)
A, B = rng.normal(size=(700, 300)).astype("f4"), rng.normal(size=(300, 130)).astype("f4")
LONG = rng.normal(size=300_001)


@pytest.fixture(autouse=True)
def restore():
    yield
    harp.set_threads(settings.threads if settings.threads == 0 else 0)


def loss(w, x):
    return hnp.sum(hnp.tanh(x @ w) ** 2)


PROGRAMS = {
    "elementwise": (lambda x: hnp.sin(x) * 2 + x, (LONG,)),
    "matmul": (lambda a, b: a @ b, (A, B)),
    "transposed": (lambda a, b: (a @ b).T @ a, (A, B)),
    "softmax": (lambda a: hnp.softmax(a, axis=1), (A,)),
    "sums": (lambda a: (hnp.sum(a), hnp.sum(a, axis=0), hnp.sum(a, axis=1)), (A,)),
    "gradient": (harp.grad(loss), (B, A)),
    "batched": (lambda a: a.reshape((7, 100, 300)) @ a.reshape((7, 300, 100)), (A,)),
    "strided": (lambda x: x[::-3] + 1, (LONG,)),
}


def started() -> int:
    return pool.runtime().function("harp_pool_started", "int(*)(void)")()


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_do_not_depend_on_threads(name):
    function, arguments = PROGRAMS[name]
    f = harp.jit(function)
    harp.set_threads(1)
    expected = [np.asarray(r) for r in flat(f(*arguments))]
    for count in (2, 3, 7):
        harp.set_threads(count)
        for _ in range(3):
            for a, b in zip(expected, flat(f(*arguments)), strict=True):
                np.testing.assert_array_equal(a, np.asarray(b))
    assert f.compilations == 1


def flat(result):
    return list(result) if isinstance(result, tuple) else [result]


def layer_norm(x):
    centred = x - hnp.mean(x, axis=1, keepdims=True)
    return centred / hnp.sqrt(hnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)


def scores(x):
    return hnp.sum(hnp.logsumexp(hnp.tanh(x @ B) @ B[:130, :10], axis=1))


BATCHED = {
    "matmul": lambda x: x @ B,
    "one column": lambda x: x @ B[:, :1],
    "softmax": lambda x: hnp.softmax(x, axis=1),
    "layer norm": layer_norm,
    "gradient of an MLP": harp.grad(scores),
}


@pytest.mark.parametrize("name", BATCHED)
def test_a_row_has_the_same_bits_at_every_batch_size_and_number_of_threads(name):
    f = harp.jit(BATCHED[name])
    harp.set_threads(1)
    whole = np.asarray(f(A))
    for count, size in itertools.product((1, 2, 3), (1, 2, 3, 8, 17, 64, 511, 513, 700)):
        harp.set_threads(count)
        for first in {0, len(A) - size}:
            found = np.asarray(f(A[first : first + size]))
            np.testing.assert_array_equal(found, whole[first : first + size])
    assert f.compilations == 1


def test_threads_of_one_function():
    f = harp.jit(lambda x: hnp.exp(x) + 1, threads=3)
    harp.set_threads(1)
    np.testing.assert_array_equal(np.asarray(f(LONG)), np.asarray(harp.jit(lambda x: hnp.exp(x) + 1)(LONG)))
    assert started() >= 2


def test_many_callers_at_once():
    f = harp.jit(lambda x, k: hnp.sin(x) * k)
    harp.set_threads(4)
    expected = np.asarray(f(LONG, 1.0))
    failures = []

    def call(k):
        for _ in range(20):
            if not np.array_equal(np.asarray(f(LONG, float(k))), expected * k):
                failures.append(k)

    callers = [threading.Thread(target=call, args=(2**k,)) for k in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "import _thread, os, threading, time, numpy as np, harp, harp.numpy as hnp\n" + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CALL = "f = harp.jit(lambda x: hnp.sin(x) + 1); x = np.linspace(0, 1, 500_000); r = np.asarray(f(x))\n"
# The least of several: a thread that has been joined is listed for a moment.
# Threads of the process, but for those of Python: one looks for memory that nobody needs any more.
COUNT = "min((time.sleep(0.01), len(os.listdir('/proc/self/task')) - _thread._count())[1] for _ in range(20))"
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")


@needs_proc
def test_one_thread_starts_none():
    before = int(run(f"print({COUNT})"))
    assert int(run(CALL + f"print({COUNT})", HARP_THREADS="1")) == before
    assert int(run(CALL + f"print({COUNT})", HARP_THREADS="3")) == before + 2
    assert int(run(f"harp.set_threads(1)\n{CALL}print({COUNT})")) == before


def test_a_forked_child_has_threads_of_its_own():
    code = CALL + (
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    import signal; signal.alarm(200)\n"
        "    os._exit(0 if np.array_equal(np.asarray(f(x)), r) else 1)\n"
        "print(os.waitpid(pid, 0)[1], np.array_equal(np.asarray(f(x)), r))"
    )
    assert run(code, HARP_THREADS="3") == "0 True"


def test_a_fork_while_a_thread_computes():
    code = CALL + (
        "stop = []\n"
        "def work():\n"
        "    while not stop: f(x)\n"
        "t = threading.Thread(target=work); t.start()\n"
        "codes = []\n"
        "for _ in range(10):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        import signal; signal.alarm(200)\n"
        "        os._exit(0 if np.array_equal(np.asarray(f(x)), r) else 1)\n"
        "    codes.append(os.waitpid(pid, 0)[1])\n"
        "stop.append(1); t.join(); print(set(codes))"
    )
    assert run(code, HARP_THREADS="3") == "{0}"


def test_small_work_stays_with_the_caller():
    code = "f = harp.jit(lambda x: x + 1); f(np.ones(1000)); print(" + COUNT + ")"
    assert run(code, HARP_THREADS="8") == run(f"print({COUNT})") if os.path.isdir("/proc/self/task") else True


def test_without_a_pool_programs_still_run(monkeypatch):
    monkeypatch.setattr(pool, "_loaded", [None])
    f = harp.jit(lambda x: hnp.cos(x) * 7 + 1, threads=2)
    np.testing.assert_allclose(np.asarray(f(LONG)), np.cos(LONG) * 7 + 1)


@pytest.mark.parametrize("count", [-1, 257, 1.5, "2", True])
def test_numbers_of_threads_that_make_no_sense(count):
    with pytest.raises(errors.ArgumentError, match="from 0 to 256"):
        harp.set_threads(count)
    with pytest.raises(errors.ArgumentError, match="threads is a number"):
        harp.jit(lambda x: x, threads=count)


def test_the_code_of_threads_is_never_unloaded():
    """A thread that still waits for work when Python ends would run into nothing."""
    program = """
import numpy as np, harp, harp.numpy as hnp
from harp.backends.runtime import pool as runtime
harp.set_threads(2)
harp.jit(lambda x: hnp.tanh(x))(np.ones(300_000))
pool = runtime.runtime()
pool.close()
assert str(pool.place) in open("/proc/self/maps").read()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_proc
@pytest.mark.skipif(pool.usable_cores() < 2, reason="there is one core")
def test_threads_keep_off_the_core_of_the_caller():
    """The kernel wakes them there else, where they wait until the caller has done all the work."""
    code = CALL + (
        "mine = os.sched_getaffinity(0)\n"
        "pool = [t for t in map(int, os.listdir('/proc/self/task')) if t not in others]\n"
        "def cores_of_helpers(core, then):\n"
        "    time.sleep(0.1)\n"  # until they sleep
        "    os.sched_setaffinity(0, {core})\n"
        "    os.sched_setaffinity(0, then)\n"
        "    assert np.array_equal(np.asarray(f(x)), r)\n"
        "    found.append([os.sched_getaffinity(t) for t in pool])\n"
        "for core in sorted(mine)[:4]:\n"
        "    found = []\n"
        "    cores_of_helpers(core, mine)\n"  # still on that core, most likely
        "    assert all(len(c) == len(mine) - 1 and c < mine for c in found[0]), found\n"
        "    bound = threading.Thread(target=cores_of_helpers, args=(core, {core})); bound.start(); bound.join()\n"
        "    assert found[1] == [mine - {core}] * 2, found\n"
        "print(len(pool))"
    )
    listed = (
        "from harp.backends.runtime import memory; memory._watched = True  # no thread looks for idle blocks\n"
        "others = [int(t) for t in os.listdir('/proc/self/task')]\n"
    )
    assert run(listed + code, HARP_THREADS="3") == "2"
