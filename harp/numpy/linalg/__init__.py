"""The linear algebra of NumPy and of the array API standard.

Factorisations are calls of LAPACK inside of programs, compiled once for all sizes, with derivatives in closed form.
`solve_triangular` is SciPy's. Where NumPy raises LinAlgError, such as for a singular matrix, so do these functions for
arrays that have numbers. Within functions that are traced, as by `harp.jit` and `harp.grad`, results have infinities or
NaN there, as in JAX, and a call of `harp.jit(f, check=True)` ends with that error.
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.errors": "LinAlgError",
        "harp.numpy.linalg.eigen": "eig eigh eigvals eigvalsh",
        "harp.numpy.linalg.factors": "cholesky qr",
        "harp.numpy.linalg.matrices": "cross diagonal outer trace vecdot",
        "harp.numpy.linalg.norms": "cond matrix_norm norm vector_norm",
        "harp.numpy.linalg.powers": "matrix_power multi_dot",
        "harp.numpy.linalg.products": "matmul tensordot",
        "harp.numpy.linalg.singular": "lstsq matrix_rank pinv svd svdvals",
        "harp.numpy.linalg.systems": "det inv slogdet solve tensorinv tensorsolve",
        "harp.numpy.linalg.triangular": "solve_triangular",
        "harp.numpy.manipulation": "matrix_transpose",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
