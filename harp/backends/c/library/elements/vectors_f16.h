/* A vector of float16 from one of float32 and back, by the instructions of F16C, which are named: gcc reads the 46,000
 * lines of immintrin.h in 0.2 s. */
#include <stdint.h>

#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif

typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef uint16_t halves __attribute__((vector_size(LANES * sizeof(uint16_t)), aligned(sizeof(uint16_t)), may_alias));

static inline halves narrowed(floats x)
{
    halves rounded;
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(rounded) : "v"(x));
    return rounded;
}

static inline floats widened(halves x)
{
    floats exact;
    __asm__("vcvtph2ps %1, %0" : "=v"(exact) : "v"(x));
    return exact;
}
