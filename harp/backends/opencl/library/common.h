/* What all files of the library share, in OpenCL C: the names of C for integers, functions and constants. */
#ifndef HARP_COMMON_H
#define HARP_COMMON_H

#if !defined(HARP_NO_DOUBLES)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;

#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1L)
#define INT64_MAX 9223372036854775807L
#define UINT32_MAX 4294967295u
#define INT64_C(number) number##L
#define UINT64_C(number) number##UL

#define fabsf fabs
#define floorf floor
#define sqrtf sqrt
#define copysignf copysign
#define fmodf fmod
#define __builtin_fma fma
#define __builtin_fmaf fma
#define __builtin_rint rint
#define __builtin_rintf rint
#define __builtin_inf() as_double(0x7ff0000000000000UL)
#define __builtin_inff() as_float(0x7f800000u)
#define __builtin_nan(text) as_double(0x7ff8000000000000UL)
#define __builtin_nanf(text) as_float(0x7fc00000u)

/* Devices have the instruction. */
#ifndef __FMA__
#define __FMA__ 1
#endif
#ifndef __SSE4_1__
#define __SSE4_1__ 1
#endif

/* The name of a type here, and of variables in the library. */
#define half harp_half

#define _Alignas(bytes) __attribute__((aligned(bytes)))
#define HARP_INLINE static inline
#define HARP_CONSTANT __constant
#define HARP_POINTED __constant

/* Complex numbers are pairs. */
typedef float2 harp_c64;
#define harp_complex_c64(a, b) ((float2)(a, b))
#define harp_real_c64(a) ((a).x)
#define harp_imag_c64(a) ((a).y)
#if !defined(HARP_NO_DOUBLES)
typedef double2 harp_c128;
#define harp_complex_c128(a, b) ((double2)(a, b))
#define harp_real_c128(a) ((a).x)
#define harp_imag_c128(a) ((a).y)
#endif

/* Numbers and their bits. */
HARP_INLINE uint32_t harp_bits_f32(float a) { return as_uint(a); }
HARP_INLINE float harp_from_bits_f32(uint32_t bits) { return as_float(bits); }
#if !defined(HARP_NO_DOUBLES)
HARP_INLINE uint64_t harp_bits_f64(double a) { return as_ulong(a); }
HARP_INLINE double harp_from_bits_f64(uint64_t bits) { return as_double(bits); }
#endif

#endif
