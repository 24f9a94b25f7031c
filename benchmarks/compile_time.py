"""How long the C of an MLP's training step takes to compile, in seconds: from a cold cache, where the kernels that all
programs share are compiled, too, and after that.

python -m benchmarks.compile_time [compiler]
"""

import contextlib
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np

TIMED = """#!/bin/sh
start=$(date +%s%N); {compiler} "$@"; status=$?
echo $start $(date +%s%N) "$@" >> {log}; exit $status
"""


@contextlib.contextmanager
def cold(compiler: str = "gcc") -> Iterator[Callable[[], list[tuple[float, float]]]]:
    """An empty cache and a compiler whose runs are timed, for a harp that is imported after this.

    Gives a function for (start, end) of each run so far that made code (and not, say, asked for the version).
    """
    found = shutil.which(compiler)
    assert found, f"{compiler} is not on PATH"
    with tempfile.TemporaryDirectory(prefix="harp-bench-") as name:
        log, script = pathlib.Path(name, "log"), pathlib.Path(name, pathlib.Path(found).name)
        log.touch()
        script.write_text(TIMED.format(compiler=shlex.quote(found), log=shlex.quote(str(log))))
        script.chmod(0o700)
        os.environ.update(HARP_CC=str(script), HARP_CACHE_DIR=os.path.join(name, "cache"))

        def runs() -> list[tuple[float, float]]:
            lines = [line.split() for line in log.read_text().splitlines()]
            return [(int(start) / 1e9, int(end) / 1e9) for start, end, *words in lines if {"-shared", "-c"} & {*words}]

        yield runs


def mlp(decay: float = 0.9):
    """A training step with momentum of 64 -> 128 -> 10 units, and arguments for it."""
    import harp
    import harp.numpy as hnp

    def loss(params, x, labels):
        w1, b1, w2, b2 = params
        scores = hnp.tanh(x @ w1 + b1) @ w2 + b2
        return hnp.mean(hnp.logsumexp(scores, axis=1) - hnp.sum(scores * labels, axis=1))

    @harp.jit
    def step(params, momentum, x, labels):
        value, grads = harp.value_and_grad(loss)(params, x, labels)
        momentum = [decay * m + g for m, g in zip(momentum, grads, strict=True)]
        return value, [p - 0.1 * m for p, m in zip(params, momentum, strict=True)], momentum

    params = [np.full(size, 0.01, np.float32) for size in [(64, 128), (128,), (128, 10), (10,)]]
    x, labels = np.ones((32, 64), np.float32), np.eye(32, 10, dtype=np.float32)
    return step, (params, [np.zeros_like(p) for p in params], x, labels)


def _print(what: str, runs: list[tuple[float, float]]) -> None:
    starts, ends = zip(*runs, strict=True)
    work = sum(ends) - sum(starts)
    print(f"{what:<20}{max(ends) - min(starts):9.3f} s   {work:.3f} s of work in {len(runs)} runs")


def main(compiler: str = "gcc") -> None:
    with cold(compiler) as runs:
        step, arguments = mlp()
        start = time.perf_counter()
        text = step.lower(*arguments).source
        lowered = time.perf_counter()
        step(*arguments)
        print(f"C source            {len(text.splitlines()):9,} lines")
        print(f"before the compiler {lowered - start:9.3f} s")
        _print(compiler, runs())
        before = len(runs())
        other, arguments = mlp(0.8)
        other(*arguments)
        _print("the next program", runs()[before:])
        print(f"programs            {step.compilations:9}")


if __name__ == "__main__":
    main(*sys.argv[1:])
