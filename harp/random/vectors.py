"""Random vectors and matrices: normal with a covariance, in a ball, and orthogonal."""

from __future__ import annotations

from collections.abc import Callable

from harp.errors import ArgumentError, ShapeError
from harp.numpy.elementwise import abs, exp, log, maximum, sqrt
from harp.numpy.linalg.eigen import eigh
from harp.numpy.linalg.factors import cholesky, qr
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.singular import svd
from harp.numpy.manipulation import expand_dims, matrix_transpose
from harp.numpy.reductions import sum
from harp.random.continuous import generalized_normal
from harp.random.floats import common_float, float_dtype, spread
from harp.random.gamma import exponential
from harp.random.normal import normal
from harp.random.streams import derived
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_count, broadcast_shapes, to_shape
from harp.trace.scalar.dtypes import DTypeLike, as_dtype, real_of
from harp.trace.sizes.size import wrap
from harp.trace.source_locations import where

_FACTORS: dict[str, Callable[[Array], Array]] = {
    "cholesky": cholesky,
    "eigh": lambda a: _scaled(*eigh(a)),
    "svd": lambda a: _scaled(*svd(a, full_matrices=False)[1::-1]),
}


def _scaled(values: Array, vectors: Array) -> Array:
    return vectors * sqrt(maximum(values, 0.0))[..., None, :]


def multivariate_normal(
    key: object,
    mean: object,
    cov: object,
    shape: object = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Normal vectors along a last axis, with a mean (..., n) and a covariance (..., n, n).

    The axes before broadcast, or are those of `shape`. A factor of the covariance is its Cholesky factor, or of "eigh"
    or "svd", which take singular matrices, too; derivatives flow to the mean and, through the factor, to the
    covariance. Raises ShapeError for other axes, ArgumentError for another method, DTypeError for other dtypes.

    >>> import harp, harp.numpy as hnp
    >>> harp.random.multivariate_normal(harp.random.key(0), hnp.zeros(2), hnp.eye(2), 5).shape
    (5, 2)
    """
    middle, matrix = as_array(mean), as_array(cov)
    if method not in _FACTORS:
        raise ArgumentError(f"method of multivariate_normal is one of {', '.join(_FACTORS)}, not {method!r}{where()}")
    if not middle.ndim or matrix.ndim < 2 or not middle.shape[-1] == matrix.shape[-1] == matrix.shape[-2]:
        raise ShapeError(
            f"multivariate_normal takes a mean of shape (..., n) and a covariance of shape (..., n, n), not "
            f"{middle.shape} and {matrix.shape}{where()}"
        )
    target = common_float("multivariate_normal", middle, matrix, dtype=dtype)
    (*rest, n), (*batch, _, _) = node_of(middle).shape, node_of(matrix).shape
    sizes = (*(broadcast_shapes([tuple(rest), tuple(batch)]) if shape is None else to_shape(shape)), n)
    factor = matrix_transpose(_FACTORS[method](spread(matrix, target, (*batch, n, n))))
    drawn = normal(key, sizes, target)
    moved = matmul(expand_dims(drawn, -2), factor)[..., 0, :] if batch else matmul(drawn, factor)
    return spread(middle, target, sizes) + moved


def ball(key: object, d: object, p: float = 2, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Points (..., d), evenly distributed over the unit ball of the norm sum(abs(x)**p)**(1/p).

    F. Barthe, O. Guedon, S. Mendelson, A. Naor: "A probabilistic approach to the geometry of the l_p^n-ball", Ann.
    Probab. 33 (2005).

    >>> import harp
    >>> harp.random.ball(harp.random.key(0), 3, shape=5).shape
    (5, 3)
    """
    target, sizes = float_dtype("ball", dtype), to_shape(shape)
    along = generalized_normal(derived(key, 1), p, (*sizes, as_count("d", d)), target)
    total = sum(abs(along) ** p, axis=-1) + exponential(derived(key, 2), sizes, target)
    return along * exp(log(total) / -p)[..., None]


def orthogonal(key: object, n: object, shape: object = (), dtype: DTypeLike = float, m: object = None) -> Array:
    """Matrices (..., n, m), square without `m`, with orthonormal rows or columns, evenly distributed (Haar's measure).

    Unitary for complex dtypes. F. Mezzadri: "How to generate random matrices from the classical compact groups",
    Notices AMS 54 (2007). Raises DTypeError for other dtypes than float32, float64 and the complex ones of these.

    >>> import harp
    >>> harp.random.orthogonal(harp.random.key(0), 3, 5, m=2).shape
    (5, 3, 2)
    """
    target, rows = as_dtype(dtype), as_count("n", n)
    columns = rows if m is None else as_count("m", m)
    wide = wrap(rows) < wrap(columns)
    sizes = (*to_shape(shape), *((columns, rows) if wide else (rows, columns)))
    float_dtype("orthogonal", real_of(target) if target.is_complex else target)
    q, r = qr(normal(key, sizes, target))
    signs = diagonal(r)
    result = q * (signs / abs(signs))[..., None, :]
    return matrix_transpose(result) if wide else result
