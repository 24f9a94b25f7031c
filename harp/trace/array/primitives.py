"""The primitives on arrays: elementwise maps, reductions, views, and the materialisation point.

Inside a trace a primitive adds a node; elsewhere it computes at once by the NumPy interpreter. Everything in
`harp.numpy` is composed from these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from harp.config import settings
from harp.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DTypeError,
    HarpError,
    IntegerRangeError,
    ShapeError,
)
from harp.trace.array.array import Array, from_numpy, node_of, traced
from harp.trace.array.foreign import honest, to_numpy
from harp.trace.array.operators import Axis as Axis
from harp.trace.array.questions import WIDE, note_promotion
from harp.trace.array.questions import Operand as Met
from harp.trace.eval import eager, interpret, intervals
from harp.trace.eval.intervals import Interval
from harp.trace.eval.not_finite import require_finite
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Captured, Constant, Contiguous, Input, MapReduce, Node, Several, walk
from harp.trace.index.polynomial import ONE, Index, Shape
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, Kind, NDArray, as_dtype, integer_limits, plain, refuse_masked
from harp.trace.scalar.expr import Const, Expr, Operand, cast, const
from harp.trace.scalar.ops import Reduce, result_dtype
from harp.trace.sizes.integer_checks import IntegerCheck
from harp.trace.sizes.levels import GROWTH, STATE, current, on_growth
from harp.trace.sizes.ranges import size_value
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import (
    Size,
    ask,
    describe,
    hint,
    is_one,
    is_unreached,
    resolve,
    to_index,
    unify,
)
from harp.trace.source_locations import kind_of, plural, registering, short, user_site, where

Scalar = (bool, int, float, complex, Size)
_PYTHON = {bool, int, float, complex}
_NARROW = {np.dtype(np.float32), np.dtype(np.complex64)}
_FLOAT_END = 2**1024 - 2**970  # the first integer that Python does not convert to a float


def emit(node: Node, weak: bool = False) -> Array:
    """An array for a node: the node itself inside a trace, its value elsewhere."""
    level = current()
    if level is not None:
        if node not in level.sites:
            site = user_site()
            if site is not None:
                level.sites[node] = site
                if len(level.sites) % GROWTH == 0:
                    for listener in on_growth:
                        listener(level)
        if STATE.watch is not None:
            STATE.watch(node)
        return traced(node, level, weak)
    values = interpret.evaluate_nodes((node,), {}, {})
    if settings.nans:
        require_finite(Graph((), (node,)), (), {}, (values[node],))
    return from_numpy(np.asarray(values[node]), weak)


def emit_results(whole: Several) -> tuple[Array, ...]:
    """Arrays for all results of a node, which is evaluated once outside of a trace."""
    parts = whole.parts
    if current() is not None:
        return tuple(map(emit, parts))
    values = interpret.evaluate_nodes(parts, {}, {})
    if settings.nans:
        require_finite(Graph((), parts), (), {}, [values[part] for part in parts])
    return tuple(from_numpy(np.asarray(values[part])) for part in parts)


_CONVERT = "convert it with harp.numpy.asarray"
_LIST = "make a list of its elements, and an array of that with harp.numpy.asarray"
_ADVICE: dict[type, str] = {
    list: "convert it with harp.numpy.asarray, or use harp.numpy.stack for arrays of one shape",
    tuple: "convert it with harp.numpy.asarray, or use harp.numpy.stack for arrays of one shape",
    dict: "use harp.tree.map(function, tree) for each of its arrays",
    str: "text is not computed with: leave it out, or make it a static argument",
    type(None): "a function without `return` gives None, and so does an argument that was left out",
}


def as_array(value: object) -> Array:
    """Anything that is an array or a number, as an `Array`; arrays of NumPy and other libraries are copied here.

    Raises ArgumentError for lists and other objects, UnsupportedDTypeError for object and string arrays.
    """
    if type(value) is Array:
        return value
    value = honest(value, "the operand")
    if isinstance(value, Array):
        return value
    if isinstance(value, np.ndarray):
        return _capture(value)
    if isinstance(value, np.generic):
        return from_numpy(np.asarray(value, as_dtype(value.dtype).numpy))
    if isinstance(value, (bool, int, float, complex)):
        return emit(MapReduce((), (), python_constant(value, dtypes.default_of(python_kind(value)))), weak=True)
    if isinstance(value, Size):
        return emit(MapReduce((), (), size_value(value.index, dtypes.i64)), weak=True)
    found = to_numpy(value, "the operand")
    if found is not None:
        return _capture(found)
    advice = _ADVICE.get(type(value), _LIST if hasattr(type(value), "__iter__") else _CONVERT)
    if hasattr(value, "toarray"):  # a sparse matrix
        advice = registering(value, "")
    raise ArgumentError(f"{kind_of(value)} is not an array or a number; {advice}{where()}")


def as_named(value: object, name: str, advice: str = "convert it with harp.numpy.asarray") -> Array:
    """`as_array`, with errors that say which argument they are about, and what to do if it cannot be an array."""
    try:
        return as_array(value)
    except ArgumentError:
        kind, register = kind_of(value), registering(value, ", or ")
        raise ArgumentError(f"{name} is {kind}, not an array or a number; {register}{advice}{where()}") from None
    except HarpError as error:
        raise type(error)(f"{name}: {error}") from None


def _capture(value: NDArray) -> Array:
    """A private copy. Inside a trace the same array, unchanged since, is captured once."""
    level = current()
    refuse_masked(value)
    native = as_dtype(value.dtype).numpy
    if level is None:
        return from_numpy(plain(value, native, copy=True))
    known = level.captures.get(id(value))
    if known is None or known[1].array.tobytes() != plain(value, native).tobytes():
        known = level.captures[id(value)] = value, Captured(plain(value, native, copy=True))
    return emit(Constant(known[1]))


def python_kind(value: bool | int | float | complex) -> Kind:
    """What sort of number it is, also for subclasses of Python's types."""
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, complex):
        return Kind.COMPLEX
    return Kind.INT if isinstance(value, int) else Kind.FLOAT


