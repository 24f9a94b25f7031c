/* Unsigned integers of 16 bits. */
#ifndef HARP_U16_H
#define HARP_U16_H

#include "common.h"

#define HARP_DTYPE u16
#define HARP_BITS 16
#include "elements/unsigned_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
