/* Operations on signed integers of HARP_BITS bits that C has not, or with other results: a template. */

#include "names.h"

#define HARP_DTYPE HARP_JOIN(i, HARP_BITS)

#define T HARP_JOIN(HARP_JOIN(int, HARP_BITS), _t)
#define U HARP_JOIN(HARP_JOIN(uint, HARP_BITS), _t)
/* Unsigned, and not narrower than what C computes in. */
#if HARP_BITS == 64
#define W uint64_t
#else
#define W uint32_t
#endif

/* Rounds down; 0 for divisor 0; the lowest number // -1 wraps. Without a remainder beside the quotient: of the two LLVM
   makes an instruction that the simulator Oclgrind does not know. */
static inline T OF_DTYPE(floordiv)(T a, T b)
{
    if (b == 0) return 0;
    if (b == -1) return (T)(0 - (U)a);
    const T q = (T)(a / b);
    return (T)(q - ((q * b != a) & ((a < 0) != (b < 0))));
}

/* The remainder has the sign of the divisor; 0 for divisor 0. */
static inline T OF_DTYPE(mod)(T a, T b)
{
    if (b == 0 || b == -1) return 0;
    const T r = (T)(a % b);
    const int other = (r != 0) & ((a < 0) != (b < 0));
    return (T)(other ? r + b : r);
}

static inline T OF_DTYPE(abs)(T a) { return a < 0 ? (T)(0 - (U)a) : a; }

/* Wraps; a negative power gives the exact quotient, truncated. */
static inline T OF_DTYPE(pow)(T a, T b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)a;
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

static inline T OF_DTYPE(shr)(T a, T b) { return (T)(a >> ((U)b < HARP_BITS ? b : HARP_BITS - 1)); }

static inline T OF_DTYPE(max)(T a, T b) { return a > b ? a : b; }

static inline T OF_DTYPE(min)(T a, T b) { return a < b ? a : b; }

static inline T OF_DTYPE(shl)(T a, T b) { return (U)b < HARP_BITS ? (T)((W)a << b) : 0; }

#undef T
#undef U
#undef W
#undef HARP_DTYPE
#undef HARP_BITS
