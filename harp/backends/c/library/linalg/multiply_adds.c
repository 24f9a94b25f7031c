/* How many multiply-adds the processor does in registers: the most that a matrix product can reach. */
#include "linalg/vectors.h"

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
