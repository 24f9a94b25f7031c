/* Signed integers of fewer than 64 bits; those of 64 are in generated.h, for indices are such. */
#ifndef HARP_SIGNED_H
#define HARP_SIGNED_H

#include "common.h"

#define HARP_BITS 8
#include "elements/signed_template.h"
#define HARP_BITS 16
#include "elements/signed_template.h"
#define HARP_BITS 32
#include "elements/signed_template.h"

#endif
