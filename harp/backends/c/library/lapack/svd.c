/* The rows of A are the columns of its transpose, which is V.T.T S U.T: the rows of U and V.T are the columns that
 * LAPACK writes, in exchanged roles. */
#include "lapack/lapack.h"

enum { VECTORS = 1, FULL = 2 };
#if defined(HARP_COMPLEX)
#define HARP_REAL_WORK real *real_work,
#define HARP_REAL_ROOM real_work,
#else
#define HARP_REAL_WORK
#define HARP_REAL_ROOM
#endif
typedef void gesdd(const char *vectors, integer m, integer n, element *a, integer lda, real *s, element *u, integer ldu,
                   element *vt, integer ldvt, element *work, integer many, HARP_REAL_WORK int64_t *places,
                   int64_t *info, size_t);

static void identity(int64_t n, element *a)
{
    __builtin_memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; ++i) a[i * n + i] = 1;
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    const int vectors = flags & VECTORS, full = flags & FULL;
    const int64_t *const shape = sizes + (vectors ? 5 : 1);
    const int64_t m = shape[0], n = shape[1], k = m < n ? m : n, most = m < n ? n : m, rows = full ? m : k;
    element *const u = vectors ? arrays[0] : NULL, *const vh = vectors ? arrays[2] : NULL;
    real *const s = arrays[vectors ? 1 : 0];
    if (k == 0) {
        if (vectors && full) identity(m, u), identity(n, vh);
        return 0;
    }
    const char *const job = !vectors ? "N" : full ? "A" : "S";
    const int64_t real_many = PARTS == 1 ? 0 : 5 * k * k + 2 * most * k + 7 * k;
    const int64_t query = -1;
    int64_t info = 0, *places = NULL;
    real *real_work = NULL;
    element room = 0;
    (void)real_work;
    LAPACK(GESDD, gesdd)(job, &n, &m, NULL, &n, NULL, NULL, &n, NULL, &rows, &room, &query, HARP_REAL_ROOM places,
                         &info, 1);
    const int64_t many = (int64_t)__real__ room + 1;
    const int64_t bytes = (m * n + many) * (int64_t)sizeof(element) + real_many * (int64_t)sizeof(real);
    element *const work = harp_take(bytes + (8 * k + 1) * (int64_t)sizeof *places);
    if (work == NULL) return 1;
    element *const a = work + many;
    real_work = (real *)(a + m * n);
    places = (int64_t *)(void *)((char *)work + (bytes + 7) / 8 * 8);
    copy(m * n, arrays[vectors ? 3 : 1], a);
    if (!is_finite(PARTS * m * n, (const real *)a))
        info = 1;
    else
        LAPACK(GESDD, gesdd)(job, &n, &m, a, &n, s, vh, &n, u, &rows, work, &many, HARP_REAL_ROOM places, &info, 1);
    if ((int32_t)info != 0) {
        all_nan(k, s);
        if (vectors) all_nan(PARTS * m * rows, (real *)u), all_nan(PARTS * (full ? n : k) * n, (real *)vh);
    }
    harp_give(work);
    return 0;
}

int OF_DTYPE(svd)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int vectors = flags & VECTORS;
    const int64_t *const shape = sizes + (vectors ? 5 : 1), size = (int64_t)sizeof(element);
    const int64_t m = shape[0], n = shape[1], k = m < n ? m : n, values = k * (int64_t)sizeof(real);
    const double work = 14.0 * (double)m * (double)n * ((double)k + 4);
    if (!vectors) return each(one, calls, flags, 2, arrays, sizes, (int64_t[]){values, m * n * size}, work);
    const int64_t bytes[] = {m * sizes[1] * size, values, sizes[3] * n * size, m * n * size};
    return each(one, calls, flags, 4, arrays, sizes, bytes, work);
}
