/* Functions of each element of a row, which programs share: each is compiled once for a machine. */
#ifndef HARP_MATH_MAP_H
#define HARP_MATH_MAP_H

#include <stdint.h>

#define HARP_OF_ONE(name)                                                                                              \
    void harp_map_##name##_f32(int64_t, const float *restrict, float *restrict);                                       \
    void harp_map_##name##_f64(int64_t, const double *restrict, double *restrict);
#define HARP_OF_TWO(name)                                                                                              \
    void harp_map_##name##_f32(int64_t, const float *restrict, const float *restrict, float *restrict);                \
    void harp_map_##name##_f64(int64_t, const double *restrict, const double *restrict, double *restrict);
HARP_OF_ONE(exp)
HARP_OF_ONE(exp2)
HARP_OF_ONE(expm1)
HARP_OF_ONE(log)
HARP_OF_ONE(log2)
HARP_OF_ONE(log10)
HARP_OF_ONE(log1p)
HARP_OF_ONE(sin)
HARP_OF_ONE(cos)
HARP_OF_ONE(tan)
HARP_OF_ONE(asin)
HARP_OF_ONE(acos)
HARP_OF_ONE(atan)
HARP_OF_ONE(sinh)
HARP_OF_ONE(cosh)
HARP_OF_ONE(asinh)
HARP_OF_ONE(acosh)
HARP_OF_ONE(atanh)
HARP_OF_ONE(erf)
HARP_OF_ONE(erfc)
HARP_OF_ONE(erfinv)
HARP_OF_ONE(cbrt)
HARP_OF_ONE(tanh)
HARP_OF_TWO(atan2)
HARP_OF_TWO(hypot)
HARP_OF_TWO(pow)

#endif
