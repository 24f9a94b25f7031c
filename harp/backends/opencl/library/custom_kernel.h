/* What kernels of users may say in C and in OpenCL C alike; functions are for all kinds of numbers there. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#define harp_global __global

/* What C lets pass with a warning, and gives wrong numbers; no other warnings. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Weverything"
#pragma clang diagnostic error "-Wimplicit-function-declaration"
#pragma clang diagnostic error "-Wimplicit-int"
#pragma clang diagnostic error "-Wint-conversion"
#pragma clang diagnostic error "-Wreturn-type"
#pragma clang diagnostic error "-Wincompatible-pointer-types"
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#endif

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
