/* The columns of A are copied to where LAPACK looks for columns. Of a real matrix it writes pairs of conjugate vectors
 * as a column of real parts and one of imaginary parts. */
#include "lapack/lapack.h"

enum { VECTORS = 1 };
typedef HARP_REAL _Complex number;
#if defined(HARP_COMPLEX)
typedef void geev(const char *left, const char *right, integer n, element *a, integer lda, number *w, element *vl,
                  integer ldvl, element *vr, integer ldvr, element *work, integer many, real *real_work, int64_t *info,
                  size_t, size_t);
#else
typedef void geev(const char *left, const char *right, integer n, element *a, integer lda, real *w, real *w_imag,
                  element *vl, integer ldvl, element *vr, integer ldvr, element *work, integer many, int64_t *info,
                  size_t, size_t);
#endif

/* Eigenvalues are in `w` and behind it what LAPACK needs; `vr` are the vectors as columns. */
static void numbers(int64_t n, const real *w, number *values)
{
    for (int64_t j = 0; j < n; ++j) values[j] = PARTS == 2 ? ((const number *)w)[j] : __builtin_complex(w[j], w[n + j]);
}

static void columns(int64_t n, const number *values, const element *vr, number *v)
{
    for (int64_t j = 0; j < n; ++j) {
        const int pair = PARTS == 1 && __imag__ values[j] != 0 && j + 1 < n;
        for (int64_t i = 0; i < n; ++i) {
            const element one = vr[j * n + i], other = vr[pair ? (j + 1) * n + i : 0];
            v[i * n + j] = pair ? __builtin_complex((real)one, (real)other) : (number)one;
            if (pair) v[i * n + j + 1] = ~v[i * n + j];
        }
        j += pair;
    }
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], square = n * n, many = 72 * n + 1;
    const int vectors = flags & VECTORS;
    number *const values = arrays[0];
    element *const work = harp_take((many + 2 * square + 2 * n) * (int64_t)sizeof *work);
    if (work == NULL) return 1;
    element *const a = work + many, *const vr = a + square;
    real *const w = (real *)(vr + square);
    int64_t info = 0;
    transpose(n, n, arrays[vectors ? 2 : 1], a);
    if (!is_finite(PARTS * square, (const real *)a))
        info = 1;
    else if (n > 0) {
#if defined(HARP_COMPLEX)
        LAPACK(GEEV, geev)("N", vectors ? "V" : "N", &n, a, &n, (number *)w, NULL, &n, vr, &n, work, &many, w + 2 * n,
                           &info, 1, 1);
#else
        LAPACK(GEEV, geev)("N", vectors ? "V" : "N", &n, a, &n, w, w + n, NULL, &n, vr, &n, work, &many, &info, 1, 1);
#endif
    }
    if ((int32_t)info != 0) {
        all_nan(2 * n, (real *)values);
        if (vectors) all_nan(2 * square, (real *)arrays[1]);
    } else {
        numbers(n, w, values);
        if (vectors) columns(n, values, vr, arrays[1]);
    }
    harp_give(work);
    return 0;
}

int OF_DTYPE(eig)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], size = (int64_t)sizeof(number), matrix = n * n * (int64_t)sizeof(element);
    const int64_t bytes[] = {n * size, flags & VECTORS ? n * n * size : matrix, matrix};
    const int count = flags & VECTORS ? 3 : 2;
    return each(one, calls, flags, count, arrays, sizes, bytes, 25.0 * (double)n * (double)n * ((double)n + 4));
}
