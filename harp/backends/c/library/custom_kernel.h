/* What kernels of users may say in C as in OpenCL C: functions for all kinds of numbers, and where arrays are. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#include <tgmath.h>
#undef I

#define harp_global

/* Complex numbers; elsewhere in the program they are those of C. */
typedef struct __attribute__((may_alias)) {
    float re, im;
} harp_pair_f32;
typedef struct __attribute__((may_alias)) {
    double re, im;
} harp_pair_f64;

#endif
