/* atan, atan2, asin and acos of f32.
 *
 * With a fused multiply-add they are computed in float, with what quotients, roots and large sums lost as second parts;
 * only atan2 of very large, very small and special numbers is not. A loop with atan2 of others is run again if it met
 * any. Without the instruction they are computed in double, and rounded once: a relative error of 2^-28 before rounding
 * adds 1/32 ULP to it. Exponents and selects stay in float where they can, which is twice as many lanes.
 *
 * The polynomials are minimax (Remez), in double (atan(t) - t)/t^3 in t^2, for |t| <= 1, to 2^-28 of atan(t), and
 * (asin(s) - s)/s^3 in s^2, for |s| <= 1/2, to 2^-31 of asin(s), and in float, for |t| <= 0.46, to 2^-28, and to 2^-27.
 */
#ifndef HARP_MATH_ANGLES_F32_H
#define HARP_MATH_ANGLES_F32_H

#include "math/basics.h"

/* atan(t) for |t| <= 1. */
HARP_INLINE double harp_atan_part_f32(double t)
{
    const double z = t * t;
    double p = -0x1.d63181243cc8dp-10;
    p = harp_madd_f64(p, z, 0x1.65a750be12894p-7);
    p = harp_madd_f64(p, z, -0x1.fed259c9ef26ep-6);
    p = harp_madd_f64(p, z, 0x1.daca6eaa4c767p-5);
    p = harp_madd_f64(p, z, -0x1.5834be33e99dep-4);
    p = harp_madd_f64(p, z, 0x1.c09a0f9dde9d2p-4);
    p = harp_madd_f64(p, z, -0x1.2421b704c6572p-3);
    p = harp_madd_f64(p, z, 0x1.9991fd5699743p-3);
    p = harp_madd_f64(p, z, -0x1.55553e5b12751p-2);
    return harp_madd_f64(t * z, p, t);
}

/* With the octant turned so that 0 <= t <= 1; that of two zeros is 0, and that of two infinities 1. */
HARP_INLINE float harp_atan2_wide_f32(float y, float x)
{
    const float a = fabsf(y), b = fabsf(x), less = a > b ? b : a, more = a > b ? a : b;
    const int both = (less == __builtin_inff()) & (more == __builtin_inff());
    const float top = both ? 1 : less, high = both ? 1 : more;
    const double p = harp_atan_part_f32((double)top / (high == 0 ? 1 : high));
    const double q = a > b ? 0x1.921fb54442d18p+0 - p : p;
    const double value = copysignf(1, x) < 0 ? 0x1.921fb54442d18p+1 - q : q;
    return copysignf((float)value, y);
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)

/* c + rest + b*(s + more): the sum of the large parts is rounded, and what it lost is added. */
HARP_INLINE float harp_turned_f32(float c, float rest, float b, float s, float more)
{
    const float sum = harp_madd_f32(b, s, c), lost = harp_madd_f32(b, s, c - sum);
    return sum + (lost + harp_madd_f32(b, more, rest));
}

/* The angle with the tangent n/d <= 1, or d/n if it is steep, and pi less that at the back: k quarters of pi, plus or
 * minus atan(t) for |t| <= 0.46. The first part of pi/4 has 22 bits. A quotient is a product with the reciprocal, and
 * what is left of it times that. */
HARP_INLINE float harp_octant_f32(float n, float d, int steep, int back)
{
    const int wide = n > d * 0.46f;
    const float low = n - d, sum = n + d, top = wide ? low : n, bottom = wide ? sum : d, inverse = 1 / bottom;
    const float t = top * inverse, lost = harp_madd_f32(-t, n - (sum - d), n - (low + d)), z = t * t;
    const float rest = (harp_madd_f32(-t, bottom, top) + (wide ? lost : 0)) * inverse;
    float p = -0x1.c8592ep-5f;
    p = harp_madd_f32(p, z, 0x1.a9385ep-4f);
    p = harp_madd_f32(p, z, -0x1.2315f2p-3f);
    p = harp_madd_f32(p, z, 0x1.9988bep-3f);
    p = harp_madd_f32(p, z, -0x1.555536p-2f);
    const float small = harp_madd_f32(t * z, p, harp_madd_f32(-z, rest, rest)), first = wide ? 1 : 0;
    const float turned = steep ? 2 - first : first, sign = steep ? -1 : 1;
    const float k = back ? 4 - turned : turned, s = back ? -sign : sign;
    return harp_turned_f32(k * 0x1.921fb8p-1f, k * -0x1.5dde98p-24f, s, t, small);
}

/* From 2^100 on the angle is a right one. */
HARP_INLINE float harp_atan_f32(float x)
{
    const float size = fabsf(x), a = 0x1p100f < size ? 0x1p100f : size;
    return copysignf(harp_octant_f32(a > 1 ? 1 : a, a > 1 ? a : 1, a > 1, 0), x);
}

