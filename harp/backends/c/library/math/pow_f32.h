/* pow of f32, and powers with a constant exponent: whole ones and halves, which are multiplied out.
 *
 * Where there is a fused multiply-add, pow is e^(y*log(x)) with the logarithm and the product as sums of two floats;
 * elsewhere it is in double. Then come the cases of C99. */
#ifndef HARP_MATH_POW_F32_H
#define HARP_MATH_POW_F32_H

#include "math/basics.h"
#include "math/log_f32.h"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
/* log(x) = *high + *low for x*2^-shift, x positive and normal, to 2^-32 of it; with *lost added, to 2^-35.
 *
 * x = m*2^k, and m is multiplied by r, which is 5/4, 1 or 13/16, such that f = m*r - 1 is exact and between -0.135 and
 * 0.125. With h = 2*f/(2 + f) the logarithm is k*log(2) - log(r) + h + h^3/12 + h^5/80 + ..., as in fdlibm's e_log.c.
 * The reciprocal of 2 + f is a polynomial, to 2^-18: the remainder of the division, multiplied by the derivative,
 * corrects the sum. */
HARP_INLINE void harp_pow_log_f32(float x, float shift, float *high, float *low, float *lost)
{
    const uint32_t from = 0x3f313b14u, part = harp_bits_f32(x) - from, at = part & 0x007fffffu;
    const float k = (float)((int32_t)part >> 23) - shift, m = harp_from_bits_f32(at + from);
    const int above = (int32_t)at >= 0x3f900000 - 0x3f313b14, below = (int32_t)at < 0x3f63d70a - 0x3f313b14;
    const float r1 = above ? 0.8125f : 1, r = below ? 1.25f : r1;
    const float h1 = above ? 0x1.a94p-3f : 0, log_high = below ? -0x1.c9p-3f : h1;
    const float l1 = above ? -0x1.2c3752p-19f : 0, log_low = below ? 0x1.070cacp-20f : l1;
    const float f = harp_madd_f32(m, r, -1), two = f + f;
    const float i1 = harp_madd_f32(f, -0x1.039a7cp-4f, 0x1.011682p-3f);
    const float i = harp_madd_f32(f * f, i1, harp_madd_f32(f, -0x1.fffcfap-3f, 0x1.ffffb4p-2f));
    const float h = two * i, rest = harp_madd_f32(-h, f, harp_madd_f32(-2, h, two)), z = h * h;
    const float slope = i * harp_madd_f32(z, 0.251f, 1);
    const float whole = harp_madd_f32(k, 0x1.62e4p-1f, log_high), sum = whole + h;
    const float least = harp_madd_f32(rest, slope, harp_madd_f32(k, 0x1.7f7d1cp-20f, log_low)) + ((whole - sum) + h);
    const float q = harp_madd_f32(z, 0x1.282688p-9f, 0x1.999576p-7f), p = harp_madd_f32(z, q, 0x1.555556p-4f);
    const float w = z * p, all = harp_madd_f32(h, w, least);
    *high = sum;
    *low = all;
    const float p_lost = harp_madd_f32(z, q, 0x1.555556p-4f - p), z_lost = harp_madd_f32(h, h, -z);
    const float w_lost = harp_madd_f32(z, p_lost, harp_madd_f32(z_lost, p, harp_madd_f32(z, p, -w)));
    *lost = harp_madd_f32(h, w_lost, harp_madd_f32(h, w, -all) + least);
}

/* e^(t + least) = (*sum + the result)*2^n for a whole n, the nearest one to about/log(2); *up = n + 1.5*2^23. */
HARP_INLINE float harp_pow_exp_f32(float t, float least, float about, float *sum, float *up)
{
    *up = harp_madd_f32(about, 0x1.715476p+0f, 0x1.8p23f);
    const float n = *up - 0x1.8p23f, r = harp_madd_f32(n, -0x1.62e4p-1f, t);
    const float small = harp_madd_f32(n, -0x1.7f7d1cp-20f, least), a = r + small, part = (r - a) + small;
    const float one = 1 + a, lost = harp_madd_f32(part, one, a - (one - 1));
    const float a2 = a * a, q0 = harp_madd_f32(a, 0x1.55555p-3f, 0.5f);
    const float q1 = harp_madd_f32(a, 0x1.1115d8p-7f, 0x1.55545p-5f);
    const float q2 = harp_madd_f32(a, 0x1.9d12e8p-13f, 0x1.6dfb6ap-10f);
    *sum = one;
    return harp_madd_f32(a2, harp_madd_f32(a2, harp_madd_f32(a2, q2, q1), q0), lost);
}

