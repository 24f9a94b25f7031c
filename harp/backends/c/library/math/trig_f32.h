/* sin, cos and tan of f32, of numbers of any size.
 *
 * Numbers up to 2^16 are reduced as by W. J. Cody and W. Waite (Software Manual for the Elementary Functions, 1980), to
 * an angle r between -pi/4 and pi/4 in two parts: pi/2 is a sum of three floats, and with a fused multiply-add a less n
 * times the first one is exact. Larger ones are reduced in double as by M. Payne and R. Hanek (SIGNUM 18, 1983): for
 * x = M*2^e with a whole number M of 24 bits, the quarter turns x*2/pi modulo 4 are M*(2^e*2/pi mod 4). For each e > 0
 * a table has the second factor, in two parts and times 2^-e. The product of x and the first part, which ends 27 places
 * after the point, is exact.
 *
 * Reading the table takes longer than the rest. So there are functions for numbers up to 2^16 only, which note where
 * there are others: a loop that calls them is run again with the functions for all numbers if it met any.
 *
 * The polynomials of z = r^2 are minimax (Remez), rounded to float: (sin(r) - r)/r^3 and (tan(r) - r)/r^3 to 2^-32 and
 * 2^-29 of the function, and (cos(r) - 1 + z/2)/z^2 to 2^-32. */
#ifndef HARP_MATH_TRIG_F32_H
#define HARP_MATH_TRIG_F32_H

#include "math/basics.h"

/* 2^e*2/pi modulo 4, times 2^-e, in two parts. */
HARP_CONSTANT double harp_turns[106] = {
    0x1.45f306c000000p-1,   0x1.45f306c000000p-1,   0x1.45f306d000000p-1,   0x1.17cc1b6000000p-3,
    0x1.17cc1b7000000p-3,   0x1.7cc1b70000000p-7,   0x1.7cc1b70000000p-7,   0x1.7cc1b72000000p-7,
    0x1.7cc1b72000000p-7,   0x1.f306dc8000000p-9,   0x1.f306dc9000000p-9,   0x1.e60db93000000p-10,
    0x1.cc1b727000000p-11,  0x1.9836e4e000000p-12,  0x1.306dc9c000000p-13,  0x1.836e4e4000000p-16,
    0x1.836e4e4000000p-16,  0x1.836e4e4000000p-16,  0x1.06dc9c8000000p-17,  0x1.b727220000000p-23,
    0x1.b727220000000p-23,  0x1.b727220000000p-23,  0x1.b727220000000p-23,  0x1.b727220000000p-23,
    0x1.b727220000000p-23,  0x1.6e4e441000000p-24,  0x1.b939104000000p-26,  0x1.b939105000000p-26,
    0x1.727220a000000p-27,  0x1.c9c882a000000p-29,  0x1.c9c882a000000p-29,  0x1.9391054000000p-30,
    0x1.27220a9000000p-31,  0x1.3910548000000p-34,  0x1.391054a000000p-34,  0x1.391054a000000p-34,
    0x1.c882a50000000p-37,  0x1.c882a52000000p-37,  0x1.c882a53000000p-37,  0x1.91054a7000000p-38,
    0x1.220a94f000000p-39,  0x1.1054a7c000000p-42,  0x1.1054a7e000000p-42,  0x1.1054a7f000000p-42,
    0x1.054a7f0000000p-46,  0x1.054a7f0000000p-46,  0x1.054a7f0000000p-46,  0x1.054a7f0000000p-46,
    0x1.529fc20000000p-52,  0x1.529fc20000000p-52,  0x1.529fc20000000p-52,  0x1.529fc24000000p-52,
    0x1.529fc26000000p-52,  0x1.529fc27000000p-52,  0x1.4a7f09c000000p-54,  0x1.4a7f09d000000p-54,
    0x1.29fc274000000p-56,  0x1.29fc275000000p-56,  0x1.4fe13a8000000p-59,  0x1.4fe13aa000000p-59,
    0x1.4fe13ab000000p-59,  0x1.3f84eae000000p-61,  0x1.3f84eaf000000p-61,  0x1.fc2757c000000p-64,
    0x1.fc2757c000000p-64,  0x1.fc2757d000000p-64,  0x1.f84eafa000000p-65,  0x1.f09d5f4000000p-66,
    0x1.e13abe8000000p-67,  0x1.c2757d1000000p-68,  0x1.84eafa3000000p-69,  0x1.09d5f47000000p-70,
    0x1.3abe8f0000000p-75,  0x1.3abe8f8000000p-75,  0x1.3abe8f8000000p-75,  0x1.3abe8fa000000p-75,
    0x1.3abe8fa000000p-75,  0x1.d5f47d4000000p-78,  0x1.d5f47d4000000p-78,  0x1.d5f47d4000000p-78,
    0x1.abe8fa9000000p-79,  0x1.57d1f53000000p-80,  0x1.5f47d4c000000p-82,  0x1.5f47d4d000000p-82,
    0x1.7d1f534000000p-84,  0x1.7d1f534000000p-84,  0x1.f47d4d2000000p-86,  0x1.f47d4d3000000p-86,
    0x1.e8fa9a6000000p-87,  0x1.d1f534d000000p-88,  0x1.a3ea69b000000p-89,  0x1.47d4d37000000p-90,
    0x1.1f534dc000000p-92,  0x1.1f534dd000000p-92,  0x1.f534dd8000000p-96,  0x1.f534ddc000000p-96,
    0x1.f534ddc000000p-96,  0x1.f534ddc000000p-96,  0x1.ea69bb8000000p-97,  0x1.d4d3770000000p-98,
    0x1.a9a6ee0000000p-99,  0x1.534ddc0000000p-100, 0x1.4d37702000000p-102, 0x1.4d37703000000p-102,
    0x1.34ddc0c000000p-104, 0x1.34ddc0d000000p-104,
};