/* Notes numbers below 2^-63, but for a lesser one that is 0, and from 2^41 on: no quotient of others is denormal. */
HARP_INLINE float harp_atan2_near_f32(uint32_t *far, float y, float x)
{
    const float a = fabsf(y), b = fabsf(x), n = a > b ? b : a, d = a > b ? a : b;
    const int large = harp_bits_f32(d) - 0x20000000u >= 0x34000000u, small = harp_bits_f32(n) - 1 < 0x1fffffffu;
    *far |= large | small;
    return copysignf(harp_octant_f32(n, d, a > b, copysignf(1, x) < 0), y);
}

HARP_INLINE float harp_atan2_f32(float y, float x)
{
    uint32_t far = 0;
    const float near = harp_atan2_near_f32(&far, y, x), wide = harp_atan2_wide_f32(y, x);
    return far ? wide : near;
}

/* asin(s) - s, where s is a, or the root of (1 - a)/2 from a = 1/2 on: asin(a) = pi/2 - 2*asin(sqrt((1 - a)/2)). What
 * the root lost is part of it: the rest of its square, over twice the root. */
HARP_INLINE float harp_asin_part_f32(float a, float *root)
{
    const float half = harp_madd_f32(a, -0.5f, 0.5f), z = a < 0.5f ? a * a : half, s = sqrtf(half);
    const float lost = harp_madd_f32(-s, s, half) / (s + (s + 0x1p-100f));
    float p = 0x1.596d6p-5f;
    p = harp_madd_f32(p, z, 0x1.8c2d84p-6f);
    p = harp_madd_f32(p, z, 0x1.747d06p-5f);
    p = harp_madd_f32(p, z, 0x1.3301fcp-4f);
    p = harp_madd_f32(p, z, 0x1.5555c8p-3f);
    *root = a < 0.5f ? a : s;
    return harp_madd_f32(*root * z, p, a < 0.5f ? 0 : lost);
}

HARP_INLINE float harp_asin_f32(float x)
{
    float s;
    const float a = fabsf(x), more = harp_asin_part_f32(a, &s);
    const float large = harp_turned_f32(0x1.921fb6p+0f, -0x1.777a5cp-25f, -2, s, more);
    return copysignf(a < 0.5f ? s + more : large, x);
}

HARP_INLINE float harp_acos_f32(float x)
{
    float s;
    const float more = harp_asin_part_f32(fabsf(x), &s), sign = copysignf(1, x);
    const float large = x < 0 ? 0x1.921fb6p+1f : 0, c = fabsf(x) < 0.5f ? 0x1.921fb6p+0f : large;
    return harp_turned_f32(c, c * -0x1.de12cap-26f, fabsf(x) < 0.5f ? -sign : sign + sign, s, more);
}

#else

HARP_INLINE float harp_atan_f32(float x)
{
    const float a = fabsf(x), top = a > 1 ? -1 : a, bottom = a > 1 ? a : 1, turned = a > 1 ? 0x1.921fb6p+0f : 0;
    const float rest = a > 1 ? -0x1.777a5cp-25f : 0;
    return copysignf((float)(harp_atan_part_f32((double)top / bottom) + ((double)turned + rest)), x);
}

HARP_INLINE float harp_atan2_f32(float y, float x) { return harp_atan2_wide_f32(y, x); }

HARP_INLINE float harp_atan2_near_f32(uint32_t *far, float y, float x)
{
    (void)far;
    return harp_atan2_wide_f32(y, x);
}

/* asin(s), or half of what is left to a right angle from 1/2 on: asin(a) = pi/2 - 2*asin(sqrt((1 - a)/2)). */
HARP_INLINE double harp_asin_part_f32(float a)
{
    const double half = 0.5f - 0.5f * a, x = a, z = a < 0.5f ? x * x : half, s = a < 0.5f ? x : sqrt(half);
    double p = 0x1.33546e246ce8fp-5;
    p = harp_madd_f64(p, z, 0x1.d92372e41471bp-7);
    p = harp_madd_f64(p, z, 0x1.0491612070063p-5);
    p = harp_madd_f64(p, z, 0x1.6caed9924fddfp-5);
    p = harp_madd_f64(p, z, 0x1.33387c6d971cfp-4);
    p = harp_madd_f64(p, z, 0x1.55554c600fe61p-3);
    return harp_madd_f64(s * z, p, s);
}

HARP_INLINE float harp_asin_f32(float x)
{
    const double p = harp_asin_part_f32(fabsf(x));
    return copysignf((float)(fabsf(x) < 0.5f ? p : harp_madd_f64(p, -2, 0x1.921fb54442d18p+0)), x);
}

HARP_INLINE float harp_acos_f32(float x)
{
    const double p = harp_asin_part_f32(fabsf(x)), q = fabsf(x) < 0.5f ? 0x1.921fb54442d18p+0 - p : 2 * p;
    return (float)(x < 0 ? 0x1.921fb54442d18p+1 - q : q);
}

#endif

#endif
