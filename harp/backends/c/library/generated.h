/* What every unit of a generated program includes: indices and the sizes of memory. */
#ifndef HARP_GENERATED_H
#define HARP_GENERATED_H

#include "common.h"
#define HARP_BITS 64
#include "elements/signed_template.h"
#include "indices.h"

/* Generated code compares unsigned numbers with zero, fills buffers in parts, and may leave a part, or one of a
 * program's sizes, unread. */
#if defined(__clang__) || !defined(__GNUC__)
#define HARP_UNROLL(n)
#define HARP_INDEPENDENT
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define HARP_PRAGMA(text) _Pragma(#text)
#define HARP_UNROLL(n) HARP_PRAGMA(GCC unroll n)
#define HARP_INDEPENDENT HARP_PRAGMA(GCC ivdep)
#endif
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

/* Memory. */

static inline int64_t harp_larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* The first address of a slot that is half a page from that of another array, counted within pages of 4096 bytes. */
static inline char *harp_apart(char *slot, const void *other)
{
    return slot + (((uintptr_t)other + 2048 - (uintptr_t)slot) & 4095);
}

/* Bytes times an extent; what cannot be counted is more than there is. */
static inline int64_t harp_times(int64_t bytes, int64_t extent)
{
    int64_t product;
    const int over = __builtin_mul_overflow(bytes, extent > 0 ? extent : 0, &product);
    return over || product > INT64_MAX / 4 ? INT64_MAX / 4 : product;
}

#endif
