/* What kernels of users may say in C and in OpenCL C alike; functions are for all kinds of numbers there. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#define harp_global __global

/* Complex numbers. */
typedef struct {
    float re, im;
} harp_pair_f32;
#if !defined(HARP_NO_DOUBLES)
typedef struct {
    double re, im;
} harp_pair_f64;
#endif

#endif
