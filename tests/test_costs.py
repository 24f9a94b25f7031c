"""The rows of `python -m benchmarks costs` are right, and its table says which of them are slow or grow too fast."""

import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package is not installed

import harp  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.costs import measure, table  # noqa: E402
from benchmarks.costs.case import call, forward, normal  # noqa: E402
from benchmarks.costs.cases import CASES  # noqa: E402

FORWARD = [case for case in CASES.values() if not case.gradient]
GRADIENTS = [case for case in CASES.values() if case.gradient]
SETTINGS = harness.Settings(peers=("numpy",), rounds=2, pause=0, warm=0, quick=True)


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", "costs", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300)


def result(harp_times, peer_times, sizes=(10, 20, 40)):
    return measure.Result("row", sizes, {"harp": harp_times, "numpy": peer_times})


@pytest.mark.parametrize("case", FORWARD, ids=lambda case: case.name)
def test_harp_computes_what_numpy_computes(case):
    arguments = case.make(case.sizes(small=True)[0])
    value = case.forward("harp")(*harness.tree_map(harp.numpy.asarray, arguments))
    assert not harness.problem(value, case.forward("numpy")(*arguments), case.tolerance or measure.tolerance(value))


@pytest.mark.parametrize("case", GRADIENTS, ids=lambda case: case.name)
def test_gradients_are_slopes_of_what_numpy_computes(case):
    arguments = case.make(case.sizes(small=True)[0])
    argnums, rng, step = case.differentiated(arguments), np.random.default_rng(1), 1e-8
    gradients = harp.grad(case.loss("harp"), argnums)(*harness.tree_map(harp.numpy.asarray, arguments))
    direction = harness.tree_map(lambda x: rng.standard_normal(x.shape), tuple(arguments[k] for k in argnums))

    def loss(length):
        given = list(arguments)
        for k, along in zip(argnums, direction, strict=True):
            several = isinstance(along, list)
            given[k] = (
                [x + length * d for x, d in zip(given[k], along, strict=True)] if several else given[k] + length * along
            )
        return case.loss("numpy")(*given)

    pairs = list(zip(harness.leaves(gradients), harness.leaves(direction), strict=True))
    slope = (loss(step) - loss(-step)) / (2 * step)
    scale = math.sqrt(sum(np.sum(g**2) for g, _ in pairs))
    assert abs(sum(np.sum(g * d) for g, d in pairs) - slope) < 1e-4 * scale


def test_rows_are_measured_and_written(tmp_path):
    names = ["reduce/sum3-axis0", "join/tile-2*"]
    done = run("--quick", "--peers", "numpy", "--json", tmp_path / "figures.json", "--only", *names)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "figures.json").read_text("utf-8"))["rows"]
    assert {row["name"]: sorted(row["medians"]) for row in rows} == {
        "join/tile-2": ["copy", "harp", "numpy"],
        "join/tile-2-gradient": ["harp"],
        "reduce/sum3-axis0": ["harp", "numpy"],
    }
    assert all(len(times) == 3 for row in rows for times in row["medians"].values())
    assert all(f"\n{row['name']} " in done.stdout for row in rows)


def test_an_unknown_row_or_peer_is_an_error():
    assert "no row is called 'nothing'" in run("--only", "nothing").stderr
    assert "'torch' is not installed or not a peer" in run("--peers", "torch").stderr


def test_ratios_and_exponents_have_goals():
    assert result([1, 2, 4], [1, 2, 4]).met
    assert not result([1, 2, 5], [1, 2, 4]).met
    assert not result([0.1, 0.4, 1.6], [2, 4, 8]).met  # faster, but it grows like a square
    quadratic = result([1, 4, 16], [1, 2, 4])
    assert [quadratic.ratio(k) for k in range(3)] == [1, 2, 4]
    assert quadratic.exponents == (2, 1)
    assert result([1.1], [1], sizes=(10,)).met
    assert not result([1.3], [1], sizes=(10,)).met


def test_the_worst_rows_come_first():
    slow, slower = result([2, 2, 2], [1, 1, 1]), result([1, 2, 9], [1, 2, 3])
    found = table.missed_goals([slow, slower, result([1, 2, 4], [1, 2, 4])])
    assert [(line[1], line[2]) for line in found] == [("40", "3.00"), ("10", "2.00"), ("20", "2.00"), ("40", "2.00")]


def test_results_survive_json():
    before = result([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert measure.Result.from_json(json.loads(json.dumps(before.to_json()))) == before


def test_a_wrong_or_failing_row_is_reported():
    (wrong,) = forward("wrong", 80, [normal("n")], lambda xp, x: x + 1, numpy=lambda x: x + 1.001)
    (failing,) = forward("failing", 80, [normal("n")], lambda xp, x: xp.no_such_function(x), numpy=np.abs)
    for case, text in (wrong, "harp differs from numpy at n = 10: relative error"), (failing, "harp failed: "):
        found = measure.run(case, SETTINGS)
        assert text in found.failure and not found.met
        assert text in table.table([found], {"versions": {}}, quick=True)


def test_views_of_numpy_are_copied():
    x = np.ones((3, 2))
    assert not np.may_share_memory(call("numpy", lambda x: x.T, (x,))(), x)
    assert call("numpy", lambda x: x.T, (x,))().flags.c_contiguous
