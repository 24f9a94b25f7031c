/* Fourier transforms along the first of two axes, by the loops of NumPy's functions of them, which make their plans and
 * keep them. */
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

enum { BY_SIZE = 1, BY_ROOT = 2, INVERSE = 4 };

typedef void loop(void *const *arrays, const int64_t *sizes, const int64_t *steps, void *given);
struct rows {
    harp_job job;
    loop *loop;
    void *given;
    real factor;
    to *results;
    const from *operands;
    int64_t length, count, inner;
};

/* A result that no transform has, and that stays where NumPy has found no memory. */
static const uint64_t untouched = 0x7ff8dead7ff8deadu;

/* Rows stand side by side, `inner` of them, or one after the other. */
static void some_rows(void *given, int64_t begin, int64_t end)
{
    struct rows *const rows = given;
    const int64_t inner = rows->inner, in = sizeof(from), out = sizeof(to);
    while (begin < end) {
        const int64_t call = begin / inner, place = begin % inner;
        const int64_t many = inner == 1 || end - begin < inner - place ? end - begin : inner - place;
        to *const first = rows->results + call * inner * rows->count + place;
        void *arrays[] = {(from *)(uintptr_t)rows->operands + call * inner * rows->length + place, &rows->factor,
                          first};
        const int64_t sizes[] = {many, rows->length, rows->count};
        const int64_t steps[] = {in * (inner == 1 ? rows->length : 1), 0, out * (inner == 1 ? rows->count : 1),
                                 in * inner, out * inner};
        void *const last = first + (many - 1) * (inner == 1 ? rows->count : 1);
        __builtin_memcpy(last, &untouched, sizeof(real));
        rows->loop(arrays, sizes, steps, rows->given);
        if (__builtin_memcmp(last, &untouched, sizeof(real)) == 0) rows->job.status = 1;
        begin += many;
    }
}

int HARP_JOIN(HARP_JOIN(HARP_JOIN(harp_, HARP_NAME), _), HARP_DTYPE)(int64_t calls, int flags,
                                                                     const void *const *arrays, const int64_t *sizes)
{
    const int64_t count = sizes[0], length = sizes[2], inner = sizes[1];
#if defined(HARP_TO_REAL)
    const int which = IRFFT;
#elif defined(HARP_TO_COMPLEX)
    const int which = length % 2 ? RFFT_ODD : RFFT_EVEN;
#else
    const int which = flags & INVERSE ? IFFT : FFT;
#endif
#if defined(HARP_TO_REAL)
    const double n = (double)count;
#else
    const double n = (double)length;
#endif
    const double factor = flags & BY_SIZE ? 1 / n : flags & BY_ROOT ? 1 / __builtin_sqrt(n) : 1;
    const int64_t longest = length < count ? count : length, many = calls * inner;
    struct rows rows = {.job = {0, 1},
                        .loop = LAPACK(which, loop),
                        .given = LAPACK(which + 1, void),
                        .factor = (real)factor,
                        .results = (to *)(uintptr_t)arrays[0],
                        .operands = arrays[1],
                        .length = length,
                        .count = count,
                        .inner = inner};
    if (many > 0 && count > 0)
        harp_parallel(some_rows, &rows, many, (double)(many * longest) * 3 * (64 - __builtin_clzll((uint64_t)longest)));
    return rows.job.status;
}
