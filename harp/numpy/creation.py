"""Arrays from numbers, lists and shapes. Sizes may be symbolic; without `dtype`, defaults are NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harp.errors import ArgumentError, HarpError, IntegerRangeError, InterchangeError, ShapeError
from harp.numpy.joining import stack
from harp.numpy.manipulation import broadcast_to, moveaxis, reshape
from harp.trace.array.arithmetic import astype, in_common
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.conversions import require_device
from harp.trace.array.foreign import honest, to_numpy
from harp.trace.array.indexing import bound
from harp.trace.array.primitives import (
    Scalar,
    as_array,
    common_dtype,
    emit,
    from_positions,
    map_,
    meeting_dtype,
    python_constant,
    to_shape,
)
from harp.trace.graph.node import MapReduce
from harp.trace.index.division import ceildiv, relu
from harp.trace.index.polynomial import ZERO, Index, loop
from harp.trace.scalar.dtypes import (
    OF_NUMPY,
    ArraySignature,
    DType,
    DTypeLike,
    Kind,
    NDArray,
    as_dtype,
    default_of,
    f64,
    of_python,
)
from harp.trace.scalar.expr import Expr, Operand, Position, apply, cast, const, select
from harp.trace.scalar.expr import less_equal as _less_equal
from harp.trace.scalar.ops import Op
from harp.trace.sizes.ranges import require_int64
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import Size, ask, resolve_all, to_index, wrap
from harp.trace.source_locations import plural, where

__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "identity",
    "linspace",
    "ones",
    "ones_like",
    "result_type",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

_DEEPEST = 64  # axes that an array of NumPy can have


def asarray(a: object, dtype: DTypeLike | None = None, *, device: object = None, copy: bool | None = None) -> Array:
    """An array from a number, a nested list of numbers or arrays, a NumPy array (copied) or a harp array.

    Objects that show their memory (buffers) or that convert to NumPy are copied, too. Raises ShapeError for ragged
    lists, UnsupportedDTypeError for strings and objects, IntegerRangeError for Python integers that do not fit the
    dtype, and InterchangeError where `copy` is False and a copy is needed.

    >>> asarray([1, 2, 3], dtype="float32")
    Array([1., 2., 3.], dtype=float32)
    """
    require_device(device)
    a = honest(a, "the value")
    if copy is False and not (isinstance(a, Array) and (dtype is None or a.kind is as_dtype(dtype))):
        raise InterchangeError(f"an array of {type(a).__name__} needs a copy; leave out copy=False{where()}")
    if copy and isinstance(a, Array) and a._value is not None and not a.weak:
        a = from_numpy(a._value.copy())
    if dtype is not None and isinstance(a, Scalar) and not isinstance(a, np.generic):
        return map_(lambda x: x, a, to=as_dtype(dtype))  # unlike a cast, it raises where the number does not fit
    if isinstance(a, (list, tuple)):
        result = _from_list(a, None if dtype is None else as_dtype(dtype))
    else:
        result = as_array(_of_other_library(a))
    if result.weak and dtype is not None:
        return in_common(result, as_dtype(dtype))
    if dtype is not None or result.weak:
        return astype(result, of_python(result.kind) if dtype is None else dtype)
    return result


array = asarray


def _of_other_library(value: object) -> object:
    """What has a buffer, or converts itself, as a NumPy array."""
    if isinstance(value, (Array, np.ndarray, np.generic, *Scalar, str, bytes)):
        return value
    found = to_numpy(value, "the value")
    if found is not None:
        return found
    try:
        return np.asarray(memoryview(value))  # type: ignore[arg-type]
    except TypeError:
        return value


def _from_list(values: list[object] | tuple[object, ...], dtype: DType | None, depth: int = 1) -> Array:
    if depth > _DEEPEST:
        raise _too_deep()
    if not _holds_array(values):
        numbers = _numbers(values, dtype)
        return as_array(numbers if dtype else _by_default(numbers))
    parts = [_from_list(v, dtype, depth + 1) if isinstance(v, (list, tuple)) else asarray(v, dtype) for v in values]
    return stack(parts)


def _by_default(numbers: NDArray) -> NDArray:
    """Floats and complex numbers of a list in the dtype of Python's."""
    wanted = OF_NUMPY.get(numbers.dtype)
    return numbers if wanted is None else numbers.astype(of_python(wanted).numpy, copy=False)


