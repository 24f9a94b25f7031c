"""The helper functions of generated C, as text. A program contains those that it uses, in the order of this file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from string import Template

from harp.backends.c import halves, math, math_double, math_power, math_wide
from harp.backends.c.kernels import KERNELS
from harp.backends.c.scalar import TYPES
from harp.trace.dtypes import ALL, DType, Kind, f32, real_of

_PREAMBLE = """\
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define HARP_EXPORT __declspec(dllexport)
#else
#define HARP_EXPORT __attribute__((visibility("default")))
#endif
/* Generated code compares unsigned numbers with zero, fills buffers in parts, and may leave a part unread. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#define HARP_UNROLL(n)
#define HARP_INDEPENDENT
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define HARP_PRAGMA(text) _Pragma(#text)
#define HARP_UNROLL(n) HARP_PRAGMA(GCC unroll n)
#define HARP_INDEPENDENT HARP_PRAGMA(GCC ivdep)
#endif
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
"""

# What functions of double and of float end with.
_REALS = (("", "double"), ("f", "float"))
# What is called of the C library. Its own headers take longer to compile than a kernel.
_OF_C: Mapping[str, str] = {
    "aligned_alloc": "void *aligned_alloc(size_t alignment, size_t size);\n",
    "free": "void free(void *memory);\n",
    **{f"{name}{f}": f"{t} {name}{f}({t});\n" for name in ("fabs", "floor", "sqrt") for f, t in _REALS},
    **{f"{name}{f}": f"{t} {name}{f}({t}, {t});\n" for name in ("copysign", "fmod") for f, t in _REALS},
}
_PLAIN: Mapping[str, str] = {
    "harp_relu": """\
static inline int64_t harp_relu(int64_t a) { return a > 0 ? a : 0; }
""",
    "harp_quotient": """\
/* a / b for a, b >= 0; a size that divides may be 0 where no loop runs. */
static inline int64_t harp_quotient(int64_t a, int64_t b) { return b != 0 ? a / b : 0; }
""",
    "harp_run_length": """\
/* The shorter of two runs, and at least 1, so that a loop over runs ends. */
static inline int64_t harp_run_length(int64_t room, int64_t left)
{
    const int64_t run = room < left ? room : left;
    return run > 1 ? run : 1;
}
""",
    "harp_pick": """\
/* A position along an axis of n elements, from the end if it is negative; the nearest one where it is outside. */
static inline int64_t harp_pick(int64_t a, int64_t n)
{
    const int64_t at = a < 0 ? a + n : a;
    return at < 0 ? 0 : at < n ? at : n - 1;
}
""",
    "harp_pick_or_miss": """\
/* A position along an axis of n elements, from the end if it is negative; n where it is outside. */
static inline int64_t harp_pick_or_miss(int64_t a, int64_t n)
{
    const int64_t at = a < 0 ? a + n : a;
    return (uint64_t)at < (uint64_t)n ? at : n;
}
""",
    "harp_larger": """\
static inline int64_t harp_larger(int64_t a, int64_t b) { return a > b ? a : b; }
""",
    "harp_slot": """\
/* Bytes of a slot of the arena: the next one starts on a cache line. */
static inline int64_t harp_slot(int64_t bytes) { return bytes > 0 ? (bytes + 63) / 64 * 64 : 0; }
""",
    "harp_times": """\
/* Bytes times an extent; what cannot be counted is more than there is. */
static inline int64_t harp_times(int64_t bytes, int64_t extent)
{
    int64_t product;
    const int over = __builtin_mul_overflow(bytes, extent > 0 ? extent : 0, &product);
    return over || product > INT64_MAX/4 ? INT64_MAX/4 : product;
}
""",
    "harp_take": """\
/* Memory on a cache line, or NULL. */
static inline void *harp_take(int64_t bytes)
{
    return bytes >= INT64_MAX/4 ? NULL : aligned_alloc(64, (size_t)((bytes + 64) / 64 * 64));
}
""",
}

_PARALLEL = """\
/* Runs a part of a parallel loop for all its iterations: here one after the other, elsewhere by several threads. */
typedef void harp_part(void *given, int64_t begin, int64_t end);
extern HARP_EXPORT void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work);
"""

# Families: one function for each dtype of these kinds. $T is the C type, $s the name, $U the unsigned type of its
# width, $B the width in bits, $f libm's suffix, $low the test that a number is not below int32.
_SIGNED: Mapping[str, str] = {
    "floordiv": """\
