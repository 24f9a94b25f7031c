/* Sorting and searching of rows by one work-item each: a template for HARP_DTYPE.
 *
 * sort:         the elements in order, at `stored`
 * argsort:      their places in order, as int64
 * searchsorted: for each of m values, how many elements of the sorted row `table` are less, or with `right` no greater
 *
 * Both sorts are stable: they go by 8 bits of the keys at a time, the low ones first. `work` has room for n numbers of
 * 64 bits, `reverse` sorts down. Keys are unsigned numbers in the order of the elements, made of their bits: a sign bit
 * is turned, negative floats are turned round, all NaN are the largest number, and both zeros are one. */
#include "names.h"

/* A work-item starts no others. */
#define harp_parallel 0

#define KEY HARP_JOIN(uint, HARP_JOIN(HARP_BITS, _t))
#define TOP ((KEY)((KEY)1 << (HARP_BITS - 1)))

static inline KEY OF_DTYPE(key)(KEY bits)
{
#if defined(HARP_INFINITY)
    const KEY size = bits & (KEY)~TOP;
    const KEY placed = bits & TOP ? (KEY)~bits : (KEY)(bits | TOP);
    return size > (KEY)HARP_INFINITY ? (KEY) ~(KEY)0 : size == 0 ? TOP : placed;
#elif defined(HARP_SIGNED)
    return bits ^ TOP;
#else
    return bits;
#endif
}

/* Whether the second of two elements comes before the first one. */
static inline int OF_DTYPE(is_after)(KEY a, KEY b, int reverse)
{
    const KEY first = OF_DTYPE(key)(a), second = OF_DTYPE(key)(b);
    return reverse ? first < second : second < first;
}

/* How many keys have each value of each of their bytes. */
static inline void OF_DTYPE(count_bytes)(int64_t n, __global const KEY *keys, KEY flip, int64_t *counts)
{
    for (int d = 0; d < 32 * HARP_BITS; ++d) counts[d] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const KEY here = OF_DTYPE(key)(keys[i]) ^ flip;
        for (int b = 0; b < HARP_BITS / 8; ++b) ++counts[256 * b + (here >> 8 * b & 255)];
    }
}

/* Where the elements with each value of a byte begin, of how many there are; 0 if all have the same. */
static inline int OF_DTYPE(begin_bytes)(int64_t n, int64_t *counts)
{
    int64_t before = 0;
    for (int d = 0; d < 256; ++d) {
        const int64_t count = counts[d];
        if (count == n) return 0;
        counts[d] = before;
        before += count;
    }
    return 1;
}

#define NAME OF_DTYPE(sort)
#define ELEMENT KEY
#define ELEMENT_AT(i) keys[i]
#define KEY_OF(element) (element)
#include "sort/by_bytes.h"

#define NAME OF_DTYPE(argsort)
#define ELEMENT int64_t
#define ELEMENT_AT(i) (i)
#define KEY_OF(place) keys[place]
#include "sort/by_bytes.h"

/* Rows that all work-items sort together. Runs of `run` keys are sorted by one work-item each, this one's from `first`
 * on, which has `room` for as many keys, or places. Then runs of `width` are merged in pairs, each pair by parts of
 * `block` elements. Keys are kept as they are, and places beside them unless these are NULL. */
static inline void OF_DTYPE(sort_run)(int64_t n, int64_t run, int64_t first, __global const KEY *keys,
                                      __global KEY *to_keys, __global int64_t *to_places, __global void *room,
                                      int reverse)
{
    const int64_t count = first + run < n ? run : n - first;
    if (!to_places) {
        OF_DTYPE(sort)(count, keys + first, to_keys + first, (__global KEY *)room + first, reverse, 0);
        return;
    }
    OF_DTYPE(argsort)(count, keys + first, to_places + first, (__global int64_t *)room + first, reverse, 0);
    for (int64_t i = first; i < first + count; ++i) {
        const int64_t place = first + to_places[i];
        to_places[i] = place;
        to_keys[i] = keys[place];
    }
}

/* How many of the first `count` elements of two merged runs are of the first run: O. Green, R. McColl, D. A. Bader:
 * "GPU merge path", 2012. */
static inline int64_t OF_DTYPE(split)(int64_t count, __global const KEY *a, int64_t na, __global const KEY *b,
                                      int64_t nb, int reverse)
{
    int64_t low = count > nb ? count - nb : 0, high = count < na ? count : na;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (OF_DTYPE(is_after)(a[middle], b[count - 1 - middle], reverse))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Part `part` of all: the elements of a pair from part * block on, as the parts of the pairs before it are counted. */
static inline void OF_DTYPE(merge_part)(int64_t n, int64_t width, int64_t block, int64_t part, __global const KEY *keys,
                                        __global const int64_t *places, __global KEY *to_keys,
                                        __global int64_t *to_places, int reverse)
{
    const int64_t parts = (2 * width + block - 1) / block, pair = part / parts, start = pair * 2 * width;
    const int64_t left = n - start, na = left < width ? left : width, nb = left - na < width ? left - na : width;
    const int64_t first = (part - pair * parts) * block, last = first + block < na + nb ? first + block : na + nb;
    if (first >= last) return;
    __global const KEY *const a = keys + start, *const b = a + na;
    int64_t i = OF_DTYPE(split)(first, a, na, b, nb, reverse), j = first - i;
    int64_t i_end = OF_DTYPE(split)(last, a, na, b, nb, reverse), j_end = last - i_end;
    /* From both ends at once: each element waits for the one before it. */
    for (int64_t left = first, right = last - 1; left <= right; ++left, --right) {
        const int second = i >= na || (j < nb && OF_DTYPE(is_after)(a[i], b[j], reverse));
        const int64_t from = second ? na + j : i;
        to_keys[start + left] = a[from];
        if (to_places) to_places[start + left] = places[start + from];
        j += second;
        i += !second;
        if (left == right) break;
        const int is_second = i_end <= 0 || (j_end > 0 && !OF_DTYPE(is_after)(a[i_end - 1], b[j_end - 1], reverse));
        const int64_t end_from = is_second ? na + j_end - 1 : i_end - 1;
        to_keys[start + right] = a[end_from];
        if (to_places) to_places[start + right] = places[start + end_from];
        j_end -= is_second;
        i_end -= !is_second;
    }
}

static inline void OF_DTYPE(searchsorted)(int64_t n, __global const void *table, int64_t m,
                                          __global const void *searched, __global int64_t *out, int right)
{
    __global const KEY *const keys = table, *const values = searched;
    for (int64_t i = 0; i < m; ++i) {
        const KEY wanted = OF_DTYPE(key)(values[i]);
        int64_t first = 0;
        for (int64_t left = n; left > 0;) {
            const int64_t half = left > 1 ? left / 2 : 1;
            const KEY here = OF_DTYPE(key)(keys[first + half - 1]);
            first += (right ? here <= wanted : here < wanted) ? half : 0;
            left -= half;
        }
        out[i] = first;
    }
}

#undef KEY
#undef TOP

#ifndef harp_take_row
/* Elements of a row by their places. */
#define harp_take_row(n, places, from, to)                                                                             \
    for (int64_t at = 0; at < (n); ++at) (to)[at] = (from)[(places)[at]]
#define harp_places(memory) ((__global int64_t *)(memory))
#endif
