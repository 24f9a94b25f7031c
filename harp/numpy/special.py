"""The error function and its kin: `harp.numpy.special`, under SciPy's names.

>>> import harp.numpy as hnp
>>> hnp.special.erf(0.5)
Array(0.52049988)
"""

from __future__ import annotations

from harp.numpy.elementwise import float_map
from harp.trace.array import Array
from harp.trace.expr import apply
from harp.trace.ops import Op

__all__ = ["erf", "erfc", "erfinv"]


def erf(x: object) -> Array:
    """Elementwise error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    return float_map(lambda a: apply(Op.ERF, a), x)


def erfc(x: object) -> Array:
    """Elementwise 1 - erf(x), accurate for large x down to the smallest number.

    >>> erfc(10.0)
    Array(2.08848758e-45)
    """
    return float_map(lambda a: apply(Op.ERFC, a), x)


def erfinv(x: object) -> Array:
    """Elementwise inverse of erf; infinite at -1 and 1, NaN beyond."""
    return float_map(lambda a: apply(Op.ERFINV, a), x)
