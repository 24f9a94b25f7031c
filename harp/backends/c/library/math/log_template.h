/* log, log2, log10 and log1p: a template for float and double.
 *
 * x = m*2^k with m between sqrt(1/2) and sqrt(2), and f = m - 1. */

/* k, for a normal number. */
HARP_INLINE T F(log_whole)(T x)
{
    const U biased = (F(bits)(x) + ROOT_ONE) >> MANT;
    return F(from_bits)(biased | WHOLE_BITS) - WHOLE;
}

/* f, for a normal number. */
HARP_INLINE T F(log_part)(T x)
{
    const U part = (F(bits)(x) + ROOT_ONE) & MANT_MASK;
    return F(from_bits)(part + ROOT_HALF) - 1;
}

/* log(1 + f) + k*log(2), the small terms first. */
HARP_INLINE T F(log_sum)(T f, T k)
{
    const T half = (T)0.5 * f * f, small = F(madd)(k, LN2_LO, F(log_poly)(f));
    return F(madd)(k, LN2_HI, f - (half - small));
}

/* y, except where the logarithm of x is infinite or NaN. */
HARP_INLINE T F(log_ends)(T x, T y)
{
    const T high = x < INF ? y : x;
    const T low = x == 0 ? -INF : NOT_A_NUMBER;
    return x > 0 ? high : low;
}

HARP_INLINE T F(log)(T x)
{
    const T up = x * RAISE, y = x < LEAST_NORMAL ? up : x, shift = x < LEAST_NORMAL ? RAISED : 0;
    return F(log_ends)(x, F(log_sum)(F(log_part)(y), F(log_whole)(y) - shift));
}

#if !defined(LOG2_IS_FUSED)
/* log(1 + f)/log(2) in two parts, k added to the large one, as in FreeBSD's e_log2.c. */
HARP_INLINE T F(log2)(T x)
{
    const T up = x * RAISE, y = x < LEAST_NORMAL ? up : x, shift = x < LEAST_NORMAL ? RAISED : 0;
    const T f = F(log_part)(y), k = F(log_whole)(y) - shift, half = (T)0.5 * f * f;
    const T hi = F(from_bits)(F(bits)(f - half) & UPPER_BITS);
    const T lo = ((f - hi) - half) + F(log_poly)(f);
    const T large = hi * LOG2E_HI, small = F(madd)(lo + hi, LOG2E_LO, lo * LOG2E_HI);
    const T sum = k + large;
    return F(log_ends)(x, sum + (small + ((k - sum) + large)));
}

/* As log2; k*log10(2) is in two parts too. */
HARP_INLINE T F(log10)(T x)
{
    const T up = x * RAISE, y = x < LEAST_NORMAL ? up : x, shift = x < LEAST_NORMAL ? RAISED : 0;
    const T f = F(log_part)(y), k = F(log_whole)(y) - shift, half = (T)0.5 * f * f;
    const T hi = F(from_bits)(F(bits)(f - half) & UPPER_BITS);
    const T lo = ((f - hi) - half) + F(log_poly)(f);
    const T tens = k * LOG10_2_HI, large = hi * LOG10E_HI, sum = tens + large;
    const T part = F(madd)(lo + hi, LOG10E_LO, lo * LOG10E_HI);
    const T small = F(madd)(k, LOG10_2_LO, part);
    return F(log_ends)(x, sum + (small + ((tens - sum) + large)));
}
#endif

/* f = (1 + x)*2^-k - 1 from x itself, rounded once; k = 0 where x is small. */
HARP_INLINE T F(log1p)(T x)
{
    const T k = F(log_whole)(1 + x), down = F(two_to)(2 - k);
    const T f = F(madd)(x * (T)0.25, down, down * (T)0.25 - 1);
    const T y = F(log_ends)(1 + x, F(log_sum)(f, k));
    return C(fabs)(x) < TINY ? x : y;
}
