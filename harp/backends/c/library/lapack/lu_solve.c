/* Of A[order] = L U, whose columns are the rows of f: X.T = B[order].T / L.T / U.T, and for the transpose of A, with
 * C = X[order], C.T = B.T / U / L. The rows of X and B are columns to LAPACK, which divides from the right. */
#include "lapack/lapack.h"

enum { TRANSPOSED = 1 };

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], columns = sizes[1];
    element *const x = arrays[0];
    const element *const f = arrays[1], *const b = arrays[3];
    const int64_t *const order = arrays[2];
    if (!(flags & TRANSPOSED)) {
        for (int64_t i = 0; i < n; ++i) copy(columns, b + order[i] * columns, x + i * columns);
        divide("L", "T", "U", n, f, columns, x);
        divide("U", "T", "N", n, f, columns, x);
        return 0;
    }
    element *const c = harp_take(n * columns * (int64_t)sizeof *c);
    if (c == NULL) return 1;
    copy(n * columns, b, c);
    divide("U", "N", "N", n, f, columns, c);
    divide("L", "N", "U", n, f, columns, c);
    for (int64_t i = 0; i < n; ++i) copy(columns, c + i * columns, x + order[i] * columns);
    harp_give(c);
    return 0;
}

int OF_DTYPE(lu_solve)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], columns = sizes[1], size = (int64_t)sizeof(element);
    const int64_t bytes[] = {n * columns * size, n * n * size, n * (int64_t)sizeof(int64_t), n * columns * size};
    return each(one, calls, flags, 4, arrays, sizes, bytes, 2.0 * (double)n * (double)n * (double)columns);
}
