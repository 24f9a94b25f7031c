"""The report of a replay says which programs and results of two commits differ."""

import json

from tests.replay.__main__ import report


def written(folder, cost, bits):
    (folder / "texts").mkdir(parents=True)
    for name in ("same", "2*n", "3*n"):
        (folder / "texts" / name).write_text(name)
    row = {"graph": "same", "kernels": ["same"], "loops": "same", "source": "same", "cost": cost}
    (folder / "programs.1.jsonl").write_text(json.dumps({"program": "p", "test": "t", **row}))
    (folder / "results.1.jsonl").write_text(json.dumps({"test": "t", "bits": bits}))
    return folder


def test_costs_and_bits_that_differ_are_named(tmp_path, capsys):
    report((written(tmp_path / "a", "2*n", ["0"]), written(tmp_path / "b", "3*n", ["1"])), 3)
    text = capsys.readouterr().out
    assert "source         1 identical, 0 differ" in text
    assert "cost           0 identical, 1 differ" in text
    assert "-2*n" in text and "+3*n" in text
    assert "bits           0 identical, 1 differ\n  t" in text
