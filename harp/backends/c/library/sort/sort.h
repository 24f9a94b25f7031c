/* Sorting and searching of rows, which programs share: each function is compiled once for a machine.
 *
 * sort:         the keys in order, at `stored`
 * argsort:      their places in order, as int64
 * searchsorted: for each of m values, how many elements of the sorted row `given` are less, or with `right` no greater
 *
 * Both sorts are stable. `work` has room for n numbers of 64 bits and one key, `reverse` sorts down, and `run` runs the
 * parts of a parallel loop; the result is 1 where a row is too long, or Python was
 * interrupted. */
#ifndef HARP_SORT_H
#define HARP_SORT_H

#include "names.h"
#include <stdint.h>

typedef void harp_runner(void (*part)(void *, int64_t, int64_t), void *given, int64_t count, double work);

#define HARP_DECLARE_SORT(dtype)                                                                                       \
    int harp_sort_##dtype(int64_t n, const void *given, void *stored, void *work, int reverse, harp_runner *run);      \
    int harp_argsort_##dtype(int64_t n, const void *given, void *stored, void *work, int reverse, harp_runner *run);   \
    void harp_searchsorted_##dtype(int64_t n, const void *given, int64_t m, const void *searched, int64_t *out,        \
                                   int right)

HARP_DECLARE_SORT(bool);
HARP_DECLARE_SORT(i8);
HARP_DECLARE_SORT(i16);
HARP_DECLARE_SORT(i32);
HARP_DECLARE_SORT(i64);
HARP_DECLARE_SORT(u8);
HARP_DECLARE_SORT(u16);
HARP_DECLARE_SORT(u32);
HARP_DECLARE_SORT(u64);
HARP_DECLARE_SORT(f16);
HARP_DECLARE_SORT(bf16);
HARP_DECLARE_SORT(f32);
HARP_DECLARE_SORT(f64);

/* Memory for places. */
#define harp_places(memory) ((int64_t *)(memory))

/* Elements of a row by their places. */
#define harp_take_row(n, places, from, to)                                                                             \
    for (int64_t at = 0; at < (n); ++at) (to)[at] = (from)[(places)[at]]

#endif
