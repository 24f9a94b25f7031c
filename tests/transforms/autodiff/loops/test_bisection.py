"""Reverse mode in memory for the logarithm of the steps, beside what keeps all of them, and finite differences."""

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.debug
import harp.numpy as hnp
from harp.errors import ArgumentError

RNG = np.random.default_rng(0)
COUNTS = (5, 0, 1, 2, 3, 4, 7, 8, 9, 33, 100)


def loss(w, start, xs, every, reverse):
    """States that are arrays and a count, of elements and what is the same in all steps; elements are made, too."""

    def step(state, x):
        a, count = state
        a = hnp.sin(a * w) + x * count
        return (a, count + 0.25), hnp.sum(a) * x[0]

    (last, _), made = harp.scan(step, (start, 0.0), xs, reverse=reverse, checkpoint_every=every)
    return hnp.sum(last * last) + hnp.sum(made * made)


def plain(w, start, xs, reverse):
    a, count, total = start, 0.0, 0.0
    for x in xs[::-1] if reverse else xs:
        a = np.sin(a * w) + x * count
        count += 0.25
        total += (a.sum() * x[0]) ** 2
    return (a * a).sum() + total


@pytest.mark.parametrize("reverse", [False, True])
def test_as_if_all_were_kept(reverse):
    by_log = harp.jit(harp.grad(lambda *a: loss(*a, "log", reverse), (0, 1, 2)))
    kept = harp.jit(harp.grad(lambda *a: loss(*a, None, reverse), (0, 1, 2)))
    for count in COUNTS:
        arguments = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=(count, 3))
        for a, b in zip(by_log(*arguments), kept(*arguments), strict=True):
            npt.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-13)
    assert by_log.compilations == 1


def test_finite_differences():
    w, start, xs = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=(9, 3)) * 0.3
    slope = np.asarray(harp.jit(harp.grad(lambda s: loss(w, s, xs, "log", False)))(start))
    for k, e in enumerate(np.eye(3) * 1e-6):
        change = plain(w, start + e, xs, False) - plain(w, start - e, xs, False)
        npt.assert_allclose(slope[k], change / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_other_transforms():
    w, start, xs = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=(12, 3)) * 0.3
    batch = np.stack([w, -w, 0.5 * w])
    by_log, kept = (lambda w, every=every: loss(w, start, xs, every, False) for every in ("log", None))
    for transform, given in (
        (lambda f: harp.vmap(harp.grad(f)), batch),
        (harp.hessian, w),
        (lambda f: harp.grad(lambda w: hnp.sum(harp.vmap(f)(w))), batch),
        (lambda f: lambda w: harp.jvp(harp.grad(f), (w,), (w,))[1], w),
        (lambda f: harp.grad(harp.checkpoint(f)), w),
    ):
        found, wanted = (np.asarray(harp.jit(transform(f))(given)) for f in (by_log, kept))
        npt.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


def test_a_million_steps():
    """Three megabytes of states would be kept for each hundred thousand of them."""

    def turned(start, steps):
        return harp.fori_loop(0, steps.shape[0], lambda i, s: hnp.sin(s) + 0.5 * start, start, checkpoint_every="log")

    slope = harp.jit(harp.grad(lambda start, steps: hnp.sum(turned(start, steps))))
    start = np.ones(100)
    assert slope.lower(start, np.empty(1_000_000)).memory().scratch < 200_000
    steps = np.empty(2000)
    state, derivative = start, np.ones(100)
    for _ in steps:
        state, derivative = np.sin(state) + 0.5 * start, np.cos(state) * derivative + 0.5
    npt.assert_allclose(np.asarray(slope(start, steps)), derivative, rtol=1e-10)


def test_calls_are_made_once(capsys):
    def step(c, x):
        harp.debug.print("{}", x)
        return c * x, None

    slope = harp.jit(harp.grad(lambda xs: harp.scan(step, 1.0, xs, checkpoint_every="log")[0]))
    npt.assert_allclose(np.asarray(slope(np.array([1.0, 2.0, 4.0]))), [8, 4, 2])
    assert capsys.readouterr().out.split() == ["1.0", "2.0", "4.0"]


def test_only_a_number_or_log():
    with pytest.raises(ArgumentError, match="a number of steps, or 'log', not 'root'"):
        harp.scan(lambda c, x: (c, x), 0.0, np.ones(3), checkpoint_every="root")
