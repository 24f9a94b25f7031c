/* A panel of a product of integers of 8 bits: c[i, l] += a[i, k] * b[k, l] over all k, in 32 bits, which wrap around.
 *
 * Both factors are packed as int16, two neighbours along k side by side: one instruction multiplies two pairs and adds
 * the products, exactly, for each element of a vector. (That for bytes saturates at 16 bits.) A packed part of a, of
 * some rows, stays in the L1 cache beside two vectors of columns of b. Rows of c have room for whole vectors. */
#include "linalg/gemm.h"
#include "linalg/vectors.h"

typedef int32_t pair __attribute__((may_alias));

/* Two vectors of columns are a strip, of HIGH rows in registers. */
enum { STRIP = 2 * LANES, STRIPS = 4, DEPTH = 256, PAIRS = DEPTH / 2, HIGH = VECTOR_BYTES == 64 ? 12 : 6, ROWS = 24 };

/* sum[l] + the products of the numbers of two pairs. Instructions are named: gcc reads immintrin.h in 0.2 s. */
INLINE vector add_products(vector sum, vector a, vector b)
{
#if defined(__AVX512VNNI__) && (HARP_LANES == 16 || HARP_LANES == 8 && defined(__AVX512VL__))
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#elif defined(__AVXVNNI__) && HARP_LANES == 8
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
#elif defined(__AVX512BW__) && HARP_LANES == 16 || defined(__AVX2__) && HARP_LANES == 8
    __asm__("vpmaddwd %1, %0, %0" : "+v"(a) : "v"(b));
    sum += a;
#elif defined(__SSE2__) && HARP_LANES == 4
    __asm__("pmaddwd %1, %0" : "+x"(a) : "x"(b));
    sum += a;
#else
    sum += (a >> 16) * (b >> 16) + (a << 16 >> 16) * (b << 16 >> 16);
#endif
    return sum;
}

static inline pair paired(int first, int second) { return (pair)((uint32_t)first & 0xffffu) | second * 65536; }

INLINE void tile(const int height, const int vectors, int64_t pairs, const pair *a, const pair *b, int32_t *c,
                 int64_t c_row)
{
    vector sums[HIGH][2], right[2];
    UNROLLED_FOR(int i = 0; i < height; ++i)
        UNROLLED_FOR(int j = 0; j < vectors; ++j) sums[i][j] = load(c + i * c_row + j * LANES);
    for (; pairs > 0; --pairs, ++a, b += STRIP) {
        UNROLLED_FOR(int j = 0; j < vectors; ++j) right[j] = load((const int32_t *)b + j * LANES);
        UNROLLED_FOR(int i = 0; i < height; ++i)
            UNROLLED_FOR(int j = 0; j < vectors; ++j)
                sums[i][j] = add_products(sums[i][j], (vector){0} + a[i * PAIRS], right[j]);
    }
    UNROLLED_FOR(int i = 0; i < height; ++i)
        UNROLLED_FOR(int j = 0; j < vectors; ++j) store(c + i * c_row + j * LANES, sums[i][j]);
}

#define TILE(height)                                                                                                   \
    case height:                                                                                                       \
        if (columns > LANES)                                                                                           \
            tile(height, 2, pairs, a, b, c, c_row);                                                                    \
        else                                                                                                           \
            tile(height, 1, pairs, a, b, c, c_row);                                                                    \
        break;

/* As many tiles as it takes, of heights that differ by one at most. */
static void strip(int64_t rows, int64_t columns, int64_t pairs, const pair *a, const pair *b, int32_t *c, int64_t c_row)
{
    const int64_t count = (rows + HIGH - 1) / HIGH, low = rows / count, higher = rows % count;
    for (int64_t n = 0; n < count; ++n) {
        const int64_t height = low + (n < higher);
        switch (height) {
            /* clang-format off */
            TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if HARP_LANES == 16
            TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#endif
            /* clang-format on */
        }
        a += height * PAIRS;
        c += height * c_row;
    }
}

/* Columns as strips, and the pairs of a strip one after the other; what is not there is zero. */
static void pack_columns(int64_t columns, int64_t depth, const HARP_B *b, int64_t b_step, int64_t b_column, pair *to)
{
    for (int64_t first = 0; first < columns; first += STRIP, to += PAIRS * STRIP)
        for (int64_t k = 0; k < depth; k += 2) {
            const int64_t here = columns - first < STRIP ? columns - first : STRIP;
            const HARP_B *even = b + first * b_column + k * b_step, *odd = k + 1 < depth ? even + b_step : even;
            const int some = k + 1 < depth ? -1 : 0;
            pair *row = to + k / 2 * STRIP;
            if (here == STRIP && b_column == 1)
                for (int64_t l = 0; l < STRIP; ++l) row[l] = paired(even[l], odd[l] & some);
            else
                for (int64_t l = 0; l < STRIP; ++l)
                    row[l] = l < here ? paired(even[l * b_column], odd[l * b_column] & some) : 0;
        }
}

static void pack_rows(int64_t rows, int64_t depth, const HARP_A *a, int64_t a_row, int64_t a_step, pair *to)
{
    const int64_t whole = depth / 2;
    for (int64_t i = 0; a_step == 1 && i < rows; ++i)
        for (int64_t p = 0; p < whole; ++p) to[i * PAIRS + p] = paired(a[i * a_row + 2 * p], a[i * a_row + 2 * p + 1]);
    for (int64_t p = 0; a_step != 1 && p < whole; ++p) {
        const HARP_A *even = a + 2 * p * a_step, *odd = even + a_step;
        for (int64_t i = 0; i < rows; ++i) to[i * PAIRS + p] = paired(even[i * a_row], odd[i * a_row]);
    }
    for (int64_t i = 0; depth % 2 && i < rows; ++i)
        to[i * PAIRS + whole] = paired(a[i * a_row + (depth - 1) * a_step], 0);
}

void KERNEL(gemm_integers)(HARP_INTEGERS)
{
    const HARP_A *left = a;
    const HARP_B *right = b;
    for (; depth > 0; depth -= DEPTH, left += DEPTH * a_step, right += DEPTH * b_step) {
        _Alignas(64) pair panel[PAIRS * STRIP * STRIPS], part[PAIRS * ROWS];
        const int64_t here = depth < DEPTH ? depth : DEPTH;
        pack_columns(columns, here, right, b_step, b_column, panel);
        for (int64_t top = 0; top < rows; top += ROWS) {
            const int64_t height = rows - top < ROWS ? rows - top : ROWS;
            pack_rows(height, here, left + top * a_row, a_row, a_step, part);
            for (int64_t first = 0; first < columns; first += STRIP)
                strip(height, columns - first, (here + 1) / 2, part, panel + first * PAIRS, c + top * c_row + first,
                      c_row);
        }
    }
}
