/* Sums of products along the rows of two matrices: c[r] += a[r, 0] * b[r, 0] + a[r, 1] * b[r, 1] + ...
 *
 * A row has ACCUMULATORS sums, element k belonging to number k % ACCUMULATORS; in the end one half of them is added to
 * the other, again and again. So each row is added in the same order on every machine and however many rows there are.
 * Contraction to a fused multiply-add is asked for by the flags of this file. */
#include "linalg/first_elements.h"
#include "linalg/gemm.h"

enum { ACCUMULATORS = 32, VECTORS = ACCUMULATORS / LANES };

/* Rows that go side by side: as many as registers hold the sums of. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { SUMS = 16 };
#else
enum { SUMS = 8 };
#endif
enum { MOST_ROWS = 4, FITTING = SUMS / VECTORS, ROWS = FITTING < 1 ? 1 : FITTING < MOST_ROWS ? FITTING : MOST_ROWS };

/* Bytes of a long row: half of a small L1 cache. */
enum { LONG = 1 << 14 };

/* x[k] += x[k + half] for the first half of some elements or vectors, if there are as many. */
#define FOLD(x, count, half)                                                                                           \
    if ((count) > (half)) {                                                                                            \
        UNROLLED_FOR(int k = 0; k < (half); ++k) (x)[k] += (x)[(k + (half)) % (count)];                                \
    }

/* The sum of all accumulators of a row. */
INLINE real folded(const vector given[VECTORS])
{
    vector sums[VECTORS];
    real left[LANES];
    UNROLLED_FOR(int q = 0; q < VECTORS; ++q) sums[q] = given[q];
    FOLD(sums, VECTORS, 8)
    FOLD(sums, VECTORS, 4)
    FOLD(sums, VECTORS, 2)
    FOLD(sums, VECTORS, 1)
    UNROLLED_FOR(int l = 0; l < LANES; ++l) left[l] = sums[0][l];
    FOLD(left, LANES, 8)
    FOLD(left, LANES, 4)
    FOLD(left, LANES, 2)
    FOLD(left, LANES, 1)
    return left[0];
}

INLINE void some_rows(int rows, int64_t depth, const real *a, int64_t a_row, const real *b, int64_t b_row, real *c)
{
    vector sums[ROWS][VECTORS];
    UNROLLED_FOR(int r = 0; r < rows; ++r) {
        UNROLLED_FOR(int q = 0; q < VECTORS; ++q) sums[r][q] = (vector){0};
    }
    for (; depth >= ACCUMULATORS; depth -= ACCUMULATORS, a += ACCUMULATORS, b += ACCUMULATORS) {
        UNROLLED_FOR(int q = 0; q < VECTORS; ++q) {
            UNROLLED_FOR(int r = 0; r < rows; ++r)
                ADD_PRODUCT(sums[r][q], load(a + r * a_row + q * LANES), load(b + r * b_row + q * LANES));
        }
    }
    const int rest = (int)depth;
    UNROLLED_FOR(int q = 0; q < VECTORS; ++q) {
        const int left = rest - q * LANES;
        if (left >= LANES) {
            UNROLLED_FOR(int r = 0; r < rows; ++r)
                ADD_PRODUCT(sums[r][q], load(a + r * a_row + q * LANES), load(b + r * b_row + q * LANES));
        } else if (left > 0) {
            UNROLLED_FOR(int r = 0; r < rows; ++r)
                ADD_PRODUCT(sums[r][q], load_first(a + r * a_row + q * LANES, left),
                            load_first(b + r * b_row + q * LANES, left));
        }
    }
    UNROLLED_FOR(int r = 0; r < rows; ++r) c[r] += folded(sums[r]);
}

/* Several rows side by side where the second matrix has one long row for all, which else would be read from a cache
 * farther away each time. Squares are read once. */
void OF_DTYPE(row_dots)(int64_t rows, int64_t depth, const real *a, int64_t a_row, const real *b, int64_t b_row,
                        real *c)
{
    const int are_squares = a == b && a_row == b_row, are_long = depth * (int64_t)sizeof(real) >= LONG;
    for (; are_long && b_row == 0 && rows >= ROWS; rows -= ROWS, a += ROWS * a_row, c += ROWS)
        some_rows(ROWS, depth, a, a_row, b, 0, c);
    for (; rows > 0; --rows, a += a_row, b += b_row, ++c) {
        if (are_squares)
            some_rows(1, depth, a, 0, a, 0, c);
        else
            some_rows(1, depth, a, 0, b, 0, c);
    }
}
