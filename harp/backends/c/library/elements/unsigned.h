/* Unsigned integers. */
#ifndef HARP_UNSIGNED_H
#define HARP_UNSIGNED_H

#include "common.h"

#define HARP_BITS 8
#include "elements/unsigned_template.h"
#define HARP_BITS 16
#include "elements/unsigned_template.h"
#define HARP_BITS 32
#include "elements/unsigned_template.h"
#define HARP_BITS 64
#include "elements/unsigned_template.h"

#endif
