"""Random numbers as pure functions of a key and a shape: the same numbers in jit and outside, on every machine.

>>> import harp
>>> key = harp.random.key(42)
>>> harp.random.uniform(key, 2) == harp.random.uniform(key, 2)
Array([ True,  True])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harp.lazy import Names
from harp.random.continuous import (
    cauchy,
    chisquare,
    double_sided_maxwell,
    f,
    generalized_normal,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    t,
    triangular,
    wald,
    weibull_min,
)
from harp.random.discrete import categorical, choice, permutation
from harp.random.gamma import beta, dirichlet, exponential, gamma, gumbel, loggamma
from harp.random.normal import normal, truncated_normal
from harp.random.streams import PRNGKey, clone, fold_in, key, key_data, split, wrap_key_data
from harp.random.uniform import bernoulli, bits, rademacher, randint, uniform

if TYPE_CHECKING:
    from harp.random.counts import binomial, geometric, multinomial, poisson
    from harp.random.vectors import ball, multivariate_normal, orthogonal

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]

# They need loops and linear algebra, which take longer to import than all others.
_LATER = Names(
    {
        "harp.random.counts": "binomial geometric multinomial poisson",
        "harp.random.vectors": "ball multivariate_normal orthogonal",
    }
)

if not TYPE_CHECKING:  # for whom there is no other name than those above

    def __getattr__(name: str) -> object:
        if name in _LATER.homes:
            return _LATER[name]
        raise import_module("harp.numpy.missing").no_such_name(__name__, name, __all__)
