"""Loops and branches that lie in each other: their cost is no power of the depth."""

from __future__ import annotations

import numpy as np
import pytest

import harp
from harp import errors

KINDS = {
    "loops": lambda f: lambda x: harp.fori_loop(0, 1, lambda i, c: f(c), x),
    "branches": lambda f: lambda x: harp.cond(x > 0, f, lambda x: x * 2, x),
    "one branch for all": lambda f: lambda x: harp.cond(KIND > 0, f, lambda x: x * 2, x),
    "tested loops": lambda f: lambda x: harp.while_loop(lambda c: c < 1, lambda c: f(c) + 1, x),
}
KIND = np.ones(())


def nested(kind, depth):
    f = lambda x: x * 1.25
    for _ in range(depth):
        f = KINDS[kind](f)
    return f


TRANSFORMS = {
    "jit": lambda f: harp.jit(f)(0.5),
    "vmap": lambda f: harp.jit(harp.vmap(f))(np.full(2, 0.5))[1],
    "grad": lambda f: harp.grad(f)(0.5),
    "jvp": lambda f: harp.jvp(f, (0.5,), (1.0,))[1],
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


@pytest.mark.parametrize("kind", ["loops", "branches"])
def test_too_deep(kind):
    with pytest.raises(errors.NestingError, match=r"nest too deeply.*setrecursionlimit"):
        harp.jit(nested(kind, 60))(0.5)
