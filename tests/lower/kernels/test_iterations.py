"""Loops whose steps do not depend on each other are loops like others, and run in parallel."""

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def rows(function):
    """The function of each row, set one by one."""
    return lambda x: harp.fori_loop(0, x.shape[0], lambda i, out: out.at[i].set(function(x[i])), hnp.zeros_like(x))


STEPS = {
    "elementwise": (lambda r: hnp.sin(r) * 2, lambda r: np.sin(r) * 2),
    "sums": (lambda r: r / (1 + hnp.sum(r * r)), lambda r: r / (1 + (r * r).sum())),
    "array of its own": (lambda r: hnp.cumsum(hnp.exp(r))[::-1] @ hnp.outer(r, r), None),
    "sort": (lambda r: hnp.sort(r) * hnp.sort(r)[0], lambda r: np.sort(r) * r.min()),
    "loop": (lambda r: harp.fori_loop(0, 9, lambda i, c: hnp.sin(c) + r, r), None),
    "loop that data ends": (lambda r: harp.while_loop(lambda c: hnp.sum(c * c) > 1, lambda c: 0.5 * c, r), None),
    "update": (lambda r: harp.fori_loop(1, r.shape[0], lambda i, c: c.at[i].add(0.5 * c[i - 1]), r), None),
    "branch": (lambda r: harp.cond(r[0] > 0, lambda: r * 2, lambda: hnp.exp(r)), None),
}


@pytest.mark.parametrize("loop", [lambda f: lambda x: harp.map(f, x), rows], ids=["map", "set"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_that_carry_nothing(name, loop):
    step, plain = STEPS[name]
    compiled = harp.jit(loop(step))
    slope = harp.jit(harp.grad(lambda x: hnp.sum(loop(step)(x) ** 2)))
    for shape in ((5, 4), (0, 4), (1, 4), (70, 33)):
        x = RNG.normal(size=shape)
        wanted = [plain(r) if plain else np.asarray(step(hnp.asarray(r))) for r in x]
        npt.assert_allclose(np.asarray(compiled(x)), np.reshape(wanted, shape), rtol=1e-10, atol=1e-12)
        one = harp.grad(lambda r: hnp.sum(step(r) ** 2))
        slopes = [np.asarray(one(hnp.asarray(r))) for r in x[:5]]
        npt.assert_allclose(
            np.asarray(slope(x))[:5], np.reshape(slopes, (len(slopes), shape[1])), rtol=1e-9, atol=1e-11
        )
    text = compiled.lower(x).loops
    assert "for parallel" in text and not text.split("kernel 0", 1)[1].lstrip().startswith("repeat")


def test_elements_that_are_read_or_set_elsewhere_stay_in_order():
    reads = lambda x: harp.fori_loop(0, x.shape[0], lambda i, o: o.at[i].set(x[i] + o[i - 1]), hnp.zeros_like(x))
    other = lambda x: harp.fori_loop(0, x.shape[0], lambda i, o: o.at[i // 2].set(x[i]), hnp.ones_like(x))
    fewer = lambda x: harp.fori_loop(0, 3, lambda i, o: o.at[i].set(2 * x[i]), hnp.ones_like(x))
    added = lambda x: harp.fori_loop(0, x.shape[0], lambda i, o: o.at[i].add(x[i]), hnp.ones_like(x))
    for n in (7, 3, 2):
        x = RNG.normal(size=n)
        npt.assert_allclose(np.asarray(harp.jit(reads)(x)), np.cumsum(x))
        expected = np.ones(n)
        for i in range(n):
            expected[i // 2] = x[i]
        npt.assert_allclose(np.asarray(harp.jit(other)(x)), expected)
        npt.assert_allclose(np.asarray(harp.jit(fewer)(x)), np.where(np.arange(n) < 3, 2 * x, 1))
        npt.assert_allclose(np.asarray(harp.jit(added)(x)), 1 + x)


def test_the_same_bits_for_every_number_of_threads():
    x = RNG.normal(size=(3000, 17))
    found = [np.asarray(harp.jit(lambda x: harp.map(STEPS["sums"][0], x), threads=threads)(x)) for threads in (1, 2)]
    assert found[0].tobytes() == found[1].tobytes()
