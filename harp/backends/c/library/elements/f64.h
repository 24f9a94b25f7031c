/* Floats of 64 bits. */
#ifndef HARP_F64_H
#define HARP_F64_H

#include "common.h"

#define HARP_DTYPE f64
#define T double
#define C(name) name
#define IS_ABOVE_INT32(a) ((a) > -2147483649.0)
#include "elements/float_template.h"
#undef HARP_DTYPE

#endif
