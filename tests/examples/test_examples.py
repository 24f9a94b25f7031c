"""The examples run, small, and say what they should."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits(tmp_path, capsys):
    picture = tmp_path / "digits.png"
    assert load("digits").main(["--epochs", "3", "--output", str(picture)]) == 0
    out = capsys.readouterr().out
    assert float(re.search(r"accuracy: ([\d.]+)%", out)[1]) > 80
    assert "1 for the train step, 1 for prediction" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_rosenbrock(capsys):
    assert load("rosenbrock").main(["--dimensions", "2", "5"]) == 0
    assert "programs compiled: 1" in capsys.readouterr().out
