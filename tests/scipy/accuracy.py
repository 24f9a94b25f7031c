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


def dawson(x):
    with mp.workdps(mp.dps + 10):
        return +(mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x))


def owen(h, a):
    """For large slopes by that of the inverse one, for the integrand is not smooth."""
    if a > 1:
        one, other = ndtr(-h), ndtr(-a * h)
        return (one + other) / 2 - one * other - owen(a * h, 1 / a)
    end = min(a, 16 / h)
    points = [end * k / 4 for k in range(5)]
    return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), points) / (2 * mp.pi)


def boxcox(x, power):
    return mp.log(x) if power == 0 else (x**power - 1) / power


def boxcox1p(x, power):
    return mp.log1p(x) if power == 0 else mp.expm1(power * mp.log1p(x)) / power


def faddeeva(z):
    with mp.workdps(mp.dps + 20):
        return +(mp.exp(-z * z) * mp.erfc(-1j * z))


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


def plane(draw, lowest=-1):
    """Complex numbers whose parts are drawn; imaginary ones are above the real axis for `lowest` 0."""
    return lambda rng, n: draw(rng, n) + 1j * (draw(rng, n) if lowest else np.abs(draw(rng, n)))


def product(one, other):
    return lambda rng, n: one(rng, n) * other(rng, n)


ROWS = {
    "beta": row(mp.beta, "1e-10 to 1e4", log(-10, 4), log(-10, 4)),
    "betainc": row(lower_beta, "a, b from 1e-3 to 300", log(-3, 2.5), log(-3, 2.5), linear(0.001, 0.999)),
    "boxcox": row(boxcox, "x from 1e-5 to 1e5, lmbda to 10", log(-5, 5), both_signs(log(-10, 1))),
    "boxcox1p": row(boxcox1p, "x from 1e-20 to 1e5, lmbda to 10", log(-20, 5), both_signs(log(-10, 1))),
    "comb": row(mp.binomial, "N from 500 to 1000", integers(500, 1000), integers(0, 500)),
    "dawsn": row(dawson, "-100 to 100", both_signs(log(-10, 2))),
    "entr": row(lambda x: -x * mp.log(x), "1e-30 to 1e30", log(-30, 30)),
    "erfcx": row(lambda x: mp.exp(x * x) * mp.erfc(x), "-5 to 1e6", lambda rng, n: 10 ** rng.uniform(0, 6, n) - 6),
    "exp1": row(mp.e1, "1e-10 to 80", log(-10, 1.9)),
    "expi": row(mp.ei, "-80 to 80", both_signs(log(-5, 1.9))),
    "expn": row(lambda n, x: mp.expint(int(n), x), "n to 20, x from 1e-3 to 20", integers(0, 20), log(-3, 1.3)),
    "factorial": row(mp.factorial, "0 to 30", integers(0, 30)),
    "fresnel": row(lambda x: (mp.fresnels(x), mp.fresnelc(x)), "-100 to 100", both_signs(log(-5, 2))),
    "gamma": row(mp.gamma, "-30 to 30", linear(-30, 30)),
    "gammainc": row(lower_gamma, "a, x from 1e-3 to 300", log(-3, 2.5), log(-3, 2.5)),
    "gammaincc": row(upper_gamma, "a, x from 1e-3 to 60", log(-3, 1.8), log(-3, 1.8)),
    "hyp1f1": row(mp.hyp1f1, "a, b from -20 to 20, x from -50 to 50", *[linear(-20, 20)] * 2, linear(-50, 50)),
    "hyp2f1": row(mp.hyp2f1, "a, b, c from -5 to 5, x from -10 to 1", *[linear(-5, 5)] * 3, linear(-10, 1)),
    "i0": row(lambda x: mp.besseli(0, x), "-80 to 80", both_signs(log(-5, 1.9))),
    "i0e": row(lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), "-1000 to 1000", both_signs(log(-5, 3))),
    "i1": row(lambda x: mp.besseli(1, x), "-80 to 80", both_signs(log(-5, 1.9))),
    "i1e": row(lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), "-1000 to 1000", both_signs(log(-5, 3))),
    "j0": row(mp.j0, "-1000 to 1000", both_signs(log(-5, 3))),
    "j1": row(mp.j1, "-1000 to 1000", both_signs(log(-5, 3))),
    "kl_div": row(lambda x, y: x * mp.log(x / y) - x + y, "1e-3 to 1e3", log(-3, 3), log(-3, 3)),
    "log_ndtr": row(lambda x: mp.log(ndtr(x)), "-1e6 to 8", lambda rng, n: 9 - 10 ** rng.uniform(0, 6, n)),
    "loggamma": row(mp.loggamma, "parts from -1e3 to 1e3", plane(both_signs(log(-5, 3)))),
    "ndtr": row(ndtr, "-12 to 8", linear(-12, 8)),
    "ndtri": row(ndtri, "1e-30 to 1", log(-30, 0)),
    "owens_t": row(owen, "h to 20, a to 1e3", log(-5, 1.3), log(-5, 3)),
    "poch": row(mp.rf, "z, m from 1e-3 to 30", log(-3, 1.5), log(-3, 1.5)),
    "polygamma": row(lambda n, x: mp.psi(int(n), x), "n to 8, x from 0.1 to 1e3", integers(0, 8), log(-1, 3)),
    "rel_entr": row(lambda x, y: x * mp.log(x / y), "1e-3 to 1e3", log(-3, 3), log(-3, 3)),
    "sici": row(lambda x: (mp.si(x), mp.ci(x)), "1e-5 to 1e5", log(-5, 5)),
    "spence": row(dilogarithm, "1e-10 to 1e10", log(-10, 10)),
    "wofz": row(faddeeva, "above the real axis, to 1e3", plane(both_signs(log(-8, 3)), 0)),
    "zeta": row(mp.zeta, "x from 1.01 to 20, q from 1e-2 to 100", above_one, log(-2, 2)),
}  # fmt: skip


