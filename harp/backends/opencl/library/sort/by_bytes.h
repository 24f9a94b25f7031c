/* The sort of keys, or of their places: a template. ELEMENT_AT(i) is what stands for key i, KEY_OF(element) the key. */

static inline int NAME(int64_t n, __global const void *given, __global void *stored, __global void *work, int reverse,
                       int run)
{
    __global const KEY *const keys = given;
    __global ELEMENT *from = stored, *to = work;
    const KEY flip = reverse ? (KEY) ~(KEY)0 : 0;
    /* The few elements of a short row, each put where it belongs among those before it. */
    if (n <= 32) {
        for (int64_t i = 0; i < n; ++i) {
            const ELEMENT here = ELEMENT_AT(i);
            int64_t j = i;
            for (; j > 0 && OF_DTYPE(is_after)(KEY_OF(from[j - 1]), KEY_OF(here), reverse); --j) from[j] = from[j - 1];
            from[j] = here;
        }
        return 0;
    }
    for (int64_t i = 0; i < n; ++i) from[i] = ELEMENT_AT(i);
    int64_t counts[32 * HARP_BITS];
    OF_DTYPE(count_bytes)(n, keys, flip, counts);
    for (int b = 0; b < HARP_BITS / 8; ++b) {
        int64_t *const places = counts + 256 * b;
        if (!OF_DTYPE(begin_bytes)(n, places)) continue;
        for (int64_t i = 0; i < n; ++i) {
            const ELEMENT here = from[i];
            to[places[(OF_DTYPE(key)(KEY_OF(here)) ^ flip) >> 8 * b & 255]++] = here;
        }
        __global ELEMENT *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != stored)
        for (int64_t i = 0; i < n; ++i) ((__global ELEMENT *)stored)[i] = from[i];
    return 0;
}

#undef NAME
#undef ELEMENT
#undef ELEMENT_AT
#undef KEY_OF
