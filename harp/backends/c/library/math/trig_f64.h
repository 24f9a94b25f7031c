/* sin, cos and tan of f64, of numbers of any size: reduced as by M. Payne and R. Hanek (SIGNUM 18, 1983), but without a
 * branch.
 *
 * A table has a row of four parts of 53 bits for every 32 exponents. Products with the first three are exact in two
 * numbers, and are reduced modulo 4 where they are large. What is left is good to 2^-125 of a quarter turn, and no
 * double comes closer than 2^-62 to a whole number of them. */
#ifndef HARP_MATH_TRIG_F64_H
#define HARP_MATH_TRIG_F64_H

#include "math/exact_f64.h"

/* 2^(32*r)*2/pi modulo 4, between -2 and 2, as a sum of four doubles, for each row r. */
HARP_CONSTANT double harp_quarter_parts[124] = {
    0x1.45f306dc9c883p-1,  -0x1.6b01ec5417056p-55, -0x1.6447e493ad4cep-109, 0x1.e21c820ff28b2p-163,
    -0x1.b1bbead603d8bp+0, 0x1.f47d4d377036ep-54,  -0x1.d6a66c3bc6fbep-108, -0x1.ae9c5421443aap-168,
    0x1.fc2757d1f534ep+0,  -0x1.1f924eb53361ep-55, 0x1.c820ff28b1d5fp-111,  -0x1.443a9e48db91cp-168,
    0x1.f534ddc0db629p+0,  0x1.664f10e4107f9p-54,  0x1.163abdebbc562p-108,  -0x1.236e4716f6c8bp-162,
    0x1.b6c52b3278872p-1,  0x1.07f9458eaf7afp-58,  -0x1.d4f246dc8e2dfp-115, 0x1.374b801924bbbp-170,
    0x1.3c439041fe516p+0,  0x1.d5ef5de2b0db9p-55,  0x1.1b8e909374b80p-110,  0x1.924bba8274648p-166,
    0x1.fe5163abdebbcp+0,  0x1.586dc91b8e909p-54,  0x1.ba5c00c925dd4p-109,  0x1.3a32439fc3bd6p-165,
    -0x1.0a21d4f246dc9p-3, 0x1.d2126e9700325p-59,  -0x1.a22bec5cdbc60p-113, -0x1.e214e34ed658cp-168,
    0x1.b7246e3a424ddp+0,  0x1.700324977504fp-55,  -0x1.cdbc603c429c7p-109, 0x1.894d39f74411bp-163,
    -0x1.bdb22d1ff9b6dp+0, -0x1.15f62e6de301ep-56, -0x1.0a71a76b2c609p-111, 0x1.1046bea5d7689p-165,
    0x1.924bba8274648p-6,  0x1.cfe1deb1cb12ap-60,  -0x1.63045df7282b4p-114, -0x1.44bb7b16638fep-168,
    -0x1.f62e6de301e21p+0, -0x1.38d3b5963045ep-54, 0x1.1afa975da2427p-111,  0x1.338e04d68befdp-165,
    0x1.fc3bd63962535p-1,  -0x1.822efb9415a29p-57, 0x1.a24274ce38136p-111,  -0x1.741037d8cdc54p-165,
    0x1.62534e7dd1047p-1,  -0x1.0568a25dbd8b3p-55, -0x1.c7eca5d040df6p-111, -0x1.9b8a719f2b318p-166,
    -0x1.177dca0ad144cp+0, 0x1.213a671c09ad1p-54,  0x1.f7e413991d63ap-108,  -0x1.f2b3182d8dee8p-162,
    0x1.2ebb4484e99c7p+0,  0x1.35a2fbf209cc9p-59,  -0x1.4e33e566305b2p-115, 0x1.08bf177bf2507p-169,
    0x1.d338e04d68bf0p-1,  -0x1.bec66e29c67cbp-56, 0x1.9cfa4e422fc5ep-111,  -0x1.036be27003b40p-167,
    -0x1.4ba081bec66e3p+0, 0x1.8e60d4ce7d272p-54,  0x1.17e2ef7e4a0ecp-110,  0x1.ff897ffde0598p-164,
    0x1.3991d63983534p+0,  -0x1.82d8dee81d108p-54, -0x1.b5f13801da001p-110, 0x1.e05980fef2f12p-164,
    0x1.835339f49c846p+0,  -0x1.d1081b5f13802p-58, 0x1.2fffbc0b301fep-113,  -0x1.a1dce94beb25cp-169,
    0x1.3908bf177bf25p-1,  0x1.d8ffc4bffef03p-59,  -0x1.9fc04343b9d29p-114, -0x1.f592e092c9813p-168,
    -0x1.081b5f13801dap-2, -0x1.0fd33f8086877p-67, -0x1.d297d64b824b2p-122, -0x1.8130d834f648bp-176,
    -0x1.c00ed00043f4dp-1, 0x1.fde5e2316b415p-61,  -0x1.2e092c98130d8p-116, -0x1.a7b24585ce04dp-171,
    -0x1.0fd33f8086877p-3, -0x1.d297d64b824b2p-58, -0x1.8130d834f648bp-112, -0x1.738132c3402bap-169,
    -0x1.0d0ee74a5f593p-4, 0x1.f6d367ecf27cbp-60,  0x1.36e9e8c7ecd3dp-117,  -0x1.00ae9456c229cp-171,
    -0x1.4beb25c125930p-1, -0x1.30d834f648b0cp-56, 0x1.8fd9a797fa8b6p-110,  -0x1.5b08a7028341dp-165,
    -0x1.25930261b069fp-1, 0x1.b74f463f669e6p-56,  -0x1.5d28ad8453814p-116, -0x1.a0e84c2f8c608p-172,
    -0x1.b069ec9161738p-1, -0x1.32c3402ba515bp-57, -0x1.14e050683a131p-114, 0x1.0739f78a5292fp-168,
    -0x1.61738132c3403p-1, 0x1.16ba93dd63f5fp-55,  0x1.7c5ecf41ce7dep-110,  0x1.4a525d4d7f6bfp-165,
    -0x1.61a015d28ad84p+0, -0x1.4e050683a130cp-54, 0x1.ce7de294a4baap-110,  -0x1.404a04ee072a3p-164,
    0x1.7527bac7ebe5fp+0,  0x1.7b3d0739f78a5p-56,  0x1.497535fdafd89p-111,  -0x1.ca8bdea7f33eep-170,
};