HARP_CONSTANT double harp_turns_rest[106] = {
    0x1.c9c882a53f84fp-29,  0x1.c9c882a53f84fp-29,  0x1.9391054a7f09dp-30,  0x1.27220a94fe13bp-31,
    0x1.391054a7f09d6p-34,  0x1.391054a7f09d6p-34,  0x1.391054a7f09d6p-34,  0x1.c882a53f84eb0p-37,
    0x1.c882a53f84eb0p-37,  0x1.c882a53f84eb0p-37,  0x1.91054a7f09d5fp-38,  0x1.220a94fe13abfp-39,
    0x1.1054a7f09d5f4p-42,  0x1.1054a7f09d5f4p-42,  0x1.1054a7f09d5f4p-42,  0x1.054a7f09d5f48p-46,
    0x1.054a7f09d5f48p-46,  0x1.054a7f09d5f48p-46,  0x1.054a7f09d5f48p-46,  0x1.529fc2757d1f5p-52,
    0x1.529fc2757d1f5p-52,  0x1.529fc2757d1f5p-52,  0x1.529fc2757d1f5p-52,  0x1.529fc2757d1f5p-52,
    0x1.529fc2757d1f5p-52,  0x1.4a7f09d5f47d5p-54,  0x1.4a7f09d5f47d5p-54,  0x1.29fc2757d1f53p-56,
    0x1.29fc2757d1f53p-56,  0x1.4fe13abe8fa9ap-59,  0x1.4fe13abe8fa9ap-59,  0x1.4fe13abe8fa9ap-59,
    0x1.3f84eafa3ea6ap-61,  0x1.3f84eafa3ea6ap-61,  0x1.fc2757d1f534ep-64,  0x1.fc2757d1f534ep-64,
    0x1.fc2757d1f534ep-64,  0x1.f84eafa3ea69cp-65,  0x1.f09d5f47d4d37p-66,  0x1.e13abe8fa9a6fp-67,
    0x1.c2757d1f534dep-68,  0x1.84eafa3ea69bcp-69,  0x1.09d5f47d4d377p-70,  0x1.3abe8fa9a6ee0p-75,
    0x1.3abe8fa9a6ee0p-75,  0x1.3abe8fa9a6ee0p-75,  0x1.3abe8fa9a6ee0p-75,  0x1.3abe8fa9a6ee0p-75,
    0x1.d5f47d4d37703p-78,  0x1.d5f47d4d37703p-78,  0x1.d5f47d4d37703p-78,  0x1.abe8fa9a6ee07p-79,
    0x1.57d1f534ddc0ep-80,  0x1.5f47d4d377037p-82,  0x1.5f47d4d377037p-82,  0x1.7d1f534ddc0dbp-84,
    0x1.7d1f534ddc0dbp-84,  0x1.f47d4d377036ep-86,  0x1.f47d4d377036ep-86,  0x1.e8fa9a6ee06dbp-87,
    0x1.d1f534ddc0db6p-88,  0x1.a3ea69bb81b6cp-89,  0x1.47d4d377036d9p-90,  0x1.1f534ddc0db63p-92,
    0x1.1f534ddc0db63p-92,  0x1.f534ddc0db629p-96,  0x1.f534ddc0db629p-96,  0x1.f534ddc0db629p-96,
    0x1.f534ddc0db629p-96,  0x1.ea69bb81b6c53p-97,  0x1.d4d377036d8a5p-98,  0x1.a9a6ee06db14bp-99,
    0x1.534ddc0db6296p-100, 0x1.4d377036d8a56p-102, 0x1.4d377036d8a56p-102, 0x1.34ddc0db6295ap-104,
    0x1.34ddc0db6295ap-104, 0x1.a6ee06db14acdp-107, 0x1.a6ee06db14acdp-107, 0x1.a6ee06db14acdp-107,
    0x1.4ddc0db629599p-108, 0x1.377036d8a5665p-110, 0x1.377036d8a5665p-110, 0x1.bb81b6c52b328p-113,
    0x1.bb81b6c52b328p-113, 0x1.bb81b6c52b328p-113, 0x1.77036d8a5664fp-114, 0x1.dc0db6295993cp-116,
    0x1.dc0db6295993cp-116, 0x1.b81b6c52b3279p-117, 0x1.7036d8a5664f1p-118, 0x1.c0db6295993c4p-120,
    0x1.c0db6295993c4p-120, 0x1.81b6c52b32788p-121, 0x1.036d8a5664f11p-122, 0x1.b6c52b3278872p-129,
    0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129,
    0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129, 0x1.6d8a5664f10e4p-130, 0x1.b6295993c4390p-132,
    0x1.b6295993c4390p-132, 0x1.6c52b32788721p-133,
};

