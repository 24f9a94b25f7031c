"""SciPy's special functions: the gamma function, integrals of exponentials, Bessel functions, and their kin.

Values are computed in float64 whatever the dtype, and rounded once. `docs/special.md` says how accurate they are.

>>> from harp.scipy import special
>>> special.erf(0.5)
Array(0.52049988)
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.numpy.activation": "expit=sigmoid",
        "harp.scipy.special.bessel": "i0 i0e i1 i1e j0 j1",
        "harp.scipy.special.entropy": "entr kl_div log_softmax logit logsumexp rel_entr softmax xlog1py xlogy",
        "harp.scipy.special.errors": "erf erfc erfcx erfinv log_ndtr ndtr ndtri",
        "harp.scipy.special.exponential": "exp1 expi expn spence",
        "harp.scipy.special.complex_gamma": "loggamma",
        "harp.scipy.special.hypergeometric": "hyp1f1 hyp2f1",
        "harp.scipy.special.orders": "bessel_jn sph_harm_y",
        "harp.scipy.special.faddeeva": "dawsn fresnel wofz",
        "harp.scipy.special.gamma_functions": "beta betaln digamma factorial gamma gammaln gammasgn "
        "multigammaln poch polygamma zeta",
        "harp.scipy.special.owen": "owens_t",
        "harp.scipy.special.combinations": "bernoulli boxcox boxcox1p comb",
        "harp.scipy.special.trigonometric": "sici",
        "harp.scipy.special.incomplete": "betainc gammainc gammaincc",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
