"""Loop nests mean what the graph means, at all sizes; no load leaves its buffer, for the executor would say so."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import (
    FUSED,
    SMALL,
    K,
    M,
    N,
    add_row,
    along,
    arrays,
    assembled,
    binary,
    check,
    elementwise,
    fold,
    graph,
    layernorm,
    log_softmax,
    matmul,
    parameter,
    random_graphs,
    relu,
    run,
    scale,
    sized,
    softmax,
    stretch,
    subtract,
    transpose,
    unary,
)
from hypothesis import given
from hypothesis import strategies as st

from harp.lower.graph.simplify import simplify
from harp.lower.loopir.loops import Alloc, Load, Space, Stmt, Store, walk
from harp.lower.loopir.text import kernel_text
from harp.lower.reductions.chunks import split_reductions
from harp.lower.schedule.build import build
from harp.lower.schedule.schedule import schedule
from harp.lower.target import Target
from harp.trace.eval.interpret import interpret
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Captured, Constant, Contiguous, MapReduce, Node, positions
from harp.trace.index.polynomial import ONE, as_index
from harp.trace.scalar import expr
from harp.trace.scalar.dtypes import f32, f64, i64
from harp.trace.scalar.expr import Apply, Operand, Position, cast, const
from harp.trace.scalar.ops import Op, Reduce

X, W, B = parameter(N, M), parameter(M, K, name="w"), parameter(K, name="b")
ROW = parameter(M, name="row")


def iota(*shape):
    return MapReduce(shape, (), cast(Position(sum(positions(shape)[1:], positions(shape)[0])), f32))


def padded(x: Node, fill: float) -> Node:
    return view.pad(x, [1] * len(x.shape), [2] * len(x.shape), const(fill, x.dtype))


def windows(x: Node) -> Node:
    """Sums of pairs of neighbours along the first axis, out of a padded array."""
    source = padded(x, 0.5)
    shape = (source.shape[0] - 1, source.shape[1], as_index(2))
    i, j, k = positions(shape)
    return fold(Reduce.SUM, view.view(source, shape, (i + k, j)), 2)


CASES: dict[str, tuple[Node, ...]] = {
    "map": (unary(Op.EXP, X),),
    "relu(x @ w + b)": (relu(add_row(matmul(X, W), B)),),
    "softmax": (softmax(X),),
    "log_softmax": (log_softmax(X),),
    "layernorm": (layernorm(X),),
    "sum over the first axis": (fold(Reduce.SUM, X, 0),),
    "sum of everything": (fold(Reduce.SUM, unary(Op.EXP, X), 0, 1),),
    "products, lowest and highest": tuple(fold(r, X, 1) for r in (Reduce.PROD, Reduce.MIN, Reduce.MAX)),
    "rank 0": (unary(Op.NEG, fold(Reduce.SUM, X, 0, 1)),),
    "padding of a map": (padded(unary(Op.EXP, X), 3.0),),
    "padding of padding": (padded(padded(unary(Op.NEG, X), 3.0), 4.0),),
    "padding of a sum": (padded(fold(Reduce.SUM, X, 1), 2.0),),
    "sum of padding": (fold(Reduce.SUM, padded(X, 2.0), 0),),
    "windows of padding": (windows(X),),
    "flips": (binary(Op.ADD, view.flip(X, [0]), view.flip(unary(Op.EXP, X), [1])),),
    "transposed": (transpose(X), transpose(unary(Op.EXP, X))),
    "reshaped": (view.reshape(X, (N * M,)), unary(Op.NEG, view.reshape(X, (M, N)))),
    "outer": (binary(Op.MUL, stretch(unary(Op.EXP, fold(Reduce.SUM, X, 1)), X.shape, 1), stretch(ROW, X.shape, 0)),),
    "iota": (iota(N, M), fold(Reduce.SUM, iota(N, M), 0)),
    "no memory at all": (MapReduce((), (), const(3, f32)), MapReduce((N,), (), const(4, i64))),
    "an input": (X, X, transpose(X)),
    "one node several times": (Y := unary(Op.EXP, X), Y, unary(Op.NEG, Y), Y),
    "captured": (add_row(parameter(N, as_index(3)), Constant(Captured(np.float32([5, 6, 7])))),),
    "contiguous": (unary(Op.EXP, Contiguous(transpose(X))),),
    "axes of one element": (fold(Reduce.SUM, view.insert_axes(X, [1]), 1), along(Reduce.MAX, view.insert_axes(X, [2]))),
    "statistics of statistics": (subtract(Z := softmax(X), along(Reduce.MAX, Z, 0)),),
}
SIZES = [(0, 0, 0), (1, 1, 1), (0, 3, 2), (3, 0, 2), (1, 5, 1), (2, 3, 9), (5, 9, 3), (9, 4, 17)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_meaning(name, sizes):
    check(graph(*CASES[name]), sizes)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_meaning_before_the_rewrites(sizes):
    for outputs in CASES.values():
        g = graph(*outputs)
        built = build(schedule(simplify(g)), g.captured, SMALL)
        found = run(g, assembled(g, built, built.kernels), sized(g, sizes))
        for a, b in zip(found, interpret(g, arrays(g, sized(g, sizes)), sized(g, sizes)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@given(random_graphs(), st.sampled_from([(0, 0, 0), (1, 1, 0), (0, 2, 0), (3, 1, 0), (2, 5, 0), (4, 3, 0)]))
def test_random_programs(g, sizes):
    check(g, sizes)


def test_elementwise_code_has_numpys_bits():
    g = graph(binary(Op.ADD, scale(X, 0.3), binary(Op.MUL, X, X)))
    sizes = sized(g, (7, 5, 0))
    built = build(schedule(simplify(g)), (), FUSED)
    (found,) = run(g, assembled(g, built, built.kernels), sizes)
    (x,) = arrays(g, sizes)
    np.testing.assert_array_equal(found, x * np.float32(0.3) + x * x)


def stores(g: Graph, target: Target) -> list[Store]:
    built = build(schedule(simplify(g)), g.captured, target)
    return [s for k in built.kernels for s in walk(k.body) if isinstance(s, Store)]


def fused(g: Graph, target: Target) -> int:
    values = [e for s in stores(g, target) for e in expr.walk((s.value,))]
    return sum(isinstance(e, Apply) and e.op is Op.FMA for e in values)


def test_fused_multiply_add_only_in_sums_of_float_products():
    product = binary(Op.MUL, X, X)
    assert fused(graph(fold(Reduce.SUM, product, 1)), FUSED) == 1
    assert fused(graph(fold(Reduce.SUM, product, 1)), SMALL) == 0
    assert fused(graph(fold(Reduce.MAX, product, 1)), FUSED) == 0
    assert fused(graph(binary(Op.ADD, product, X)), FUSED) == 0
    whole = parameter(N, dtype=i64)
    assert fused(graph(fold(Reduce.SUM, binary(Op.MUL, whole, whole), 0)), FUSED) == 0


def test_scalars_are_computed_outside_the_loops_they_do_not_depend_on():
    g = graph(layernorm(X))
    (kernel,) = build(schedule(simplify(g)), (), SMALL).kernels
    text = kernel_text(kernel)
    assert text.count("recip") == 1 and text.index("recip") < text.rindex("for i")
    variables = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)]
    assert len(variables) == 4 and all(v.space is Space.REG and not v.shape for v in variables)


def conditional(s: Stmt) -> list[Load]:
    if not isinstance(s, Store):
        return []
    return [e for e in expr.walk((s.value,)) if isinstance(e, Load) and e.conditions]


def test_conditions_stand_at_the_loads():
    g = graph(padded(binary(Op.ADD, X, unary(Op.EXP, X)), 3.0))
    loads = [e for s in stores(g, SMALL) for e in conditional(s)]
    assert len(loads) == 1 and len(loads[0].conditions) == 4
    (load,) = (e for s in stores(graph(padded(X, 3.0)), SMALL) for e in conditional(s))
    assert load.fill is const(3, f32)  # no select where the load itself can have the fill


def test_outputs_have_buffers_of_their_own():
    g = graph(X, Y := unary(Op.EXP, X), Y)
    built = build(schedule(g), (), SMALL)
    assert [b.name for b in built.inputs] == ["in0"] and [b.name for b in built.outputs] == ["out0", "out1", "out2"]
    assert not built.scratch
    assert [k.name for k in built.kernels] == ["map", "copy", "copy"]


def test_inputs_that_nobody_reads_and_captured_arrays_have_buffers():
    unused = parameter(K, name="unused")
    constant = Constant(Captured(np.arange(4.0)))
    g = Graph((unused,), (unary(Op.NEG, constant),))
    built = build(schedule(g), g.captured, SMALL)
    assert [b.dtype for b in built.inputs] == [f32, f64]


def test_accumulators_have_the_dtype_of_the_result():
    small = parameter(N, dtype=i64)
    total = MapReduce(small.shape, (small,), cast(Operand(i64, 0), f64), Reduce.SUM, (0,))
    built = build(schedule(graph(total)), (), SMALL)
    assert [s.buffer.dtype for s in walk(built.kernels[0].body) if isinstance(s, Alloc)] == [f64]
    kernel = split_reductions(built.kernels[0])
    assert [s.buffer.dtype for s in walk(kernel.body) if isinstance(s, Alloc)] == [f64] * 3


def test_loops_of_one_iteration_have_no_head():
    x = parameter(ONE, N, name="x")
    (kernel,) = build(schedule(graph(unary(Op.EXP, x))), (), SMALL).kernels
    assert kernel_text(kernel).count("for") == 1


def test_every_combination_of_small_sizes():
    g = graph(relu(add_row(matmul(X, W), B)))
    for sizes in itertools.product((0, 1, 2), repeat=3):
        check(g, sizes)


def test_bool_reductions():
    positive = elementwise(lambda a: const(0, f32) < a, X)
    check(graph(fold(Reduce.MAX, positive, 1), fold(Reduce.MIN, positive, 0)), (4, 3, 0))
    check(graph(fold(Reduce.MAX, positive, 1), fold(Reduce.MIN, positive, 0)), (0, 3, 0))
