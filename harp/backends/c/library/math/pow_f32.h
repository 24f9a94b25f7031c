/* pow of f32: 2^(y*log2|x|) in double, with polynomials to 2^-28, then the cases of C99.
 *
 * The logarithm is that of s = f/(2 + f), as in fdlibm's e_pow.c: log(1 + f) = 2*(s + s^3/3 + s^5/5 + ...). Exponents
 * that are known when a program is compiled are multiplied out: whole ones, and halves. In pow, x - x is NaN where x is
 * NaN or infinite, and y is clamped where the power of any other number than 1 is 0 or infinite. */
#ifndef HARP_MATH_POW_F32_H
#define HARP_MATH_POW_F32_H

#include "math/log_f64.h"
#include "math/basics_f32.h"

/* The power of a negative number: of an odd whole exponent negative, of another one that is not whole NaN. */
HARP_INLINE float harp_pow_signed_f32(float a, float b, float power, float nan)
{
    const float y = fabsf(b), half = 0.5f * y, whole = harp_rint_f32(y), even = harp_rint_f32(half);
    const float negative = even == half ? power : -power, finite = a < 0 ? nan : power;
    const float broken = a > -__builtin_inff() ? finite : power;
    return whole == y ? (copysignf(1, a) < 0 ? negative : power) : broken;
}

HARP_INLINE float harp_pow_f32(float a, float b)
{
    const float least = b > 0x1p40f ? 0x1p40f : b, y = least < -0x1p40f ? -0x1p40f : least, inf = __builtin_inff();
    const double x = a, size = fabs(x);
    const double f = harp_log_part_f64(size), s = f / (2 + f), z = s * s;
    double p = 0x1.5ce5ff0339e91p-2;
    p = harp_madd_f64(p, z, 0x1.a58daf70fdc69p-2);
    p = harp_madd_f64(p, z, 0x1.27777f8552119p-1);
    p = harp_madd_f64(p, z, 0x1.ec709d1371366p-1);
    p = harp_madd_f64(p, z, 0x1.71547652bed4fp+1);
    const double log2 = harp_madd_f64(s, p, harp_log_whole_f64(size)), t = harp_madd_f64(y, log2, x - x);
    const double high = t > 1000 ? 1000 : t, c = high < -1000 ? -1000 : high;
    const double n = (c + 0x1.8p52) - 0x1.8p52, r = c - n;
    double q = 0x1.44413f0666543p-13;
    q = harp_madd_f64(q, r, 0x1.5f4a8d42a60a7p-10);
    q = harp_madd_f64(q, r, 0x1.3b2a1a3178a01p-7);
    q = harp_madd_f64(q, r, 0x1.c6aec8caf51a1p-5);
    q = harp_madd_f64(q, r, 0x1.ebfbe046e529dp-3);
    q = harp_madd_f64(q, r, 0x1.62e430d2ea714p-1);
    const double power = harp_madd_f64(q, r, 1) * harp_two_to_f64(n);
    const int extreme = ((a == 0) | (fabsf(a) == inf)) & (b == b);
    const float end = (a == 0) == (b < 0) ? inf : 0;
    const float value = harp_pow_signed_f32(a, b, extreme ? end : (float)power, __builtin_nanf(""));
    return ((b == 0) | (a == 1)) ? 1 : value;
}

/* a^n for a constant n with 1 <= |n| <= 15: in double, so that it is rounded once. */
HARP_INLINE float harp_pow_whole_f32(float a, int n)
{
    const int m = n < 0 ? -n : n;
    const double x = a;
    double p = x;
    if (m >= 8) p = p * p * (m & 4 ? x : 1);
    if (m >= 4) p = p * p * (m & 2 ? x : 1);
    if (m >= 2) p = p * p * (m & 1 ? x : 1);
    return (float)(n < 0 ? 1 / p : p);
}

/* a^(n/2) for a constant odd n with |n| <= 7, in double. The powers of -0 and -infinity are those of 0 and infinity. */
HARP_INLINE float harp_pow_half_f32(float a, int n)
{
    const int m = (n < 0 ? -n : n) / 2;
    const float size = a == -__builtin_inff() ? -a : a + 0;
    if (n == 1) return sqrtf(size);
    const double x = size;
    double p = sqrt(x);
    if (m & 1) p = p * x;
    if (m & 2) p = p * (x * x);
    return (float)(n < 0 ? 1 / p : p);
}

#endif