/* a less a multiple of 4: from -2 to 2. */
HARP_INLINE double harp_mod4_f64(double a)
{
    const double up = copysign(0x1p54, a), near = (a + up) - up;
    return fabs(a) < 0x1p54 ? a - near : 0;
}

/* The nearest whole number of quarter turns, from -2 to 2, and what is left, in two parts. */
HARP_INLINE double harp_quarters_f64(double x, double *whole, double *rest)
{
    const uint64_t above = (harp_bits_f64(x) >> 52 & 2047) - 1075, some = above & ((above >> 63) - 1);
    const int64_t row = (int64_t)(some >> 5); /* 0 below, without a comparison, which SSE2 has not */
    const double y = x * harp_from_bits_f64((uint64_t)(1023 - 32 * row) << 52);
    HARP_POINTED double *const part = harp_quarter_parts;
    const double p0 = y * part[4 * row], e0 = harp_rest_f64(y, part[4 * row], p0);
    const double p1 = y * part[4 * row + 1], e1 = harp_rest_f64(y, part[4 * row + 1], p1);
    const double p2 = y * part[4 * row + 2], e2 = harp_rest_f64(y, part[4 * row + 2], p2);
    const double f0 = harp_mod4_f64(p0), g0 = harp_mod4_f64(e0), f1 = harp_mod4_f64(p1);
    const double s = f0 + g0, t = s + f1, q = e1 + p2, n = (t + 0x1.8p52) - 0x1.8p52, d = t - n, u = d + q;
    const double lost = harp_lost_f64(f0, g0, s) + harp_lost_f64(s, f1, t);
    const double more = harp_lost_f64(e1, p2, q) + harp_madd_f64(y, part[4 * row + 3], e2);
    const double low = harp_lost_f64(d, q, u) + (lost + more), sum = u + low;
    *whole = n - ((n + 0x1.8p54) - 0x1.8p54);
    *rest = harp_lost_f64(u, low, sum);
    return x - x == 0 ? sum : x - x;
}

