"""Random functions of one kind of node each: hypothesis strategies, one for each row of the tables of transforms.

A strategy draws shapes and what the node says, and gives a `Row`; its arguments come from a generator of random
numbers, so that there are as many sets of them as a batch has examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import contiguous, emit
from harp.trace.graph.node import (
    Constant,
    Contiguous,
    Cumulative,
    Custom,
    Examples,
    Foreign,
    Gather,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    Put,
    RowWise,
    Scatter,
    View,
    positions,
)
from harp.trace.graph.row_functions import RowOp
from harp.trace.graph.view import view
from harp.trace.index.division import floordiv, mod
from harp.trace.index.polynomial import Index, Shape, as_index, evaluate
from harp.trace.scalar.dtypes import DType, as_dtype
from harp.trace.scalar.expr import Expr, Operand, Position, apply, cast, const, select
from harp.trace.scalar.ops import Op, Reduce

SIZES = st.sampled_from([0, 1, 2, 3])
Draw = Callable[[st.SearchStrategy], Any]


class Row(NamedTuple):
    """A function of arrays. Those of `shapes` are numbers of the given dtype, and have derivatives; others are
    integers. `reverse` is whether it has derivatives in reverse mode, too."""

    shapes: Sequence[tuple[int, ...]]
    function: Callable[..., Any]
    integers: Callable[[np.random.Generator], Sequence[np.ndarray]] = lambda rng: ()
    reverse: bool = True

    def arguments(self, rng: np.random.Generator, dtype: np.dtype) -> list[np.ndarray]:
        """Numbers that are all different."""
        return [*(normal(rng, s, dtype) for s in self.shapes), *self.integers(rng)]


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Normally distributed; of complex numbers both parts."""
    numbers = rng.normal(size=shape)
    return np.asarray(numbers + 1j * rng.normal(size=shape) if dtype.kind == "c" else numbers).astype(dtype)


def shapes(draw: Draw, least: int = 0, most: int = 3) -> tuple[int, ...]:
    return tuple(draw(st.lists(SIZES, min_size=least, max_size=most)))


def sizes(shape: Sequence[int]) -> Shape:
    return tuple(map(as_index, shape))


# -- expressions --------------------------------------------------------------------------------------------------

UNARY = (Op.NEG, Op.SIN)
BINARY = (Op.ADD, Op.MUL, Op.DIV)
REAL_UNARY = (Op.COS, Op.TANH, Op.ATAN, Op.ABS, Op.ERF)
REAL_BINARY = (Op.MAX, Op.MIN, Op.SELECT)


def _conjugate(z: Expr) -> Expr:
    return apply(Op.COMPLEX, apply(Op.REAL, z), -apply(Op.IMAG, z))


def _combined(op: Op, a: Expr, b: Expr) -> Expr:
    """Not too large, and with slopes that are not too steep."""
    if op is Op.DIV:
        size = b * _conjugate(b) if b.dtype.is_complex else b * b
        return a / (size + 1.5)
    if op is Op.SELECT:
        return select(a < b, b * 0.5, apply(Op.TANH, a))
    return apply(op, a, b)


