/* Conversions of float16 and bfloat16, on their bits: without branches, so that any compiler vectorises loops.
 *
 * What is rounded only to be computed with goes on as a float: without numbers of 16 bits between, compilers have half
 * the work. All round to the nearest number, ties to even, keep infinities, signed zeros and denormal numbers, and
 * treat NaN as NumPy and ml_dtypes do. */
#ifndef HARP_ELEMENTS_HALVES_H
#define HARP_ELEMENTS_HALVES_H

#include "math/basics_f32.h"

/* Exact. The product puts the exponent right, also of denormal numbers. */
static inline float harp_f16_to_f32(uint16_t h)
{
    const uint32_t size = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t finite = harp_bits_f32(harp_from_bits_f32(size) * 0x1p112f);
    return harp_from_bits_f32(sign | ((h & 0x7c00) == 0x7c00 ? size | 0x7f800000u : finite));
}

/* Normal numbers are rounded by adding to the bits below, denormal ones by adding 1/2, whose last bit is theirs. */
static inline uint16_t harp_f32_to_f16(float a)
{
    const uint32_t bits = harp_bits_f32(a), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    const uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
    const uint32_t small = harp_bits_f32(harp_from_bits_f32(size) + 0.5f) - 0x3f000000u;
    const uint32_t payload = 0x7c00u | (size >> 13 & 0x3ffu), nan = payload == 0x7c00u ? 0x7c01u : payload;
    const uint32_t finite = size < 0x38800000u ? small : size < 0x477ff000u ? normal : 0x7c00u;
    return (uint16_t)(sign | (size > 0x7f800000u ? nan : finite));
}

/* To float16 and back, as a float all the way: beside a number 2**13 times as large there is no place for more bits. */
static inline float harp_round_f16(float a)
{
    const uint32_t bits = harp_bits_f32(a), size = bits & 0x7fffffffu, power = size & 0x7f800000u;
    const float large = harp_from_bits_f32((power < 0x38800000u ? 0x38800000u : power) + (13u << 23));
    const uint32_t finite = harp_bits_f32((harp_from_bits_f32(size) + large) - large);
    const uint32_t rest = size < 0x7f800000u ? 0x7f800000u : size;
    return harp_from_bits_f32((bits & 0x80000000u) | (size < 0x477ff000u ? finite : rest));
}

/* By way of float32, rounded there to odd: the second rounding is then the only one. */
static inline uint16_t harp_f64_to_f16(double a)
{
    const float near = (float)a;
    const double back = (double)near;
    const uint32_t bits = harp_bits_f32(near), below = bits - (fabs(back) > fabs(a));
    return harp_f32_to_f16(harp_from_bits_f32(back == a || a != a || back - back != 0 ? bits : below | 1));
}

static inline float harp_bf16_to_f32(uint16_t h) { return harp_from_bits_f32((uint32_t)h << 16); }

static inline uint16_t harp_f32_to_bf16(float a)
{
    const uint32_t bits = harp_bits_f32(a), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(a != a ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded);
}

static inline float harp_round_bf16(float a)
{
    const uint32_t bits = harp_bits_f32(a), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    return harp_from_bits_f32(a != a ? (bits & 0x80000000u) | 0x7fc00000u : rounded);
}

/* By way of float32, as ml_dtypes does. */
static inline uint16_t harp_f64_to_bf16(double a) { return harp_f32_to_bf16((float)a); }

#endif
