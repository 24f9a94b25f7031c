"""Programs of many independent elements keep a wide device busy: each launch that reads them has many work-items."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends.opencl import executable, host_calls

pytestmark = pytest.mark.parametrize("device", ["opencl wide"], indirect=True)

# Elements of the inputs, and work-items of each launch that reads so many.
MANY, ITEMS = 1 << 16, 4096


@pytest.fixture
def launched(device, monkeypatch):
    """The launches since the last `clear`: how many work-items have an iteration of the grid, and the bytes of the
    largest array. Those of a group share an iteration."""
    found: list[tuple[int, int]] = []

    def spy(run, code, grid, buffers, numbers, room=None):
        found.append((prod(grid) * max(code.items, 1), max((buffer.size for buffer in buffers), default=0)))
        return host_calls.launch(run, code, grid, buffers, numbers, room)

    monkeypatch.setitem(executable._HELPERS, "launch", spy)
    return found


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def of_rows(name, **options):
    return lambda x: getattr(hnp, name)(x, **options), lambda x: getattr(np, name)(x, **options)


PROGRAMS = {
    "rows": of_rows("sum", axis=-1),
    "columns": of_rows("sum", axis=0),
    "all": of_rows("sum"),
    "max": of_rows("max", axis=-1),
    "argmax": of_rows("argmax", axis=-1),
    "argmax of all": of_rows("argmax"),
    "softmax": (hnp.softmax, softmax),
    "mean": of_rows("mean", axis=-1),
    "var": of_rows("var", axis=-1),
    "var of all": of_rows("var"),
    "running sum": of_rows("cumsum", axis=-1),
    "running sum from behind": (
        lambda x: harp.lax.cumsum(x, axis=x.ndim - 1, reverse=True),
        lambda x: np.cumsum(x[..., ::-1], -1)[..., ::-1],
    ),
    "sort": of_rows("sort", axis=-1),
    "part": (lambda x: hnp.sum(x[..., 1:]), lambda x: np.sum(x[..., 1:])),
    "steps": (lambda x: hnp.sum(x[..., ::2], axis=-1), lambda x: np.sum(x[..., ::2], -1)),
    "dot": (lambda x: hnp.vdot(x, x), lambda x: np.vdot(x, x)),
}
SHAPES = [(4, 70_000), (70_000, 4), (1, 1 << 20), (1 << 16,)]
SHORT = {"columns": [(256, 256), (17, 3900)], "rows": [(256, 256), (16, 4096)], "sort": [(256, 256), (1024, 64)]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_one_array(launched, name):
    ours, numpy = PROGRAMS[name]
    f = harp.jit(ours)
    for shape in SHAPES + SHORT.get(name, []):
        x = np.random.default_rng(0).standard_normal(shape)
        x = np.repeat(x, 2, -1) if name == "steps" else x  # so many are read
        launched.clear()
        npt.assert_allclose(f(x), numpy(x), rtol=1e-9, atol=1e-9)
        check(launched)


def check(launched):
    reading = [items for items, size in launched if size >= 8 * MANY]
    assert reading and min(reading) >= ITEMS, launched


INDICES = np.random.default_rng(0).integers(0, 4096, MANY)
VALUES = np.random.default_rng(1).standard_normal(MANY)
LONG = np.random.default_rng(2).standard_normal((8, 70_000))
LATEST = np.zeros(4096)
LATEST[INDICES] = VALUES

OTHERS = {
    "gather": (lambda x, i: x[i], (VALUES, INDICES), VALUES[INDICES]),
    "scatter-add": (
        lambda i, v: hnp.zeros(4096).at[i].add(v),
        (INDICES, VALUES),
        np.bincount(INDICES, VALUES, 4096),
    ),
    "scatter-add into one place": (
        lambda i, v: hnp.zeros(4096).at[i * 0].add(v),
        (INDICES, VALUES),
        np.bincount(INDICES * 0, VALUES, 4096),
    ),
    "scatter": (lambda i, v: hnp.zeros(4096).at[i].set(v), (INDICES, VALUES), LATEST),
    "matrix times vector": (lambda a, b: a @ b, (VALUES.reshape(2, -1), VALUES[: MANY // 2]), None),
    "product": (lambda a, b: a @ b, (LONG, LONG.T), None),
    "search": (lambda t, v: hnp.searchsorted(t, v), (np.sort(VALUES), VALUES), None),
}


@pytest.mark.parametrize("name", OTHERS)
def test_programs_of_several_arrays(launched, name):
    function, arguments, expected = OTHERS[name]
    if expected is None:
        expected = arguments[0] @ arguments[1] if name != "search" else np.searchsorted(*arguments)
    npt.assert_allclose(harp.jit(function)(*arguments), expected, rtol=1e-9, atol=1e-9)
    check(launched)
