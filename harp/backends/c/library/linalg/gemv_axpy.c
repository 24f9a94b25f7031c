/* A row vector times a matrix: c[l] = fma(a[k], b[k, l], c[l]) over all k, in the order of k.
 *
 * The rows of b are contiguous and are added to c, four at a time (four steps of BLAS' axpy). Contraction to a fused
 * multiply-add is asked for by the flags of this file. */
#include "linalg/gemm.h"

typedef HARP_T real;

void OF_DTYPE(gemv_axpy)(int64_t columns, int64_t depth, const real *a, int64_t a_step, const real *b, int64_t b_step,
                         real *c)
{
    real *restrict const sums = c;
    for (; depth >= 4; depth -= 4, a += 4 * a_step, b += 4 * b_step) {
        const real a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
        const real *const b1 = b + b_step, *const b2 = b + 2 * b_step, *const b3 = b + 3 * b_step;
        for (int64_t l = 0; l < columns; ++l) {
            real sum = sums[l];
            sum += a0 * b[l];
            sum += a1 * b1[l];
            sum += a2 * b2[l];
            sum += a3 * b3[l];
            sums[l] = sum;
        }
    }
    for (; depth > 0; --depth, a += a_step, b += b_step)
        for (int64_t l = 0; l < columns; ++l) sums[l] += a[0] * b[l];
}
