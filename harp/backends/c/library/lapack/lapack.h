/* How a function of matrices calls LAPACK, which reads a matrix column by column: the rows of A are the columns of its
 * transpose, so that what is written here in rows is a factorisation of that.
 *
 * All integers are passed as 64 bits. A library that reads 32 finds the low ones, for it runs on little-endian
 * machines; only an array of integers has to be read as the library writes it. */
#ifndef HARP_LAPACK_H
#define HARP_LAPACK_H

#include "common.h"
#include "lapack/functions.h"
#include "names.h"

typedef HARP_T element;
typedef HARP_REAL real;

#if defined(HARP_COMPLEX)
#define HARP_CONJUGATE(a) (~(a))
enum { PARTS = 2 };
#else
#define HARP_CONJUGATE(a) (a)
enum { PARTS = 1 };
#endif

/* In the order of `NAMES` of `runtime/lapack.py`. */
enum { POTRF, GETRF, TRSM, GELQF, ORGLQ, SYEVD, GEEV, GESDD, GEES, GEHRD, ORGHR };
/* In the order of `LOOPS` there; beside each stands what it is given. */
enum { FFT = ORGHR + 1, IFFT = FFT + 2, RFFT_EVEN = FFT + 4, RFFT_ODD = FFT + 6, IRFFT = FFT + 8 };
#define LAPACK(name, type) ((type *)(uintptr_t)harp_lapack[1 + 4 * (name) + HARP_KIND])
typedef const int64_t *integer;

/* Results first, then operands, of one call. */
typedef int function(int flags, void *const *arrays, const int64_t *sizes);
enum { MOST_ARRAYS = 6 };

struct batch {
    harp_job job;
    function *one;
    int flags, count;
    const void *const *arrays;
    const int64_t *sizes, *bytes;
};

HARP_INLINE void some_calls(void *given, int64_t begin, int64_t end)
{
    struct batch *const batch = given;
    for (int64_t call = begin; call < end && batch->job.status == 0; ++call) {
        void *arrays[MOST_ARRAYS];
        for (int k = 0; k < batch->count; ++k) arrays[k] = (char *)(uintptr_t)batch->arrays[k] + call * batch->bytes[k];
        if (batch->one(batch->flags, arrays, batch->sizes)) batch->job.status = 1;
    }
}

/* All calls: `bytes` are those of each array of one call, `work` is about the operations of one. */
HARP_INLINE int each(function *one, int64_t calls, int flags, int count, const void *const *arrays,
                     const int64_t *sizes, const int64_t *bytes, double work)
{
    struct batch batch = {{0, 1}, one, flags, count, arrays, sizes, bytes};
    harp_parallel(some_calls, &batch, calls, (double)calls * work);
    return batch.job.status;
}

/* to[j, i] = from[i, j], by tiles that fit the cache; `conjugated` if it is to be. */
enum { TILE = 16 };
HARP_INLINE void transpose(int64_t rows, int64_t columns, const element *from, element *to)
{
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t j = 0; j < columns; j += TILE)
            for (int64_t b = j; b < columns && b < j + TILE; ++b)
                for (int64_t a = i; a < rows && a < i + TILE; ++a) to[b * rows + a] = from[a * columns + b];
}

HARP_INLINE void copy(int64_t count, const element *from, element *to)
{
    __builtin_memcpy(to, from, (size_t)count * sizeof *to);
}

/* Where a matrix has no factors. */
HARP_INLINE void all_nan(int64_t parts, real *a)
{
    for (int64_t k = 0; k < parts; ++k) a[k] = (real)__builtin_nan("");
}

/* LAPACK does not end for some NaN. */
HARP_INLINE int is_finite(int64_t parts, const real *a)
{
    for (int64_t k = 0; k < parts; ++k)
        if (!__builtin_isfinite(a[k])) return 0;
    return 1;
}

/* So many rows are done here: calls of LAPACK take longer. */
enum { SMALL = 16, FEW_COLUMNS = 64 };

/* m @ y = x for a triangle of m, which has a[i * row + k * column] in row i and column k; x := y. */
HARP_INLINE void substitute(int forward, int unit, int64_t n, const element *a, int64_t row, int64_t column,
                            int64_t columns, element *x)
{
    for (int64_t step = 0; step < n; ++step) {
        const int64_t i = forward ? step : n - 1 - step, end = forward ? i : n;
        element *const to = x + i * columns;
        for (int64_t k = forward ? 0 : i + 1; k < end; ++k) {
            const element factor = a[i * row + k * column];
            for (int64_t c = 0; c < columns; ++c) to[c] -= factor * x[k * columns + c];
        }
        const element pivot = a[i * (row + column)];
        for (int64_t c = 0; c < columns && !unit; ++c) to[c] /= pivot;
    }
}

/* x := x * inverse(op(a)), for a triangle of a; columns as LAPACK has them. */
typedef void trsm(const char *side, const char *upper, const char *transposed, const char *unit, integer m, integer n,
                  const element *alpha, const element *a, integer lda, element *b, integer ldb, size_t, size_t, size_t,
                  size_t);
HARP_INLINE void divide(const char *upper, const char *transposed, const char *unit, int64_t n, const element *a,
                        int64_t columns, element *x)
{
    const element one = 1;
    const int turned = *transposed == 'T';
    if (n <= SMALL && columns <= FEW_COLUMNS)
        substitute((*upper == 'U') != turned, *unit == 'U', n, a, turned ? 1 : n, turned ? n : 1, columns, x);
    else if (columns > 0)
        LAPACK(TRSM, trsm)("R", upper, transposed, unit, &columns, &n, &one, a, &n, x, &columns, 1, 1, 1, 1);
}

#endif