/* Rounds down; 0 for divisor 0; the lowest number // -1 wraps. */
static inline $T harp_floordiv_$s($T a, $T b)
{
    if (b == 0) return 0;
    if (b == -1) return ($T)(0 - ($U)a);
    return ($T)(a/b - ((a%b != 0) & ((a < 0) != (b < 0))));
}
""",
    "mod": """\
/* The remainder has the sign of the divisor; 0 for divisor 0. */
static inline $T harp_mod_$s($T a, $T b)
{
    if (b == 0 || b == -1) return 0;
    const $T r = ($T)(a%b);
    const int other = (r != 0) & ((a < 0) != (b < 0));
    return ($T)(other ? r + b : r);
}
""",
    "abs": """\
static inline $T harp_abs_$s($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; }
""",
    "pow": """\
/* Wraps; a negative power gives the exact quotient, truncated. */
static inline $T harp_pow_$s($T a, $T b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)a;
    for (; b > 0; b = ($T)(b >> 1), square *= square)
        if (b & 1) result *= square;
    return ($T)result;
}
""",
    "shr": """\
static inline $T harp_shr_$s($T a, $T b) { return ($T)(a >> (($U)b < $B ? b : $B - 1)); }
""",
}
_UNSIGNED: Mapping[str, str] = {
    "floordiv": """\
static inline $T harp_floordiv_$s($T a, $T b) { return b != 0 ? ($T)(a/b) : 0; }
""",
    "mod": """\
static inline $T harp_mod_$s($T a, $T b) { return b != 0 ? ($T)(a%b) : 0; }
""",
    "pow": """\
static inline $T harp_pow_$s($T a, $T b)
{
    uint64_t result = 1, square = a;
    for (; b > 0; b = ($T)(b >> 1), square *= square)
        if (b & 1) result *= square;
    return ($T)result;
}
""",
    "shr": """\
static inline $T harp_shr_$s($T a, $T b) { return b < $B ? ($T)(a >> b) : 0; }
""",
}
_INTEGER: Mapping[str, str] = {
    "max": """\
static inline $T harp_max_$s($T a, $T b) { return a > b ? a : b; }
""",
    "min": """\
static inline $T harp_min_$s($T a, $T b) { return a < b ? a : b; }
""",
    "shl": """\
static inline $T harp_shl_$s($T a, $T b) { return ($U)b < $B ? ($T)(($W)a << b) : 0; }
""",
}
_FLOAT: Mapping[str, str] = {
    "max": """\
/* One instruction, which gives `a` unless b > a, and a blend. NaN is handed on; of two zeros it is the first. In a
   reduction only the instruction waits for the element before it. */
static inline $T harp_max_$s($T a, $T b)
{
    const $T larger = b > a ? b : a;
    return b == b ? larger : b;
}
""",
    "min": """\
static inline $T harp_min_$s($T a, $T b)
{
    const $T smaller = b < a ? b : a;
    return b == b ? smaller : b;
}
""",
    "floordiv": """\
/* The quotient of Python's divmod, as NumPy computes it. */
static inline $T harp_floordiv_$s($T a, $T b)
{
    if (b == 0) return a/b;
    const $T mod = fmod$f(a, b);
    $T quotient = (a - mod)/b;
    if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
    if (quotient == 0) return copysign$f(0, a/b);
    const $T whole = floor$f(quotient);
    return quotient - whole > ($T)0.5 ? whole + 1 : whole;
}
""",
    "mod": """\
/* The remainder of Python's divmod: it has the sign of the divisor. */
static inline $T harp_mod_$s($T a, $T b)
{
    const $T mod = fmod$f(a, b);
    if (b == 0) return mod;
    if (mod == 0) return copysign$f(0, b);
    return (b < 0) != (mod < 0) ? mod + b : mod;
}
""",
    "to_i32": """\
/* Truncates; out of range gives the lowest number. */
static inline int32_t harp_${s}_to_i32($T a) { return a $low && a < 0x1p31$f ? (int32_t)a : INT32_MIN; }
""",
    "to_i64": """\
/* Truncates; out of range gives the lowest number. */
static inline int64_t harp_${s}_to_i64($T a) { return a >= -0x1p63$f && a < 0x1p63$f ? (int64_t)a : INT64_MIN; }
""",
    "to_u64": """\