def python_constant(value: bool | int | float | complex, dtype: DType) -> Const:
    """A Python number as a constant of this dtype. Raises IntegerRangeError if an integer does not fit, or where a
    float (NaN, an infinity) has no integer, DTypeError for a complex number where the dtype is not complex."""
    if isinstance(value, complex) and not isinstance(value, np.generic) and not dtype.is_complex:
        raise DTypeError(f"{value!r} is complex, but its dtype is to be {dtype.numpy}; use its .real{where()}")
    if dtype.is_integer and isinstance(value, (int, float)):
        limits = integer_limits(dtype)
        if not limits.min - 1 < value < limits.max + 1:  # floats are truncated
            shown = short(value) if isinstance(value, int) else repr(value)
            raise IntegerRangeError(f"{shown} does not fit {dtype.numpy}; convert the array first{where()}")
    if isinstance(value, int) and not -_FLOAT_END < value < _FLOAT_END:
        raise IntegerRangeError(f"{short(value)} does not fit {dtype.numpy}, which ends at about 1e308{where()}")
    return const(value, dtype)


_known_constant = lru_cache(256, typed=True)(python_constant)  # not for zeros, of which two are equal


_EXACT = frozenset({Array, bool, int, float, complex, np.ndarray})


def common_dtype(values: Sequence[object]) -> tuple[DType, bool]:
    """The dtype in which these operands meet, and whether it is still weak. A trace notes where float32 ends."""
    found = meeting_dtype(values)
    if found[0] in WIDE and not found[1] and any(map(_is_narrow, values)):
        level = current()
        if level is not None and level.scope.promotion is None:
            note_promotion(level, [_met(value) for value in values], found[0])
    return found


