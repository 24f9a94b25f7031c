/* The kernels of `gemm.h` as plain loops, with the same bits: what the first calls of a program run, until the fast
 * ones are compiled. The order of additions is theirs, so is the fused multiply-add where the processor has one. */
#ifndef HARP_SIMPLE_H
#define HARP_SIMPLE_H

#include "linalg/gemm.h"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HARP_MULTIPLY_ADD_f32(a, b, c) __builtin_fmaf(a, b, c)
#define HARP_MULTIPLY_ADD_f64(a, b, c) __builtin_fma(a, b, c)
#else
#define HARP_MULTIPLY_ADD_f32(a, b, c) ((a) * (b) + (c))
#define HARP_MULTIPLY_ADD_f64(a, b, c) ((a) * (b) + (c))
#endif

#define HARP_SIMPLE_PRODUCT(T, dtype)                                                                                  \
    static inline void harp_simple_product_##dtype(int64_t rows, int64_t columns, int64_t depth, const T *a,           \
                                                   int64_t a_row, int64_t a_step, const T *b, int64_t b_step,          \
                                                   int64_t b_column, T *c, int64_t c_row)                              \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows; ++i)                                                                             \
            for (int64_t k = 0; k < depth; ++k)                                                                        \
                for (int64_t l = 0; l < columns; ++l)                                                                  \
                    c[i * c_row + l] = HARP_MULTIPLY_ADD_##dtype(a[i * a_row + k * a_step],                            \
                                                                 b[k * b_step + l * b_column], c[i * c_row + l]);      \
    }
HARP_SIMPLE_PRODUCT(float, f32)
HARP_SIMPLE_PRODUCT(double, f64)

#define HARP_SIMPLE_gemm_microkernel(T, dtype, lanes)                                                                  \
    void harp_gemm_microkernel_##dtype##_x##lanes(int64_t rows, int64_t columns, int64_t depth, const T *a,            \
                                                  int64_t a_row, int64_t a_step, const T *b, int64_t b_step, T *c,     \
                                                  int64_t c_row)                                                       \
    {                                                                                                                  \
        harp_simple_product_##dtype(rows, columns, depth, a, a_row, a_step, b, b_step, 1, c, c_row);                   \
    }
#define HARP_SIMPLE_gemm_panel(T, dtype, lanes)                                                                        \
    void harp_gemm_panel_##dtype##_x##lanes(int64_t rows, int64_t columns, int64_t depth, const T *a, int64_t a_row,   \
                                            int64_t a_step, const T *b, int64_t b_step, int64_t b_column, T *c,        \
                                            int64_t c_row)                                                             \
    {                                                                                                                  \
        harp_simple_product_##dtype(rows, columns, depth, a, a_row, a_step, b, b_step, b_column, c, c_row);            \
    }
#define HARP_SIMPLE_gemv_axpy(T, dtype)                                                                                \
    void harp_gemv_axpy_##dtype(int64_t columns, int64_t depth, const T *a, int64_t a_step, const T *b,                \
                                int64_t b_step, T *c)                                                                  \
    {                                                                                                                  \
        harp_simple_product_##dtype(1, columns, depth, a, 0, a_step, b, b_step, 1, c, 0);                              \
    }

/* Element k belongs to sum k % 32; in the end one half is added to the other, again and again: see `row_dots.c`. */
#define HARP_SIMPLE_row_dots(T, dtype)                                                                                 \
    void harp_row_dots_##dtype(int64_t rows, int64_t depth, const T *a, int64_t a_row, const T *b, int64_t b_row,      \
                               T *c)                                                                                   \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; ++r) {                                                                           \
            T sums[32] = {0};                                                                                          \
            for (int64_t k = 0; k < depth; ++k)                                                                        \
                sums[k % 32] = HARP_MULTIPLY_ADD_##dtype(a[r * a_row + k], b[r * b_row + k], sums[k % 32]);            \
            for (int half = 16; half > 0; half /= 2)                                                                   \
                for (int k = 0; k < half; ++k) sums[k] += sums[k + half];                                              \
            c[r] += sums[0];                                                                                           \
        }                                                                                                              \
    }

#define HARP_SIMPLE_transpose(bits, lanes)                                                                             \
    void harp_transpose_##bits##_x##lanes(int64_t rows, int64_t columns, const void *b, int64_t b_row, void *c,        \
                                          int64_t c_row)                                                               \
    {                                                                                                                  \
        for (int64_t k = 0; k < columns; ++k)                                                                          \
            for (int64_t r = 0; r < rows; ++r)                                                                         \
                __builtin_memcpy((char *)c + (k * c_row + r) * (bits / 8),                                             \
                                 (const char *)b + (r * b_row + k) * (bits / 8), bits / 8);                            \
    }

#endif
