/* Complex numbers of 128 bits. */
#ifndef HARP_C128_H
#define HARP_C128_H

#include "math/basics_f64.h"

#define HARP_DTYPE c128
#define T harp_c128
#define MADD harp_madd_f64
#include "elements/complex_template.h"
#undef HARP_DTYPE

#endif
