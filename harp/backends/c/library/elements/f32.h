/* Floats of 32 bits. */
#ifndef HARP_F32_H
#define HARP_F32_H

#include "common.h"

#define HARP_DTYPE f32
#define T float
#define C(name) name##f
#define IS_ABOVE_INT32(a) ((a) >= -0x1p31f)
#include "elements/float_template.h"
#undef HARP_DTYPE

#endif
