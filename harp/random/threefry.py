"""Threefry-2x32 with 20 rounds: 64 random bits for a key and a counter of 64 bits each, as scalar expressions.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
Additions, rotations and exclusive ors of 32-bit integers only: the same bits on every machine, in all vector lanes.
"""

from __future__ import annotations

from harp.trace.dtypes import u32
from harp.trace.expr import Expr, apply, const
from harp.trace.ops import Op

ROUNDS = 20
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA  # so that no key schedule is all zeros

Words = tuple[Expr, Expr]


def word(value: int) -> Expr:
    """A number as a 32-bit word."""
    return const(value, u32)


def threefry2x32(key: Words, counter: Words) -> Words:
    """The block of a counter: for each key a permutation of the counters, with no pattern that tests have found."""
    schedule = (*key, _xor(_xor(*key), word(PARITY)))
    a, b = (_add(c, k) for c, k in zip(counter, key, strict=True))
    for number in range(ROUNDS):
        a = _add(a, b)
        b = _xor(_rotated(b, ROTATIONS[number % 8]), a)
        if number % 4 == 3:
            turn = number // 4 + 1
            a = _add(a, schedule[turn % 3])
            b = _add(b, _add(schedule[(turn + 1) % 3], word(turn)))
    return a, b


def _add(a: Expr, b: Expr) -> Expr:
    return apply(Op.ADD, a, b)


def _xor(a: Expr, b: Expr) -> Expr:
    return apply(Op.XOR, a, b)


def _rotated(a: Expr, by: int) -> Expr:
    return apply(Op.OR, apply(Op.SHL, a, word(by)), apply(Op.SHR, a, word(32 - by)))
