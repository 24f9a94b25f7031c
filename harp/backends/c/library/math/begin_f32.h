/* What the templates of this folder say for float: its type, its functions (F) and those of the C library (C), and
 * constants. Who includes a template includes this before it, and math/end.h behind it. */

#define T float
#define U uint32_t
#define F(name) harp_##name##_f32 /* one of harp */
#define C(name) name##f           /* one of the C library */
#define INF __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")
#define MAGIC 0x1.8p23f      /* added and subtracted: the nearest whole number; the bits of the sum end with it */
#define BIAS 127             /* of exponents */
#define MANT 23              /* bits of the mantissa */
#define LOG2E 0x1.715476p+0f /* 1/log(2) */
#define LN2_HI 0.693359375f  /* log(2) in two parts, of which the first one times a whole exponent is exact */
#define LN2_LO (-2.12194440e-4f)
#define MAGIC_TWO 12583166.0f /* as MAGIC, plus twice the bias */
#define UP_MAX 12583296.0f    /* more exponents give infinity */
#define TINY 0x1p-25f         /* below, the function is x */
#define EXP_ZERO (-104.0f)    /* below, exp is 0 */
#define EXP_MIN (-176.0f)     /* where both factors of exp are 0 */
#define EXP_MAX 89.0f         /* above, expm1 is infinite */
#define EXP2_ZERO (-151.0f)   /* below, exp2 is 0 */
#define EXP2_MIN (-254.0f)
#define EXPM1_MIN (-20.0f)     /* below, expm1 is -1 */
#define LEAST_NORMAL 0x1p-126f /* the least normal number */
#define RAISE 0x1p24f          /* makes denormal numbers normal, by so many bits */
#define RAISED 24
#define ROOT_HALF 0x3f3504f3u /* the bits of sqrt(1/2), and of 1 less those */
#define ROOT_ONE 0x004afb0du
#define WHOLE 0x1.0000fep23f /* 2^MANT plus the bias */
#define WHOLE_BITS 0x4b000000u
#define MANT_MASK 0x007fffffu
#define UPPER_BITS 0xfffff000u /* of the mantissa, the bits of a head */
#define LOG2E_HI 0x1.716p0f    /* 1/log(2), 1/log(10) and log10(2) in two parts */
#define LOG2E_LO (-0x1.7135a8p-13f)
#define LOG10E_HI 0x1.bccp-2f
#define LOG10E_LO (-0x1.09d5b2p-15f)
#define LOG10_2_HI 0x1.344p-2f
#define LOG10_2_LO 0x1.3509f8p-18f
