"""Elementwise functions, complex numbers, float16, powers, long chains."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, both, forward, integers, normal, uniform
from benchmarks.costs import case
from benchmarks.costs.case import bits


def julia(xp: Namespace, z: Array) -> Array:
    """Four steps of z*z + c; the squares of the magnitudes."""
    z = z * 0.4
    for _ in range(4):
        z = z * z + (0.1 + 0.2j)
    return z.real * z.real + z.imag * z.imag


def chosen(xp: Namespace, x: Array, mask: Array, k: Array) -> Array:
    """By truth values and integers."""
    return xp.where(mask & (k % 7 < 3), x * k.astype(x.dtype), -x)


def masked_softmax(xp: Namespace, x: Array, mask: Array) -> Array:
    """Of the numbers that are not masked."""
    weights = xp.exp(xp.where(mask, x, -1e9) - 8)
    return weights / (weights.sum(axis=1, keepdims=True) + 1e-9)


def twenty_live(xp: Namespace, x: Array, y: Array) -> Array:
    """Twenty results that live at the same time, three times over."""
    a = [x + 0.05 * k * y for k in range(10)] + [x * y - 0.03 * k * x for k in range(10)]
    b = [a[k] * a[(k + 7) % 20] + a[(k + 3) % 20] for k in range(20)]
    c = [xp.sqrt(b[k] * b[k] + 1) - b[(k + 11) % 20] for k in range(20)]
    out = c[0]
    for k in range(1, 20):
        out = out * 0.7 + c[k] * a[19 - k]
    return out


def choices(xp: Namespace, x: Array, y: Array) -> Array:
    """Twenty quotients, then a chain of choices between them."""
    values = [xp.maximum(x * (0.1 * k), y - 0.2 * k) / (1.5 + xp.abs(x - 0.1 * k * y)) for k in range(20)]
    out = values[0]
    for k in range(1, 20):
        out = xp.where(values[k] > out, out + 0.1 * values[k], out - values[19 - k] * values[k])
    return out


def leapfrog(xp: Namespace, q: Array, p: Array) -> Array:
    """Ten steps of a pendulum: twenty sines, one after the other."""
    for _ in range(10):
        p = p - 0.05 * xp.sin(q)
        q = q + 0.1 * p
        p = p - 0.05 * xp.sin(q)
    return q * q + p * p


def erf(xp: Namespace, x: Array) -> Array:
    """The error function by formula 7.1.26 of Abramowitz and Stegun."""
    a = xp.abs(x)
    t = 1 / (1 + 0.3275911 * a)
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return xp.sign(x) * (1 - p * xp.exp(-a * a))


KINDS = [
    *both(
        "complex/products",
        40_000,
        [normal("n", dtype="complex64")] * 3,
        lambda xp, a, b, c: a * b * xp.conj(c) + a,
    ),
    *both("complex/julia", 24_000, [normal("n", dtype="complex64")], julia, tolerance=1e-3),
    *both(
        "complex/rotation",
        8000,
        [normal("n"), normal("n", dtype="complex64")],
        lambda xp, t, z: xp.exp(1j * t) * z,
    ),
    *both("float16/axpy", 50_000, [normal("n", dtype="float16")] * 2, lambda xp, x, y: x * 1.5 + y, tolerance=5e-3),
    *both(
        "float16/centred",
        400,
        [normal("n", 64, dtype="float16")],
        lambda xp, x: x - x.mean(axis=1, keepdims=True),
        tolerance=1e-2,
    ),
    *both("choice/masks", 70_000, [normal("n"), bits("n", dtype="bool"), integers(0, 100, "n")], chosen),
    *both(
        "choice/by-numbers-of-rows",
        400,
        [normal("n", 250), normal("n"), normal(1)],
        lambda xp, x, row, one: xp.where(x > 0, x * row[:, None], x * one),
    ),
    *both(
        "choice/softmax-under-masks",
        400,
        [normal("n", 250), bits("n", 250, dtype="bool")],
        masked_softmax,
    ),
    *both(
        "choice/sum-under-masks",
        100_000,
        [normal("n", dtype="float64"), bits("n", dtype="bool")],
        lambda xp, x, mask: xp.where(mask, x * x, 0).sum(),
    ),
    *forward("remainder/angles", 40_000, [uniform(-100, 100, "n")], lambda xp, x: (x + 3.0) % 6.25 - 3.0),
    *both("power/integers", 100_000, [uniform(0.5, 1.5, "n")], lambda xp, x: x**2 + x**3 - x**5 + x**-2),
    *both("chain/twenty-live", 5000, [uniform(0.2, 1.2, "n")] * 2, twenty_live, tolerance=1e-3),
    *both("chain/leapfrog", 20_000, [normal("n")] * 2, leapfrog, tolerance=1e-4),
    *both("chain/softplus", 50_000, [normal("n")] * 2, lambda xp, x, y: xp.logaddexp(0 * x, -x * y)),
    *both("chain/choices", 4000, [case.normal("n")] * 2, choices, tolerance=1e-9),
]
FUNCTIONS = [
    *both("elementwise/log10", 40_000, [uniform(0.01, 100, "n")], lambda xp, x: 20 * xp.log10(x)),
    *both(
        "elementwise/arcsin",
        15_000,
        [uniform(-0.99, 0.99, "n")],
        lambda xp, x: xp.arcsin(x) + 0.5 * xp.arccos(x * 0.5),
    ),
    *both("elementwise/tan", 15_000, [uniform(-1.4, 1.4, "n")], lambda xp, x: xp.tan(x)),
    *both("elementwise/sinh-cosh", 12_000, [uniform(-3, 3, "n")], lambda xp, x: xp.sinh(x) - 0.3 * xp.cosh(x)),
    *both("elementwise/arctan2", 10_000, [normal("n")] * 2, lambda xp, y, x: xp.arctan2(y, x)),
    *both("elementwise/pow", 10_000, [uniform(0.1, 4, "n"), uniform(-2, 2, "n")], lambda xp, x, p: x**p),
    *both(
        "elementwise/exp2-log1p-expm1",
        20_000,
        [uniform(-5, 5, "n")],
        lambda xp, x: xp.exp2(x) + xp.log1p(x * x) + xp.expm1(-0.2 * x),
    ),
    *both("elementwise/erf", 40_000, [normal("n")], erf),
]
ELEMENTWISE = [*KINDS, *FUNCTIONS]
