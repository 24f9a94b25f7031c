"""Gradients of random programs against central differences in float64, first and second order, at several sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import BINARY, UNARY, both, examples
from test_programs import SIZES, Program

import harp
import harp.numpy as hnp

# Steps that are smooth almost everywhere, and that do not grow.
SMOOTH = [
    *(UNARY[n] for n in ("negative", "exp2", "expm1", "sin", "cos", "tanh", "flip", "tail", "head", "every second")),
    *(UNARY[n] for n in ("backwards by two", "first half", "last axis", "transpose", "merge", "split", "add axis")),
    *(UNARY[n] for n in ("gather", "gather columns", "put", "add up")),
    *(UNARY[n] for n in ("pad", "repeat", "double", "stack", "sum", "sum keep", "sum all", "prod")),
    *(UNARY[n] for n in ("sort", "running maximum", "differences")),
    both(lambda xp, x: xp.log1p(x * x)),
    both(lambda xp, x: xp.sqrt(1 + x * x)),
    both(lambda xp, x: 1 / (2 + xp.sin(x))),
    both(lambda xp, x: (1 + x * x) ** 0.75),
    both(lambda xp, x: xp.where(x > 0.25, xp.sin(x), 0.5 * x)),
    both(lambda xp, x: xp.max(xp.pad(x, [(0, 1)] * x.ndim), axis=0), rank=1),
    both(lambda xp, x: xp.mean(xp.pad(x, [(0, 1)] * x.ndim), axis=-1), rank=1),
]
PAIRS = [BINARY[n] for n in ("add", "subtract", "multiply", "outer product", "matmul", "where")]


@st.composite
def smooth_programs(draw) -> Program:
    steps = []
    for k in range(draw(st.integers(1, 5))):
        step = draw(st.sampled_from([*SMOOTH, *PAIRS]))
        steps.append((step, draw(st.integers(0, k + 1)), draw(st.integers(0, k + 1))))
    return Program(draw(st.integers(1, 2)), steps, [*SMOOTH])


def slope(function, x: np.ndarray, direction: np.ndarray, step: float = 1e-5) -> float:
    return (function(x + step * direction) - function(x - step * direction)) / (2 * step)


def agree(function, x: np.ndarray, direction: np.ndarray, gradient: np.ndarray, tolerance: float) -> None:
    """Where two branches meet between two points the difference says nothing: then two steps disagree."""
    scale = 1 + np.abs(gradient).sum()
    expected, closer = slope(function, x, direction), slope(function, x, direction, 1e-6)
    if abs(expected - closer) < 0.1 * tolerance * scale:
        assert abs(np.sum(gradient * direction) - expected) < tolerance * scale


@pytest.mark.slow
@examples(60)
@given(smooth_programs(), st.lists(SIZES.filter(lambda n: n < 9), min_size=3, max_size=3), st.integers(0, 99))
def test_gradients_are_the_slopes(program, sizes, seed):
    rng = np.random.default_rng(seed)

    def loss(xp, which, x, y):
        return sum(xp.sum(xp.tanh(value) * 0.5) for value in program.run([x, y], which))

    gradient = harp.grad(lambda x, y: loss(hnp, 0, x, y))
    compiled = harp.jit(gradient)
    second = harp.jit(harp.grad(lambda x, y, v: hnp.sum(gradient(x, y) * v)))

    def compare(x: np.ndarray, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        first, hessian = np.asarray(compiled(x, y)), np.asarray(second(x, y, v))
        assert first.shape == hessian.shape == x.shape
        agree(lambda at: loss(np, 1, at, y), x, u, first, 1e-5)
        agree(lambda at: np.sum(np.asarray(compiled(at, y)) * v), x, u, hessian, 1e-4)

    for start in range(2):
        shape = tuple((sizes + sizes)[start : start + program.rank])
        compare(*(rng.normal(size=shape) for _ in range(4)))
