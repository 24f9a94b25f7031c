"""Memory of large results: used again when nobody needs it, and never before."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import harp
from harp.backends.runtime import memory

COUNT = memory.LARGE // 4


@pytest.fixture(autouse=True)
def empty():
    memory.release()
    yield
    memory.release()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_block_is_used_again():
    first = memory.large((COUNT,), np.dtype("f4"))
    where = address(first)
    assert where % 64 == 0 and first.shape == (COUNT,) and first.dtype == np.float32
    del first
    assert memory.free_bytes() > 0
    assert address(memory.large((COUNT // 2,), np.dtype("f8"))) == where, "the same size in bytes"


def test_blocks_do_not_begin_at_the_same_place_of_a_page():
    """Or the lines of a loop over all of them would have no room in the cache."""
    blocks = [memory.large((COUNT,), np.dtype("f4")) for _ in range(8)]
    places = {address(block) % 4096 // 64 for block in blocks}
    assert len(places) >= 6 and not any(address(block) % 64 for block in blocks)
    for number, block in enumerate(blocks):
        block[:] = number
    assert [block[-1] for block in blocks] == [*range(8)]


def test_many_results_are_large_together():
    """Each of these would not be."""
    x = np.ones(memory.LARGE // 4 // 4, np.float32)
    f = harp.jit(lambda x: [x + k for k in range(4)])
    f(x)
    assert memory.free_bytes() >= memory.LARGE
    one = harp.jit(lambda x: x + 9)
    memory.release()
    one(x)
    assert memory.free_bytes() == 0


def test_views_keep_a_block():
    first = memory.large((2, COUNT), np.dtype("f4"))
    first[:] = 1.0
    view = first[1, ::2]
    where = address(first)
    del first
    gc.collect()
    second = memory.large((2, COUNT), np.dtype("f4"))
    second[:] = 2.0
    assert address(second) != where and (view == 1.0).all()


def test_parts_of_the_owner_give_nothing_back():
    first = memory.large((COUNT,), np.dtype("f4"))
    part = first.base[64:]
    del part
    assert memory.free_bytes() == 0
    part = first.base[64:]
    where = address(first)
    del first
    assert address(memory.large((COUNT,), np.dtype("f4"))) != where
    del part
    assert address(memory.large((COUNT,), np.dtype("f4"))) == where


def test_alone():
    """Asked with one variable, as generated code asks."""

    def ask(make):
        buffer = make()
        return memory.alone(buffer)

    kept = []

    def with_view(view):
        buffer = np.zeros(COUNT, np.float32)
        kept.append(view(buffer))
        return memory.alone(buffer)

    assert ask(lambda: np.zeros(3)) and ask(lambda: np.zeros(())) and ask(lambda: np.zeros(0))
    assert ask(lambda: memory.large((COUNT,), np.dtype("f4")))
    assert not ask(lambda: np.zeros(3)[1:]) and not ask(lambda: np.frombuffer(b"1234", np.uint8))
    assert not ask(lambda: np.broadcast_to(np.zeros(1), 3)) and not ask(lambda: np.lib.stride_tricks.as_strided(KEPT))
    for view in (lambda b: b, lambda b: b[1:], memoryview, lambda b: b.T, lambda b: [b]):
        assert not with_view(view)
    block = memory.large((COUNT,), np.dtype("f4"))
    kept.append(block.base)
    assert not memory.alone(block)


KEPT = np.zeros(3)


def test_no_more_than_the_limit_is_kept(monkeypatch):
    monkeypatch.setattr(memory, "_MOST_KEPT", 3 * memory.LARGE)
    blocks = [memory.large((COUNT,), np.dtype("f4")) for _ in range(5)]
    del blocks
    assert 0 < memory.free_bytes() <= 3 * memory.LARGE


def test_blocks_of_other_sizes_make_room(monkeypatch):
    """Else the sizes that were wanted first would be kept for good, and no others."""
    monkeypatch.setattr(memory, "_MOST_KEPT", 3 * memory.LARGE)
    monkeypatch.setattr(memory, "_SELDOM", 1)
    blocks = [memory.large((COUNT,), np.dtype("f4")) for _ in range(2)]
    kept = blocks.pop()
    del blocks
    other = memory.large((COUNT * 3 // 2,), np.dtype("f4"))
    where = address(other)
    del other
    assert address(memory.large((COUNT * 3 // 2,), np.dtype("f4"))) == where
    where = address(kept)
    del kept
    assert address(memory.large((COUNT,), np.dtype("f4"))) == where, "one that was in use meanwhile"


def test_sizes_that_do_not_fit():
    with pytest.raises((MemoryError, ValueError)):
        memory.large((1 << 50, 1 << 10), np.dtype("f8"))


@pytest.mark.parametrize("count", [COUNT - 1, COUNT, COUNT + 1, 3 * COUNT])
def test_results_do_not_share_memory(count):
    f = harp.jit(lambda x: x + 1)
    x = np.arange(count, dtype="f4")
    results = [np.asarray(f(x + k)) for k in range(3)]
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, x + k + 1)
        assert not result.flags.writeable


def test_a_result_can_be_an_argument():
    """Nothing is used again while it is read."""
    f = harp.jit(lambda x: x * 2)
    x = np.ones(COUNT, "f4")
    for _ in range(6):
        x = f(x)
    assert (np.asarray(x) == 64).all()


INTERRUPTS = """
import faulthandler, random, signal, sys
import numpy as np, harp
from harp.backends.runtime import memory
faulthandler.dump_traceback_later(280, exit=True)
seed = int(sys.argv[1])
rng, lost = random.Random(seed), []
sys.unraisablehook = lambda found: lost.append(str(found.object))
class Interrupt(BaseException): pass
def handle(number, frame):
    raise Interrupt
