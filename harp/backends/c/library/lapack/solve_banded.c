/* Elimination with partial pivoting, as LAPACK's gbsv does it, but by rows. A row is kept from the column on that is
 * eliminated next, so an exchange of rows is one of `width` elements, those that it fills included. */
#include "lapack/lapack.h"

HARP_INLINE real absolute(real a) { return a < 0 ? -a : a; }

HARP_INLINE void exchange(int64_t count, element *a, element *b)
{
    for (int64_t k = 0; k < count; ++k) {
        const element kept = a[k];
        a[k] = b[k], b[k] = kept;
    }
}

/* The row below, without its first column, and what is right of it. */
static void eliminate(int64_t width, const element *pivot, element *row, int64_t columns, const element *from,
                      element *to)
{
    const element factor = row[0] / pivot[0];
    for (int64_t t = 1; t < width; ++t) row[t - 1] = row[t] - factor * pivot[t];
    row[width - 1] = 0;
    for (int64_t c = 0; c < columns; ++c) to[c] -= factor * from[c];
}

static int one(int flags, void *const *arrays, const int64_t *sizes)
{
    (void)flags;
    const int64_t n = sizes[0], columns = sizes[1], below = sizes[2], above = sizes[4] - 1, width = below + above + 1;
    const element *const lower = arrays[1], *const upper = arrays[2];
    element *const x = arrays[0], *const rows = harp_take(n * width * (int64_t)sizeof *rows);
    if (rows == NULL) return 1;
    copy(n * columns, arrays[3], x);
    for (int64_t k = 0; k < n * width; ++k) rows[k] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t first = i > below ? i - below : 0;
        for (int64_t j = first; j < n && j <= i + above; ++j)
            rows[i * width + j - first] = j < i ? lower[(i - j - 1) * n + j] : upper[(above + i - j) * n + j];
    }
    for (int64_t k = 0; k < n; ++k) {
        const int64_t end = n - k > below ? k + below + 1 : n;
        int64_t pivot = k;
        real largest = -1;
        for (int64_t i = k; i < end; ++i) {
            const real size = absolute(__real__ rows[i * width]) + absolute(__imag__ rows[i * width]);
            if (size > largest) largest = size, pivot = i;
        }
        if (pivot != k) {
            exchange(width, rows + k * width, rows + pivot * width);
            exchange(columns, x + k * columns, x + pivot * columns);
        }
        for (int64_t i = k + 1; i < end; ++i)
            eliminate(width, rows + k * width, rows + i * width, columns, x + k * columns, x + i * columns);
    }
    for (int64_t k = n - 1; k >= 0; --k) {
        const element *const row = rows + k * width;
        element *const to = x + k * columns;
        for (int64_t t = 1; t < width && t < n - k; ++t)
            for (int64_t c = 0; c < columns; ++c) to[c] -= row[t] * to[t * columns + c];
        for (int64_t c = 0; c < columns; ++c) to[c] /= row[0];
    }
    harp_give(rows);
    return 0;
}

int OF_DTYPE(solve_banded)(int64_t calls, int flags, const void *const *arrays, const int64_t *sizes)
{
    const int64_t n = sizes[0], columns = sizes[1], below = sizes[2], above = sizes[4], size = (int64_t)sizeof(element);
    const int64_t bytes[] = {n * columns * size, below * n * size, above * n * size, n * columns * size};
    const double work = (double)n * (double)(below + 1) * (double)(below + above + columns);
    return each(one, calls, flags, 4, arrays, sizes, bytes, work);
}
