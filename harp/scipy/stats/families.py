"""The distributions, a row for each: parameters, the logarithm of the density, and what else has a formula."""

from __future__ import annotations

import math

from harp.numpy.activation import sigmoid, softplus
from harp.numpy.elementwise import abs, exp, expm1, log, log1p, maximum, minimum, sin, square, tan, where
from harp.numpy.linalg.factors import cholesky
from harp.numpy.linalg.products import diagonal
from harp.numpy.linalg.triangular import solve_triangular
from harp.numpy.mathematical import atan2
from harp.numpy.reductions import all, sum
from harp.scipy.special.bessel import i0e
from harp.scipy.special.entropy import logit, xlog1py, xlogy
from harp.scipy.special.errors import log_ndtr, ndtr, ndtri
from harp.scipy.special.gamma_functions import betaln, gammaln
from harp.scipy.special.incomplete import betainc, gammainc, gammaincc
from harp.scipy.stats.distributions import Distribution
from harp.trace.array.array import Array

_POSITIVE, _UNIT, _COUNTS = (0.0, math.inf), (0.0, 1.0), (0.0, math.inf)


def _log_mass(low: Array, high: Array) -> Array:
    """The logarithm of the probability of normal numbers between two bounds; both tails are exact."""
    right = low > 0
    a, b = where(right, -high, low), where(right, -low, high)
    top = log_ndtr(b)
    return top + log1p(-exp(log_ndtr(a) - top))


def _sign_of_half(x: Array, tail: Array) -> Array:
    """The probability below x of a symmetric distribution, whose tail beyond |x| this is."""
    return where(x < 0, tail, 1 - tail)


