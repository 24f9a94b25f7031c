"""The linear algebra of the array API standard, but for singular values.

`cholesky`, `solve`, `inv` and others are loops of harp over rows or blocks of a matrix: compiled once for all sizes,
with derivatives in closed form. `solve_triangular` is SciPy's. Where NumPy raises for a singular matrix, the results
here have infinities or NaN, as in JAX: a compiled program cannot raise for one matrix of a batch.
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.numpy.linalg.factors": "cholesky",
        "harp.numpy.linalg.matrices": "cross diagonal outer trace vecdot",
        "harp.numpy.linalg.norms": "matrix_norm norm vector_norm",
        "harp.numpy.linalg.powers": "matrix_power",
        "harp.numpy.linalg.products": "matmul tensordot",
        "harp.numpy.linalg.systems": "det inv slogdet solve",
        "harp.numpy.linalg.triangular": "solve_triangular",
        "harp.numpy.manipulation": "matrix_transpose",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