/* (sum + low)*2^n for a sum near 1 and a whole n of at most 250, rounded once also where that is denormal: with c, of
   which the last place is that of denormal numbers divided by 2^n. */
HARP_INLINE float harp_pow_scaled_f32(float sum, float low, float n)
{
    const float value = sum + low, c = harp_two_to_f32(-126 - (n < 0 ? n : 0)), large = c + sum;
    const float rounded = (large + ((sum - (large - c)) + low)) - c;
    return harp_scale_f32(value < c ? rounded : value, n);
}

/* |a|^b. The logarithm of 0 and of infinity is infinite, and from 170 on the power of e is infinite or 0. From 40 on,
   where errors of the logarithm count most, it has a third part. */
HARP_INLINE float harp_pow_size_f32(float size, float b)
{
    const float inf = __builtin_inff(), raised = size * 0x1p24f, x = size < 0x1p-126f ? raised : size;
    float high, low, lost, sum, up;
    harp_pow_log_f32(x, size < 0x1p-126f ? 24 : 0, &high, &low, &lost);
    const float positive = size == 0 ? -inf : high, log = size < inf ? positive : size;
    const float less = b > 0x1p40f ? 0x1p40f : b, y = less < -0x1p40f ? -0x1p40f : less, all = log * y;
    const float first = harp_madd_f32(low, y, harp_madd_f32(log, y, -all)), more = harp_madd_f32(lost, y, first);
    const float many = fabsf(all) < 170 ? more : 0, least = fabsf(all) < 40 ? first : many;
    const float most = all > 170 ? 170 : all, t = most < -170 ? -170 : most;
    const float rest = harp_pow_exp_f32(t, least, fabsf(t) < 40 ? t : t + least, &sum, &up);
    return harp_pow_scaled_f32(sum, rest, up - 0x1.8p23f);
}

/* Notes bases that are no positive normal numbers, and powers below e^-40 or above e^40. */
HARP_INLINE float harp_pow_near_f32(uint32_t *far, float a, float b)
{
    float high, low, lost, sum, up;
    harp_pow_log_f32(a, 0, &high, &low, &lost);
    const float t = high * b, least = harp_madd_f32(low, b, harp_madd_f32(high, b, -t));
    harp_note_not_normal_f32(far, a);
    *far |= !(fabsf(t) < 40);
    const float rest = harp_pow_exp_f32(t, least, t, &sum, &up);
    return harp_from_bits_f32(harp_bits_f32(sum + rest) + (harp_bits_f32(up) << 23));
}
#else
/* The logarithm is that of s = f/(2 + f), as in fdlibm's e_pow.c: log(1 + f) = 2*(s + s^3/3 + s^5/5 + ...), and both
   polynomials are to 2^-28. x^y for a positive normal x = (1 + f)*2^k; k may be infinite or NaN. */
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

/* |a|^b; x - x is NaN where x is NaN or infinite, and y is clamped where the power of any other number than 1 is 0 or
   infinite. */
HARP_INLINE float harp_pow_size_f32(float size, float b)
{
    const float inf = __builtin_inff(), up = size * 0x1p24f, x = size < 0x1p-126f ? up : size;
    const float shift = size < 0x1p-126f ? 24 : 0, normal = harp_log_whole_f32(x) - shift;
    const float positive = size == 0 ? -inf : normal, k = size < inf ? positive : size;
    const float least = b > 0x1p40f ? 0x1p40f : b, y = least < -0x1p40f ? -0x1p40f : least;
    return harp_pow_of_f32(harp_log_part_f32(x), k, y, 1);
}

