/* What kernels of users may say in C as in OpenCL C: functions for all kinds of numbers, and where arrays are. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#include <tgmath.h>
#undef I

#define harp_global

#endif
