# Written by tests/types/stubs.py.
from harp.numpy.linalg.factors import cholesky as cholesky
from harp.numpy.linalg.matrices import (
    cross as cross,
    diagonal as diagonal,
    outer as outer,
    trace as trace,
    vecdot as vecdot,
)
from harp.numpy.linalg.norms import matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
from harp.numpy.linalg.powers import matrix_power as matrix_power
from harp.numpy.linalg.products import matmul as matmul, tensordot as tensordot
from harp.numpy.linalg.systems import det as det, inv as inv, slogdet as slogdet, solve as solve
from harp.numpy.linalg.triangular import solve_triangular as solve_triangular
from harp.numpy.manipulation import matrix_transpose as matrix_transpose
