/* Matrix products by one work-item that has vectors of its own: a template for HARP_T, and for
 * HARP_LANES where it is defined.
 *
 * They are those of C's library: each element is one chain of fused multiply-adds in the order of k. */
#include "names.h"

#if defined(HARP_LANES)

#define VECTOR HARP_JOIN(HARP_T, HARP_LANES)
#define LOAD(from) HARP_JOIN(vload, HARP_LANES)(0, from)
#define STORE(to, x) HARP_JOIN(vstore, HARP_LANES)(x, 0, to)
#define WIDTH (2 * HARP_LANES)
/* Rows of a tile in registers, and of a panel of b in the cache. */
#define ROWS 8
#define DEPTH 256

/* Some rows of two vectors, from the first product to the last in registers; `b` has whole vectors. */
__attribute__((always_inline)) static inline void KERNEL(tile)(const int height, int64_t depth,
                                                               __global const HARP_T *a, int64_t a_row, int64_t a_step,
                                                               const HARP_T *b, __global HARP_T *c, int64_t c_row)
{
    VECTOR sums[ROWS][2];
    for (int i = 0; i < height; ++i) {
        sums[i][0] = LOAD(c + i * c_row);
        sums[i][1] = LOAD(c + i * c_row + HARP_LANES);
    }
    for (int64_t k = 0; k < depth; ++k) {
        const VECTOR left = LOAD(b + k * WIDTH), right = LOAD(b + k * WIDTH + HARP_LANES);
#pragma unroll
        for (int i = 0; i < height; ++i) {
            const VECTOR factor = (VECTOR)(a[i * a_row + k * a_step]);
            sums[i][0] = fma(factor, left, sums[i][0]);
            sums[i][1] = fma(factor, right, sums[i][1]);
        }
    }
    for (int i = 0; i < height; ++i) {
        STORE(c + i * c_row, sums[i][0]);
        STORE(c + i * c_row + HARP_LANES, sums[i][1]);
    }
}

/* c[i, l] = fma(a[i, k], b[k, l], c[i, l]), where rows of c have room for two vectors, and b has no more columns. */
static inline void KERNEL(gemm_panel)(int64_t rows, int64_t columns, int64_t depth, __global const HARP_T *a,
                                      int64_t a_row, int64_t a_step, __global const HARP_T *b, int64_t b_step,
                                      int64_t b_column, __global HARP_T *c, int64_t c_row)
{
    HARP_T panel[DEPTH * WIDTH];
    for (; depth > 0; depth -= DEPTH, a += DEPTH * a_step, b += DEPTH * b_step) {
        const int64_t here = depth < DEPTH ? depth : DEPTH;
        for (int64_t k = 0; k < here; ++k)
            for (int64_t l = 0; l < WIDTH; ++l) panel[k * WIDTH + l] = l < columns ? b[k * b_step + l * b_column] : 0;
        int64_t i = 0;
        for (; i + ROWS <= rows; i += ROWS)
            KERNEL(tile)(ROWS, here, a + i * a_row, a_row, a_step, panel, c + i * c_row, c_row);
        for (; i < rows; ++i) KERNEL(tile)(1, here, a + i * a_row, a_row, a_step, panel, c + i * c_row, c_row);
    }
}

/* The same where rows of b have room for two vectors. */
static inline void KERNEL(gemm_microkernel)(int64_t rows, int64_t columns, int64_t depth, __global const HARP_T *a,
                                            int64_t a_row, int64_t a_step, __global const HARP_T *b, int64_t b_step,
                                            __global HARP_T *c, int64_t c_row)
{
    KERNEL(gemm_panel)(rows, columns, depth, a, a_row, a_step, b, b_step, 1, c, c_row);
}

#undef VECTOR
#undef LOAD
#undef STORE
#undef WIDTH
#undef ROWS
#undef DEPTH

#else

/* A row vector times a matrix: c[l] = fma(a[k], b[k, l], c[l]), rows of b being contiguous. */
static inline void OF_DTYPE(gemv_axpy)(int64_t columns, int64_t depth, __global const HARP_T *a, int64_t a_step,
                                       __global const HARP_T *b, int64_t b_step, __global HARP_T *c)
{
    for (; depth >= 4; depth -= 4, a += 4 * a_step, b += 4 * b_step) {
        const HARP_T a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
        HARP_INDEPENDENT
        for (int64_t l = 0; l < columns; ++l) {
            HARP_T sum = fma(a0, b[l], c[l]);
            sum = fma(a1, b[l + b_step], sum);
            sum = fma(a2, b[l + 2 * b_step], sum);
            c[l] = fma(a3, b[l + 3 * b_step], sum);
        }
    }
    for (; depth > 0; --depth, a += a_step, b += b_step) {
        HARP_INDEPENDENT
        for (int64_t l = 0; l < columns; ++l) c[l] = fma(a[0], b[l], c[l]);
    }
}

/* c[r] += the sum of a[r, k] * b[r, k] over all k: 32 sums of every 32nd product, of which one half is added to the
 * other, again and again. */
#define VECTOR HARP_JOIN(HARP_T, 16)
static inline void OF_DTYPE(row_dots)(int64_t rows, int64_t depth, __global const HARP_T *a, int64_t a_row,
                                      __global const HARP_T *b, int64_t b_row, HARP_T *c)
{
    for (int64_t r = 0; r < rows; ++r, a += a_row, b += b_row) {
        VECTOR low = 0, high = 0;
        int64_t k = 0;
        for (; k + 32 <= depth; k += 32) {
            low = fma(vload16(0, a + k), vload16(0, b + k), low);
            high = fma(vload16(0, a + k + 16), vload16(0, b + k + 16), high);
        }
        HARP_T sums[32];
        vstore16(low, 0, sums);
        vstore16(high, 0, sums + 16);
        for (int64_t rest = 0; k + rest < depth; ++rest) sums[rest] = fma(a[k + rest], b[k + rest], sums[rest]);
        for (int half = 16; half > 0; half /= 2)
            for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
        c[r] += sums[0];
    }
}
#undef VECTOR

#endif