OF_INTEGERS = ("expn", "polygamma", "factorial")  # the first argument
OF_ONE = ("fresnel", "j0", "j1", "loggamma", "sici")  # whose unit is that of 1 at least


def exactly(value: Any) -> Any:
    """The same number with many digits."""
    return mp.mpc(complex(value)) if np.iscomplexobj(value) else mpf(float(value))


def largest_error(name: str, dtype: str, count: int) -> float:
    """In the unit above, over so many random arguments and all results; of some functions in one of 1 at least."""
    exact, _, draw = ROWS[name]
    arguments = [a.astype(np.result_type(dtype, np.complex64) if np.iscomplexobj(a) else dtype)
                 for a in draw(np.random.default_rng(1), count)]  # fmt: skip
    results = getattr(special, name)(*arguments)
    errors = [0.0]
    for k, found in enumerate(map(np.asarray, results if isinstance(results, tuple) else (results,))):
        assert found.real.dtype == dtype
        exact_one = (lambda *given, k=k: exact(*given)[k]) if isinstance(results, tuple) else exact
        with mp.workdps(50):
            errors += [_error(name, dtype, exact_one, *row) for row in zip(found, *arguments, strict=True)]
    return max(errors)


def _error(name: str, dtype: str, exact: Callable[..., Any], value: Any, *given: Any) -> float:
    points = [exactly(g) for g in given]
    expected = exact(*points)
    half = [float(np.spacing(np.abs(g))) / 2 for g in given]
    moving = [k for k in range(len(points)) if k == 1 or name not in OF_INTEGERS]
    near = [exact(*(p + half[m] * (k == m) for m, p in enumerate(points))) for k in moving]
    scale = max(float(abs(expected)), 1.0 if name in OF_ONE else float(np.finfo(dtype).tiny))
    if scale >= float(np.finfo(dtype).max):
        return 0.0
    unit = float(np.spacing(np.asarray(scale, dtype))) + sum(float(abs(n - expected)) for n in near)
    return float(abs(exactly(value) - expected)) / unit


def table(count: int) -> str:
    """The rows of docs/special.md."""
    lines = ["| function | arguments | float64 | float32 |", "|---|---|---|---|"]
    for name, (_, text, _) in ROWS.items():
        errors = (largest_error(name, dtype, count) for dtype in ("float64", "float32"))
        lines.append(f"| `{name}` | {text} | {' | '.join(str(math.ceil(e * 10) / 10) for e in errors)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(400))
