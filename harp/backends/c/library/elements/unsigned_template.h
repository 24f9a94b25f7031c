/* Operations on unsigned integers of HARP_BITS bits that C has not, or with other results: a template. */

#include "names.h"

#define HARP_DTYPE HARP_JOIN(u, HARP_BITS)

#define T HARP_JOIN(HARP_JOIN(uint, HARP_BITS), _t)
#define U T
/* Unsigned, and not narrower than what C computes in. */
#if HARP_BITS == 64
#define W uint64_t
#else
#define W uint32_t
#endif

static inline T OF_DTYPE(floordiv)(T a, T b) { return b != 0 ? (T)(a / b) : 0; }

static inline T OF_DTYPE(mod)(T a, T b) { return b != 0 ? (T)(a % b) : 0; }

static inline T OF_DTYPE(pow)(T a, T b)
{
    uint64_t result = 1, square = a;
    /* Four digits at a time, without branches that would be guessed wrong: most powers are below 16. */
    for (; b > 0; b = (T)(b >> 4))
        for (int digit = 0; digit < 4; ++digit, square *= square)
            result *= ((square - 1) & (0 - (uint64_t)(b >> digit & 1))) + 1;
    return (T)result;
}

/* Notes powers that are not from 0 to 15. */
static inline T OF_DTYPE(pow_near)(uint32_t *far, T a, T b)
{
    W square = (W)a, result = 1;
    *far |= (U)b > 15;
    for (int digit = 0; digit < 4; ++digit, square *= square) result *= ((square - 1) & (0 - (W)(b >> digit & 1))) + 1;
    return (T)result;
}

static inline T OF_DTYPE(shr)(T a, T b) { return b < HARP_BITS ? (T)(a >> b) : 0; }

static inline T OF_DTYPE(max)(T a, T b) { return a > b ? a : b; }

static inline T OF_DTYPE(min)(T a, T b) { return a < b ? a : b; }

static inline T OF_DTYPE(shl)(T a, T b) { return (U)b < HARP_BITS ? (T)((W)a << b) : 0; }

#undef T
#undef U
#undef W
#undef HARP_DTYPE
#undef HARP_BITS
