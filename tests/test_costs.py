"""The rows of `python -m benchmarks costs` and `blind` are right; the table says which are slow or grow too fast."""

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
from benchmarks.blind.cases import BLIND  # noqa: E402
from benchmarks.costs import measure, table  # noqa: E402
from benchmarks.costs.case import call, forward, normal  # noqa: E402
from benchmarks.costs.cases import COSTS  # noqa: E402

CASES = {f"{group.name}/{name}": case for group in (COSTS, BLIND) for name, case in group.cases.items()}
FORWARD = [name for name, case in CASES.items() if not case.gradient]
GRADIENTS = [name for name, case in CASES.items() if case.gradient]
SETTINGS = harness.Settings(peers=("numpy",), rounds=2, pause=0, warm=0, quick=True)


def run(*arguments, group="costs"):
    command = [sys.executable, "-m", "benchmarks", group, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=900)


def result(harp_times, peer_times, sizes=(10, 20, 40)):
    times = {"harp": harp_times, "numpy": peer_times}
    return measure.Result("row", sizes, times, times)


@pytest.mark.parametrize("name", FORWARD)
def test_harp_computes_what_numpy_computes(name):
    case = CASES[name]
    arguments = case.make(case.sizes(small=True)[0])
    value = case.forward("harp")(*harness.tree_map(harp.numpy.asarray, arguments))
    assert not harness.problem(value, case.forward("numpy")(*arguments), case.tolerance or measure.tolerance(value))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_slopes_of_what_numpy_computes(name):
    case = CASES[name]
    arguments = case.make(case.sizes(small=True)[0])
    argnums, rng, step = case.differentiated(arguments), np.random.default_rng(1), 1e-8
    exact = [
        x.astype(np.result_type(x, "f8")) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x
        for x in arguments
    ]
    gradients = harp.grad(case.loss("harp"), argnums)(*harness.tree_map(harp.numpy.asarray, arguments))
    direction = harness.tree_map(lambda x: rng.standard_normal(x.shape), tuple(arguments[k] for k in argnums))

    def loss(length):
        given = list(exact)
        for k, along in zip(argnums, direction, strict=True):
            several = isinstance(along, list)
            given[k] = (
                [x + length * d for x, d in zip(given[k], along, strict=True)] if several else given[k] + length * along
            )
        return case.loss("numpy")(*given)

    pairs = list(zip(harness.leaves(gradients), harness.leaves(direction), strict=True))
    slope = (loss(step) - loss(-step)) / (2 * step)
    scale = math.sqrt(sum(np.sum(np.abs(g) ** 2) for g, _ in pairs))
    limit = max(1e-4, case.tolerance)
    assert abs(sum(np.sum(g.real * d) for g, d in pairs) - slope) < limit * scale


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


def test_the_group_of_programs_has_a_table_of_its_own(tmp_path):
    done = run("--quick", "--peers", "numpy", "--json", tmp_path / "rows", "--only", "gather/columns", group="blind")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "rows").read_text("utf-8"))["rows"]
    assert row["name"] == "gather/columns" and row["medians"].keys() == row["minima"].keys() == {"harp", "numpy"}
    assert "\nmedian of the largest x of the rows: " in done.stdout


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


def test_ratios_of_minima_are_to_the_shortest_time_of_all_peers():
    minima = {"harp": [3.0, 4.0, 9.0], "numpy": [1.5, 8.0, 9.0], "jax": [2.0, 2.5, 10.0]}
    found = measure.Result("row", (1, 2, 4), minima=minima)
    assert found.worst_of_minima == 2.0
    assert math.isnan(measure.Result("row", (1,), minima={"harp": [1.0]}).worst_of_minima)
    assert "of the minima: 2.00" in table.table([found], {"versions": {}}, quick=False)


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
