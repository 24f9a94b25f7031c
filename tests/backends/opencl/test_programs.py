"""Programs with all kinds of nodes run on devices as they do on the processor, at all sizes with one program."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "transforms"))
from corpus import FUNCTIONS, HARP, numpy_library

SIZES = [0, 1, 2, 5, 33]
ONLY_OPENCL = pytest.mark.parametrize("device", ["opencl", "opencl wide"], indirect=True)


def points(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n) * 0.5


@ONLY_OPENCL
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_all_kinds_of_nodes(device, name):
    function = FUNCTIONS[name]
    compiled = harp.jit(lambda x: function(HARP, x))
    for n in SIZES:
        npt.assert_allclose(
            np.asarray(compiled(points(n))), function(numpy_library(), points(n)), rtol=1e-10, atol=1e-12
        )
    assert compiled.compilations == 1


@ONLY_OPENCL
@pytest.mark.parametrize("name", FUNCTIONS)
def test_their_gradients(device, name):
    """Those that the interpreter computes are compared with differences elsewhere."""
    function = FUNCTIONS[name]
    gradient = harp.grad(lambda x: hnp.sum(hnp.sin(function(HARP, x))))
    compiled = harp.jit(gradient)
    for n in SIZES:
        npt.assert_allclose(np.asarray(compiled(points(n))), np.asarray(gradient(points(n))), rtol=1e-9, atol=1e-11)
    assert compiled.compilations == 1


X = np.random.default_rng(0).normal(size=(5, 7))
CASES = {
    "elementwise": (lambda x: hnp.tanh(x) * 2 + hnp.exp(-x), [X]),
    "broadcast": (lambda x: x + x[:, :1] * x[0], [X]),
    "sums of everything": (lambda x: hnp.sum(x) + hnp.max(x) - hnp.min(x), [np.random.rand(300, 100)]),
    "rows": (lambda x: hnp.exp(x - hnp.max(x, 1, keepdims=True)) / hnp.sum(x * x, 1, keepdims=True), [X]),
    "columns": (lambda x: hnp.sum(x, 0), [np.random.rand(70, 600)]),
    "long rows": (lambda x: hnp.sum(x, 1), [np.random.rand(2, 70_000)]),
    "product": (lambda x, y: x @ y, [np.random.rand(70, 50), np.random.rand(50, 65)]),
    "transposed products": (lambda x, y: x.T @ y + (y.T @ x).T, [np.random.rand(50, 70), np.random.rand(50, 33)]),
    "products of vectors": (
        lambda x, y: (x @ y[0], y @ x.T, y[0] @ x.T),
        [np.random.rand(40, 60), np.random.rand(3, 60)],
    ),
    "batches": (lambda x, y: x @ y, [np.random.rand(3, 9, 8), np.random.rand(3, 8, 7)]),
    "running sums": (lambda x: (hnp.cumsum(x, 1), hnp.cumsum(x, 0)), [X]),
    "a long running sum": (lambda x: hnp.cumsum(x), [np.random.rand(200_000)]),
    "views": (lambda x: (x[::-1, 1:4].T, hnp.pad(x, 2), hnp.roll(x, 3)), [X]),
    "4 axes": (lambda x: hnp.transpose(x, (3, 1, 0, 2)) + 1, [np.random.rand(3, 4, 5, 6)]),
    "convolution": (lambda x: hnp.convolve(x, hnp.asarray([1.0, 2.0, 3.0])), [np.random.rand(500)]),
    "gather": (lambda x: x[np.array([3, 0, -1])], [X]),
    "scatter": (lambda x: x.at[np.array([3, 0, 3])].add(1.0), [X]),
    "complex": (lambda x: hnp.sum((x + 1j * x) * (2 - 1j), 1), [X]),
    "halves": (lambda x: hnp.sum(x.astype("float16") * 2, 1), [X]),
    "branch": (lambda x: harp.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x - 1, x), [X]),
    "large steps": (lambda x: harp.fori_loop(0, 9, lambda i, c: c * 0.5 + hnp.roll(c, 1), x), [np.random.rand(2000)]),
    "steps that stack": (lambda x: harp.scan(lambda c, r: (hnp.tanh(c + r), hnp.sum(c * r)), hnp.zeros(7), x), [X]),
    "until data ends it": (
        lambda x: harp.while_loop(lambda c: hnp.sum(c) < 1e3, lambda c: c * 2, x),
        [np.ones((3, 2))],
    ),
}


def close(found, expected):
    npt.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-10, atol=1e-12)


@ONLY_OPENCL
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_interpreter(device, name):
    """The interpreter is NumPy, node by node."""
    function, arguments = CASES[name]
    found, expected = harp.jit(function)(*arguments), function(*map(hnp.asarray, arguments))
    harp.tree.map(close, found, expected)


NOT_FINITE = np.array([np.nan, -0.0, 3.0, np.inf, 0.0, -np.inf, -np.nan, 3.0, -1.0])


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        *(("opencl", dtype) for dtype in ("bool", "u2", "u8", "f2", "f8")),
        *(("opencl wide", dtype) for dtype in ("i1", "i4", "i8", "f4", "f8")),
    ],
    indirect=["device"],
)
def test_sorting(device, dtype):
    rng = np.random.default_rng(1)
    with np.errstate(invalid="ignore"):
        rows = [NOT_FINITE.astype(dtype), (rng.normal(size=500) * 50).astype(dtype), np.zeros(0, dtype)]
    order = harp.jit(lambda x: (hnp.sort(x), hnp.argsort(x), hnp.argsort(x, descending=True)))
    search = harp.jit(lambda t, x: (hnp.searchsorted(t, x), hnp.searchsorted(t, x, side="right")))
    for row in rows:
        values, up, down = map(np.asarray, order(row))
        npt.assert_array_equal(up, np.argsort(row, kind="stable"))
        npt.assert_array_equal(values, np.sort(row, kind="stable"))
        npt.assert_array_equal(row[down], np.sort(row, kind="stable")[::-1])
        for side, found in zip(("left", "right"), search(values, row), strict=True):
            npt.assert_array_equal(np.asarray(found), np.searchsorted(np.sort(row), row, side))
    assert order.compilations == 1


@ONLY_OPENCL
def test_each_launch_of_a_program_has_its_own_end(device):
    """Intel's compiler for processors took that of another kernel of the program."""
    f = harp.jit(lambda x: (hnp.pad(x, 1), hnp.broadcast_to(x[None], (3, *x.shape))))
    for shape in [(2, 3, 2), (1, 1, 1), (4, 5, 2)]:
        x = np.arange(np.prod(shape)).reshape(shape) + 1.0
        for found, expected in zip(f(x), (np.pad(x, 1), np.broadcast_to(x, (3, *shape))), strict=True):
            npt.assert_array_equal(np.asarray(found), expected)


@ONLY_OPENCL
def test_random_bits_are_the_same(device):
    numbers = lambda key: (harp.random.bits(key, (50,)), harp.random.uniform(key, (9, 9)))
    for found, expected in zip(harp.jit(numbers)(harp.random.key(3)), numbers(harp.random.key(3)), strict=True):
        npt.assert_array_equal(np.asarray(found), np.asarray(expected))


@ONLY_OPENCL
def test_functions_of_python_are_called_in_order(device):
    seen = []

    def step(c, x):
        harp.debug.callback(lambda c, x: seen.append((float(c), float(x))), c, x)
        return c + x, c * x

    total, _ = harp.jit(lambda xs: harp.scan(step, 0.0, xs))(np.arange(4.0))
    assert float(total) == 6
    assert seen == [(0, 0), (0, 1), (1, 2), (3, 3)]

    def refuse(x):
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        np.asarray(harp.jit(lambda x: (harp.debug.callback(refuse, x), x * 2)[1])(1.0))