def _numbers(values: list[object] | tuple[object, ...], dtype: DType | None) -> NDArray:
    """A list as NumPy has it; Python integers go to the dtype without a stop at int64."""
    try:
        result = np.asarray(values)
        if result.dtype.kind == "O" and all(isinstance(v, int) for v in result.flat):
            result = np.asarray(values, np.int64 if dtype is None else dtype.numpy)
        elif dtype is not None and (result.dtype.kind in "iu" or _became_floats(values, result, dtype)):
            result = np.asarray(values, dtype.numpy)
    except OverflowError as error:
        raise IntegerRangeError(f"a list has an integer that does not fit: {error}{where()}") from None
    except (HarpError, MemoryError):
        raise
    except ValueError as error:
        rows = "; fill its rows up to one length, and keep the lengths" if "inhomogeneous" in str(error) else ""
        raise ShapeError(f"a list is not an array: {str(error).rstrip('.')}{rows}{where()}") from None
    except Exception as error:  # of an element that converts itself
        raise ArgumentError(
            f"NumPy gets no array of a list ({type(error).__name__}: {error}); write its numbers into the list{where()}"
        ) from error
    if dtype is not None and dtype.is_integer and result.dtype.kind == "f" and not np.isfinite(result).all():
        raise IntegerRangeError(f"a list has NaN or an infinity, which {dtype.numpy} does not hold{where()}")
    return result


def _became_floats(values: object, result: NDArray, dtype: DType) -> bool:
    """Whether integers from 2**63 on made NumPy round a list of integers, which no float must do on the way."""
    if (
        result.dtype.kind != "f"
        or dtype.kind not in (Kind.INT, Kind.UINT)
        or not np.any(np.greater_equal(result, 2.0**63))
    ):
        return False
    return all(isinstance(v, int) for v in np.asarray(values, object).flat)


def _too_deep() -> ArgumentError:
    return ArgumentError(f"lists are nested more than {_DEEPEST} deep, or one holds itself{where()}")


def _holds_array(values: list[object] | tuple[object, ...], depth: int = 1) -> bool:
    if depth > _DEEPEST:
        raise _too_deep()
    nested = (v for v in values if isinstance(v, (list, tuple)))
    return any(isinstance(v, (Array, Size)) for v in values) or any(_holds_array(v, depth + 1) for v in nested)


def full(shape: object, fill_value: object, dtype: DTypeLike | None = None, *, device: object = None) -> Array:
    """An array of this shape that repeats a value (a number, or an array that broadcasts to the shape).

    >>> import harp.numpy as hnp
    >>> hnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]])
    """
    require_device(device)
    if isinstance(fill_value, (bool, int, float, complex)) and not isinstance(fill_value, np.generic):
        target = common_dtype((fill_value,))[0] if dtype is None else as_dtype(dtype)
        return from_positions(to_shape(shape), python_constant(fill_value, target))
    array = asarray(fill_value, dtype)
    return broadcast_to(array, shape)


def zeros(shape: object, dtype: DTypeLike | None = None, *, device: object = None) -> Array:
    """Zeros of this shape; float64 unless `dtype` says otherwise.

    >>> zeros(3, "int8")
    Array([0, 0, 0], dtype=int8)
    """
    return full(shape, 0, float if dtype is None else dtype, device=device)


