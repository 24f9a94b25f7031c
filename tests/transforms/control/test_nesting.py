"""Loops and branches that lie in each other: their cost is no power of the depth."""

from __future__ import annotations

import numpy as np
import pytest

import harp
from harp import errors

# Of a function of x and a flag, which is the same for all examples of a batch, one that has it inside.
KINDS = {
    "loops": lambda f: lambda x, flag: harp.fori_loop(0, 1, lambda i, c: f(c, flag), x),
    "branches": lambda f: lambda x, flag: harp.cond(x > 0, f, lambda x, flag: x * 2, x, flag),
    "one branch for all": lambda f: lambda x, flag: harp.cond(flag > 0, f, lambda x, flag: x * 2, x, flag),
    "tested loops": lambda f: lambda x, flag: harp.while_loop(lambda c: c < 1, lambda c: f(c, flag) + 1, x),
}


def nested(kind, depth):
    f = lambda x, flag: x * 1.25
    for _ in range(depth):
        f = KINDS[kind](f)
    return f


TRANSFORMS = {
    "jit": lambda f: harp.jit(f)(0.5, 1),
    "vmap": lambda f: harp.jit(harp.vmap(f, in_axes=(0, None)))(np.full(2, 0.5), 1)[1],
    "grad": lambda f: harp.jit(harp.grad(f))(0.5, 1),
    "jvp": lambda f: harp.jvp(lambda x: f(x, 1), (0.5,), (1.0,))[1],
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_depth_of_twenty(kind, transform):
    """Twice the work for one level more would be a million times the work."""
    if kind == "tested loops" and transform == "grad":
        pytest.skip("a loop that data ends has no reverse mode")
    f = nested(kind, 15 if kind == "tested loops" else 20)
    if kind != "tested loops":
        expected = 1.25 if transform in ("grad", "jvp") else 0.625
    else:  # the innermost function runs once: 0.5 * 1.25 + 1 ends all loops but for what they add
        expected = 1.25 if transform == "jvp" else 0.625 + 15
    np.testing.assert_allclose(TRANSFORMS[transform](f), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["loops", "branches"])
def test_too_deep(kind):
    with pytest.raises(errors.NestingError, match=r"nest too deeply.*setrecursionlimit"):
        harp.jit(nested(kind, 60))(0.5, 1)


def test_a_test_that_becomes_one_of_each_example():
    """It is the same for all before the first step, which reads nothing of what is carried."""
    ends = np.array([0.0, 5.0, 1.0])

    def f(end):
        return harp.while_loop(lambda c: c[0] < 3, lambda c: (end, c[1] + 1), (0.0, 0))[1]

    def bounded(end):
        return harp.while_loop(lambda c: (c[0] < 3) & (c[1] < 9), lambda c: (end, c[1] + 1), (0.0, 0))

    last, steps = harp.jit(harp.vmap(bounded))(ends)
    np.testing.assert_array_equal(last, ends)
    np.testing.assert_array_equal(steps, [9, 1, 9])
    assert harp.vmap(f)(np.array([4.0, 5.0])).tolist() == [1, 1]
