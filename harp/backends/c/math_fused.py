"""Logarithms of float32 to base 2 and 10 where there is a fused multiply-add: it tells what a product lost.

log(1 + f)/log(b) = f*L + f^2*P(f), with the product f*L in two parts, and k is added to the large one. The polynomials
are minimax (Remez), rounded to float: 2^-27 of the result. Without the instruction, heads of numbers are split off
instead, as in `harp.backends.c.math`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

_LOG2 = (
    *("-0x1.c26498p-4f", "0x1.7d478p-3f", "-0x1.874864p-3f", "0x1.a3059ep-3f", "-0x1.eabd32p-3f", "0x1.277e48p-2f"),
    *("-0x1.715a7ep-2f", "0x1.ec7096p-2f", "-0x1.71547p-1f"),
)
_LOG10 = (
    *("-0x1.0f29b8p-5f", "0x1.cb1aeap-5f", "-0x1.d726b2p-5f", "0x1.f88d7ap-5f", "-0x1.277444p-4f", "0x1.63cf2ep-4f"),
    *("-0x1.bcbef2p-4f", "0x1.287a72p-3f", "-0x1.bcb7aap-3f"),
)
# $high and $low are L, $whole and $rest what k is multiplied with; the first product of k is exact.
_TEXT = Template("""\
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
HARP_INLINE float harp_${name}_f32(float x)
{
    const float up = x*0x1p24f, y = x < 0x1p-126f ? up : x, shift = x < 0x1p-126f ? 24 : 0;
    const float f = harp_log_part_f32(y), k = harp_log_whole_f32(y) - shift;
    const float large = f*$high, lost = harp_madd_f32(f, $high, -large);
    $polynomial
    const float least = harp_madd_f32(f, $low, lost), some = harp_madd_f32(f, f*p, least);
    const float whole = $whole, sum = whole + large, small = $rest;
    return harp_log_ends_f32(x, sum + (small + ((whole - sum) + large)));
}
#else
$plain#endif
""")
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "log2": {"high": "0x1.715476p+0f", "low": "0x1.4ae0cp-26f", "whole": "k", "rest": "some"},
    "log10": {
        "high": "0x1.bcb7b2p-2f",
        "low": "-0x1.5b235ep-27f",
        "whole": "k*0x1.344p-2f",
        "rest": "harp_madd_f32(k, 0x1.3509f8p-18f, some)",
    },
}


def _polynomial(coefficients: Sequence[str]) -> str:
    first, *others = coefficients
    return "\n    ".join([f"float p = {first};", *(f"p = harp_madd_f32(p, f, {c});" for c in others)])


def logarithms(plain: Mapping[str, str]) -> Mapping[str, str]:
    """The functions, given those for machines without the instruction."""
    found = {}
    for name, coefficients in (("log2", _LOG2), ("log10", _LOG10)):
        fields = {**_FIELDS[name], "name": name, "plain": plain[name], "polynomial": _polynomial(coefficients)}
        found[name] = _TEXT.substitute(fields)
    return found
