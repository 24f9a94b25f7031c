/* Unsigned integers of 64 bits. */
#ifndef HARP_U64_H
#define HARP_U64_H

#include "common.h"

#define HARP_DTYPE u64
#define HARP_BITS 64
#include "elements/unsigned_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
