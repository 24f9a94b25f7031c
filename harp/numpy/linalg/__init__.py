"""The linear algebra of the array API standard, as far as it is made of sums and products.

Decompositions, and what needs them (`inv`, `solve`, `det`, `svd`, ...), are not here: call NumPy's or SciPy's outside
of traced functions.
"""

from __future__ import annotations

from harp.numpy.linalg.matrices import cross, diagonal, matrix_power, outer, trace, vecdot
from harp.numpy.linalg.norms import matrix_norm, vector_norm
from harp.numpy.linalg.products import matmul, tensordot
from harp.numpy.manipulation import matrix_transpose

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
