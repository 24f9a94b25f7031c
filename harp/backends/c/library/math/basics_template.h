/* Rounding and powers of two: a template for float and double.
 *
 * There is no branch, no table and no call: a compiler turns each select into a blend, so that loops are vectorised. */

/* a*b + c, rounded once where that is one instruction. */
HARP_INLINE T F(madd)(T a, T b, T c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return C(__builtin_fma)(a, b, c);
#else
    return a * b + c;
#endif
}

/* The nearest whole number, halves to the even one. A sum with a large number has no place for a fraction. */
HARP_INLINE T F(rint)(T a)
{
#if defined(__SSE4_1__) || defined(__aarch64__)
    return C(__builtin_rint)(a);
#else
    const T end = ((U)1 << MANT), size = C(fabs)(a);
    return size < end ? C(copysign)((size + end) - end, a) : a;
#endif
}

/* 2^n for a whole n whose power is a normal number. */
HARP_INLINE T F(two_to)(T n) { return F(from_bits)((F(bits)(n + MAGIC) + BIAS) << MANT); }

/* p*2^n for a whole n between -2*BIAS and 2*BIAS, given n + MAGIC_TWO, by two factors: it overflows to infinity, and is
   rounded once more only where it is denormal. The bits of the sum end with those of n + 2*BIAS, of which each factor
   has a half as its exponent. */
HARP_INLINE T F(scaled)(T p, T up)
{
    const U half = (U)1 << (MANT - 1), exponent = ~(U)0 << MANT;
    const U bits = F(bits)(up) << (MANT - 1);
    return p * F(from_bits)(bits & exponent) * F(from_bits)((bits + half) & exponent);
}

HARP_INLINE T F(scale)(T p, T n) { return F(scaled)(p, n + MAGIC_TWO); }

HARP_INLINE T F(nextafter)(T a, T b)
{
    const U bits = F(bits)(a);
    const T moved = F(from_bits)((a < b) == (a > 0) ? bits + 1 : bits - 1);
    const T next = a == 0 ? C(copysign)(F(from_bits)(1), b) : moved;
    const T differs = ((a < b) | (b < a)) ? next : a + b;
    return a == b ? b : differs;
}
