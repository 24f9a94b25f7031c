"""How far the special functions are from the exact values: `python tests/scipy/accuracy.py` prints the table of
docs/special.md.

The unit is one in the last place of the result, and beyond it what half a unit in the last place of the arguments
changes: no function of rounded arguments can be closer where it is steep.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

from harp.scipy import special


class Row(NamedTuple):
    """The exact function, what the range is called, and random arguments in it."""

    exact: Callable[..., Any]
    range: str
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def ndtri(p):
    x = mpf(NormalDist().inv_cdf(float(p)))
    for _ in range(3):
        x -= (ndtr(x) - p) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
    return x


def lower_gamma(a, x):
    term = total = x**a * mp.exp(-x) / mp.gamma(a + 1)
    n = 0
    while term > total * mp.eps or n < x - a:
        n += 1
        term *= x / (a + n)
        total += term
    return total


def lower_beta(a, b, x):
    if x * (a + b + 2) > a + 1:
        with mp.workdps(mp.dps + 40):
            return +(1 - lower_beta(b, a, 1 - x))
    term = total = x**a * (1 - x) ** b / (mp.beta(a, b) * a)
    n = 0
    while term > total * mp.eps * (1 - x) / 2 or n < (a + b) * x - a:
        term *= x * (a + b + n) / (a + 1 + n)
        n += 1
        total += term
    return total


def upper_gamma(a, x):
    with mp.workdps(mp.dps + 30 + int(x / 2)):
        return +(1 - lower_gamma(a, x))


def dilogarithm(z):
    return mp.polylog(2, 1 - z).real


def log(low, high):
    return lambda rng, n: 10 ** rng.uniform(low, high, n)


def linear(low, high):
    return lambda rng, n: rng.uniform(low, high, n)


def integers(low, high):
    return lambda rng, n: rng.integers(low, high + 1, n).astype(float)


def above_one(rng, n):
    return 1 + 10 ** rng.uniform(-2, 1.3, n)


def row(exact, text, *draws):
    return Row(exact, text, lambda rng, n: tuple(draw(rng, n) for draw in draws))


def both_signs(draw):
    return lambda rng, n: draw(rng, n) * rng.choice([-1, 1], n)


ROWS = {
    "beta": row(mp.beta, "1e-10 to 1e4", log(-10, 4), log(-10, 4)),
    "betainc": row(lower_beta, "a, b from 1e-3 to 300", log(-3, 2.5), log(-3, 2.5), linear(0.001, 0.999)),
    "entr": row(lambda x: -x * mp.log(x), "1e-30 to 1e30", log(-30, 30)),
    "erfcx": row(lambda x: mp.exp(x * x) * mp.erfc(x), "-5 to 1e6", lambda rng, n: 10 ** rng.uniform(0, 6, n) - 6),
    "exp1": row(mp.e1, "1e-10 to 80", log(-10, 1.9)),
    "expi": row(mp.ei, "-80 to 80", both_signs(log(-5, 1.9))),
    "expn": row(lambda n, x: mp.expint(int(n), x), "n to 20, x from 1e-3 to 20", integers(0, 20), log(-3, 1.3)),
    "factorial": row(mp.factorial, "0 to 30", integers(0, 30)),
    "gamma": row(mp.gamma, "-30 to 30", linear(-30, 30)),
    "gammainc": row(lower_gamma, "a, x from 1e-3 to 300", log(-3, 2.5), log(-3, 2.5)),
    "gammaincc": row(upper_gamma, "a, x from 1e-3 to 60", log(-3, 1.8), log(-3, 1.8)),
    "i0": row(lambda x: mp.besseli(0, x), "-80 to 80", both_signs(log(-5, 1.9))),
    "i0e": row(lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), "-1000 to 1000", both_signs(log(-5, 3))),
    "i1": row(lambda x: mp.besseli(1, x), "-80 to 80", both_signs(log(-5, 1.9))),
    "i1e": row(lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), "-1000 to 1000", both_signs(log(-5, 3))),
    "j0": row(mp.j0, "-1000 to 1000", both_signs(log(-5, 3))),
    "j1": row(mp.j1, "-1000 to 1000", both_signs(log(-5, 3))),
    "kl_div": row(lambda x, y: x * mp.log(x / y) - x + y, "1e-3 to 1e3", log(-3, 3), log(-3, 3)),
    "log_ndtr": row(lambda x: mp.log(ndtr(x)), "-1e6 to 8", lambda rng, n: 9 - 10 ** rng.uniform(0, 6, n)),
    "ndtr": row(ndtr, "-12 to 8", linear(-12, 8)),
    "ndtri": row(ndtri, "1e-30 to 1", log(-30, 0)),
    "poch": row(mp.rf, "z, m from 1e-3 to 30", log(-3, 1.5), log(-3, 1.5)),
    "polygamma": row(lambda n, x: mp.psi(int(n), x), "n to 8, x from 0.1 to 1e3", integers(0, 8), log(-1, 3)),
    "rel_entr": row(lambda x, y: x * mp.log(x / y), "1e-3 to 1e3", log(-3, 3), log(-3, 3)),
    "spence": row(dilogarithm, "1e-10 to 1e10", log(-10, 10)),
    "zeta": row(mp.zeta, "x from 1.01 to 20, q from 1e-2 to 100", above_one, log(-2, 2)),
}  # fmt: skip


OF_INTEGERS = ("expn", "polygamma", "factorial")  # the first argument


def largest_error(name: str, dtype: str, count: int) -> float:
    """In the unit above, over so many random arguments; of oscillating functions in one of the amplitude 1."""
    exact, _, draw = ROWS[name]
    arguments = [a.astype(dtype) for a in draw(np.random.default_rng(1), count)]
    found = np.asarray(getattr(special, name)(*arguments))
    assert found.dtype == dtype
    errors = [0.0]
    with mp.workdps(50):
        for value, *given in zip(found, *arguments, strict=True):
            points = [mpf(float(g)) for g in given]
            expected = exact(*points)
            half = [float(np.spacing(g)) / 2 for g in given]
            moving = [k for k in range(len(points)) if k == 1 or name not in OF_INTEGERS]
            near = [exact(*(p + half[m] * (k == m) for m, p in enumerate(points))) for k in moving]
            scale = max(abs(float(expected)), 1.0 if name in ("j0", "j1") else float(np.finfo(dtype).tiny))
            if scale < float(np.finfo(dtype).max):
                unit = float(np.spacing(np.asarray(scale, dtype))) + sum(abs(float(n - expected)) for n in near)
                errors.append(abs(float(mpf(float(value)) - expected)) / unit)
    return max(errors)


def table(count: int) -> str:
    """The rows of docs/special.md."""
    lines = ["| function | arguments | float64 | float32 |", "|---|---|---|---|"]
    for name, (_, text, _) in ROWS.items():
        errors = (largest_error(name, dtype, count) for dtype in ("float64", "float32"))
        lines.append(f"| `{name}` | {text} | {' | '.join(str(math.ceil(e * 10) / 10) for e in errors)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(400))