/* Notes bases that are no positive normal numbers, and powers that may be far from a float. */
HARP_INLINE float harp_pow_near_f32(uint32_t *far, float a, float b)
{
    const float k = harp_log_whole_f32(a), least = fabsf(b) * (fabsf(k) + 0.5f);
    harp_note_not_normal_f32(far, a);
    *far |= !(least < 1000);
    return harp_pow_of_f32(harp_log_part_f32(a), k, b, 0);
}
#endif

HARP_INLINE float harp_pow_f32(float a, float b)
{
    const float inf = __builtin_inff(), power = harp_pow_size_f32(fabsf(a), b), half = 0.5f * b;
    const uint32_t odd = harp_rint_f32(half) != half ? 0x80000000u : 0;
    const float turned = harp_from_bits_f32(harp_bits_f32(power) ^ (harp_bits_f32(a) & odd));
    const int is_nan = (a < 0) & (a > -inf), is_whole = harp_rint_f32(b) == b;
    const float broken = is_nan ? __builtin_nanf("") : power, value = is_whole ? turned : broken;
    return ((b == 0) | (a == 1)) ? 1 : value;
}

/* a^n for a constant n with 1 <= |n| <= 15, in double. */
HARP_INLINE float harp_pow_wide_f32(float a, int n)
{
    const int m = n < 0 ? -n : n;
    const double x = a;
    double p = x;
    if (m >= 8) p = p * p * (m & 4 ? x : 1);
    if (m >= 4) p = p * p * (m & 2 ? x : 1);
    if (m >= 2) p = p * p * (m & 1 ? x : 1);
    return (float)(n < 0 ? 1 / p : p);
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
/* Whether a^n, and the powers that it is made of, are so far from overflow and underflow that pairs are exact enough.
   The limits are few, so that several powers of one number share the test. */
HARP_INLINE int harp_pow_is_middle_f32(float a, int n)
{
    const uint32_t most = -n <= 5 ? 19 : -n <= 8 ? 12 : 6;
    return harp_bits_f32(fabsf(a)) - ((127 - most) << 23) < most << 24;
}

/* (p + *low)^2, and that times x where it is odd, as a sum of two floats again. */
HARP_INLINE float harp_pow_square_f32(float p, float *low, int is_first, int is_odd, float x)
{
    const float square = p * p, lost = harp_madd_f32(p, p, -square), product = square * x;
    const float rest = is_first ? lost : harp_madd_f32(p + p, *low, lost);
    *low = is_odd ? harp_madd_f32(rest, x, harp_madd_f32(square, x, -product)) : rest;
    return is_odd ? product : square;
}

/* a^n for n < 0, by a division of floats and what it leaves. */
HARP_INLINE float harp_pow_pair_f32(float a, int n)
{
    const int m = -n;
    float p = a, low = 0;
    if (m >= 8) p = harp_pow_square_f32(p, &low, 1, m & 4, a);
    if (m >= 4) p = harp_pow_square_f32(p, &low, m < 8, m & 2, a);
    if (m >= 2) p = harp_pow_square_f32(p, &low, m < 4, m & 1, a);
    const float q = 1 / p, rest = harp_madd_f32(-q, low, harp_madd_f32(-q, p, 1));
    return harp_madd_f32(q, rest, q);
}

HARP_INLINE float harp_pow_whole_f32(float a, int n)
{
    if (n >= -1) return n == -1 ? 1 / a : harp_pow_wide_f32(a, n);
    return harp_pow_is_middle_f32(a, n) ? harp_pow_pair_f32(a, n) : harp_pow_wide_f32(a, n);
}

/* For n < -1: notes other numbers. */
HARP_INLINE float harp_pow_whole_near_f32(uint32_t *far, float a, int n)
{
    *far |= !harp_pow_is_middle_f32(a, n);
    return harp_pow_pair_f32(a, n);
}
#else
HARP_INLINE float harp_pow_whole_f32(float a, int n) { return n == -1 ? 1 / a : harp_pow_wide_f32(a, n); }

HARP_INLINE float harp_pow_whole_near_f32(uint32_t *far, float a, int n)
{
    (void)far;
    return harp_pow_wide_f32(a, n);
}
#endif

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
