/* What every generated kernel includes. */
#ifndef HARP_GENERATED_H
#define HARP_GENERATED_H

#include "common.h"
#define HARP_BITS 64
#include "elements/signed_template.h"
#include "indices.h"

#if defined(__clang__)
#define HARP_PRAGMA(text) _Pragma(#text)
#define HARP_UNROLL(n) _Pragma("unroll")
#else
#define HARP_UNROLL(n)
#endif
/* Intel's compiler for processors (2026.2) ends the process at some loops that are said to be independent, and where
   each term is added or left out, it adds them in another order than that of the loop. */
#if defined(__INTEL_LLVM_COMPILER)
#define HARP_INDEPENDENT
#define HARP_IN_ORDER _Pragma("clang loop vectorize(disable)")
#elif defined(__clang__)
#define HARP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define HARP_IN_ORDER
#else
#define HARP_INDEPENDENT
#define HARP_IN_ORDER
#endif

/* Numbers of so many bytes in the loop that follows. For processors with vectors of 64 bytes clang takes those of 32
   where it is not told otherwise: exp took 1.6 times as long, tanh 1.8 times (Zen 5, PoCL 3.1 with clang 14). */
#if defined(__clang__) && defined(__AVX512F__)
#define HARP_WHOLE_VECTORS __attribute__((min_vector_width(512)))
#define HARP_VECTORS_OF(bytes) HARP_PRAGMA(clang loop vectorize_width(64 / bytes))
#else
#define HARP_WHOLE_VECTORS
#define HARP_VECTORS_OF(bytes)
#endif

/* Whether a position is beyond the end of its loop. Where a program has two kernels that return there, Intel's compiler
   for processors (2026.2) takes another end for one of them, unless the position comes from memory. */
static inline int harp_is_beyond(int64_t position, int64_t end)
{
#if defined(__INTEL_LLVM_COMPILER)
    volatile int64_t place = position;
    return place >= end;
#else
    return position >= end;
#endif
}

/* The number of this work-item among all of a launch. */
static inline int64_t harp_work_item(void)
{
    const int64_t row = get_global_id(2) * get_global_size(1) + get_global_id(1);
    return row * get_global_size(0) + get_global_id(0);
}

#endif
