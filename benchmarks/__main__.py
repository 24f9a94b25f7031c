"""Compare harp with its peers: `python -m benchmarks --help`; the groups are `loops`, `costs`, `blind` and
`first_calls`.

The process that is started only hands out work: for each number of threads it starts itself once more, in an
environment that was set before anything is imported, and reads the rows of the table from a file that this one writes.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks import environment, first_calls, report
from benchmarks.blind.cases import BLIND
from benchmarks.costs import command
from benchmarks.costs.cases import COSTS
from benchmarks.harness import Row, Settings
from benchmarks.loops.cases import LOOPS
from benchmarks.peers import PEERS, installed, versions
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS, chosen

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS: dict[str, dict[str, Workload]] = {"all": WORKLOADS, "loops": dict(LOOPS)}
TABLES = {group.name: group for group in (COSTS, BLIND)}


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser("python -m benchmarks", description="Compare harp with its peers.")
    result.add_argument("group", nargs="?", choices=tuple(GROUPS), default="all", help="`loops`: rows of loops instead")
    result.epilog = (
        "The groups `costs`, `blind` and `first_calls` have tables and options of their own: "
        "python -m benchmarks costs --help"
    )
    result.add_argument("--threads", choices=("1", "all"), help="default: both, one after the other")
    result.add_argument("--only", nargs="+", metavar="NAME", default=[], help="names, parts of names, or patterns")
    result.add_argument("--list", action="store_true", help="print the names of all workloads")
    result.add_argument("--rounds", type=int, default=None, help="samples of each candidate (default: 15)")
    result.add_argument("--peers", help=f"with commas, of: {', '.join(list(PEERS)[1:])} (default: all that are here)")
    result.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures to a file")
    result.add_argument("--png", type=pathlib.Path, metavar="FILE", help="draw the figures (needs matplotlib)")
    result.add_argument("--first-calls", action="store_true", help="also time first calls, from an empty cache")
    result.add_argument("--quick", action="store_true", help="small sizes: whether everything works, not how fast")
    result.add_argument("--rows", type=pathlib.Path, help=argparse.SUPPRESS)  # of the process that measures
    return result


def settings_of(options: argparse.Namespace, count: int) -> Settings:
    """How to measure, from the options."""
    found = installed()
    peers = found if options.peers is None else tuple(name for name in options.peers.split(",") if name != "harp")
    missing = [name for name in peers if name not in found]
    if missing:
        raise ValueError(f"{missing[0]!r} is not installed or not a peer; there are {', '.join(found)}")
    rounds = options.rounds or (3 if options.quick else 15)
    pause = 1e-3 if options.quick else Settings.pause
    return Settings(
        count,
        peers,
        rounds,
        pause,
        processor_time=options.group == "loops" and count == 1,
        quick=options.quick,
        first_calls=options.first_calls,
    )


def measure(options: argparse.Namespace, settings: Settings) -> None:
    """In the process that measures: one row after the other, each written as soon as it is there."""
    with options.rows.open("a", encoding="utf-8") as file:
        for workload in chosen(options.only, GROUPS[options.group]):
            print(f"{workload.name}, threads: {settings.threads}", file=sys.stderr, flush=True)
            try:
                row = workload.run(settings)
            except Exception as error:  # the other workloads are measured all the same
                row = Row(workload.name, settings.threads, goal=workload.goal)
                row.notes.append(f"failed: {type(error).__name__}: {error}")
            print(json.dumps(row.to_json()), file=file, flush=True)


def collect(arguments: Sequence[str], threads: str, first_calls: bool) -> list[Row]:
    """Start the process that measures and read its rows, also those that it wrote before it crashed."""
    count = 1 if threads == "1" else len(environment.cpus())
    with tempfile.TemporaryDirectory(prefix="harp-bench-") as directory:
        rows = pathlib.Path(directory, "rows")
        rows.touch()
        command = [sys.executable, "-m", "benchmarks", *arguments, "--threads", threads, "--rows", str(rows)]
        empty = {"HARP_CACHE_DIR": str(pathlib.Path(directory, "cache"))} if first_calls else {}
        with environment.affinity(count):
            done = subprocess.run(command, cwd=ROOT, env={**environment.variables(count), **empty})
        found = [Row.from_json(json.loads(line)) for line in rows.read_text("utf-8").splitlines()]
    if done.returncode:
        print(f"the process that measured ended with status {done.returncode}", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report. Returns the exit status: 1 if something could not be measured or was wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in TABLES:
        return command.main(TABLES[arguments[0]], arguments[1:])
    if arguments[:1] == ["first_calls"]:
        return first_calls.main(arguments[1:])
    options = parser().parse_args(arguments)
    if options.list:
        print("\n".join(GROUPS[options.group]))
        return 0
    try:
        settings = settings_of(options, len(environment.cpus()))
        workloads = chosen(options.only, GROUPS[options.group])
    except ValueError as error:
        parser().error(str(error))
    if options.rows:
        measure(options, settings)
        return 0
    settings_of_threads = [options.threads] if options.threads else ["1", "all"]
    if len(environment.cpus()) == 1:
        settings_of_threads = ["1"]
    rows = [row for threads in settings_of_threads for row in collect(arguments, threads, options.first_calls)]
    facts = report.machine(versions(settings.peers))
    print(report.table(rows, facts, settings.quick))
    if options.json:
        report.write_json(options.json, rows, facts, settings)
    if options.png:
        print(report.draw(options.png, rows))
    return int(len(rows) < len(workloads) * len(settings_of_threads) or any(map(_failed, rows)))


def _failed(row: Row) -> bool:
    """Whether the whole workload failed, or harp in it: what a peer cannot do is only noted."""
    return any(note.startswith(("failed", "harp failed", "harp is wrong")) for note in row.notes)


if __name__ == "__main__":
    sys.exit(main())
