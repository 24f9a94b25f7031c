/* A row of float16 as float32. */
#include "elements/convert.h"
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif
#ifndef __F16C__
#include "elements/halves.h"
#endif

void harp_widen_f16(int64_t count, const uint16_t *from, float *to)
{
    int64_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + i))));
#endif
#ifdef __F16C__
    for (; i + 8 <= count; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
    for (; i < count; ++i) to[i] = _cvtsh_ss(from[i]);
#else
    for (; i < count; ++i) to[i] = harp_f16_to_f32(from[i]);
#endif
}
