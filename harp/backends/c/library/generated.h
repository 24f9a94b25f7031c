/* What every unit of a generated program includes: indices and the sizes of memory. */
#ifndef HARP_GENERATED_H
#define HARP_GENERATED_H

#include "common.h"
#include "elements/i64.h"

#if defined(_WIN32)
#define HARP_EXPORT __declspec(dllexport)
#else
#define HARP_EXPORT __attribute__((visibility("default")))
#endif
/* Generated code compares unsigned numbers with zero, fills buffers in parts, and may leave a part unread. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#define HARP_UNROLL(n)
#define HARP_INDEPENDENT
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define HARP_PRAGMA(text) _Pragma(#text)
#define HARP_UNROLL(n) HARP_PRAGMA(GCC unroll n)
#define HARP_INDEPENDENT HARP_PRAGMA(GCC ivdep)
#endif
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

/* Indices. */

static inline int64_t harp_relu(int64_t a) { return a > 0 ? a : 0; }

/* a / b for a, b >= 0; a size that divides may be 0 where no loop runs. */
static inline int64_t harp_quotient(int64_t a, int64_t b) { return b != 0 ? a / b : 0; }

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

/* Memory. */

static inline int64_t harp_larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Bytes of a slot of the arena: the next one starts on a cache line. */
static inline int64_t harp_slot(int64_t bytes) { return bytes > 0 ? (bytes + 63) / 64 * 64 : 0; }

/* Bytes times an extent; what cannot be counted is more than there is. */
static inline int64_t harp_times(int64_t bytes, int64_t extent)
{
    int64_t product;
    const int over = __builtin_mul_overflow(bytes, extent > 0 ? extent : 0, &product);
    return over || product > INT64_MAX / 4 ? INT64_MAX / 4 : product;
}

#endif
