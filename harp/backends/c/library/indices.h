/* Arithmetic of indices and of sizes of memory in generated programs. */
#ifndef HARP_INDICES_H
#define HARP_INDICES_H

static inline int64_t harp_relu(int64_t a) { return a > 0 ? a : 0; }

/* a / b for a, b >= 0; a size that divides may be 0 where no loop runs. */
static inline int64_t harp_quotient(int64_t a, int64_t b) { return b != 0 ? a / b : 0; }

/* Bytes of a slot of memory: the next one starts on a cache line. */
static inline int64_t harp_slot(int64_t bytes) { return bytes > 0 ? (bytes + 63) / 64 * 64 : 0; }

/* A position along an axis of n elements, from the end if it is negative; the nearest one where it is outside. */
static inline int64_t harp_indirect(int64_t a, int64_t n)
{
    const int64_t at = a < 0 ? a + n : a;
    return at < 0 ? 0 : at < n ? at : n - 1;
}

/* A position along an axis of n elements, from the end if it is negative; n where it is outside. */
static inline int64_t harp_indirect_or_miss(int64_t a, int64_t n)
{
    const int64_t at = a < 0 ? a + n : a;
    return (uint64_t)at < (uint64_t)n ? at : n;
}

#endif
