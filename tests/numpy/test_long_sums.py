"""Sums of so many float32 that one of them would stop to grow: beside exact sums, on all devices."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

N, COLUMNS = 100_000, 3
# One float32 stays at 2**24 when ones are added; a partial sum loses what is added beside the large number only.
TERMS = np.ones((N, COLUMNS), np.float32)
TERMS[0] = 2.0**24
EXACT = 2.0**24 + N - 1
PLACES = np.arange(N) * 0 + 1


def add(x):
    return hnp.zeros((2, *x.shape[1:]), x.dtype).at[hnp.asarray(PLACES)[: x.shape[0]]].add(x)[1]


LONG = {
    "column sums": (lambda x: hnp.sum(x, axis=0), TERMS),
    "means of columns": (lambda x: hnp.mean(x, axis=0) * N, TERMS),
    "sums of products": (lambda x, y: hnp.sum(x * y, axis=0), TERMS, np.ones_like(TERMS)),
    "row sums": (lambda x: hnp.sum(x, axis=1), np.ascontiguousarray(TERMS.T)),
    "strided sums": (lambda x: hnp.sum(x[:, :, 1], axis=1), np.stack([TERMS.T] * 2, axis=2)),
    "several axes": (lambda x: hnp.sum(x, axis=(0, 2)), TERMS.reshape(-1, 50, COLUMNS).transpose(0, 2, 1)),
    "running sums": (lambda x: hnp.cumsum(x, axis=0)[-1], TERMS),
    "a running sum": (lambda x: hnp.cumsum(x)[-1], TERMS[:, 0]),
    "updates of one place": (add, TERMS[:, 0]),
    "updates of rows": (add, TERMS),
    "a derivative": (harp.grad(lambda y, x: hnp.sum(hnp.asarray(y)[PLACES] * x)), np.ones(3, np.float32), TERMS[:, 0]),
}


@pytest.mark.parametrize("device", ["c", "numpy", "opencl", "opencl wide"], indirect=True)
@pytest.mark.parametrize("name", LONG)
def test_long_sums_go_on_growing(device, name):
    f, *arguments = LONG[name]
    for run in (harp.jit(f), f):
        found = np.asarray(run(*arguments), np.float64)
        found = found[1:2] if name == "a derivative" else found
        assert np.all(np.abs(found - EXACT) < 8192 + N / 8)  # 35,000 columns and more would be 80,000 too small


@pytest.mark.parametrize("device", ["c", "opencl", "opencl wide"], indirect=True)
def test_updates_behind_the_last_block_are_not_lost(device):
    """They are added before the large sums. The ones beside the large number, of one block, are lost."""
    assert EXACT - 4096 < float(harp.jit(add)(TERMS[:, 0])) <= EXACT


@pytest.mark.parametrize("device", ["c", "opencl", "opencl wide"], indirect=True)
def test_columns_have_the_same_bits_whatever_is_beside_them(device):
    """Few or many columns, and one thread or several, add in the same order."""
    x = np.random.default_rng(0).normal(size=(9_000, 300)).astype(np.float32)
    for f in (lambda x: hnp.sum(x, axis=0), lambda x: hnp.sum(x * x, axis=0), lambda x: hnp.cumsum(x, axis=0), add):
        compiled = harp.jit(f)
        whole = np.asarray(compiled(x))
        for columns in (1, 2, 7, 9, 64):
            np.testing.assert_array_equal(compiled(x[:, :columns]), whole[..., :columns])
        np.testing.assert_array_equal(harp.jit(f, threads=1)(x), whole)
        assert compiled.compilations <= 2  # one column is a shape of its own where it is broadcast
