/* How many multiply-adds the processor does in registers, the most that a matrix product can reach, and how fast it
   copies memory, in parts for the pool of threads. */
#include "linalg/vectors.h"

#include <string.h>

/* As many as hide the time that one of them takes. */
enum { CHAINS = 12 };

/* So many steps of each chain y = y*a + b. Returns a number that depends on all of them. */
__attribute__((visibility("default"))) double KERNEL(multiply_adds)(int64_t steps, double factor, double summand)
{
    vector y[CHAINS];
    const real a = (real)factor, b = (real)summand;
    UNROLLED_FOR(int i = 0; i < CHAINS; ++i) y[i] = (vector){0} + (real)i;
    for (; steps > 0; --steps)
        UNROLLED_FOR(int i = 0; i < CHAINS; ++i) y[i] = y[i] * a + b;
    vector sum = y[0];
    UNROLLED_FOR(int i = 1; i < CHAINS; ++i) sum += y[i];
    double total = 0.0;
    for (int lane = 0; lane < LANES; ++lane) total += (double)sum[lane];
    return total;
}

/* So many steps, from `given`, for each part. */
__attribute__((visibility("default"))) void KERNEL(multiply_adds_parts)(void *given, int64_t begin, int64_t end)
{
    for (; begin < end; ++begin) {
        volatile double total = KERNEL(multiply_adds)(*(const int64_t *)given, 0.5, 0.25);
        (void)total;
    }
}

struct copies {
    char *to;
    const char *from;
    int64_t bytes; /* of a part */
};

__attribute__((visibility("default"))) void KERNEL(copy_parts)(void *given, int64_t begin, int64_t end)
{
    const struct copies *const copies = given;
    const int64_t first = begin * copies->bytes;
    memcpy(copies->to + first, copies->from + first, (size_t)((end - begin) * copies->bytes));
}
