"""Training on two processes: the weights are those of one, although a worker is killed. Where Dask is installed."""

import pytest

pytest.importorskip("dask.distributed")


def test_small(load, capsys):
    example = load("dask_training")
    assert example.main(["--blocks", "5", "--rounds", "4"]) == 0
    assert "those of one process: True" in capsys.readouterr().out
