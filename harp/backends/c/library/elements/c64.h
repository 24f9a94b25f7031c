/* Complex numbers of 64 bits. */
#ifndef HARP_C64_H
#define HARP_C64_H

#include "math/basics_f32.h"

#define HARP_DTYPE c64
#define T harp_c64
#define MADD harp_madd_f32
#include "elements/complex_template.h"
#undef HARP_DTYPE

#endif
