"""Choosing among arrays, and arrays of positions: select, piecewise, diagonals, grids of indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from harp.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from harp.numpy.checks import as_positions, require_held, require_in_new_array
from harp.numpy.creation import arange, zeros
from harp.numpy.elementwise import clip, logical_not, remainder
from harp.numpy.elementwise import where as choose
from harp.numpy.joining import stack
from harp.numpy.linalg.products import diagonal
from harp.numpy.manipulation import broadcast_to, ravel, reshape
from harp.numpy.reductions import any as any_
from harp.numpy.sorting import of_one_shape
from harp.trace.array.arithmetic import add, floor_divide, multiply
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import (
    as_array,
    as_integer,
    emit,
    join_sizes,
    known_numbers,
    map_,
    require_known,
    to_shape,
)
from harp.trace.eval.intervals import limits
from harp.trace.graph import view
from harp.trace.index.polynomial import loop
from harp.trace.scalar.dtypes import DTypeLike, NDArray, i64, u64
from harp.trace.scalar.expr import const
from harp.trace.sizes.size import resolve, unify, wrap
from harp.trace.source_locations import plural, where


def select(condlist: Sequence[object], choicelist: Sequence[object], default: object = 0) -> Array:
    """Elementwise the choice of the first condition that holds, else the default; all broadcast.

    Raises ArgumentError where there are not as many conditions as choices.

    >>> import harp.numpy as hnp
    >>> x = hnp.arange(4)
    >>> select([x < 1, x > 2], [x - 10, x * 10], x)
    Array([-10,   1,   2,  30])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"select takes a choice for each condition, at least one: {len(condlist)} conditions, {len(choicelist)} "
            f"choices{where()}"
        )
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = choose(condition, choice, result)
    return as_array(result)


def _conditions(x: Array, given: object) -> list[Array]:
    """The conditions of piecewise: bools without axes in a row are one condition, unless `x` has no axes either."""
    if isinstance(given, (list, tuple)):
        if x.ndim and len(given) > 1 and all(isinstance(one, (bool, np.bool_)) for one in given):
            given = (as_array(np.asarray(given)),)
        tests = [as_array(one) for one in given]
    else:
        whole = as_array(given)
        tests = [whole] if whole.ndim == 0 or (whole.ndim == 1 and x.ndim) else list(whole)
    return [of_one_shape("piecewise", x, test)[1] if test.ndim else test for test in tests]


def piecewise(x: object, condlist: object, funclist: Sequence[object], *args: object) -> Array:
    """Elementwise the function of the last condition that holds; one function more is for where none does, else 0.

    Conditions have the shape of `x`, or no axes; one need not be in a list. Functions are called with all of `x` and
    further arguments, or are numbers. The dtype is that of `x`. Raises ArgumentError for another number of functions,
    ShapeError for conditions of another shape, IntegerRangeError for NaN among integers.

    >>> import harp.numpy as hnp
    >>> piecewise(hnp.asarray([-2.0, 3.0]), [hnp.asarray([True, False])], [lambda v: -v, lambda v: v * v])
    Array([2., 9.])
    """
    array = as_array(x)
    tests, pieces = _conditions(array, condlist), list(funclist)
    if len(pieces) not in (len(tests), len(tests) + 1):
        raise ArgumentError(
            f"piecewise takes a function for each of {len(tests)} conditions, or one more, not {len(pieces)}{where()}"
        )
    otherwise = pieces.pop() if len(pieces) > len(tests) else 0

    def value(piece: object) -> object:
        if not callable(piece):
            require_held("a number of piecewise", piece, array.kind)
        found = piece(array, *args) if callable(piece) else piece
        return map_(lambda e: e, found, to=array.kind)

    result = value(otherwise)
    for test, piece in zip(tests, pieces, strict=True):
        result = choose(test, value(piece), result)
    return broadcast_to(result, array.shape)


