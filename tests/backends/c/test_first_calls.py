"""Programs that are compiled quickly for their first calls: they compute the same bits as the full ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.c import backend
from harp.backends.runtime import load, pool
from harp.backends.runtime.executable import FirstCExecutable
from harp.backends.toolchain import background, cache
from harp.config import settings
from harp.transforms.jit import programs

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """An empty cache, and quick programs however short they are."""
    harp.wait_for_compilers()
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setattr(settings, "verify", 0)
    monkeypatch.setattr(settings, "quick", True)
    monkeypatch.setattr(backend, "_LEAST_LINES", 1)
    programs.forget()
    yield
    harp.wait_for_compilers()
    programs.forget()


def kernels(f):
    return [entry.program.kernel for entries in f._entries.values() for entry in entries]


def bits(tree):
    return [np.asarray(leaf).tobytes() for leaf in harp.tree.leaves(tree)]


def held_back(monkeypatch):
    """Full programs are made when the test says so."""
    pending = []
    monkeypatch.setattr(programs, "later", pending.append)
    return pending


def layers(x, w, v):
    h = hnp.tanh(x @ w)
    return hnp.log(hnp.sum(hnp.exp(h @ v.T), axis=1)) - hnp.max(h, axis=1)


R = np.random.default_rng(0)


def array(*shape, dtype=np.float64):
    return R.standard_normal(shape).astype(dtype)


CASES = {
    "layers": (layers, lambda t, n: (array(n, 7, dtype=t), array(7, 5, dtype=t), array(9, 5, dtype=t))),
    "gradient": (
        harp.grad(lambda x, w, v: hnp.sum(layers(x, w, v)), (0, 1, 2)),
        lambda t, n: (array(n, 7, dtype=t), array(7, 5, dtype=t), array(9, 5, dtype=t)),
    ),
    "dots of rows": (lambda x, y: (hnp.sum(x * y, 1), hnp.vdot(x, y)), lambda t, n: (array(3, n, dtype=t),) * 2),
    "transposed": (lambda x: x.T + 1, lambda t, n: (array(n, 19, dtype=t),)),
    "transposed factors": (lambda x, y: x.T @ y.T, lambda t, n: (array(n, 19, dtype=t), array(4, n, dtype=t))),
    "vectors": (
        lambda x, v, u: (x @ v, u @ x),
        lambda t, n: (array(n, 40, dtype=t), array(40, dtype=t), array(n, dtype=t)),
    ),
    "sorted": (lambda x: (hnp.sort(x), hnp.argsort(x), hnp.cumsum(x)), lambda t, n: (array(n, dtype=t),)),
    "transform": (lambda x: hnp.abs(hnp.fft.rfft(x)), lambda t, n: (array(n + 1, dtype=t),)),
    "integers": (
        lambda a, b: a.astype(hnp.int32) @ b.astype(hnp.int32),
        lambda t, n: (R.integers(-99, 99, (n, 6)).astype(np.int8), R.integers(-99, 99, (6, 8)).astype(np.int8)),
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_the_full_program(monkeypatch, name, dtype):
    pending = held_back(monkeypatch)
    function, make = CASES[name]
    f, sizes = harp.jit(function), (33, 1, 0, 70)
    calls = [make(dtype, n) for n in sizes]
    first = [bits(f(*args)) for args in calls]
    assert f.compilations == 1
    (kernel,) = kernels(f)
    assert isinstance(kernel, FirstCExecutable) and kernel.full is None
    for work in pending:
        work()
    assert kernel.full is not None
    assert [bits(f(*args)) for args in calls] == first
    if name == "layers":
        for (x, w, v), result in zip(calls, [f(*args) for args in calls], strict=True):
            h = np.tanh(x.astype(float) @ w)
            expected = np.log(np.exp(h @ v.T).sum(1)) - h.max(1)
            np.testing.assert_allclose(result, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-6)


def test_calls_are_handed_on(monkeypatch):
    pending = held_back(monkeypatch)
    f = harp.jit(lambda x: hnp.exp(x) + 1)
    f(np.ones(3))
    (kernel,) = kernels(f)
    pending.pop()()
    assert kernel.full.library.place != kernel.library.place
    np.testing.assert_array_equal(f(np.zeros(4)), np.full(4, 2.0))


def test_many_parameters(monkeypatch):
    pending = held_back(monkeypatch)
    f = harp.jit(lambda xs: [x * k + hnp.sum(xs[0]) for k, x in enumerate(xs)])
    xs = [array(k) for k in range(1, 9)]
    first = bits(f(xs))
    assert isinstance(kernels(f)[0], FirstCExecutable)
    pending.pop()()
    assert bits(f(xs)) == first


def test_memory_is_given_back_as_it_was_taken(monkeypatch):
    """Also by a program whose call runs while the pool of threads is made: it crashed."""
    pool.runtime()
    loaded = list(pool._loaded)
    monkeypatch.setattr(pool, "_loaded", [])
    pending = held_back(monkeypatch)
    f = harp.jit(layers)
    f(array(3, 7), array(7, 5), array(9, 5))
    (kernel,) = kernels(f)

    def pointers():
        return [kernel.library._handle.read_variable(load._POINTER, name) for name in ("harp_take", "harp_parallel")]

    take, parallel = pointers()
    pool._loaded.extend(loaded)
    pool._attach_those_that_wait()
    assert pointers()[0] == take and pointers()[1] != parallel
    pending.pop()()
    assert kernel.full.library._handle.read_variable(load._POINTER, "harp_take") != take


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x: hnp.sum(x @ x), (np.ones((700, 700)),)),  # it would take seconds
        (lambda x: harp.lax.while_loop(lambda c: c < 100, lambda c: c * 2 + x, x), (1.0,)),  # it may take any time
    ],
)
def test_what_may_take_long_is_optimised_at_once(monkeypatch, function, arguments):
    monkeypatch.setattr(backend, "_OPERATIONS_OF_A_LINE", 1e5)
    f = harp.jit(function)
    f(*arguments)
    assert not isinstance(kernels(f)[0], FirstCExecutable)


def test_what_is_in_the_cache_is_not_compiled_quickly():
    f, g = (harp.jit(lambda x: hnp.exp(x) * 3) for _ in range(2))
    f(np.ones(3))
    harp.wait_for_compilers()
    programs.forget()
    g(np.ones(3))
    assert not isinstance(kernels(g)[0], FirstCExecutable)


def test_a_full_program_that_cannot_be_made_is_not_missed(monkeypatch):
    pending = held_back(monkeypatch)
    f = harp.jit(lambda x: hnp.exp(x) + 2)
    f(np.ones(3))

    def fails():
        raise harp.errors.ToolchainError("no space")

    kernels(f)[0]._make = fails
    background.later(pending.pop())
    harp.wait_for_compilers()
    np.testing.assert_allclose(f(np.ones(2)), np.e + 2)


PROGRAM = """
import os, sys
import numpy as np, harp, harp.numpy as hnp
f = harp.jit(harp.grad(lambda x, w: hnp.sum(hnp.log(1 + hnp.exp(hnp.sin(x @ w) * hnp.tanh(x @ w))))))
x, w = np.ones((5, 4)), np.ones((4, 3))
expected = np.asarray(f(x, w))
if "fork" in sys.argv:
    child = os.fork()
    assert (np.asarray(f(x, w)) == expected).all()
    harp.jit(lambda x: hnp.exp(hnp.cumsum(x) * hnp.sin(x)) + hnp.sum(x * x))(np.arange(4.0))
    if child == 0:
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
print(int("harp.lower.pipeline" in sys.modules))
"""


def test_without_threads_the_call_does_the_work(tmp_path):
    """A piece of work that asks for another one does not wait for itself."""
    refuse = """
import _thread
def refused(*arguments):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = refused
"""
    assert run(tmp_path, program=refuse + PROGRAM) == 1
    assert run(tmp_path) == 0


def run(tmp_path, *arguments, program=PROGRAM):
    variables = {**os.environ, "HARP_QUICK": "1", "HARP_VERIFY": "0", "HARP_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


def test_a_process_leaves_the_full_program_to_the_next_one(tmp_path):
    assert run(tmp_path) == 1
    assert run(tmp_path) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_goes_on(tmp_path):
    assert run(tmp_path, "fork") == 1


def test_an_interrupt_at_the_end_gives_up_the_rest(monkeypatch):
    done, begun = [], threading.Event()

    def interrupted():
        raise KeyboardInterrupt

    def work():
        begun.set()
        try:
            for _ in range(10**6):
                background.require_time()
                background.time.sleep(0.001)
        except background.GivenUp:
            done.append("given up")
            raise

    background.later(work)
    assert begun.wait(60)
    monkeypatch.setattr(background, "wait_for_compilers", interrupted)
    try:
        background._end()
    finally:
        background._worker.ends = False
    monkeypatch.undo()
    harp.wait_for_compilers()
    assert done == ["given up"]
