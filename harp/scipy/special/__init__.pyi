# Written by tests/types/stubs.py.
from harp.numpy.activation import sigmoid as _expit
from harp.scipy.special.bessel import i0 as i0, i0e as i0e, i1 as i1, i1e as i1e, j0 as j0, j1 as j1
from harp.scipy.special.combinations import bernoulli as bernoulli, boxcox as boxcox, boxcox1p as boxcox1p, comb as comb
from harp.scipy.special.complex_gamma import loggamma as loggamma
from harp.scipy.special.entropy import (
    entr as entr,
    kl_div as kl_div,
    log_softmax as log_softmax,
    logit as logit,
    logsumexp as logsumexp,
    rel_entr as rel_entr,
    softmax as softmax,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from harp.scipy.special.errors import (
    erf as erf,
    erfc as erfc,
    erfcx as erfcx,
    erfinv as erfinv,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
)
from harp.scipy.special.exponential import exp1 as exp1, expi as expi, expn as expn, spence as spence
from harp.scipy.special.faddeeva import dawsn as dawsn, fresnel as fresnel, wofz as wofz
from harp.scipy.special.gamma_functions import (
    beta as beta,
    betaln as betaln,
    digamma as digamma,
    factorial as factorial,
    gamma as gamma,
    gammaln as gammaln,
    gammasgn as gammasgn,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    zeta as zeta,
)
from harp.scipy.special.hypergeometric import hyp1f1 as hyp1f1, hyp2f1 as hyp2f1
from harp.scipy.special.incomplete import betainc as betainc, gammainc as gammainc, gammaincc as gammaincc
from harp.scipy.special.orders import bessel_jn as bessel_jn, sph_harm_y as sph_harm_y
from harp.scipy.special.owen import owens_t as owens_t
from harp.scipy.special.trigonometric import sici as sici

expit = _expit
