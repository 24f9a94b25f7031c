/* A row of float32 as float16, rounded to the nearest number, ties to even. */
#include "elements/convert.h"
#ifdef __F16C__
#include "elements/vectors_f16.h"

void harp_narrow_f16(int64_t count, const float *from, uint16_t *to)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) *(halves *)(to + i) = narrowed(*(const floats *)(from + i));
    floats rest = {0};
    for (int64_t k = i; k < count; ++k) rest[k - i] = from[k];
    const halves last = narrowed(rest);
    for (int64_t k = i; k < count; ++k) to[k] = last[k - i];
}
#else
#include "elements/halves.h"

void harp_narrow_f16(int64_t count, const float *from, uint16_t *to)
{
    for (int64_t i = 0; i < count; ++i) to[i] = harp_f32_to_f16(from[i]);
}
#endif
