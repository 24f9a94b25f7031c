"""The table, the JSON file and the chart."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.harness import Goal, Row, Settings
from benchmarks.peers import PEERS

UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))


def machine(versions: dict[str, str]) -> dict[str, object]:
    """What the figures depend on."""
    import harp
    from harp.backends.toolchain.toolchain import find_toolchain

    toolchain = find_toolchain()
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "compiler": toolchain.version.splitlines()[0] if toolchain else "none",
        "load": round(os.getloadavg()[0], 1),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "versions": {"harp": harp.__version__, **versions},
    }


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def quantity(value: float, unit: str) -> str:
    """A number with three digits and a unit that suits it."""
    if unit == "s":
        unit, factor = next((pair for pair in UNITS if value * pair[1] >= 1), UNITS[-1])
        value *= factor
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{'' if unit == 'x' else ' '}{unit}"


def _goal(goal: Goal | None) -> str:
    return "" if goal is None else f"{goal.sense} {goal.value:g}{'' if goal.unit == 'x' else ' '}{goal.unit}"


def _line(row: Row, columns: Sequence[str], first: Sequence[str]) -> list[str]:
    cells = [quantity(row.medians[name], row.unit) if name in row.medians else "-" for name in columns]
    figure = "-" if row.figure is None else quantity(row.figure, row.figure_unit)
    met = {None: "", True: "yes", False: "no"}[row.met]
    calls = [quantity(row.first[name], "s") if name in row.first else "-" for name in first]
    return [row.name, *cells, figure, _goal(row.goal), met, *calls]


def _notes(row: Row, columns: Sequence[str]) -> list[str]:
    others = [f"{name} {quantity(t, row.unit)}" for name, t in row.medians.items() if name not in columns]
    return [f"  {row.name}: {note}" for note in ([", ".join(others)] if others else []) + row.notes]


def table(rows: Sequence[Row], facts: dict[str, object], quick: bool) -> str:
    """All rows, one part for each number of threads, with notes below."""
    lines = [f"{name}: {value}" for name, value in facts.items() if name != "versions"]
    lines.append(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    if quick:
        lines.append("small sizes: the times say nothing")
    columns = [name for name in PEERS if any(name in row.medians for row in rows)]
    first = [name for name in PEERS if any(name in row.first for row in rows)]
    heads = ["workload", *columns, "figure", "goal", "met", *(f"first {name}" for name in first)]
    for threads in dict.fromkeys(row.threads for row in rows):
        part = [row for row in rows if row.threads == threads]
        cells = [heads, *(_line(row, columns, first) for row in part)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["", f"threads: {threads}"]
        for line in cells:
            padded = [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
            lines.append("  ".join(padded).rstrip())
        notes = [note for row in part for note in _notes(row, columns)]
        lines += ["notes:", *notes] if notes else []
        met = [row.met for row in part if row.met is not None]
        lines.append(f"{sum(met)} of {len(met)} goals are met")
    return "\n".join(lines)


def write_json(path: pathlib.Path, rows: Sequence[Row], facts: dict[str, object], settings: Settings) -> None:
    """Everything, for later comparison."""
    how = {name: value for name, value in asdict(settings).items() if name != "threads"}
    content = {"machine": facts, "settings": how, "rows": [row.to_json() for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def draw(path: pathlib.Path, rows: Sequence[Row]) -> str:
    """A bar for each figure relative to its goal, on a logarithmic axis: right of 1 the goal is met."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return "no chart: matplotlib is not installed"
    shown = [row for row in rows if row.met is not None and row.figure]
    names, threads = list(dict.fromkeys(r.name for r in shown)), list(dict.fromkeys(r.threads for r in shown))
    if not shown:
        return "no chart: there is no figure with a goal"
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(names) * max(1, len(threads))), layout="constrained")
    axes = FigureCanvasAgg(figure).figure.subplots()
    height = 0.8 / len(threads)
    for k, count in enumerate(threads):
        part = [row for row in shown if row.threads == count]
        places = [names.index(row.name) + (k + 0.5) * height - 0.4 for row in part]
        axes.barh(places, [_progress(row) - 1 for row in part], height, left=1, label=f"threads: {count}")
    axes.axvline(1, color="0.2", linewidth=1)
    axes.set(xscale="log", xlabel="figure relative to its goal (right of 1: met)", yticks=range(len(names)))
    axes.set_yticklabels(names, fontsize=8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="x", which="both", color="0.9")
    axes.set_axisbelow(True)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    return f"chart: {path}"


def _progress(row: Row) -> float:
    assert row.goal is not None and row.figure is not None
    return row.figure / row.goal.value if row.goal.sense == ">=" else row.goal.value / row.figure
