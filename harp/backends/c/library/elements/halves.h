/* Conversions of float16, bfloat16 and float8, on their bits: without branches, so that any compiler vectorises loops.
 *
 * Values that are rounded for further arithmetic stay floats: without numbers of 16 bits between, compilers have half
 * the work. All round to the nearest number, ties to even, keep infinities, signed zeros and denormal numbers, and
 * treat NaN as NumPy and ml_dtypes do. */
#ifndef HARP_ELEMENTS_HALVES_H
#define HARP_ELEMENTS_HALVES_H

#include "math/basics.h"

/* Exact. The product puts the exponent right, also of denormal numbers; the sign goes along. */
static inline float harp_f16_to_f32(uint16_t h)
{
    const uint32_t moved = (uint32_t)(int32_t)(int16_t)h << 13 & 0x8fffe000u;
    const float finite = harp_from_bits_f32(moved) * 0x1p112f;
    return fabsf(finite) >= 0x1p16f ? harp_from_bits_f32(harp_bits_f32(finite) | 0x7f800000u) : finite;
}

/* Rounded beside a number 2**13 times as large, as below; then the product puts the exponent right, also of denormal
 * numbers. 2**17 and more are infinite, and so is what was rounded to 2**16. */
static inline uint16_t harp_f32_to_f16(float a)
{
    const uint32_t bits = harp_bits_f32(a), size = bits & 0x7fffffffu, some = size < 0x48000000u ? size : 0x48000000u;
    const uint32_t power = some & 0x7f800000u;
    const float large = harp_from_bits_f32((power < 0x38800000u ? 0x38800000u : power) + (13u << 23));
    const float rounded = (harp_from_bits_f32(some) + large) - large;
    const uint32_t half = harp_bits_f32(rounded * 0x1p-112f) >> 13, finite = half < 0x7c00u ? half : 0x7c00u;
    const uint32_t payload = size >> 13 & 0x7fffu, nan = payload < 0x7c01u ? 0x7c01u : payload;
    return (uint16_t)((bits >> 16 & 0x8000u) | (size > 0x7f800000u ? nan : finite));
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

/* float8 has a row of numbers for each format: bits of the fraction, the bias of exponents, `limit`, the first code
 * that is no finite number, and whether that is infinity. Without infinities it is NaN; 0x80 is that in the place of
 * -0. */
static inline float harp_f8_to_f32(uint8_t code, int fraction, int bias, uint32_t limit, int infinities)
{
    const uint32_t size = limit == 0x80 && code == 0x80 ? 0x80 : code & 0x7fu, sign = (uint32_t)(code & 0x80u) << 24;
    const float finite = harp_from_bits_f32(size << (23 - fraction)) * harp_from_bits_f32((uint32_t)(254 - bias) << 23);
    const uint32_t other = infinities && size == limit ? 0x7f800000u : 0x7fc00000u;
    return harp_from_bits_f32(sign | (size < limit ? harp_bits_f32(finite) : other));
}

/* As harp_f32_to_f16. 2**20 is beyond all formats. */
static inline uint8_t harp_f32_to_f8(float a, int fraction, int bias, uint32_t limit, int infinities)
{
    const uint32_t bits = harp_bits_f32(a), size = bits & 0x7fffffffu, some = size < 0x49800000u ? size : 0x49800000u;
    const uint32_t power = some & 0x7f800000u, least = (uint32_t)(128 - bias) << 23, places = (uint32_t)(23 - fraction);
    const float large = harp_from_bits_f32((power < least ? least : power) + (places << 23));
    const float rounded = (harp_from_bits_f32(some) + large) - large;
    const uint32_t code = harp_bits_f32(rounded * harp_from_bits_f32((uint32_t)bias << 23)) >> places;
    const uint32_t nan = infinities ? limit | 1u << (fraction - 1) : limit, finite = code < limit ? code : limit;
    const uint32_t found = size > 0x7f800000u ? nan : finite;
    return (uint8_t)(found | (limit == 0x80 && found == 0 ? 0 : bits >> 24 & 0x80u));
}

#endif