def expressions(draw: Draw, count: int, shape: tuple[int, ...], kind: str, depth: int = 3) -> Callable[[DType], Expr]:
    """An expression over operands and positions, for any dtype of this kind."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return _leaf(draw, count, shape)
    real = kind != "c"
    op = draw(st.sampled_from([*UNARY, *BINARY, *((*REAL_UNARY, *REAL_BINARY) if real else (Op.IMAG,))]))
    a = expressions(draw, count, shape, kind, depth - 1)
    if op is Op.IMAG:
        return lambda dtype: _conjugate(a(dtype))
    if op is Op.SIN:
        return lambda dtype: apply(Op.SIN, a(dtype) * 0.5)
    if op in (*UNARY, *REAL_UNARY):
        return lambda dtype: apply(op, a(dtype))
    b = expressions(draw, count, shape, kind, depth - 1)
    return lambda dtype: _combined(op, a(dtype), b(dtype))


def _leaf(draw: Draw, count: int, shape: tuple[int, ...]) -> Callable[[DType], Expr]:
    choice = draw(st.integers(0, count + 1))
    if choice < count:
        return lambda dtype: Operand(dtype, choice)
    if choice == count and shape:
        axis = draw(st.integers(0, len(shape) - 1))
        return lambda dtype: cast(Position(positions(sizes(shape))[axis]), dtype) * 0.3
    number = draw(st.sampled_from([-0.7, 0.5, 1.3]))
    return lambda dtype: const(number, dtype)


def mapped(expression: Callable[[DType], Expr], arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """The expression at every position."""
    nodes = tuple(map(node_of, arrays))
    return emit(MapReduce(sizes(shape), nodes, expression(nodes[0].dtype)))


# -- a strategy for each kind of node -----------------------------------------------------------------------------


def inputs(draw: Draw, kind: str) -> Row:
    """Arguments that are results, or are not used at all."""
    first, second = shapes(draw), shapes(draw)
    which = draw(st.sampled_from([(0,), (1,), (0, 1), (0, 0)]))
    return Row([first, second], lambda *given: tuple(given[k] for k in which))


def constants(draw: Draw, kind: str) -> Row:
    shape = shapes(draw)
    captured = np.random.default_rng(5).normal(size=shape)
    return Row([shape], lambda x: (x * hnp.asarray(captured).astype(x.dtype), hnp.asarray(captured)))


def map_reduces(draw: Draw, kind: str) -> Row:
    shape = shapes(draw)
    count = draw(st.integers(1, 3))
    expression = expressions(draw, count, shape, kind)
    kinds = [None, Reduce.SUM, Reduce.PROD, *(() if kind == "c" else (Reduce.MAX, Reduce.MIN))]
    reduce = draw(st.sampled_from(kinds)) if shape else None
    allowed = [k for k, n in enumerate(shape) if n or reduce not in (Reduce.MAX, Reduce.MIN)]
    axes = tuple(sorted(draw(st.sets(st.sampled_from(allowed), min_size=1)))) if reduce and allowed else ()

    def function(*arrays: Array) -> Array:
        nodes = tuple(map(node_of, arrays))
        return emit(MapReduce(sizes(shape), nodes, expression(nodes[0].dtype), reduce if axes else None, axes))

    return Row([shape] * count, function)


def _index(draw: Draw, loops: Sequence[Index]) -> Index:
    """An integer expression in the positions."""
    p = as_index(draw(st.integers(-1, 3)))
    for each in loops:
        p = p + each * draw(st.integers(-2, 2))
    how = draw(st.integers(0, 5))
    return floordiv(p, 2) if how == 0 else mod(p, 3) if how == 1 else p


def _values(p: Index, shape: tuple[int, ...]) -> list[int]:
    """The values of an expression at all positions."""
    places = [dict(zip((q.atom for q in positions(sizes(shape))), at, strict=True)) for at in np.ndindex(*shape)]
    return [evaluate(p, at.__getitem__) for at in places]


def views(draw: Draw, kind: str) -> Row:
    """Any index expressions, with conditions where they may be outside, and some more."""
    source, shape = shapes(draw), shapes(draw)
    loops = positions(sizes(shape))
    index = tuple(_index(draw, loops) for _ in source)
    conditions: list[Index] = []
    for p, size in zip(index, source, strict=True):
        if not all(0 <= v < size for v in _values(p, shape)):
            conditions += [p, size - 1 - p]
    if draw(st.booleans()):
        conditions.append(_index(draw, loops))
    fill = draw(st.sampled_from([0.0, 1.5]))

    def function(x: Array) -> Array:
        node = node_of(x)
        return emit(view(node, sizes(shape), index, tuple(conditions), const(fill, node.dtype) if conditions else None))

    return Row([source], function)


def _places(draw: Draw, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...], Callable]:
    """How many axes are indexed, the shape of the indices, and random indices, also negative ones and outside."""
    count = draw(st.integers(1, len(shape)))
    at = shapes(draw, most=2)
    width = draw(st.sampled_from(["int32", "int64"]))
    return count, at, lambda rng: [rng.integers(-n - 1, n + 2, size=at).astype(width) for n in shape[:count]]


def gathers(draw: Draw, kind: str) -> Row:
    shape = shapes(draw, 1)
    count, _, integers = _places(draw, shape)
    fill = draw(st.sampled_from([None, 0.0, 2.5])) if all(shape[:count]) else 2.5

    def function(x: Array, *indices: Array) -> Array:
        node = node_of(x)
        return emit(Gather(node, tuple(map(node_of, indices)), None if fill is None else const(fill, node.dtype)))

    return Row([shape], function, integers)


def scatters(draw: Draw, kind: str) -> Row:
    shape = shapes(draw, 1)
    count, at, integers = _places(draw, shape)
    put = draw(st.sampled_from([Put.SET, Put.ADD, Put.MULTIPLY, *(() if kind == "c" else (Put.MIN, Put.MAX))]))
    unique = draw(st.booleans())
    clips = not unique and all(shape[:count]) and draw(st.booleans())
    if unique:
        count, at = 1, (draw(st.integers(0, shape[0])),)
        integers = lambda rng: [rng.permutation(shape[0])[: at[0]] - shape[0] * rng.integers(0, 2)]
    factors = np.linspace(0.5, 1.5, int(np.prod(at + shape[count:]))).reshape(at + shape[count:])
    fixed = put is Put.MULTIPLY and not unique  # factors of which a place has several have no derivative

    def function(base: Array, updates: Array, *indices: Array) -> Array:
        changes = hnp.asarray(factors).astype(base.dtype) if fixed else updates
        return emit(Scatter(node_of(base), tuple(map(node_of, indices)), node_of(changes), put, clips, unique))

    return Row([shape, at + shape[count:]], function, integers)


def cumulatives(draw: Draw, kind: str) -> Row:
    shape = shapes(draw, 1)
    reduce = draw(st.sampled_from([None, Reduce.SUM, Reduce.PROD, *(() if kind == "c" else (Reduce.MAX, Reduce.MIN))]))
    axis, backward = draw(st.integers(0, len(shape) - 1)), draw(st.booleans())

    def function(*arrays: Array) -> Array:
        return emit(Cumulative(tuple(map(node_of, arrays)), reduce, axis, backward))

    return Row([shape] * (2 if reduce is None else 1), function)


def kept(draw: Draw, kind: str) -> Row:
    shape = shapes(draw)
    order = draw(st.permutations(range(len(shape))))
    return Row([shape], lambda x: contiguous(hnp.transpose(x, order)) * 2)


def row_wise(draw: Draw, kind: str) -> Row:
    """Positions are integers, and have no derivative: they are factors."""
    shape = shapes(draw, 1)
    op, reverse = draw(st.sampled_from(RowOp)), draw(st.booleans())
    table = (*(shape[:-1] if draw(st.booleans()) else ()), draw(SIZES))

    def function(first: Array, last: Array) -> Array:
        if op is RowOp.SEARCH:
            first = hnp.sort(first, axis=-1)
        operands = [last] if op in (RowOp.SORT, RowOp.ORDER) else [first, last]
        found = emit(RowWise(op, tuple(map(node_of, operands)), reverse))
        return found * last

    return Row([table if op is RowOp.SEARCH else shape, shape], function)


def examples(draw: Draw, kind: str) -> Row:
    """What each example has of all, in a batch that there is when the derivative is taken."""
    shape = shapes(draw, 1)
    expression = expressions(draw, 2, shape[1:], kind)

    def function(xs: Array) -> Array:
        of_one = lambda x: mapped(expression, [x, harp.lax.psum(x, "examples")], shape[1:])
        return harp.vmap(of_one, axis_name="examples")(xs)

    return Row([shape], function)


def host_calls(draw: Draw, kind: str) -> Row:
    """A call of Python changes nothing of what is computed."""
    shape = shapes(draw)
    expression = expressions(draw, 2, shape, kind)

    def function(a: Array, b: Array) -> Array:
        harp.debug.callback(lambda *_: None, a, b)
        return mapped(expression, [a, b], shape)

    return Row([shape] * 2, function)


def iterations(draw: Draw, kind: str) -> Row:
    """Loops over an array, branches, and loops that data ends, which have no derivative in reverse mode."""
    which = draw(st.sampled_from(["scan", "scan", "cond", "by data"]))
    shape, length = shapes(draw, most=2), draw(SIZES)
    step, made = (expressions(draw, 3, shape, kind) for _ in range(2))
    if which == "scan":
        reverse = draw(st.booleans())

        def loop(start: Array, xs: Array, same: Array) -> Any:
            def body(c: Array, x: Array) -> tuple[Array, Array]:
                return mapped(step, [c, x, same], shape), mapped(made, [c, x, same], shape)

            return harp.scan(body, start, xs, reverse=reverse)

        return Row([shape, (length, *shape), shape], loop)

    def branch(a: Array, b: Array, c: Array, times: Array) -> Any:
        return harp.cond(
            times > 1, lambda a: mapped(step, [a, b, c], shape), lambda a: mapped(made, [a, b, c], shape), a
        )

    def by_data(a: Array, b: Array, c: Array, times: Array) -> Any:
        return harp.fori_loop(times * 0, times, lambda k, a: mapped(step, [a, b, c], shape), a)

    integers = lambda rng: [np.asarray(rng.integers(0, 4))]
    return Row([shape] * 3, branch if which == "cond" else by_data, integers, which == "cond")


def customs(draw: Draw, kind: str) -> Row:
    """Derivatives that are given, here by other transforms."""
    shape = shapes(draw)
    expression = expressions(draw, 2, shape, kind)
    how = draw(st.sampled_from(["checkpoint", "jvp", "vjp"]))

    def plain(a: Array, b: Array) -> Array:
        return mapped(expression, [a, b], shape)

    if how == "checkpoint":
        return Row([shape] * 2, harp.checkpoint(plain))
    if how == "jvp":
        by_tangents = harp.custom_jvp(plain)
        by_tangents.defjvp(lambda primals, tangents: harp.jvp(plain, primals, tangents))
        return Row([shape] * 2, by_tangents)
    by_cotangents = harp.custom_vjp(plain)
    by_cotangents.defvjp(lambda a, b: (plain(a, b), (a, b)), lambda kept, ct: harp.vjp(plain, *kept)[1](ct))
    return Row([shape] * 2, by_cotangents)


def foreign(draw: Draw, kind: str) -> Row:
    """What Python computes, for each example or for all at once, with a derivative that is given."""
    shape = shapes(draw)
    method = draw(st.sampled_from(["sequential", "broadcast_all"]))

    def plain(a: Array, b: Array) -> Any:
        return hnp.sin(a) * b, a * b

    def by_numpy(a: np.ndarray, b: np.ndarray) -> Any:
        return (np.sin(a) * b).astype(a.dtype), a * b

    @harp.custom_vjp
    def function(a: Array, b: Array) -> Any:
        return harp.pure_callback(by_numpy, (a, a), a, b, vmap_method=method)

    function.defvjp(lambda a, b: (function(a, b), (a, b)), lambda kept, ct: harp.vjp(plain, *kept)[1](ct))
    return Row([shape] * 2, function)


def parts(draw: Draw, kind: str) -> Row:
    """Some of several results."""
    shape, length = shapes(draw, most=2), draw(SIZES)
    expressions_ = [expressions(draw, 3, shape, kind) for _ in range(4)]
    wanted = draw(st.sets(st.integers(0, 3), min_size=1))

    def function(first: Array, second: Array, xs: Array) -> Any:
        def body(carry: tuple[Array, Array], x: Array) -> Any:
            now = [mapped(e, [*carry, x], shape) for e in expressions_]
            return (now[0], now[1]), (now[2], now[3])

        last, made = harp.scan(body, (first, second), xs)
        results = (*last, *made)
        return tuple(results[k] for k in sorted(wanted))

    return Row([shape, shape, (length, *shape)], function)


STRATEGIES: dict[type[Node], Callable[[Draw, str], Row]] = {
    Input: inputs,
    Constant: constants,
    MapReduce: map_reduces,
    View: views,
    Gather: gathers,
    Scatter: scatters,
    Cumulative: cumulatives,
    Contiguous: kept,
    RowWise: row_wise,
    Examples: examples,
    HostCall: host_calls,
    Iteration: iterations,
    Custom: customs,
    Foreign: foreign,
    Part: parts,
}
REAL_ONLY = {RowWise}


@st.composite
def rows(draw, kind: type[Node]) -> tuple[Row, np.dtype]:
    """A function of this kind of node, and the dtype of its arguments."""
    names = ["float64", "float32", *(() if kind in REAL_ONLY else ("complex128", "complex64"))]
    dtype = np.dtype(draw(st.sampled_from(names)))
    assert as_dtype(dtype).is_inexact
    row = STRATEGIES[kind](draw, dtype.kind)
    return row._replace(function=lambda *given: row.function(*map(hnp.asarray, given))), dtype
