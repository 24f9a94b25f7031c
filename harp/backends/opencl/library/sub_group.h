/* Exchanges of variables in a sub-group: harp_shuffle_f32(a, i) is what `a` is in lane i. All lanes call it, and i is
   one of them. */
#ifndef HARP_SUB_GROUP_H
#define HARP_SUB_GROUP_H

#include "common.h"

/* Numbers of fewer than 32 bits go as such of 32: not every device has exchanges of them. */
#if defined(cl_khr_subgroup_shuffle)
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#define HARP_SHUFFLE sub_group_shuffle
#else
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define HARP_SHUFFLE intel_sub_group_shuffle
#endif

#define HARP_SHUFFLE_AS(dtype, type, passed)                                                                           \
    HARP_INLINE type harp_shuffle_##dtype(type a, int64_t i) { return (type)HARP_SHUFFLE((passed)a, (uint)i); }

HARP_SHUFFLE_AS(bool, uint8_t, uint32_t)
HARP_SHUFFLE_AS(i8, int8_t, int32_t)
HARP_SHUFFLE_AS(i16, int16_t, int32_t)
HARP_SHUFFLE_AS(i32, int32_t, int32_t)
HARP_SHUFFLE_AS(i64, int64_t, int64_t)
HARP_SHUFFLE_AS(u8, uint8_t, uint32_t)
HARP_SHUFFLE_AS(u16, uint16_t, uint32_t)
HARP_SHUFFLE_AS(u32, uint32_t, uint32_t)
HARP_SHUFFLE_AS(u64, uint64_t, uint64_t)
HARP_SHUFFLE_AS(f32, float, float)

HARP_INLINE harp_c64 harp_shuffle_c64(harp_c64 a, int64_t i)
{
    return harp_complex_c64(harp_shuffle_f32(a.x, i), harp_shuffle_f32(a.y, i));
}

#if !defined(HARP_NO_DOUBLES)
HARP_SHUFFLE_AS(f64, double, double)

HARP_INLINE harp_c128 harp_shuffle_c128(harp_c128 a, int64_t i)
{
    return harp_complex_c128(harp_shuffle_f64(a.x, i), harp_shuffle_f64(a.y, i));
}
#endif

/* Whether sub-groups of HARP_LANES are as kernels need them: each work-item gets the number of the next one in its
   sub-group, in 64 bits and in 8. */
#if defined(HARP_TRIAL)
__kernel __attribute__((reqd_work_group_size(HARP_ITEMS, 1, 1)))
__attribute__((intel_reqd_sub_group_size(HARP_LANES))) void harp_neighbours(__global int64_t *found)
{
    const int64_t lane = get_sub_group_local_id(), item = get_sub_group_id() * HARP_LANES + lane;
    const int64_t next = (lane + 1) % HARP_LANES;
    found[2 * item] = harp_shuffle_i64(item, next);
    found[2 * item + 1] = harp_shuffle_i8(item - 128, next) + 128;
}
#endif

#endif