signal.signal(signal.SIGALRM, handle)
f = harp.jit(lambda x: x + 1)
x, count = np.zeros(memory.LARGE // 4, np.float32), 0
for k in range(3): f(x)
while count < 400:
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 2e-3))
        while True:
            y = memory.large((memory.LARGE // 4 * rng.randint(1, 3),), x.dtype); y = f(x); y = f(y)
    except Interrupt:
        count += 1
signal.setitimer(signal.ITIMER_REAL, 0)
y = np.asarray(f(x))
assert (y == 1).all() and not lost, lost
memory.release()
del y; y = f(x); del y
assert memory.free_bytes() > 0
print("done")
"""


@pytest.mark.parametrize("seed", range(3))
def test_interrupts_at_any_moment(seed):
    """None leaves a lock behind, and none is lost in a finaliser."""
    command = [sys.executable, "-c", INTERRUPTS, str(seed)]
    # Coverage holds a lock of its own for a moment: an interrupt there would leave that one behind.
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE"))}
    done = subprocess.run(command, env=unmeasured, capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", (done.returncode, done.stderr)


def test_no_python_runs_when_a_result_is_dropped():
    """It would run the handlers of signals, and what these raise would be lost."""
    called = []
    block = memory.large((COUNT,), np.dtype("f4"))
    sys.setprofile(lambda frame, event, argument: called.append(event))
    try:
        del block
    finally:
        sys.setprofile(None)
    assert "call" not in called and memory.free_bytes() > 0


@pytest.mark.parametrize("donated", [(), (0,)])
def test_memory_that_was_closed_is_open_when_it_is_used_again(donated):
    make, f = harp.jit(lambda x: x * 1), harp.jit(lambda x: x + 1, donate_argnums=donated)
    for _ in range(3):
        result = make(np.zeros(300_000))
        part = result[1:]  # outside of traces a view, for which the memory below it is closed
        del result, part
        np.testing.assert_array_equal(np.asarray(f(np.zeros(300_000))), 1)
        held, given = make(np.zeros(300_000)), make(np.zeros(300_000))
        shown = np.asarray(given)
        np.testing.assert_array_equal(np.asarray(f(given)), 1)
        np.testing.assert_array_equal(shown, 0)
        np.testing.assert_array_equal(np.asarray(held), 0)


def test_memory_that_was_closed_without_a_compiler():
    code = """
import numpy as np, harp
f = harp.jit(lambda x: x * 1)
for _ in range(4):
    result = f(np.ones(300_000)); part = result[1:]; del result, part
    assert np.asarray(f(np.ones(300_000)) + 1).sum() == 600_000
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "HARP_CC": "none"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


IDLE = """
import sys, time
import numpy as np
from harp.backends.runtime import memory
memory._PATIENCE = 0.05
def until(condition):
    end = time.monotonic() + 100
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
def dropped():
    memory.large((1 << 20,), np.dtype("f4"))
    return memory.free_bytes() > 0
for _ in range(3):
    assert any(dropped() for _ in range(100)), "none is there, however soon"
    assert until(lambda: memory.free_bytes() == 0)
    assert until(lambda: not memory._watched), "nobody looks at nothing"
late = memory.large((1 << 20,), np.dtype("f4"))
assert until(lambda: not memory._watched)
del late
print(memory.free_bytes())
"""


def test_idle_blocks_go_back_to_the_system():
    """And so does a result that is dropped long after the last call."""
    done = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, timeout=300)
    assert done.stdout == "0\n", (done.returncode, done.stderr)


def test_a_forked_child_keeps_blocks_of_its_own():
    """Its parent's thread is not there."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    memory.large((COUNT,), np.dtype("f4"))
    child = os.fork()
    if not child:
        memory.release()
        memory.large((COUNT,), np.dtype("f4"))
        os._exit(0 if memory.free_bytes() > 0 else 1)
    assert os.waitpid(child, 0)[1] == 0


COLLECTED = """
import gc
import numpy as np, harp
from harp.backends.runtime import memory
f = harp.jit(lambda x: x * 2)
x = np.zeros(400_000)
class Node:
    def __init__(self): self.me = self
    def __del__(self): f(x)
f(np.zeros(3)); gc.collect(); gc.disable()
for k in range(60):
    memory._watched = False  # as after some seconds without a call
    Node(); gc.set_threshold(max(1, gc.get_count()[0] + k)); gc.enable(); f(x); gc.disable()
print("done")
"""


def test_a_finalizer_computes_while_a_block_is_taken():
    """It runs in the thread that takes the block, and must not wait for it."""
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", (done.returncode, done.stderr)
