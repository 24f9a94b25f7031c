/* Numbers of f64 and their bits, rounding, and powers of two. */
#ifndef HARP_MATH_BASICS_F64_H
#define HARP_MATH_BASICS_F64_H

#include "common.h"

#include "math/begin_f64.h"
#include "math/basics_template.h"
#include "math/end.h"

#endif
