/* log, log2, log10 and log1p of f64, with the polynomial of fdlibm (e_log.c). */
#ifndef HARP_MATH_LOG_F64_H
#define HARP_MATH_LOG_F64_H

#include "math/basics.h"

/* log(1 + f) - f + f*f/2; with s = f/(2 + f) it is s*(f*f/2 + R(s*s)). */
HARP_INLINE double harp_log_poly_f64(double f)
{
    const double s = f / (2 + f), z = s * s;
    double p = 1.479819860511658591e-1;
    p = harp_madd_f64(p, z, 1.531383769920937332e-1);
    p = harp_madd_f64(p, z, 1.818357216161805012e-1);
    p = harp_madd_f64(p, z, 2.222219843214978396e-1);
    p = harp_madd_f64(p, z, 2.857142874366239149e-1);
    p = harp_madd_f64(p, z, 3.999999999940941908e-1);
    p = harp_madd_f64(p, z, 6.666666666666735130e-1);
    return s * harp_madd_f64(p, z, 0.5 * f * f);
}

#include "math/begin_f64.h"
#include "math/log_template.h"
#include "math/end.h"

#endif