def ones(shape: object, dtype: DTypeLike | None = None, *, device: object = None) -> Array:
    """Ones of this shape; float64 unless `dtype` says otherwise.

    >>> import harp.numpy as hnp
    >>> hnp.ones((2, 3), "float32")
    Array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    return full(shape, 1, float if dtype is None else dtype, device=device)


def empty(shape: object, dtype: DTypeLike | None = None, *, device: object = None) -> Array:
    """The same as `zeros`: no array of harp has undefined elements.

    >>> import harp.numpy as hnp
    >>> hnp.empty(2)
    Array([0., 0.])
    """
    return zeros(shape, dtype, device=device)


def full_like(
    a: object, fill_value: object, dtype: DTypeLike | None = None, shape: object = None, *, device: object = None
) -> Array:
    """An array of the shape and the dtype of `a`, an array or a signature, unless others are given, that repeats a
    value.

    >>> import harp.numpy as hnp
    >>> hnp.full_like(hnp.asarray([1.0, 2.0]), 7)
    Array([7., 7.])
    """
    if isinstance(a, ArraySignature):
        return full(a.shape if shape is None else shape, fill_value, dtype or a.dtype, device=device)
    array = as_array(a)
    return full(array.shape if shape is None else shape, fill_value, dtype or array.kind, device=device)


def zeros_like(a: object, dtype: DTypeLike | None = None, shape: object = None, *, device: object = None) -> Array:
    """Zeros of the shape and the dtype of `a`, unless others are given.

    >>> import harp.numpy as hnp
    >>> hnp.zeros_like(hnp.asarray([[1, 2]]))
    Array([[0, 0]])
    """
    return full_like(a, 0, dtype, shape, device=device)


def ones_like(a: object, dtype: DTypeLike | None = None, shape: object = None, *, device: object = None) -> Array:
    """Ones of the shape and the dtype of `a`, unless others are given.

    >>> import harp.numpy as hnp
    >>> hnp.ones_like(hnp.asarray([1, 2]))
    Array([1, 1])
    """
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(
    prototype: object, dtype: DTypeLike | None = None, shape: object = None, *, device: object = None
) -> Array:
    """The same as `zeros_like`.

    >>> import harp.numpy as hnp
    >>> hnp.empty_like(hnp.asarray([1, 2]))
    Array([0, 0])
    """
    return zeros_like(prototype, dtype, shape, device=device)


def _integer(value: object) -> bool:
    if isinstance(value, (Size, int, np.integer)):
        return True
    return isinstance(value, (Array, np.ndarray)) and value.ndim == 0 and value.dtype.kind in "iu"


def arange(
    start: object, stop: object = None, step: object = 1, dtype: DTypeLike | None = None, *, device: object = None
) -> Array:
    """start, start + step, ... below stop (above it, if the step is negative), or 0, 1, ... below the one argument.

    Integers and sizes give int64, for symbolic sizes too; floats give float64. Raises ArgumentError for step 0.

    >>> arange(2, 9, 3)
    Array([2, 5, 8])
    """
    require_device(device)
    if stop is None:
        start, stop = 0, start
    if not all(map(_integer, (start, stop, step))):
        return _float_range(_number(start), _number(stop), _number(step), dtype)
    first, last, by = (require_int64(to_index(value)) for value in (start, stop, step))
    if by is ZERO:
        raise ArgumentError(f"the step of arange is 0{where()}")
    forward = ask(Relation.NONNEGATIVE, by - 1, "the sign of a step")
    if not forward and ask(Relation.NONNEGATIVE, by, "the sign of a step"):
        raise ArgumentError(f"the step of arange is 0{where()}")
    length = ceildiv(relu(last - first), by) if forward else ceildiv(relu(first - last), -by)
    length = require_int64(length)
    values = Position(first + loop(0, length) * by)
    return from_positions((length,), values if dtype is None else cast(values, as_dtype(dtype)))


def _number(value: object) -> float:
    if isinstance(value, (Array, np.ndarray)) and value.ndim:
        raise ArgumentError(f"arange takes numbers, not an array with {plural(value.ndim, 'axes')}{where()}")
    try:
        return float(value)  # type: ignore[arg-type]
    except HarpError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"arange takes numbers: {error}{where()}") from None


def _float_range(start: float, stop: float, step: float, dtype: DTypeLike | None) -> Array:
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        raise ArgumentError(f"arange({start}, {stop}, {step}) has no length{where()}")
    length = to_index(max(math.ceil((stop - start) / step), 0))
    if dtype is not None and as_dtype(dtype).is_integer:  # the first two elements, rounded to 0, say the others
        places = loop(0, length) * (int(start + step) - int(start)) + int(start)
        return from_positions((length,), cast(Position(places), as_dtype(dtype)))
    delta = (start + step) - start  # as it is between the first two elements
    here = cast(Position(loop(0, length)), f64)
    values = start + here * delta
    return from_positions((length,), cast(values, as_dtype(float if dtype is None else dtype)))


def linspace(
    start: object,
    stop: object,
    num: object = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Array | Any:
    """`num` evenly spaced numbers from start to stop, which is the last of them, or excluded without `endpoint`.

    Ends that are arrays broadcast, and `axis` is where the numbers are. With `retstep` also their distance. A `dtype`
    of integers rounds down.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    require_device(device)
    (count,) = to_shape((num,))
    inner, _ = common_dtype((start, stop))
    inner = inner if inner.is_inexact else default_of(Kind.FLOAT)
    intervals: Index = relu(count - 2) + 1 if endpoint else count

    def build(here: Expr, a: Expr, b: Expr) -> Expr:
        position = Operand(here.dtype, 0)
        delta = b - a
        step = delta / cast(Position(intervals), inner)
        between = here * step + a
        if not endpoint:
            return between
        last = apply(Op.EQ, position, cast(Position(intervals), position.dtype))
        return select(last, b, between)

    a, b = map(as_array, (start, stop))
    here = arange(wrap(count), dtype=inner)
    rank = max(a.ndim, b.ndim)
    result = map_(build, reshape(here, (-1, *(1,) * rank)) if rank else here, start, stop, to=inner)
    result = moveaxis(result, 0, axis) if rank else result
    if dtype is not None:  # integers are rounded down
        whole = as_dtype(dtype).is_integer
        result = astype(map_(lambda a: apply(Op.FLOOR, a), result) if whole else result, dtype)
    return (
        (result, map_(lambda a, b: (b - a) / cast(Position(intervals), inner), a, b, to=inner)) if retstep else result
    )


