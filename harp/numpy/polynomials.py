"""Polynomials, as vectors of their coefficients, the highest power first. `polyval` is in `numerical`.

Leading zeros stay: how many there are is known only when a program runs.
"""

from __future__ import annotations

import numpy as np

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import arange, ones, zeros
from harp.numpy.elementwise import multiply, sqrt, square
from harp.numpy.joining import concatenate
from harp.numpy.linalg.eigen import eigvals
from harp.numpy.linalg.products import matmul, outer, promoted
from harp.numpy.linalg.singular import lstsq
from harp.numpy.linalg.systems import inv
from harp.numpy.manipulation import broadcast_to, ravel
from harp.numpy.numerical import as_inexact, as_row, vander
from harp.numpy.reductions import sum as sum_
from harp.numpy.types import finfo
from harp.trace.array.arithmetic import add, divide, subtract
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_integer, known_numbers
from harp.trace.index.division import relu
from harp.trace.scalar import dtypes
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve, unify, wrap
from harp.trace.source_locations import where


def _equally_long(name: str, *values: object) -> list[Array]:
    """The coefficients in a common dtype, with zeros in front of the shorter ones."""
    rows = promoted([as_row(name, "coefficients", p if as_array(p).ndim else ravel(p)) for p in values])
    n, m = (resolve(node_of(row).shape[0]) for row in rows)
    missing = wrap(resolve(relu(m - n))), wrap(resolve(relu(n - m)))
    return [concatenate([zeros(k, row.kind), row]) for k, row in zip(missing, rows, strict=True)]


def polyadd(a1: object, a2: object) -> Array:
    """The sum of two polynomials.

    >>> polyadd(arange(2), ones(3))
    Array([1., 1., 2.])
    """
    return add(*_equally_long("polyadd", a1, a2))


def polysub(a1: object, a2: object) -> Array:
    """The difference of two polynomials.

    >>> polysub(ones(3), arange(2))
    Array([1., 1., 0.])
    """
    return subtract(*_equally_long("polysub", a1, a2))


