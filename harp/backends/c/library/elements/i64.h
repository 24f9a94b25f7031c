/* Signed integers of 64 bits. */
#ifndef HARP_I64_H
#define HARP_I64_H

#include "common.h"

#define HARP_DTYPE i64
#define HARP_BITS 64
#include "elements/signed_template.h"
#undef HARP_DTYPE
#undef HARP_BITS

#endif