def diag(v: object, k: int = 0) -> Array:
    """A matrix with a vector on its k-th diagonal, or the k-th diagonal of a matrix. Raises ShapeError for others.

    >>> import harp.numpy as hnp
    >>> diag(hnp.asarray([1, 2]))
    Array([[1, 0],
           [0, 2]])
    """
    array, offset = as_array(v), as_integer("k", k)
    if array.ndim == 2:
        return diagonal(array, offset)
    if array.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, not {plural(array.ndim, 'axes')}{where()}")
    node = node_of(array)
    size = resolve(resolve(node.shape[0]) + abs(offset))
    row, column = loop(0, size), loop(1, size)
    at = row if offset >= 0 else column
    right = column - row - offset  # of the diagonal
    conditions = (at, resolve(node.shape[0]) - 1 - at, right, -right)
    return emit(view.view(node, (size, size), (at,), conditions, const(0, node.dtype)))


def diagflat(v: object, k: int = 0) -> Array:
    """A matrix with all elements of an array on its k-th diagonal.

    >>> import harp.numpy as hnp
    >>> hnp.diagflat(hnp.asarray([1, 2]))
    Array([[1, 0],
           [0, 2]])
    """
    return diag(ravel(v), k)


def fill_diagonal(a: object, val: object, *, inplace: bool = False) -> Array:
    """The array, of two equal axes, with this value on its diagonal: arrays do not change, so it is returned.

    A vector has one value for each row. Raises ArgumentError for `inplace=True`, ShapeError for other than two axes and
    for vectors of another length, IntegerRangeError for NaN among integers.

    >>> import harp.numpy as hnp
    >>> fill_diagonal(hnp.zeros((2, 2)), 5.0)
    Array([[5., 0.],
           [0., 5.]])
    """
    require_in_new_array("fill_diagonal", inplace)
    array = as_array(a)
    if array.ndim != 2:
        raise ShapeError(f"fill_diagonal takes a matrix, not {plural(array.ndim, 'axes')}{where()}")
    rows, columns = array.shape
    here = arange(rows)[:, None] == arange(columns)[None]
    require_held("the value of fill_diagonal", val, array.kind)
    given = map_(lambda e: e, val, to=array.kind)
    if given.ndim > 1:
        raise ShapeError(f"fill_diagonal takes a number or a vector, not {plural(given.ndim, 'axes')}{where()}")
    if given.ndim:
        sizes = node_of(given).shape[0], node_of(array).shape[0]
        join_sizes(*sizes, lambda: "the values of fill_diagonal are one, or one for each row of x")
    return choose(here, given[:, None] if given.ndim else given, array)


def indices(dimensions: object, dtype: DTypeLike = i64, sparse: bool = False) -> Array | tuple[Array, ...]:
    """The positions along each axis of this shape, in one array with an axis for them in front; with `sparse` arrays of
    size 1 along the other axes.

    >>> indices((2, 2)).shape
    (2, 2, 2)
    """
    shape = to_shape(dimensions)
    rank = len(shape)
    whole = (*map(wrap, shape),)
    thin = [
        reshape(arange(size, dtype=dtype), (*(1,) * axis, -1, *(1,) * (rank - 1 - axis)))
        for axis, size in enumerate(whole)
    ]
    if sparse:
        return tuple(thin)
    return stack([broadcast_to(part, whole) for part in thin]) if thin else zeros((0,), dtype)


def ix_(*sequences: object) -> tuple[Array, ...]:
    """Vectors as index arrays of a grid, each along an axis of its own: `x[ix_(rows, columns)]`. Masks as positions.

    Raises ShapeError for arrays of more than one axis, DTypeError for floats.

    >>> import harp.numpy as hnp
    >>> hnp.arange(6).reshape(2, 3)[ix_(hnp.asarray([1]), hnp.asarray([0, 2]))]
    Array([[3, 5]])
    """
    result = []
    for k, sequence in enumerate(sequences):
        array = as_array(np.asarray(sequence) if isinstance(sequence, (list, tuple)) else sequence)
        if array.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, but array {k} has {plural(array.ndim, 'axes')}{where()}")
        if array.dtype == np.bool_:
            array = as_array(np.nonzero(require_known(array, _UNKNOWN))[0])
        elif not array.kind.is_integer:
            known = known_numbers(array)  # no positions are float64 in NumPy
            array = as_array(np.zeros(0, np.int64)) if known is not None and not known.size else array
            array = as_positions(f"array {k} of ix_", array)
        result.append(reshape(array, (*(1,) * k, -1, *(1,) * (len(sequences) - 1 - k))))
    return tuple(result)


