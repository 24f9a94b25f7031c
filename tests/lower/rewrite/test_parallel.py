"""Which loops run in parallel."""

from __future__ import annotations

import numpy as np
from graphs import FUSED, SMALL, K, M, N, fold, graph, matmul, parameter, softmax, transpose, unary

import harp
import harp.numpy as hnp
from harp.lower.loopir.loops import For, Kernel, LoopKind, Nest, walk
from harp.lower.pipeline import lower
from harp.lower.verify.verify import verify_kernel
from harp.trace.graph.graph import Graph
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.ops import Op, Reduce

X, W = parameter(N, M), parameter(M, K, name="w")


def parallel_loops(kernel: Kernel) -> list[For]:
    heads = [head for s in walk(kernel.body) if isinstance(s, Nest) for head in s.heads]
    return [head for head in heads if isinstance(head, For) and head.kind is LoopKind.PARALLEL]


def counts(g: Graph) -> list[int]:
    kernels = lower(g, FUSED).program.kernels
    for kernel in kernels:
        verify_kernel(kernel)
    return [len(parallel_loops(kernel)) for kernel in kernels]


def test_outermost_loops_of_independent_iterations():
    assert counts(graph(unary(Op.EXP, X))) == [1]
    assert counts(graph(fold(Reduce.SUM, X, 1))) == [4], "short rows, others, and the chunks and totals of long ones"
    assert counts(graph(fold(Reduce.SUM, X, 0))) == [2], "wide strips of columns, or narrow ones"
    assert counts(graph(matmul(X, W))) == [2], "panels, and rows where there are few"
    assert counts(graph(softmax(X))) == [2]
    assert counts(graph(transpose(unary(Op.EXP, X)))) == [2], "transposed tiles, and what is narrow"


def test_sums_of_everything_go_by_chunks():
    assert counts(graph(fold(Reduce.SUM, X, 0, 1))) == [1]
    assert counts(graph(fold(Reduce.SUM, parameter(as_index(100)), 0))) == [0], "one chunk for all sizes"


def test_long_vectors_are_cut():
    (kernel,) = lower(graph(unary(Op.EXP, parameter(N))), SMALL).program.kernels
    (loop,) = parallel_loops(kernel)
    assert "4095" in repr(loop.loop.extent)
    for size in (0, 1, 4095, 4096, 4097, 9000):
        x = np.arange(float(size))
        np.testing.assert_array_equal(np.asarray(harp.jit(lambda x: x + 1)(x)), x + 1)


def test_short_vectors_are_not_cut():
    assert counts(graph(unary(Op.EXP, parameter(as_index(100))))) == [0]
    few = harp.jit(lambda x: hnp.pad(x[:1], (1, 0)))  # one or two elements, for all sizes
    np.testing.assert_array_equal(np.asarray(few(np.ones(10))), [0.0, 1.0])
    np.testing.assert_array_equal(np.asarray(few(np.ones(0))), [0.0])
