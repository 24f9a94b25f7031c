/* pow of f64: 2^(y*log2|x|), with a logarithm in two parts, for an exponent multiplies its error by up to 1074; then
 * the cases of C99.
 *
 * The logarithm is that of s = f/(2 + f), as in fdlibm's e_pow.c: log(1 + f) = 2*(s + s^3/3 + s^5/5 + ...). What must
 * be exact is a product of heads, which have 26 bits. Whole exponents that are known when a program is compiled are
 * multiplied out. */
#ifndef HARP_MATH_POW_F64_H
#define HARP_MATH_POW_F64_H

#include "math/exact_f64.h"
#include "math/exp_f64.h"
#include "math/log_f64.h"

/* The power of a negative number: of an odd whole exponent negative, of another one that is not whole NaN. */
HARP_INLINE double harp_pow_signed_f64(double a, double b, double power, double nan)
{
    const double y = fabs(b), half = 0.5 * y, whole = harp_rint_f64(y), even = harp_rint_f64(half);
    const double negative = even == half ? power : -power, finite = a < 0 ? nan : power;
    const double broken = a > -__builtin_inf() ? finite : power;
    return whole == y ? (copysign(1, a) < 0 ? negative : power) : broken;
}

/* log2(a) as a head and what is left, to 2^-65. In thirds of s*log2(e^2): s*(3 + s^2 + r). */
HARP_INLINE double harp_log2_pair_f64(double a, double *rest)
{
    const double up = a * 0x1p54, y = a < 0x1p-1022 ? up : a, shift = a < 0x1p-1022 ? 54 : 0;
    const double f = harp_log_part_f64(y), k = harp_log_whole_f64(y) - shift;
    const double u = 2 + f, uh = harp_head_f64(u), s = f / u, sh = harp_head_f64(s), z = s * s;
    const double sl = ((f - sh * uh) - sh * ((2 - uh) + f)) / u;
    double p = 0x1.68262c7e94720p-3;
    p = harp_madd_f64(p, z, 0x1.679d44bd81af5p-3);
    p = harp_madd_f64(p, z, 0x1.99a52ee69c473p-3);
    p = harp_madd_f64(p, z, 0x1.d89d60acbb846p-3);
    p = harp_madd_f64(p, z, 0x1.1745d19c01cb8p-2);
    p = harp_madd_f64(p, z, 0x1.555555552fe54p-2);
    p = harp_madd_f64(p, z, 0x1.b6db6db6db7b3p-2);
    p = harp_madd_f64(p, z, 0x1.3333333333333p-1);
    const double square = sh * sh, r = harp_madd_f64(z * z, p, sl * (sh + s));
    const double th = harp_head_f64(3 + square + r), tl = r - ((th - 3) - square);
    const double ph = sh * th, pl = harp_madd_f64(sl, th, tl * s);
    const double large = harp_head_f64(ph + pl), small = pl - (large - ph);
    const double zh = large * 0x1.ec709cp-1,
                 zl = harp_madd_f64(large, 0x1.c3a03fd749fc1p-25, small * 0x1.ec709dc3a03fdp-1);
    const double sum = harp_head_f64((zh + zl) + k);
    *rest = zl - ((sum - k) - zh);
    return sum;
}

HARP_INLINE double harp_pow_f64(double a, double b)
{
    double rest;
    const double inf = __builtin_inf(), size = fabs(a), log2 = harp_log2_pair_f64(size, &rest);
    const double least = b > 0x1p66 ? 0x1p66 : b, y = least < -0x1p66 ? -0x1p66 : least, yh = harp_head_f64(y);
    const double ph = yh * log2, pl = harp_madd_f64(y - yh, log2, y * rest), sum = ph + pl;
    const double high = sum > 1100 ? 1100 : sum, c = high < -1100 ? -1100 : high;
    const double n = (c + 0x1.8p52) - 0x1.8p52, r = fabs(sum) < 1100 ? (ph - n) + pl : 0;
    const double finite = harp_scale_f64(harp_madd_f64(harp_exp2_poly_f64(r), r, 1), n);
    const double least_power = b < 0 ? inf : 0, greatest_power = b < 0 ? 0 : inf;
    const double some = size == 0 ? least_power : finite, power = size < inf ? some : greatest_power;
    const double known = ((a != a) | (b != b)) ? a + b : power;
    const double value = harp_pow_signed_f64(a, b, known, __builtin_nan(""));
    return ((b == 0) | (a == 1)) ? 1 : value;
}

/* (*h + *l)*(b + rest), where the second parts are what the first ones lost. */
HARP_INLINE void harp_times_pair_f64(double *h, double *l, double b, double rest)
{
    const double p = *h * b, lost = harp_rest_f64(*h, b, p);
    *l = lost + harp_madd_f64(*h, rest, *l * b);
    *h = p;
}

/* a^n for a constant n with 1 <= |n| <= 15. Where a product overflows, what it lost is not finite. */
HARP_INLINE double harp_pow_whole_f64(double a, int n)
{
    const int m = n < 0 ? -n : n;
    const double x = n < 0 ? 1 / a : a, rest = n < 0 ? -harp_rest_f64(x, a, 1) * x : 0;
    double h = x, l = rest;
    if (m >= 8) harp_times_pair_f64(&h, &l, h, l);
    if (m >= 8 && m & 4) harp_times_pair_f64(&h, &l, x, rest);
    if (m >= 4) harp_times_pair_f64(&h, &l, h, l);
    if (m >= 4 && m & 2) harp_times_pair_f64(&h, &l, x, rest);
    if (m >= 2) harp_times_pair_f64(&h, &l, h, l);
    if (m >= 2 && m & 1) harp_times_pair_f64(&h, &l, x, rest);
    return ((l - l == 0) & (h != 0)) ? h + l : h;
}

/* The square root or, for n = -1, its reciprocal. The powers of -0 and -infinity are those of 0 and infinity. */
HARP_INLINE double harp_pow_half_f64(double a, int n)
{
    const double x = a == -__builtin_inf() ? -a : a + 0, root = sqrt(x);
    return n < 0 ? 1 / root : root;
}

#endif
