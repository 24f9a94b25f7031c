"""What a distribution is: formulas of its density and its distribution function, for location 0 and scale 1.

Rows give what they have; the other functions follow, and location, scale and support are treated once. All is computed
in float64 and rounded once.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from harp.errors import ArgumentError
from harp.numpy.elementwise import exp, floor, log, log1p, where
from harp.scipy.special.formulas import of_doubles
from harp.trace.array.array import Array
from harp.trace.source_locations import where as place

Formula = Callable[..., Any]
# What there is below and above the support.
_ENDS = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}


def _method(kind: str, text: str) -> Callable[..., Array]:
    def method(self: Distribution, x: object, *args: object, **kwargs: object) -> Array:
        return self._call(kind, x, args, kwargs)

    method.__name__, method.__qualname__, method.__doc__ = kind, f"Distribution.{kind}", text
    return method


class Distribution:
    """A distribution with SciPy's methods. Arguments broadcast; parameters come first, then `loc` and `scale`.

    >>> from harp.scipy import stats
    >>> stats.gamma.cdf(1.0, 2.0, scale=0.5)
    Array(0.59399415)
    """

    pdf = _method("pdf", "The density, of a distribution that has one.")
    logpdf = _method("logpdf", "The logarithm of the density; -inf outside of the support.")
    pmf = _method("pmf", "The probability of a number, of a distribution of integers.")
    logpmf = _method("logpmf", "The logarithm of the probability of a number; -inf for those that are no integers.")
    cdf = _method("cdf", "The probability of numbers up to x.")
    logcdf = _method("logcdf", "The logarithm of `cdf`.")
    sf = _method("sf", "The probability of numbers above x, accurate where it is small.")
    logsf = _method("logsf", "The logarithm of `sf`.")
    ppf = _method("ppf", "The quantile: the number up to which the probability is x; NaN for x outside of 0 to 1.")
    isf = _method("isf", "The number above which the probability is x.")

    def __init__(
        self,
        name: str,
        parameters: str,
        log_density: Formula,
        support: tuple[float, float] | Formula = (-math.inf, math.inf),
        inner: float = 0.0,
        symmetric: bool = False,
        discrete: bool = False,
        joint: bool = False,
        **formulas: Formula,
    ) -> None:
        """`inner` is a number inside the support, at which formulas have finite derivatives. A `joint` distribution is
        one of vectors, without location, scale and support."""
        self._name, self._inner, self._discrete, self._joint = name, inner, discrete, joint
        self._support = support if callable(support) else lambda *_: support
        given, density = _completed(formulas, symmetric), "pmf" if discrete else "pdf"
        logarithm = log_density if joint else partial(self._log_density, log_density)
        self._functions: dict[str, Formula] = {
            f"log{density}": logarithm,
            density: lambda *values: exp(logarithm(*values)),
            **{kind: partial(self._share, given[kind], kind) for kind in _ENDS if kind in given},
            **{kind: partial(_quantile, given[kind]) for kind in ("ppf", "isf") if kind in given},
        }
        moved = {} if joint else {"loc": 0.0} if discrete else {"loc": 0.0, "scale": 1.0}
        free = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self._signature = inspect.Signature(
            [inspect.Parameter(p, free) for p in parameters.split()]
            + [inspect.Parameter(p, free, default=default) for p, default in moved.items()]
        )
        names = ", ".join(self._signature.parameters)
        self.__doc__ = (
            f"SciPy's distribution {name}: {', '.join(self._functions)}, of a number and {names}.\n\n"
            f">>> from harp.scipy.stats import {name}\n>>> {name}\n{self!r}"
        )

    def __repr__(self) -> str:
        return f"<distribution {self._name}{self._signature}>"

    def _call(self, kind: str, x: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Array:
        function = self._functions.get(kind)
        if function is None:
            raise ArgumentError(f"{self._name} has no {kind}; it has {', '.join(self._functions)}{place()}")
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                f"{self._name}.{kind} takes {self._signature} after a number: {error}{place()}"
            ) from None
        bound.apply_defaults()
        return of_doubles(function, x, *bound.args, *([1.0] if self._discrete and not self._joint else []))

    def _standard(self, x: Array, *values: Array) -> tuple[Array, Array, Array, tuple[Array, ...]]:
        """The number for location 0 and scale 1, `inner` outside of the support; whether below, above; parameters."""
        *parameters, loc, scale = values
        z = (x - loc) / scale
        low, high = self._support(*parameters)
        below, above = z < low, z > high
        return where(below | above, self._inner, z), below, above, tuple(parameters)

    def _log_density(self, formula: Formula, x: Array, *values: Array) -> Array:
        z, below, above, parameters = self._standard(x, *values)
        outside = below | above | (floor(z) < z) if self._discrete else below | above
        return where(outside, -math.inf, formula(z, *parameters) - log(values[-1]))

    def _share(self, formula: Formula, kind: str, x: Array, *values: Array) -> Array:
        z, below, above, parameters = self._standard(
            floor(x - values[-2]) + values[-2] if self._discrete else x, *values
        )
        low, high = _ENDS[kind]
        return where(below, low, where(above, high, formula(z, *parameters)))


def _quantile(formula: Formula, q: Array, *values: Array) -> Array:
    *parameters, loc, scale = values
    inside = (q >= 0) & (q <= 1)
    return where(inside, loc + scale * formula(where(inside, q, 0.5), *parameters), math.nan)


def _completed(given: dict[str, Formula], symmetric: bool) -> dict[str, Formula]:
    """With the formulas that follow from others: on the other side, of logarithms."""
    made = dict(given)

    def derive(kind: str, source: str, build: Callable[[Formula], Formula]) -> None:
        if kind not in made and source in made:
            made[kind] = build(made[source])

    derive("cdf", "logcdf", lambda f: lambda x, *p: exp(f(x, *p)))
    if symmetric:
        for kind, source in (("sf", "cdf"), ("logsf", "logcdf")):
            derive(kind, source, lambda f: lambda x, *p: f(-x, *p))
    derive("isf", "ppf", lambda f: (lambda q, *p: -f(q, *p)) if symmetric else lambda q, *p: f(1 - q, *p))
    derive("sf", "logsf", lambda f: lambda x, *p: exp(f(x, *p)))
    derive("sf", "cdf", lambda f: lambda x, *p: 1 - f(x, *p))
    for kind, other in (("cdf", "sf"), ("sf", "cdf")):
        if kind in made:
            made.setdefault(f"log{kind}", partial(_log_share, made[kind], made[other]))
    return made


def _log_share(formula: Formula, other: Formula, x: Array, *parameters: Array) -> Array:
    """The logarithm of a probability, by the opposite one where that is small."""
    value, rest = formula(x, *parameters), other(x, *parameters)
    small = rest < 0.5
    return where(small, log1p(-where(small, rest, 0.0)), log(where(small, 1.0, value)))
