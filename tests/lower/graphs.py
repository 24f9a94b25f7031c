"""Graphs made from nodes, without tracing: what lowering is tested with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np
from hypothesis import strategies as st

from harp.lower.graph.simplify import simplify
from harp.lower.kernels.outline import assemble
from harp.lower.loopir.loops import Buffer, Kernel
from harp.lower.loopir.program import Program
from harp.lower.pipeline import lower
from harp.lower.schedule.build import Built
from harp.lower.schedule.schedule import Schedule, schedule, verify_schedule
from harp.lower.target import Target
from harp.lower.verify.interpreter import execute
from harp.lower.verify.verify import verify_program
from harp.trace.eval.interpret import interpret
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Input, MapReduce, Node, RowWise, fresh_input, positions, walk
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import Index, Shape, Symbol, evaluate, of
from harp.trace.scalar.dtypes import DType, f32
from harp.trace.scalar.expr import Expr, Operand, Position, apply, cast, const
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.signature import sizes_of

N, M, K = (of(Symbol(0, number, name)) for number, name in enumerate("nmk"))
SMALL = Target(vector_bytes=16)
FUSED = Target(vector_bytes=16, fma=True)
WIDE = Target(vector_bytes=64, fma=True)


def parameter(*shape: Index, dtype: DType = f32, name: str = "x") -> Input:
    return fresh_input(name, shape, dtype)


def graph(*outputs: Node) -> Graph:
    """The graph of these outputs, over the inputs that they read, by age."""
    inputs = {node for node in walk(outputs) if isinstance(node, Input)}
    return Graph(tuple(sorted(inputs, key=lambda i: i.uid)), outputs)


def elementwise(build: Callable[..., Expr], *nodes: Node) -> MapReduce:
    operands = (Operand(node.dtype, slot) for slot, node in enumerate(nodes))
    return MapReduce(nodes[0].shape, nodes, build(*operands))


def unary(op: Op, x: Node) -> MapReduce:
    return elementwise(lambda a: apply(op, a), x)


def binary(op: Op, a: Node, b: Node) -> MapReduce:
    return elementwise(lambda x, y: apply(op, x, y), a, b)


def subtract(a: Node, b: Node) -> MapReduce:
    return elementwise(lambda x, y: x - y, a, b)


def scale(x: Node, factor: float) -> MapReduce:
    return elementwise(lambda a: a * const(factor, x.dtype), x)


def fold(reduce: Reduce, x: Node, *axes: int) -> MapReduce:
    return MapReduce(x.shape, (x,), Operand(x.dtype, 0), reduce, axes)


def stretch(x: Node, shape: Shape, axis: int) -> Node:
    """`x`, which lacks one axis of the shape, repeated along it."""
    inserted = view.insert_axes(x, [axis])
    return view.expand(inserted, shape, [k == axis for k in range(len(shape))])


def along(reduce: Reduce, x: Node, axis: int = -1) -> Node:
    """A reduction, stretched back to the shape of `x`."""
    axis %= len(x.shape)
    return stretch(fold(reduce, x, axis), x.shape, axis)


def mean(x: Node, axis: int) -> MapReduce:
    size = cast(Position(x.shape[axis]), x.dtype)
    return elementwise(lambda a: a / size, fold(Reduce.SUM, x, axis))


def add_row(x: Node, row: Node) -> MapReduce:
    return binary(Op.ADD, x, stretch(row, x.shape, 0))


def relu(x: Node) -> MapReduce:
    return elementwise(lambda a: apply(Op.MAX, a, const(0.0, x.dtype)), x)


def transpose(x: Node) -> Node:
    return view.permute(x, range(len(x.shape))[::-1])


def matmul(a: Node, b: Node) -> MapReduce:
    (rows, inner), columns = a.shape, b.shape[1]
    domain = (rows, columns, inner)
    i, j, k = positions(domain)
    left, right = view.view(a, domain, (i, k)), view.view(b, domain, (k, j))
    return MapReduce(domain, (left, right), Operand(a.dtype, 0) * Operand(b.dtype, 1), Reduce.SUM, (2,))


def softmax(x: Node) -> MapReduce:
    e = unary(Op.EXP, subtract(x, along(Reduce.MAX, x)))
    return binary(Op.DIV, e, along(Reduce.SUM, e))


def log_softmax(x: Node) -> MapReduce:
    shifted = subtract(x, along(Reduce.MAX, x))
    return subtract(shifted, stretch(unary(Op.LOG, fold(Reduce.SUM, unary(Op.EXP, shifted), 1)), x.shape, 1))


def layernorm(x: Node) -> MapReduce:
    centred = subtract(x, stretch(mean(x, 1), x.shape, 1))
    variance = mean(binary(Op.MUL, centred, centred), 1)
    scales = unary(Op.RECIP, unary(Op.SQRT, elementwise(lambda a: a + const(1e-5, f32), variance)))
    return binary(Op.MUL, centred, stretch(scales, x.shape, 1))


def scheduled(*outputs: Node) -> Schedule:
    result = schedule(simplify(graph(*outputs)))
    verify_schedule(result)
    return result


def kernels(*outputs: Node) -> int:
    return len(scheduled(*outputs).groups)


def assembled(g: Graph, built: Built, kernels: Sequence[Kernel]) -> Program:
    """The verified program of these kernels."""
    program = assemble(attrs.evolve(built, kernels=tuple(kernels)), sizes_of(g))
    verify_program(program)
    return program


def handmade(
    inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[Symbol], kernels: Sequence[Kernel]
) -> Program:
    """The program of kernels that no schedule made, one called after the other."""
    return assemble(Built(tuple(kernels), tuple(inputs), tuple(outputs), ()), sizes)


def arrays(g: Graph, sizes: Mapping[Symbol, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [tuple(evaluate(p, sizes.__getitem__) for p in i.shape) for i in g.inputs]
    values = (rng.uniform(-1.5, 1.5, shape) for shape in shapes)
    return [
        np.asarray(v * (1 if i.dtype.is_float else 4)).astype(i.dtype.numpy)
        for v, i in zip(values, g.inputs, strict=True)
    ]


def sized(g: Graph, values: Sequence[int]) -> dict[Symbol, int]:
    """Sizes by position: of n, m, k as far as the graph has them."""
    return {symbol: values[symbol.number] for symbol in sizes_of(g)}


def run(g: Graph, program: Program, sizes: Mapping[Symbol, int]) -> list[np.ndarray]:
    return execute(program, [*arrays(g, sizes), *(c.captured.array for c in g.captured)], sizes)


def check(g: Graph, values: Sequence[int], target: Target = FUSED) -> None:
    """The lowered program computes what the interpreter computes."""
    sizes = sized(g, values)
    found = run(g, lower(g, target).program, sizes)
    for a, b in zip(found, interpret(g, arrays(g, sizes), sizes), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@st.composite
def random_graphs(draw: st.DrawFn) -> Graph:
    """Programs over matrices of n rows and m columns, with everything that lowering distinguishes."""
    nodes: list[Node] = [parameter(N, M, name="x"), parameter(N, M, name="y")]
    for _ in range(draw(st.integers(1, 7))):
        a, b = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        nodes.append(draw(st.sampled_from(STEPS))(a, b))
    outputs = [nodes[-1], *draw(st.lists(st.sampled_from(nodes), max_size=2))]
    return graph(*outputs, *draw(st.sampled_from([(), (fold(Reduce.SUM, nodes[-1], 0, 1),)])))


def _pad_and_crop(a: Node, b: Node) -> Node:
    return _shift(_shift(a, 1, 2.0), -1, 3.0)


def _shift(x: Node, by: int, fill: float) -> Node:
    """Rows moved by one; what comes in is `fill`."""
    return view.pad(x, [by, 0], [-by, 0], const(fill, x.dtype))


def _square(a: Node, b: Node) -> Node:
    return scale(matmul(matmul(a, transpose(b)), a), 0.1)


STEPS: tuple[Callable[[Node, Node], Node], ...] = (
    lambda a, b: unary(Op.SIN, a),
    lambda a, b: unary(Op.ABS, a),
    lambda a, b: binary(Op.ADD, a, b),
    lambda a, b: subtract(a, b),
    lambda a, b: scale(binary(Op.MUL, a, b), 0.5),
    lambda a, b: relu(a),
    lambda a, b: binary(Op.ADD, a, along(Reduce.MAX, b)),
    lambda a, b: binary(Op.ADD, a, scale(along(Reduce.SUM, b, 0), 0.1)),
    lambda a, b: binary(Op.MUL, a, along(Reduce.MIN, b, 0)),
    lambda a, b: view.flip(a, [0]),
    lambda a, b: view.flip(a, [1]),
    lambda a, b: transpose(scale(transpose(a), 2.0)),
    lambda a, b: RowWise(RowOp.SORT, (a,)),
    _pad_and_crop,
    _square,
)
