"""Quicksort in vectors, as C: numbers of 32 or 64 bits, where the machine has AVX-512; see `harp.backends.c.radix`.

A row is parted by a pivot: each vector of it is compressed to what is below the pivot, which goes to where the row is
wanted, and to what is not, which goes to the other one of two arrays. What fits into eight vectors is sorted in
registers by a network. C. A. R. Hoare: "Quicksort", The Computer Journal 5 (1962); K. E. Batcher: "Sorting networks and
their applications", AFIPS 32 (1968). Equal numbers change places, so it is for numbers that are all there is to a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

_TEXT = Template(
    """\
#ifdef __AVX512F__
#include <immintrin.h>
#define QUICK 1
#define LANES $lanes
#define AHEAD 64 /* vectors that are fetched before they are read */
#define SOME(n) ((lanes)((1u << (n)) - 1)) /* the first n lanes, n < LANES */

static void sort(int64_t n, number *row, number *room, int bits, int across);

typedef __m512i vector;
typedef __mmask$lanes lanes;

/* Lanes change places with those whose numbers differ from theirs in the bits of `by`. */
static inline vector across_lanes(vector x, int by)
{
    return _mm512_permutexvar_epi$bits(_mm512_xor_si512(_mm512_set$order, _mm512_set1_epi$bits(by)), x);
}

static inline void exchange(vector *a, vector *b)
{
    const vector least = _mm512_min_epu$bits(*a, *b);
    *b = _mm512_max_epu$bits(*a, *b);
    *a = least;
}

#define EACH(i, j) exchange(&x[i], &x[j]);

/* Of the two results, lanes of `upper` get the greater one. */
static inline vector choose(vector a, vector b, lanes upper)
{
    return _mm512_mask_max_epu$bits(_mm512_min_epu$bits(a, b), upper, a, b);
}

/* What is sorted in groups of lanes becomes sorted in groups of twice as many: first with those of the other group in
   reverse, then at half the distance each time. A lane holds as many numbers that follow each other as vectors. */
