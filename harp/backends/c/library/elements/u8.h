/* Unsigned integers of 8 bits. */
#ifndef HARP_U8_H
#define HARP_U8_H

#include "common.h"

#define HARP_DTYPE u8
#define HARP_BITS 8
#include "elements/unsigned_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
