"""Outside of a trace: blocks by NumPy, or by Python's integers where there are few, and what is made of them in chunks.

The expressions are those of programs. What they are built from is kept, so that a draw builds none; a chunk stays in
the cache, so that a hundred operations on it do not go through memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import cast

import numpy as np

from harp.random.threefry import ARRAYS, INTEGERS, threefry2x32
from harp.trace.scalar.dtypes import DType, NDArray, as_dtype, i64, u32
from harp.trace.scalar.expr import Expr, Operand, evaluate
from harp.trace.scalar.ops import Reduce

CHUNK = 1 << 15  # elements
_FEW = 4

Key = tuple[int, int]
Build = Callable[..., Expr]


def blocks(key: Key, numbers: NDArray, high: int) -> tuple[NDArray, NDArray]:
    """Both words of the blocks of int64 numbers, and of what else belongs to the upper half of the counter."""
    if numbers.size <= _FEW:
        pairs = [integer_block(key, n, high) for n in cast(list[int], numbers.tolist())]
        first, second = (np.array([pair[k] for pair in pairs], np.uint32) for k in (0, 1))
        return first, second
    counter = ((numbers >> np.int64(32)) + np.int64(high)).astype(np.uint32), numbers.astype(np.uint32)  # type: ignore[operator]
    return threefry2x32((ARRAYS.word(key[0]), ARRAYS.word(key[1])), counter, ARRAYS)


def integer_block(key: Key, number: int, high: int) -> tuple[int, int]:
    """The block of one number."""
    return threefry2x32(key, (((number >> 32) + high) & 0xFFFFFFFF, number & 0xFFFFFFFF), INTEGERS)


def draw(
    key: Key,
    shape: tuple[int, ...],
    build: Build,
    highs: Sequence[int],
    operands: Sequence[NDArray],
    number: Build | None,
    reduce: Reduce | None,
) -> NDArray:
    """What `harp.random.streams.draw` says, as numbers; `highs` are the lanes in the counter's upper half."""
    kinds = tuple(as_dtype(o.dtype) for o in operands)
    made = _expression(build, (u32,) * (2 * len(highs)) + kinds)
    counted = None if number is None else _expression(number, (i64, *kinds))
    row = shape[-1] if reduce is not None else 1
    flat = [o.reshape(-1)[:1] if not any(o.strides) and o.size else o.reshape(-1) for o in operands]
    total = prod(shape)
    result = np.empty(total // max(row, 1), made.dtype.numpy)
    for start in range(0, total, CHUNK):
        stop = min(start + CHUNK, total)
        numbers: NDArray = np.arange(start, stop, dtype=np.int64)
        given = [o if o.size == 1 else o[start:stop] for o in flat]
        if counted is not None:
            numbers = _values(counted, [numbers, *given])
        words = [w for high in highs for w in blocks(key, numbers, high)]
        values = _values(made, [*words, *given])
        if reduce is not None:
            values = reduce.ufunc.reduce(values.reshape(-1, row), axis=1)
        result[start // row : stop // row] = values
    return result.reshape(shape[:-1] if reduce is not None else shape)


@lru_cache(maxsize=256)
def _expression(build: Build, kinds: tuple[DType, ...]) -> Expr:
    return build(*(Operand(kind, slot) for slot, kind in enumerate(kinds)))


def _values(e: Expr, given: Sequence[NDArray]) -> NDArray:
    return evaluate(e, lambda leaf: given[cast(Operand, leaf).slot])
