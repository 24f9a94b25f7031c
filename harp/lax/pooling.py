"""`reduce_window` of `jax.lax`: sums, products and extrema over windows, which are views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from harp.errors import ArgumentError, ShapeError
from harp.lax.padding import known_fill, pad
from harp.numpy.manipulation import broadcast_to, shape_of
from harp.numpy.sliding import Padding, plan, pooled
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, emit, to_shape
from harp.trace.graph.node import MapReduce
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import ArraySignature, DType
from harp.trace.scalar.expr import Apply, Operand, const
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.size import wrap
from harp.trace.source_locations import plural, where
from harp.trace.tracer import trace

_MONOIDS = {
    Op.ADD: Reduce.SUM,
    Op.MUL: Reduce.PROD,
    Op.MAX: Reduce.MAX,
    Op.MIN: Reduce.MIN,
    Op.OR: Reduce.MAX,
    Op.AND: Reduce.MIN,
}


def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[[Array, Array], object],
    window_dimensions: object,
    window_strides: object = None,
    padding: Padding = "VALID",
    base_dilation: object = None,
    window_dilation: object = None,
) -> Array:
    """What `computation` makes of `init_value` and all elements of each window along the axes.

    Sums, products, maxima and minima of two elements, and of bool `and` and `or`, take windows of any size; for other
    elementwise functions windows have known sizes, and the program a step for each element of a window. Strides,
    padding and dilations are as for `conv_general_dilated`, for all axes; `init_value` is also what is outside of the
    array and between its elements. The gradient of an extremum goes to the first element of a window that is it; that
    of a product has no division.

    Raises ArgumentError for other functions of windows whose sizes are not known, ShapeError for another number of
    sizes than axes.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> reduce_window(hnp.asarray([3.0, 1.0, 2.0, 5.0]), -hnp.inf, lax.max, (3,))
    Array([3., 5.])
    """
    array = as_array(operand)
    reduce = _monoid(computation, array.kind)
    window = to_shape(window_dimensions)
    if len(window) != array.ndim:
        raise ShapeError(
            f"window_dimensions has {plural(len(window), 'sizes')} for {plural(array.ndim, 'axes')}{where()}"
        )
    neutral = const(0 if reduce is None else reduce.identity(array.kind), array.kind)
    axes, fill = range(array.ndim), known_fill(init_value, array.kind)
    windows = plan(shape_of(array), axes, window, window_strides, padding, window_dilation, base_dilation)
    if reduce is not None and fill is neutral:
        return pooled(array, windows, reduce, fill)
    start = as_array(init_value).astype(array.kind)
    if start.ndim:
        raise ArgumentError(f"init_value is one number, not an array of {plural(start.ndim, 'axes')}{where()}")
    if reduce is not None and fill is not None:
        return computation(start, pooled(array, windows, reduce, fill))  # type: ignore[return-value]
    config = [(wrap(w.low), wrap(w.high), wrap(w.base - 1)) for w in windows.windows]
    inside = pad(array, start, config)
    steps = [wrap(w.stride) for w in windows.windows]
    plain = plan(shape_of(inside), axes, window, steps, "valid", window_dilation)
    if reduce is None:
        return _by_elements(computation, start, emit(plain.view(node_of(inside), neutral)), window)
    return computation(start, pooled(inside, plain, reduce, neutral))  # type: ignore[return-value]


def _by_elements(
    computation: Callable[[Array, Array], object], start: Array, windows: Array, sizes: Sequence[Index]
) -> Array:
    """One element of each window after the other; their axes are the last ones."""
    known = [size.constant for size in sizes]
    if any(size is None for size in known):
        raise ArgumentError(
            f"for windows of {tuple(map(wrap, sizes))} the computation of reduce_window is a sum, product, maximum or "
            f"minimum of two elements, such as harp.lax.max{where()}"
        )
    result: object = broadcast_to(start, windows.shape[: windows.ndim - len(known)])
    for place in product(*(range(size or 0) for size in known)):
        result = computation(as_array(result), windows[(..., *place)])
    return as_array(result)


def _monoid(computation: Callable[[Array, Array], object], dtype: DType) -> Reduce | None:
    """The reduction that the computation of two numbers is, if it is one."""
    number = ArraySignature(dtype, ())
    graph = trace(computation, number, number)
    node = graph.outputs[0] if len(graph.outputs) == 1 else None
    alone = isinstance(node, MapReduce) and node.reduce is None and {*node.operands} == {*graph.inputs}
    expr = node.expr if alone and isinstance(node, MapReduce) else None
    if isinstance(expr, Apply) and all(isinstance(a, Operand) for a in expr.args) and expr.dtype is dtype:
        if expr.op in _MONOIDS and (dtype.kind.name == "BOOL" or expr.op not in (Op.OR, Op.AND)):
            return _MONOIDS[expr.op]
    return None
