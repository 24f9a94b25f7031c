/* What every generated kernel includes. */
#ifndef HARP_GENERATED_H
#define HARP_GENERATED_H

#include "common.h"
#include "elements/i64.h"
#include "indices.h"

#if defined(__clang__)
#define HARP_UNROLL(n) _Pragma("unroll")
#define HARP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HARP_UNROLL(n)
#define HARP_INDEPENDENT
#endif

/* The number of this work-item among all of a launch. */
static inline int64_t harp_work_item(void)
{
    const int64_t row = get_global_id(2) * get_global_size(1) + get_global_id(1);
    return row * get_global_size(0) + get_global_id(0);
}

/* Bytes of memory of a work-item: the next one starts on a cache line. */
static inline int64_t harp_slot(int64_t bytes) { return bytes > 0 ? (bytes + 63) / 64 * 64 : 0; }

#endif
