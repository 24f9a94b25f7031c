/* What all files of the library share: integers, functions of the C library, and inlining.
 *
 * The headers of the C library take longer to compile than a kernel, so what is called of it is declared here. */
#ifndef HARP_COMMON_H
#define HARP_COMMON_H

#include <stddef.h>
#include <stdint.h>

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

/* A call left in a loop would keep it from being vectorised. */
#define HARP_INLINE static inline __attribute__((always_inline, unused))

#endif