def _is_narrow(value: object) -> bool:
    """Whether a value is of float32 or complex64, and not a Python number."""
    if isinstance(value, Array):
        return (value.kind is dtypes.f32 or value.kind is dtypes.c64) and not value._weak
    return isinstance(value, (np.ndarray, np.generic)) and getattr(value, "dtype", None) in _NARROW


def _met(value: object) -> Met:
    if isinstance(value, Array):
        return Met(value, None if value.weak else value.kind, node_of(value))
    return Met(value, as_dtype(value.dtype) if isinstance(value, (np.ndarray, np.generic)) else None, None)


def meeting_dtype(values: Sequence[object]) -> tuple[DType, bool]:
    """The same for what is only compared, of which nothing is made in that dtype."""
    first = values[0] if values else None
    if type(first) is Array and not first._weak:
        common = first.kind
        if all(type(v) is Array and not v._weak and v.kind is common for v in values):
            return common, False
    strong: list[DType] = []
    weak: list[Kind] = []
    for value in values:
        value = honest(value, "the operand") if type(value) not in _EXACT else value
        if isinstance(value, Size):
            weak.append(Kind.INT)
        elif isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            weak.append(python_kind(value))
        else:
            array = value if isinstance(value, Array) else as_array(value)
            (weak if array.weak else strong).append(array.kind.kind if array.weak else array.kind)  # type: ignore[arg-type]
    if not strong:
        return dtypes.default_of(max(weak, default=Kind.FLOAT)), True
    dtype = dtypes.promote(strong)
    for kind in weak:
        dtype = dtypes.promote_weak(dtype, kind)
    return dtype, False


def known_numbers(value: object) -> NDArray | None:
    """The elements of an array, where they are known before the program runs."""
    if isinstance(value, Array):
        if value._value is not None:
            return value._value
        node = node_of(value)
        return node.captured.array if isinstance(node, Constant) else None
    return np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None


def require_known(array: Array, unknown: str) -> NDArray:
    """The elements of an array. Raises ConcretizationError, which says `unknown`, where they are not known yet."""
    numbers = known_numbers(array)
    if numbers is None:
        raise ConcretizationError(f"{unknown}{where()}")
    return numbers


def require_fits(array: Array, dtype: DType) -> None:
    """Hold what stands for a Python integer to the dtype that it takes on. Raises IntegerRangeError, or a call will."""
    if array.weak and array.kind.is_integer and dtype.is_integer and dtype is not dtypes.i64:
        complaint = f"does not fit {dtype.numpy}; convert the array first"
        require_between(array, intervals.limits(dtype), IntegerRangeError, complaint)


def require_between(array: Array, allowed: Interval, error: type[HarpError], complaint: str) -> None:
    """Hold an integer array to an interval: at once where its numbers are known, else at every call."""
    if array.kind.is_inexact:
        return
    level, numbers, node = current(), known_numbers(array), node_of(array)
    asked = allowed, error, complaint
    if numbers is not None:
        found: Interval | None = intervals.of_buffer(numbers)
    else:
        try:
            found = intervals.interval_of(node, _counted, lambda p: p.constant)
        except intervals.Wrapped as wrapped:
            found, allowed = wrapped.interval, intervals.limits(wrapped.dtype)
            error, complaint = IntegerRangeError, f"does not fit {wrapped.dtype.numpy}"
    if found is not None and intervals.is_within(found, allowed):
        return
    # An interval that holds for any number may be wider than the one of a call, which is known then.
    waits = numbers is None and any(isinstance(n, Input) and _counted(n) is None for n in walk((node,)))
    if found is not None and not (waits and level is not None):
        raise error(f"{intervals.outside(found, allowed)} {complaint}{where()}")
    if level is not None:
        allowed, error, complaint = asked
        level.scope.integer_checks.setdefault((node, allowed), IntegerCheck(node, allowed, error, complaint, where()))


