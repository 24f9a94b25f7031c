/* Binary search of many values in a sorted row.
 *
 * Halves of a range are as long for all values, whatever is found, so that many go side by side. */
#include "sort/keys.h"
#include "sort/sort.h"

enum { LANES = 64 };

static inline void search(int64_t n, const element *table, int64_t m, const element *values, int64_t *out, int right)
{
    for (int64_t start = 0; start < m; start += LANES) {
        const int64_t count = m - start < LANES ? m - start : LANES;
        key wanted[LANES];
        int64_t first[LANES];
        for (int64_t l = 0; l < LANES; ++l) {
            wanted[l] = encode(values[start + (l < count ? l : 0)], 0);
            first[l] = 0;
        }
        for (int64_t left = n; left > 0;) {
            const int64_t half = left > 1 ? left / 2 : 1;
            for (int64_t l = 0; l < LANES; ++l) {
                const key here = encode(table[first[l] + half - 1], 0);
                first[l] += (right ? here <= wanted[l] : here < wanted[l]) ? half : 0;
            }
            left -= half;
        }
        for (int64_t l = 0; l < count; ++l) out[start + l] = first[l];
    }
}

void OF_DTYPE(searchsorted)(int64_t n, const void *given, int64_t m, const void *searched, int64_t *out, int right)
{
    if (right)
        search(n, given, m, searched, out, 1);
    else
        search(n, given, m, searched, out, 0);
}
