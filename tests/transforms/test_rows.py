"""The rows of the tables of transforms, on random functions of each kind of node: forward and reverse mode are each
other's transposes, forward mode is the slope of a line, and a batch is what a loop in Python makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import STRATEGIES, Row, normal, rows, sizes

import harp
from harp.trace.graph.node import KINDS, Examples, WithBody, walk
from harp.trace.scalar.dtypes import as_dtype
from harp.trace.tracer import Argument
from harp.transforms.staging import stage

SEEDS = st.integers(0, 10**6)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
TOLERANCE = {"d": 1e-9, "D": 1e-9, "f": 3e-4, "F": 3e-4}


def test_each_kind_of_node_has_a_strategy():
    assert set(STRATEGIES) == set(KINDS)


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in harp.tree.leaves(tree)]


def moving(row: Row, arguments: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The function of those arguments that have derivatives, and these."""
    count = len(row.shapes)
    return (lambda *numbers: row.function(*numbers, *arguments[count:])), list(arguments[:count])


def close(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        npt.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1 + np.max(np.abs(b), initial=0)))


def paired(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> tuple[float, float]:
    """The sum of all products, which is real, and that of their sizes."""
    terms = [np.real(np.asarray(a, "D") * b) for a, b in zip(first, second, strict=True)]
    return sum(np.sum(t) for t in terms), sum(np.sum(np.abs(t)) for t in terms)


def run(kind: type, check: Callable[[Row, np.dtype, np.random.Generator], None], share: int = 3) -> None:
    """The check on so many examples that all of them take a few seconds."""

    @settings(max_examples=settings().max_examples // share)
    @given(rows(kind), SEEDS)
    def examples(drawn: tuple[Row, np.dtype], seed: int) -> None:
        check(*drawn, np.random.default_rng(seed))

    examples()


@each_kind
def test_strategies_make_their_nodes(kind):
    found = set()

    def check(row: Row, dtype: np.dtype, rng: np.random.Generator) -> None:
        given = [Argument("x", as_dtype(a.dtype), sizes(a.shape)) for a in row.arguments(rng, dtype)]
        for node in stage(lambda arrays: row.function(*arrays), given, "f").graph.nodes():
            found.add(type(node))
            if isinstance(node, WithBody):
                found.update(map(type, walk(node.body.outputs)))

    run(kind, check, 10)
    assert kind in found or kind is Examples  # which is gone when its batch is made


@each_kind
def test_modes_are_transposes(kind):
    """<u, J v> == <J^T u, v>."""

    def check(row: Row, dtype: np.dtype, rng: np.random.Generator) -> None:
        function, numbers = moving(row, row.arguments(rng, dtype))
        directions = [normal(rng, n.shape, dtype) for n in numbers]
        _, tangent = harp.jvp(function, numbers, directions)
        if not row.reverse:
            return
        value, pullback = harp.vjp(function, *numbers)
        cotangents = [normal(rng, v.shape, v.dtype) for v in leaves(value)]
        back = pullback(harp.tree.unflatten(harp.tree.structure(value), cotangents))
        forward, size = paired(cotangents, leaves(tangent))
        backward, other = paired(leaves(back), directions)
        assert abs(forward - backward) <= TOLERANCE[dtype.char] * (1 + size + other)

    run(kind, check)


@each_kind
def test_forward_mode_is_the_slope(kind):
    def check(row: Row, dtype: np.dtype, rng: np.random.Generator) -> None:
        arguments = row.arguments(rng, dtype)
        function, numbers = moving(row, arguments)
        directions = [normal(rng, n.shape, dtype) for n in numbers]
        _, tangent = harp.jvp(function, numbers, directions)
        wide = "complex128" if dtype.kind == "c" else "float64"
        ends = [
            leaves(function(*(n.astype(wide) + h * d.astype(wide) for n, d in zip(numbers, directions, strict=True))))
            for h in (1e-6, -1e-6)
        ]
        slopes = [((a - b) / 2e-6) for a, b in zip(*ends, strict=True)]
        found = [t.astype(s.dtype) for t, s in zip(leaves(tangent), slopes, strict=True)]
        close(found, slopes, max(1e-6, TOLERANCE[dtype.char]))

    run(kind, check)


def batches(row: Row, dtype: np.dtype, rng: np.random.Generator) -> tuple[int, list[Any], list[int | None]]:
    """The size of a batch, its arguments, and the axes of it that they have."""
    size = int(rng.integers(0, 4))
    examples = [row.arguments(rng, dtype) for _ in range(max(size, 1))]
    axes: list[int | None] = []
    stacked: list[np.ndarray] = []
    for column in zip(*examples, strict=True):
        axis = int(rng.integers(0, column[0].ndim + 1))
        axes.append(axis if rng.random() < 0.7 else None)
        stacked.append(
            column[0]
            if axes[-1] is None
            else np.stack(column[:size] or column, axis)[(slice(None),) * axis + (slice(0, size),)]
        )
    return size, stacked, axes


def loop(function: Callable[..., Any], size: int, stacked: Sequence[np.ndarray], axes: Sequence[int | None]) -> Any:
    """What `vmap` should make: the results of all examples, stacked."""
    if not size:
        example = [
            a if k is None else np.zeros(np.delete(a.shape, k), a.dtype) for a, k in zip(stacked, axes, strict=True)
        ]
        return [np.zeros((0, *v.shape), v.dtype) for v in leaves(function(*example))]
    rows_ = []
    for k in range(size):
        example = [a if axis is None else np.take(a, k, axis) for a, axis in zip(stacked, axes, strict=True)]
        rows_.append(leaves(function(*example)))
    return [np.stack(column) for column in zip(*rows_, strict=True)]


@each_kind
def test_batches_are_loops(kind):
    def check(row: Row, dtype: np.dtype, rng: np.random.Generator) -> None:
        size, stacked, axes = batches(row, dtype, rng)
        found = harp.vmap(row.function, tuple(axes), axis_size=size)(*stacked)
        close(leaves(found), loop(row.function, size, stacked, axes), TOLERANCE[dtype.char])

    run(kind, check)


@each_kind
def test_batches_of_derivatives_are_loops(kind):
    """Of both modes, where primals, directions and cotangents are of examples or of all."""

    def check(row: Row, dtype: np.dtype, rng: np.random.Generator) -> None:
        size, stacked, axes = batches(row, dtype, rng)
        mode = rng.integers(0, 2) if row.reverse else 0

        def derivative(*arguments: Any) -> Any:
            function, numbers = moving(row, arguments)
            if mode == 0:
                return harp.jvp(function, numbers, [n * 0.5 + 1 for n in numbers])[1]
            value, pullback = harp.vjp(function, *numbers)
            return pullback(harp.tree.map(lambda v: v * 0.5 + 1, value))

        found = harp.vmap(derivative, tuple(axes), axis_size=size)(*stacked)
        close(leaves(found), loop(derivative, size, stacked, axes), TOLERANCE[dtype.char])

    run(kind, check)
