/* What a rounded product or sum of f64 lost, exactly (T. J. Dekker, Numerische Mathematik 18, 1971), and the high
 * parts of numbers. */
#ifndef HARP_MATH_EXACT_F64_H
#define HARP_MATH_EXACT_F64_H

#include "math/basics.h"

/* a*b - p exactly, where p is the rounded product; by halves (Dekker, Veltkamp) where no instruction has it. */
HARP_INLINE double harp_rest_f64(double a, double b, double p)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, -p);
#else
    const double ac = 0x1.000002p27 * a, ah = ac - (ac - a), al = a - ah;
    const double bc = 0x1.000002p27 * b, bh = bc - (bc - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* a + b - s exactly, where s is the rounded sum. */
HARP_INLINE double harp_lost_f64(double a, double b, double s)
{
    const double c = s - a;
    return (a - (s - c)) + (b - c);
}

/* The first 26 bits. */
HARP_INLINE double harp_head_f64(double a)
{
    return harp_from_bits_f64(harp_bits_f64(a) & UINT64_C(0xfffffffff8000000));
}

#endif
