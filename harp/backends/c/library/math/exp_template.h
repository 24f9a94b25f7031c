/* exp, exp2 and expm1: a template for float and double.
 *
 * x = n*log(2) + r, by W. J. Cody and W. Waite: n*LN2_HI is exact, with and without a fused multiply-add. */

/* Below EXP_ZERO the result is 0 by factors that are 0, not by an underflow, which takes long on some processors. Of
 * large x only n is limited: what is left in r makes the result infinite all the more. */
HARP_INLINE T F(exp)(T x)
{
    const T c = x < EXP_ZERO ? EXP_MIN : x;
    const T sum = F(madd)(c, LOG2E, MAGIC_TWO);
    const T up = UP_MAX < sum ? UP_MAX : sum, n = up - MAGIC_TWO;
    const T r = F(madd)(n, -LN2_LO, F(madd)(n, -LN2_HI, c));
    return F(scaled)(F(madd)(F(madd)(F(exp_poly)(r), r, 1), r, 1), up);
}

HARP_INLINE T F(exp2)(T x)
{
    const T c = x < EXP2_ZERO ? EXP2_MIN : x, sum = c + MAGIC_TWO;
    const T up = UP_MAX < sum ? UP_MAX : sum;
    const T r = c - (up - MAGIC_TWO);
    return F(scaled)(F(madd)(F(exp2_poly)(r), r, 1), up);
}

/* 2*(h*expm1(r) + (h - 1/2)) with h = 2^(n - 1). What r and the large sum lost is added. */
HARP_INLINE T F(expm1)(T x)
{
    T c = x > EXP_MAX ? EXP_MAX : x;
    c = c < EXPM1_MIN ? EXPM1_MIN : c;
    const T n = F(madd)(c, LOG2E, MAGIC) - MAGIC;
    const T near = F(madd)(n, -LN2_HI, c), r = F(madd)(n, -LN2_LO, near);
    const T rest = F(madd)(n, -LN2_LO, near - r);
    const T h = F(two_to)(n - 1), whole = h - (T)0.5, sum = F(madd)(h, r, whole);
    const T lost = F(madd)(h, r, whole - sum);
    const T p = F(madd)(F(exp_poly)(r), r * r, rest);
    const T y = 2 * (sum + F(madd)(h, p, lost));
    return C(fabs)(x) < TINY ? x : y;
}
