"""What a fork must not meet half-done, and the order of locks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FINDER = """
import sys
class Finder:
    \"\"\"Is asked for each module before it is imported.\"\"\"
    def __init__(self, see):
        self.see = see
    def find_spec(self, name, path=None, target=None):
        self.see(name)
def owned():
    locks = sys.modules.get("harp.locks")
    return hasattr(locks, "importing") and locks.importing._is_owned()
"""


def python(code: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-c", FINDER + code, *arguments]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKED = """
import importlib, os, signal, threading, time
import numpy as np, harp, harp.numpy as hnp

at = threading.Event()
def see(name):
    if name == sys.argv[1] and not at.is_set():
        at.set()
        time.sleep(0.3)
sys.meta_path.insert(0, Finder(see))
def first():
    importlib.import_module("harp.nn")  # as a statement of the user does
    hnp.percentile
    return float(harp.jit(lambda x: hnp.sum(x * 3.25))(np.arange(2.0)))
thread = threading.Thread(target=first)
thread.start()
at.wait(60)
if os.fork() == 0:
    signal.alarm(20)  # its default is to end the process
    os._exit(0 if sys.argv[1] in sys.modules and first() == 3.25 else 1)
_, status = os.wait()
thread.join()
print(at.is_set(), status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked")
@pytest.mark.parametrize(
    "module", ["harp.nn", "harp.transforms.jit.programs", "harp.lower.pipeline", "harp.numpy.quantiles"]
)
def test_a_fork_waits_for_imports_of_other_threads(module):
    """The child has no thread that would finish them."""
    assert python(FORKED, module, HARP_VERIFY="1") == "True 0\n"


USED = """
import numpy as np, harp, harp.numpy as hnp
outside = []
sys.meta_path.insert(0, Finder(lambda name: None if owned() else outside.append(name)))
x = np.arange(4.0)
harp.jit(lambda x: hnp.sort(x) + hnp.sum(hnp.sin(x)))(x)
harp.jit(harp.grad(lambda x: hnp.sum(hnp.linalg.solve(hnp.eye(4) * 2, x))))(x)
harp.vmap(lambda a: harp.fori_loop(0, 3, lambda i, a: a * 2, a))(x)
harp.jit(lambda x: harp.cond(x[0] > 1, lambda: x, lambda: -x))(x)
harp.random.normal(harp.random.key(1), (3,)), harp.lax.sort
if sys.argv[1] == "compiled":
    harp.kernel("y[i] = x[i];", {"x": "f64[n]"}, {"y": "f64[n]"}, {"i": "n"})(x)
    harp.jit(hnp.cumsum).lower(x).html()
print(sorted({*outside}))
"""


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
def test_a_fork_waits_for_all_that_is_imported_later(way):
    compiler = "none" if way == "interpreted" else os.environ.get("HARP_CC", "")
    assert python(USED, way, HARP_CC=compiler, HARP_VERIFY="1") == "[]\n"  # 3 needs random numbers


ORDER = """
import importlib, pkgutil
inside = []
sys.meta_path.insert(0, Finder(lambda name: inside.append(name) if owned() else None))
import harp
for module in pkgutil.walk_packages(harp.__path__, "harp."):
    if not module.name.startswith(("harp.backends.opencl", "harp.__main__")):
        importlib.import_module(module.name)
print(len(sys.modules) > 200, inside)
"""


def test_no_module_needs_the_lock_while_it_is_imported():
    """Two threads would wait for each other: one has the lock and needs the module, the other one imports that."""
    assert python(ORDER) == "True []\n"


def test_a_property_that_is_computed_holds_no_lock():
    """A child that is forked meanwhile would find it held."""
    code = """
import os, signal, threading, time
from harp.lower.kernels.fuse import cached_property
class Slow:
    computed = 0
    @cached_property
    def value(self):
        self.computed += 1
        time.sleep(self.pause)
        return 7
first, second = Slow(), Slow()
first.pause, second.pause = 0.5, 0
thread = threading.Thread(target=lambda: first.value)
thread.start()
time.sleep(0.1)
if os.fork() == 0:
    signal.alarm(10)
    os._exit(second.value)
print(os.waitstatus_to_exitcode(os.wait()[1]), second.value, second.value, second.computed)
"""
    assert python(code) == "7 7 7 1\n"
