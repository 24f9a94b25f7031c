/* A panel of a matrix product: c[i, l] = fma(a[i, k], b[k, l], c[i, l]) over all k, in the order of k, for no more
 * columns than two vectors have.
 *
 * Sizes and strides decide how `b` is read: where it is, or packed (K. Goto, R. van de Geijn: "Anatomy of
 * high-performance matrix multiplication", ACM TOMS 34, 2008), or, with one row or one column, as a matrix times a
 * vector. Rows of c have room for two vectors, where b has no more columns. */
#include "linalg/gemm.h"

typedef HARP_T real;

/* The columns that are computed are of half a vector (of 64 bytes), one or two. */
enum { LANES = HARP_LANES, WIDTH = 2 * LANES, LEAST = HARP_LANES * HARP_BITS == 512 ? LANES / 2 : LANES };

/* Rows of a packed panel, which stays in the L1 cache; rows up to which packing costs more than it saves, and
 * elements of b up to which it is in the L1 cache anyway; rows of one column at a time. */
enum { DEPTH = 256, FEW = 16, NEAR = 4096, ROWS = 512 };

/* Rows of b as whole vectors, `width` elements; columns that are not there become zero. */
static void pack(int64_t width, int64_t columns, int64_t depth, const real *restrict b, int64_t b_step,
                 int64_t b_column, real *restrict panel)
{
    int64_t l = 0;
    if (b_column == 1 && columns == WIDTH) {
        for (int64_t k = 0; k < depth; ++k)
            for (l = 0; l < WIDTH; ++l) panel[k * WIDTH + l] = b[k * b_step + l];
        return;
    }
    if (columns < width)
        for (int64_t at = 0; at < depth * width; ++at) panel[at] = 0;
    if (b_column == 1) {
        for (int64_t k = 0; k < depth; ++k)
            for (l = 0; l < columns; ++l) panel[k * width + l] = b[k * b_step + l];
        return;
    }
    if (b_step == 1) {
        OF_BITS(transpose)(columns, depth, b, b_column, panel, width);
        return;
    }
    for (; l < columns; ++l)
        for (int64_t k = 0; k < depth; ++k) panel[k * width + l] = b[l * b_column + k * b_step];
}

/* Rows of b, one after the other, that have `width` elements before the end of the last one. */
static inline int64_t before_end(int64_t width, int64_t columns, int64_t depth, int64_t b_step)
{
    if (width <= columns) return depth;
    const int64_t missing = (width - columns + b_step - 1) / b_step;
    return depth > missing ? depth - missing : 0;
}

/* One column, whose sums are together while they are computed. */
static void one_column(int64_t rows, int64_t depth, const real *a, int64_t a_row, int64_t a_step, const real *b,
                       int64_t b_step, real *c, int64_t c_row)
{
    for (; rows > 0; rows -= ROWS, a += ROWS * a_row, c += ROWS * c_row) {
        real sums[ROWS];
        const int64_t here = rows < ROWS ? rows : ROWS;
        for (int64_t i = 0; i < here; ++i) sums[i] = c[i * c_row];
        if (a_step == 1)
            KERNEL(gemv_dot)(here, depth, a, a_row, b, b_step, sums);
        else
            OF_DTYPE(gemv_axpy)(here, depth, b, b_step, a, a_step, sums);
        for (int64_t i = 0; i < here; ++i) c[i * c_row] = sums[i];
    }
}

void KERNEL(gemm_panel)(int64_t rows, int64_t columns, int64_t depth, const real *a, int64_t a_row, int64_t a_step,
                        const real *b, int64_t b_step, int64_t b_column, real *c, int64_t c_row)
{
    if (rows <= 0 || columns <= 0 || depth <= 0) return;
    if (columns == 1 && (a_step == 1 || a_row == 1)) {
        one_column(rows, depth, a, a_row, a_step, b, b_step, c, c_row);
        return;
    }
    if (rows == 1 && b_step == 1) {
        KERNEL(gemv_dot)(columns, depth, b, b_column, a, a_step, c);
        return;
    }
    const int64_t width = columns > LANES ? WIDTH : columns > LEAST ? LANES : LEAST;
    if (b_column == 1 && b_step > 0 && (rows <= FEW || depth * b_step <= NEAR)) {
        /* Where it is. What is read behind a row is of the rows after it, and comes to columns that are not there. */
        const int64_t here = before_end(width, columns, depth, b_step);
        KERNEL(gemm_microkernel)(rows, columns, here, a, a_row, a_step, b, b_step, c, c_row);
        depth -= here, a += here * a_step, b += here * b_step;
    }
    for (; depth > 0; depth -= DEPTH, a += DEPTH * a_step, b += DEPTH * b_step) {
        _Alignas(64) real panel[DEPTH * WIDTH];
        const int64_t here = depth < DEPTH ? depth : DEPTH;
        pack(width, columns, here, b, b_step, b_column, panel);
        KERNEL(gemm_microkernel)(rows, columns, here, a, a_row, a_step, panel, width, c, c_row);
    }
}
