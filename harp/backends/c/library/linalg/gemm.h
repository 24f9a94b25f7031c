/* The kernels of matrix products and transposition, which programs share: each is compiled once for a machine.
 *
 * They add in the order of k, whatever the way. Matrices are given by their first element and the distances of
 * neighbours in memory: `a_row` between rows, `a_step` along k, `b_column` between columns. */
#ifndef HARP_GEMM_H
#define HARP_GEMM_H

#include "names.h"
#include <stdint.h>

/* gemm_microkernel: c[i, l] = fma(a[i, k], b[k, l], c[i, l]), where rows of b and c have room for two vectors
 * gemm_panel:       the same for any b of no more columns than two vectors have, where rows of c have room for them
 * gemm_integers:    c[i, l] += a[i, k] * b[k, l] of integers of 8 bits, for no more columns than eight vectors have,
 *                   where rows of c have room for them
 * gemv_dot:         c[l] = fma(a[k], b[l, k], c[l]), rows of b being contiguous
 * gemv_axpy:        c[l] = fma(a[k], b[k, l], c[l]), rows of b being contiguous
 * row_dots:         c[r] += the sum of a[r, k] * b[r, k] over all k, in an order of its own, rows being contiguous
 * transpose:        c[k, r] = b[r, k], of elements of so many bits */
#define HARP_DECLARE_GEMM(T, dtype, lanes)                                                                             \
    void harp_gemm_microkernel_##dtype##_x##lanes(int64_t rows, int64_t columns, int64_t depth, const T *a,            \
                                                  int64_t a_row, int64_t a_step, const T *b, int64_t b_step, T *c,     \
                                                  int64_t c_row);                                                      \
    void harp_gemm_panel_##dtype##_x##lanes(int64_t rows, int64_t columns, int64_t depth, const T *a, int64_t a_row,   \
                                            int64_t a_step, const T *b, int64_t b_step, int64_t b_column, T *c,        \
                                            int64_t c_row);                                                            \
    void harp_gemv_dot_##dtype##_x##lanes(int64_t rows, int64_t depth, const T *b, int64_t b_row, const T *a,          \
                                          int64_t a_step, T *c)
#define HARP_INTEGERS                                                                                                  \
    int64_t rows, int64_t columns, int64_t depth, const void *a, int64_t a_row, int64_t a_step, const void *b,         \
        int64_t b_step, int64_t b_column, int32_t *c, int64_t c_row
#define HARP_DECLARE_INTEGERS(dtypes)                                                                                  \
    void harp_gemm_integers_##dtypes##_x4(HARP_INTEGERS);                                                              \
    void harp_gemm_integers_##dtypes##_x8(HARP_INTEGERS);                                                              \
    void harp_gemm_integers_##dtypes##_x16(HARP_INTEGERS)
#define HARP_DECLARE_AXPY(T, dtype)                                                                                    \
    void harp_gemv_axpy_##dtype(int64_t columns, int64_t depth, const T *a, int64_t a_step, const T *b,                \
                                int64_t b_step, T *c)
#define HARP_DECLARE_ROW_DOTS(T, dtype)                                                                                \
    void harp_row_dots_##dtype(int64_t rows, int64_t depth, const T *a, int64_t a_row, const T *b, int64_t b_row, T *c)
#define HARP_DECLARE_TRANSPOSE(bits, lanes)                                                                            \
    void harp_transpose_##bits##_x##lanes(int64_t rows, int64_t columns, const void *b, int64_t b_row, void *c,        \
                                          int64_t c_row)

HARP_DECLARE_GEMM(float, f32, 4);
HARP_DECLARE_GEMM(float, f32, 8);
HARP_DECLARE_GEMM(float, f32, 16);
HARP_DECLARE_GEMM(double, f64, 2);
HARP_DECLARE_GEMM(double, f64, 4);
HARP_DECLARE_GEMM(double, f64, 8);
HARP_DECLARE_INTEGERS(i8_i8);
HARP_DECLARE_INTEGERS(i8_u8);
HARP_DECLARE_INTEGERS(u8_i8);
HARP_DECLARE_INTEGERS(u8_u8);
HARP_DECLARE_AXPY(float, f32);
HARP_DECLARE_AXPY(double, f64);
HARP_DECLARE_ROW_DOTS(float, f32);
HARP_DECLARE_ROW_DOTS(double, f64);
HARP_DECLARE_TRANSPOSE(32, 4);
HARP_DECLARE_TRANSPOSE(32, 8);
HARP_DECLARE_TRANSPOSE(32, 16);
HARP_DECLARE_TRANSPOSE(64, 2);
HARP_DECLARE_TRANSPOSE(64, 4);
HARP_DECLARE_TRANSPOSE(64, 8);

#endif