norm = Distribution(
    "norm", "", lambda x: -0.5 * (x * x) - 0.5 * math.log(2 * math.pi),
    symmetric=True, cdf=ndtr, logcdf=log_ndtr, ppf=ndtri,
)  # fmt: skip
uniform = Distribution("uniform", "", lambda x: 0 * x, _UNIT, 0.5, cdf=lambda x: x, ppf=lambda q: q)
expon = Distribution(
    "expon", "", lambda x: -x, _POSITIVE, 1.0,
    cdf=lambda x: -expm1(-x), logsf=lambda x: -x, ppf=lambda q: -log1p(-q), isf=lambda q: -log(q),
)  # fmt: skip
laplace = Distribution(
    "laplace", "", lambda x: -abs(x) - math.log(2),
    symmetric=True, cdf=lambda x: _sign_of_half(x, 0.5 * exp(-abs(x))),
    logcdf=lambda x: where(x < 0, x - math.log(2), log1p(-0.5 * exp(-abs(x)))),
    ppf=lambda q: where(q < 0.5, log(2 * q), -log(2 - 2 * q)),
)  # fmt: skip
logistic = Distribution(
    "logistic", "", lambda x: -abs(x) - 2 * log1p(exp(-abs(x))),
    symmetric=True, cdf=sigmoid, logcdf=lambda x: -softplus(-x), ppf=logit,
)  # fmt: skip
cauchy = Distribution(
    "cauchy", "", lambda x: -log1p(x * x) - math.log(math.pi),
    symmetric=True, cdf=lambda x: atan2(1.0, -x) / math.pi,
    ppf=lambda q: where(q < 0.5, -1 / tan(math.pi * q), 1 / tan(math.pi * (1 - q))),
)  # fmt: skip
gamma = Distribution(
    "gamma", "a", lambda x, a: xlogy(a - 1, x) - x - gammaln(a), _POSITIVE, 1.0,
    cdf=lambda x, a: gammainc(a, x), sf=lambda x, a: gammaincc(a, x),
)  # fmt: skip
chi2 = Distribution(
    "chi2", "df", lambda x, df: xlogy(0.5 * df - 1, 0.5 * x) - 0.5 * x - gammaln(0.5 * df) - math.log(2),
    _POSITIVE, 1.0, cdf=lambda x, df: gammainc(0.5 * df, 0.5 * x), sf=lambda x, df: gammaincc(0.5 * df, 0.5 * x),
)  # fmt: skip
beta = Distribution(
    "beta", "a b", lambda x, a, b: xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b), _UNIT, 0.5,
    cdf=lambda x, a, b: betainc(a, b, x), sf=lambda x, a, b: betainc(b, a, 1 - x),
)  # fmt: skip
gumbel_r = Distribution(
    "gumbel_r", "", lambda x: -x - exp(-x), logcdf=lambda x: -exp(-x), sf=lambda x: -expm1(-exp(-x)),
    ppf=lambda q: -log(-log(q)), isf=lambda q: -log(-log1p(-q)),
)  # fmt: skip
gumbel_l = Distribution(
    "gumbel_l", "", lambda x: x - exp(x), cdf=lambda x: -expm1(-exp(x)), logsf=lambda x: -exp(x),
    ppf=lambda q: log(-log1p(-q)), isf=lambda q: log(-log(q)),
)  # fmt: skip
gennorm = Distribution(
    "gennorm", "beta", lambda x, beta: log(0.5 * beta) - gammaln(1 / beta) - exp(xlogy(beta, abs(x))), symmetric=True,
    cdf=lambda x, beta: _sign_of_half(x, 0.5 * gammaincc(1 / beta, exp(xlogy(beta, abs(x))))),
)  # fmt: skip
vonmises = Distribution(
    "vonmises", "kappa", lambda x, kappa: -2 * kappa * square(sin(0.5 * x)) - log(2 * math.pi * i0e(kappa))
)
wrapcauchy = Distribution(
    "wrapcauchy", "c", lambda x, c: log1p(-c * c) - log(2 * math.pi * (square(1 - c) + 4 * c * square(sin(0.5 * x)))),
    (0.0, 2 * math.pi), 1.0,
)  # fmt: skip
t = Distribution("t", "df", lambda x, df: -0.5 * (df + 1) * log1p(x * x / df) - 0.5 * log(df) - betaln(0.5 * df, 0.5))
pareto = Distribution(
    "pareto", "b", lambda x, b: log(b) - (b + 1) * log(x), (1.0, math.inf), 2.0,
    cdf=lambda x, b: -expm1(-b * log(x)), logsf=lambda x, b: -b * log(x), ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: exp(-log(q) / b),
)  # fmt: skip
truncnorm = Distribution(
    "truncnorm", "a b", lambda x, a, b: -0.5 * (x * x) - 0.5 * math.log(2 * math.pi) - _log_mass(a, b),
    support=lambda a, b: (a, b), logcdf=lambda x, a, b: _log_mass(a, maximum(a, x)) - _log_mass(a, b),
    logsf=lambda x, a, b: _log_mass(minimum(b, x), b) - _log_mass(a, b),
)  # fmt: skip
poisson = Distribution(
    "poisson", "mu", lambda k, mu: xlogy(k, mu) - mu - gammaln(k + 1), _COUNTS,
    discrete=True, cdf=lambda k, mu: gammaincc(k + 1, mu), sf=lambda k, mu: gammainc(k + 1, mu),
)  # fmt: skip
bernoulli = Distribution(
    "bernoulli", "p", lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), _UNIT,
    discrete=True, cdf=lambda k, p: where(k < 1, 1 - p, k / k), sf=lambda k, p: where(k < 1, p, k - k),
    ppf=lambda q, p: where(q <= 1 - p, 0.0, 1.0),
)  # fmt: skip
binom = Distribution(
    "binom", "n p", lambda k, n, p: xlogy(k, p) + xlog1py(n - k, -p) - betaln(k + 1, n - k + 1) - log(n + 1),
    support=lambda n, p: (0.0, n), discrete=True,
    cdf=lambda k, n, p: betainc(n - k, k + 1, 1 - p), sf=lambda k, n, p: betainc(k + 1, n - k, p),
)  # fmt: skip
geom = Distribution(
    "geom", "p", lambda k, p: xlog1py(k - 1, -p) + log(p), (1.0, math.inf), 1.0,
    discrete=True, cdf=lambda k, p: -expm1(xlog1py(k, -p)), logsf=lambda k, p: xlog1py(k, -p),
)  # fmt: skip
betabinom = Distribution(
    "betabinom", "n a b",
    lambda k, n, a, b: betaln(k + a, n - k + b) - betaln(a, b) - betaln(k + 1, n - k + 1) - log(n + 1),
    support=lambda n, a, b: (0.0, n), discrete=True,
)  # fmt: skip
nbinom = Distribution(
    "nbinom", "n p", lambda k, n, p: xlogy(n, p) + xlog1py(k, -p) - betaln(k + 1, n) - log(k + n), _COUNTS,
    discrete=True, cdf=lambda k, n, p: betainc(n, k + 1, p), sf=lambda k, n, p: betainc(k + 1, n, 1 - p),
)  # fmt: skip


def _normal(x: Array, mean: Array, cov: Array) -> Array:
    factor = cholesky(cov)
    z = solve_triangular(factor, (x - mean)[..., None], lower=True)[..., 0]
    widths = log(diagonal(factor, axis1=-2, axis2=-1))
    return sum(-0.5 * (z * z) - 0.5 * math.log(2 * math.pi) - widths, -1)


def _dirichlet(x: Array, alpha: Array) -> Array:
    shapes = alpha.reshape((-1, *(1 for _ in range(x.ndim - 1))))
    inside = all(x >= 0, 0) & (abs(sum(x, 0) - 1) < 1e-6)
    value = sum(xlogy(shapes - 1, x) - gammaln(shapes), 0) + gammaln(sum(alpha))
    return where(inside, value, -math.inf)


def _multinomial(x: Array, n: Array, p: Array) -> Array:
    value = gammaln(n + 1) + sum(xlogy(x, p) - gammaln(x + 1), -1)
    return where(all(x >= 0, -1) & (sum(x, -1) == n), value, -math.inf)


multivariate_normal = Distribution("multivariate_normal", "mean cov", _normal, joint=True)
dirichlet = Distribution("dirichlet", "alpha", _dirichlet, joint=True)
multinomial = Distribution("multinomial", "n p", _multinomial, discrete=True, joint=True)
