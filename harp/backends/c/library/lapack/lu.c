/* Partial pivoting goes along the columns of A, so they are copied to where LAPACK looks for columns. */
#include "lapack/lapack.h"

HARP_INLINE real absolute(real a) { return a < 0 ? -a : a; }

typedef void getrf(integer m, integer n, element *a, integer lda, int64_t *pivots, int64_t *info);

/* As LAPACK does: column by column, the largest element below is the pivot. */
static void small(int64_t m, int64_t n, element *f, int64_t *pivots)
{
    for (int64_t j = 0; j < m && j < n; ++j) {
        element *const column = f + j * m;
        int64_t pivot = j;
        real largest = -1;
        for (int64_t r = j; r < m; ++r) {
            const real size = absolute(__real__ column[r]) + absolute(__imag__ column[r]);
            if (size > largest) largest = size, pivot = r;
        }
        pivots[j] = pivot + 1;
        for (int64_t c = 0; c < n && pivot != j; ++c) {
            const element kept = f[c * m + j];
            f[c * m + j] = f[c * m + pivot], f[c * m + pivot] = kept;
        }
        if (column[j] == 0) continue;
        for (int64_t r = j + 1; r < m; ++r) column[r] /= column[j];
        for (int64_t c = j + 1; c < n; ++c)
            for (int64_t r = j + 1; r < m; ++r) f[c * m + r] -= column[r] * f[c * m + j];
    }
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    (void)flags;
    const int64_t n = sizes[0], m = sizes[1], k = m < n ? m : n;
    element *const f = arrays[0];
    int64_t *const order = arrays[1], *const pivots = arrays[2];
    int64_t info = 0;
    transpose(m, n, arrays[3], f);
    const int is_small = m <= SMALL && n <= SMALL;
    if (is_small)
        small(m, n, f, pivots);
    else if (k > 0)
        LAPACK(GETRF, getrf)(&m, &n, f, &m, pivots, &info);
    if (!harp_lapack[0] && !is_small)
        for (int64_t i = k - 1; i >= 0; --i) pivots[i] = ((const int32_t *)pivots)[i];
    for (int64_t i = 0; i < m; ++i) order[i] = i;
    for (int64_t i = 0; i < k; ++i) {
        const int64_t pivot = --pivots[i], row = order[i];
        order[i] = order[pivot], order[pivot] = row;
    }
    return 0;
}

int OF_DTYPE(lu)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], m = sizes[1], k = m < n ? m : n;
    const int64_t matrix = m * n * (int64_t)sizeof(element), integer_bytes = (int64_t)sizeof(int64_t);
    const int64_t bytes[] = {matrix, m * integer_bytes, k * integer_bytes, matrix};
    return each(one, calls, flags, 4, arrays, sizes, bytes, (double)m * (double)n * ((double)k + 1));
}
