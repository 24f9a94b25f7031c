"""Conversions of float16 and bfloat16, on their bits: without branches, so that any compiler vectorises loops.

All round to the nearest number, ties to even, keep infinities, signed zeros and denormal numbers, and treat NaN as
NumPy and ml_dtypes do.
"""

from __future__ import annotations

from collections.abc import Mapping

HELPERS: Mapping[str, str] = {
    "harp_f16_to_f32": """\
/* Exact. The product puts the exponent right, also of denormal numbers. */
static inline float harp_f16_to_f32(uint16_t h)
{
    const uint32_t size = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t finite = harp_bits_f32(harp_from_bits_f32(size)*0x1p112f);
    return harp_from_bits_f32(sign | ((h & 0x7c00) == 0x7c00 ? size | 0x7f800000u : finite));
}
""",
    "harp_f32_to_f16": """\
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
""",
    "harp_f64_to_f16": """\
/* By way of float32, rounded there to odd: the second rounding is then the only one. */
static inline uint16_t harp_f64_to_f16(double a)
{
    const float near = (float)a;
    const double back = (double)near;
    const uint32_t bits = harp_bits_f32(near), below = bits - (fabs(back) > fabs(a));
    return harp_f32_to_f16(harp_from_bits_f32(back == a || a != a || back - back != 0 ? bits : below | 1));
}
""",
    "harp_bf16_to_f32": """\
static inline float harp_bf16_to_f32(uint16_t h) { return harp_from_bits_f32((uint32_t)h << 16); }
""",
    "harp_f32_to_bf16": """\
static inline uint16_t harp_f32_to_bf16(float a)
{
    const uint32_t bits = harp_bits_f32(a), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(a != a ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded);
}
""",
    "harp_f64_to_bf16": """\
/* By way of float32, as ml_dtypes does. */
static inline uint16_t harp_f64_to_bf16(double a) { return harp_f32_to_bf16((float)a); }
""",
}
