/* The rows of A are the columns of its transpose, which is L Q: then A is Q.T L.T, and the rows of both are the columns
 * that LAPACK writes. */
#include "lapack/lapack.h"

enum { BLOCK = 64 };
typedef void gelqf(integer m, integer n, element *a, integer lda, element *tau, element *work, integer many, int64_t *);
typedef void orglq(integer m, integer n, integer k, element *a, integer lda, element *tau, element *work, integer many,
                   int64_t *info);

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    (void)flags;
    const int64_t m = sizes[0], k = sizes[1], n = sizes[3], least = m < n ? m : n;
    const int64_t many = BLOCK * ((n > k ? n : k) + 1), n_lead = n > 0 ? n : 1, k_lead = k > 0 ? k : 1;
    element *const q = arrays[0], *const r = arrays[1];
    element *const work = harp_take((m * n + least + many) * (int64_t)sizeof *work);
    if (work == NULL) return 1;
    element *const a = work + many, *const tau = a + m * n;
    int64_t info = 0;
    copy(m * n, arrays[2], a);
    LAPACK(GELQF, gelqf)(&n, &m, a, &n_lead, tau, work, &many, &info);
    __builtin_memset(r, 0, (size_t)(k * n) * sizeof *r);
    for (int64_t i = 0; i < least; ++i) copy(n - i, a + i * n + i, r + i * n + i);
    for (int64_t i = 0; i < m; ++i) copy(least, a + i * n, q + i * k);
    LAPACK(ORGLQ, orglq)(&k, &m, &least, q, &k_lead, tau, work, &many, &info);
    harp_give(work);
    return 0;
}

int OF_DTYPE(qr)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t m = sizes[0], k = sizes[1], n = sizes[3], size = (int64_t)sizeof(element);
    const int64_t bytes[] = {m * k * size, k * n * size, m * n * size};
    return each(one, calls, flags, 3, arrays, sizes, bytes, 4.0 * (double)m * (double)n * (double)k + (double)(m * k));
}
