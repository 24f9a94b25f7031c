/* A row of float16 as float32. */
#include "elements/convert.h"
#ifdef __F16C__
#include "elements/vectors_f16.h"

void harp_widen_f16(int64_t count, const uint16_t *from, float *to)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) *(floats *)(to + i) = widened(*(const halves *)(from + i));
    halves rest = {0};
    for (int64_t k = i; k < count; ++k) rest[k - i] = from[k];
    const floats last = widened(rest);
    for (int64_t k = i; k < count; ++k) to[k] = last[k - i];
}
#else
#include "elements/halves.h"

void harp_widen_f16(int64_t count, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < count; ++i) to[i] = harp_f16_to_f32(from[i]);
}
#endif
