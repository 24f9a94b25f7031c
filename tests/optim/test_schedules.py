"""Schedules against their formulas, outside of programs and inside, and optax's where that is installed."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
from harp import optim

STEPS = np.arange(25, dtype=np.int32)


def decay(rate, k, begin=3, steps=5):
    return 0.5 * rate ** (np.maximum(k - begin, 0) / steps)


# What makes it, of harp.optim or optax, and its values.
ROWS = {
    "constant": (lambda o: o.constant_schedule(0.5), lambda k: np.full(k.shape, 0.5)),
    "linear": (lambda o: o.linear_schedule(1.0, 0.5, 10, 3), lambda k: 1 - 0.05 * np.clip(k - 3, 0, 10)),
    "polynomial": (
        lambda o: o.polynomial_schedule(1.0, 0.5, 3, 10),
        lambda k: 0.5 + 0.5 * (1 - np.minimum(k, 10) / 10) ** 3,
    ),
    "piecewise": (
        lambda o: o.piecewise_constant_schedule(0.5, {7: 0.5, 3: 0.1}),
        lambda k: 0.5 * np.where(k < 3, 1, np.where(k < 7, 0.1, 0.05)),
    ),
    "exponential": (lambda o: o.exponential_decay(0.5, 5, 0.7, 3), lambda k: decay(0.7, k)),
    "exponential_ends": (
        lambda o: o.exponential_decay(0.5, 5, 0.7, 3, end_value=0.2),
        lambda k: np.maximum(decay(0.7, k), 0.2),
    ),
    "exponential_grows": (
        lambda o: o.exponential_decay(0.5, 5, 1.5, 3, end_value=0.9),
        lambda k: np.minimum(decay(1.5, k), 0.9),
    ),
    "staircase": (
        lambda o: o.exponential_decay(0.5, 5, 0.7, staircase=True),
        lambda k: 0.5 * 0.7 ** (k // 5),
    ),
    "cosine": (
        lambda o: o.cosine_decay_schedule(0.5, 10, 0.1),
        lambda k: 0.5 * (0.9 * (1 + np.cos(np.pi * np.minimum(k, 10) / 10)) / 2 + 0.1),
    ),
    "warmup_cosine": (lambda o: o.warmup_cosine_decay_schedule(0.1, 1.0, 5, 15, 0.2, 2.0), None),
    "joined": (
        lambda o: o.join_schedules([o.linear_schedule(0.0, 1.0, 5), o.constant_schedule(0.3)], [8]),
        lambda k: np.where(k < 8, np.minimum(k, 5) / 5, 0.3),
    ),
}


def values(name):
    formula = ROWS[name][1]
    if formula is None:  # the exponent is of the wave, and the end is a share of the peak
        wave = ((1 + np.cos(np.pi * np.clip(STEPS - 5, 0, 10) / 10)) / 2) ** 2
        return np.where(STEPS < 5, 0.1 + 0.9 * STEPS / 5, 0.8 * wave + 0.2)
    return formula(STEPS.astype(float))


def test_formulas():
    """In one program, and for single steps of Python."""
    schedules = {name: make(optim) for name, (make, _) in ROWS.items()}
    found = harp.jit(harp.vmap(lambda k: {name: schedule(k) for name, schedule in schedules.items()}))(STEPS)
    for name, schedule in schedules.items():
        npt.assert_allclose(found[name], values(name), rtol=1e-12, atol=1e-15, err_msg=name)
        npt.assert_allclose([float(schedule(int(k))) for k in (0, 4, 20)], values(name)[[0, 4, 20]], rtol=1e-12)


@pytest.mark.parametrize("name", ROWS)
def test_against_optax(name):
    optax = pytest.importorskip("optax")
    npt.assert_allclose([float(ROWS[name][0](optax)(int(k))) for k in STEPS], values(name), rtol=2e-6, atol=1e-7)
