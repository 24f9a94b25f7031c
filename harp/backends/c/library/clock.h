/* A clock that never goes back, in nanoseconds; Python has the same one. */
#ifndef HARP_CLOCK_H
#define HARP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t harp_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
