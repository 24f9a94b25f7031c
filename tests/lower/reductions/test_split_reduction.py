"""Reductions over everything: the same bits for every number of threads, near the exact result."""

from __future__ import annotations

import math

import numpy as np
import pytest
from graphs import FUSED, SMALL, M, N, add_row, binary, check, fold, graph, parameter, transpose, unary

import harp
import harp.numpy as hnp
from harp.lower.loopir.loops import Space
from harp.lower.pipeline import lower
from harp.lower.verify.verify import verify_kernel
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.ops import Op, Reduce

X, Y, V = parameter(N, M), parameter(N, M, name="y"), parameter(N)
SCALED = binary(Op.MUL, X, add_row(X, parameter(M, name="row")))
GRAPHS = {
    "sum": fold(Reduce.SUM, X, 0, 1),
    "highest": fold(Reduce.MAX, X, 0, 1),
    "lowest": fold(Reduce.MIN, V, 0),
    "product": fold(Reduce.PROD, V, 0),
    "dot": fold(Reduce.SUM, binary(Op.MUL, X, Y), 0, 1),
    "transposed": fold(Reduce.SUM, unary(Op.EXP, transpose(X)), 0, 1),
    "both ways": fold(Reduce.SUM, binary(Op.ADD, X, transpose(parameter(M, N, name="z"))), 0, 1),
    "with a row": fold(Reduce.SUM, SCALED, 0, 1),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("target", [SMALL, FUSED])
def test_chunks_compute_the_same(name, target):
    for values in [(1, 1), (3, 5), (17, 2), (40, 33)]:
        check(graph(GRAPHS[name]), values, target)


@pytest.mark.parametrize("name", GRAPHS)
def test_chunks_are_proved(name):
    for kernel in lower(graph(GRAPHS[name]), FUSED).program.kernels:
        assert verify_kernel(kernel) == []


def scratch(node) -> list[str]:
    slots = lower(graph(node), FUSED).program.scratch
    return [repr(b.shape[0]) for slot in slots for b in slot.buffers if b.space is Space.SCRATCH]


def test_how_many_chunks_there_are():
    assert scratch(GRAPHS["sum"]) == ["((n*m + 8191)//8192)"], "of elements as they lie in memory"
    assert scratch(GRAPHS["transposed"]) == ["((n*m + 8191)//8192)"]
    assert scratch(GRAPHS["with a row"]) == ["((n + 15)//16)"], "of rows, where one operand is read again"
    assert scratch(fold(Reduce.SUM, parameter(as_index(8192)), 0)) == []
    assert scratch(fold(Reduce.SUM, X, 1)) == ["n"], "long rows have their own rule, by their length only"


FUNCTIONS = {
    "sum": hnp.sum,
    "max": hnp.max,
    "min": hnp.min,
    "mean": hnp.mean,
    "variance": hnp.var,
    "standardized": lambda x: (x - hnp.mean(x)) / hnp.std(x),
    "dot": lambda x: hnp.sum(x * x),
    "transposed": lambda x: hnp.sum(hnp.exp(x.T)),
    "flipped": lambda x: hnp.sum(x[::-1, ::2]),
    "with a row": lambda x: hnp.sum(x * hnp.arange(x.shape[1])),
    "gradient": harp.grad(lambda x: hnp.sum(x * hnp.mean(x * x))),
}
SHAPES = [(1, 8191), (1, 8192), (8193, 1), (3, 5), (0, 4), (91, 180), (500, 700), (70_000, 4)]


@pytest.fixture
def threads():
    yield harp.set_threads
    harp.set_threads(0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_bits_for_every_number_of_threads(name, threads):
    compiled = harp.jit(FUNCTIONS[name])
    for shape in SHAPES:
        if name in ("max", "min", "standardized", "mean", "variance", "gradient") and 0 in shape:
            continue
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        found = []
        for count in (1, 2, 3, 4):
            threads(count)
            found.append(np.asarray(compiled(x)))
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


def test_against_exact_sums():
    compiled = harp.jit(hnp.sum)
    for size in (8191, 8192, 8193, 100_000, 3_000_001):
        x = np.random.default_rng(size).random(size, np.float32)
        exact = math.fsum(x.tolist())
        assert abs(float(compiled(x)) - exact) <= 3e-7 * exact
    assert compiled.compilations == 1


def test_dot_products_against_exact_sums():
    x, y = np.random.default_rng(0).random((2, 1_000_003), np.float32)
    exact = math.fsum((x.astype(np.float64) * y).tolist())
    assert abs(float(harp.jit(lambda x, y: x @ y)(x, y)) - exact) <= 3e-7 * exact


def test_values_that_are_no_numbers():
    x = np.zeros((300, 100), np.float32)
    x[290, 99] = np.nan
    assert np.isnan(harp.jit(hnp.max)(x)) and np.isnan(harp.jit(hnp.sum)(x))
    x[290, 99] = -np.inf
    assert harp.jit(hnp.min)(x) == -np.inf and harp.jit(hnp.max)(x) == 0


def test_integers_and_truth_values():
    x = np.arange(40_000).reshape(200, 200)
    assert int(harp.jit(hnp.sum)(x)) == x.sum()
    assert bool(harp.jit(hnp.all)(x >= 0)) and not bool(harp.jit(hnp.all)(x > 0))
    assert bool(harp.jit(hnp.any)(x == 39_999))


def test_a_reduction_that_reads_another_one():
    x = np.random.default_rng(0).standard_normal((300, 77))
    np.testing.assert_allclose(np.asarray(harp.jit(hnp.var)(x)), x.var(), rtol=1e-12)
    centred = np.asarray(harp.jit(lambda x: x - hnp.mean(x))(x))
    np.testing.assert_allclose(centred, x - x.mean(), rtol=1e-9, atol=1e-12)
