/* A row vector times a matrix: c[l] = fma(a[k], b[k, l], c[l]) over all k, in the order of k.
 *
 * The rows of b are contiguous and are added to c, four at a time (four steps of BLAS' axpy); where they are short, c
 * stays in registers meanwhile. Contraction to a fused multiply-add is asked for by the flags of this file. */
#include "linalg/first_elements.h"
#include "linalg/gemm.h"

/* The most vectors of a row that stay in registers. */
enum { MOST = 8 };

static void long_rows(int64_t columns, int64_t depth, const real *a, int64_t a_step, const real *b, int64_t b_step,
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

/* Rows of this many vectors, the last of which has so many elements. */
INLINE void vectors(int count, int last, int64_t depth, const real *a, int64_t a_step, const real *b, int64_t b_step,
                    real *c)
{
    const int whole = count - 1, at = whole * LANES;
    vector sums[MOST];
    UNROLLED_FOR(int q = 0; q < whole; ++q) sums[q] = load(c + q * LANES);
    sums[whole] = load_first(c + at, last);
    for (; depth > 0; --depth, a += a_step, b += b_step) {
        const real factor = a[0];
        UNROLLED_FOR(int q = 0; q < whole; ++q) ADD_PRODUCT(sums[q], load(b + q * LANES), factor);
        ADD_PRODUCT(sums[whole], HAS_MASKS ? load_first(b + at, last) : load(b + at), factor);
    }
    UNROLLED_FOR(int q = 0; q < whole; ++q) store(c + q * LANES, sums[q]);
    store_first(c + at, sums[whole], last);
}

#define IF_VECTORS(number) (count == (number) ? vectors(number, last, depth, a, a_step, b, b_step, c) : (void)0)

void OF_DTYPE(gemv_axpy)(int64_t columns, int64_t depth, const real *a, int64_t a_step, const real *b, int64_t b_step,
                         real *c)
{
    const int64_t count = (columns + LANES - 1) / LANES;
    const int last = (int)(columns - (count - 1) * LANES);
    if (count > MOST || (last < LANES && !HAS_MASKS)) {
        long_rows(columns, depth, a, a_step, b, b_step, c);
        return;
    }
    IF_VECTORS(1);
    IF_VECTORS(2);
    IF_VECTORS(3);
    IF_VECTORS(4);
    IF_VECTORS(5);
    IF_VECTORS(6);
    IF_VECTORS(7);
    IF_VECTORS(8);
}