_UNKNOWN = (
    "how many positions a mask of ix_ has is known only when the program runs; take harp.numpy.nonzero(mask, size=...) "
    "with a size of your own"
)


def unravel_index(indices: object, shape: object) -> tuple[Array, ...]:
    """Positions in a flattened array of this shape, as positions along each axis.

    Raises IndexOutOfRangeError for a known position outside; in traced functions it means the nearest element. Raises
    DTypeError for floats.

    >>> import harp.numpy as hnp
    >>> unravel_index(hnp.asarray([5, 0]), (2, 3))
    (Array([1, 0]), Array([2, 0]))
    """
    sizes = [wrap(size) for size in to_shape(shape)]
    flat, total = as_array(indices), 1
    for size in sizes:
        total = total * size  # type: ignore[assignment]
    known = known_numbers(flat)
    if known is not None and known.size and isinstance(total, int) and not 0 <= known.min() <= known.max() < total:
        raise IndexOutOfRangeError(f"a position is outside an array of {plural(total, 'elements')}{where()}")
    rest, result = clip(as_positions("the positions of unravel_index", flat), 0, total - 1), []
    for size in reversed(sizes):
        result.append(remainder(rest, size))
        rest = floor_divide(rest, size)
    return tuple(reversed(result))


def ravel_multi_index(multi_index: Sequence[object], dims: object, mode: str = "raise") -> Array:
    """Positions along each axis, as positions in the flattened array of this shape.

    `mode` says what positions outside mean: "clip" the nearest element, "wrap" counts around; "raise" is an error where
    they are known, and clips in traced functions. Raises IndexOutOfRangeError, ArgumentError for other modes,
    DTypeError for floats, ShapeError for a shape with more elements than int64 counts.

    >>> import harp.numpy as hnp
    >>> ravel_multi_index((hnp.asarray([1, 0]), hnp.asarray([2, 0])), (2, 3))
    Array([5, 0])
    """
    sizes = [wrap(size) for size in to_shape(dims)]
    if not isinstance(mode, str) or mode not in ("raise", "clip", "wrap"):
        raise ArgumentError(f"mode is 'raise', 'clip' or 'wrap', not {mode!r}{where()}")
    if len(multi_index) != len(sizes):
        raise ShapeError(
            f"ravel_multi_index has positions for {plural(len(multi_index), 'axes')} of {len(sizes)}{where()}"
        )
    if math.prod(size for size in sizes if isinstance(size, int)) > limits(i64).high:
        raise ShapeError(f"the shape of ravel_multi_index, {dims!r}, has more elements than int64 counts{where()}")
    flat: object = 0
    for axis, (place, size) in enumerate(zip(multi_index, sizes, strict=True)):
        array = as_array(place)
        known = known_numbers(array)
        if mode == "raise" and known is not None and known.size and isinstance(size, int):
            low, high = int(known.min()), int(known.max())
            if low < 0 or high >= size:
                raise IndexOutOfRangeError(
                    f"index {low if low < 0 else high} is out of range for axis {axis} of size {size}{where()}"
                )
        exact = as_positions(f"the positions of ravel_multi_index along axis {axis}", array)
        if mode == "wrap":
            inside = remainder(array if array.kind is u64 else exact, size).astype(i64)
        else:
            inside = clip(exact, 0, size - 1)
        flat = add(multiply(flat, size), inside)
    return as_array(flat)


