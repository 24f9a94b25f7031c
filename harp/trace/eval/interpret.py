"""The NumPy interpreter: the meaning of a graph, and what runs where there is no compiler.

Each node becomes one NumPy array. Affine views are strided views of their source, so nothing is copied for them;
a sum of products goes through `numpy.einsum`, so that a matrix product does not build its whole domain. A running sum
goes through `accumulate`: what is read for it is not the masked view of its domain, but the values behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from math import prod
from typing import cast

import numpy as np

from harp.config import settings
from harp.errors import OutOfMemoryError
from harp.trace.eval.host_calls import call_each, call_pure, is_raised_by_call
from harp.trace.eval.inside import Sizes, numbers, on_grid, require_indices, require_inside
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import (
    Constant,
    Contiguous,
    Cumulative,
    Custom,
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
    WithBody,
    walk,
)
from harp.trace.graph.row_functions import ROWS
from harp.trace.index.polynomial import FloorDiv, Index, Loop, Relu, Symbol, evaluate, value_atoms
from harp.trace.scalar import expr as expression
from harp.trace.scalar.dtypes import DType, NDArray, c64, c128, computing, f32, f64
from harp.trace.scalar.expr import Apply, Expr, Operand, Position
from harp.trace.scalar.halves import rounded, widened
from harp.trace.scalar.ops import Op, Reduce, convert
from harp.trace.source_locations import Site, where

NO_SITES: Mapping[Node, Site] = {}

# Bytes of an element of the widest dtype.
_WIDEST = 16
# Terms of a long sum.
_LONG = 1 << 14
# What a node costs, in nanoseconds, beside one for each of its elements: what Python does for it.
_NODE = 10_000


class TooLong(Exception):
    """A graph has cost more than its budget."""


class Budget:
    """What a graph may cost here, in nanoseconds. The cost is counted, not measured, so it is the same in each run.

    Raises TooLong when that is spent."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self, result: NDArray) -> None:
        """Pay for the evaluation of a node."""
        self.left -= _NODE + result.size
        if self.left < 0:
            raise TooLong


def interpret(
    graph: Graph,
    arrays: Sequence[NDArray],
    sizes: Mapping[Symbol, int],
    check: bool = False,
    budget: Budget | None = None,
) -> list[NDArray]:
    """The outputs for these inputs, within a budget. Each output is a fresh, contiguous array.

    `check` asks first whether each view stays inside its source, and whether indices are inside of whose others nobody
    has said what they mean. Raises AddressError or IndexOutOfRangeError where they do not.
    """
    given: dict[Node, NDArray] = dict(zip(graph.inputs, arrays, strict=True))
    values = evaluate_nodes(graph.outputs, given, sizes, check, graph.sites, budget)
    return [np.array(values[o], order="C", copy=True) for o in graph.outputs]


def evaluate_nodes(
    roots: Sequence[Node],
    values: dict[Node, NDArray],
    sizes: Mapping[Symbol, int],
    check: bool = False,
    sites: Mapping[Node, Site] = NO_SITES,
    budget: Budget | None = None,
) -> Mapping[Node, NDArray]:
    """`values` with those of the roots, and without those that are not needed any more."""
    check = check or settings.check
    order = list(walk(roots))
    last_use = {i: k for k, node in enumerate(order) for i in node.inputs}
    keep = set(roots)
    for k, node in enumerate(order):
        if node not in values:
            if check or settings.verify >= 3:
                require_inside(node, sizes, sites.get(node))
            if check and isinstance(node, (Gather, Scatter)) and node.strict:
                require_indices(node, [values[i] for i in node.indices], sizes, partial(_site, node, order, sites))
            values[node] = evaluate_node(node, values, sizes, check, budget)
            if budget is not None:
                budget.spend(values[node])
        for i in set(node.inputs):
            if last_use[i] == k and i not in keep:
                del values[i]
    return values


def _site(node: Node, order: Sequence[Node], sites: Mapping[Node, Site]) -> Site | None:
    """The line of a node, or of the first one that reads it and has a line."""
    readers = {node}
    for reader in order:
        if reader is node or not readers.isdisjoint(reader.inputs):
            if reader in sites:
                return sites[reader]
            readers.add(reader)
    return None


