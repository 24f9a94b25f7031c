"""The benchmarks run, their table and JSON say what was measured, and harp computes what is compared rightly."""

import json
import os
import pathlib
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package is not installed

import harp  # noqa: E402
from benchmarks import first_calls, harness, random_quality, report  # noqa: E402
from benchmarks.loops.cases import LOOPS as ROWS  # noqa: E402
from benchmarks.peers import PEERS  # noqa: E402
from benchmarks.workload import LOOPS, Comparison  # noqa: E402
from benchmarks.workloads import WORKLOADS, bandwidth, chosen, random  # noqa: E402
from harp.backends.toolchain import toolchain  # noqa: E402

COMPARISONS = [w for w in WORKLOADS.values() if isinstance(w, Comparison)]


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("workload", COMPARISONS, ids=lambda workload: workload.name)
def test_harp_computes_what_is_compared(workload):
    harp = PEERS["harp"]
    if workload.needs and not hasattr(harp.xp(), workload.needs):
        pytest.skip(f"harp.numpy has no {workload.needs}")
    pytest.importorskip(PEERS[workload.truth].package)
    arguments = workload.make(small=True)
    expected = workload.reference(arguments)
    jitted = "harp" in workload.calls  # the others run at once: that they compile is tested elsewhere
    call = workload.call("harp", arguments, 1) if jitted else harp.call(workload.shared(harp), arguments)
    assert not harness.problem(call(), expected, workload.limit(arguments))


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.truth == "numpy"], ids=lambda row: row.name)
def test_loops_compute_what_numpy_and_the_loops_for_numba_compute(row):
    arguments = row.make(small=True)
    expected = row.reference(arguments)
    found = [PEERS["harp"].call(row.shared(PEERS["harp"]), harness.tree_map(harp.numpy.asarray, arguments))()]
    found += [row.own["numba"](*arguments)] if "numba" in row.own else []
    for value in found:
        assert not harness.problem(value, expected, row.limit(arguments))


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.truth == "jax"], ids=lambda row: row.name)
def test_derivatives_of_loops_are_those_of_jax(row):
    pytest.importorskip("jax")
    arguments = row.make(small=True)
    value = PEERS["harp"].call(row.shared(PEERS["harp"]), harness.tree_map(harp.numpy.asarray, arguments))()
    assert not harness.problem(value, row.reference(arguments), row.limit(arguments))


@pytest.mark.parametrize("workload", [w for w in COMPARISONS if "numba" in w.own], ids=lambda workload: workload.name)
def test_the_loops_for_numba_compute_the_same(workload):
    loops = pytest.importorskip(LOOPS)
    arguments = workload.make(small=True)
    result = getattr(loops, workload.own["numba"])(*arguments)
    assert not harness.problem(result, workload.reference(arguments), workload.limit(arguments))


def test_a_run_prints_a_table_and_writes_json(tmp_path):
    names = ["dispatch/add-one", "reductions/sum-axis1"]
    done = run("--quick", "--threads", "1", "--peers", "numpy", "--json", tmp_path / "figures.json", "--only", *names)
    assert done.returncode == 0, done.stderr
    assert "threads: 1\nworkload" in done.stdout
    rows = json.loads((tmp_path / "figures.json").read_text("utf-8"))["rows"]
    assert [row["name"] for row in rows] == [name for name in WORKLOADS if name in names]
    for row in rows:
        assert f"\n{row['name']} " in done.stdout
        assert row["medians"].keys() == {"harp", "numpy"}
        assert not row["notes"]
        assert row["met"] == harness.Goal(**row["goal"]).met(row["figure"])


def test_first_calls_are_measured_in_new_processes():
    assert len(set(first_calls.NAMES)) == 40
    assert {name for name in first_calls.NAMES if not callable(first_calls.prepared("harp", name))} == set()
    assert 0 < first_calls.first_call("harp", "dispatch/add-one") < 100


def test_the_loops_in_c_read_and_write_all_elements():
    if toolchain.find_toolchain() is None:
        pytest.skip("there is no C compiler")
    x, z = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    to = np.zeros_like(x)
    for part in bandwidth._parts(bandwidth.library().triad, [to, x, z], threads=3):
        part()
    assert np.array_equal(to, np.float32(2.5) * x - np.float32(0.75))
    parts = bandwidth._parts(bandwidth.library().read_all, [x], threads=3)
    assert sum(part() for part in parts) == x.sum()


