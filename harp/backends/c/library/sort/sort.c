/* Sorts a row of elements by their keys: in vectors where the machine can, else by digits.
 *
 * Values alone have no order among equals. Both zeros have one key, and so have all NaN: they are put back in the order
 * in which they were. */
#include "sort/sort.h"
#include "sort/keys.h"

typedef element number;
enum { LOW = 0 };

struct source {
    const element *keys;
    key flip;
};

/* Some of the keys as numbers; whether any is special. */
static inline int take(const struct source *source, int64_t begin, int64_t count, number *to)
{
    const element *const keys = source->keys + begin;
    const key flip = source->flip;
    key special = 0;
    for (int64_t i = 0; i < count; ++i) {
        to[i] = encode(keys[i], flip);
#if defined(HARP_INFINITY)
        special |= is_special(keys[i]);
#endif
    }
    return special != 0;
}

/* Numbers that are in order to elements. */
static inline void finish(const struct source *source, int64_t count, number *row)
{
    const key flip = source->flip;
    for (int64_t i = 0; i < count; ++i) {
        const key k = row[i];
        row[i] = decode(k, flip);
    }
}

#include "sort/radix_sort.h"

int OF_DTYPE(sort)(int64_t n, const void *given, void *stored, void *work, int reverse, harp_runner *run)
{
    const struct source source = {given, reverse ? ALL : 0};
    element *const out = stored;
    if (n < 1) return 0;
    if (n > UINT32_MAX) return 1;
    const int special = sort_row(&source, n, out, work, HARP_BITS, run);
    if (special != 1) return special == STOPPED;
#if defined(HARP_INFINITY)
    const element *const keys = given;
    const key flip = source.flip;
    int64_t zeros = 0, nans = reverse ? 0 : n;
    for (int64_t i = 0; i < n; ++i) {
        const key k = encode(out[i], flip);
        zeros += k < (key)(TOP ^ flip);
        nans -= !reverse && k == ALL;
    }
    for (int64_t i = 0; i < n; ++i) {
        if (is_zero(keys[i])) out[zeros++] = keys[i];
        if (is_nan(keys[i])) out[nans++] = keys[i];
    }
#endif
    return 0;
}
