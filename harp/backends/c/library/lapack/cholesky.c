/* The rows of the lower triangle of A are the columns of the upper triangle of its conjugate, which LAPACK factorises
 * as the conjugate transpose of an upper triangular matrix and that. */
#include "lapack/lapack.h"

typedef void potrf(const char *upper, integer n, element *a, integer lda, int64_t *info, size_t);

/* Row by row; 1 where there is no factor. */
static int small(int64_t n, element *l)
{
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            element rest = l[i * n + j];
            for (int64_t k = 0; k < j; ++k) rest -= l[i * n + k] * HARP_CONJUGATE(l[j * n + k]);
            if (j < i)
                l[i * n + j] = rest / __real__ l[j * n + j];
            else if (__real__ rest > 0)
                l[i * n + i] = (real)__builtin_sqrt((double)__real__ rest);
            else
                return 1;
        }
    return 0;
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    (void)flags;
    const int64_t n = sizes[0];
    element *const l = arrays[0];
    const element *const a = arrays[1];
    int64_t info = 0;
    for (int64_t i = 0; i < n; ++i) {
        copy(i + 1, a + i * n, l + i * n);
        __builtin_memset(l + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *l);
    }
    if (n <= SMALL)
        info = small(n, l);
    else
        LAPACK(POTRF, potrf)("U", &n, l, &n, &info, 1);
    for (int64_t i = 0; i < n && info == 0; ++i) info = !(__real__ l[i * n + i] > 0);
    if ((int32_t)info != 0) all_nan(PARTS * n * n, (real *)l);
    return 0;
}

int OF_DTYPE(cholesky)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const double n = (double)sizes[0];
    const int64_t bytes = sizes[0] * sizes[0] * (int64_t)sizeof(element);
    return each(one, calls, flags, 2, arrays, sizes, (int64_t[]){bytes, bytes}, n * n * n / 3 + n * n);
}
