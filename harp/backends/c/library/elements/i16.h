/* Signed integers of 16 bits. */
#ifndef HARP_I16_H
#define HARP_I16_H

#include "common.h"

#define HARP_DTYPE i16
#define HARP_BITS 16
#include "elements/signed_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
