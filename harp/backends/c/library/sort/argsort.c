/* The places of a row's elements in the order of their keys.
 *
 * A place goes with 32 bits of the key in one number, so these are sorted by digits, from bit 32 on. Keys of 64 bits
 * are sorted by their low half, and then by their high half. Short rows are sorted by insertion. */
#include "sort/keys.h"
#include "sort/sort.h"

typedef uint64_t number __attribute__((may_alias));
enum { LOW = 32 };
/* Vectors would not keep the order of equal keys. */
#define QUICKSORT 0

struct source {
    const element *keys;
    key flip;
    const number *made;
};

/* Some of the keys with their places as numbers, or those that have been made; none is special. */
static inline int take(const struct source *source, int64_t begin, int64_t count, number *to)
{
    if (source->made) {
        memcpy(to, source->made + begin, (size_t)count * sizeof *to);
        return 0;
    }
    for (int64_t i = 0; i < count; ++i)
        to[i] = (number)encode(source->keys[begin + i], source->flip) << 32 | (number)(begin + i);
    return 0;
}

/* Numbers that are in order to places. */
static inline void finish(const struct source *source, int64_t count, number *row)
{
    (void)source;
    for (int64_t i = 0; i < count; ++i) row[i] = (uint32_t)row[i];
}

#include "sort/radix_sort.h"

int OF_DTYPE(argsort)(int64_t n, const void *given, void *stored, void *work, int reverse, harp_runner *run)
{
    struct source source = {given, reverse ? ALL : 0, 0};
    number *const room = work, *const places = stored;
    if (n < 1) return 0;
    if (n > UINT32_MAX) return 1;
    if (n <= SHORT) {
        for (int64_t i = 0; i < n; ++i) {
            const key k = encode(source.keys[i], source.flip);
            int64_t j = i;
            for (; j > 0 && room[j - 1] > k; --j) {
                room[j] = room[j - 1];
                places[j] = places[j - 1];
            }
            room[j] = k;
            places[j] = (number)i;
        }
        return 0;
    }
#if HARP_BITS < 64
    return sort_row(&source, n, places, room, HARP_BITS, run) == STOPPED;
#else
    const element *const keys = source.keys;
    const key flip = source.flip, first = encode(keys[0], flip);
    key differ = 0;
    for (int64_t i = 0; i < n; ++i) differ |= encode(keys[i], flip) ^ first;
    const int twice = (differ >> 32) != 0;
    if (sort_row(&source, n, twice ? room : places, twice ? places : room, 32, run) == STOPPED) return 1;
    if (twice) {
        for (int64_t i = 0; i < n; ++i) room[i] |= encode(keys[room[i]], flip) & ~(number)UINT32_MAX;
        source.made = room;
        return sort_row(&source, n, places, room, 32, run) == STOPPED;
    }
    return 0;
#endif
}
