/* The columns of A are copied to where LAPACK looks for columns, and those that it writes are copied back as rows. */
#include "lapack/lapack.h"

#if defined(HARP_COMPLEX)
typedef void gees(const char *vectors, const char *sorted, const void *chosen, integer n, element *a, integer lda,
                  int64_t *count, element *w, element *z, integer ldz, element *work, integer many, real *real_work,
                  int64_t *bools, int64_t *info, size_t, size_t);
#else
typedef void gees(const char *vectors, const char *sorted, const void *chosen, integer n, element *a, integer lda,
                  int64_t *count, element *w, element *w_imag, element *z, integer ldz, element *work, integer many,
                  int64_t *bools, int64_t *info, size_t, size_t);
#endif

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    (void)flags;
    const int64_t n = sizes[0], square = n * n, many = 72 * n + 1;
    element *const work = harp_take((many + 2 * square + 2 * n) * (int64_t)sizeof *work);
    if (work == NULL) return 1;
    element *const a = work + many, *const z = a + square, *const w = z + square;
    int64_t info = 0, count = 0;
    transpose(n, n, arrays[2], a);
    if (!is_finite(PARTS * square, (const real *)a))
        info = 1;
    else if (n > 0) {
#if defined(HARP_COMPLEX)
        LAPACK(GEES, gees)("V", "N", NULL, &n, a, &n, &count, w, z, &n, work, &many, (real *)(w + n), NULL, &info, 1,
                           1);
#else
        LAPACK(GEES, gees)("V", "N", NULL, &n, a, &n, &count, w, w + n, z, &n, work, &many, NULL, &info, 1, 1);
#endif
    }
    if ((int32_t)info != 0)
        for (int k = 0; k < 2; ++k) all_nan(PARTS * square, arrays[k]);
    else {
        transpose(n, n, a, arrays[0]);
        transpose(n, n, z, arrays[1]);
    }
    harp_give(work);
    return 0;
}

int OF_DTYPE(schur)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], matrix = n * n * (int64_t)sizeof(element), bytes[] = {matrix, matrix, matrix};
    return each(one, calls, flags, 3, arrays, sizes, bytes, 25.0 * (double)n * (double)n * ((double)n + 4));
}
