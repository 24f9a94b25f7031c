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
from harp.backends.runtime import executable, load, pool
from harp.backends.runtime.executable import FirstCExecutable
from harp.backends.toolchain import background, cache
from harp.config import settings
from harp.transforms.jit import programs

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """An empty cache, and quick programs."""
    harp.wait_for_compilers()
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setattr(settings, "verify", 0)
    monkeypatch.setattr(settings, "quick", True)
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
    kernels(f)[0]._make = fails
    background.later(pending.pop())
    harp.wait_for_compilers()
    np.testing.assert_allclose(f(np.ones(2)), np.e + 2)


def little(monkeypatch):
    """First programs may do little, so that calls with some thousands of elements are too much for them."""
    monkeypatch.setattr(backend, "_OPERATIONS_OF_A_LINE", 20.0)


def fails():
    raise harp.errors.ToolchainError("no space")


def few(x):
    return [hnp.exp(x) * hnp.sum(x) + x]


def many(x):
    return [hnp.exp(x) * hnp.sum(x) + k * x for k in range(1, 9)]


def calling(x):
    return [hnp.exp(harp.pure_callback(np.copy, x, x)) * hnp.sum(x) + x]


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("function", [few, many, calling])
def test_a_call_with_much_to_do_waits_for_the_full_program(monkeypatch, function, made):
    """It ran without optimisation to its end: a product of 1500 x 1500 took 104 s instead of 3."""
    pending = held_back(monkeypatch)
    little(monkeypatch)
    f, large = harp.jit(function), array(50_000)
    small = bits(f(large[:3]))
    (kernel,) = kernels(f)
    assert isinstance(kernel, FirstCExecutable)
    f(large[:2])
    assert kernel.full is None
    if not made:
        kernel._make = fails
    first = f(large)[0]
    assert (kernel.full is not None) == made
    np.testing.assert_allclose(first, np.exp(large) * large.sum() + large, rtol=1e-9, atol=1e-9)
    assert bits(f(large[:3])) == small
    if made:
        full = kernel.full
        pending.pop()()
        assert kernel.full is full


def test_many_calls_wait_for_the_full_program(monkeypatch):
    held_back(monkeypatch)
    little(monkeypatch)
    f = harp.jit(few)
    for _ in range(2000):
        f(np.ones(5))
    assert kernels(f)[0].full is not None


def test_a_donated_argument_is_there_when_the_call_has_waited(monkeypatch):
    held_back(monkeypatch)
    little(monkeypatch)
    f = harp.jit(lambda x: hnp.exp(x) * 2 + hnp.sum(x), donate_argnums=0)
    f(hnp.asarray(np.ones(3)))
    result = f(hnp.asarray(np.ones(50_000)))
    assert kernels(f)[0].full is not None
    np.testing.assert_allclose(result, 2 * np.e + 50_000)


@pytest.mark.parametrize(
    ("function", "shape"),
    [(lambda x: hnp.sum(x @ x + 1), (600, 600)), (lambda x: hnp.sum(hnp.sin(hnp.exp(hnp.sin(x)))), (400_000,))],
)
def test_products_and_functions_count_as_what_they_take(function, shape):
    """Without optimisation a multiply-add takes some 10 ns, and a sine 500: more than 200 lines of C."""
    f = harp.jit(function)
    f(np.ones(shape))
    assert not isinstance(kernels(f)[0], FirstCExecutable)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_makes_the_full_program_when_it_pays_off(monkeypatch):
    """It has no thread for it, and ran without optimisation for good."""
    held_back(monkeypatch)
    little(monkeypatch)
    f = harp.jit(few)
    f(np.ones(3))
    (kernel,) = kernels(f)
    with executable._finishing.setdefault(kernel, threading.Lock()):  # as if the thread made it
        child = os.fork()
        if child == 0:
            f(np.ones(50_000))
            os._exit(0 if kernel.full is not None else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_nobody_waits_for_a_thread_that_an_error_has_ended(monkeypatch):
    """The process waited for good at its end."""
    done, raised, begins = [], [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda found: raised.append(found.exc_type))
    background.later(lambda: begins.wait(60) and 1 // 0)
    background.later(lambda: done.append(1))
    begins.set()
    end = background.time.monotonic() + 60
    while background._worker.thread and background.time.monotonic() < end:
        background.time.sleep(0.01)
    assert not background._worker.thread
    assert raised == [ZeroDivisionError]
    background.later(lambda: done.append(2))
    harp.wait_for_compilers()
    assert done == [1, 2]


PROGRAM = """
import multiprocessing, os, sys
import numpy as np, harp, harp.numpy as hnp
f = harp.jit(harp.grad(lambda x, w: hnp.sum(hnp.log(1 + hnp.exp(hnp.sin(x @ w) * hnp.tanh(x @ w))))))
x, w = np.ones((5, 4)), np.ones((4, 3))
if "multiprocessing" in sys.argv:
    child = multiprocessing.get_context("fork").Process(target=f, args=(x, w))
    child.start()
    child.join()
    sys.exit(print(child.exitcode))
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
def test_a_process_of_multiprocessing_leaves_the_full_program(tmp_path):
    """It ended at once, without the functions of `atexit`: each next one began anew."""
    assert run(tmp_path, "multiprocessing") == 0
    assert run(tmp_path) == 0


def test_a_process_without_a_cache_does_not_wait(tmp_path):
    """It waited for programs that nobody would find, and left them behind."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "cache").write_text("no directory")
    run(tmp_path, program=f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n{PROGRAM}")
    assert not list(temporary.iterdir())


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
