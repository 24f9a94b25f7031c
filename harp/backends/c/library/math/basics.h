/* Numbers of f32 and f64 and their bits, rounding, and powers of two. */
#ifndef HARP_MATH_BASICS_H
#define HARP_MATH_BASICS_H

#include "common.h"

#include "math/begin_f32.h"
#include "math/basics_template.h"
#include "math/end.h"

#if !defined(HARP_NO_DOUBLES)
#include "math/begin_f64.h"
#include "math/basics_template.h"
#include "math/end.h"
#endif

#endif