/* The nearest whole number of quarter turns (modulo 2^32), and what is left. */
HARP_INLINE double harp_quarters_f32(float a, uint32_t *whole)
{
    const int32_t above = (int32_t)(harp_bits_f32(a) >> 23 & 255) - 150;
    const int64_t e = above > 0 ? above : 0; /* gcc does not gather by an int32_t */
    const double x = a, near = x * harp_turns[e], sum = near + 0x1.8p52;
    *whole = (uint32_t)harp_bits_f64(sum);
    return harp_madd_f64(x, harp_turns_rest[e], near - (sum - 0x1.8p52));
}

/* 1 + y*t exactly where that is one instruction, else in double. */
HARP_INLINE float harp_rest_one_f32(float y, float t)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return harp_madd_f32(y, t, 1);
#else
    return (float)(1 + (double)y * (double)t);
#endif
}

/* What is left of a beside whole quarter turns n, as an angle in two parts, for numbers up to 2^16. */
HARP_INLINE float harp_near_f32(float a, uint32_t *n, float *rest)
{
    const float sum = harp_madd_f32(a, 0x1.45f306p-1f, 0x1.8p23f), turns = sum - 0x1.8p23f;
    *n = harp_bits_f32(sum);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const float first = harp_madd_f32(turns, -0x1.921fb6p+0f, a), second = turns * 0x1.777a5cp-25f, r = first + second;
    const float lost = harp_madd_f32(turns, 0x1.777a5cp-25f, -second);
    *rest = ((first - r) + second) + harp_madd_f32(turns, 0x1.ee59dap-50f, lost);
#else
    const double left = (double)a - (double)turns * 0x1.921fb544p+0 - (double)turns * 0x1.0b4611a626331p-34;
    const float r = (float)left;
    *rest = (float)(left - (double)r);
#endif
    return r;
}

/* The same for all numbers. */
HARP_INLINE float harp_angle_f32(float a, uint32_t *n, float *rest)
{
    uint32_t few, many;
    float low;
    const float near = harp_near_f32(a, &few, &low);
    const double turns = harp_quarters_f32(a, &many), sum = turns + 0x1.8p52; /* the rest was up to 1/16 */
    const double far = (turns - (sum - 0x1.8p52)) * 0x1.921fb54442d18p+0;
    const float r = (float)far, left = (float)(far - (double)r);
    const int is_near = fabsf(a) <= 0x1p16f;
    *n = is_near ? few : many + (uint32_t)harp_bits_f64(sum);
    *rest = is_near ? low : left;
    return is_near ? near : r;
}

