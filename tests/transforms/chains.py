"""Chains of transforms: each takes a function from n numbers to n numbers, and gives another one.

    chain = ("grad", "vmap", "jit")      the gradient of the batch of what is compiled: the last one is the innermost

The directions, weights and factors in them depend on the argument where that is possible, so that derivatives of one
transform that were taken for those of another one would show.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from corpus import FUNCTIONS, JAX, Library, numpy_library

Function = Callable[[Any], Any]
SIZES = (2, 0, 1, 5, 33)


def _jit(lib: Library, f: Function) -> Function:
    return lib.jit(f)


def _grad(lib: Library, f: Function) -> Function:
    def gradient(x: Any) -> Any:
        weights = lib.xp.cos(x + 0.3)
        return lib.grad(lambda y: lib.xp.sum(f(y) * weights))(x)

    return gradient


def _jvp(lib: Library, f: Function) -> Function:
    return lambda x: lib.jvp(f, (x,), (lib.xp.cos(x + 0.7),))[1]


def _vmap(lib: Library, f: Function) -> Function:
    """Three examples, of which branches on the sum take different sides, and a factor that each reads from outside."""

    def batch(x: Any) -> Any:
        factors = lib.xp.asarray(np.array([1.0, -0.7, 0.4]))
        rows = factors[:, None] * x
        return lib.xp.sum(lib.vmap(lambda row, s: f(row) * s + 0.1 * x)(rows, factors), 0)

    return batch


def _checkpoint(lib: Library, f: Function) -> Function:
    return lib.checkpoint(f)


def _scan(lib: Library, f: Function) -> Function:
    """Two steps; what is carried, and what is made on the way, are results."""

    def steps(x: Any) -> Any:
        scales = lib.xp.asarray(np.array([0.8, -0.6]))
        last, made = lib.scan(lambda c, s: (lib.xp.tanh(f(c)) * s, c * s), x, scales)
        return last + lib.xp.sum(made, 0)

    return steps


def _cond(lib: Library, f: Function) -> Function:
    def branch(x: Any) -> Any:
        return lib.cond(lib.xp.sum(x) > -0.3, f, lambda y: lib.xp.sin(y) * x, x)

    return branch


TRANSFORMS: dict[str, Callable[[Library, Function], Function]] = {
    "jit": _jit,
    "grad": _grad,
    "jvp": _jvp,
    "vmap": _vmap,
    "checkpoint": _checkpoint,
    "scan": _scan,
    "cond": _cond,
}
Chain = tuple[str, ...]
PAIRS: list[Chain] = list(itertools.product(TRANSFORMS, repeat=2))
TRIPLES: list[Chain] = list(itertools.product(TRANSFORMS, repeat=3))


def applied(lib: Library, chain: Chain, name: str) -> Function:
    """The chain of transforms of a function of the corpus."""
    function: Function = partial(FUNCTIONS[name], lib)
    for transform in reversed(chain):
        function = TRANSFORMS[transform](lib, function)
    return lambda x: function(lib.xp.asarray(x))


def point(n: int) -> np.ndarray:
    """An argument, the same at each call, whose elements keep away from each other and from 0."""
    return np.random.default_rng(n + 7).permutation(np.linspace(-0.9, 1.2, n + 1)[1:]) + 0.013


def by_differences(chain: Chain, name: str, n: int, step: float = 1.0) -> np.ndarray:
    """The result in NumPy, in extended precision; `step` makes the steps of differences longer or shorter."""
    return np.asarray(applied(numpy_library(step), chain, name)(point(n).astype(np.longdouble)), np.float64)


def by_jax(chain: Chain, name: str, n: int) -> np.ndarray:
    """The result in JAX, in double precision."""
    assert JAX is not None
    return np.asarray(JAX.jit(applied(JAX, chain, name))(point(n)))


def evaluations(chain: Chain, n: int) -> int:
    """How often NumPy computes the function."""
    costs = {"grad": 4 * n, "jvp": 4, "vmap": 3, "scan": 2}
    return int(np.prod([costs.get(t, 1) for t in chain]))