def evaluate_node(
    node: Node,
    values: Mapping[Node, NDArray],
    sizes: Mapping[Symbol, int],
    check: bool = False,
    budget: Budget | None = None,
) -> NDArray:
    """One node's array, given those of the nodes that it reads. For one without elements nothing is computed, not even
    positions along its other axes, which may be as long as they like. `check` and `budget` are for bodies."""
    value = cast(Sizes, sizes.__getitem__)
    shape = numbers(node.shape, value)
    try:
        if 0 in shape and not isinstance(node, Input):
            return np.empty(shape, node.dtype.numpy)
        if isinstance(node, WithBody):
            return _BODY[type(node)](node, values, value, check, budget)
        return _EVALUATE[type(node)](node, values, value)
    except (MemoryError, ValueError, OverflowError) as error:
        if is_raised_by_call(error):
            raise
        shapes = [shape, *(values[i].shape for i in node.inputs if i in values)]
        if isinstance(node, MapReduce):
            shapes.append(numbers(node.domain, value))
        if not isinstance(error, MemoryError) and not any(map(_is_beyond_numpy, shapes)):
            raise
        raise OutOfMemoryError(
            f"an intermediate array of shape {shape} does not fit into memory: {error}{where()}"
        ) from None


def _is_beyond_numpy(shape: tuple[int, ...]) -> bool:
    """Whether NumPy has no array of this shape for some dtype: it multiplies the sizes that are not 0."""
    return prod(filter(None, shape)) * _WIDEST >= 2**63