/* Notes numbers above 2^16; of NaN the result is NaN either way. */
HARP_INLINE void harp_note_far_f32(uint32_t *far, float a) { *far |= fabsf(a) > 0x1p16f; }

HARP_INLINE float harp_sin_part_f32(float r, float rest)
{
    const float z = r * r;
    float p = -0x1.9953fep-13f;
    p = harp_madd_f32(p, z, 0x1.110778p-7f);
    p = harp_madd_f32(p, z, -0x1.555546p-3f);
    return r + harp_madd_f32(r * z, p, rest);
}

/* 1 - z/2 is rounded, and what it lost is added. */
HARP_INLINE float harp_cos_part_f32(float r, float rest)
{
    const float z = r * r, half = 0.5f * z, near = 1 - half;
    float p = 0x1.99e80cp-16f;
    p = harp_madd_f32(p, z, -0x1.6c0c28p-10f);
    p = harp_madd_f32(p, z, 0x1.55554ap-5f);
    return near + harp_madd_f32(z * z, p, harp_madd_f32(-r, rest, (1 - near) - half));
}

HARP_INLINE float harp_sin_of_f32(float a, float r, float rest, uint32_t n)
{
    const float s = harp_sin_part_f32(r, rest), c = harp_cos_part_f32(r, rest), y = n & 1 ? c : s;
    const float turned = harp_from_bits_f32(harp_bits_f32(y) ^ (n & 2) << 30);
    return fabsf(a) < 0x1p-13f ? a : turned;
}

HARP_INLINE float harp_cos_of_f32(float r, float rest, uint32_t n)
{
    const float s = harp_sin_part_f32(r, rest), c = harp_cos_part_f32(r, rest), y = n & 1 ? s : c;
    return harp_from_bits_f32(harp_bits_f32(y) ^ ((n + 1) & 2) << 30);
}

/* tan(r), or -1/tan(r) with a step of Newton's method for what the sum lost. */
HARP_INLINE float harp_tan_of_f32(float a, float r, float rest, uint32_t n)
{
    const float z = r * r;
    float p = 0x1.1e9218p-8f;
    p = harp_madd_f32(p, z, 0x1.9befbap-14f);
    p = harp_madd_f32(p, z, 0x1.62cb4cp-7f);
    p = harp_madd_f32(p, z, 0x1.5cc0d2p-6f);
    p = harp_madd_f32(p, z, 0x1.bad9c2p-5f);
    p = harp_madd_f32(p, z, 0x1.110d9ep-3f);
    p = harp_madd_f32(p, z, 0x1.55556p-2f);
    const float more = harp_madd_f32(r * z, p, harp_madd_f32(z, rest, rest)), t = r + more, lost = (r - t) + more;
    const float y = -1 / t, left = harp_madd_f32(y, lost, harp_rest_one_f32(y, t));
    const float value = n & 1 ? harp_madd_f32(y, left, y) : t;
    return fabsf(a) < 0x1p-13f ? a : value;
}

HARP_INLINE float harp_sin_f32(float a)
{
    uint32_t n;
    float rest;
    const float r = harp_angle_f32(a, &n, &rest);
    return harp_sin_of_f32(a, r, rest, n);
}

HARP_INLINE float harp_cos_f32(float a)
{
    uint32_t n;
    float rest;
    const float r = harp_angle_f32(a, &n, &rest);
    return harp_cos_of_f32(r, rest, n);
}

HARP_INLINE float harp_tan_f32(float a)
{
    uint32_t n;
    float rest;
    const float r = harp_angle_f32(a, &n, &rest);
    return harp_tan_of_f32(a, r, rest, n);
}

HARP_INLINE float harp_sin_near_f32(uint32_t *far, float a)
{
    uint32_t n;
    float rest;
    const float r = harp_near_f32(a, &n, &rest);
    harp_note_far_f32(far, a);
    return harp_sin_of_f32(a, r, rest, n);
}

HARP_INLINE float harp_cos_near_f32(uint32_t *far, float a)
{
    uint32_t n;
    float rest;
    const float r = harp_near_f32(a, &n, &rest);
    harp_note_far_f32(far, a);
    return harp_cos_of_f32(r, rest, n);
}

HARP_INLINE float harp_tan_near_f32(uint32_t *far, float a)
{
    uint32_t n;
    float rest;
    const float r = harp_near_f32(a, &n, &rest);
    harp_note_far_f32(far, a);
    return harp_tan_of_f32(a, r, rest, n);
}

#endif
