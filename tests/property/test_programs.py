"""Random programs: compiled == interpreted == NumPy, over dtypes, views, reductions and sizes, 0 and 1 included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.25, np.nan, np.inf, -np.inf, 1e-40, 7.0]
UNARY: dict[str, tuple[Callable, Callable]] = {
    "negative": (hnp.negative, np.negative),
    "abs": (hnp.abs, np.abs),
    "square": (lambda x: x * x, lambda x: x * x),
    "flip": (lambda x: x[::-1], lambda x: x[::-1]),
    "tail": (lambda x: x[1:], lambda x: x[1:]),
    "every second": (lambda x: x[::2], lambda x: x[::2]),
    "transpose": (hnp.transpose, np.transpose),
    "merge": (lambda x: x.reshape(-1), lambda x: x.reshape(-1)),
    "add axis": (lambda x: x[None], lambda x: x[None]),
    "pad": (lambda x: hnp.pad(x, [(1, 2)] * x.ndim), lambda x: np.pad(x, [(1, 2)] * x.ndim)),
    "sum": (lambda x: hnp.sum(x, axis=0), lambda x: np.sum(x, axis=0)),
    "sum keep": (lambda x: hnp.sum(x, axis=-1, keepdims=True), lambda x: np.sum(x, axis=-1, keepdims=True)),
    "prod": (lambda x: hnp.prod(x, axis=0), lambda x: np.prod(x, axis=0)),
    "double": (lambda x: hnp.concatenate([x, x * x], axis=0), lambda x: np.concatenate([x, x * x], axis=0)),
    "where": (lambda x: hnp.where(x > 1, x, -x), lambda x: np.where(x > 1, x, -x)),
}
FLOAT_ONLY = {
    "exp": (hnp.exp, np.exp),
    "tanh": (hnp.tanh, np.tanh),
    "sqrt": (hnp.sqrt, np.sqrt),
    "floor": (hnp.floor, np.floor),
    "mean": (lambda x: hnp.mean(x, axis=0), lambda x: np.mean(x, axis=0)),
}
BINARY = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "subtract": (lambda a, b: a - b, lambda a, b: a - b),
    "multiply": (lambda a, b: a * b, lambda a, b: a * b),
    "maximum": (hnp.maximum, np.maximum),
    "minimum": (hnp.minimum, np.minimum),
    "floor divide": (lambda a, b: a // b, lambda a, b: a // b),
    "remainder": (lambda a, b: a % b, lambda a, b: a % b),
    "outer": (lambda a, b: hnp.outer(a, b), lambda a, b: np.outer(a, b)),
}
NEEDS_AXIS = {"flip", "tail", "every second", "sum", "sum keep", "prod", "double", "mean"}


@st.composite
def programs(draw, dtype):
    """A list of steps, and the shapes of two inputs; each step makes a new value from earlier ones."""
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), min_size=1, max_size=3)))
    unary = {**UNARY, **FLOAT_ONLY} if np.dtype(dtype).kind == "f" else UNARY
    count = draw(st.integers(1, 6))
    steps = []
    for k in range(count):
        if draw(st.booleans()):
            steps.append(("unary", draw(st.sampled_from(sorted(unary))), draw(st.integers(0, k + 1)), 0))
        else:
            steps.append(
                (
                    "binary",
                    draw(st.sampled_from(sorted(BINARY))),
                    draw(st.integers(0, k + 1)),
                    draw(st.integers(0, k + 1)),
                )
            )
    return shape, steps


def execute(steps, inputs, which):
    """Run the steps with harp's functions (which = 0) or NumPy's (1); a step that does not fit is left out."""
    values = list(inputs)
    for kind, name, a, b in steps:
        x, y = values[min(a, len(values) - 1)], values[min(b, len(values) - 1)]
        if kind == "unary":
            function = {**UNARY, **FLOAT_ONLY}[name][which]
            fits = (x.ndim >= 1 or name not in NEEDS_AXIS) and x.ndim <= 4
            values.append(function(x) if fits else x)
        else:
            fits = x.ndim == y.ndim and x.ndim <= 2 and (name == "outer" or _same(x, y))
            values.append(BINARY[name][which](x, y) if fits else x)
    return values[2:]


def _same(x, y):
    """Equal sizes, decided without asking for numbers, so that the traced program stays general."""
    return all(m == n for m, n in zip(x.shape, y.shape, strict=True))


def fill(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        values = rng.choice(SPECIAL, size=shape) if rng.random() < 0.3 else rng.normal(size=shape)
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    small = rng.integers(max(limits.min, -4), 5, size=shape)
    wild = rng.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.8, small.astype(dtype), wild)


def compare(actual, expected, tolerance):
    actual = np.asarray(actual)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "uint32", "uint64", "int16", "uint16"]
)
def test_compiled_interpreted_and_numpy_agree(dtype):
    # Sums of values of very different size cancel: both sides are within this of the exact result, relative to 1.
    tolerance = {"float32": 1e-4, "float64": 1e-10}.get(dtype, 0)

    @settings(max_examples=15)
    @given(program=programs(dtype), seed=st.integers(0, 2**16))
    def check(program, seed):
        shape, steps = program
        rng = np.random.default_rng(seed)
        inputs = [fill(rng, shape, dtype) for _ in range(2)]
        if np.dtype(dtype).kind == "f":
            inputs = [np.clip(np.nan_to_num(i, nan=0.5, posinf=3, neginf=-3), -3, 3) for i in inputs]
        with np.errstate(all="ignore"):
            expected = execute(steps, inputs, 1)
        compiled = harp.jit(lambda x, y: execute(steps, [x, y], 0))
        eager = execute(steps, [hnp.asarray(i) for i in inputs], 0)
        for value, interpreted, wanted in zip(compiled(*inputs), eager, expected, strict=True):
            compare(interpreted, wanted, tolerance)
            compare(value, wanted, tolerance)

    check()