def _counted(given: Input) -> Interval | None:
    """What is known of an input while a function is traced: the number of an iteration is below how many there are."""
    level = current()
    count = level.scope.counters.get(given.uid) if level is not None else None
    return None if count is None or count.constant is None else Interval(0, max(count.constant - 1, 0))


def map_(build: Callable[..., Expr], *values: object, to: DType | Sequence[DType] | None = None) -> Array:
    """Elementwise: `build` gets one expression for each operand, cast to `to`, and returns the result's expression.

    Operands broadcast. Without `to` they are cast to their common dtype. Numbers and sizes go into the expression
    itself. The result is weak if all operands are and no dtype was asked for.
    """
    weak = False
    if to is None:
        to, weak = common_dtype(values)
    targets = [to] * len(values) if isinstance(to, DType) else to
    if current() is None and not settings.nans:
        result = _map_at_once(build, values, targets)
        if result is not None:
            return from_numpy(result, weak)
    arrays = [
        value if isinstance(value, Scalar) and not isinstance(value, np.generic) else as_array(value)
        for value in values
    ]
    nodes = [node_of(a) for a in arrays if isinstance(a, Array)]
    shape, nodes = broadcast(nodes)
    leaves: list[Expr] = []
    slot = 0
    for array, dtype in zip(arrays, targets, strict=True):
        if isinstance(array, Array):
            require_fits(array, dtype)
            leaves.append(cast(Operand(nodes[slot].dtype, slot), dtype))
            slot += 1
        elif isinstance(array, Size):
            leaves.append(size_value(array.index, dtype))
        else:
            leaves.append(python_constant(array, dtype))
    return emit(MapReduce(shape, tuple(nodes), build(*leaves)), weak)


def _map_at_once(build: Callable[..., Expr], values: Sequence[object], targets: Sequence[DType]) -> NDArray | None:
    """`map_` outside of a trace; None for what has no buffer, and for what is wrong."""
    leaves: list[Expr] = []
    buffers: list[NDArray] = []
    for value, dtype in zip(values, targets, strict=True):
        kind = type(value)
        if kind in _PYTHON:
            make = _known_constant if kind in (int, bool) or (kind is float and value) else python_constant
            leaves.append(make(value, dtype))  # type: ignore[arg-type]
            continue
        if kind is Size:
            return None
        array = value if isinstance(value, Array) else as_array(value)
        if array._value is None:
            return None
        if array.weak:
            require_fits(array, dtype)
        operand = Operand(array.kind, len(buffers))
        leaves.append(operand if operand.dtype is dtype else cast(operand, dtype))
        buffers.append(array._value)
    expr = build(*leaves)
    return None if not buffers or expr.positional else eager.elementwise(expr, buffers)


def broadcast(nodes: Sequence[Node]) -> tuple[Shape, list[Node]]:
    """The common shape, and the nodes expanded to it. Undecided sizes become guards, axis by axis."""
    shape = broadcast_shapes([n.shape for n in nodes])
    return shape, [expand_to(n, shape) for n in nodes]


def broadcast_shapes(shapes: Sequence[Shape], what: str = "operands do not broadcast") -> Shape:
    """NumPy's rule. Raises ShapeError with `what`, naming the axis and both sizes."""
    rank = max(map(len, shapes), default=0)
    result: list[Index] = [ONE] * rank
    for shape in shapes:
        for axis in range(rank - len(shape), rank):
            result[axis] = join_sizes(result[axis], shape[axis - rank], partial(_no_broadcast, what, axis - rank))
    return tuple(map(resolve, result))


def _no_broadcast(what: str, axis: int) -> str:
    return f"{what} along axis {axis} (sizes are equal, or one of them is 1; x[:, None] adds an axis)"


