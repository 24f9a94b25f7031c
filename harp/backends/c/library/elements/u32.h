/* Unsigned integers of 32 bits. */
#ifndef HARP_U32_H
#define HARP_U32_H

#include "common.h"

#define HARP_DTYPE u32
#define HARP_BITS 32
#include "elements/unsigned_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
