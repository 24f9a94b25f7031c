"""Functions of integer orders, by their recurrences: Bessel functions, and spherical harmonics."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from harp.errors import ArgumentError, DTypeError
from harp.numpy.creation import arange, zeros_like
from harp.numpy.elementwise import abs, cos, maximum, sin, sqrt, where
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import broadcast_arrays
from harp.numpy.reductions import max as max_
from harp.scipy.special.bessel import j0, j1
from harp.scipy.special.formulas import of_doubles
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_integer, common_dtype
from harp.trace.scalar.dtypes import bool_, complex_of, f64, inexact
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.control.scan import fori_loop, scan

_MORE = 12  # orders above the last one from which the ratios start, beside those that grow with its root


def bessel_jn(z: object, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of orders 0 to v, a number of Python, along a new first axis.

    Orders up to |z| are by the recurrence upwards from `j0` and `j1`, those above by ratios, which are a continued
    fraction; `n_iter` changes nothing. Raises ArgumentError for a negative v, DTypeError for complex numbers.

    >>> bessel_jn(1.0, v=2)
    Array([0.76519769, 0.44005059, 0.11490348])
    """
    last = as_integer("v of bessel_jn", v)
    if last < 0:
        raise ArgumentError(f"v of bessel_jn is 0 or more, not {last}{place()}")
    return of_doubles(partial(_orders, last), z)


@partial(custom_jvp, nondiff_argnums=(0,))
def _orders(last: int, z: Array) -> Array:
    size = abs(z)
    start = last + _MORE + math.ceil(8 * last ** (1 / 3))

    def below(ratio: Array, k: Array) -> tuple[Array, Array]:
        """J(k) / J(k - 1), where k is above |z|."""
        ratio = where(k > size, size / (2 * k - ratio * size), 0)
        return ratio, ratio

    _, ratios = scan(below, zeros_like(size), arange(start, 0, -1, dtype=f64))

    def above(state: tuple[Array, Array], given: tuple[Array, Array]) -> tuple[Any, Array]:
        """From J(k - 2) and J(k - 1) to J(k)."""
        (two, one), (k, ratio) = state, given
        up = where(k == 1, j1(size), (2 * (k - 1) / where(size == 0, 1, size)) * one - two)
        value = where(k > size, one * ratio, up)
        return (one, value), value

    first = j0(size)
    _, rest = scan(above, (zeros_like(first), first), (arange(1, last + 1, dtype=f64), ratios[::-1][:last]))
    values = concatenate((first[None], rest))
    odd = (arange(last + 1) % 2 == 1).reshape((-1, *(1,) * z.ndim))
    return where(odd & (z < 0), -values, values)


@_orders.defjvp
def _orders_tangent(last: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """J'(k) is half of J(k - 1) - J(k + 1), of which J(-1) is -J(1)."""
    more: Array = _orders(last + 1, *primals)
    before = concatenate((-more[1:2], more[:-2]))
    return more[:-1], 0.5 * (before - more[1:]) * tangents[0]


def sph_harm_y(
    n: object, m: object, theta: object, phi: object, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """Elementwise the spherical harmonic of degree n and order m at the polar angle theta and the azimuth phi: complex.

    Normalised associated Legendre functions are computed upwards from the order, as many steps as the largest degree,
    which may be data (NIST Handbook of Mathematical Functions, 14.10 and 14.30); `n_max` changes nothing. It is 0 where
    |m| is above n. Raises ArgumentError for `diff_n`: `harp.jvp` and `harp.grad` give derivatives by the angles.

    >>> sph_harm_y(1, 1, 0.5, 0.0)
    Array(-0.16563872+0.j)
    """
    if diff_n not in (None, 0):
        raise ArgumentError(f"diff_n of sph_harm_y is not there: take harp.jvp or harp.grad{place()}")
    return _harmonic(*map(as_array, (n, m, theta, phi)))


def _harmonic(n: Array, m: Array, theta: Array, phi: Array) -> Array:
    for name, given in (("n", n), ("m", m)):
        if given.kind.is_inexact or given.kind is bool_:
            raise DTypeError(f"{name} of sph_harm_y is given integers, not {given.dtype}{place()}")
    result, _ = common_dtype((theta, phi))
    if result.is_complex:
        raise DTypeError(f"the angles of sph_harm_y are real numbers, not {result.name}{place()}")
    result = inexact(result)
    n, m, theta, phi = broadcast_arrays(n, m, astype(theta, f64), astype(phi, f64))
    order, x, s = abs(m), cos(theta), abs(sin(theta))

    def step(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """The function of degree k, given those of k - 1 and k - 2; below the order, that of order k."""
        one, two = state
        k = astype(as_array(k), f64)
        diagonal = -sqrt((2 * k + 1) / (2 * k)) * s * one
        before = maximum((k - 1) * (k - 1) - order * order, 0.0) / maximum(4 * (k - 1) * (k - 1) - 1, 1.0)
        scale = sqrt((4 * k * k - 1) / maximum(k * k - order * order, 1.0))
        up = scale * (x * one - sqrt(before) * two)
        value = where(k <= order, diagonal, up)
        return where(k <= n, value, one), where(k <= n, where(k <= order, 0.0, one), two)

    start = 0 * theta + 0.5 / math.sqrt(math.pi), 0 * theta
    value = fori_loop(1, max_(n, initial=0) + 1, step, start)[0]
    value = where(order <= n, where((m < 0) & (m % 2 == 1), -value, value), 0.0)
    angle = m * phi
    return astype(value * cos(angle) + 1j * (value * sin(angle)), complex_of(result))