def diag_indices(n: object, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the main diagonal of an array with `ndim` axes of n elements.

    >>> import harp.numpy as hnp
    >>> hnp.diag_indices(3)
    (Array([0, 1, 2]), Array([0, 1, 2]))
    """
    return (arange(n),) * as_integer("ndim", ndim)


def diag_indices_from(arr: object) -> tuple[Array, ...]:
    """The positions of the main diagonal of an array of equal sizes. Raises ShapeError.

    >>> diag_indices_from(zeros((2, 2)))
    (Array([0, 1]), Array([0, 1]))
    """
    shape = node_of(as_array(arr)).shape
    if len(shape) < 2:
        raise ShapeError(f"diag_indices_from needs at least two axes, not {len(shape)}{where()}")
    for size in shape[1:]:
        unify(shape[0], size, lambda: "diag_indices_from needs axes of equal sizes")
    return diag_indices(wrap(resolve(shape[0])), len(shape))


def tril_indices(n: object, k: int = 0, m: object = None) -> tuple[Array, ...]:
    """The positions of the lower triangle of an n by m matrix; in a traced function n and m are fixed, by a guard.

    >>> import harp.numpy as hnp
    >>> hnp.tril_indices(2)
    (Array([0, 1, 1]), Array([0, 0, 1]))
    """
    return _triangle_indices(np.tril_indices, n, k, m)


def triu_indices(n: object, k: int = 0, m: object = None) -> tuple[Array, ...]:
    """The positions of the upper triangle of an n by m matrix; in a traced function n and m are fixed, by a guard.

    >>> import harp.numpy as hnp
    >>> hnp.triu_indices(2)
    (Array([0, 0, 1]), Array([0, 1, 1]))
    """
    return _triangle_indices(np.triu_indices, n, k, m)


def tril_indices_from(arr: object, k: int = 0) -> tuple[Array, ...]:
    """The positions of the lower triangle of a matrix, as `tril_indices`. Raises ShapeError for other ranks.

    >>> tril_indices_from(zeros((2, 2)))
    (Array([0, 1, 1]), Array([0, 0, 1]))
    """
    return tril_indices(*_matrix_sizes("tril_indices_from", arr, k))


def triu_indices_from(arr: object, k: int = 0) -> tuple[Array, ...]:
    """The positions of the upper triangle of a matrix, as `triu_indices`. Raises ShapeError for other ranks.

    >>> triu_indices_from(zeros((2, 2)))
    (Array([0, 0, 1]), Array([0, 1, 1]))
    """
    return triu_indices(*_matrix_sizes("triu_indices_from", arr, k))


def _matrix_sizes(name: str, x: object, k: int) -> tuple[object, int, object]:
    shape = as_array(x).shape
    if len(shape) != 2:
        raise ShapeError(f"{name} takes a matrix, not {plural(len(shape), 'axes')}{where()}")
    return shape[0], k, shape[1]


def _triangle_indices(find: Callable[..., tuple[NDArray, ...]], n: object, k: int, m: object) -> tuple[Array, ...]:
    rows = as_integer("n", n)
    return tuple(map(as_array, find(rows, as_integer("k", k), rows if m is None else as_integer("m", m))))


def array_equal(a1: object, a2: object, equal_nan: bool = False) -> Array:
    """Whether both have the same shape and elements, as a 0-d bool; other shapes are not equal, and no error.

    >>> import harp.numpy as hnp
    >>> array_equal(hnp.ones(2), hnp.ones(3))
    Array(False)
    """
    x, y = as_array(a1), as_array(a2)
    same = x.ndim == y.ndim and all(m == n for m, n in zip(x.shape, y.shape, strict=True))
    return _all_equal(x, y, equal_nan) if same else as_array(np.bool_(False))


def array_equiv(a1: object, a2: object) -> Array:
    """Whether both broadcast, one to the shape of the other, with equal elements, as a 0-d bool.

    >>> array_equiv(zeros((2, 3)), zeros(3))
    Array(True)
    """
    x, y = as_array(a1), as_array(a2)
    sizes = zip(reversed(x.shape), reversed(y.shape), strict=False)
    fits = all(m == n or m == 1 or n == 1 for m, n in sizes)
    return _all_equal(x, y, False) if fits else as_array(np.bool_(False))


def _all_equal(x: Array, y: Array, equal_nan: bool) -> Array:
    differ = x != y
    if equal_nan:
        differ = differ & ((x == x) | (y == y))
    return logical_not(any_(differ))
