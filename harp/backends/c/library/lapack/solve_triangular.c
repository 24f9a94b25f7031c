/* X.T = B.T / A.T: the rows of all three are columns to LAPACK, and the other triangle is that of A.T. */
#include "lapack/lapack.h"

enum { LOWER = 1, UNIT = 2 };

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], columns = sizes[1];
    copy(n * columns, arrays[2], arrays[0]);
    divide(flags & LOWER ? "U" : "L", "N", flags & UNIT ? "U" : "N", n, arrays[1], columns, arrays[0]);
    return 0;
}

int OF_DTYPE(solve_triangular)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], columns = sizes[1], size = (int64_t)sizeof(element);
    const int64_t bytes[] = {n * columns * size, n * n * size, n * columns * size};
    return each(one, calls, flags, 3, arrays, sizes, bytes, (double)n * (double)n * (double)columns);
}