def polydiv(u: object, v: object) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    The remainder has as many coefficients as `u`, the first ones 0. In a traced function the numbers of coefficients
    are fixed, by a guard. Raises ShapeError for no coefficients.

    >>> polydiv(ones(3), ones(2))
    (Array([1., 0.]), Array([0., 0., 1.]))
    """
    rest, divisor = promoted([as_inexact(as_row("polydiv", "coefficients", p)) for p in (u, v)])
    n, m = int(rest.shape[0]), int(divisor.shape[0])
    if not n or not m:
        raise ShapeError(f"polydiv needs polynomials with at least one coefficient{where()}")
    quotient = []
    for k in range(n - m + 1):
        quotient.append(divide(rest[k], divisor[0])[None])
        less = subtract(rest[k + 1 : k + m], multiply(quotient[-1], divisor[1:]))
        rest = concatenate([rest[:k], zeros(1, rest.kind), less, rest[k + m :]])
    return concatenate(quotient) if quotient else zeros(1, rest.kind), rest


def _order(name: str, m: object) -> int:
    order = as_integer(f"m of {name}", m)
    if order < 0:
        raise ArgumentError(f"m of {name} is at least 0, not {order}{where()}")
    return order


def polyder(p: object, m: object = 1) -> Array:
    """The m-th derivative of a polynomial.

    >>> polyder(arange(4))
    Array([0, 2, 2])
    """
    row = as_row("polyder", "coefficients", p)
    for _ in range(_order("polyder", m)):
        exponents = arange(row.shape[0] - 1, 0, -1)
        row = multiply(row[:-1], exponents.astype(row.kind) if row.kind.is_inexact else exponents)
    return row


def polyint(p: object, m: object = 1, k: object = 0) -> Array:
    """The m-th antiderivative of a polynomial, with constants of integration `k`: one, or one for each integral.

    >>> polyint(ones(2))
    Array([0.5, 1. , 0. ])
    """
    row, order = as_inexact(as_row("polyint", "coefficients", p)), _order("polyint", m)
    constants = broadcast_to(as_array(np.asarray(k) if isinstance(k, (list, tuple)) else k), (order,))
    for integral in range(order):
        powers = divide(row, arange(row.shape[0], 0, -1).astype(dtypes.real_of(row.kind)))
        row = concatenate([powers, constants[integral : integral + 1].astype(row.kind)])
    return row


def poly(seq_of_zeros: object) -> Array:
    """The polynomial with these roots, and 1 first; of a square matrix, its characteristic polynomial.

    In a traced function the number of roots is fixed, by a guard. Complex roots give complex coefficients.

    >>> poly(1 + arange(2))
    Array([ 1., -3.,  2.])
    """
    given = as_array(seq_of_zeros)
    found = as_inexact(as_row("poly", "roots, or a square matrix,", eigvals(given) if given.ndim == 2 else given))
    result = ones(1, found.kind)
    for k in range(int(found.shape[0])):
        result = concatenate([result, zeros(1, found.kind)]) - concatenate([zeros(1, found.kind), result * found[k]])
    return result


def roots(p: object, *, strip_zeros: bool = True) -> Array:
    """The roots, complex, of a polynomial: the eigenvalues of its companion matrix.

    Leading zeros are left out where the numbers are known; in a traced function the first coefficient must not be 0.

    >>> roots(ones(2))
    Array([-1.+0.j])
    """
    row = as_inexact(as_row("roots", "coefficients", p))
    known = known_numbers(row)
    row = row if known is None or not strip_zeros else as_array(np.trim_zeros(known, "f"))
    if not ask(Relation.NONNEGATIVE, resolve(node_of(row).shape[0]) - 2, "roots asks whether there are any"):
        return zeros(0, dtypes.complex_of(row.kind))
    places = arange(row.shape[0] - 1)
    below = (places[:, None] == places[None] + 1).astype(row.kind)
    return eigvals(concatenate([-divide(row[1:], row[0])[None], below[1:]]))


def polyfit(
    x: object,
    y: object,
    deg: object,
    rcond: object = None,
    full: bool = False,
    w: object = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` that is nearest to points (x, y) by least squares, with weights `w`.

    `y` is a vector, or a matrix of columns. With `full` there are also the sums of squares that are left, the rank of
    the scaled matrix of powers, its singular values and `rcond`; with `cov` the covariances of the coefficients,
    "unscaled" without the factor chi**2 / (points - coefficients). Raises ShapeError for sizes that do not fit.

    >>> polyfit(arange(3), 2 * arange(3), 1).round(6) + 0.0
    Array([2., 0.])
    """
    count = as_integer("deg of polyfit", deg) + 1
    places, values = promoted((as_inexact(as_row("polyfit", "places", x)), as_inexact(y)))
    if count < 1 or values.ndim not in (1, 2):
        raise ArgumentError(f"polyfit takes a degree from 0 on, and values of one or two axes{where()}")
    size = unify(node_of(places).shape[0], node_of(values).shape[0], lambda: "polyfit needs a value for each place")
    powers = vander(places, count)
    if w is not None:
        weights = as_row("polyfit", "weights", w)
        unify(size, node_of(weights).shape[0], lambda: "polyfit needs a weight for each place")
        powers = multiply(powers, weights[:, None])
        values = multiply(values, weights if values.ndim == 1 else weights[:, None])
    scale = sqrt(sum_(square(powers), 0))
    powers = divide(powers, scale)
    rcond = places.shape[0] * finfo(powers.kind).eps if rcond is None else rcond
    found, left, rank, singular = lstsq(powers, values, rcond)
    found = divide(found.T, scale).T
    if full:
        return found, left, rank, singular, as_array(rcond)
    if not cov:
        return found
    covariances = divide(inv(matmul(powers.T, powers)), outer(scale, scale))
    factor = as_array(1.0) if cov == "unscaled" else divide(left, places.shape[0] - count)
    return found, multiply(covariances[..., None] if values.ndim == 2 else covariances, factor)