def join_sizes(a: Index, b: Index, what: Callable[[], str]) -> Index:
    """The size of an axis in which `a` and `b` meet; what the sizes alone do not decide, the call at hand does.

    Raises ShapeError, with `what()`, where they are neither equal nor 1.
    """
    a, b = resolve(a), resolve(b)
    if a is b or b is ONE:
        return a
    if a is ONE:
        return b
    if hint(a) != hint(b):
        # Where neither is 1 both questions are asked: the error holds for calls in which neither is, and they differ.
        if hint(b) != 1 and ask(Relation.ZERO, a - 1, _BROADCAST):
            return b
        if ask(Relation.ZERO, b - 1, _BROADCAST):
            return a
    return unify(a, b, what)


_BROADCAST = "this axis is broadcast"


def expand_to(node: Node, shape: Shape) -> Node:
    """Broadcast one node to a shape that it fits; which sizes are 1, and so repeated, was decided before.

    A guard that says so need not have a solution: such an axis is read at 0 like any other of one element.
    """
    if node.shape == shape:
        return node
    offset = len(shape) - len(node.shape)
    stretched = [
        size is not wanted and is_one(size) and not is_one(wanted)
        for size, wanted in zip(node.shape, shape[offset:], strict=True)
    ]
    # Sizes that a guard holds equal without solving it stay two expressions: the view then spans the common one.
    same = all(resolve(size) is wanted for size, wanted in zip(node.shape, shape[offset:], strict=True))
    if not offset and same and not any(stretched):
        return node
    return view.expand(node, shape, stretched)


def reduce_(reduce: Reduce, array: Array, axes: Sequence[int], keepdims: bool = False) -> Array:
    """Fold some axes. `max` and `min` need at least one element along them: a guard, or a ShapeError."""
    result_dtype(reduce.value, (array.kind, array.kind))
    if reduce in (Reduce.MAX, Reduce.MIN) and (array._value is None or 0 in array._value.shape):
        require_elements(reduce.name.lower(), array, axes)
    return fold(lambda e: e, array, reduce, axes, keepdims)


def require_elements(name: str, array: Array, axes: Sequence[int]) -> None:
    """A guard, or a ShapeError that says what has no value over no elements; neither where it is not computed."""
    for axis in axes:
        size = resolve(node_of(array).shape[axis])
        if not ask(Relation.NONNEGATIVE, size - 1, "must not be empty") and not is_unreached():
            raise ShapeError(f"{name} over axis {axis} of size {describe(size)} has no value{where()}")


def fold(
    build: Callable[[Expr], Expr], array: Array, reduce: Reduce, axes: Sequence[int], keepdims: bool = False
) -> Array:
    """A map of one array, reduced at once over the axes; over no elements it is the reduction's identity."""
    ordered = tuple(sorted(axes))
    expr = build(Operand(array.kind, 0))
    result_dtype(reduce.value, (expr.dtype, expr.dtype))
    if ordered and array._value is not None and current() is None and not settings.nans:
        result = None if expr.positional else eager.reduction(expr, array._value, reduce, ordered, keepdims)
        if result is not None:
            return from_numpy(result, array.weak)
    node = node_of(array)
    shape = tuple(map(resolve, node.shape))
    if not ordered and isinstance(expr, Operand):
        return emit(node, array.weak)
    reduced: Node = MapReduce(shape, (node,), expr, reduce if ordered else None, ordered)
    if keepdims and ordered:
        reduced = view.insert_axes(reduced, ordered)
    return emit(reduced, array.weak)


def map_reduce(
    build: Callable[..., Expr], nodes: Sequence[Node], domain: Shape, reduce: Reduce, axes: Sequence[int]
) -> Array:
    """A map over `domain`, reduced at once: sums of products. The nodes have the domain's shape."""
    expr = build(*(Operand(n.dtype, slot) for slot, n in enumerate(nodes)))
    result_dtype(reduce.value, (expr.dtype, expr.dtype))
    return emit(MapReduce(domain, tuple(nodes), expr, reduce if axes else None, tuple(sorted(axes))))


def from_positions(shape: Shape, expr: Expr) -> Array:
    """An array computed from its positions alone: arange, eye, full."""
    return emit(MapReduce(tuple(map(resolve, shape)), (), expr))


