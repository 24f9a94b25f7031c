/* Sort keys: unsigned numbers of HARP_BITS bits in the order of the elements, made of an element's bits.
 *
 * A sign bit is turned, negative floats are turned round, all NaN are the largest number, and both zeros are one.
 * Descending is ascending with all bits of the keys inverted (`flip`), so equal keys keep their order. Floats have
 * HARP_INFINITY, the bits of infinity, and signed integers HARP_SIGNED. */
#ifndef HARP_KEYS_H
#define HARP_KEYS_H

#include "names.h"
#include <stdint.h>
#include <string.h>

typedef HARP_JOIN(uint, HARP_JOIN(HARP_BITS, _t)) key;
typedef key element __attribute__((may_alias));

#define TOP ((key)((key)1 << (HARP_BITS - 1)))
#define ALL ((key) ~(key)0)

#if defined(HARP_INFINITY)

static inline int is_nan(key b) { return (b & (key)~TOP) > (key)HARP_INFINITY; }

static inline int is_zero(key b) { return (b & (key)~TOP) == 0; }

static inline key encode(key b, key flip)
{
    const key placed = b & TOP ? (key)~b : (key)(b | TOP);
    return (key)((is_nan(b) ? ALL : is_zero(b) ? TOP : placed) ^ flip);
}

static inline key decode(key k, key flip) { return (k ^ flip) & TOP ? (key)(k ^ flip ^ TOP) : (key) ~(k ^ flip); }

/* Whether decode(encode(b)) may be another element than b. */
static inline int is_special(key b) { return (b == TOP) | is_nan(b); }

#else

#if defined(HARP_SIGNED)
#define TURNED TOP
#else
#define TURNED 0
#endif

static inline key encode(key b, key flip) { return (key)(b ^ TURNED ^ flip); }

static inline key decode(key k, key flip) { return (key)(k ^ TURNED ^ flip); }

#endif
#endif
