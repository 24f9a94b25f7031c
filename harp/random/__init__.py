"""Random numbers as pure functions of a key and a shape: the same numbers in jit and outside, on every machine.

>>> import harp
>>> key = harp.random.key(42)
>>> harp.random.uniform(key, 2) == harp.random.uniform(key, 2)
Array([ True,  True])
"""

from __future__ import annotations

from harp.random.discrete import categorical, choice, permutation
from harp.random.exponential import exponential, gumbel
from harp.random.gamma import beta, dirichlet, gamma, loggamma
from harp.random.keys import fold_in, key, split
from harp.random.normal import normal
from harp.random.truncated import truncated_normal
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
