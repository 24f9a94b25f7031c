"""The values of index expressions at all positions of a shape at once, as NumPy arrays that broadcast to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from harp.trace.index.polynomial import Atom, Fold, Index, Loop, evaluate
from harp.trace.scalar.dtypes import NDArray

Sizes = Callable[[Atom], int]


def numbers(shape: tuple[Index, ...], sizes: Sizes) -> tuple[int, ...]:
    """A shape with sizes as numbers."""
    return tuple(evaluate(p, sizes) for p in shape)


def on_grid(p: Index, shape: tuple[int, ...], sizes: Sizes) -> NDArray:
    """The values of an index expression at all positions; an axis on which they do not depend has one element."""

    def value(atom: Atom) -> NDArray:
        if isinstance(atom, Loop):
            ends = [1] * len(shape)
            ends[atom.axis] = shape[atom.axis]
            return np.arange(shape[atom.axis], dtype=np.int64).reshape(ends)
        return np.asarray(sizes(atom))

    return Fold(_total, _term, _quotient, _at_least_zero, value)(p)


# Modulo 2**64, as in a compiled program: what fits is exact, whatever the terms are.


def _total(terms: list[NDArray]) -> NDArray:
    return reduce(_sum, terms, np.asarray(0, np.int64))


def _sum(a: NDArray, b: NDArray) -> NDArray:
    return np.asarray(np.add(a, b))


def _term(coefficient: int, factors: list[NDArray]) -> NDArray:
    return reduce(_product, factors, np.asarray((coefficient + 2**63) % 2**64 - 2**63, np.int64))


def _product(a: NDArray, b: NDArray) -> NDArray:
    return np.asarray(np.multiply(a, b))


def _quotient(a: NDArray, b: NDArray) -> NDArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.floor_divide(a, b))


def _at_least_zero(a: NDArray) -> NDArray:
    return np.asarray(np.maximum(a, 0))
