"""The linear algebra of the array API standard, as far as it is made of sums and products.

Decompositions, and what needs them (`inv`, `solve`, `det`, `svd`, ...), are not here: call NumPy's or SciPy's outside
of traced functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harp.numpy.linalg.matrices import cross, diagonal, matrix_power, outer, trace, vecdot
from harp.numpy.linalg.norms import matrix_norm, norm, vector_norm
from harp.numpy.linalg.products import matmul, tensordot
from harp.numpy.manipulation import matrix_transpose

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "norm",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

if not TYPE_CHECKING:  # for whom there is no other name than those above

    def __getattr__(name: str) -> object:
        raise import_module("harp.numpy.missing").no_such_name(__name__, name, __all__)
