/* What kernels of users may say in C as in OpenCL C: functions for all kinds of numbers, and where arrays are. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#include <tgmath.h>
#undef I
int abs(int);
long labs(long);
long long llabs(long long);

/* What C lets pass with a warning, and gives wrong numbers. */
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#pragma GCC diagnostic error "-Wimplicit-int"
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wreturn-type"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wabsolute-value"
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#endif

#define harp_global

/* Complex numbers; elsewhere in the program they are those of C. */
typedef struct __attribute__((may_alias)) {
    float re, im;
} harp_pair_f32;
typedef struct __attribute__((may_alias)) {
    double re, im;
} harp_pair_f64;

#endif
