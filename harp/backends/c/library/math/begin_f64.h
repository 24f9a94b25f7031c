/* What the templates of this folder say for double: its type, its functions (F) and those of the C library (C), and
 * constants. Who includes a template includes this before it, and math/end.h behind it. */

#define T double
#define U uint64_t
#define F(name) harp_##name##_f64 /* one of harp */
#define C(name) name              /* one of the C library */
#define INF __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")
#define MAGIC 0x1.8p52             /* added and subtracted: the nearest whole number; the bits of the sum end with it */
#define BIAS 1023                  /* of exponents */
#define MANT 52                    /* bits of the mantissa */
#define LOG2E 0x1.71547652b82fep+0 /* 1/log(2) */
#define LN2_HI 0x1.62e42feep-1     /* log(2) in two parts, of which the first one times a whole exponent is exact */
#define LN2_LO 0x1.a39ef35793c76p-33
#define TINY 0x1p-54        /* below, the function is x */
#define EXP_ZERO (-746.0)   /* below, exp is 0 */
#define EXP_MIN (-1418.0)   /* where both factors of exp are 0 */
#define EXP_MAX 710.0       /* above, expm1 is infinite */
#define EXP2_ZERO (-1076.0) /* below, exp2 is 0 */
#define EXP2_MIN (-2046.0)
#define MAGIC_TWO 6755399441057790.0 /* as MAGIC, plus twice the bias */
#define UP_MAX 6755399441058816.0    /* more exponents give infinity */
#define EXPM1_MIN (-40.0)            /* below, expm1 is -1 */
#define LEAST_NORMAL 0x1p-1022       /* the least normal number */
#define RAISE 0x1p54                 /* makes denormal numbers normal, by so many bits */
#define RAISED 54
#define ROOT_HALF UINT64_C(0x3fe6a09e667f3bcd) /* the bits of sqrt(1/2), and of 1 less those */
#define ROOT_ONE UINT64_C(0x00095f619980c433)
#define WHOLE 0x1.00000000003ffp52 /* 2^MANT plus the bias */
#define WHOLE_BITS UINT64_C(0x4330000000000000)
#define MANT_MASK UINT64_C(0x000fffffffffffff)
#define UPPER_BITS UINT64_C(0xffffffff00000000) /* of the mantissa, the bits of a head */
#define LOG2E_HI 0x1.71547652p0                 /* 1/log(2), 1/log(10) and log10(2) in two parts */
#define LOG2E_LO 0x1.705fc2eefa2p-33
#define LOG10E_HI 0x1.bcb7b154p-2
#define LOG10E_LO (-0x1.91af1cd59548bp-34)
#define LOG10_2_HI 0x1.34413509f8p-2
#define LOG10_2_LO (-0x1.80433b83b532ap-44)
