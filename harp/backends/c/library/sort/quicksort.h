/* Quicksort in vectors of AVX-512: numbers of 32 or 64 bits.
 *
 * A row is partitioned by a pivot: of each vector, the numbers below the pivot go to where the row is
 * wanted, and the others to the other one of two arrays. What fits into eight vectors is sorted
 * in registers by a network. C. A. R. Hoare: "Quicksort", The Computer Journal 5 (1962); K. E. Batcher: "Sorting
 * networks and their applications", AFIPS 32 (1968). Equal numbers change places, so it is for numbers that are all
 * there is to a key.
 *
 * It is part of radix_sort.h, and defines QUICKSORT, which tests set to 0. With -fsanitize=thread, gcc 12 inserts calls
 * and loses vectors that live across them (with -mtune=skylake-avx512; not with -O1, nor without the sanitizer). */
#ifndef QUICKSORT
#if defined(__AVX512F__) && HARP_BITS >= 32 && !defined(__SANITIZE_THREAD__)
#define QUICKSORT 1
#else
#define QUICKSORT 0
#endif
#endif
#if QUICKSORT

/* How often pivots may be bad before digits are used, and the distance of the numbers of which a pivot is chosen. */
#ifndef QUICKSORT_DEPTH
#define QUICKSORT_DEPTH 64
#endif
#ifndef QUICKSORT_SPREAD
#define QUICKSORT_SPREAD(n) ((n) / (2 * LANES))
#endif

#include <immintrin.h>

/* MM(min_epu) is _mm512_min_epu32, and MM_MASK(cmple_epu) is _mm512_cmple_epu32_mask. */
#define MM(name) HARP_JOIN(_mm512_##name, HARP_BITS)
#define MM_MASK(name) HARP_JOIN(MM(name), _mask)
#if HARP_BITS == 32
#define LANES 16
#define GATHER _mm512_i32gather_epi32
#define ORDER _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TURN _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0)
typedef int32_t signed_number;
#else
#define LANES 8
#define GATHER _mm512_i64gather_epi64
#define ORDER _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)
#define TURN _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0)
typedef int64_t signed_number;
#endif

#define AHEAD 64                           /* vectors that are fetched before they are read */
#define SOME(n) ((lanes)((1u << (n)) - 1)) /* the first n lanes, n < LANES */

static void radix_sort(int64_t n, number *row, number *room, int bits, int across);

typedef __m512i vector;
typedef HARP_JOIN(__mmask, LANES) lanes;

/* Lanes change places with those whose numbers differ from theirs in the bits of `by`. */
static inline vector across_lanes(vector x, int by)
{
    return MM(permutexvar_epi)(_mm512_xor_si512(ORDER, MM(set1_epi)(by)), x);
}

static inline void exchange(vector *a, vector *b)
{
    const vector least = MM(min_epu)(*a, *b);
    *b = MM(max_epu)(*a, *b);
    *a = least;
}

#define EXCHANGE(i, j) exchange(&x[i], &x[j])

/* Of the two results, lanes of `upper` get the greater one. */
static inline vector choose(vector a, vector b, lanes upper)
{
    return MM(mask_max_epu)(MM(min_epu)(a, b), upper, a, b);
}

/* What is sorted in groups of lanes becomes sorted in groups of twice as many: first with those of the other group in
   reverse, then at half the distance each time. A lane holds as many numbers that follow each other as vectors. */
static inline __attribute__((always_inline)) void merge(vector *x, int count, int group)
{
    const lanes upper[] = {(lanes)0xAAAA, (lanes)0xCCCC, (lanes)0xF0F0, (lanes)0xFF00};
    for (int i = 0; i < count / 2; ++i) {
        const vector a = x[i], b = across_lanes(x[count - 1 - i], (2 << group) - 1);
        x[i] = choose(a, b, upper[group]);
        x[count - 1 - i] = across_lanes(choose(a, b, (lanes)~upper[group]), (2 << group) - 1);
    }
    for (int half = group - 1; half >= 0; --half)
        for (int i = 0; i < count; ++i) x[i] = choose(x[i], across_lanes(x[i], 1 << half), upper[half]);
    if (count == 8)
        for (int i = 0; i < 4; ++i) exchange(&x[i], &x[i + 4]);
    for (int i = 0; i < count; i += 4) exchange(&x[i], &x[i + 2]), exchange(&x[i + 1], &x[i + 3]);
    for (int i = 0; i < count; i += 2) exchange(&x[i], &x[i + 1]);
}

/* Lanes of a and b in turn: those of the first halves, or of the second ones. */
static inline vector interleave(vector a, vector b, int second)
{
    const vector turn = TURN;
    return MM(permutex2var_epi)(a, MM(add_epi)(turn, MM(set1_epi)(second * (LANES / 2))), b);
}

