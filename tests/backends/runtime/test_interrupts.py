"""Long loops of compiled programs, which end when Python is interrupted, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

import harp
from harp.config import settings

PROGRAMS = """
import os, signal, sys, threading, time
import numpy as np
import harp
import harp.numpy as hnp

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without one
STEPS = 3 * 10**9

def wave(i, c):
    return c * 0.5 + hnp.sin(c)

def short(i, c):
    return harp.fori_loop(0, 3, wave, c)

ones = np.ones(200_000)
PROGRAMS = {
    "fori": (lambda x: harp.fori_loop(0, STEPS, wave, x), 1.0),
    "nested": (lambda x: harp.fori_loop(0, STEPS, lambda i, c: harp.fori_loop(0, STEPS, wave, c), x), 1.0),
    "nested short": (lambda x: harp.fori_loop(0, STEPS, short, x), 1.0),
    "scan": (lambda x: harp.scan(lambda c, _: (wave(0, c), None), x, None, length=10**11)[0], 1.0),
    "vmap": (harp.vmap(lambda x: harp.fori_loop(0, STEPS, wave, x)), np.arange(4.0)),
    "cut": (lambda x: harp.fori_loop(0, STEPS, lambda i, c: wave(i, c) + x[:100], x[:100]), ones),
    "every second": (lambda x: harp.fori_loop(0, STEPS, lambda i, c: c * 0.5 + x[:99:2], x[:99:2]), ones),
    "grad": (harp.grad(lambda x: harp.fori_loop(0, STEPS, wave, x, checkpoint_every=10**5)), 1.0),
    "no loop": (lambda x: hnp.sum(hnp.exp(-((x[:, None] - x[None, :]) ** 2)), 1), ones),
    "one sum": (lambda x: hnp.sum(hnp.sin(hnp.arange(10**11) * x)), 1.0),
}
times = []

def interrupt():
    # Python and compilers do not take so much time of this process: the main thread is inside of a program.
    start = time.process_time()
    while time.process_time() < start + 0.5:
        time.sleep(0.01)
    times.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

harp.set_threads(int(sys.argv[1]))
for name in sys.argv[2:]:
    function, argument = PROGRAMS[name]
    threading.Thread(target=interrupt).start()
    try:
        harp.jit(function)(argument)
    except KeyboardInterrupt:
        late = time.process_time() - times[-1]
        time.sleep(0.1)
        goes_on = time.process_time() - times[-1] - late > 0.08  # no thread of the pool does
        print(f"{name}: {'late' if late > int(sys.argv[1]) else 'going on' if goes_on else 'heard'}")
print(harp.jit(lambda x: harp.fori_loop(0, 3, lambda i, c: c + 1, x))(1))
"""


@pytest.fixture(scope="module", autouse=True)
def needs_a_compiler():
    from harp.backends.toolchain.toolchain import find_toolchain

    if find_toolchain() is None:
        pytest.skip("no compiler")


@pytest.mark.parametrize(
    "threads, names",
    [
        (1, ["fori", "nested", "nested short", "scan"]),
        (1, ["cut", "every second"]),
        (1, ["vmap", "grad", "no loop", "one sum"]),
        (2, ["no loop"]),
    ],
    ids=["loops", "loops over parts", "others", "threads"],
)
def test_long_loops_of_known_length_hear_interrupts(threads, names):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS, str(threads), *names], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*(f"{name}: heard" for name in names), "4"]


@pytest.fixture
def not_interpreted(monkeypatch):
    """So many steps take the interpreter a quarter of an hour."""
    monkeypatch.setattr(settings, "verify", min(settings.verify, 2))


@pytest.mark.usefixtures("not_interpreted")
def test_blocks_of_steps_are_all_of_them():
    """Beside the closed form, for lengths round the end of a block."""
    for steps in (1 << 23, 10_000_001):
        made = harp.jit(lambda x, steps=steps: harp.fori_loop(0, steps, lambda i, c: c * 3 + i, x))(1)
        power = pow(3, steps, 1 << 66)
        exact = power + (power - 1 - 2 * steps) // 4  # c -> 3*c + i
        assert (int(made) - exact) % (1 << 64) == 0


@pytest.mark.usefixtures("not_interpreted")
def test_nested_blocks_are_all_steps():
    def inner(j, c):
        return c * 3 + j

    made = harp.jit(lambda x: harp.fori_loop(0, 3, lambda i, c: harp.fori_loop(0, 5_000_000, inner, c), x))(1)
    exact = 1
    for _ in range(3):
        power = pow(3, 5_000_000, 1 << 66)
        exact = power * exact + (power - 1 - 2 * 5_000_000) // 4
    assert (int(made) - exact) % (1 << 64) == 0


ENDING = """
import sys, threading, time
import numpy as np
import harp
import harp.numpy as hnp

steps = {
    "vector": lambda i, c: hnp.sin(c) * 1.1,
    "callback": lambda i, c: harp.pure_callback(np.sin, c, c) * 1.1,
}
loop = harp.jit(lambda x, n: harp.fori_loop(0, n, steps[sys.argv[1]], x))
loop(np.ones(50), 1)
threading.Thread(target=loop, args=(np.ones(50), 10**9), daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["vector", "callback"])
def test_python_ends_while_a_thread_is_in_a_program(step):
    for _ in range(8):  # where the thread is at that moment differs
        subprocess.run([sys.executable, "-c", ENDING, step], check=True, timeout=60)
