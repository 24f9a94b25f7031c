"""Runs of memory that are set to zero, copied, converted or transposed.

    for i, l: buffer[i, l] = 0               ->  zero
    for simd l: buffer[i, l] = other[i, l]   ->  copy

The elements lie one after the other. A copy takes a loop of vectors twice as long if its ends are not aligned.
"""

from __future__ import annotations

from itertools import pairwise

from harp.lower.library.operands import LANES, loops_of, operand
from harp.lower.loopir.loops import (
    MEMORY,
    For,
    LibraryCall,
    LibraryOperand,
    Load,
    LoopKind,
    Nest,
    Routine,
    Space,
    Store,
)
from harp.lower.rewrite.transpose_tiling import VECTORS
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ONE, ZERO, Loop, indirect_in
from harp.trace.scalar.dtypes import bool_, f16, f32
from harp.trace.scalar.expr import Apply, Const
from harp.trace.scalar.ops import Op

# Rows of float16 as float32, and back, which machines convert a vector at a time.
#
# for simd l: wide[l] = cast<f32>(x[i, l])    ->  widen
# for simd l: out[i, l] = cast<f16>(wide[l])  ->  narrow

_ROUTINES = {(f16, f32): Routine.WIDEN, (f32, f16): Routine.NARROW}


def conversion(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    last, store = s.heads[-1], s.body
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not isinstance(store, Store) or store.reduce:
        return None
    value = store.value
    given = value.args[0] if isinstance(value, Apply) and value.op is Op.CAST else None
    if not isinstance(given, Load) or given.conditions or any(map(indirect_in, (*store.index, *given.index))):
        return None
    routine, loops = _ROUTINES.get((given.dtype, value.dtype)), (last.loop,)
    source, target = operand(given, loops), operand(Load(store.buffer, store.index), loops)
    if (
        routine is None
        or source is None
        or target is None
        or not is_dense(source, loops)
        or not is_dense(target, loops)
    ):
        return None
    return LibraryCall(routine, 0, loops, (source, target))


# The transposition of a part of a matrix.
#
#     for r, k: tile[k, r] = b[r, k]  ->  transpose
#
# Elements are moved as they are, so a routine for a dtype does for all dtypes of its size.

# By bytes of an element, the lanes that there are functions for.
_LANES = {dtype.itemsize: lanes for dtype, lanes in LANES.items()}
# The loops in order: rows and columns of what is read.
_ROW, _COLUMN = range(2)


def transpose(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    loops, store = loops_of(s, 2), s.body
    if loops is None or not isinstance(store, Store) or store.reduce is not None:
        return None
    value, tile = store.value, store.buffer
    if not isinstance(value, Load) or value.conditions or tile.space is not Space.LOCAL or len(tile.shape) != 2:
        return None
    lanes = (tile.shape[-1].constant or 0) // VECTORS
    if lanes not in _LANES.get(tile.dtype.itemsize, ()) or value.buffer is tile:
        return None
    b, c = operand(value, loops), operand(Load(tile, store.index), loops)
    if b is None or c is None or not (b.is_along(_COLUMN) and c.is_along(_ROW)):
        return None
    return LibraryCall(Routine.TRANSPOSE, lanes, loops, (b, c))


def zero(s: Nest) -> LibraryCall | None:
    """The first rule at the top of the file: all loops of a nest together run along memory."""
    loops, store = loops_of(s, len(s.heads)), s.body
    if loops is None or not isinstance(store, Store) or store.reduce is not None:
        return None
    value = store.value
    if not isinstance(value, Const) or value.value.tobytes().strip(b"\0"):
        return None
    target = operand(Load(store.buffer, store.index), loops)
    if target is None or not is_dense(target, loops):
        return None
    return LibraryCall(Routine.ZERO, 0, loops, (target,))


def copy(s: Nest) -> LibraryCall | None:
    """The second rule at the top of the file, of memory that other kernels see."""
    last, store = s.heads[-1], s.body
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not isinstance(store, Store):
        return None
    value = store.value
    if not isinstance(value, Load) or value.conditions or store.reduce is not None or value.buffer is store.buffer:
        return None
    if {value.buffer.space, store.buffer.space} - {*MEMORY} or any(map(indirect_in, (*store.index, *value.index))):
        return None
    if value.dtype is bool_ and value.buffer.space is Space.INPUT:
        return None  # a caller's truth values may be any byte, and become 0 or 1
    loops = (last.loop,)
    source, target = operand(value, loops), operand(Load(store.buffer, store.index), loops)
    if source is None or target is None or not is_dense(source, loops) or not is_dense(target, loops):
        return None
    return LibraryCall(Routine.COPY, 0, loops, (source, target))


def is_dense(operand: LibraryOperand, loops: tuple[Loop, ...]) -> bool:
    """Whether the loops move the last axes in order, one each, and all but the first of them run over a whole axis."""
    shape, steps = operand.buffer.shape, operand.steps
    if len(loops) > len(shape) or not all(nonnegative(loop.extent) for loop in loops):
        return False
    axes = range(len(shape) - len(loops), len(shape))
    alone = all(
        p is (ONE if k == axis else ZERO) for axis, step in zip(axes, steps, strict=True) for k, p in enumerate(step)
    )
    whole = all(loop.extent is shape[axis] for (_, axis), loop in zip(pairwise(axes), loops[1:], strict=True))
    return alone and whole
