"""What symbolic sizes cost: harp against harp with all sizes declared as numbers."""

from __future__ import annotations

from functools import partial

from benchmarks.harness import Goal, Row, Settings, interleaved, leaves
from benchmarks.workload import Comparison, Measurement
from benchmarks.workloads import elementwise, matmul, reductions


def measure(workload: Comparison, settings: Settings, row: Row) -> None:
    """The figure is the time with symbols over the time with numbers."""
    import harp
    import harp.numpy as hnp

    kinds = {"float32": harp.f32, "float64": harp.f64}
    arguments = workload.make(settings.quick)
    signature = tuple(kinds[array.dtype.name][array.shape] for array in leaves(arguments))
    function = partial(workload.function, hnp)
    symbolic, declared = harp.jit(function), harp.jit(function, signature=signature)
    row.take(interleaved({"harp": partial(symbolic, *arguments), "declared": partial(declared, *arguments)}, settings))
    row.figure = row.medians["harp"] / row.medians["declared"]


def _workloads() -> list[Measurement]:
    named = {w.name: w for w in (*elementwise.WORKLOADS, *matmul.WORKLOADS, *reductions.WORKLOADS)}
    chosen = {
        "softmax": "reductions/softmax",
        "matmul-256": "matmul/f32-NN-256",
        "elementwise-1M": "elementwise/tanh-1M",
    }
    goal = Goal(1.1, "<=")
    return [Measurement(f"symbolic/{short}", goal, partial(measure, named[name])) for short, name in chosen.items()]


WORKLOADS = tuple(_workloads())
