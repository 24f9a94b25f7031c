/* What programs ask of the process (process.h), in a file of its own: memory is from the heap or the caller, nothing
 * interrupts, and threads are those of OpenMP where the compiler is told to use it. */
#ifndef HARP_STANDALONE_H
#define HARP_STANDALONE_H

#include "common.h"
#if defined(_OPENMP)
#include <omp.h>
#endif

typedef struct {
    int status, least;
} harp_job;
typedef void harp_part(void *given, int64_t begin, int64_t end);

/* Work that is not worth threads, and the chunks that each of them gets. */
#define HARP_LEAST_WORK 65536.0
#define HARP_CHUNKS 4

static inline void harp_parallel(harp_part *part, void *given, int64_t count, double work)
{
#if defined(_OPENMP)
    const int64_t threads = omp_in_parallel() ? 1 : omp_get_max_threads();
    const int64_t chunks = count < threads * HARP_CHUNKS ? count : threads * HARP_CHUNKS;
    if (threads > 1 && count > 1 && work >= HARP_LEAST_WORK) {
        const int64_t each = count / chunks, more = count % chunks;
#pragma omp parallel for schedule(dynamic)
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            const int64_t begin = chunk * each + (chunk < more ? chunk : more);
            part(given, begin, begin + each + (chunk < more));
        }
        return;
    }
#endif
    (void)work;
    part(given, 0, count);
}

static inline void *harp_take(int64_t bytes)
{
    const int is_countable = bytes < INT64_MAX / 4 && (uint64_t)bytes <= SIZE_MAX - 128;
    return is_countable ? aligned_alloc(64, (size_t)((bytes + 64) / 64 * 64)) : NULL;
}

static inline void harp_give(void *block) { free(block); }

/* The first cache line in the caller's memory. */
static inline char *harp_on_line(void *memory) { return (char *)memory + (-(uintptr_t)memory & 63); }

static inline int harp_interrupted(void) { return 0; }
#define HARP_OPERATIONS 1048576.0
HARP_INLINE int64_t harp_stop(int64_t from, int64_t end, double work)
{
    (void)from, (void)work;
    return end;
}

#endif
