/* A logarithm in double for functions of f32: (log(1 + f) - f)/f^2 for f from sqrt(1/2) - 1 to sqrt(2) - 1, minimax
 * (Remez), to 2^-30 of log(1 + f). */
#ifndef HARP_MATH_LOG_SHORT_H
#define HARP_MATH_LOG_SHORT_H

#include "math/log_f64.h"

/* log(x) of a normal number. */
HARP_INLINE double harp_log_short_f32(double x)
{
    const double f = harp_log_part_f64(x), k = harp_log_whole_f64(x);
    double p = 0x1.1b3f2b8c55e41p-4;
    p = harp_madd_f64(p, f, -0x1.e2e797501924fp-4);
    p = harp_madd_f64(p, f, 0x1.e6512386820bdp-4);
    p = harp_madd_f64(p, f, -0x1.fb438f64798eep-4);
    p = harp_madd_f64(p, f, 0x1.2332bd399e9afp-3);
    p = harp_madd_f64(p, f, -0x1.5562e022036c2p-3);
    p = harp_madd_f64(p, f, 0x1.99a545c88e31dp-3);
    p = harp_madd_f64(p, f, -0x1.ffffee08635f9p-3);
    p = harp_madd_f64(p, f, 0x1.555545f8cb9c8p-2);
    p = harp_madd_f64(p, f, -0x1.00000000009bcp-1);
    return harp_madd_f64(k, 0x1.62e42fefa39efp-1, harp_madd_f64(f * f, p, f));
}

#endif
