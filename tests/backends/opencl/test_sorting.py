"""Rows that all cores of a device, or all of its work-items, sort together: bit by bit as NumPy's stable sort."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.lower.target import Target
from harp.transforms.jit import programs

pytest.importorskip("pyopencl")

from harp.backends.opencl import devices, sorting

DTYPES = ["float16", "float32", "float64", "int8", "int32", "uint64", "bool"]
CORES = [(1, 2), (1, 5), (2, 3), (3, 16)]  # rows, and how many cores share them
# Each dtype on each kind of device, and on each kind all numbers of rows and cores, of which no dtype knows.
CASES = [
    (device, dtype, *CORES[(number + shift) % len(CORES)])
    for shift, device in enumerate(("opencl", "opencl wide"))
    for number, dtype in enumerate(DTYPES)
]
LENGTHS = (1, 2, 15, 16, 17, 33, 64, 100, 257, 1000)


def keys(rows: int, length: int, dtype: str) -> np.ndarray:
    """Many equal ones, both zeros, and two kinds of NaN."""
    rng = np.random.default_rng(length)
    found = rng.integers(0, 2 if dtype == "bool" else 50, (rows, length)).astype(dtype)
    if dtype.startswith("float"):
        found -= 25
        found[rng.random(found.shape) < 0.2] = -0.0
        found[rng.random(found.shape) < 0.1] = np.nan
        found[rng.random(found.shape) < 0.1] = -np.float64(np.nan)
    return found


def bits(array: object) -> np.ndarray:
    found = np.ascontiguousarray(array)
    return found.view(f"u{found.itemsize}")


@pytest.mark.parametrize(("device", "dtype", "rows", "cores"), CASES, indirect=["device"])
def test_all_sort_a_row_together(device, rows, cores, dtype, monkeypatch):
    chosen = devices.device(int(device.partition(":")[2]))
    monkeypatch.setitem(chosen.__dict__, "cores", cores)
    monkeypatch.setattr(devices, "Target", partial(Target, sorted_together=16, sorted_by_cores=16))
    monkeypatch.setattr(sorting, "_BLOCK", 7)
    programs.forget()
    up = harp.jit(lambda x, v: (hnp.sort(x), hnp.argsort(x), hnp.take_along_axis(v, hnp.argsort(x), 1)))
    down = harp.jit(lambda x: (hnp.argsort(x, descending=True), hnp.sort(x, descending=True)))
    for length in LENGTHS:
        x = keys(rows, length, dtype)
        values = np.arange(x.size, dtype=np.int16).reshape(x.shape)
        order = np.argsort(x, axis=1, kind="stable")
        ordered, places, taken = up(x, values)
        npt.assert_array_equal(bits(ordered), bits(np.take_along_axis(x, order, 1)))
        npt.assert_array_equal(places, order)
        npt.assert_array_equal(taken, np.take_along_axis(values, order, 1))
        back, falling = down(x)
        npt.assert_array_equal(np.sort(np.asarray(back)), np.sort(order))
        npt.assert_array_equal(bits(falling), bits(np.take_along_axis(x, np.asarray(back), 1)))
        npt.assert_array_equal(np.asarray(falling)[:, ::-1], np.sort(x))
    assert up.compilations == down.compilations == 1
