/* Operations on floats that C has not, or with other results, and conversions to integers: a template.
 *
 * T is the type and C(name) is a function of the C library. Up to the quotient LIMIT, what rounding adds to quotients
 * in `floordiv` is less than 1/2. */

#include "names.h"

#define HARP_DTYPE HARP_JOIN(f, HARP_BITS)

#define TO(target) HARP_JOIN(HARP_JOIN(harp_, HARP_DTYPE), _to_##target)

/* One instruction, which gives `a` unless b > a, and a blend. NaN is handed on; of two zeros it is the first. In a
   reduction only the instruction waits for the element before it. */
static inline T OF_DTYPE(max)(T a, T b)
{
    const T larger = b > a ? b : a;
    return b == b ? larger : b;
}

static inline T OF_DTYPE(min)(T a, T b)
{
    const T smaller = b < a ? b : a;
    return b == b ? smaller : b;
}

/* The quotient of Python's divmod, as NumPy computes it. */
static inline T OF_DTYPE(floordiv)(T a, T b)
{
    if (b == 0) return a / b;
    const T mod = C(fmod)(a, b);
    T quotient = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
    if (quotient == 0) return C(copysign)(0, a / b);
    const T whole = C(floor)(quotient);
    return quotient - whole > (T)0.5 ? whole + 1 : whole;
}

/* The remainder of Python's divmod: it has the sign of the divisor. */
static inline T OF_DTYPE(mod)(T a, T b)
{
    const T mod = C(fmod)(a, b);
    if (b == 0) return mod;
    if (mod == 0) return C(copysign)(0, b);
    return (b < 0) != (mod < 0) ? mod + b : mod;
}

/* The same in vectors, with the same bits, for quotients below LIMIT; others are noted in `far`. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
/* The remainder with the sign of `a`, exactly, and the quotient, truncated. Where `a` is just below a multiple of `b`,
   the quotient is rounded to the next number. */
static inline T OF_DTYPE(divided_near)(uint32_t *far, T a, T b, T *quotient)
{
    const T q = C(__builtin_trunc)(a / b), rest = C(__builtin_fma)(-q, b, a);
    const T less = q - C(copysign)(1, q), more = rest + C(copysign)(b, a);
    const int beyond = (rest != 0) & ((rest < 0) != (a < 0));
    *far |= !((C(fabs)(q) < LIMIT) & (C(fabs)(b) < C(__builtin_inf)()));
    *quotient = beyond ? less : q;
    return beyond ? more : rest;
}

static inline T OF_DTYPE(floordiv_near)(uint32_t *far, T a, T b)
{
    T quotient;
    const T rest = OF_DTYPE(divided_near)(far, a, b, &quotient), lower = quotient - 1;
    const T whole = ((rest != 0) & ((b < 0) != (rest < 0))) ? lower : quotient, zero = C(copysign)(0, a / b);
    return whole == 0 ? zero : whole;
}

static inline T OF_DTYPE(mod_near)(uint32_t *far, T a, T b)
{
    T quotient;
    const T rest = OF_DTYPE(divided_near)(far, a, b, &quotient), sum = rest + b, zero = C(copysign)(0, b);
    const T mod = ((b < 0) != (rest < 0)) ? sum : rest;
    return rest == 0 ? zero : mod;
}
#else
static inline T OF_DTYPE(floordiv_near)(uint32_t *far, T a, T b) { return (void)far, OF_DTYPE(floordiv)(a, b); }

static inline T OF_DTYPE(mod_near)(uint32_t *far, T a, T b) { return (void)far, OF_DTYPE(mod)(a, b); }
#endif

/* Truncates; out of range gives the lowest number. */
static inline int32_t TO(i32)(T a) { return IS_ABOVE_INT32(a) && a < (T)0x1p31 ? (int32_t)a : INT32_MIN; }

/* Truncates; out of range gives the lowest number. */
static inline int64_t TO(i64)(T a) { return a >= -(T)0x1p63 && a < (T)0x1p63 ? (int64_t)a : INT64_MIN; }

/* Truncates; negative numbers wrap; too large ones are 0, as on x86-64. */
static inline uint64_t TO(u64)(T a)
{
    if (a >= (T)0x1p63) return a < (T)0x1p64 ? (uint64_t)a : 0;
    return (uint64_t)TO(i64)(a);
}

/* Truncates; wraps. */
static inline uint32_t TO(u32)(T a) { return (uint32_t)TO(i64)(a); }

/* Truncates; wraps. */
static inline int8_t TO(i8)(T a) { return (int8_t)TO(i32)(a); }

/* Truncates; wraps. */
static inline int16_t TO(i16)(T a) { return (int16_t)TO(i32)(a); }

/* Truncates; wraps. */
static inline uint8_t TO(u8)(T a) { return (uint8_t)TO(i32)(a); }

/* Truncates; wraps. */
static inline uint16_t TO(u16)(T a) { return (uint16_t)TO(i32)(a); }

#undef TO
#undef T
#undef C
#undef IS_ABOVE_INT32
#undef LIMIT
#undef HARP_DTYPE
#undef HARP_BITS
