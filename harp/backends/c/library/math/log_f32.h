/* log, log2, log10 and log1p of f32. The polynomial of log(1 + f) - f + f*f/2 is that of Cephes (logf.c).
 *
 * Where there is a fused multiply-add, which tells what a product lost, log2 and log10 are f*L + f^2*P(f), with the
 * product f*L in two parts, and k is added to the large one. Their polynomials are minimax (Remez), rounded to float:
 * 2^-27 of the result. Without the instruction, heads of numbers are split off instead. */
#ifndef HARP_MATH_LOG_F32_H
#define HARP_MATH_LOG_F32_H

#include "math/basics.h"

/* log(1 + f) - f + f*f/2. */
HARP_INLINE float harp_log_poly_f32(float f)
{
    float p = 7.0376836292e-2f;
    p = harp_madd_f32(p, f, -1.1514610310e-1f);
    p = harp_madd_f32(p, f, 1.1676998740e-1f);
    p = harp_madd_f32(p, f, -1.2420140846e-1f);
    p = harp_madd_f32(p, f, 1.4249322787e-1f);
    p = harp_madd_f32(p, f, -1.6668057665e-1f);
    p = harp_madd_f32(p, f, 2.0000714765e-1f);
    p = harp_madd_f32(p, f, -2.4999993993e-1f);
    p = harp_madd_f32(p, f, 3.3333331174e-1f);
    return f * f * f * p;
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define LOG2_IS_FUSED
#endif

#include "math/begin_f32.h"
#include "math/log_template.h"
#include "math/end.h"

/* Notes what is no positive normal number. */
HARP_INLINE void harp_note_not_normal_f32(uint32_t *far, float x)
{
    *far |= harp_bits_f32(x) - 0x00800000u >= 0x7f000000u;
}

#if defined(LOG2_IS_FUSED)
HARP_INLINE float harp_log2_sum_f32(float y, float shift)
{
    const float f = harp_log_part_f32(y), k = harp_log_whole_f32(y) - shift;
    const float large = f * 0x1.715476p+0f, lost = harp_madd_f32(f, 0x1.715476p+0f, -large);
    float p = -0x1.c26498p-4f;
    p = harp_madd_f32(p, f, 0x1.7d478p-3f);
    p = harp_madd_f32(p, f, -0x1.874864p-3f);
    p = harp_madd_f32(p, f, 0x1.a3059ep-3f);
    p = harp_madd_f32(p, f, -0x1.eabd32p-3f);
    p = harp_madd_f32(p, f, 0x1.277e48p-2f);
    p = harp_madd_f32(p, f, -0x1.715a7ep-2f);
    p = harp_madd_f32(p, f, 0x1.ec7096p-2f);
    p = harp_madd_f32(p, f, -0x1.71547p-1f);
    const float least = harp_madd_f32(f, 0x1.4ae0cp-26f, lost), some = harp_madd_f32(f, f * p, least);
    const float whole = k, sum = whole + large, small = some;
    return sum + (small + ((whole - sum) + large));
}

HARP_INLINE float harp_log2_f32(float x)
{
    const float up = x * 0x1p24f, y = x < 0x1p-126f ? up : x, shift = x < 0x1p-126f ? 24 : 0;
    return harp_log_ends_f32(x, harp_log2_sum_f32(y, shift));
}

HARP_INLINE float harp_log2_near_f32(uint32_t *far, float x)
{
    harp_note_not_normal_f32(far, x);
    return harp_log2_sum_f32(x, 0);
}

HARP_INLINE float harp_log10_sum_f32(float y, float shift)
{
    const float f = harp_log_part_f32(y), k = harp_log_whole_f32(y) - shift;
    const float large = f * 0x1.bcb7b2p-2f, lost = harp_madd_f32(f, 0x1.bcb7b2p-2f, -large);
    float p = -0x1.0f29b8p-5f;
    p = harp_madd_f32(p, f, 0x1.cb1aeap-5f);
    p = harp_madd_f32(p, f, -0x1.d726b2p-5f);
    p = harp_madd_f32(p, f, 0x1.f88d7ap-5f);
    p = harp_madd_f32(p, f, -0x1.277444p-4f);
    p = harp_madd_f32(p, f, 0x1.63cf2ep-4f);
    p = harp_madd_f32(p, f, -0x1.bcbef2p-4f);
    p = harp_madd_f32(p, f, 0x1.287a72p-3f);
    p = harp_madd_f32(p, f, -0x1.bcb7aap-3f);
    const float least = harp_madd_f32(f, -0x1.5b235ep-27f, lost), some = harp_madd_f32(f, f * p, least);
    const float whole = k * 0x1.344p-2f, sum = whole + large, small = harp_madd_f32(k, 0x1.3509f8p-18f, some);
    return sum + (small + ((whole - sum) + large));
}

HARP_INLINE float harp_log10_f32(float x)
{
    const float up = x * 0x1p24f, y = x < 0x1p-126f ? up : x, shift = x < 0x1p-126f ? 24 : 0;
    return harp_log_ends_f32(x, harp_log10_sum_f32(y, shift));
}

HARP_INLINE float harp_log10_near_f32(uint32_t *far, float x)
{
    harp_note_not_normal_f32(far, x);
    return harp_log10_sum_f32(x, 0);
}

#undef LOG2_IS_FUSED
#else
HARP_INLINE float harp_log2_near_f32(uint32_t *far, float x)
{
    (void)far;
    return harp_log2_f32(x);
}

HARP_INLINE float harp_log10_near_f32(uint32_t *far, float x)
{
    (void)far;
    return harp_log10_f32(x);
}
#endif

#endif
