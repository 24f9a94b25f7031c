"""Steps that read a row, a column or an element of the array which they change all over."""

import re

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)

# What a step makes of the array a and the number t of the step, with NumPy's functions or harp's.
IN_PLACE = {
    "outer product": lambda xp, a, t: a - 0.1 * a[:, t][:, None] * a[t],
    "shortest path": lambda xp, a, t: xp.minimum(a, a[:, t][:, None] + a[t]),
    "row": lambda xp, a, t: 0.5 * a + a[t],
    "row backwards": lambda xp, a, t: 0.5 * a + a[t][::-1],
    "column in another order": lambda xp, a, t: 0.5 * a + a[::-1, t][:, None],
    "element": lambda xp, a, t: a / (2 + a[t, t] ** 2),
    "first and last": lambda xp, a, t: 0.3 * a - a[0] + a[-1] * a[:, 0][:, None] * a[0, 0],
    "sum of a row": lambda xp, a, t: 0.5 * a + xp.sum(a[t]) / (1 + xp.sum(a * a, axis=1, keepdims=True)),
    "masked": lambda xp, a, t: a - xp.where(xp.arange(a.shape[0]) > t, a[:, t], 0.0)[:, None] * a[t] / 3,
    "whole": lambda xp, a, t: a * 0.5 + (a[t] + 1) * (a[:, t] - 1)[:, None],
}
TWO_ARRAYS = {
    "neighbours": lambda xp, a, t: 0.5 * a + a[t] + xp.concatenate([a[1:], a[:1]]),
    "transposed": lambda xp, a, t: 0.5 * a.T + a[t],
    "next row, if there is one": lambda xp, a, t: 0.5 * a + xp.concatenate([a[1:], 0 * a[:1]])[t],
}


def _loop(step):
    return lambda a: harp.fori_loop(0, a.shape[0], lambda t, a: step(hnp, a, t), a)


def _looped(step, a):
    for t in range(len(a)):
        a = step(np, a, t)
    return a


def _squares(program):
    """How many arrays of two axes the program has for itself."""
    return len(re.findall(r"slot \d+: \w+: f64\[[^\]]+, [^\]]+\]", program))


@pytest.mark.parametrize("name", [*IN_PLACE, *TWO_ARRAYS])
def test_the_same_numbers_as_numpy(name):
    step = {**IN_PLACE, **TWO_ARRAYS}[name]
    compiled, checked = harp.jit(_loop(step)), harp.jit(_loop(step), check=True)
    for n in (33, 5, 2, 1):
        a = RNG.normal(size=(n, n))
        expected = _looped(step, a)
        npt.assert_allclose(np.asarray(compiled(a)), expected, rtol=1e-9, atol=1e-12)
        if n < 6:
            npt.assert_allclose(np.asarray(checked(a)), expected, rtol=1e-9, atol=1e-12)
    if name not in ("first and last", "next row, if there is one"):  # an empty array has none
        assert np.asarray(compiled(np.zeros((0, 0)))).shape == (0, 0)


@pytest.mark.parametrize("name", IN_PLACE)
def test_one_array_is_changed_in_place(name):
    a = RNG.normal(size=(5, 5))
    text = harp.jit(_loop(IN_PLACE[name])).lower(a).loops
    assert _squares(text) == 0 and "out1, out0 = out0, out1" not in text


@pytest.mark.parametrize("name", ["neighbours", "transposed"])
def test_where_other_elements_are_read_two_arrays_take_turns(name):
    assert _squares(harp.jit(_loop(TWO_ARRAYS[name])).lower(RNG.normal(size=(5, 5))).loops) == 1


def test_parts_of_arrays_of_three_axes():
    def step(xp, a, t):
        return a - a[:, t, :][:, None, :] * a[t, :, 0][:, None] + a[0, t, :] / 7

    compiled = harp.jit(_loop(step))
    for n in (9, 4, 1):
        a = RNG.normal(size=(n, n, 3)) / 4
        npt.assert_allclose(np.asarray(compiled(a)), _looped(step, a), rtol=1e-8, atol=1e-12)


