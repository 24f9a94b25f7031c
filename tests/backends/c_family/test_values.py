"""Loops with choices are vectors: what only one side of a choice needs is computed for all elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.compilers import Family
from harp.backends.toolchain.toolchain import find_toolchain
from harp.scipy import special

X = np.linspace(-2.9, 3.0, 12).reshape(3, 4)
# Loops over the elements of a matrix, with two numbers, numbers of its rows, and a mask.
CHOICES = {
    "one number": lambda np, x, s, t, r, m: np.where(x > 0, s * x, t),
    "a call": lambda np, x, s, t, r, m: np.where(x > 0, np.exp(s * x), x),
    "choices of choices": lambda np, x, s, t, r, m: np.where(
        x > 1, np.where(x > 2, x * x, x / s), np.where(x < -1, np.tanh(x) * t, 0 * x)
    ),
    "remainders": lambda np, x, s, t, r, m: x % s,
}
# Functions with choices, and others that differ by these only.
PAIRS = {
    "a number for each row": (
        lambda np, x, s, t, r, m: np.where(x > 0, x * r[:, None], x * t),
        lambda np, x, s, t, r, m: x * r[:, None] + x * t,
    ),
    "sum": (lambda np, x, s, t, r, m: np.sum(x, where=m), lambda np, x, s, t, r, m: np.sum(x)),
    "largest": (lambda np, x, s, t, r, m: np.max(np.where(m, x, -9)), lambda np, x, s, t, r, m: np.max(x)),
}
NAMES = {"gamma": math.gamma, "gammaln": math.lgamma}


@pytest.fixture
def vectors(tmp_path):
    """How many loops of a function become vectors, and its result."""
    toolchain = find_toolchain()
    if toolchain is None or toolchain.family is not Family.GCC or toolchain.vector_bytes < 32:
        pytest.skip("gcc and vectors of AVX are needed")

    def count(function, *arguments):
        report = tmp_path / f"{len([*tmp_path.iterdir()])}.txt"
        options = harp.CompileOptions(extra_flags=(f"-fopt-info-vec-optimized={report}",))
        result = harp.jit(function, options=options)(*arguments)
        return report.read_text().count("loop vectorized") if report.exists() else 0, result

    return count


# Each is one test of all cases: `make test` compiles with optimisation here, and runs one case of each test.


def arguments(dtype):
    x = X.astype(dtype)
    return x, np.asarray(1.5, dtype), np.asarray(2.5, dtype), x[:, 1].copy(), x > 0.5


def test_choices(vectors):
    for name, function in CHOICES.items():
        for dtype in ("float32", "float64"):
            count, result = vectors(lambda *a, f=function: f(hnp, *a), *arguments(dtype))
            assert count, (name, dtype)
            np.testing.assert_allclose(result, function(np, *arguments(dtype)), rtol=2e-6)


def test_special_functions(vectors):
    for name, exact in NAMES.items():
        for dtype in ("float32", "float64"):
            x = X.astype(dtype)
            count, result = vectors(getattr(special, name), x)
            assert count, (name, dtype)
            np.testing.assert_allclose(result, np.vectorize(exact)(x.astype(float)), rtol=2e-6)


def test_as_many_loops_as_without_choices(vectors):
    for name, (chosen, plain) in PAIRS.items():
        for dtype in ("float32", "float64"):
            count, result = vectors(lambda *a, f=chosen: f(hnp, *a), *arguments(dtype))
            all_loops, _ = vectors(lambda *a, f=plain: f(hnp, *a), *arguments(dtype))
            assert count >= all_loops, (name, dtype)
            np.testing.assert_allclose(result, chosen(np, *arguments(dtype)), rtol=2e-6)
