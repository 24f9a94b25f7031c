/* Floats of 32 and of 64 bits. */
#ifndef HARP_FLOATS_H
#define HARP_FLOATS_H

#include "common.h"

#define HARP_BITS 32
#define T float
#define C(name) name##f
#define LIMIT 0x1p21f
#define IS_ABOVE_INT32(a) ((a) >= -0x1p31f)
#include "elements/float_template.h"

#if !defined(HARP_NO_DOUBLES)
#define HARP_BITS 64
#define T double
#define C(name) name
#define LIMIT 0x1p50
#define IS_ABOVE_INT32(a) ((a) > -2147483649.0)
#include "elements/float_template.h"
#endif

#endif
