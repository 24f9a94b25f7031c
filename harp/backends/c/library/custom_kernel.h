/* What kernels of users may say in C and in OpenCL C alike: functions for all kinds of numbers, and where arrays are. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#include <tgmath.h>
#undef I

#define harp_global

#endif
