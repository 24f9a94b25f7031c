"""Threefry-2x32 with 20 rounds: 64 random bits for a key and a counter of 64 bits each.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
Additions, rotations and exclusive ors of 32-bit integers only: the same bits on every machine, in all vector lanes. It
is written once, and computes with scalar expressions in programs, with arrays and Python's integers outside of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from harp.trace.scalar.dtypes import u32
from harp.trace.scalar.expr import Expr, const

ROUNDS = 20
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA  # so that no key schedule is all zeros

W = TypeVar("W")
Words = tuple[Expr, Expr]
_MASK = 0xFFFFFFFF
_Array = np.ndarray[Any, np.dtype[np.uint32]]


class Arithmetic(NamedTuple, Generic[W]):
    """What a word is, and the four operations on it."""

    word: Callable[[int], W]
    add: Callable[[W, W], W]
    xor: Callable[[W, W], W]
    rotated: Callable[[W, int], W]


def word(value: int) -> Expr:
    """A number as a 32-bit word."""
    return const(value, u32)


def _rotated_expression(a: Expr, by: int) -> Expr:
    return a << word(by) | a >> word(32 - by)


def _rotated_array(a: _Array, by: int) -> _Array:
    return (a << np.uint32(by)) | (a >> np.uint32(32 - by))


EXPRESSIONS: Arithmetic[Expr] = Arithmetic(word, lambda a, b: a + b, lambda a, b: a ^ b, _rotated_expression)
ARRAYS: Arithmetic[_Array] = Arithmetic(  # with an axis: NumPy warns where a number wraps
    lambda value: np.full(1, value, np.uint32), lambda a, b: a + b, lambda a, b: a ^ b, _rotated_array
)
INTEGERS: Arithmetic[int] = Arithmetic(
    int, lambda a, b: (a + b) & _MASK, lambda a, b: a ^ b, lambda a, by: (a << by | a >> (32 - by)) & _MASK
)


def threefry2x32(key: tuple[W, W], counter: tuple[W, W], by: Arithmetic[W]) -> tuple[W, W]:
    """The block of a counter: for each key a permutation of the counters, with no pattern that tests have found."""
    schedule = (*key, by.xor(by.xor(*key), by.word(PARITY)))
    a, b = (by.add(c, k) for c, k in zip(counter, key, strict=True))
    for number in range(ROUNDS):
        a = by.add(a, b)
        b = by.xor(by.rotated(b, ROTATIONS[number % 8]), a)
        if number % 4 == 3:
            turn = number // 4 + 1
            a = by.add(a, schedule[turn % 3])
            b = by.add(b, by.add(schedule[(turn + 1) % 3], by.word(turn)))
    return a, b
