"""Compare what harp makes of the tests' programs with what another commit makes of them: `python -m tests.replay BASE`.

The tests of programs, of the examples and of the benchmarks run twice, as they are here, over the package of this tree
and over that of the commit BASE. The report says which programs have other loops, another source or another cost, and
which
tests got other bits. What depends on the time differs between two runs of one commit, too: `python -m tests.replay
HEAD` names those tests.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("numpy", "random", "transforms", "property", "lax", "standard", "examples", "test_benchmarks.py")
# What a program is compared by, in the order of the pipeline.
PARTS = ("graph", "kernels", "loops", "source", "cost")

Rows = dict[str, dict[str, Any]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.replay", description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="a commit")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="one of N tests, chosen by its name")
    parser.add_argument("--device", default="cpu", help="where programs run, as in HARP_DEVICE")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="differences that are printed of each kind")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="records of commits, for the next replay")
    parser.add_argument("tests", nargs="*", default=[f"tests/{name}" for name in PROGRAMS])
    return parser.parse_intermixed_args()


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def tree_of(commit: str, folder: pathlib.Path) -> pathlib.Path:
    """The package of a commit, with the tests of this tree."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("harp", ".*", "build", "dist"), dirs_exist_ok=True)
    packed = subprocess.run(["git", "archive", commit, "harp"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
    return folder


def run(tree: pathlib.Path, records: pathlib.Path, cache: pathlib.Path, given: argparse.Namespace) -> None:
    """Run the tests over the package of a tree and write records of them."""
    (records / "texts").mkdir(parents=True)
    environment = os.environ | {
        "HARP_REPLAY": str(records),
        "HARP_REPLAY_SAMPLE": str(given.sample),
        "HARP_TESTS_CACHE": str(cache),
        "HARP_DEVICE": given.device,
        "PYTHONPATH": str(tree),
    }
    command = [sys.executable, "-m", "pytest", "-n", "auto", "-p", "tests.replay.recorder", *given.tests]
    with (records / "pytest.log").open("w") as log:
        subprocess.run(command, cwd=tree, env=environment, stdout=log, stderr=subprocess.STDOUT)
    print(f"  {(records / 'pytest.log').read_text().splitlines()[-1]}")


def rows(records: pathlib.Path, kind: str, key: str) -> Rows:
    """What the processes wrote; where two of them lowered a program, they wrote the same."""
    lines = [line for path in sorted(records.glob(f"{kind}.*.jsonl")) for line in path.read_text().splitlines()]
    return {row[key]: row for row in map(json.loads, lines)}


def difference(records: tuple[pathlib.Path, pathlib.Path], digests: tuple[str, str]) -> str:
    """The lines of two texts that differ, as many as one can read."""
    texts = [(folder / "texts" / name).read_text().splitlines() for folder, name in zip(records, digests, strict=True)]
    lines = list(difflib.unified_diff(*texts, "base", "now", lineterm="", n=2))
    return "\n".join(f"    {line}" for line in [*lines[:40], *["..."] * (len(lines) > 40)])


def heading(name: str, base: Rows, now: Rows) -> list[str]:
    """Which ones both have; how many there are."""
    both = [key for key in base if key in now]
    print(f"\n{name}: {len(both):,} in both, {len(base) - len(both):,} gone, {len(now) - len(both):,} new")
    return both


def report(records: tuple[pathlib.Path, pathlib.Path], show: int) -> None:
    base, now = (rows(folder, "programs", "program") for folder in records)
    both = heading("programs", base, now)
    for part in PARTS:
        other = [key for key in both if base[key][part] != now[key][part]]
        print(f"  {part:8} {len(both) - len(other):7,} identical, {len(other):,} differ")
        for key in other[:show] if part in ("loops", "cost") else ():
            print(f"  {base[key]['test']}\n{difference(records, (base[key][part], now[key][part]))}")
    first, second = ({name for row in side.values() for name in row["kernels"]} for side in (base, now))
    print(f"  distinct kernels: {len(first):,} before, {len(second):,} now, {len(first & second):,} equal")
    base, now = (rows(folder, "results", "test") for folder in records)
    both = heading("tests with results", base, now)
    other = [key for key in both if base[key]["bits"] != now[key]["bits"]]
    print(f"  bits     {len(both) - len(other):7,} identical, {len(other):,} differ")
    print("\n".join(f"  {name}" for name in other[: 10 * show]))


def main() -> None:
    given = options()
    folder = given.keep or pathlib.Path(tempfile.mkdtemp(prefix="harp-replay-"))
    folder.mkdir(exist_ok=True)
    commit = git("rev-parse", given.base)
    # Other tests make other records.
    tree = git("ls-tree", git("stash", "create") or "HEAD", "tests", "examples", "benchmarks")
    key = hashlib.sha256(f"{tree} {given.sample} {given.device} {given.tests}".encode()).hexdigest()
    cache = pathlib.Path(os.environ.get("HARP_TESTS_CACHE", folder / "cache"))
    before = folder / f"{commit[:12]}-{key[:12]}"
    if not before.exists():
        print(f"base, {commit[:12]}")
        with tempfile.TemporaryDirectory() as tree:
            run(tree_of(commit, pathlib.Path(tree)), before, cache, given)
    after = folder / "now"
    shutil.rmtree(after, ignore_errors=True)
    print("now")
    run(ROOT, after, cache, given)
    report((before, after), given.show)
    if given.keep is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
