/* What all files of the library share: integers, functions of the C library, and inlining.
 *
 * The headers of the C library take longer to compile than a kernel, so what is called of it is declared here. */
#ifndef HARP_COMMON_H
#define HARP_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "other_compilers.h"

#if defined(__GNUC__)
void *aligned_alloc(size_t alignment, size_t size);
void free(void *memory);
double fabs(double);
float fabsf(float);
double floor(double);
float floorf(float);
double sqrt(double);
float sqrtf(float);
double copysign(double, double);
float copysignf(float, float);
double fmod(double, double);
float fmodf(float, float);
#endif

/* What programs and the process find in each other's libraries. */
#if defined(_WIN32)
#define HARP_EXPORT __declspec(dllexport)
#else
#define HARP_EXPORT __attribute__((visibility("default")))
#endif

/* Complex numbers. */
#if defined(__GNUC__)
typedef float _Complex harp_c64;
typedef double _Complex harp_c128;
#define harp_complex_c64(a, b) __builtin_complex(a, b)
#define harp_complex_c128(a, b) __builtin_complex(a, b)
#define harp_real_c64(a) (__real__(a))
#define harp_real_c128(a) (__real__(a))
#define harp_imag_c64(a) (__imag__(a))
#define harp_imag_c128(a) (__imag__(a))
#endif

/* A call left in a loop would keep it from being vectorised. */
#define HARP_INLINE static inline __attribute__((always_inline, unused))

/* Tables, and pointers to their parts. */
#define HARP_CONSTANT static const
#define HARP_POINTED const

/* Numbers and their bits. */
HARP_INLINE uint32_t harp_bits_f32(float a)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &a, sizeof bits);
    return bits;
}

HARP_INLINE float harp_from_bits_f32(uint32_t bits)
{
    float a;
    __builtin_memcpy(&a, &bits, sizeof a);
    return a;
}

HARP_INLINE uint64_t harp_bits_f64(double a)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &a, sizeof bits);
    return bits;
}

HARP_INLINE double harp_from_bits_f64(uint64_t bits)
{
    double a;
    __builtin_memcpy(&a, &bits, sizeof a);
    return a;
}

#endif
