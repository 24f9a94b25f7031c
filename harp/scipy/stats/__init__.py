"""SciPy's distributions, with `logpdf`, `cdf`, `ppf` and others, as far as JAX has them; ranks, modes and
densities of data.

>>> from harp.scipy import stats
>>> stats.norm.logpdf(0.0, scale=2.0)
Array(-1.61208571)
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.random.densities": "gaussian_kde",
        "harp.scipy.stats.families": "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom "
        "gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm "
        "uniform vonmises wrapcauchy",
        "harp.scipy.stats.ranks": "mode rankdata sem",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
