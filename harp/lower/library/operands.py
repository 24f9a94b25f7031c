"""What the rules ask of a nest: its loops, and where its operands lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harp.lower.loopir.loops import For, LibraryOperand, Load, LoopKind, Nest, Store, flat
from harp.trace.index.polynomial import ZERO, Loop, split_linear
from harp.trace.scalar.dtypes import DType, f32, f64
from harp.trace.scalar.expr import Apply
from harp.trace.scalar.ops import Op

# By dtype, the elements of the vectors that the library has functions for.
LANES: Mapping[DType, tuple[int, ...]] = {f32: (4, 8, 16), f64: (2, 4, 8)}


def loops_of(s: Nest, count: int) -> tuple[Loop, ...] | None:
    """The loops of a nest that has this many and no other heads, none of them in parallel."""
    found = tuple(h.loop for h in s.heads if isinstance(h, For) and h.kind is not LoopKind.PARALLEL)
    return found if len(found) == len(s.heads) == count else None


def operand(load: Load, loops: Sequence[Loop]) -> LibraryOperand | None:
    """None where the element does not move in proportion with one of the loops.

    Where axes were merged, elements are counted along the last axis.
    """
    whole = flat(load.buffer, load.index)
    first = load.index if whole is None else (*(ZERO for _ in load.index[1:]), whole)
    steps = []
    for loop in loops:
        split = [found for p in first if (found := split_linear(p, loop)) is not None]
        if len(split) < len(first):
            return None
        steps.append(tuple(slope for slope, _ in split))
        first = tuple(rest for _, rest in split)
    return LibraryOperand(load.buffer, load.index, first, tuple(steps))


def multiply_add(
    s: Nest, count: int
) -> tuple[tuple[Loop, ...], tuple[LibraryOperand, LibraryOperand, LibraryOperand]] | None:
    """The loops, factors and sum of a nest of this many loops that does `c = fma(a, b, c)` for its elements."""
    loops, store = loops_of(s, count), s.body
    if loops is None or not isinstance(store, Store) or store.reduce is not None or store.buffer.dtype not in LANES:
        return None
    value = store.value
    if not isinstance(value, Apply) or value.op is not Op.FMA:
        return None
    left, right, total = value.args
    if not (isinstance(left, Load) and isinstance(right, Load) and isinstance(total, Load)):
        return None
    if left.conditions or right.conditions or total.conditions or store.buffer in (left.buffer, right.buffer):
        return None
    if total.buffer is not store.buffer or total.index != store.index:
        return None
    a, b, c = (operand(load, loops) for load in (left, right, total))
    return None if a is None or b is None or c is None else (loops, (a, b, c))
