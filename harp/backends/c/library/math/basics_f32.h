/* Numbers of f32 and their bits, rounding, and powers of two. */
#ifndef HARP_MATH_BASICS_F32_H
#define HARP_MATH_BASICS_F32_H

#include "common.h"

#include "math/begin_f32.h"
#include "math/basics_template.h"
#include "math/end.h"

#endif
