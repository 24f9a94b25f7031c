"""Functions of a notebook: in its cells, in processes that it starts, and on workers of Dask."""

from __future__ import annotations

import importlib.util
import os
import textwrap

import pytest

pytestmark = pytest.mark.slow
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("cloudpickle")

FUNCTION = """
import numpy as np
import harp
import harp.numpy as hnp

@harp.jit
def smooth(x):
    return (x[1:] + x[:-1]) / 2

blocks = [np.arange(n, dtype=float) for n in (2, 5, 9)]
expected = [(x[1:] + x[:-1]) / 2 for x in blocks]
slope = harp.jit(harp.grad(lambda x: hnp.sum(smooth(x) ** 2)))
"""
CELLS = {
    "result": "smooth(blocks[1])",
    "page": "smooth.lower(blocks[1])",
    "error": "smooth(np.ones((2, 3))) + np.ones(5)",
    "processes": """
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            found = list(pool.map(smooth, blocks)), list(pool.map(slope, blocks))
        """,
    "loky": """
        from joblib import Parallel, delayed
        found = [Parallel(2)(delayed(f)(x) for x in blocks) for f in (smooth, slope)]
        """,
    "dask": """
        from dask.distributed import Client, LocalCluster
        with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            found = [client.gather(client.map(f, blocks)) for f in (smooth, slope)]
        """,
}
CHECK = """
for computed, wanted in ((found[0], expected), (found[1], [slope(x) for x in blocks])):
    for a, b in zip(computed, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
print("equal")
"""
NEEDS = {"loky": "joblib", "dask": "distributed"}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[dict]]:
    """What each cell shows."""
    there = {name: text for name, text in CELLS.items() if importlib.util.find_spec(NEEDS.get(name, "harp"))}
    cells = [FUNCTION, *(textwrap.dedent(text) + (CHECK if "found" in text else "") for text in there.values())]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True)
    client.execute(env={**os.environ, "HARP_TRACEBACK": ""})
    return {name: cell["outputs"] for name, cell in zip(["function", *there], notebook.cells, strict=True)}


def test_cells(outputs: dict[str, list[dict]]) -> None:
    assert outputs["function"] == []
    (result,), (page,) = outputs["result"], outputs["page"]
    assert result["data"]["text/plain"] == "Array([0.5, 1.5, 2.5, 3.5])"
    assert page["data"]["text/html"].startswith("<iframe")


def test_errors(outputs: dict[str, list[dict]]) -> None:
    """They end with the line of the cell, and show few lines of others."""
    (error,) = outputs["error"]
    assert error["ename"] == "ShapeError" and "np.ones(5)" in error["evalue"]
    assert len(error["traceback"]) <= 4


@pytest.mark.parametrize("name", ["processes", *NEEDS])
def test_other_processes(outputs: dict[str, list[dict]], name: str) -> None:
    """They compute with functions of the notebook, also such as have no name."""
    if name not in outputs:
        pytest.skip(f"{NEEDS[name]} is not installed")
    assert [output.get("text") for output in outputs[name]] == ["equal\n"], outputs[name]
