"""Densities of data: sums of normal densities, one at each point."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.activation import logsumexp
from harp.numpy.creation import full
from harp.numpy.elementwise import exp, log, sqrt, square
from harp.numpy.linalg.factors import cholesky
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul, promoted
from harp.numpy.linalg.systems import inv
from harp.numpy.linalg.triangular import solve_triangular
from harp.numpy.manipulation import matrix_transpose, moveaxis, reshape
from harp.numpy.numerical import as_inexact
from harp.numpy.reductions import sum as sum_
from harp.random.discrete import choice
from harp.random.streams import split
from harp.random.vectors import multivariate_normal
from harp.scipy.special import ndtr
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_named
from harp.trace.index.polynomial import ONE
from harp.trace.sizes.size import require_at_least_one, resolve, unify
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.tree import register

_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "scott": lambda neff, d: neff ** (-1 / (d + 4)),
    "silverman": lambda neff, d: (neff * (d + 2) / 4) ** (-1 / (d + 4)),
}


class gaussian_kde:
    """The density of a `dataset` of n points with d coordinates, (d, n) or (n,), by a normal density at each: JAX's
    class.

    Their covariance is that of the data times the square of `bw_method`: a number, a function of this object, "scott"
    (the default) or "silverman". `weights` of the points need not add up to 1. Derivatives flow to all arrays. It is a
    tree. Its functions raise ShapeError for sizes that do not fit, and LinAlgError for data in fewer dimensions, which
    in functions that are traced give NaN.

    Raises ShapeError for less than two points, DTypeError for complex numbers, ArgumentError for another method.

    >>> import numpy as np
    >>> density = gaussian_kde(np.array([0.0, 1.0, 2.0, 4.0]))
    >>> density(np.array([1.0, 3.0])).round(6), density.integrate_box_1d(-np.inf, np.inf)
    (Array([0.196655, 0.142948]), Array(1.))
    """

    def __init__(self, dataset: object, bw_method: Any = None, weights: object = None) -> None:
        _register()
        data = _real("dataset", dataset)
        n = node_of(data).shape[1]
        require_at_least_one(resolve(n) - 1, lambda: "gaussian_kde needs at least two points")
        given = full(data.shape[1:], 1, data.kind) if weights is None else as_named(weights, "weights")
        if given.ndim != 1:
            raise ShapeError(f"weights of gaussian_kde are a vector{place()}")
        unify(node_of(given).shape[0], n, lambda: "gaussian_kde has a weight for each point")
        self.dataset, given = promoted((data, as_inexact(given)))
        self.weights = given / sum_(given)
        self.neff = 1 / sum_(square(self.weights))
        centred = self.dataset - sum_(self.weights * self.dataset, 1, keepdims=True)
        spread = matmul(self.weights * centred, matrix_transpose(centred)) / (1 - 1 / self.neff)
        self.covariance = spread * square(self._bandwidth("scott" if bw_method is None else bw_method))

    def _bandwidth(self, method: Any) -> Any:
        if callable(method):
            return method(self)
        if not isinstance(method, str):
            return as_array(method)
        if method not in _METHODS:
            raise ArgumentError(
                f"bw_method of gaussian_kde is a number, a function, or one of {', '.join(map(repr, _METHODS))}, not "
                f"{method!r}{place()}"
            )
        return _METHODS[method](self.neff, self.d)

    @property
    def d(self) -> Any:
        """The number of coordinates."""
        return self.dataset.shape[0]

    @property
    def n(self) -> Any:
        """The number of points."""
        return self.dataset.shape[1]

    @property
    def inv_cov(self) -> Array:
        """The inverse of the covariance."""
        return inv(self.covariance)

    def evaluate(self, points: object) -> Array:
        """The density at each of m points, (d, m), or a vector: of m numbers if d is 1, else one point."""
        return sum_(self.weights * exp(self._logarithms(points, self.covariance)), -1)

    __call__ = pdf = evaluate

    def logpdf(self, x: object) -> Array:
        """The logarithm of the density, where the density itself is 0, too."""
        return logsumexp(log(self.weights) + self._logarithms(x, self.covariance), -1)

    def integrate_gaussian(self, mean: object, cov: object) -> Array:
        """The integral of the density times a normal one."""
        at, spread = reshape(as_array(mean), (-1, 1)), _real("cov", cov)
        for size in node_of(spread).shape:
            unify(size, node_of(self.dataset).shape[0], lambda: f"cov of integrate_gaussian is ({self.d}, {self.d})")
        return sum_(self.weights * exp(self._logarithms(at, self.covariance + spread)))

    def integrate_box_1d(self, low: object, high: object) -> Array:
        """The integral between two numbers, for d = 1."""
        unify(node_of(self.dataset).shape[0], ONE, lambda: "integrate_box_1d is for one coordinate")
        limits = [as_array(low), as_array(high)]
        if any(limit.ndim for limit in limits):
            raise ShapeError(f"low and high of integrate_box_1d are numbers{place()}")
        below, above = (ndtr((limit - self.dataset[0]) / sqrt(self.covariance[0, 0])) for limit in limits)
        return sum_(self.weights * (above - below))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product with another density."""
        both = self._logarithms(other.dataset, self.covariance + other.covariance)
        return sum_(other.weights * sum_(self.weights * exp(both), -1))

    def resample(self, key: object, shape: object = ()) -> Array:
        """Points drawn from the density, with their coordinates along the first axis, (d, *shape)."""
        first, second = split(key)
        steps = multivariate_normal(second, full((self.d,), 0, self.dataset.kind), self.covariance, shape)
        return self.dataset[:, choice(first, self.n, shape, p=self.weights)] + moveaxis(steps, -1, 0)

    def _logarithms(self, points: object, covariance: Array) -> Array:
        """Of a normal density at each of the data, at each of m points: (m, n)."""
        at = _real("points", points, (1, -1) if resolve(node_of(self.dataset).shape[0]) is ONE else (-1, 1))
        unify(node_of(at).shape[0], node_of(self.dataset).shape[0], lambda: "points have the coordinates of the data")
        factor = cholesky(covariance)
        data, at = (solve_triangular(factor, a, lower=True) for a in (self.dataset, at))
        squares = sum_(square(at[:, :, None] - data[:, None, :]), 0)
        constant = sum_(log(diagonal(factor))) + self.d * (math.log(2 * math.pi) / 2)
        result: Array = -squares / 2 - constant
        return result


def _real(name: str, value: object, vector: tuple[int, int] = (1, -1)) -> Array:
    """A matrix of real numbers, of a vector one of this shape. Raises DTypeError, and ShapeError for more axes."""
    array = as_inexact(as_named(value, name))
    if array.kind.is_complex:
        raise DTypeError(f"{name} of gaussian_kde are real numbers, not {array.dtype}{place()}")
    if array.ndim > 2:
        raise ShapeError(
            f"{name} of gaussian_kde has a row for each coordinate, not {plural(array.ndim, 'axes')}{place()}"
        )
    return reshape(array, vector) if array.ndim < 2 else array


_FIELDS = ("neff", "dataset", "weights", "covariance")


def _made(structure: object, parts: Any) -> gaussian_kde:
    density = object.__new__(gaussian_kde)
    for name, part in zip(_FIELDS, parts, strict=True):
        setattr(density, name, part)
    return density


@cache
def _register() -> None:
    """As a tree, when there is one."""
    register(gaussian_kde, flatten=lambda k: ([getattr(k, name) for name in _FIELDS], None), unflatten=_made)
