"""First calls: tracing, compiling and running, each in a new process with an empty cache, harp and JAX in turns.

python -m benchmarks first_calls [--only NAME...] [--rounds 3]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import environment, report
from benchmarks.blind.cases import BLIND
from benchmarks.costs.cases import COSTS
from benchmarks.harness import Call
from benchmarks.loops.cases import LOOPS
from benchmarks.peers import PEERS, versions
from benchmarks.workload import Comparison
from benchmarks.workloads import WORKLOADS

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATIO, MEDIAN = 1.5, 1.0  # the goals: of each row, and of the median of all
# Rows of the other groups at their small sizes: an operation, an algorithm, a loop, a gradient, a network.
NAMES = (
    "dispatch/add-one", "elementwise/polynomial-1M", "elementwise/tanh-1M", "reductions/softmax",
    "reductions/layer-norm", "reductions/logsumexp", "reductions/sum-axis0", "scan/cumsum", "indexing/gather-rows",
    "indexing/scatter-add", "sorting/sort-1M", "sorting/argsort-1M", "linalg/cholesky-64", "linalg/solve-64",
    "linalg/eigh-64", "linalg/svd-64", "linalg/fft-1024", "linalg/gaussian-process-200", "matmul/f32-bias-relu-256",
    "mlp/step", "conv/3x3", "conv/3x3-by-weights", "pool/max-3x3-gradient", "networks/attention-gradient",
    "networks/convolutional-step", "networks/transformer-step", "networks/gru-step", "scan/cell-batch-32-gradient",
    "while/newton-10", "stencil/heat-2d-gradient", "hessian/rosenbrock-50", "vmap/per-example-gradients",
    "matrix/floyd-warshall", "model/attention-gradient", "update/40-arrays-gradient", "search/histogram",
    "einsum/ij,jk,kl->il-gradient", "pad/reflect-gradient", "arithmetic/chain-of-40-gradient",
    "product/batch-of-3x3-gradient",
)  # fmt: skip


def prepared(peer: str, name: str) -> Call:
    """The first call of one library, with its arguments on the library's side."""
    workload = (WORKLOADS | LOOPS).get(name)
    if isinstance(workload, Comparison):
        candidates = workload.candidates(PEERS[peer])
        return workload.call(candidates[0], workload.make(small=True), 1)
    case = (COSTS.cases | BLIND.cases)[name]
    given = case.make(case.sizes(small=True)[0])
    function = case.compiled(peer, given)
    assert function is not None
    return PEERS[peer].call(function, PEERS[peer].arguments(given))


def child(peer: str, name: str) -> None:
    """In a process of its own: print how long the first call takes. The library is ready, as after its first
    operation on an array."""
    call = prepared(peer, name)
    start = time.perf_counter()
    call()
    print(f"{time.perf_counter() - start:.6f}", flush=True)


def first_call(peer: str, name: str) -> float:
    """Seconds, or NaN. What a library still does in the background ends with the process."""
    with tempfile.TemporaryDirectory(prefix="harp-bench-") as cache:
        variables = environment.variables(len(environment.cpus())) | {"HARP_CACHE_DIR": cache, "HARP_QUICK": "1"}
        command = [sys.executable, "-m", "benchmarks.first_calls", peer, name]
        with subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdout is not None
            line = next(iter(process.stdout), b"nan")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return float(line)


def measured(name: str, rounds: int) -> dict[str, float]:
    """The medians of both."""
    samples: dict[str, list[float]] = {"harp": [], "jax": []}
    for turn in range(rounds):
        for peer in sorted(samples, reverse=bool(turn % 2)):
            samples[peer].append(first_call(peer, name))
    return {peer: statistics.median(taken) for peer, taken in samples.items()}


def main(arguments: Sequence[str]) -> int:
    """Measure and print the table. Returns the exit status: 1 if something could not be measured."""
    parser = argparse.ArgumentParser("python -m benchmarks first_calls", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="parts of names")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each library (default: 3)")
    options = parser.parse_args(arguments)
    chosen = [name for name in NAMES if not options.only or any(word in name for word in options.only)]
    print("\n".join(f"{name}: {fact}" for name, fact in report.machine(versions(("jax",))).items()))
    print(f"\n| first call | harp | JAX | ratio (goal: {RATIO}) |\n|---|---|---|---|")
    ratios = list[float]()
    for name in chosen:
        found = measured(name, options.rounds)
        ratios.append(found["harp"] / found["jax"])
        print(f"| `{name}` | {found['harp']:.2f} s | {found['jax']:.2f} s | {ratios[-1]:.2f} |", flush=True)
    known = [ratio for ratio in ratios if ratio == ratio]
    if known:
        met = sum(ratio <= RATIO for ratio in known)
        print(f"\nmedian {statistics.median(known):.2f} (goal: {MEDIAN}), {met} of {len(ratios)} rows reach theirs")
    return int(len(known) < len(ratios))


if __name__ == "__main__":
    child(*sys.argv[1:])
