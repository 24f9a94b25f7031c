"""Programs that call Python, and that Python interrupts, in processes of their own."""

import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal, threading, time
import harp
import harp.numpy as hnp

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without one

def inner(i, c):
    return harp.while_loop(lambda c: c < 2000, lambda c: c + 1, c * 0)

endless = harp.jit(lambda x: harp.while_loop(lambda c: c > -1, lambda c: c * 0.5 + 1, x))
of_short_ones = harp.jit(lambda x: harp.fori_loop(0, hnp.asarray(x * 1e12, int), inner, x))
for program in (endless, of_short_ones):
    program(-5.0)  # which ends: it is compiled

def interrupt():
    # Python alone does not compute for so long: the main thread is inside of a program.
    start = time.process_time()
    while time.process_time() < start + 0.5:
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)

for program in (endless, of_short_ones, endless):
    threading.Thread(target=interrupt).start()
    try:
        program(1.0)
    except KeyboardInterrupt:
        print("interrupted")

def tell(x):
    try:
        endless(x)
    except KeyboardInterrupt:
        print("inside")

inside = harp.jit(lambda x: harp.debug.callback(tell, x))
inside(-5.0)
threading.Thread(target=interrupt).start()
inside(1.0)
"""
CALLS = """
import sys
import harp

f = harp.jit(lambda x: (harp.debug.print(sys.argv[1] + " {}", x), x + 1)[1])
print(float(f(1.0)), harp.stats()["compiler_runs"])
"""


@pytest.fixture(scope="module", autouse=True)
def needs_a_compiler():
    from harp.backends.toolchain.toolchain import find_toolchain

    if find_toolchain() is None:
        pytest.skip("no compiler")


def output(code: str, *arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_loops_without_end_hear_interrupts():
    assert output(INTERRUPTED) == ["interrupted"] * 3 + ["inside"]


def test_programs_of_the_cache_call_functions_of_this_process(tmp_path, monkeypatch):
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HARP_VERIFY", "0")
    assert output(CALLS, "first")[0] == "first 1.0"
    assert output(CALLS, "second") == ["second 1.0", "2.0 0"]
