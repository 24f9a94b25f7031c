"""Searches for sizes at which harp is wrong: `make fuzz`, or `python tests/property/fuzz.py --help`.

Each function is determined by one number, which is printed with a finding; so `--seed N --count 1` repeats it.
Findings are made small and saved as programs that run by themselves.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from sizes.case import Case
from sizes.grammar import generate
from sizes.oracle import Finding
from sizes.saved import save
from sizes.shrink import shrink
from sizes.worker import Worker

HERE = pathlib.Path(__file__).resolve().parent
COMPILED_SHARE = 0.1  # of the functions with --backend both; the interpreter asks the same questions and is faster
PROPERTY_SHARE = 0.25  # of the time of --all
PROPERTY_TESTS = ("test_programs.py", "test_gradients.py")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to search (default 60)")
    parser.add_argument("--seed", type=int, help="the first seed; the next ones follow (default: a random one)")
    parser.add_argument("--count", type=int, help="how many functions at most")
    parser.add_argument("--backend", choices=("c", "numpy", "both"), default="both")
    parser.add_argument(
        "--verify", default="2", choices="0123", help="HARP_VERIFY: verifiers run after passes (default 2)"
    )
    parser.add_argument("--all", action="store_true", help="a quarter of the time, random runs of the property tests")
    parser.add_argument("--findings", type=pathlib.Path, default=pathlib.Path("fuzz-findings"), help="where they go")
    return parser.parse_args()


def backend_of(seed: int, wanted: str) -> str:
    """The same for a seed each time."""
    if wanted != "both":
        return wanted
    return "c" if random.Random(~seed).random() < COMPILED_SHARE else "numpy"


class Search:
    """Counts what was tried, and keeps one finding of each kind."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.worker = Worker()
        self.directory = directory
        self.counts: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.start = self.told = time.monotonic()

    def try_seed(self, seed: int, backend: str) -> None:
        case = generate(seed)
        report = self.worker.check(case, backend)
        self.counts["functions"] += 1
        for name in ("calls", "programs", "exceptions"):
            self.counts[name] += getattr(report, name)
        if report.finding is not None:
            self.counts["findings"] += 1
            self._found(case, report.finding, backend)
        if time.monotonic() - self.told > 60:
            self.tell()

    def _found(self, case: Case, finding: Finding, backend: str) -> None:
        print(f"seed {case.seed} ({backend}): {finding.kind}", flush=True)

        def fails(smaller: Case) -> bool:
            other = self.worker.check(smaller, backend).finding
            return other is not None and other.kind == finding.kind

        seconds = 60.0 if self.kinds[finding.kind] < 10 else 5.0
        small = shrink(case, fails, seconds)
        last = self.worker.check(small, backend).finding or finding
        # Two findings are taken for one where they have the same kind and come from the same rows.
        rows = sorted({name for s in small.statements for name in s.rows})
        self.kinds[finding.kind] += 1
        path = save(self.directory, small, last, backend, rows)
        if path is not None:
            print(f"{path}:\n{small.source}{[c.shapes for c in small.calls]}\n{last.text}\n", flush=True)

    def tell(self) -> None:
        self.told = time.monotonic()
        minutes = (self.told - self.start) / 60
        shown = ", ".join(f"{self.counts[n]} {n}" for n in ("functions", "calls", "programs", "exceptions", "findings"))
        print(f"[{minutes:.0f} min] {shown}", flush=True)


def property_tests(seconds: float) -> bool:
    """The other property tests with random seeds until the time is over. Whether all have passed."""
    end = time.monotonic() + seconds
    environment = os.environ | {"HYPOTHESIS_PROFILE": "fuzz"}
    passed = True
    for name in itertools.cycle(PROPERTY_TESTS):
        if time.monotonic() > end:
            return passed
        seed = random.randrange(2**32)
        print(f"{name} --hypothesis-seed={seed}", flush=True)
        command = [sys.executable, "-m", "pytest", "-x", str(HERE / name), f"--hypothesis-seed={seed}"]
        passed &= subprocess.run(command, env=environment, cwd=HERE.parents[1]).returncode == 0
    return passed


def main() -> int:
    chosen = options()
    os.environ["HARP_VERIFY"] = chosen.verify
    with tempfile.TemporaryDirectory(prefix="harp-fuzz-") as cache:
        os.environ.setdefault("HARP_CACHE_DIR", cache)  # of the processes that are started
        return run(chosen)


def run(chosen: argparse.Namespace) -> int:
    """Both searches. 0 if nothing was found."""
    seconds = chosen.minutes * 60
    passed = property_tests(seconds * PROPERTY_SHARE) if chosen.all else True
    first = random.randrange(10**9) if chosen.seed is None else chosen.seed
    print(f"seeds from {first} on", flush=True)
    search = Search(chosen.findings)
    end = time.monotonic() + seconds * (1 - PROPERTY_SHARE if chosen.all else 1)
    seeds = itertools.count(first) if chosen.count is None else range(first, first + chosen.count)
    try:
        for seed in seeds:
            search.try_seed(seed, backend_of(seed, chosen.backend))
            if time.monotonic() > end:
                break
    except KeyboardInterrupt:
        print("stopped")
    search.tell()
    search.worker.close()
    return 0 if passed and not search.counts["findings"] else 1


if __name__ == "__main__":
    sys.exit(main())
