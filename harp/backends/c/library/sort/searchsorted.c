/* Binary search of many values in a sorted row.
 *
 * Halves of a range are as long for all values, whatever is found, so that many go side by side. */
#include "sort/keys.h"
#include "sort/sort.h"

enum { LANES = 64 };

/* Places are as wide as keys, so that vectors of both have the same length; longer rows are searched in parts. */
#if HARP_BITS == 32
typedef int32_t place;
#ifndef LONGEST
#define LONGEST INT32_MAX
#endif
#else
typedef int64_t place;
#define LONGEST INT64_MAX
#endif

/* Adds the counts in this part of the row to those of the parts before it. */
static inline void search(place n, const element *table, int64_t m, const element *values, int64_t *out, int is_first,
                          int right)
{
    for (int64_t start = 0; start < m; start += LANES) {
        const int64_t count = m - start < LANES ? m - start : LANES;
        key wanted[LANES];
        place first[LANES];
        for (int64_t l = 0; l < LANES; ++l) {
            wanted[l] = encode(values[start + (l < count ? l : 0)], 0);
            first[l] = 0;
        }
        for (place left = n; left > 0;) {
            const place half = left > 1 ? left / 2 : 1;
            for (int64_t l = 0; l < LANES; ++l) {
                const key here = encode(table[first[l] + half - 1], 0);
                first[l] += (right ? here <= wanted[l] : here < wanted[l]) ? half : 0;
            }
            left -= half;
        }
        for (int64_t l = 0; l < count; ++l) out[start + l] = (is_first ? 0 : out[start + l]) + first[l];
    }
}

void OF_DTYPE(searchsorted)(int64_t n, const void *given, int64_t m, const void *searched, int64_t *out, int right)
{
    const element *table = given;
    int64_t begin = 0;
    do {
        const place part = (place)(n - begin < LONGEST ? n - begin : LONGEST);
        if (right)
            search(part, table + begin, m, searched, out, begin == 0, 1);
        else
            search(part, table + begin, m, searched, out, begin == 0, 0);
        begin += part;
    } while (begin < n);
}
