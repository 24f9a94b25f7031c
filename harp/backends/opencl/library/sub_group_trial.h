/* Whether sub-groups of HARP_LANES are as kernels need them: each work-item gets the number of the next one in its
   sub-group, in 64 bits and in 8. */
#include "sub_group.h"

__kernel __attribute__((reqd_work_group_size(HARP_ITEMS, 1, 1)))
__attribute__((intel_reqd_sub_group_size(HARP_LANES))) void
harp_neighbours(__global int64_t *found)
{
    const int64_t lane = get_sub_group_local_id(), item = get_sub_group_id() * HARP_LANES + lane;
    const int64_t next = (lane + 1) % HARP_LANES;
    found[2 * item] = harp_shuffle_i64(item, next);
    found[2 * item + 1] = harp_shuffle_i8(item - 128, next) + 128;
}
