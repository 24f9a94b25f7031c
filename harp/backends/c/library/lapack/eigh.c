/* The rows of the lower triangle of A are the columns of the upper one of its conjugate, whose eigenvectors are the
 * conjugates of those of A; LAPACK writes them as columns. */
#include "lapack/lapack.h"

enum { VECTORS = 1 };
#if defined(HARP_COMPLEX)
#define HARP_REAL_WORK real *real_work, integer real_many,
#define HARP_REAL_ROOM real_work, &real_many,
#else
#define HARP_REAL_WORK
#define HARP_REAL_ROOM
#endif
typedef void syevd(const char *vectors, const char *upper, integer n, element *a, integer lda, real *w, element *work,
                   integer many, HARP_REAL_WORK int64_t *places, integer places_many, int64_t *info, size_t, size_t);

static void transpose_in_place(int64_t n, element *a)
{
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t j = i; j < n; j += TILE)
            for (int64_t b = i; b < n && b < i + TILE; ++b)
                for (int64_t c = j > b ? j : b; c < n && c < j + TILE; ++c) {
                    const element one = HARP_CONJUGATE(a[b * n + c]);
                    a[b * n + c] = HARP_CONJUGATE(a[c * n + b]);
                    a[c * n + b] = one;
                }
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], square = n * n;
    const int vectors = flags & VECTORS;
    /* As LAPACK documents them, and room for its blocks. */
    const int64_t many = (vectors ? 2 * square : 0) + 72 * n + 1, places_many = 5 * n + 3;
    const int64_t real_many = PARTS == 1 ? 0 : 2 * square + 5 * n + 1;
    const int64_t elements = many + square;
    const int64_t bytes = elements * (int64_t)sizeof(element) + real_many * (int64_t)sizeof(real);
    element *const work = harp_take(bytes + (places_many + 1) * (int64_t)sizeof(int64_t));
    if (work == NULL) return 1;
    int64_t *const places = (int64_t *)(void *)((char *)work + (bytes + 7) / 8 * 8);
    real *const w = arrays[0], *const real_work = (real *)(work + elements);
    element *const a = vectors ? arrays[1] : work + many;
    int64_t info = 0;
    (void)real_work;
    copy(square, arrays[vectors ? 2 : 1], a);
    for (int64_t i = 0; i < n && info == 0; ++i) info = !is_finite(PARTS * (i + 1), (const real *)(a + i * n));
    if (n > 0 && info == 0)
        LAPACK(SYEVD, syevd)(vectors ? "V" : "N", "U", &n, a, &n, w, work, &many, HARP_REAL_ROOM places, &places_many,
                             &info, 1, 1);
    if ((int32_t)info != 0)
        all_nan(n, w), all_nan(PARTS * square, (real *)a);
    else if (vectors)
        transpose_in_place(n, a);
    harp_give(work);
    return 0;
}

int OF_DTYPE(eigh)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], matrix = n * n * (int64_t)sizeof(element), values = n * (int64_t)sizeof(real);
    const int64_t bytes[] = {values, matrix, matrix};
    const int count = flags & VECTORS ? 3 : 2;
    return each(one, calls, flags, count, arrays, sizes, bytes, 9.0 * (double)n * (double)n * ((double)n + 4));
}
