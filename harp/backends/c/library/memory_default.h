/* What a program takes memory with until it is told of the process's own functions. */
#include "memory.h"

static void *harp_take_from_heap(int64_t bytes)
{
    return bytes >= INT64_MAX / 4 ? NULL : aligned_alloc(64, (size_t)((bytes + 64) / 64 * 64));
}
void *(*harp_take)(int64_t bytes) = harp_take_from_heap;
void (*harp_give)(void *block) = free;
