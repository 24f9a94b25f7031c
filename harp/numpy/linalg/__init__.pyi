# Written by tests/types/stubs.py.
from harp.errors import LinAlgError as LinAlgError
from harp.numpy.linalg.eigen import eig as eig, eigh as eigh, eigvals as eigvals, eigvalsh as eigvalsh
from harp.numpy.linalg.factors import cholesky as cholesky, qr as qr
from harp.numpy.linalg.matrices import (
    cross as cross,
    diagonal as diagonal,
    outer as outer,
    trace as trace,
    vecdot as vecdot,
)
from harp.numpy.linalg.norms import cond as cond, matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
from harp.numpy.linalg.powers import matrix_power as matrix_power, multi_dot as multi_dot
from harp.numpy.linalg.products import matmul as matmul, tensordot as tensordot
from harp.numpy.linalg.singular import (
    lstsq as lstsq,
    matrix_rank as matrix_rank,
    pinv as pinv,
    svd as svd,
    svdvals as svdvals,
)
from harp.numpy.linalg.systems import (
    det as det,
    inv as inv,
    slogdet as slogdet,
    solve as solve,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from harp.numpy.linalg.triangular import solve_triangular as solve_triangular
from harp.numpy.manipulation import matrix_transpose as matrix_transpose
