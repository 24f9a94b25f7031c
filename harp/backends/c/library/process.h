/* What programs ask of the process: pointers to functions, which are set when a program is loaded (pool.c, memory.c,
 * interrupt.c, runtime/host_calls.py). The unit with the calls of a program defines those that the program uses; until
 * they are set, loops run in one thread, memory is from the heap, Python is not called and interrupts nothing. */
#ifndef HARP_PROCESS_H
#define HARP_PROCESS_H

#include "common.h"

/* Runs the function of a parallel loop's body for all iterations. What a part is given begins with a job. When its
 * status is not 0, because a part has failed or Python was interrupted, the iterations that remain are left out.
 * `least` iterations go without a question: as many as compilers compute side by side in vectors. */
typedef struct {
    int status, least;
} harp_job;
typedef void harp_part(void *given, int64_t begin, int64_t end);
extern HARP_EXPORT void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work);

/* Memory for the time of a call, or of a part of a loop, aligned to 64 bytes; NULL on failure. A thread gives back last
 * what it took first. */
extern HARP_EXPORT void *(*harp_take)(int64_t bytes);
extern HARP_EXPORT void (*harp_give)(void *block);

/* Calls a function of Python, by its number: 0, or 1 if the program is to end. The layout says of which dtypes and
 * ranks the arrays are, and the sizes are those of the calls and then of each array. */
extern HARP_EXPORT int (*harp_call_python)(int64_t number, const char *layout, const void *const *arrays,
                                           const int64_t *sizes);

/* Functions of LAPACK, four for each name in `lapack/lapack.h`; first, 1 if its integers have 64 bits. */
extern HARP_EXPORT const void *const *harp_lapack;

/* Whether a loop is to end, because Python was interrupted. */
extern HARP_EXPORT int (*harp_interrupted)(void);

/* Scalar operations between two such questions, which take some 20 ns each. */
#define HARP_OPERATIONS 1048576.0

/* The first position that does not belong to the block of steps that begins at `from`; `work` is that of a step. */
HARP_INLINE int64_t harp_stop(int64_t from, int64_t end, double work)
{
    const int64_t steps = work < HARP_OPERATIONS ? (int64_t)(HARP_OPERATIONS / (work + 1.0)) + 1 : 1;
    return end - from > steps ? from + steps : end;
}

#if defined(HARP_PARALLEL_DEFAULT)
static void harp_serial(harp_part *part, void *given, int64_t count, double work)
{
    (void)work;
    part(given, 0, count);
}
void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work) = harp_serial;
#endif

#if defined(HARP_TAKE_DEFAULT)
static void *harp_take_from_heap(int64_t bytes)
{
    return bytes >= INT64_MAX / 4 ? NULL : aligned_alloc(64, (size_t)((bytes + 64) / 64 * 64));
}
void *(*harp_take)(int64_t bytes) = harp_take_from_heap;
void (*harp_give)(void *block) = free;
#endif

#if defined(HARP_CALL_PYTHON_DEFAULT)
static int harp_no_python(int64_t number, const char *layout, const void *const *arrays, const int64_t *sizes)
{
    (void)number, (void)layout, (void)arrays, (void)sizes;
    return 1;
}
int (*harp_call_python)(int64_t, const char *, const void *const *, const int64_t *) = harp_no_python;
#endif

#if defined(HARP_LAPACK_DEFAULT)
const void *const *harp_lapack = 0;
#endif

#if defined(HARP_INTERRUPTED_DEFAULT)
static int harp_not_interrupted(void) { return 0; }
int (*harp_interrupted)(void) = harp_not_interrupted;
#endif

#endif
