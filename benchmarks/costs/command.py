"""The options of `python -m benchmarks costs` and of groups like it, the process that measures, and the table.

As in the other groups, the process that is started only hands out work: it starts itself once more, in an environment
for one thread, and reads the results from a file. If that process crashes, another one measures the rest.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch

from benchmarks import environment, report
from benchmarks.costs import table
from benchmarks.costs.case import Case, Group
from benchmarks.costs.measure import Result, run
from benchmarks.harness import Settings
from benchmarks.peers import installed, versions

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEFAULT_PEERS = ("numpy", "jax")
# glibc keeps memory that was freed. Otherwise it gives large arrays back, and gets them again page by page, which takes
# longer than many of these programs, but only for those candidates whose arrays come to lie at the end of the heap.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


def parser(group: Group) -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(f"python -m benchmarks {group.name}", description=group.description)
    result.add_argument("--only", nargs="+", metavar="NAME", default=[], help="names, parts of names, or patterns")
    result.add_argument("--list", action="store_true", help="print the names of all rows")
    result.add_argument("--rounds", type=int, default=None, help="samples of each candidate (default: 15)")
    result.add_argument("--peers", help="one of numpy, jax (default: both, as far as they are here)")
    result.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures to a file")
    result.add_argument("--quick", action="store_true", help="small sizes: whether everything works, not how fast")
    result.add_argument("--names", type=pathlib.Path, help=argparse.SUPPRESS)  # both of the process that measures
    result.add_argument("--results", type=pathlib.Path, help=argparse.SUPPRESS)
    return result


def chosen(cases: Mapping[str, Case], words: Sequence[str]) -> list[Case]:
    """The cases of these names; part of a name, or a pattern with `*`, stands for all that have it."""

    def named(case: Case, word: str) -> bool:
        return case.name == word if word in cases else word in case.name or fnmatch(case.name, word)

    unknown = [word for word in words if not any(named(case, word) for case in cases.values())]
    if unknown:
        raise ValueError(f"no row is called {unknown[0]!r}; --list shows all")
    return [case for case in cases.values() if not words or any(named(case, word) for word in words)]


def settings_of(options: argparse.Namespace) -> Settings:
    """How to measure: with one thread nothing spins, so pauses are short, and all work is in the processor's time."""
    able = [name for name in DEFAULT_PEERS if name in installed()]
    peers = able if options.peers is None else options.peers.split(",")
    missing = [name for name in peers if name not in able]
    if missing:
        raise ValueError(f"{missing[0]!r} is not installed or not a peer; there are {', '.join(able)}")
    rounds = options.rounds or (1 if options.quick else 15)
    return Settings(
        1, tuple(peers), rounds, pause=1e-3, warm=0.01, processor_time=True, budget=1.5, quick=options.quick
    )


def measure(group: Group, names: Sequence[str], settings: Settings, path: pathlib.Path) -> None:
    """In the process that measures: each result is written as soon as it is there."""
    with path.open("a", encoding="utf-8") as file:
        for name in names:
            print(f"{group.name}: {name}", file=sys.stderr, flush=True)
            print(json.dumps(run(group.cases[name], settings).to_json()), file=file, flush=True)


def collect(group: Group, arguments: Sequence[str], cases: Sequence[Case]) -> list[Result]:
    """Start the process that measures, again after each crash, and read what it wrote."""
    found: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="harp-bench-") as directory, environment.affinity(1):
        names, results = pathlib.Path(directory, "names"), pathlib.Path(directory, "results")
        while len(found) < len(cases):
            names.write_text("\n".join(case.name for case in cases[len(found) :]), "utf-8")
            results.write_text("", "utf-8")
            files = ("--names", str(names), "--results", str(results))
            command = [sys.executable, "-m", "benchmarks", group.name, *arguments, *files]
            done = subprocess.run(command, cwd=ROOT, env={**environment.variables(1), **KEEP_MEMORY})
            found += [Result.from_json(json.loads(line)) for line in results.read_text("utf-8").splitlines()]
            if len(found) < len(cases):
                crashed = cases[len(found)]
                found.append(Result(crashed.name, crashed.sizes(), failure=f"the process ended: {done.returncode}"))
    return found


def main(group: Group, arguments: Sequence[str]) -> int:
    """Measure and report. Returns the exit status: 1 if harp failed or was wrong in a row."""
    options = parser(group).parse_args(arguments)
    if options.list:
        print("\n".join(group.cases))
        return 0
    try:
        settings, cases = settings_of(options), chosen(group.cases, options.only)
    except ValueError as error:
        parser(group).error(str(error))
    if options.results:
        measure(group, options.names.read_text("utf-8").splitlines(), settings, options.results)
        return 0
    results = collect(group, arguments, cases)
    facts = report.machine(versions(settings.peers))
    print(table.table(results, facts, settings.quick))
    if options.json:
        content = {"machine": facts, "rounds": settings.rounds, "rows": [result.to_json() for result in results]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return int(any(result.failure for result in results))
