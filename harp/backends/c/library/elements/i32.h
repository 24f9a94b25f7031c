/* Signed integers of 32 bits. */
#ifndef HARP_I32_H
#define HARP_I32_H

#include "common.h"

#define HARP_DTYPE i32
#define HARP_BITS 32
#include "elements/signed_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
