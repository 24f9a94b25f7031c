/* Square tiles of a matrix, transposed in registers: first by blocks of 16 bytes, among rows that are as far apart as
 * there are elements in a block, then the elements of the blocks. Each stage makes LANES vectors of pairs of vectors
 * (a butterfly, as in the transposition of J. O. Eklundh, IEEE Trans. Computers C-21, 1972). */
#ifndef HARP_TRANSPOSE_TILE_H
#define HARP_TRANSPOSE_TILE_H

#include "linalg/vectors.h"

enum { IN_BLOCK = 16 / sizeof(real), BLOCKS = VECTOR_BYTES / 16 };

#if defined(__clang__) || __GNUC__ >= 12
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef HARP_JOIN(int, HARP_JOIN(HARP_BITS, _t)) picks __attribute__((vector_size(VECTOR_BYTES)));
#define PICK(x, y, ...) __builtin_shuffle(x, y, (picks){__VA_ARGS__})
#endif

/* The places of elements in two vectors x and y, those of y being LANES and more: ZIP has elements of both in turn from
 * the place k on, as many as a block has in all, and RUN has a whole block. */
#if HARP_BITS == 32
#define STEP 4
#define HALF 2
#define ZIP(k) (k), (k) + LANES, (k) + 1, (k) + 1 + LANES
#define RUN(k) (k), (k) + 1, (k) + 2, (k) + 3
#else
#define STEP 2
#define HALF 1
#define ZIP(k) (k), (k) + LANES
#define RUN(k) (k), (k) + 1
#endif
#if HARP_LANES == STEP
#define EACH(what, first, step) what(first)
#elif HARP_LANES == 2 * STEP
#define EACH(what, first, step) what(first), what((first) + (step))
#else
#define EACH(what, first, step)                                                                                        \
    what(first), what((first) + (step)), what((first) + 2 * (step)), what((first) + 3 * (step))
#endif

/* Elements of x and y in turn, from the first or the second half of each block; and every other block of x and y. */
INLINE vector low(vector x, vector y) { return PICK(x, y, EACH(ZIP, 0, STEP)); }
INLINE vector high(vector x, vector y) { return PICK(x, y, EACH(ZIP, HALF, STEP)); }
INLINE vector even(vector x, vector y) { return PICK(x, y, EACH(RUN, 0, 2 * STEP)); }
INLINE vector odd(vector x, vector y) { return PICK(x, y, EACH(RUN, STEP, 2 * STEP)); }

/* columns[k][r] = b[r * b_row + k] for LANES rows and columns. */
INLINE void transpose_tile(const real *b, int64_t b_row, vector columns[LANES])
{
    vector x[LANES], y[LANES];
    UNROLLED_FOR(int r = 0; r < LANES; ++r) x[r] = load(b + r * b_row);
    /* Of every IN_BLOCK-th row, neighbours become their even and their odd blocks. */
    UNROLLED_FOR(int stage = 1; stage < BLOCKS; stage *= 2) {
        UNROLLED_FOR(int k = 0; k < LANES; ++k) {
            const int row = k % IN_BLOCK, block = k / IN_BLOCK, from = 2 * block % BLOCKS * IN_BLOCK + row;
            y[k] = 2 * block < BLOCKS ? even(x[from], x[from + IN_BLOCK]) : odd(x[from], x[from + IN_BLOCK]);
        }
        UNROLLED_FOR(int k = 0; k < LANES; ++k) x[k] = y[k];
    }
    /* x[IN_BLOCK * block + row] has this block of rows. In each, vectors far apart become neighbours. */
    UNROLLED_FOR(int stage = 1; stage < IN_BLOCK; stage *= 2) {
        UNROLLED_FOR(int k = 0; k < LANES; ++k) {
            const int block = k / IN_BLOCK * IN_BLOCK, at = k % IN_BLOCK, from = block + at / 2;
            y[k] = at % 2 ? high(x[from], x[from + IN_BLOCK / 2]) : low(x[from], x[from + IN_BLOCK / 2]);
        }
        UNROLLED_FOR(int k = 0; k < LANES; ++k) x[k] = y[k];
    }
    UNROLLED_FOR(int k = 0; k < LANES; ++k) columns[k] = x[k];
}

#endif
