"""The linear algebra of the array API standard, but for singular values.

`cholesky`, `solve`, `inv` and others are loops of harp over rows or blocks of a matrix: compiled once for all sizes,
with derivatives in closed form. `solve_triangular` is SciPy's. Where NumPy raises for a singular matrix, the results
here have infinities or NaN, as in JAX: a compiled program cannot raise for one matrix of a batch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harp.locks import importing
from harp.numpy.linalg.matrices import cross, diagonal, outer, trace, vecdot
from harp.numpy.linalg.norms import matrix_norm, norm, vector_norm
from harp.numpy.linalg.products import matmul, tensordot
from harp.numpy.manipulation import matrix_transpose

if TYPE_CHECKING:
    from harp.numpy.linalg.factors import cholesky
    from harp.numpy.linalg.powers import matrix_power
    from harp.numpy.linalg.systems import det, inv, slogdet, solve
    from harp.numpy.linalg.triangular import solve_triangular

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "norm",
    "outer",
    "slogdet",
    "solve",
    "solve_triangular",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

# Modules that are imported when a name of theirs is first asked for.
_LATER = {
    "cholesky": "factors",
    "matrix_power": "powers",
    **dict.fromkeys(("det", "inv", "slogdet", "solve"), "systems"),
    "solve_triangular": "triangular",
}

if not TYPE_CHECKING:  # for whom there is no other name than those above

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise import_module("harp.numpy.missing").no_such_name(__name__, name, __all__)
        with importing:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
            return value