def _constant(node: Constant, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    return node.captured.array


def _contiguous(node: Contiguous, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    return np.ascontiguousarray(values[node.src]).reshape(numbers(node.shape, sizes))


def _row_wise(node: RowWise, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    return ROWS[node.function].numpy(*(values[o] for o in node.operands), node.reverse)


def _host_call(node: HostCall, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    token = values[node.token]
    call_each(node.function, values[node.active], [values[o] for o in node.operands])
    return np.asarray(token + 1)


def _map_reduce(node: MapReduce, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    domain = numbers(node.domain, sizes)

    def position(index: Index) -> NDArray:
        return np.asarray(on_grid(index, domain, sizes), np.int64)

    return map_reduce(node.expr, [values[o] for o in node.operands], domain, node.reduce, node.axes, position)


def map_reduce(
    expr: Expr,
    operands: Sequence[NDArray],
    domain: tuple[int, ...],
    reduce: Reduce | None,
    axes: tuple[int, ...],
    position: Callable[[Index], NDArray] | None = None,
) -> NDArray:
    """The expression at every index of the domain, whose shape the operands have, then reduced over the axes."""
    if 0 in domain:
        return _of_nothing(expr.dtype, domain, reduce, axes)
    inner = computing(expr.dtype).numpy
    factors = _factors(expr) if reduce is Reduce.SUM else None
    if factors is not None:
        a, b = (operands[factor.slot].astype(inner, copy=False) for factor in factors)
        return _contract(a, b, axes, domain).astype(expr.dtype.numpy, copy=False)

    def leaf(e: Expr) -> NDArray:
        if isinstance(e, Operand):
            return operands[e.slot]
        assert isinstance(e, Position) and position is not None
        return position(e.index)

    wide = widened(expr)
    result = expression.evaluate(wide if reduce or wide.dtype is expr.dtype else rounded(wide, expr.dtype), leaf)
    if result.shape != domain:
        result = np.broadcast_to(result, domain)
    if reduce is None:
        return result
    if reduce is Reduce.SUM and result.size >= _LONG and prod(domain[axis] for axis in axes) >= _LONG:
        inner = _adding(inner)
    initial: NDArray | None = convert(reduce.identity(expr.dtype), computing(expr.dtype).numpy)[()]
    if expr.dtype.is_complex and reduce is Reduce.PROD:
        initial = None  # the first factor, for 1 times an infinity has a NaN
    with np.errstate(all="ignore"):
        reduced = reduce.ufunc.reduce(result, axis=axes, dtype=inner, initial=initial)
        return np.asarray(reduced).astype(expr.dtype.numpy, copy=False)


def _adding(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype in which many numbers are added: one float32 stops to grow at 2**24."""
    return {f32.numpy: f64.numpy, c64.numpy: c128.numpy}.get(dtype, dtype)


def _of_nothing(dtype: DType, domain: tuple[int, ...], reduce: Reduce | None, axes: tuple[int, ...]) -> NDArray:
    """What `map_reduce` makes of a domain without elements."""
    if reduce is None:
        return np.empty(domain, dtype.numpy)
    kept = [size for axis, size in enumerate(domain) if axis not in axes]
    return np.full(kept, reduce.identity(dtype)[()])


def _cumulative(node: Cumulative, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    towards = (slice(None),) * node.axis + (slice(None, None, -1 if node.backward else 1),)
    operands = [values[o][towards] for o in node.operands]
    with np.errstate(all="ignore"):
        result = _recurrence(node, *operands) if node.reduce is None else _accumulate(node, node.reduce, *operands)
    return np.asarray(result[towards]).astype(node.dtype.numpy, copy=False)


def _accumulate(node: Cumulative, reduce: Reduce, x: NDArray) -> NDArray:
    """From the first element on: running sums of -0.0 are -0.0."""
    inner = computing(node.dtype).numpy
    if reduce is Reduce.SUM and x.shape[node.axis] >= _LONG:
        inner = _adding(inner)
    return np.asarray(reduce.ufunc.accumulate(x, axis=node.axis, dtype=inner))


def _recurrence(node: Cumulative, a: NDArray, b: NDArray) -> NDArray:
    """r[i] = a[i]*r[i-1] + b[i], one position along the axis after the other."""
    inner = computing(node.dtype).numpy
    a, b = (np.moveaxis(x, node.axis, 0).astype(inner, copy=False) for x in (a, b))
    result = np.empty(b.shape, inner)
    r: NDArray = np.zeros(b.shape[1:], inner)
    for k in range(len(b)):
        r = result[k] = a[k] * r + b[k]
    return np.moveaxis(result, 0, node.axis)


def _factors(e: Expr) -> tuple[Operand, Operand] | None:
    """The operands, if the expression is a product of two."""
    if isinstance(e, Apply) and e.op is Op.MUL:
        a, b = e.operands
        if isinstance(a, Operand) and isinstance(b, Operand):
            return a, b
    return None


def _contract(a: NDArray, b: NDArray, axes: tuple[int, ...], domain: tuple[int, ...]) -> NDArray:
    """The sum of a * b over `axes`, without the broadcast copies of the operands.

    Only an axis that both have is left to einsum. Where one of them repeats its element along an axis, einsum would
    multiply the sum of the other: not the same if the element is infinite, or if the sum overflows.
    """
    (a, axes_a), (b, axes_b) = _without_repeats(a), _without_repeats(b)
    shared = {axis for axis in axes if axis in axes_a and axis in axes_b}
    kept = [axis for axis in range(len(domain)) if axis in {*axes_a, *axes_b} - shared]
    left = [axis for axis in range(len(domain)) if axis not in shared]
    with np.errstate(all="ignore"):
        summed = np.asarray(np.einsum(a, axes_a, b, axes_b, kept, optimize=len(domain) > 1))  # type: ignore[arg-type]
        spread = summed.reshape([domain[axis] if axis in kept else 1 for axis in left])
        full = np.broadcast_to(spread, [domain[axis] for axis in left])
        rest = tuple(k for k, axis in enumerate(left) if axis in axes)
        return np.asarray(np.add.reduce(full, axis=rest, dtype=full.dtype)) if rest else full


def _without_repeats(a: NDArray) -> tuple[NDArray, list[int]]:
    """The array without the axes along which it repeats one element, and the numbers of the others."""
    repeated = [stride == 0 and size > 1 for stride, size in zip(a.strides, a.shape, strict=True)]
    return a[tuple(0 if r else slice(None) for r in repeated)], [axis for axis, r in enumerate(repeated) if not r]


def _view(node: View, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    src, shape = values[node.src], numbers(node.shape, sizes)
    if not node.conditions:
        strided = _strided(src, node.index, shape, sizes)
        if strided is not None:
            return strided
    index = tuple(on_grid(p, shape, sizes) for p in node.index)
    valid = np.asarray(True)
    for condition in node.conditions:
        valid = np.logical_and(valid, np.greater_equal(on_grid(condition, shape, sizes), 0))
    if 0 in src.shape or 0 in shape:
        assert 0 in shape or not valid.any()
        return np.broadcast_to(_fill(node, src), shape)
    clipped = tuple(np.clip(p, 0, size - 1) for p, size in zip(index, src.shape, strict=True))
    taken = np.broadcast_to(src[clipped], shape)
    if not node.conditions:
        return taken
    return np.where(valid, taken, _fill(node, src))


def _gather(node: Gather, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    src = values[node.src]
    at, inside = _places([values[i] for i in node.indices], src.shape)
    if 0 in src.shape[: len(at)]:  # nothing is inside
        return np.broadcast_to(_fill(node, src), numbers(node.shape, sizes))
    taken = np.asarray(src[at])
    if node.fill is None:
        return taken
    inside = inside.reshape(inside.shape + (1,) * (taken.ndim - inside.ndim))
    return np.where(inside, taken, node.fill.value)


def _scatter(node: Scatter, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    inner = (node.dtype if node.kind is Put.SET else computing(node.dtype)).numpy
    if node.kind is Put.ADD:
        inner = _adding(inner)
    result, updates = np.array(values[node.base], inner), np.asarray(values[node.updates], inner)
    at, inside = _places([values[i] for i in node.indices], result.shape)
    if 0 in result.shape:
        return result.astype(node.dtype.numpy, copy=False)
    if not node.clips:
        at, updates = tuple(p[inside] for p in at), updates[inside]
    with np.errstate(all="ignore"):
        if node.kind is Put.SET:
            result[at] = updates
        else:
            _PUT[node.kind].at(result, at, updates)  # type: ignore[arg-type]
    return result.astype(node.dtype.numpy, copy=False)


_PUT = {Put.ADD: np.add, Put.MULTIPLY: np.multiply, Put.MIN: np.minimum, Put.MAX: np.maximum}


def _places(indices: Sequence[NDArray], shape: tuple[int, ...]) -> tuple[tuple[NDArray, ...], NDArray]:
    """The indices counted from the start and moved inside, and where they had been inside."""
    at: list[NDArray] = []
    inside = np.ones(indices[0].shape, bool)
    for index, size in zip(indices, shape, strict=False):
        position = np.where(np.less(index, 0), index.astype(np.int64) + size, index)
        inside &= (position >= 0) & (position < size)
        at.append(np.asarray(np.clip(position, 0, max(size - 1, 0))))
    return tuple(at), np.asarray(inside)


def _fill(node: View | Gather, src: NDArray) -> NDArray:
    return node.fill.value if node.fill is not None else np.zeros((), src.dtype)


def _strided(src: NDArray, index: Sequence[Index], shape: tuple[int, ...], sizes: Sizes) -> NDArray | None:
    """An affine view as strides and an offset; None where the index map is not affine."""
    if 0 in shape:
        return np.empty(shape, src.dtype)
    strides = [0] * len(shape)
    origin: list[slice] = []
    for axis, p in enumerate(index):
        parts = _affine(p, len(shape), sizes)
        if parts is None:
            return None
        start, slopes = parts
        origin.append(slice(start, start + 1))
        for k, slope in enumerate(slopes):
            strides[k] += slope * src.strides[axis]
    first = src[tuple(origin)]
    if src.dtype.kind == "f" and src.itemsize == 1:  # float8_e5m2, which NumPy does not know by its kind and size
        first = first.view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False).view(src.dtype)


def _affine(p: Index, rank: int, sizes: Sizes) -> tuple[int, list[int]] | None:
    """(constant, slope of each loop) with sizes as numbers."""
    start, slopes = 0, [0] * rank
    for monomial, coefficient in p.terms:
        loops = [a for a in monomial if isinstance(a, Loop)]
        for atom in monomial:
            if isinstance(atom, (FloorDiv, Relu)) and any(
                isinstance(a, Loop) for a in value_atoms(Index(((monomial, 1),)))
            ):
                return None
        if len(loops) > 1:
            return None
        factor = evaluate(Index(((tuple(a for a in monomial if not isinstance(a, Loop)), coefficient),)), sizes)
        if loops:
            slopes[loops[0].axis] += factor
        else:
            start += factor
    return start, slopes


def _input(node: Input, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    raise KeyError(f"no value for input {node.name}")


class _Sizes(Mapping[Symbol, int]):
    """Sizes, looked up by a function."""

    def __init__(self, value: Sizes) -> None:
        self._value = value

    def __getitem__(self, symbol: Symbol) -> int:
        return self._value(symbol)

    def __iter__(self) -> Iterator[Symbol]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _iteration(
    node: Iteration, values: Mapping[Node, NDArray], sizes: Sizes, check: bool, budget: Budget | None
) -> NDArray:
    """All results, as an array of arrays."""
    body, sites = node.body, dict(node.body.sites)
    carried, elements, same = ([body.inputs[k] for k in places] for places in body.place())
    given = dict(zip(body.inputs[1:], (values[o] for o in node.operands), strict=True))
    now = [given[i] for i in carried]
    made = [np.zeros(numbers(p.shape, sizes), p.dtype.numpy) for p in node.parts[body.carried :]]
    times = count() if node.length is None else range(evaluate(node.length, sizes))[:: -1 if node.reverse else 1]
    for t in times:
        if node.tested and not now[0]:
            break
        inputs: dict[Node, NDArray] = {body.inputs[0]: np.asarray(t, np.int64)}
        inputs.update(zip(carried, now, strict=True))
        inputs.update((i, given[i][t]) for i in elements)
        inputs.update((i, given[i]) for i in same)
        found = evaluate_nodes(body.outputs, inputs, _Sizes(sizes), check, sites, budget)
        results = [found[o] for o in body.outputs]
        now = results[: body.carried]
        for whole, element in zip(made, results[body.carried :], strict=True):
            whole[t] = element
    return _together([*now, *made])


def _custom(node: Custom, values: Mapping[Node, NDArray], sizes: Sizes, check: bool, budget: Budget | None) -> NDArray:
    inputs: dict[Node, NDArray] = {node.body.inputs[0]: np.zeros((), np.int64)}
    inputs.update(zip(node.body.inputs[1:], (values[o] for o in node.operands), strict=True))
    found = evaluate_nodes(node.body.outputs, inputs, _Sizes(sizes), check, dict(node.body.sites), budget)
    return _together([found[o] for o in node.body.outputs])


def _foreign(node: Foreign, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    results = [(numbers(own, sizes), dtype) for own, dtype in node.results]
    operands = [values[o] for o in node.operands]
    return _together(call_pure(node.routine, numbers(node.calls, sizes), operands, results, numbers(node.sizes, sizes)))


def _together(results: Sequence[NDArray]) -> NDArray:
    together = np.empty(len(results), object)
    for number, result in enumerate(results):
        together[number] = np.asarray(result)
    return together


def _part(node: Part, values: Mapping[Node, NDArray], sizes: Sizes) -> NDArray:
    return np.asarray(values[node.whole][node.number])


_EVALUATE: dict[type[Node], Callable[..., NDArray]] = {
    Input: _input,
    Constant: _constant,
    MapReduce: _map_reduce,
    View: _view,
    Gather: _gather,
    Scatter: _scatter,
    Contiguous: _contiguous,
    Cumulative: _cumulative,
    RowWise: _row_wise,
    HostCall: _host_call,
    Foreign: _foreign,
    Part: _part,
}
_BODY: dict[type[Node], Callable[..., NDArray]] = {Iteration: _iteration, Custom: _custom}
