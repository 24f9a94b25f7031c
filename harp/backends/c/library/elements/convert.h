/* Conversions of rows, which programs share: each is compiled once for a machine. */
#ifndef HARP_ELEMENTS_CONVERT_H
#define HARP_ELEMENTS_CONVERT_H

#include <stdint.h>

void harp_widen_f16(int64_t count, const uint16_t *from, float *to);
void harp_narrow_f16(int64_t count, const float *from, uint16_t *to);

#endif
