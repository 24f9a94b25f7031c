/* What kernels of users may say in C and in OpenCL C alike; functions are for all kinds of numbers there. */
#ifndef HARP_CUSTOM_KERNEL_H
#define HARP_CUSTOM_KERNEL_H

#define harp_global __global

#endif
