# Written by tests/types/stubs.py.
from harp.numpy.activation import sigmoid as _expit
from harp.scipy.special.bessel import i0 as i0, i0e as i0e, i1 as i1, i1e as i1e, j0 as j0, j1 as j1
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
from harp.scipy.special.incomplete import betainc as betainc, gammainc as gammainc, gammaincc as gammaincc

expit = _expit
