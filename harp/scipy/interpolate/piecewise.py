"""Polynomials between breakpoints: their values, derivatives and integrals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache, partial, reduce
from typing import Any, Self

import numpy as np

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import asarray, zeros
from harp.numpy.cumulative import cumsum, diff
from harp.numpy.elementwise import clip, floor, isnan, where
from harp.numpy.indexing import take
from harp.numpy.joining import concatenate
from harp.numpy.linalg.batches import operands
from harp.numpy.linalg.products import promoted
from harp.numpy.manipulation import moveaxis
from harp.numpy.numerical import as_inexact
from harp.numpy.reductions import all as all_
from harp.numpy.sorting import searchsorted
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_integer, known_numbers
from harp.trace.sizes.size import require_at_least_one, resolve, unify
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.tree import register


@cache
def _register(cls: type[PPoly]) -> None:
    """Make objects of a class of polynomials trees, from the first one on: no import needs optree."""
    register(cls, flatten=lambda p: ((p.c, p.x), (p.extrapolate, p.axis)), unflatten=partial(_made, cls))


def _made(cls: type[PPoly], fixed: tuple[Any, ...], parts: Iterable[Any]) -> Any:
    made = cls.__new__(cls)
    (made.c, made.x), (made.extrapolate, made.axis) = parts, fixed
    return made


class PPoly:
    """Between `x[i]` and `x[i + 1]` the sum of `c[k - m, i] * (t - x[i])**m` over the powers m, of which k is highest.

    `x` is a vector that increases, `c` has a row for each power, in which axis 1 has an element less than `x`; further
    axes are those of the values, of which `axis` (0) is where the axes of a place go. Beyond the breakpoints the outer
    polynomials go on, with `extrapolate=False` there are NaN, with "periodic" the function begins anew. A tree, whose
    parts are `c` and `x`; numbers of 16 bits become float32.

    Raises ShapeError for sizes that do not fit, ArgumentError for an `x` that does not increase; where that is not
    known yet, all values are NaN then.

    >>> import numpy as np
    >>> line = PPoly(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
    >>> line(np.array([0.5, 1.5])), line.derivative()(0.5), line.integrate(0.0, 2.0)
    (Array([0.5, 2. ]), Array(1.), Array(2.5))
    """

    c: Array
    x: Array
    extrapolate: bool | str
    axis: int

    def __new__(cls, *args: object, **keywords: object) -> Self:
        """An object whose class is one of trees."""
        own: Any = cls
        _register(own)
        return super().__new__(cls)

    def __init__(self, c: object, x: object, extrapolate: bool | str | None = None, axis: int = 0) -> None:
        coefficients, nodes = common("PPoly", x, c=c)
        if coefficients.ndim < 2 + axis:
            raise ShapeError(f"c of PPoly has at least {plural(2 + axis, 'axes')}, not {coefficients.ndim}{place()}")
        for _ in range(2 if axis else 0):
            coefficients = moveaxis(coefficients, axis + 1, 0)
        sizes = resolve(node_of(coefficients).shape[1]), resolve(node_of(nodes).shape[0]) - 1
        unify(*sizes, lambda: "PPoly: axis 1 of c has an element less than x")
        self.c, self.x, self.axis = coefficients, nodes, axis
        self.extrapolate = checked(extrapolate)

    def __call__(self, x: object, nu: int = 0, extrapolate: bool | str | None = None) -> Array:
        """The values at `x`, or those of the derivative `nu`; their axes are those of `x` and of the values."""
        shown = self.derivative(nu) if nu else self
        beyond = self.extrapolate if extrapolate is None else checked(extrapolate)
        at, nodes = promoted((as_inexact(x), self.x))
        if at.kind.is_complex:
            raise ArgumentError(f"x of a polynomial has real numbers, not {at.kind}{place()}")
        if beyond == "periodic":
            at = nodes[0] + (at - nodes[0]) % (nodes[-1] - nodes[0])
        piece = clip(searchsorted(nodes, at, side="right") - 1, 0, nodes.shape[0] - 2)
        rest = (..., *(None,) * (shown.c.ndim - 2))
        rows = [take(shown.c[k], piece, axis=0) for k in range(int(shown.c.shape[0]))]
        result = _polynomial(rows, (at - take(nodes, piece))[rest])
        lost = isnan(at) if beyond else ~((nodes[0] <= at) & (at <= nodes[-1]))
        result = where(lost[rest], math.nan, result)
        axes = range(at.ndim)
        return moveaxis(result, tuple(axes), tuple(self.axis + k for k in axes)) if self.axis else result

    def derivative(self, nu: int = 1) -> PPoly:
        """The polynomials that are the derivative `nu`, or for negative ones an antiderivative."""
        order, whole = as_integer("nu of derivative", nu), self
        for _ in range(-order):
            whole = whole._integrated()
        powers = range(int(self.c.shape[0]) - 1, order - 1, -1)
        if order <= 0:
            return whole
        if not powers:
            return self._like(0 * self.c[:1])
        return self._like(self.c[: len(powers)] * self._factors([math.perm(p, order) for p in powers]))

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The polynomials of which these are the derivative `nu`, 0 at the first breakpoint; not periodic."""
        return self.derivative(-as_integer("nu of antiderivative", nu))

    def _integrated(self) -> PPoly:
        many = int(self.c.shape[0])
        c = self.c * self._factors([1 / power for power in range(many, 0, -1)])
        wide = diff(self.x)[(..., *(None,) * (c.ndim - 2))]
        before = cumsum(_polynomial([*(c[k] for k in range(many)), zeros((), c.dtype)], wide), 0)
        start = concatenate((0 * self.c[0, :1], before[:-1]))
        return self._like(concatenate((c, start[None])), self.extrapolate is True)

    def integrate(self, a: object, b: object, extrapolate: bool | str | None = None) -> Array:
        """The integral from one number to another one."""
        ends = [asarray(end) for end in (a, b)]
        if any(end.ndim for end in ends):
            raise ShapeError(f"integrate takes two numbers, not arrays{place()}")
        beyond = self.extrapolate if extrapolate is None else checked(extrapolate)
        whole = self.antiderivative()
        whole.axis = 0
        if beyond != "periodic":
            low, high = (whole(end, extrapolate=beyond) for end in ends)
            return high - low
        first, period = self.x[0], self.x[-1] - self.x[0]

        def up_to(end: Array) -> Array:
            turns = floor((end - first) / period)
            return turns * whole(self.x[-1]) + whole(end - turns * period, extrapolate=True)

        return up_to(ends[1]) - up_to(ends[0])

    def _like(self, c: Array, extrapolate: bool | str | None = None) -> PPoly:
        made: PPoly = _made(PPoly, (self.extrapolate if extrapolate is None else extrapolate, self.axis), (c, self.x))
        return made

    def _factors(self, numbers: Sequence[float]) -> Array:
        """One for each row of coefficients."""
        return asarray(np.asarray(numbers, float).reshape(-1, *(1,) * (self.c.ndim - 1)), dtype=self.x.dtype)


def _polynomial(rows: Iterable[Array], at: Array) -> Array:
    return reduce(lambda above, row: above * at + row, rows)


def checked(extrapolate: bool | str | None) -> bool | str:
    """What `extrapolate` says, True by default. Raises ArgumentError."""
    if extrapolate not in (None, True, False, "periodic"):
        raise ArgumentError(f"extrapolate is True, False or 'periodic', not {extrapolate!r}{place()}")
    return True if extrapolate is None else extrapolate if isinstance(extrapolate, str) else bool(extrapolate)


def common(name: str, x: object, **values: object) -> tuple[Array, ...]:
    """The values and the breakpoints in a common dtype, these real, at least two, increasing; else all NaN."""
    if as_array(x).kind.is_complex:
        raise ArgumentError(f"x of {name} has real numbers, not {as_array(x).kind}{place()}")
    arrays, _ = operands(name, **values, x=x)
    nodes = arrays[-1].real
    if nodes.ndim != 1:
        raise ShapeError(f"x of {name} is a vector, not an array with {plural(nodes.ndim, 'axes')}{place()}")
    require_at_least_one(resolve(node_of(nodes).shape[0]) - 1, lambda: f"x of {name} needs at least two points")
    return (*arrays[:-1], increasing(f"x of {name}", nodes))


def increasing(name: str, nodes: Array) -> Array:
    """Numbers that increase; NaN in all of them where they do not. Raises ArgumentError where that is known."""
    known = known_numbers(nodes)
    if known is None:
        return where(all_(diff(nodes) > 0), nodes, math.nan)
    if not (np.diff(known) > 0).all():
        raise ArgumentError(f"{name} must increase, from each number to the next one{place()}")
    return nodes
