/* Complex numbers of 64 and of 128 bits. */
#ifndef HARP_COMPLEX_H
#define HARP_COMPLEX_H

#include "math/basics.h"

#define HARP_BITS 64
#define T harp_c64
#define MADD harp_madd_f32
#include "elements/complex_template.h"

#if !defined(HARP_NO_DOUBLES)
#define HARP_BITS 128
#define T harp_c128
#define MADD harp_madd_f64
#include "elements/complex_template.h"
#endif

#endif