/* Sorts at most count*LANES numbers, for 4 or 8 vectors. */
static inline __attribute__((always_inline)) void sorting_network(int64_t n, const number *from, number *to, int count)
{
    const vector last = MM(set1_epi)(-1);
    const int64_t whole = n / LANES;
    const lanes rest = SOME(n % LANES);
    vector x[8];
    for (int i = 0; i < count; ++i) {
        const lanes some = i < whole ? (lanes)~0u : i == whole ? rest : 0;
        x[i] = MM(mask_loadu_epi)(last, some, from + i * LANES);
    }
    /* In each lane: four vectors, the other four, and all eight (Batcher's odd-even merges). */
    EXCHANGE(0, 1), EXCHANGE(2, 3), EXCHANGE(0, 2), EXCHANGE(1, 3), EXCHANGE(1, 2);
    if (count == 8) {
        EXCHANGE(4, 5), EXCHANGE(6, 7), EXCHANGE(4, 6), EXCHANGE(5, 7), EXCHANGE(5, 6);
        EXCHANGE(0, 4), EXCHANGE(1, 5), EXCHANGE(2, 6), EXCHANGE(3, 7), EXCHANGE(2, 4), EXCHANGE(3, 5);
        EXCHANGE(1, 2), EXCHANGE(3, 4), EXCHANGE(5, 6);
    }
    merge(x, count, 0);
    merge(x, count, 1);
    merge(x, count, 2);
    if (LANES == 16) merge(x, count, 3);
    for (int step = count / 2; step; step /= 2) { /* lane l of vector i to place count*l + i */
        for (int i = 0; i < count; ++i) {
            if (i & step) continue;
            const vector a = x[i], b = x[i + step];
            x[i] = interleave(a, b, 0);
            x[i + step] = interleave(a, b, 1);
        }
    }
    for (int i = 0; i < count; ++i) {
        const lanes some = i < whole ? (lanes)~0u : i == whole ? rest : 0;
        MM(mask_storeu_epi)(to + i * LANES, some, x[i]);
    }
}

static __attribute__((noinline)) void sort_in_registers(int64_t n, const number *from, number *to)
{
    if (n <= 4 * LANES)
        sorting_network(n, from, to, 4);
    else
        sorting_network(n, from, to, 8);
}

/* A number with about as many below it as above it: the middle one of LANES. */
static inline number choose_pivot(int64_t n, const number *row)
{
    number sample[LANES];
    const vector twice = MM(slli_epi)(ORDER, 1);
    const vector spread = MM(sub_epi)(twice, MM(set1_epi)(LANES - 1));
    const vector places = MM(mullo_epi)(spread, MM(set1_epi)((signed_number)QUICKSORT_SPREAD(n)));
    const vector x = GATHER(places, row + n / 2, sizeof(number));
    _mm512_storeu_si512(sample, x);
    vector rank = _mm512_setzero_si512();
    for (int i = 0; i < LANES; ++i) {
        const lanes above = MM_MASK(cmpgt_epu)(x, MM(set1_epi)((signed_number)sample[i]));
        rank = MM(mask_add_epi)(rank, above, rank, MM(set1_epi)(1));
    }
    const lanes lower = MM_MASK(cmple_epu)(rank, MM(set1_epi)(LANES / 2));
    return (number)MM(mask_reduce_max_epu)(lower, x);
}

/* Puts what is below the pivot to `lows` and the rest to `highs`, in no order; how many are below it. With `equal`,
   what equals the pivot is below it. One of the two may be `from` itself: no more is stored than has been read. */
static inline int64_t partition(int64_t n, const number *from, number *lows, number *highs, number pivot, int equal)
{
    const vector border = MM(set1_epi)((signed_number)pivot);
    const int64_t whole = n - n % LANES;
    int64_t low = 0;
    int64_t i = 0;
    for (; i + 4 * LANES <= whole; i += 4 * LANES) {
        vector x[4];
        lanes less[4];
        for (int k = 0; k < 4; ++k) {
            __builtin_prefetch(from + i + (AHEAD + k) * LANES);
            x[k] = _mm512_loadu_si512(from + i + k * LANES);
            less[k] = equal ? MM_MASK(cmple_epu)(x[k], border) : MM_MASK(cmplt_epu)(x[k], border);
        }
        for (int k = 0; k < 4; ++k) {
            _mm512_storeu_si512(lows + low, MM(maskz_compress_epi)(less[k], x[k]));
            _mm512_storeu_si512(highs + (i + k * LANES - low), MM(maskz_compress_epi)((lanes)~less[k], x[k]));
            low += __builtin_popcount(less[k]);
        }
    }
    for (; i < whole; i += LANES) {
        const vector x = _mm512_loadu_si512(from + i);
        const lanes less = equal ? MM_MASK(cmple_epu)(x, border) : MM_MASK(cmplt_epu)(x, border);
        _mm512_storeu_si512(lows + low, MM(maskz_compress_epi)(less, x));
        _mm512_storeu_si512(highs + (i - low), MM(maskz_compress_epi)((lanes)~less, x));
        low += __builtin_popcount(less);
    }
    const lanes rest = SOME(n % LANES);
    const vector x = MM(maskz_loadu_epi)(rest, from + whole);
    const lanes less = equal ? MM_MASK(mask_cmple_epu)(rest, x, border) : MM_MASK(mask_cmplt_epu)(rest, x, border);
    const lanes more = (lanes)(rest & ~less);
    const int last = __builtin_popcount(less);
    MM(mask_storeu_epi)(lows + low, SOME(last), MM(maskz_compress_epi)(less, x));
    MM(mask_storeu_epi)(highs + (whole - low), SOME(__builtin_popcount(more)), MM(maskz_compress_epi)(more, x));
    return low + last;
}

/* Sorts what is at `row` and leaves it there, or at `room` where `across` says so, finished: by digits where pivots
   were bad `left` times. */
static void quicksort(const struct source *source, int64_t n, number *row, number *room, int bits, int across, int left)
{
    number *const to = across ? room : row, *const other = across ? row : room;
    if (n <= 8 * LANES || !left) {
        if (left)
            sort_in_registers(n, row, to);
        else
            radix_sort(n, row, room, bits, across);
        finish(source, n, to);
        return;
    }
    const number pivot = choose_pivot(n, row);
    int64_t low = partition(n, row, to, other, pivot, 0);
    if (low) {
        quicksort(source, low, to, other + (n - low), bits, 0, left - 1);
    } else { /* it is the least number: what equals it is in order */
        low = partition(n, other, to, other, pivot, 1);
        finish(source, low, to);
    }
    if (low < n) quicksort(source, n - low, other, to + low, bits, 1, left - 1);
}
#endif
