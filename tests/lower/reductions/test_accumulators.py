"""Several accumulators for a sum along memory; searches for the first position that fits stop where all are found."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp


def source(f, *arguments):
    return harp.jit(f).lower(*arguments).source


@pytest.mark.parametrize("f", [hnp.sum, hnp.max, lambda x: hnp.sum(hnp.abs(x))])
def test_accumulators_stay_in_registers(f):
    head, lane = source(f, np.ones(3)).split("HARP_UNROLL(16)")[1].splitlines()[1:3]
    assert "< 32;" in head and "in0[" in lane


def test_functions_are_not_written_out():
    assert "HARP_UNROLL" not in source(lambda x: hnp.sum(hnp.exp(x)), np.ones(3))


COUNT = 16


def first(xp, x, last):
    """Costly enough not to be computed for several places at once."""
    places = xp.arange(COUNT)
    fits = xp.tanh(xp.sin(x[:, None] + places * 0.1)) < 0.2
    return xp.min(xp.where(fits, places, last), axis=1)


# The number of what has no place, and whether its search may stop.
LAST = {"the last one": (COUNT - 1, True), "none": (99, True), "one before": (3, False)}
SEARCHES = {name: harp.jit(lambda x, last=last: first(hnp, x, last)) for name, (last, _) in LAST.items()}


@pytest.mark.parametrize("name", LAST)
def test_the_first_place_is_found_at_every_length(name):
    rng = np.random.default_rng(0)
    for n in (0, 1, 63, 64, 65, 511, 513, 1300):
        for high in (0.05, 1.0, 30.0):  # found at once, soon, and in turn
            x = rng.uniform(0, high, n)
            np.testing.assert_array_equal(np.asarray(SEARCHES[name](x)), first(np, x, LAST[name][0]))
    assert SEARCHES[name].compilations == 1


@pytest.mark.parametrize("name", LAST)
def test_only_a_search_stops(name):
    """What is still to come may be less than the position, where that is the number of what has none."""
    assert ("break;" in SEARCHES[name].lower(np.ones(3)).source) == LAST[name][1]


def test_no_attempt_is_made_for_numbers_that_are_accepted():
    draw = harp.jit(lambda key, a: harp.random.gamma(key, a))
    assert draw.lower(harp.random.key(0), np.ones(3, np.float32)).source.count("break;") == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_first_positions(dtype: str) -> None:
    """Of the largest element, wherever it is, and of the first of several; lanes count blocks in 32 bits."""
    whole = harp.jit(lambda x: (hnp.argmax(x), hnp.argmin(x), hnp.argmax(x, axis=0)))
    rows = harp.jit(lambda x: hnp.argmax(x, axis=1))
    assert "_near" in whole.lower(np.ones(9, dtype)).loops
    assert "_near" in rows.lower(np.ones((9, 9), dtype)).loops
    rng = np.random.default_rng(0)
    for size in (33, 64, 100, 8191, 8193, 20_000):
        x = rng.integers(-9, 9, size).astype(dtype)
        places = {0, size - 1, size // 2, *rng.integers(0, size, 5)}
        for place in places:
            y = x.copy()
            y[[place, *[p for p in places if p > place]]] = 99
            assert [int(k) for k in whole(y)] == [place, int(y.argmin()), place]
    table = rng.integers(-3, 3, (40, 77)).astype(dtype)
    np.testing.assert_array_equal(rows(table), table.argmax(axis=1))
    if dtype != "int8":
        table[3:9, 50] = np.nan
        np.testing.assert_array_equal(rows(table), table.argmax(axis=1))
        assert int(whole(np.full(500, -np.inf, dtype))[0]) == 0
