"""SciPy's distributions, with `logpdf`, `cdf`, `ppf` and others, as far as JAX has them.

>>> from harp.scipy import stats
>>> stats.norm.logpdf(0.0, scale=2.0)
Array(-1.61208571)
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.scipy.stats.families": "bernoulli beta binom cauchy chi2 dirichlet expon gamma geom laplace logistic "
        "multivariate_normal nbinom norm pareto poisson t truncnorm uniform",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
