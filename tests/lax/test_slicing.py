"""Dynamic slices and pads of random kinds beside NumPy: starts and sizes of every sort on each axis, in one program."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from tests.lax.cases import padded, stretch

SIZES = ("a number", "all", "half")


@pytest.mark.parametrize("seed", range(6))
def test_slices_and_updates(seed):
    """On each axis the start is a number or data, and the size a number, all of the axis, or half of it."""
    rng = np.random.default_rng(seed)
    rank = 1 + seed % 3
    from_data, kinds = rng.random(rank) < 0.6, rng.choice(SIZES, rank)
    numbers, places = rng.integers(0, 3, rank), rng.integers(-3, 4, rank)

    def starts(given):
        return [given[k] if from_data[k] else int(places[k]) for k in range(rank)]

    def sizes(shape):
        by_kind = {"a number": lambda k: int(numbers[k]), "all": lambda k: shape[k], "half": lambda k: shape[k] // 2}
        return tuple(by_kind[kind](k) for k, kind in enumerate(kinds))

    def both(x, update, given):
        taken = lax.dynamic_slice(x, starts(given), sizes(x.shape))
        return taken, lax.dynamic_update_slice(x, update, starts(given))

    def total(*args):
        taken, updated = both(*args)
        return hnp.sum(taken**3) + hnp.sum(updated**2)

    compiled, slopes = harp.jit(both), harp.jit(harp.grad(total, (0, 1)))
    for _ in range(5):
        shape = tuple(map(int, rng.integers(2, 6, rank)))
        x, update, given = rng.normal(size=shape), rng.normal(size=sizes(shape)), rng.integers(-7, 8, rank)
        part = stretch(x, list(map(int, starts(given))), sizes(shape))
        expected = x.copy()
        expected[part] = update
        for found in (compiled(x, update, given), both(x, update, given)):
            npt.assert_array_equal(found[0], x[part])
            npt.assert_array_equal(found[1], expected)
        by_x, by_update = slopes(x, update, given)
        slope = 2 * x
        slope[part] = 3 * x[part] ** 2
        npt.assert_allclose(by_x, slope, rtol=1e-12)
        npt.assert_allclose(by_update, 2 * update, rtol=1e-12)
    assert compiled.compilations == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_pads(seed):
    rng = np.random.default_rng(seed)
    rank = 1 + seed % 2
    config = [(*map(int, rng.integers(-2, 4, 2)), int(rng.integers(0, 3))) for _ in range(rank)]
    program = harp.jit(lambda x, value: lax.pad(x, value, config))
    slopes = harp.jit(harp.grad(lambda x, value: hnp.sum(lax.pad(x, value, config) ** 2), (0, 1)))
    for _ in range(4):
        x, value = rng.normal(size=tuple(rng.integers(4, 8, rank))), rng.normal()
        expected = padded(x, value, config)
        npt.assert_array_equal(program(x, value), expected)
        npt.assert_array_equal(lax.pad(x, value, config), expected)
        kept = padded(np.ones_like(x), 0.0, config)
        by_x, by_value = slopes(x, value)
        npt.assert_allclose(by_value, 2 * value * (kept.size - kept.sum()), rtol=1e-10, atol=1e-12)
        npt.assert_allclose(np.sum(by_x * x), 2 * np.sum((expected * kept) ** 2), rtol=1e-10)
    assert program.compilations == slopes.compilations == 1
