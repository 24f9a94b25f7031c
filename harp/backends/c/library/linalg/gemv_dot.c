/* A matrix times a vector: c[l] = fma(a[k], b[l, k], c[l]) over all k, in the order of k.
 *
 * Each element is one chain, and yet the rows of b are read along memory: a square of b is transposed in registers, so
 * that a vector holds one k of as many rows as it has room for. Contraction to a fused multiply-add is asked for by the
 * flags of this file. */
#include "linalg/gemm.h"
#include "linalg/transpose_tile.h"

enum { CHUNK = 16 * LANES };

INLINE vector add_square(const real *b, int64_t b_row, const real *a, vector sums)
{
    vector columns[LANES];
    transpose_tile(b, b_row, columns);
    UNROLLED_FOR(int k = 0; k < LANES; ++k) ADD_PRODUCT(sums, columns[k], a[k]);
    return sums;
}

/* Elements before the first place for a vector in each row, if it is the same for all of them and rows are long: from
 * there on each line of the cache is read once. */
INLINE int64_t ahead(int64_t depth, const real *b, int64_t b_row)
{
    const int64_t size = sizeof(real);
    return depth < CHUNK || b_row * size % VECTOR_BYTES ? 0 : (int64_t)(-(uintptr_t)b % VECTOR_BYTES / sizeof(real));
}

/* A part of each row, fewer elements than a vector; nothing behind the last row is read. */
NOINLINE vector add_rest(int64_t depth, const real *b, int64_t b_row, const real *a, vector sums, const real *end)
{
    real copy[LANES * LANES];
    vector columns[LANES];
    if (depth <= 0) return sums;
    if (b_row < 0 || b + (LANES - 1) * b_row + LANES > end) {
        for (int64_t r = 0; r < LANES; ++r)
            for (int64_t k = 0; k < LANES; ++k) copy[r * LANES + k] = k < depth ? b[r * b_row + k] : 0;
        b = copy;
        b_row = LANES;
    }
    transpose_tile(b, b_row, columns);
    for (int64_t k = 0; k < depth; ++k) ADD_PRODUCT(sums, columns[k], a[k]);
    return sums;
}

/* Whole squares, one after the other. */
NOINLINE vector add_squares(int64_t from, int64_t to, const real *b, int64_t b_row, const real *a, vector sums)
{
    for (int64_t k = from; k < to; k += LANES) sums = add_square(b + k, b_row, a + k, sums);
    return sums;
}

/* As many rows as a vector has room for. */
NOINLINE void one_vector(int64_t depth, const real *b, int64_t b_row, const real *a, real *c, const real *end)
{
    const int64_t head = ahead(depth, b, b_row), whole = head + (depth - head) / LANES * LANES;
    vector sums = add_rest(head, b, b_row, a, load(c), end);
    sums = add_squares(head, whole, b, b_row, a, sums);
    store(c, add_rest(depth - whole, b + whole, b_row, a + whole, sums, end));
}

/* Twice as many: each addition waits for the one before it, and meanwhile there is the other square. */
NOINLINE void two_vectors(int64_t depth, const real *b, int64_t b_row, const real *a, real *c, const real *end)
{
    /* Rows whose distance is a power of two share few lines of the L1 cache: the second square then follows. */
    const int64_t head = ahead(depth, b, b_row), whole = head + (depth - head) / LANES * LANES;
    const int64_t size = sizeof(real), most = head + (b_row * size % 2048 ? 0 : 8 * LANES);
    const int64_t behind = most < whole ? most : whole;
    const real *const other = b + LANES * b_row;
    vector sums = add_rest(head, b, b_row, a, load(c), end);
    vector others = add_rest(head, other, b_row, a, load(c + LANES), end);
    sums = add_squares(head, behind, b, b_row, a, sums);
    for (int64_t k = behind, next = head; k < whole; k += LANES, next += LANES) {
        sums = add_square(b + k, b_row, a + k, sums);
        others = add_square(other + next, b_row, a + next, others);
    }
    others = add_squares(whole - behind + head, whole, other, b_row, a, others);
    store(c, add_rest(depth - whole, b + whole, b_row, a + whole, sums, end));
    store(c + LANES, add_rest(depth - whole, other + whole, b_row, a + whole, others, end));
}

/* Fewer rows than a vector has room for: a part of them at a time, in memory that has room for all. */
NOINLINE void few_rows(int64_t rows, int64_t depth, const real *b, int64_t b_row, const real *a, real *c)
{
    enum { ROW = CHUNK + LANES };
    _Alignas(64) real copy[LANES * ROW] = {0}, sums[LANES] = {0};
    for (int64_t r = 0; r < rows; ++r) sums[r] = c[r];
    for (; depth > 0; depth -= CHUNK, b += CHUNK, a += CHUNK) {
        const int64_t here = depth < CHUNK ? depth : CHUNK;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t k = 0; k < here; ++k) copy[r * ROW + k] = b[r * b_row + k];
        one_vector(here, copy, ROW, a, sums, copy + LANES * ROW);
    }
    for (int64_t r = 0; r < rows; ++r) c[r] = sums[r];
}

/* All rows, where `a` is contiguous. */
NOINLINE void all_rows(int64_t rows, int64_t depth, const real *b, int64_t b_row, const real *a, real *c)
{
    const real *const end = b + (rows - 1) * b_row + depth;
    int64_t row = 0;
    if (rows < LANES) {
        few_rows(rows, depth, b, b_row, a, c);
        return;
    }
    for (; row + 2 * LANES <= rows; row += 2 * LANES) two_vectors(depth, b + row * b_row, b_row, a, c + row, end);
    if (row + LANES <= rows) {
        one_vector(depth, b + row * b_row, b_row, a, c + row, end);
        row += LANES;
    }
    if (row < rows) { /* with rows that are done, whose sums are not kept */
        real sums[LANES] = {0};
        const int64_t first = rows - LANES;
        for (int64_t r = row; r < rows; ++r) sums[r - first] = c[r];
        one_vector(depth, b + first * b_row, b_row, a, sums, end);
        for (int64_t r = row; r < rows; ++r) c[r] = sums[r - first];
    }
}

void KERNEL(gemv_dot)(int64_t rows, int64_t depth, const real *b, int64_t b_row, const real *a, int64_t a_step, real *c)
{
    if (rows <= 0) return;
    if (a_step == 1) {
        all_rows(rows, depth, b, b_row, a, c);
        return;
    }
    for (; depth > 0; depth -= CHUNK, a += CHUNK * a_step, b += CHUNK) {
        real copy[CHUNK];
        const int64_t here = depth < CHUNK ? depth : CHUNK;
        for (int64_t k = 0; k < here; ++k) copy[k] = a[k * a_step];
        all_rows(rows, here, b, b_row, copy, c);
    }
}