static inline __attribute__((always_inline)) void merge(vector *x, int count, int group)
{
    const lanes upper[] = {(lanes)0xAAAA, (lanes)0xCCCC, (lanes)0xF0F0, (lanes)0xFF00};
    for (int i = 0; i < count/2; ++i) {
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
static inline vector zip(vector a, vector b, int second)
{
    const vector turn = _mm512_set$turn;
    return _mm512_permutex2var_epi$bits(a, _mm512_add_epi$bits(turn, _mm512_set1_epi$bits(second*(LANES/2))), b);
}

/* Sorts at most count*LANES numbers, for 4 or 8 vectors. */
static inline __attribute__((always_inline)) void network(int64_t n, const number *from, number *to, int count)
{
    const vector last = _mm512_set1_epi$bits(-1);
    const int64_t whole = n/LANES;
    const lanes rest = SOME(n%LANES);
    vector x[8];
    for (int i = 0; i < count; ++i) {
        const lanes some = i < whole ? (lanes)~0u : i == whole ? rest : 0;
        x[i] = _mm512_mask_loadu_epi$bits(last, some, from + i*LANES);
    }
    EACH(0, 1) EACH(2, 3) EACH(0, 2) EACH(1, 3) EACH(1, 2)
    if (count == 8) {
        EACH(4, 5) EACH(6, 7) EACH(4, 6) EACH(5, 7) EACH(5, 6)
        EACH(0, 4) EACH(1, 5) EACH(2, 6) EACH(3, 7) EACH(2, 4) EACH(3, 5) EACH(1, 2) EACH(3, 4) EACH(5, 6)
    }
    merge(x, count, 0);
    merge(x, count, 1);
    merge(x, count, 2);
    $widest
    for (int step = count/2; step; step /= 2) { /* lane l of vector i to place count*l + i */
        for (int i = 0; i < count; ++i) {
            if (i & step) continue;
            const vector a = x[i], b = x[i + step];
            x[i] = zip(a, b, 0);
            x[i + step] = zip(a, b, 1);
        }
    }
    for (int i = 0; i < count; ++i) {
        const lanes some = i < whole ? (lanes)~0u : i == whole ? rest : 0;
        _mm512_mask_storeu_epi$bits(to + i*LANES, some, x[i]);
    }
}

static __attribute__((noinline)) void in_registers(int64_t n, const number *from, number *to)
{
    if (n <= 4*LANES)
        network(n, from, to, 4);
    else
        network(n, from, to, 8);
}

/* A number with about as many below it as above it: the middle one of LANES. */
static inline number middle(int64_t n, const number *row)
{
    number sample[LANES];
    const vector twice = _mm512_slli_epi$bits(_mm512_set$order, 1);
    const vector spread = _mm512_sub_epi$bits(twice, _mm512_set1_epi$bits(LANES - 1));
    const vector places = _mm512_mullo_epi$bits(spread, _mm512_set1_epi$bits((int${bits}_t)(n/(2*LANES))));
    const vector x = _mm512_i${bits}gather_epi$bits(places, row + n/2, sizeof(number));
    _mm512_storeu_si512(sample, x);
    vector rank = _mm512_setzero_si512();
    for (int i = 0; i < LANES; ++i) {
        const lanes above = _mm512_cmpgt_epu$bits##_mask(x, _mm512_set1_epi$bits((int${bits}_t)sample[i]));
        rank = _mm512_mask_add_epi$bits(rank, above, rank, _mm512_set1_epi$bits(1));
    }
    const lanes lower = _mm512_cmple_epu$bits##_mask(rank, _mm512_set1_epi$bits(LANES/2));
    return (number)_mm512_mask_reduce_max_epu$bits(lower, x);
}

/* Puts what is below the pivot to `lows` and the rest to `highs`, in no order; how many are below it. With `equal`,
   what equals the pivot is below it. One of the two may be `from` itself: no more is stored than has been read. */
static inline int64_t part(int64_t n, const number *from, number *lows, number *highs, number pivot, int equal)
{
    const vector border = _mm512_set1_epi$bits((int${bits}_t)pivot);
    const int64_t whole = n - n%LANES;
    int64_t low = 0;
    int64_t i = 0;
    for (; i + 4*LANES <= whole; i += 4*LANES) {
        vector x[4];
        lanes less[4];
        for (int k = 0; k < 4; ++k) {
            __builtin_prefetch(from + i + (AHEAD + k)*LANES);
            x[k] = _mm512_loadu_si512(from + i + k*LANES);
            less[k] = equal ? _mm512_cmple_epu$bits##_mask(x[k], border) : _mm512_cmplt_epu$bits##_mask(x[k], border);
        }
        for (int k = 0; k < 4; ++k) {
            _mm512_storeu_si512(lows + low, _mm512_maskz_compress_epi$bits(less[k], x[k]));
            _mm512_storeu_si512(highs + (i + k*LANES - low), _mm512_maskz_compress_epi$bits((lanes)~less[k], x[k]));
            low += __builtin_popcount(less[k]);
        }
    }
    for (; i < whole; i += LANES) {
        const vector x = _mm512_loadu_si512(from + i);
        const lanes less = equal ? _mm512_cmple_epu$bits##_mask(x, border) : _mm512_cmplt_epu$bits##_mask(x, border);
        _mm512_storeu_si512(lows + low, _mm512_maskz_compress_epi$bits(less, x));
        _mm512_storeu_si512(highs + (i - low), _mm512_maskz_compress_epi$bits((lanes)~less, x));
        low += __builtin_popcount(less);
    }
    const lanes rest = SOME(n%LANES);
    const vector x = _mm512_maskz_loadu_epi$bits(rest, from + whole);
    const lanes less = equal ? _mm512_mask_cmple_epu$bits##_mask(rest, x, border)
                             : _mm512_mask_cmplt_epu$bits##_mask(rest, x, border);
    const lanes more = (lanes)(rest & ~less);
    const int last = __builtin_popcount(less);
    _mm512_mask_storeu_epi$bits(lows + low, SOME(last), _mm512_maskz_compress_epi$bits(less, x));
    _mm512_mask_storeu_epi$bits(highs + (whole - low), SOME(__builtin_popcount(more)),
        _mm512_maskz_compress_epi$bits(more, x));
    return low + last;
}

/* Sorts what is at `row` and leaves it there, or at `room` where `across` says so, finished: by digits where pivots
   were bad `left` times. */
static void quick(const struct source *source, int64_t n, number *row, number *room, int bits, int across, int left)
{
    number *const to = across ? room : row, *const other = across ? row : room;
    if (n <= 8*LANES || !left) {
        if (left)
            in_registers(n, row, to);
        else
            sort(n, row, room, bits, across);
        finish(source, n, to);
        return;
    }
    const number pivot = middle(n, row);
    int64_t low = part(n, row, to, other, pivot, 0);
    if (low) {
        quick(source, low, to, other + (n - low), bits, 0, left - 1);
    } else { /* it is the least number: what equals it is in order */
        low = part(n, other, to, other, pivot, 1);
        finish(source, low, to);
    }
    if (low < n) quick(source, n - low, other, to + low, bits, 1, left - 1);
}
#else
#define QUICK 0
#endif
"""
)

_FIELDS: Mapping[int, Mapping[str, str]] = {
    32: {
        "order": "_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)",
        "turn": "_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0)",
        "widest": "merge(x, count, 3);",
    },
    64: {"order": "_epi64(7, 6, 5, 4, 3, 2, 1, 0)", "turn": "_epi64(11, 3, 10, 2, 9, 1, 8, 0)", "widest": ""},
}


def quicksort(bits: int) -> str:
    """The definition of QUICK, and of `quick` where that is 1."""
    if bits not in _FIELDS:
        return "#define QUICK 0\n"
    return _TEXT.substitute(_FIELDS[bits], bits=bits, lanes=512 // bits).replace("##", "")