/* Truncates; negative numbers wrap. */
static inline uint64_t harp_${s}_to_u64($T a)
{
    return a >= 0x1p63$f && a < 0x1p64$f ? (uint64_t)a : (uint64_t)harp_${s}_to_i64(a);
}
""",
    "to_u32": """\
/* Truncates; wraps. */
static inline uint32_t harp_${s}_to_u32($T a) { return (uint32_t)harp_${s}_to_i64(a); }
""",
    **{
        f"to_{narrow}": f"""\
/* Truncates; wraps. */
static inline {c} harp_${{s}}_to_{narrow}($T a) {{ return ({c})harp_${{s}}_to_i32(a); }}
"""
        for narrow, c in (("i8", "int8_t"), ("i16", "int16_t"), ("u8", "uint8_t"), ("u16", "uint16_t"))
    },
}
_COMPLEX: Mapping[str, str] = {
    "mul": """\
/* By the definition, as NumPy: an infinity may give NaN beside it. Fused here, for gcc does it to vectors only. */
static inline $T harp_mul_$s($T a, $T b)
{
    return __builtin_complex(harp_madd_$R(__real__ a, __real__ b, -(__imag__ a*__imag__ b)),
                             harp_madd_$R(__real__ a, __imag__ b, __imag__ a*__real__ b));
}
""",
    "prod": """\
/* What a product accumulates, from 1: that times an infinity would have a NaN. */
static inline $T harp_prod_$s($T a, $T b)
{
    if (__real__ a == 1 && __imag__ a == 0)
        return b;
    if (__real__ b == 1 && __imag__ b == 0)
        return a;
    return harp_mul_$s(a, b);
}
""",
}
_FAMILIES: Mapping[Kind, tuple[Mapping[str, str], ...]] = {
    Kind.BOOL: (),
    Kind.INT: (_SIGNED, _INTEGER),
    Kind.UINT: (_UNSIGNED, _INTEGER),
    Kind.FLOAT: (_FLOAT,),
    Kind.COMPLEX: (),  # behind the functions of real numbers, which they call
}


def _fields(dtype: DType) -> dict[str, str]:
    """What a family's text says for this dtype. $W is unsigned and no narrower than `unsigned`."""
    bits = 8 * dtype.itemsize
    return {
        "T": TYPES[dtype],
        "s": dtype.name,
        "R": real_of(dtype).name,
        "U": f"uint{bits}_t",
        "W": f"uint{max(bits, 32)}_t",
        "B": str(bits),
        "f": "f" if dtype is f32 else "",
        "low": ">= -0x1p31f" if dtype is f32 else "> -2147483649.0",
        **(math.fields(dtype) if dtype.is_float else {}),
    }


@cache
def helpers() -> Mapping[str, str]:
    """Every helper by name, each after those that it calls."""
    found = {**_OF_C, **_PLAIN, "harp_parallel": _PARALLEL, **math.PLAIN, **math_wide.tables()}
    # float32's functions call those of float64
    floats = [dtype for dtype in reversed(ALL) if dtype.is_float and not dtype.is_half]
    families = [(dtype, family) for dtype in ALL if not dtype.is_half for family in _FAMILIES[dtype.kind]]
    modules = (math, math_wide, math_power, math_double)
    families += [(dtype, module.family(dtype)) for module in modules for dtype in floats]
    families += [(dtype, _COMPLEX) for dtype in ALL if dtype.is_complex]
    for dtype, family in families:
        for name, text in family.items():
            full = f"harp_{dtype.name}_{name}" if name.startswith("to_") else f"harp_{name}_{dtype.name}"
            found[full] = Template(text).substitute(_fields(dtype))
    return {**found, **halves.HELPERS}


_WORD = re.compile(r"[A-Za-z_]\w*")


def words(text: str) -> list[str]:
    """The identifiers in a piece of C."""
    return _WORD.findall(text)


def header(body: str) -> str:
    """Includes, and the definitions of all helpers that `body` needs."""
    table = helpers()
    wanted = [name for name in dict.fromkeys(words(body)) if name in table]
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted += [other for other in words(table[name]) if other in table]
    headers = sorted({KERNELS[word].header for word in words(body) if word in KERNELS})
    includes = "".join(f'#include "{name}"\n' for name in headers)
    return "\n".join([_PREAMBLE + includes, *(text for name, text in table.items() if name in needed)])
