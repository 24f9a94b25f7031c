/* pow of f32: 2^(y*log2|x|) in double, with polynomials to 2^-28, then the cases of C99.
 *
 * The logarithm is that of s = f/(2 + f), as in fdlibm's e_pow.c: log(1 + f) = 2*(s + s^3/3 + s^5/5 + ...). Exponents
 * that are known when a program is compiled are multiplied out: whole ones, and halves. In pow, x - x is NaN where x is
 * NaN or infinite, and y is clamped where the power of any other number than 1 is 0 or infinite. */
#ifndef HARP_MATH_POW_F32_H
#define HARP_MATH_POW_F32_H

#include "math/basics_f64.h"
#include "math/log_f32.h"

/* x^y for a positive normal x = (1 + f)*2^k; k may be infinite or NaN. */
HARP_INLINE float harp_pow_of_f32(float f1, float k, float y, int clamped)
{
    const double f = f1, s = f / (2 + f), z = s * s, z2 = z * z;
    const double p0 = harp_madd_f64(z, 0x1.ec709d1371366p-1, 0x1.71547652bed4fp+1);
    const double p1 = harp_madd_f64(z, 0x1.a58daf70fdc69p-2, 0x1.27777f8552119p-1);
    const double p = harp_madd_f64(z2, harp_madd_f64(z2, 0x1.5ce5ff0339e91p-2, p1), p0);
    const double t = y * harp_madd_f64(s, p, k), high = t > 1000 ? 1000 : t, c = high < -1000 ? -1000 : high;
    const double limited = clamped ? c : t, sum = limited + 0x1.80000000003ffp52;
    const double n = sum - 0x1.80000000003ffp52, r = limited - n, r2 = r * r;
    const double q0 = harp_madd_f64(r, 0x1.62e430d2ea714p-1, 1);
    const double q1 = harp_madd_f64(r, 0x1.c6aec8caf51a1p-5, 0x1.ebfbe046e529dp-3);
    const double q2 = harp_madd_f64(r, 0x1.5f4a8d42a60a7p-10, 0x1.3b2a1a3178a01p-7);
    const double q3 = harp_madd_f64(r2, harp_madd_f64(r2, 0x1.44413f0666543p-13, q2), q1);
    return (float)(harp_madd_f64(r2, q3, q0) * harp_from_bits_f64(harp_bits_f64(sum) << 52));
}

HARP_INLINE float harp_pow_f32(float a, float b)
{
    const float inf = __builtin_inff(), size = fabsf(a), up = size * 0x1p24f, x = size < 0x1p-126f ? up : size;
    const float shift = size < 0x1p-126f ? 24 : 0, normal = harp_log_whole_f32(x) - shift;
    const float positive = size == 0 ? -inf : normal, k = size < inf ? positive : size;
    const float least = b > 0x1p40f ? 0x1p40f : b, y = least < -0x1p40f ? -0x1p40f : least;
    const float power = harp_pow_of_f32(harp_log_part_f32(x), k, y, 1), half = 0.5f * b;
    const uint32_t odd = harp_rint_f32(half) != half ? 0x80000000u : 0;
    const float turned = harp_from_bits_f32(harp_bits_f32(power) ^ (harp_bits_f32(a) & odd));
    const int is_nan = (a < 0) & (a > -inf), is_whole = harp_rint_f32(b) == b;
    const float broken = is_nan ? __builtin_nanf("") : power, value = is_whole ? turned : broken;
    return ((b == 0) | (a == 1)) ? 1 : value;
}

/* Notes bases that are no positive normal numbers, and powers that may be far from a float. */
HARP_INLINE float harp_pow_near_f32(uint32_t *far, float a, float b)
{
    const float k = harp_log_whole_f32(a), least = fabsf(b) * (fabsf(k) + 0.5f);
    harp_note_not_normal_f32(far, a);
    *far |= !(least < 1000);
    return harp_pow_of_f32(harp_log_part_f32(a), k, b, 0);
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
