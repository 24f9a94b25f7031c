"""Constants of the library that Python has too, or can compute."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest
from accuracy import LIBRARY

from harp.trace.scalar import special

PLACES = 1300  # of 2/pi, after the point


def numbers(file: str, pattern: str) -> list[float]:
    """The hexadecimal numbers in the first match."""
    found = re.search(pattern, (LIBRARY / "math" / file).read_text("utf-8"), re.DOTALL)
    assert found
    return [float.fromhex(number) for number in re.findall(r"-?0x[01]\.?[0-9a-f]*p[-+]?\d+", found.group(1))]


def turns(exponent: int) -> int:
    """2^exponent*2/pi modulo 4, times 2^PLACES."""
    with mpmath.workprec(PLACES + 200):
        return int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, PLACES + exponent))) % (4 << PLACES)


def test_quarter_turns_of_float32() -> None:
    first, rest = (numbers("trig_f32.h", rf"{name}\[\d+\] = {{(.*?)}}") for name in ("harp_turns", "harp_turns_rest"))
    assert len(first) == len(rest) == 106
    for e in range(len(first)):
        low = PLACES - 27
        high, left = divmod(turns(e), 1 << low)
        assert first[e] == math.ldexp(high, -27 - e)
        assert rest[e] == pytest.approx(math.ldexp(left / (1 << PLACES), -e), rel=1e-12)


def test_quarter_turns_of_float64() -> None:
    def parts() -> Iterator[float]:
        for row in range(31):
            left = turns(32 * row)
            left -= (4 << PLACES) if left >= 2 << PLACES else 0
            for _ in range(4):
                part = left / (1 << PLACES)
                yield part
                left -= int(Fraction(part) * (1 << PLACES))

    assert numbers("trig_f64.h", r"harp_quarter_parts\[\d+\] = {(.*?)}") == list(parts())


@pytest.mark.parametrize(
    ("coefficients", "pattern"),
    [
        (special.ERF_NEAR, r"harp_erf_near_f64\(double x\)\n{(.*?)\n}"),
        (special.ERFC_FAR, r"harp_erfc_far_f64\(double x\)\n{(.*?)\n}"),
        (
            (*special.ERFINV_NEAR, *special.ERFINV_FAR, special.HALF_ROOT_PI.hex()),
            r"harp_erfinv_f64\(double x\)\n{(.*?)\n}",
        ),
    ],
    ids=["erf", "erfc", "erfinv"],
)
def test_polynomials_are_those_of_the_interpreter(coefficients: tuple[str, ...], pattern: str) -> None:
    assert numbers("erf_f64.h", pattern) == [float.fromhex(c) for c in coefficients]
