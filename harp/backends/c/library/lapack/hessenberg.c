/* The columns of A are copied to where LAPACK looks for columns, and those that it writes are copied back as rows. */
#include "lapack/lapack.h"

enum { BLOCK = 64, TRIANGLES = 65 * 64 };
typedef void reduce(integer n, integer low, integer high, element *a, integer lda, element *tau, element *work,
                    integer many, int64_t *info);

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    (void)flags;
    const int64_t n = sizes[0], square = n * n, many = BLOCK * n + TRIANGLES, first = 1;
    element *const h = arrays[0], *const work = harp_take((many + square + n) * (int64_t)sizeof *work);
    if (work == NULL) return 1;
    element *const a = work + many, *const tau = a + square;
    int64_t info = 0;
    transpose(n, n, arrays[2], a);
    if (!is_finite(PARTS * square, (const real *)a))
        for (int k = 0; k < 2; ++k) all_nan(PARTS * square, arrays[k]);
    else if (n > 0) {
        LAPACK(GEHRD, reduce)(&n, &first, &n, a, &n, tau, work, &many, &info);
        transpose(n, n, a, h);
        for (int64_t i = 2; i < n; ++i) __builtin_memset(h + i * n, 0, (size_t)(i - 1) * sizeof *h);
        LAPACK(ORGHR, reduce)(&n, &first, &n, a, &n, tau, work, &many, &info);
        transpose(n, n, a, arrays[1]);
    }
    harp_give(work);
    return 0;
}

int OF_DTYPE(hessenberg)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], matrix = n * n * (int64_t)sizeof(element), bytes[] = {matrix, matrix, matrix};
    return each(one, calls, flags, 3, arrays, sizes, bytes, 5.0 * (double)n * (double)n * ((double)n + 4));
}
