/* Functions of matrices and rows, for each one of a batch: `calls` of them, with flags as bits. Pointers and sizes are
 * those of the results, and then of the operands. What each one computes is written in
 * `trace/graph/matrix_functions.py`. 0, or 1 if there is not enough memory. */
#ifndef HARP_LAPACK_FUNCTIONS_H
#define HARP_LAPACK_FUNCTIONS_H

#include "process.h"

#define HARP_OF_MATRICES(name)                                                                                         \
    int harp_##name##_f32(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes);                  \
    int harp_##name##_f64(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes);                  \
    int harp_##name##_c64(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes);                  \
    int harp_##name##_c128(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes);

HARP_OF_MATRICES(cholesky)
HARP_OF_MATRICES(lu)
HARP_OF_MATRICES(lu_solve)
HARP_OF_MATRICES(solve_triangular)
HARP_OF_MATRICES(solve_banded)
HARP_OF_MATRICES(qr)
HARP_OF_MATRICES(eigh)
HARP_OF_MATRICES(eig)
HARP_OF_MATRICES(svd)
HARP_OF_MATRICES(fft)
HARP_OF_MATRICES(rfft)
HARP_OF_MATRICES(irfft)
HARP_OF_MATRICES(schur)
HARP_OF_MATRICES(hessenberg)

#endif
