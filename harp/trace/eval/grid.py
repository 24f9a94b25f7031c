"""The values of index expressions at all positions of a shape at once, as NumPy arrays that broadcast to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from harp.trace.index.polynomial import Atom, FloorDiv, Index, Loop, Relu, evaluate
from harp.trace.scalar.dtypes import NDArray

Sizes = Callable[[Atom], int]


def numbers(shape: tuple[Index, ...], sizes: Sizes) -> tuple[int, ...]:
    """A shape with sizes as numbers."""
    return tuple(evaluate(p, sizes) for p in shape)


def on_grid(p: Index, shape: tuple[int, ...], sizes: Sizes) -> NDArray:
    """The values of an index expression at all positions; an axis on which they do not depend has one element."""

    def value(atom: Atom) -> int:
        if isinstance(atom, Loop):
            ends = [1] * len(shape)
            ends[atom.axis] = shape[atom.axis]
            # Arrays go through the same arithmetic as numbers.
            return cast(int, np.arange(shape[atom.axis], dtype=np.int64).reshape(ends))
        return sizes(atom)

    return np.asarray(_grid(p, value))


def _grid(p: Index, value: Callable[[Atom], int]) -> NDArray:
    """Modulo 2**64, as in a compiled program: what fits is exact, whatever the terms are."""
    total = np.asarray(0, np.int64)
    for monomial, coefficient in p.terms:
        term = np.asarray((coefficient + 2**63) % 2**64 - 2**63, np.int64)
        for atom in monomial:
            term = np.asarray(np.multiply(term, _grid_atom(atom, value)))
        total = np.asarray(np.add(total, term))
    return total


def _grid_atom(atom: Atom, value: Callable[[Atom], int]) -> NDArray:
    if isinstance(atom, FloorDiv):
        with np.errstate(divide="ignore"):
            return np.asarray(np.floor_divide(_grid(atom.num, value), _grid(atom.den, value)))
    if isinstance(atom, Relu):
        return np.asarray(np.maximum(_grid(atom.arg, value), 0))
    return np.asarray(value(atom))
