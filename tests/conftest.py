"""Settings that must stand before harp is imported: a cache of its own for this run, verifiers on."""

import atexit
import functools
import gc
import os
import shutil
import tempfile
import zlib

import pytest
from hypothesis import HealthCheck, settings

collect_ignore = ["soak", "replay"]  # programs of their own

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the directory that the main process made
    kept = os.environ.get("HARP_TESTS_CACHE")  # for the next run, which then needs the C compiler less
    os.environ["HARP_CACHE_DIR"] = kept or tempfile.mkdtemp(prefix="harp-tests-")
    if not kept:
        atexit.register(shutil.rmtree, os.environ["HARP_CACHE_DIR"], ignore_errors=True)
os.environ.setdefault("HARP_VERIFY", "1")
os.environ.setdefault("HARP_QUICK", "0")  # what is compiled is the same in each run, however fast the machine is
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of the many processes that tests start compiles all of harp
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HARP_TRACEBACK", "full")

# With HARP_TESTS=some, as in `make test`, a case of each test runs, with so many random programs, and no slow test: the
# whole in minutes. With HARP_TESTS=others all that these have left out.
CHOSEN = os.environ.get("HARP_TESTS", "all")
EXAMPLES = 5

# Compiling makes the first example slow and the next ones fast, so time limits say nothing.
# The tests say the same at each run; `make fuzz` looks for something new, with twice as many of tests/property.
settings.register_profile(
    "tests", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)
settings.register_profile("fuzz", settings.get_profile("tests"), derandomize=False, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))


# The tests of what compilers make of programs, of orders of sums, and of whole programs: optimised in `make test`.
OPTIMISED = (
    *("tests/backends/", "tests/examples/", "tests/lower/reductions/", "tests/property/", "tests/test_benchmarks.py"),
    *("tests/numpy/test_complex.py", "tests/numpy/test_long_sums.py", "tests/transforms/control/test_masked_sums.py"),
)
CACHE = os.environ["HARP_CACHE_DIR"]
level = []  # in the place of -O2


def optimise_as_told():
    """With HARP_TESTS_OPTIMIZE=0 compilers optimise no kernel of a program: in nearly half the time, for the same bits,
    for orders and vectors stand in the source. The library is optimised, and so are the programs of some tests, and
    what tests start as processes of their own."""
    if os.environ.get("HARP_TESTS_OPTIMIZE"):
        from harp.backends.toolchain import build

        flags_of = build._all_flags

        def flags(unit, given, toolchain):
            found = flags_of(unit, given, toolchain)
            return found if unit.is_library or not level else tuple(level[0] if f == "-O2" else f for f in found)

        build._all_flags = flags


def pytest_runtest_setup(item):
    """How much the programs of this test are optimised. The others have a cache of their own."""
    told = os.environ.get("HARP_TESTS_OPTIMIZE")
    if told:
        is_optimised = CHOSEN != "others" and item.nodeid.startswith(OPTIMISED)
        level[:] = [] if is_optimised else [f"-O{told}"]
        os.environ["HARP_CACHE_DIR"] = os.path.join(CACHE, "optimised" if is_optimised else "plain")


def some_of(items):
    """A case of each test, which is another one for another name, and no slow test."""
    by_test = {}
    for item in items:
        if item.get_closest_marker("slow") is None:
            by_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {cases[zlib.crc32(name.encode()) % len(cases)] for name, cases in by_test.items()}


_SETTINGS = "_hypothesis_internal_use_settings"


def few_programs(test):
    """A test of random programs tries few of them."""
    chosen = getattr(test, _SETTINGS)
    setattr(test, _SETTINGS, settings(chosen, max_examples=min(EXAMPLES, chosen.max_examples)))


def pytest_collection_modifyitems(config, items):
    """The chosen cases; few random programs are some of them, and all random programs are others."""
    optimise_as_told()  # not before, for it imports harp, which is measured from the start of the session on
    if CHOSEN == "all":
        return
    some = some_of(items)
    of_programs = {item for item in items if hasattr(getattr(item, "obj", None), _SETTINGS)}
    kept = some if CHOSEN == "some" else (set(items) - some) | of_programs
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
    if CHOSEN == "some":
        for item in of_programs & some:
            few_programs(item.obj)


def pytest_collection_finish():
    """The tests themselves live until the end: the search for garbage need not walk over them again and again, nor
    over each new program."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


# Where programs run in a test that has the fixture `device`: with "opencl wide" as on a device whose work-items are
# lanes of vectors, whatever the device is.
DEVICES = ("c", "numpy", "opencl", "opencl wide")


@functools.cache
def opencl_device():
    """The first OpenCL device on which a program runs, and why there is none."""
    import numpy as np

    import harp

    reason = "there is no OpenCL device"
    for name in harp.devices()[1:]:
        try:
            assert np.asarray(harp.jit(lambda x: x + 1, device=name)(np.ones(2))).tolist() == [2, 2]
        except harp.errors.DeviceError as error:
            reason = str(error)
        else:
            return name, ""
    return None, reason


@pytest.fixture
def processor(monkeypatch):
    """What the test looks at is how the processor runs programs, in this process and those that it starts, also where
    HARP_DEVICE names another device."""
    import harp

    monkeypatch.setenv("HARP_DEVICE", "cpu")
    with harp.default_device("cpu"):
        yield


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """All functions of the test run there; the name of the device."""
    from harp.backends.toolchain import toolchain
    from harp.config import set_device
    from harp.config import settings as harp_settings
    from harp.transforms.jit import programs

    before, name = harp_settings.device, "cpu"
    if request.param == "numpy":
        monkeypatch.setenv("HARP_CC", "none")
        toolchain.reset()
    elif request.param.startswith("opencl"):
        name, reason = opencl_device()
        if name is None:
            pytest.skip(reason)
        from harp.backends.opencl import devices

        chosen = devices.device(int(name.partition(":")[2]))
        monkeypatch.setitem(chosen.__dict__, "is_wide", request.param == "opencl wide")
        programs.forget()  # those that were made for the other kind
    set_device(name)
    yield name
    set_device(before)
    programs.forget()
    monkeypatch.undo()
    toolchain.reset()
