"""Random numbers as pure functions of a key and a shape: the same numbers in jit and outside, on every machine.

>>> import harp
>>> key = harp.random.key(42)
>>> harp.random.uniform(key, 2) == harp.random.uniform(key, 2)
Array([ True,  True])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harp.random.discrete import categorical, choice, permutation
from harp.random.gamma import beta, dirichlet, exponential, gamma, gumbel, loggamma
from harp.random.normal import normal, truncated_normal
from harp.random.streams import fold_in, key, split
from harp.random.uniform import bernoulli, bits, randint, uniform

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "loggamma",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]

if not TYPE_CHECKING:  # for whom there is no other name than those above

    def __getattr__(name: str) -> object:
        raise import_module("harp.numpy.missing").no_such_name(__name__, name, __all__)
