"""SciPy's matrices of a structure."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

from harp.errors import ArgumentError, ShapeError
from harp.numpy.complexes import conj
from harp.numpy.creation import arange, eye, ones, zeros
from harp.numpy.cumulative import cumsum
from harp.numpy.elementwise import abs, clip, exp, less_equal, maximum, minimum, sqrt, where
from harp.numpy.joining import concatenate, roll
from harp.numpy.linalg.products import matmul
from harp.numpy.manipulation import flip, matrix_transpose
from harp.numpy.numerical import as_inexact
from harp.numpy.padding import pad
from harp.numpy.stacking import atleast_2d
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_integer
from harp.trace.index.division import minimum as least
from harp.trace.scalar.dtypes import as_dtype, f64
from harp.trace.sizes.size import Size, require_at_least_one, resolve, to_index, wrap
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.transforms.control.scan import scan


def toeplitz(c: object, r: object = None) -> Array:
    """The matrix whose diagonals have one value each: `c` is its first column, and `r` its first row, without the
    first element; by default the conjugate of `c`.

    >>> import numpy as np
    >>> toeplitz(np.array([1, 2, 3]), np.array([0, 8]))
    Array([[1, 8],
           [2, 1],
           [3, 2]])
    """
    column = as_array(c)
    row = conj(column) if r is None else as_array(r)
    if column.ndim < 1 or row.ndim < 1:
        raise ShapeError(f"c and r of toeplitz have axes, a column and a row{place()}")
    m, n = column.shape[-1], row.shape[-1]
    values = concatenate((flip(column, -1), row[..., 1:]), axis=-1)
    return values[..., m - 1 - arange(m)[:, None] + arange(n)]


def block_diag(*arrs: object) -> Array:
    """The matrix with these matrices along its diagonal, and zeros elsewhere; vectors are rows.

    >>> import numpy as np
    >>> block_diag(np.array([[1, 2]]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]])
    """
    blocks: list[Any] = [atleast_2d(array) for array in (arrs or (zeros((1, 0)),))]
    rows, before, total = [], 0, sum(block.shape[1] for block in blocks)
    for block in blocks:
        if block.ndim > 2:
            raise ShapeError(f"block_diag takes matrices, not arrays with {plural(block.ndim, 'axes')}{place()}")
        rows.append(pad(block, ((0, 0), (before, total - before - block.shape[1]))))
        before = before + block.shape[1]
    return concatenate(rows)


def _row(name: str, value: object) -> Array:
    """A vector, or one for each matrix of a batch. Raises ShapeError for a number."""
    array = as_array(value)
    if array.ndim < 1:
        raise ShapeError(f"{name} is given vectors, not a number{place()}")
    return array


def hankel(c: object, r: object = None) -> Array:
    """The matrix whose diagonals from the left to the bottom have one value each: `c` is its first column, and `r` its
    last row, without the first element; by default zeros.

    >>> import numpy as np
    >>> hankel(np.array([1, 2, 3]), np.array([0, 8]))
    Array([[1, 2],
           [2, 3],
           [3, 8]])
    """
    column = _row("hankel", c)
    row = 0 * column if r is None else _row("hankel", r)
    values = concatenate((column, row[..., 1:]), axis=-1)
    return values[..., arange(column.shape[-1])[:, None] + arange(row.shape[-1])]


def circulant(c: object) -> Array:
    """The matrix whose columns are a vector, moved on by one from column to column.

    >>> import numpy as np
    >>> circulant(np.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]])
    """
    column = _row("circulant", c)
    places = arange(column.shape[-1])
    return column[..., (places[:, None] - places) % column.shape[-1]]


def fiedler(a: object) -> Array:
    """The distances between all numbers of a vector.

    >>> import numpy as np
    >>> fiedler(np.array([1, 4]))
    Array([[0, 3],
           [3, 0]])
    """
    values = _row("fiedler", a)
    return abs(values[..., :, None] - values[..., None, :])


def _coefficients(name: str, a: object) -> Array:
    values = _row(name, a)
    require_at_least_one(resolve(node_of(values).shape[-1]), lambda: f"{name} is given at least one coefficient")
    return as_inexact(values)


def companion(a: object) -> Array:
    """The matrix whose eigenvalues are the roots of a polynomial, whose coefficients are given from the highest on.

    >>> import numpy as np
    >>> companion(np.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]])
    """
    values = _coefficients("companion", a)
    n = values.shape[-1] - 1
    first = -values[..., None, 1:] / values[..., 0, None, None]
    return where(arange(n)[:, None] == 0, first, eye(n, k=-1, dtype=values.kind))


def fiedler_companion(a: object) -> Array:
    """The matrix of five diagonals whose eigenvalues are the roots of a polynomial, whose coefficients are given from
    the highest on.

    M. Fiedler, A note on companion matrices (2003).

    >>> import numpy as np
    >>> fiedler_companion(np.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]])
    """
    values = _coefficients("fiedler_companion", a)
    n = values.shape[-1] - 1
    i, j = arange(n)[:, None], arange(n)
    even = i % 2 == 0
    places = minimum(maximum(i, j) + 1, n)
    above = even & (abs(i - j) == 1) | (i + j == 0)
    ones_at = even & (j == i + 2) | ~even & (i == j + 2) | (i == 1) & (j == 0)
    return where(above, -values[..., places] / values[..., 0, None, None], where(ones_at, 1, 0))


def leslie(f: object, s: object) -> Array:
    """The matrix of a population by ages: births by age are its first row, and shares of survivors stand below its
    diagonal, one fewer.

    >>> import numpy as np
    >>> leslie(np.array([0.1, 2.0]), np.array([0.5]))
    Array([[0.1, 2. ],
           [0.5, 0. ]])
    """
    births, survivors = _row("leslie", f), _row("leslie", s)
    n = births.shape[-1]
    if survivors.shape[-1] != n - 1:
        raise ShapeError(f"leslie is given {n} births, and {n - 1} survivors, not {survivors.shape[-1]}{place()}")
    below = survivors[..., :, None] * eye(n - 1, n, dtype=survivors.kind)
    return concatenate((births[..., None, :], below), axis=-2)


def hilbert(n: int) -> Array:
    """The matrix of 1/(i + j + 1).

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333333]])
    """
    return 1 / (arange(n)[:, None] + arange(n) + 1.0)


def invhilbert(n: int) -> Array:
    """The inverse of `hilbert(n)`, whose elements are integers: exact below 2**53.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]])
    """

    def step(value: Array, k: Array) -> tuple[Array, Array]:
        return value * ((n - k) * (n + k)) / (k * k), value

    _, factors = scan(step, astype(as_array(n), f64), 1 + arange(n, dtype=f64))
    i, j = arange(n)[:, None], arange(n)
    return where((i + j) % 2 == 0, 1, -1) * (factors[:, None] * factors / (i + j + 1))


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of binomial coefficients: `kind` "symmetric", which is None, has (i + j)! / (i! j!), "lower" has
    i! / (j! (i - j)!), "upper" its transpose. In float64, exact below 2**53. Raises ArgumentError for another kind.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]])
    """
    if _kind("pascal", kind) == "symmetric":
        rows: Array = scan(lambda row, _: (cumsum(row), row), ones(n), length=n)[1]
        return rows
    lower = _binomials(n)
    return lower if kind == "lower" else matrix_transpose(lower)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`, whose elements are integers: exact below 2**53.

    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]])
    """
    chosen, lower = _kind("invpascal", kind), _binomials(n)
    signs = where((arange(n)[:, None] + arange(n)) % 2 == 0, 1, -1)
    if chosen == "symmetric":
        return signs * matmul(matrix_transpose(lower), lower)
    return signs * (lower if chosen == "lower" else matrix_transpose(lower))


def _kind(name: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ArgumentError(f"kind of {name} is 'symmetric', 'lower' or 'upper', not {kind!r}{place()}")
    return kind or "symmetric"


def _binomials(n: int) -> Array:
    """The lower triangle, row by row."""

    def step(row: Array, _: object) -> tuple[Array, Array]:
        return row + where(arange(n) == 0, 0, roll(row, 1)), row

    rows: Array = scan(step, eye(1, n)[0], length=n)[1]
    return rows


def dft(n: int, scale: str | None = None, *, dtype: Any = "complex128") -> Array:
    """The matrix by which a product is the Fourier transform; divided by n or its root by `scale` "n" or "sqrtn".

    >>> dft(2).real.round()
    Array([[ 1.,  1.],
           [ 1., -1.]])
    """
    if scale not in (None, "n", "sqrtn"):
        raise ArgumentError(f"scale of dft is None, 'n' or 'sqrtn', not {scale!r}{place()}")
    turns = (arange(n)[:, None] * arange(n)) % n  # exact, where the products of floats are not
    size = 1 if scale is None else n if scale == "n" else n**0.5
    return astype(exp(turns * (-2j * math.pi / n)) / size, as_dtype(dtype))


def hadamard(n: int, dtype: Any = "int64") -> Array:
    """The matrix of 1 and -1 with orthogonal rows, for a power of 2. Raises ArgumentError for other sizes.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]])
    """
    size = as_integer("n of hadamard", n)
    if size < 1 or size & (size - 1):
        raise ArgumentError(f"n of hadamard is a power of 2, not {size}{place()}")
    both = arange(size)[:, None] & arange(size)
    for shift in (32, 16, 8, 4, 2, 1):
        both = both ^ (both >> shift)
    return astype(1 - 2 * (both & 1), as_dtype(dtype))


def helmert(n: int, full: bool = False) -> Array:
    """The orthonormal rows that compare each number with those before it; with `full` first that of the mean.

    >>> helmert(2).round(4)
    Array([[ 0.7071, -0.7071]])
    """
    k, j = arange(n, dtype=f64)[:, None], arange(n)
    rows = where(less_equal(j, k - 1), 1, where(j == k, -k, 0)) / sqrt(where(k == 0, 1, k * (k + 1)))
    return where(k == 0, n**-0.5, rows) if full else rows[1:]


def convolution_matrix(a: object, n: int | Size, mode: str = "full") -> Array:
    """The matrix whose product with a vector of n numbers is `numpy.convolve(a, vector, mode)`.

    >>> import numpy as np
    >>> convolution_matrix(np.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]])
    """
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"mode of convolution_matrix is 'full', 'same' or 'valid', not {mode!r}{place()}")
    values = _row("convolution_matrix", a)
    columns: Any = n if isinstance(n, Size) else as_integer("n of convolution_matrix", n)
    if not isinstance(columns, Size) and columns < 1:
        raise ArgumentError(f"n of convolution_matrix is at least 1, not {columns}{place()}")
    sizes = resolve(node_of(values).shape[-1]), resolve(to_index(columns))
    for size, name in zip(sizes, "an", strict=True):
        require_at_least_one(size, partial("{} of convolution_matrix is empty".format, name))
    m, both = values.shape[-1], cast(int, wrap(least(*sizes) - 1))
    before, after = {"full": (0, 0), "same": (both // 2, both - both // 2), "valid": (both, both)}[mode]
    index = before + arange(m + columns - 1 - before - after)[:, None] - arange(columns)
    return where((index >= 0) & (index < m), values[..., clip(index, 0, m - 1)], 0)
