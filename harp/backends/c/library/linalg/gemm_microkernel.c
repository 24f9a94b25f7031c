/* The micro-kernel of matrix products: c[i, l] = fma(a[i, k], b[k, l], c[i, l]) over all k, in the order of k.
 *
 * A tile of up to ROWS rows of one or two vectors stays in registers from the first product to the last, as in
 * K. Goto, R. van de Geijn: "Anatomy of high-performance matrix multiplication", ACM TOMS 34 (2008), and
 * F. Van Zee, R. van de Geijn: "BLIS", ACM TOMS 41 (2015). Contraction to a fused multiply-add is asked for by the
 * flags of this file.
 *
 * It may read and write more columns than it is asked for, up to two vectors: rows of b and c have room for that. */
#include "linalg/gemm.h"
#include "linalg/vectors.h"

/* Rows of two vectors, with two of b and one of a, in the registers that come with the width, and rows of one vector.
 * AVX-512 has room for 14 rows of two, which were slower where rows of `a` are a power of two apart, for those share
 * few lines of the L1 cache. */
enum { ROWS = VECTOR_BYTES == 64 ? 10 : 6, ROWS_OF_ONE = 12 };

#define OPERANDS                                                                                                       \
    int64_t depth, const real *a, int64_t a_row, int64_t a_step, const real *b, int64_t b_step, real *c, int64_t c_row

/* One tile. Rows of `a` share pointers, three to each: there are not enough registers for more. */
INLINE void tile(const int height, const int vectors, OPERANDS)
{
    vector sums[ROWS_OF_ONE][2], right[2];
    const real *rows[(ROWS_OF_ONE + 2) / 3];
    UNROLLED_FOR(int i = 0; i < height; i += 3) rows[i / 3] = a + i * a_row;
    UNROLLED_FOR(int i = 0; i < height; ++i)
        UNROLLED_FOR(int j = 0; j < vectors; ++j) sums[i][j] = load(c + i * c_row + j * LANES);
    for (; depth > 0; --depth) {
        UNROLLED_FOR(int j = 0; j < vectors; ++j) right[j] = load(b + j * LANES);
        UNROLLED_FOR(int i = 0; i < height; ++i)
            UNROLLED_FOR(int j = 0; j < vectors; ++j) ADD_PRODUCT(sums[i][j], rows[i / 3][i % 3 * a_row], right[j]);
        UNROLLED_FOR(int i = 0; i < height; i += 3) rows[i / 3] += a_step;
        b += b_step;
    }
    UNROLLED_FOR(int i = 0; i < height; ++i)
        UNROLLED_FOR(int j = 0; j < vectors; ++j) store(c + i * c_row + j * LANES, sums[i][j]);
}

#define TILE(height, vectors)                                                                                          \
    NOINLINE void tile_##height##_##vectors(OPERANDS)                                                                  \
    {                                                                                                                  \
        tile(height, vectors, depth, a, a_row, a_step, b, b_step, c, c_row);                                           \
    }
#define TILES_TO_6(vectors)                                                                                            \
    TILE(1, vectors) TILE(2, vectors) TILE(3, vectors) TILE(4, vectors) TILE(5, vectors) TILE(6, vectors)
#define TILES_TO_10(vectors) TILE(7, vectors) TILE(8, vectors) TILE(9, vectors) TILE(10, vectors)
#define NAMES_TO_6(vectors)                                                                                            \
    tile_1_##vectors, tile_2_##vectors, tile_3_##vectors, tile_4_##vectors, tile_5_##vectors, tile_6_##vectors
#define NAMES_TO_10(vectors) tile_7_##vectors, tile_8_##vectors, tile_9_##vectors, tile_10_##vectors
#define NAMES_TO_12(vectors) tile_11_##vectors, tile_12_##vectors

TILES_TO_6(1)
TILES_TO_10(1)
TILE(11, 1)
TILE(12, 1)
TILES_TO_6(2)
#if HARP_LANES * HARP_BITS == 512
TILES_TO_10(2)
#define HIGHER_OF_2 , NAMES_TO_10(2)
#else
#define HIGHER_OF_2
#endif

/* By the number of vectors and of rows. */
typedef void tile_function(OPERANDS);
static tile_function *const tiles[2][ROWS_OF_ONE] = {
    {NAMES_TO_6(1), NAMES_TO_10(1), NAMES_TO_12(1)},
    {NAMES_TO_6(2) HIGHER_OF_2},
};

void KERNEL(gemm_microkernel)(int64_t rows, int64_t columns, int64_t depth, const real *a, int64_t a_row,
                              int64_t a_step, const real *b, int64_t b_step, real *c, int64_t c_row)
{
    if (rows <= 0 || depth <= 0 || columns <= 0) return;
#if HARP_LANES * HARP_BITS == 512
    /* Half a vector: there are processors that take twice as long for a whole one. */
    if (columns <= HARP_LANES / 2) {
        OF_HALF(gemm_microkernel)(rows, columns, depth, a, a_row, a_step, b, b_step, c, c_row);
        return;
    }
#endif
    /* As many tiles as it takes, of heights that differ by one at most. */
    const int64_t most = columns > LANES ? ROWS : ROWS_OF_ONE;
    const int64_t count = (rows + most - 1) / most, low = rows / count, higher = rows % count;
    for (int64_t n = 0; n < count; ++n) {
        const int64_t height = low + (n < higher);
        tiles[columns > LANES][height - 1](depth, a, a_row, a_step, b, b_step, c, c_row);
        a += height * a_row;
        c += height * c_row;
    }
}
