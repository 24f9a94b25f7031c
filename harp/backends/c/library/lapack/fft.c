/* Fourier transforms of rows, by the loops of NumPy's functions of them, which make their plans and keep them. */
#include "lapack/lapack.h"

#if defined(HARP_TO_REAL)
typedef _Complex HARP_REAL from;
typedef HARP_REAL to;
#elif defined(HARP_TO_COMPLEX)
typedef HARP_REAL from;
typedef _Complex HARP_REAL to;
#else
typedef element from, to;
#endif

typedef void loop(void *const *arrays, const int64_t *sizes, const int64_t *steps, void *given);
struct rows {
    harp_job job;
    loop *loop;
    void *given;
    to *results;
    const from *operands;
    int64_t length, count;
};

/* A result that no transform has, and that stays where NumPy has found no memory. */
static const uint64_t untouched = 0x7ff8dead7ff8deadu;

static void some_rows(void *given, int64_t begin, int64_t end)
{
    struct rows *const rows = given;
    const int64_t in = sizeof(from), out = sizeof(to);
    real factor = 1;
    void *arrays[] = {(from *)(uintptr_t)rows->operands + begin * rows->length, &factor,
                      rows->results + begin * rows->count};
    const int64_t sizes[] = {end - begin, rows->length, rows->count};
    const int64_t steps[] = {in * rows->length, 0, out * rows->count, in, out};
    void *const last = rows->results + end * rows->count - 1;
    __builtin_memcpy(last, &untouched, sizeof(real));
    rows->loop(arrays, sizes, steps, rows->given);
    if (__builtin_memcmp(last, &untouched, sizeof(real)) == 0) rows->job.status = 1;
}

int HARP_JOIN(HARP_JOIN(HARP_JOIN(harp_, HARP_NAME), _), HARP_DTYPE)(int64_t calls, int flags,
                                                                     const void *const *arrays, const int64_t *sizes)
{
    const int64_t count = sizes[0], length = sizes[1];
#if defined(HARP_TO_REAL)
    const int which = IRFFT;
    (void)flags;
#elif defined(HARP_TO_COMPLEX)
    const int which = length % 2 ? RFFT_ODD : RFFT_EVEN;
    (void)flags;
#else
    const int which = flags & 1 ? IFFT : FFT;
#endif
    struct rows rows = {
        {0, 1}, LAPACK(which, loop), LAPACK(which + 1, void), (void *)(uintptr_t)arrays[0], arrays[1], length, count};
    const int64_t longest = length < count ? count : length;
    if (calls > 0 && count > 0)
        harp_parallel(some_rows, &rows, calls,
                      (double)(calls * longest) * 3 * (64 - __builtin_clzll((uint64_t)longest)));
    return rows.job.status;
}