/* A part of a quarter turn, in two parts, as an angle in two parts. */
HARP_INLINE double harp_radians_f64(double t, double *rest)
{
    const double a = t * 0x1.921fb54442d18p+0, low = harp_rest_f64(t, 0x1.921fb54442d18p+0, a);
    *rest = harp_madd_f64(*rest, 0x1.921fb54442d18p+0, harp_madd_f64(t, 0x1.1a62633145c07p-54, low));
    return a;
}

/* sin(a + rest) in two parts, for |a| to pi/4; the polynomials are near-minimax, to 2^-66 and 2^-60. */
HARP_INLINE double harp_sin_part_f64(double a, double rest, double *lost)
{
    const double z = a * a;
    double p = -0x1.ab0f25d21fd31p-41;
    p = harp_madd_f64(p, z, 0x1.6121703ee57b0p-33);
    p = harp_madd_f64(p, z, -0x1.ae64540000f84p-26);
    p = harp_madd_f64(p, z, 0x1.71de3a5455b9ap-19);
    p = harp_madd_f64(p, z, -0x1.a01a01a0198dep-13);
    p = harp_madd_f64(p, z, 0x1.1111111111110p-7);
    p = harp_madd_f64(p, z, -0x1.5555555555555p-3);
    const double more = harp_madd_f64(a * z, p, harp_madd_f64(z * -0.5, rest, rest)), sum = a + more;
    *lost = (a - sum) + more;
    return sum;
}

/* cos(a + rest) in two parts: 1 - z/2 is rounded, and what it lost is added. */
HARP_INLINE double harp_cos_part_f64(double a, double rest, double *lost)
{
    const double z = a * a, half = 0.5 * z, near = 1 - half;
    double p = -0x1.9075bb65bf437p-37;
    p = harp_madd_f64(p, z, 0x1.1eeb5de1e1489p-29);
    p = harp_madd_f64(p, z, -0x1.27e4fa0d37250p-22);
    p = harp_madd_f64(p, z, 0x1.a01a019f4671dp-16);
    p = harp_madd_f64(p, z, -0x1.6c16c16c16944p-10);
    p = harp_madd_f64(p, z, 0x1.5555555555555p-5);
    const double more = ((1 - near) - half) + harp_madd_f64(z * z, p, -a * rest), sum = near + more;
    *lost = (near - sum) + more;
    return sum;
}

HARP_INLINE double harp_sin_f64(double x)
{
    double n, rest, lost;
    const double t = harp_quarters_f64(x, &n, &rest), a = harp_radians_f64(t, &rest);
    const double y = fabs(n) == 1 ? harp_cos_part_f64(a, rest, &lost) : harp_sin_part_f64(a, rest, &lost);
    const double value = ((n == -1) | (fabs(n) == 2)) ? -y : y;
    return fabs(x) < 0x1p-27 ? x : value;
}

HARP_INLINE double harp_cos_f64(double x)
{
    double n, rest, lost;
    const double t = harp_quarters_f64(x, &n, &rest), a = harp_radians_f64(t, &rest);
    const double y = fabs(n) == 1 ? harp_sin_part_f64(a, rest, &lost) : harp_cos_part_f64(a, rest, &lost);
    return ((n == 1) | (fabs(n) == 2)) ? -y : y;
}

HARP_INLINE double harp_tan_f64(double x)
{
    double n, rest, sl, cl;
    const double t = harp_quarters_f64(x, &n, &rest), a = harp_radians_f64(t, &rest);
    const double s = harp_sin_part_f64(a, rest, &sl), c = harp_cos_part_f64(a, rest, &cl);
    const int odd = fabs(n) == 1;
    const double top = odd ? -c : s, more = odd ? -cl : sl, bottom = odd ? s : c, inverse = 1 / bottom;
    const double near = top * inverse, p = near * bottom, left = (top - p) - harp_rest_f64(near, bottom, p);
    const double value = near + (left + (more - near * (odd ? sl : cl))) * inverse;
    return fabs(x) < 0x1p-27 ? x : value;
}

#endif
