"""The table: ratios and exponents of each row, and the times of those that miss a goal, the worst first."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.costs.measure import EXPONENT, RATIO, Result
from benchmarks.report import quantity

HEADS = ["row", "n", "x at n", "2n", "4n", "minima", "harp^", "best^", "best", "harp at 4n", "best at 4n", "met"]
MISSED = ["row", "size", "x", "harp", "best", "its time", "harp^", "best^"]


def table(results: Sequence[Result], facts: dict[str, object], quick: bool) -> str:
    """All rows, notes, and what misses a goal."""
    lines = [f"{name}: {value}" for name, value in facts.items() if name != "versions"]
    lines.append(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    if quick:
        lines.append("small sizes: the times say nothing")
    lines += ["", "x: harp's time over the best peer's. harp^, best^: the power of n that the time grows with."]
    lines.append("minima: the largest x of the shortest times, which other work on the machine changes least.")
    lines += _aligned([HEADS, *map(_row, results)])
    notes = [f"  {result.name}: {note}" for result in results for note in result.notes]
    lines += ["", "notes:", *notes] if notes else []
    failed = [f"  {result.name}: {result.failure}" for result in results if result.failure]
    lines += ["", "failed in harp:", *failed] if failed else []
    missed = missed_goals(results)
    head = f"missed, the worst first (x at most {RATIO}, harp^ at most {EXPONENT} above best^):"
    lines += ["", head, *_aligned([MISSED, *missed])] if missed else []
    lines += ["", f"{sum(result.met for result in results)} of {len(results)} rows meet their goals"]
    middle = [_number(_median(found)) for found in ([r.worst for r in results], [r.worst_of_minima for r in results])]
    lines.append(f"median of the largest x of the rows: {middle[0]}, of the minima: {middle[1]}")
    return "\n".join(lines)


def _row(result: Result) -> list[str]:
    best, last = result.best(-1), len(result.sizes) - 1
    ratios = [_number(result.ratio(k)) if k <= last else "" for k in range(3)]
    exponents = [_number(power) for power in result.exponents] if last else ["", ""]
    times = [_time(result, name, -1) for name in ("harp", best)]
    met = "failed" if result.failure else "yes" if result.met else "no"
    return [
        result.name,
        str(result.sizes[0]),
        *ratios,
        _number(result.worst_of_minima),
        *exponents,
        best or "-",
        *times,
        met,
    ]


def missed_goals(results: Sequence[Result]) -> list[list[str]]:
    """A line for each size of which the ratio is too large; for a case that only grows too fast, its last size."""
    found = []
    for result in results:
        if result.met or result.failure:
            continue
        sizes = [k for k in range(len(result.sizes)) if result.ratio(k) > RATIO] or [len(result.sizes) - 1]
        found += [(result.ratio(k), k, result) for k in sizes]
    found.sort(key=lambda entry: -entry[0])
    return [_missed(result, k) for _, k, result in found]


def _missed(result: Result, k: int) -> list[str]:
    best, (harp, peer) = result.best(k), result.exponents
    mark = " !" if harp - peer > EXPONENT else ""
    times = [_time(result, "harp", k), best, _time(result, best, k)]
    return [result.name, str(result.sizes[k]), _number(result.ratio(k)), *times, _number(harp), _number(peer) + mark]


def _median(values: Sequence[float]) -> float:
    return statistics.median([value for value in values if not math.isnan(value)] or [math.nan])


def _time(result: Result, name: str, k: int) -> str:
    return quantity(result.medians[name][k], "s") if name in result.medians else "-"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in cells]
    return ["  ".join(line).rstrip() for line in padded]
