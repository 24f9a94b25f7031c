"""Settings that must stand before harp is imported: a cache of its own for this run, verifiers on."""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

collect_ignore = ["soak"]  # programs of their own, for `make soak`

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the directory that the main process made
    kept = os.environ.get("HARP_TESTS_CACHE")  # for the next run, which then needs the C compiler less
    os.environ["HARP_CACHE_DIR"] = kept or tempfile.mkdtemp(prefix="harp-tests-")
    if not kept:
        atexit.register(shutil.rmtree, os.environ["HARP_CACHE_DIR"], ignore_errors=True)
os.environ.setdefault("HARP_VERIFY", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of the many processes that tests start compiles all of harp
os.environ.setdefault("MPLBACKEND", "Agg")

# Compiling makes the first example slow and the next ones fast, so time limits say nothing.
# The tests say the same at each run; `make fuzz` looks for something new, with twice as many of tests/property.
settings.register_profile(
    "tests", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)
settings.register_profile("fuzz", settings.get_profile("tests"), derandomize=False, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))
