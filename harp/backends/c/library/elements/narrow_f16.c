/* A row of float32 as float16, rounded to the nearest number, ties to even. */
#include "elements/convert.h"
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif
#ifndef __F16C__
#include "elements/halves.h"
#endif

void harp_narrow_f16(int64_t count, const float *from, uint16_t *to)
{
    int64_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((void *)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#ifdef __F16C__
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < count; ++i) to[i] = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
#else
    for (; i < count; ++i) to[i] = harp_f32_to_f16(from[i]);
#endif
}
