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

/* The most rows for which rotations take less time than a call of LAPACK. */
enum { FEW = 6, MOST_SWEEPS = 40 };
/* Beside 1 it is nothing, and its square is a number of all digits. */
static const real NOTHING = sizeof(real) == 4 ? 1e-15f : (real)1e-130;

HARP_INLINE real magnitude(element a)
{
#if defined(HARP_COMPLEX)
    return (real)__builtin_sqrt((double)(__real__ a * __real__ a + __imag__ a * __imag__ a));
#else
    return a < 0 ? -a : a;
#endif
}

/* h := D^H h D and v := v D for the rotation D of columns p and q which makes h[p, q] zero. */
HARP_INLINE void rotate(int n, int p, int q, element *h, element *v)
{
    const real size = magnitude(h[p * n + q]), low = __real__ h[p * n + p], high = __real__ h[q * n + q];
    const element phase = HARP_CONJUGATE(h[p * n + q]) / size;
    const real theta = (high - low) / (2 * size), distance = theta < 0 ? -theta : theta;
    const real root = (real)__builtin_sqrt((double)(theta * theta + 1));
    const real tangent = (theta < 0 ? -1 : 1) / (distance + root);
    const real cosine = 1 / (real)__builtin_sqrt((double)(tangent * tangent + 1)), sine = tangent * cosine;
    for (int r = 0; r < n; ++r) {
        const element a = h[r * n + p], b = phase * h[r * n + q], x = v[r * n + p], y = phase * v[r * n + q];
        const element left = cosine * a - sine * b, right = sine * a + cosine * b;
        h[r * n + p] = left, h[r * n + q] = right;
        h[p * n + r] = HARP_CONJUGATE(left), h[q * n + r] = HARP_CONJUGATE(right);
        v[r * n + p] = cosine * x - sine * y, v[r * n + q] = sine * x + cosine * y;
    }
    h[p * n + p] = low - tangent * size, h[q * n + q] = high + tangent * size;
    h[p * n + q] = h[q * n + p] = 0;
}

/* Rotations in turn (Jacobi, 1846), which are as accurate as the matrix allows (Demmel and Veselic, 1992). */
HARP_INLINE void jacobi(int n, const element *a, real *w, element *vectors)
{
    element h[FEW * FEW], v[FEW * FEW];
    real largest = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) {
            const element x = a[i * n + j];
            const real re = __real__ x < 0 ? -__real__ x : __real__ x, im = __imag__ x < 0 ? -__imag__ x : __imag__ x;
            largest = re > largest ? re : largest;
            largest = i != j && im > largest ? im : largest;
        }
    /* Squares neither overflow, nor vanish beside 1. */
    const real scale = largest > 0 ? largest : 1;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < i; ++j) h[i * n + j] = a[i * n + j] / scale, h[j * n + i] = HARP_CONJUGATE(h[i * n + j]);
        h[i * n + i] = __real__ a[i * n + i] / scale;
        for (int j = 0; j < n; ++j) v[i * n + j] = i == j;
    }
    for (int sweep = 0, rotated = 1; rotated && sweep < MOST_SWEEPS; ++sweep) {
        rotated = 0;
        for (int p = 0; p < n; ++p)
            for (int q = p + 1; q < n; ++q) {
                const real size = magnitude(h[p * n + q]), low = magnitude(h[p * n + p]);
                const real high = magnitude(h[q * n + q]);
                if (size < NOTHING || (low + size == low && high + size == high)) continue;
                rotate(n, p, q, h, v);
                rotated = 1;
            }
    }
    for (int k = 0; k < n; ++k) {
        int least = k;
        for (int j = k + 1; j < n; ++j) least = __real__ h[j * n + j] < __real__ h[least * n + least] ? j : least;
        w[k] = __real__ h[least * n + least] * scale;
        h[least * n + least] = h[k * n + k];
        for (int i = 0; i < n; ++i) {
            const element x = v[i * n + least];
            v[i * n + least] = v[i * n + k];
            if (vectors != NULL) vectors[i * n + k] = x;
        }
    }
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], square = n * n;
    const int vectors = flags & VECTORS;
    const element *const given = arrays[vectors ? 2 : 1];
    real *const w = arrays[0];
    int64_t info = 0;
    for (int64_t i = 0; i < n && info == 0; ++i) info = !is_finite(PARTS * (i + 1), (const real *)(given + i * n));
    if (n <= FEW && info == 0) {
        element *const to = vectors ? arrays[1] : NULL;
        if (n == 2)
            jacobi(2, given, w, to);
        else if (n == 3)
            jacobi(3, given, w, to);
        else
            jacobi((int)n, given, w, to);
        return 0;
    }
    /* As LAPACK documents them, and room for its blocks. */
    const int64_t many = (vectors ? 2 * square : 0) + 72 * n + 1, places_many = 5 * n + 3;
    const int64_t real_many = PARTS == 1 ? 0 : 2 * square + 5 * n + 1;
    const int64_t elements = many + square;
    const int64_t bytes = elements * (int64_t)sizeof(element) + real_many * (int64_t)sizeof(real);
    element *const work = harp_take(bytes + (places_many + 1) * (int64_t)sizeof(int64_t));
    if (work == NULL) return 1;
    int64_t *const places = (int64_t *)(void *)((char *)work + (bytes + 7) / 8 * 8);
    real *const real_work = (real *)(work + elements);
    element *const a = vectors ? arrays[1] : work + many;
    (void)real_work;
    copy(square, given, a);
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
