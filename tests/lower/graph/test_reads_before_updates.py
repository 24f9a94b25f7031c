"""Elements that are read between two changes of what a loop carries: the array stays in place, and values are right."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def one_after_the_other(i, c, put):
    c = put(c, 0, hnp.sin(c[1]))
    c = put(c, 1, c[2] * c[0])
    return put(c, -1, c[1] + c[0])


def places_that_may_be_one(i, c, put):
    """The last place is the second one in an array of two."""
    c = put(c, 1, 0.5 * c[-1] + 1)
    c = put(c, -1, c[1] * c[0])
    return put(c, 0, c[-1] - c[1])


def beside_the_number_of_the_step(i, c, put):
    c = put(c, i, hnp.sin(c[i + 1]))
    c = put(c, i + 1, c[i] + c[i - 1])
    return put(c, i - 1, c[0] * c[i + 1])


def slices(i, c, put):
    c = put(c, slice(0, 2), c[2:4] * 0.5)
    c = put(c, slice(2, 4), c[4:6] + c[0:2])
    return put(c, slice(1, 3), c[2:4])


def of_what_was_before(i, c, put):
    first, second = hnp.sin(c[1] * c[i]), c[0] + c[-1]
    return put(put(c, 0, first), 1, second)


FUNCTIONS = (one_after_the_other, places_that_may_be_one, beside_the_number_of_the_step, slices, of_what_was_before)
STEPS = {f.__name__: f for f in FUNCTIONS}
SMALLEST = dict(zip(STEPS, (3, 2, 4, 6, 2), strict=True))


def put_in_place(c, key, value):
    return c.at[key].set(value)


def put_to_a_copy(c, key, value):
    c = c.copy()
    c[key if isinstance(key, slice) else np.asarray(key)] = value
    return c


def loop(name, c):
    return harp.fori_loop(1, c.shape[0] - 1, lambda i, c: STEPS[name](i, c, put_in_place), c)


@pytest.mark.parametrize("name", STEPS)
def test_values(name):
    compiled = harp.jit(lambda c: loop(name, c))
    for n in (9, SMALLEST[name], SMALLEST[name] + 1):
        c = RNG.normal(size=n)
        expected = c
        for i in range(1, n - 1):
            expected = np.asarray(STEPS[name](i, expected, put_to_a_copy))
        npt.assert_allclose(np.asarray(compiled(c)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", STEPS)
def test_gradients(name):
    direction = RNG.normal(size=9)
    value = harp.jit(lambda c: hnp.sum(loop(name, c) * direction))
    c = RNG.uniform(0.2, 0.9, 9)
    found = harp.jit(harp.grad(lambda c: hnp.sum(loop(name, c) * direction)))(c)
    steps = 1e-6 * np.eye(9)
    expected = [(float(value(c + step)) - float(value(c - step))) / 2e-6 for step in steps]
    npt.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-8)


def beyond_the_first(i, c, put, read):
    """The first step sets the last element."""
    c = put(c, i - 1, i + 5.0)
    return put(c, 0, read(c, -1) + c[0])


def from_the_end(i, c, put, read):
    c = put(c, hnp.arange(2), read(c, hnp.arange(2)) * 2 + 1.0)
    return put(c, 2, read(c, hnp.arange(2) - 2).sum())


def one_place_twice(i, c, put, read):
    c = put(c, hnp.arange(3) * 0 + i, hnp.asarray([1.0, 2.0, 3.0]) * (i + 1))
    return put(c, hnp.arange(3), read(c, hnp.arange(3) * 0 + i))


def places_of_two_axes(i, c, put, read):
    places = hnp.arange(6).reshape(2, 3) % 3 + i
    c = put(c, places, hnp.arange(6.0).reshape(2, 3) * (i + 1))
    return put(c, hnp.arange(6).reshape(2, 3), read(c, places) + i)


def read_plainly(c, key):
    return c[key]


def read_or_fill(c, key):
    return c.at[key].get(mode="fill", fill_value=7.0)


@pytest.mark.parametrize("read", [read_plainly, read_or_fill])
@pytest.mark.parametrize(
    ("step", "more"),
    [
        (beyond_the_first, 0),
        (beyond_the_first, 9),
        (from_the_end, 2),
        (from_the_end, 9),
        (one_place_twice, 9),
        (places_of_two_axes, 9),
    ],
)
def test_indices_from_the_end_and_places_that_are_set_twice(step, more, read):
    """Some are proven to be inside, as the array is longer than the loop."""

    def function(c):
        start = hnp.concatenate([c, hnp.ones(more)])
        return harp.fori_loop(0, c.shape[0], lambda i, c: step(i, c, put_in_place, read), start)

    compiled = harp.jit(function)
    for n in (3, 1, 4, 6):
        c = RNG.normal(size=n)
        expected = np.concatenate([c, np.ones(more)])
        for i in range(n):
            expected = step(i, expected, put_to_a_copy, lambda c, key: c[np.asarray(key)])
        npt.assert_allclose(np.asarray(compiled(c)), expected, rtol=1e-12)


IN_PLACE = [
    *((name, False) for name in ("one_after_the_other", "beside_the_number_of_the_step", "slices")),
    *(("of_what_was_before", of_gradient) for of_gradient in (False, True)),
]


@pytest.mark.parametrize(("name", "of_gradient"), IN_PLACE)
def test_the_array_is_not_copied_in_each_step(name, of_gradient):
    value = lambda c: hnp.sum(loop(name, c))
    cost = harp.jit(harp.grad(value) if of_gradient else value).lower(np.ones(9)).cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (200, 400))
    assert large.steps < 2.5 * small.steps, cost