def test_what_is_not_much_less_than_the_array_is_not_copied():
    """Where and how fast something is, in one array of two rows."""
    step = lambda xp, a: xp.stack([a[0] + 0.1 * a[1], a[1] - 0.1 * a[0]])
    compiled = harp.jit(lambda a: harp.fori_loop(0, 20, lambda _, a: step(hnp, a), a))
    a = expected = RNG.normal(size=(2, 50))
    for _ in range(20):
        expected = step(np, expected)
    npt.assert_allclose(np.asarray(compiled(a)), expected, rtol=1e-12)
    assert "out1, out0 = out0, out1" in compiled.lower(a).loops


def test_what_two_arrays_read_of_each_other():
    """Both are changed, and each step reads a row of the other one as it was before."""

    def step(t, pair):
        a, b = pair
        return 0.5 * a - b[t] * a[:, t][:, None], 0.25 * b + a[t] * b[t, t]

    compiled = harp.jit(lambda a, b: harp.fori_loop(0, a.shape[0], step, (a, b)))
    for n in (17, 3, 1):
        a, b = RNG.normal(size=(2, n, n)) / 3
        found = compiled(a, b)
        for t in range(n):
            a, b = step(t, (a, b))
        npt.assert_allclose(np.asarray(found[0]), a, rtol=1e-9, atol=1e-12)
        npt.assert_allclose(np.asarray(found[1]), b, rtol=1e-9, atol=1e-12)


def test_a_loop_that_data_ends_and_numbers_that_are_not_finite():
    step = IN_PLACE["outer product"]
    steps = harp.jit(
        lambda a: harp.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(hnp, c[1], 1) * 1.5), (0, a))[1]
    )
    a = RNG.normal(size=(6, 6))
    a[1, 2], a[4, 1], a[3, 3] = np.inf, np.nan, -0.0
    expected = a
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            expected = step(np, expected, 1) * 1.5
    npt.assert_allclose(np.asarray(steps(a)), expected, rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_for_every_number_of_threads(threads):
    a = RNG.normal(size=(301, 301)) / 20
    found = harp.jit(_loop(IN_PLACE["outer product"]), threads=threads)(a)
    again = harp.jit(_loop(IN_PLACE["outer product"]), threads=3)(a)
    assert np.asarray(found).tobytes() == np.asarray(again).tobytes()
    npt.assert_allclose(np.asarray(found), _looped(IN_PLACE["outer product"], a), rtol=1e-7, atol=1e-9)


TERMS = [
    lambda xp, a, t: a[t],
    lambda xp, a, t: a[:, t][:, None],
    lambda xp, a, t: a[t, t],
    lambda xp, a, t: a[0],
    lambda xp, a, t: a[:, -1][:, None] * a[0, -1],
    lambda xp, a, t: a[a.shape[0] - 1 - t],
    lambda xp, a, t: xp.where(xp.arange(a.shape[0]) >= t, a[t], a[:, t][:, None]),
    lambda xp, a, t: xp.maximum(a[::-1, t][:, None], a[t, ::-1]),
    lambda xp, a, t: xp.sum(a[:, t] * a[t]),
    lambda xp, a, t: xp.sum(a, axis=1)[:, None] / 5,
    lambda xp, a, t: a.T / 3,
    lambda xp, a, t: a,
]


@given(
    first=st.lists(st.sampled_from(range(len(TERMS))), min_size=1, max_size=3),
    second=st.lists(st.sampled_from(range(len(TERMS))), max_size=2),
    n=st.integers(1, 7),
    seed=st.integers(0, 99),
)
def test_random_steps(first, second, n, seed):
    """Sums and products of parts, the second of what the first one has made."""

    def step(xp, a, t):
        new = 0.3 * a + sum(TERMS[k](xp, a, t) for k in first) / 7
        for k in second:
            new = 0.5 * new + xp.tanh(TERMS[k](xp, new, t)) * TERMS[first[0]](xp, a, t) / 3
        return new

    a = np.random.default_rng(seed).normal(size=(n, n))
    npt.assert_allclose(np.asarray(harp.jit(_loop(step))(a)), _looped(step, a), rtol=1e-8, atol=1e-10)