def contiguous(array: Array) -> Array:
    """Compute this here and keep it."""
    return emit(Contiguous(node_of(array)), array.weak)


def as_count(name: str, value: object) -> Index:
    """How many there are of something: an integer or a size. Raises ShapeError for anything else, and below 0."""
    if not isinstance(value, Index) and not _is_integer(value):
        raise ShapeError(f"{name} must be an integer, not {value!r} of type {type(value).__name__}{where()}")
    p = to_index(value)
    if not ask(Relation.NONNEGATIVE, p, f"{name} is not negative"):
        raise ShapeError(f"{name} is negative: {describe(p)}{where()}")
    return resolve(p)


def as_integer(name: str, value: object) -> int:
    """An integer argument as a number; a size is pinned. Raises ArgumentError."""
    if not _is_integer(value):
        raise ArgumentError(f"{name} must be an integer, not {value!r} of type {type(value).__name__}{where()}")
    return int(value.__index__())  # type: ignore[attr-defined]


def as_flag(name: str, value: object) -> bool:
    """An argument that is True or False. Raises ArgumentError."""
    if not isinstance(value, (int, np.bool_, np.integer)):
        raise ArgumentError(f"{name} must be True or False, not {value!r} of type {type(value).__name__}{where()}")
    return bool(value)


def _is_integer(value: object) -> bool:
    if isinstance(value, (Array, np.ndarray)):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return hasattr(value, "__index__")


def as_tuple(values: object) -> tuple[object, ...]:
    """One value, or a list, tuple, range or known array of them, as a tuple. Raises ConcretizationError."""
    if isinstance(values, (tuple, list, range)):
        return tuple(values)
    if isinstance(values, (Array, np.ndarray)) and values.ndim == 1:
        return tuple(require_known(as_array(values), "sizes and axes must be numbers, and this is an array").tolist())
    return (values,)


def normalize_axis(axis: object, rank: int) -> int:
    """A non-negative axis. Raises AxisError, or ArgumentError for what is no integer."""
    axis = axis if type(axis) is int else honest(axis, "an axis")
    if isinstance(axis, (Array, np.ndarray)) and axis.ndim:
        raise ArgumentError(
            "an axis must be an integer, not an array; what NumPy has for two arrays bears another name, such as "
            f"harp.numpy.maximum{where()}"
        )
    number = as_integer("an axis", axis)
    if not -rank <= number < rank:
        which = f"; axes count from 0 to {rank - 1}, or from -1 back to {-rank}" if rank > 1 else "; it is 0" * rank
        raise AxisError(f"axis {number} is out of range for an array with {plural(rank, 'axes')}{which}{where()}")
    return number % rank if rank else 0


def normalize_axes(axes: object, rank: int) -> tuple[int, ...]:
    """Axes as a sorted tuple; None means all. Raises AxisError for one out of range or named twice."""
    if axes is None:
        return tuple(range(rank))
    listed = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    result = tuple(normalize_axis(a, rank) for a in listed)
    if len(set(result)) != len(result):
        raise AxisError(f"an axis is named twice in {axes!r}{where()}")
    return tuple(sorted(result))


def to_shape(shape: object) -> Shape:
    """A shape given as an integer, a size or a sequence of these. Raises ShapeError for negative sizes."""
    result = []
    for axis, size in enumerate(as_tuple(honest(shape, "a shape"))):
        if not isinstance(size, Index) and not _is_integer(size):
            half = "; a half is n // 2, an integer" if isinstance(size, (float, Array)) else ""
            raise ShapeError(f"size {size!r} of axis {axis} is not an integer{half}{where()}")
        p = to_index(size)
        if not ask(Relation.NONNEGATIVE, p, "a size is not negative"):
            raise ShapeError(f"size {describe(p)} of axis {axis} is negative{where()}")
        result.append(resolve(p))
    return tuple(result)
