"""The types that users see: a script of theirs passes type checkers, and mistakes do not."""

import pathlib
import re
import runpy
import shutil
import subprocess
import sys

import numpy as np
import numpy.testing as npt
import pytest

STUBS = runpy.run_path(str(pathlib.Path(__file__).with_name("stubs.py")))

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def check(checker, *files):
    """Runs a type checker from the root of the repository; the lines that it complains about, and its output."""
    pytest.importorskip(checker)
    options = ["--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs node")
    command = [sys.executable, "-m", checker, *options, *(str(HERE / file) for file in files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if checker == "pyright" and "0 errors" not in done.stdout and " error" not in done.stdout:
        pytest.skip(f"pyright does not run here: {(done.stderr or done.stdout)[-200:]}")
    return {int(line) for line in re.findall(r"\.py:(\d+):(?:\d+)?.*error", done.stdout)}, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_users_script(checker):
    lines, output = check(checker, "script.py")
    assert not lines, output


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_mistakes(checker):
    lines, output = check(checker, "wrong.py")
    text = (HERE / "wrong.py").read_text("utf-8").splitlines()
    assert lines == {k for k, line in enumerate(text, 1) if line.endswith("# error")}, output


def test_the_script_runs(capsys):
    found = runpy.run_path(str(HERE / "script.py"))["main"]()
    x = np.random.default_rng(0).normal(size=(20, 3))
    assert found["losses"][2] < found["losses"][0]
    npt.assert_allclose(found["power"], 1 + x + x**2)
    single, batched, cotangent, tangent, hessian = found["derivatives"]
    npt.assert_allclose(single, np.cos(x[0]))
    npt.assert_allclose(batched, x.sum(axis=1))
    npt.assert_allclose(cotangent, np.full(3, 2.0))
    npt.assert_allclose(tangent, np.ones(2))
    npt.assert_allclose(hessian, [[0, 1], [1, 0]])
    for result, expected in zip(found["loops"], ([2.5, 2.5], np.sqrt(2), [1, 2], [1, 1]), strict=True):
        npt.assert_allclose(result, expected)
    npt.assert_allclose(found["scaled"], 2 * x)
    assert "20 1 3.0 1 1" in capsys.readouterr().out


@pytest.mark.parametrize("namespace", STUBS["NAMESPACES"])
def test_type_checkers_read_the_names_that_are_there(namespace):
    assert STUBS["file"](namespace).read_text("utf-8") == STUBS["stub"](namespace), "run tests/types/stubs.py"