def test_random_numbers_are_compared_and_examined():
    settings = harness.Settings(rounds=3, pause=0, quick=True, peers=("numpy", "numexpr"))
    row = harness.Row("name", 1)
    random.measure("normal", "float32", settings, row)
    assert row.medians.keys() == {"harp", "numpy"} and row.figure and not row.notes
    keys = [np.asarray(k) for k in harp.random.split(harp.random.key(3), 2)]
    bits = list(islice(random_quality.tests(keys, 200_000), 7))
    assert all(min(found) * len(found) > 1e-4 for _, found in bits)
    constant = np.zeros(1000, np.uint32)
    assert max(random_quality.bytes_even(constant), random_quality.pairs_even(constant, constant)) < 1e-9
    assert max(random_quality.bit_counts(constant)) < 1e-9


def test_programs_on_a_device_are_compared_and_right():
    if not pytest.importorskip("pyopencl") or len(harp.devices()) < 2:
        pytest.skip("no OpenCL device works")
    options = ["--quick", "--rounds", "3", "--only", "axpby", "scan", "sort", "gather"]
    command = [sys.executable, "-m", "benchmarks.gpu", *options]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()[3:]}
    assert rows.keys() == {"axpby", "scan", "sort", "gather"} and all("%" in row for row in rows.values())
    assert done.stdout.startswith("opencl:") and "copies" in done.stdout


def test_an_unknown_workload_or_peer_is_an_error():
    assert "no workload is called 'nothing'" in run("--only", "nothing").stderr
    assert "'nothing' is not installed" in run("--peers", "nothing").stderr


def test_workloads_are_chosen_by_name_part_and_pattern():
    assert [w.name for w in chosen(["mlp/step"])] == ["mlp/step"]
    assert len(chosen(["matmul/f32"])) == len(chosen(["matmul/f32*"])) == 20
    assert len(chosen([])) == len(WORKLOADS)


def test_a_wrong_candidate_is_not_compared():
    wrong = {"numpy": lambda x: x + 1.001}
    workload = Comparison("w", None, lambda rng, n: (np.ones(n, np.float32),), (4,), (4,), lambda xp, x: x + 1, wrong)
    exact = workload.function(np, np.ones(4))
    assert harness.problem(workload.shared(PEERS["numpy"])(np.ones(4)), exact, 1e-4) == "relative error 5.0e-04"
    assert "inf" in harness.problem(np.full(4, np.nan), exact, 1e-4)
    assert "shapes" in harness.problem(np.ones(3), exact, 1e-4)


def test_the_order_of_candidates_rotates():
    calls = []
    made = {name: (lambda name=name: calls.append(name)) for name in "abc"}
    settings = harness.Settings(rounds=3, pause=0, quick=True)
    samples = harness.interleaved(made, settings)
    first = [name for name, before in zip(calls[9:], calls[8:], strict=False) if name != before]
    assert first[:9] == list("abcbcacab")
    assert {name: len(times) for name, times in samples.items()} == dict.fromkeys("abc", 3)


def test_rows_survive_json_and_quantities_have_three_digits():
    row = harness.Row("name", 2, goal=harness.Goal(30, "<=", "ms"), figure=12.5, figure_unit="ms")
    row.take({"harp": [1.0, 2.0, 4.0]})
    again = harness.Row.from_json(json.loads(json.dumps(row.to_json())))
    assert again.met and again.medians == {"harp": 2.0}
    shown = [report.quantity(value, "s") for value in (2.5, 0.0123, 1.5e-6, 4e-8)]
    assert shown == ["2.50 s", "12.3 ms", "1.50 us", "40.0 ns"]


def test_a_chart_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [harness.Row("name", threads, figure=2.0, goal=harness.Goal(1.5)) for threads in (1, 2)]
    assert report.draw(tmp_path / "chart.png", rows).startswith("chart: ")
    assert (tmp_path / "chart.png").stat().st_size > 1000
