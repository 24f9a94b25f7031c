/* Signed integers of 8 bits. */
#ifndef HARP_I8_H
#define HARP_I8_H

#include "common.h"

#define HARP_DTYPE i8
#define HARP_BITS 8
#include "elements/signed_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