def eye(N: object, M: object = None, k: int = 0, dtype: DTypeLike | None = None, *, device: object = None) -> Array:
    """An N by M matrix with ones on the k-th diagonal (above the main one if k > 0) and zeros elsewhere.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]])
    """
    require_device(device)
    target = as_dtype(float if dtype is None else dtype)
    return _by_diagonal(N, M, k, target, lambda i, j: apply(Op.EQ, i, j))


def identity(n: object, dtype: DTypeLike = float) -> Array:
    """The n by n identity matrix.

    >>> import harp.numpy as hnp
    >>> hnp.identity(2)
    Array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=dtype)


def tri(N: object, M: object = None, k: int = 0, dtype: DTypeLike = float) -> Array:
    """An N by M matrix with ones at and below the k-th diagonal and zeros above it.

    >>> import harp.numpy as hnp
    >>> hnp.tri(3)
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    return _by_diagonal(N, M, k, as_dtype(dtype), lambda i, j: _less_equal(j, i))


def _by_diagonal(rows: object, columns: object, k: int, dtype: DType, test: object) -> Array:
    shape = to_shape((rows, rows if columns is None else columns))
    row, column = Position(loop(0, shape[0]) + bound(k)), Position(loop(1, shape[1]))
    assert callable(test)
    return from_positions(shape, select(test(row, column), const(1, dtype), const(0, dtype)))


def tril(m: object, k: int = 0) -> Array:
    """The last two axes with zeros above the k-th diagonal. Raises ShapeError for fewer than two axes.

    >>> import harp.numpy as hnp
    >>> hnp.tril(hnp.ones((3, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    return _triangle(m, lambda i, j: _less_equal(j, i), k)


def triu(m: object, k: int = 0) -> Array:
    """The last two axes with zeros below the k-th diagonal. Raises ShapeError for fewer than two axes.

    >>> import harp.numpy as hnp
    >>> hnp.triu(hnp.ones((3, 3)), k=1)
    Array([[0., 1., 1.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    return _triangle(m, _less_equal, k)


def _triangle(x: object, test: object, k: int) -> Array:
    array = as_array(x)
    if array.ndim < 2:
        raise ShapeError(f"tril and triu need at least two axes, not {array.ndim}{where()}")
    node = node_of(array)
    shape = resolve_all(node.shape)
    rank = len(shape)
    row, column = Position(loop(rank - 2, shape[-2]) + bound(k)), Position(loop(rank - 1, shape[-1]))
    assert callable(test)
    kept = select(test(row, column), Operand(node.dtype, 0), const(0, node.dtype))
    return emit(MapReduce(shape, (node,), kept), array.weak)


def result_type(*values: object) -> np.dtype[np.generic]:
    """The dtype in which arrays, numbers and dtypes meet.

    >>> result_type("int32", 1.5)
    dtype('float32')
    """
    if not values:
        raise ArgumentError(f"result_type needs at least one array, number or dtype{where()}")
    plain = [v if isinstance(v, (Array, np.ndarray, np.generic, *Scalar)) else _of_dtype(v) for v in values]
    return meeting_dtype(plain)[0].numpy


def _of_dtype(value: object) -> Array:
    return from_numpy(np.empty(0, as_dtype(value).numpy))
