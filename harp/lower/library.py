"""Loop nests that the library implements become calls of its functions.

    for i, l: buffer[i, l] = 0                             ->  zero
    for simd l: buffer[i, l] = other[i, l]                 ->  copy
    for simd l: tile[l] = sin(other[l])                    ->  map
    for k, i, l: c[i, l] = fma(a[i, k], b[k, l], c[i, l])  ->  gemm panel, gemm microkernel, or gemm integers

The pass comes last, so that all other rewrites see loops only. A call keeps the loops that it stands for in
`LibraryCall.body`, which verifiers, the interpreter and others read. Loops round a nest, as over a batch, or over
further summed axes, call it repeatedly.

A vectorised copy loop takes twice as long if its ends are not aligned. The microkernel needs a right factor whose whole
rows may be read. It and the panel compute up to two vectors of columns, even if there are fewer, so a nest qualifies
only if rows of c have room for that. Integers of 8 bits, summed in 32 bits, have a panel of their own, of more vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import pairwise
from math import prod

from harp.lower.loopir.loops import (
    MEMORY,
    For,
    Kernel,
    LibraryCall,
    LibraryOperand,
    Load,
    LoopKind,
    Nest,
    Routine,
    Space,
    Stmt,
    Store,
    flat,
)
from harp.lower.loopir.nests import nest, rebuilt
from harp.lower.loopir.products import narrow, panel_vectors
from harp.lower.reductions.short_rows import SHORT
from harp.lower.rewrite.loop_fission import is_function
from harp.lower.rewrite.transpose_tiling import VECTORS
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ONE, ZERO, Loop, indirect_in, split_linear
from harp.trace.scalar.dtypes import DType, bool_, f16, f32, f64, i32
from harp.trace.scalar.expr import Apply, Const
from harp.trace.scalar.ops import Op

# The vector lengths, in elements, for which the library has functions, by dtype.
LANES: Mapping[DType, tuple[int, ...]] = {f32: (4, 8, 16), f64: (2, 4, 8)}
PANEL_LANES: Mapping[DType, tuple[int, ...]] = {**LANES, i32: LANES[f32]}


def loops_of(s: Nest, count: int) -> tuple[Loop, ...] | None:
    """The loops of a nest that has exactly this many loops and no other heads, none of them parallel."""
    loops = tuple(h.loop for h in s.heads if isinstance(h, For) and h.kind is not LoopKind.PARALLEL)
    return loops if len(loops) == len(s.heads) == count else None


def operand(load: Load, loops: Sequence[Loop]) -> LibraryOperand | None:
    """The operand of a load; None if its offset is not linear in one of the loops.

    Where axes were merged, elements are counted along the last axis.
    """
    whole = flat(load.buffer, load.index)
    first = load.index if whole is None else (*(ZERO for _ in load.index[1:]), whole)
    steps = []
    for loop in loops:
        split = [parts for p in first if (parts := split_linear(p, loop)) is not None]
        if len(split) < len(first):
            return None
        steps.append(tuple(slope for slope, _ in split))
        first = tuple(rest for _, rest in split)
    return LibraryOperand(load.buffer, load.index, first, tuple(steps))


def multiply_add(
    s: Nest, count: int, dtypes: Container[DType] = LANES
) -> tuple[tuple[Loop, ...], tuple[LibraryOperand, LibraryOperand, LibraryOperand]] | None:
    """The loops, the factors and the sum of a nest of this many loops with the body `c = fma(a, b, c)`."""
    loops, store = loops_of(s, count), s.body
    if loops is None or not isinstance(store, Store) or store.reduce is not None or store.buffer.dtype not in dtypes:
        return None
    value = store.value
    if not isinstance(value, Apply) or value.op is not Op.FMA:
        return None
    left, right, total = map(narrow, value.args)
    if not (isinstance(left, Load) and isinstance(right, Load) and isinstance(total, Load)):
        return None
    if left.conditions or right.conditions or total.conditions or store.buffer in (left.buffer, right.buffer):
        return None
    if total.buffer is not store.buffer or total.index != store.index:
        return None
    a, b, c = (operand(load, loops) for load in (left, right, total))
    return None if a is None or b is None or c is None else (loops, (a, b, c))


# Conversion of rows of float16 to float32 and back, which machines do a vector at a time.
#
# for simd l: wide[l] = cast<f32>(x[i, l])    ->  widen
# for simd l: out[i, l] = cast<f16>(wide[l])  ->  narrow

_ROUTINES = {(f16, f32): Routine.WIDEN, (f32, f16): Routine.NARROW}


def conversion(s: Nest) -> LibraryCall | None:
    """The call; None if the nest is no such conversion."""
    last, store = s.heads[-1], s.body
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not isinstance(store, Store) or store.reduce:
        return None
    value = store.value
    read = value.args[0] if isinstance(value, Apply) and value.op is Op.CAST else None
    if not isinstance(read, Load) or read.conditions or any(map(indirect_in, (*store.index, *read.index))):
        return None
    routine, loops = _ROUTINES.get((read.dtype, value.dtype)), (last.loop,)
    source, target = operand(read, loops), operand(Load(store.buffer, store.index), loops)
    if (
        routine is None
        or source is None
        or target is None
        or not is_dense(source, loops)
        or not is_dense(target, loops)
    ):
        return None
    return LibraryCall(routine, 0, loops, (source, target))


def function(s: Nest) -> LibraryCall | None:
    """A function of the math library of each element of a row, stored to a tile (`harp.lower.rewrite.loop_fission`)."""
    last, store = s.heads[-1], s.body
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not isinstance(store, Store) or store.reduce:
        return None
    value, loops = store.value, (last.loop,)
    if not isinstance(value, Apply) or not is_function(value) or store.buffer.space is not Space.LOCAL:
        return None
    operands: list[LibraryOperand] = []
    for read in (*value.args, Load(store.buffer, store.index)):
        place = operand(read, loops) if isinstance(read, Load) and not read.conditions else None
        if place is None or not is_dense(place, loops) or any(map(indirect_in, place.index)):
            return None
        operands.append(place)
    *sources, target = operands
    if any(source.buffer is target.buffer for source in sources):
        return None
    return LibraryCall(Routine.MAP, 0, loops, tuple(operands), value.op)


# Transposition of a part of a matrix.
#
#     for r, k: tile[k, r] = b[r, k]  ->  transpose
#
# Elements are moved as bits, so a routine for a dtype serves all dtypes of its size.

# The lanes for which there are functions, by the size of an element in bytes.
_LANES = {dtype.itemsize: lanes for dtype, lanes in LANES.items()}
# The numbers of the loops: rows and columns of the source.
_ROW, _COLUMN = range(2)


def transpose(s: Nest) -> LibraryCall | None:
    """The call; None if the nest is no such transposition."""
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
    """The second rule at the top of the file, for memory that other kernels see."""
    last, store = s.heads[-1], s.body
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not isinstance(store, Store):
        return None
    value = store.value
    if not isinstance(value, Load) or value.conditions or store.reduce is not None or value.buffer is store.buffer:
        return None
    if {value.buffer.space, store.buffer.space} - {*MEMORY} or any(map(indirect_in, (*store.index, *value.index))):
        return None
    if value.dtype is bool_ and value.buffer.space is Space.INPUT:
        return None  # the caller's bools may be any byte, and become 0 or 1
    loops = (last.loop,)
    source, target = operand(value, loops), operand(Load(store.buffer, store.index), loops)
    if source is None or target is None or not is_dense(source, loops) or not is_dense(target, loops):
        return None
    return LibraryCall(Routine.COPY, 0, loops, (source, target))


def is_dense(operand: LibraryOperand, loops: tuple[Loop, ...]) -> bool:
    """Whether the loops move the last axes in order, one each, and all but the first one run over a whole axis."""
    shape, steps = operand.buffer.shape, operand.steps
    if len(loops) > len(shape) or not all(nonnegative(loop.extent) for loop in loops):
        return False
    axes = range(len(shape) - len(loops), len(shape))
    alone = all(
        p is (ONE if k == axis else ZERO) for axis, step in zip(axes, steps, strict=True) for k, p in enumerate(step)
    )
    whole = all(loop.extent is shape[axis] for (_, axis), loop in zip(pairwise(axes), loops[1:], strict=True))
    return alone and whole


# A row vector times a matrix whose rows are read in order.
#
# for k, l: c[l] = fma(a[k], b[k, l], c[l])  ->  gemv axpy

# The fewest multiply-adds that are worth a call.
_GEMV_CALL = 64
# The numbers of the loops: the depth of the product, and its columns.
_GEMV_K, _GEMV_L = range(2)


def gemv_axpy(s: Nest) -> LibraryCall | None:
    """The call; None if the nest is no such product."""
    matched = multiply_add(s, 2)
    if matched is None:
        return None
    loops, (a, b, c) = matched
    if prod(loop.extent.constant or _GEMV_CALL for loop in loops) < _GEMV_CALL:  # the compiler unrolls it
        return None
    if a.moves(_GEMV_L):
        a, b = b, a
    if a.moves(_GEMV_L) or c.moves(_GEMV_K) or not (b.is_along(_GEMV_L) and c.is_along(_GEMV_L)):
        return None
    return LibraryCall(Routine.GEMV_AXPY, 0, loops, (a, b, c))


# Dot products of the rows of two matrices, or of two vectors.
#
# for r { for k: c[r] = fma(a[r, k], b[r, k], c[r]) }  ->  row dots
# for k: c = fma(a[k], b[k], c)                        ->  dot
#
# The loop along the rows is the inner one. The routine adds in an order of its own, that of
# `harp.lower.reductions.accumulators`.

# The numbers of the loops: rows, and elements of a row.
_DOT_ROW, _DOT_K = range(2)


def row_dots(s: Nest) -> LibraryCall | None:
    """The call; None if the nest is no such dot product."""
    return _of_rows(s) or _of_vectors(s)


def _of_rows(s: Nest) -> LibraryCall | None:
    matched = multiply_add(Nest(s.heads[-2:], s.body), 2)
    if matched is None or not _is_long(s):
        return None
    loops, (a, b, c) = matched
    along = a.is_along(_DOT_K) and b.is_along(_DOT_K) and not c.moves(_DOT_K) and c.is_along(_DOT_ROW)
    if not along or not (a.moves(_DOT_ROW) or b.moves(_DOT_ROW)):
        return None
    return LibraryCall(Routine.ROW_DOTS, 0, loops, (a, b, c) if a.moves(_DOT_ROW) else (b, a, c))


def _of_vectors(s: Nest) -> LibraryCall | None:
    matched = multiply_add(s, 1)
    if matched is None or not _is_long(s):
        return None
    loops, (a, b, c) = matched
    if not (a.is_along(0) and b.is_along(0)) or c.buffer.space is not Space.REG:
        return None
    return LibraryCall(Routine.DOT, 0, loops, (a, b, c))


def _is_long(s: Nest) -> bool:
    """Whether the innermost loop may be longer than compilers unroll, or vectors run across it."""
    last = s.heads[-1]
    assert isinstance(last, For)
    return last.kind in (LoopKind.PLAIN, LoopKind.SIMD) and not nonnegative(SHORT - last.loop.extent)


# The fewest multiply-adds that are worth a call.
_GEMM_CALL = 1024
# The numbers of the loops: the depth of the product, its rows, and its columns.
_K, _I, _L = range(3)


def gemm(s: Nest) -> LibraryCall | None:
    """The call; None if the nest is no such product."""
    matched = multiply_add(Nest(s.heads[-3:], s.body), 3, PANEL_LANES)
    if matched is None:
        return None
    loops, (a, b, c) = matched
    work = prod(loop.extent.constant or _GEMM_CALL for loop in loops)
    if work < _GEMM_CALL:  # the compiler unrolls it
        return None
    width = c.buffer.shape[-1].constant or 0 if c.buffer.shape else 0
    if a.moves(_L) or b.moves(_I) or c.moves(_K) or not c.is_along(_L):
        return None
    lanes = width // panel_vectors(c.buffer.dtype)
    if lanes not in PANEL_LANES[c.buffer.dtype] or not _has_room(c, width):
        return None
    if not nonnegative(width - loops[_L].extent):
        return None
    whole_rows = b.is_along(_L) and _has_room(b, width)
    if c.buffer.dtype is i32:
        return LibraryCall(Routine.GEMM_INTEGERS, lanes, loops, (a, b, c))
    return LibraryCall(Routine.GEMM_MICROKERNEL if whole_rows else Routine.GEMM_PANEL, lanes, loops, (a, b, c))


def _has_room(operand: LibraryOperand, width: int) -> bool:
    """Whether whole rows of vectors may be read and written in an operand that lies along them."""
    return operand.buffer.shape[-1].constant == width and operand.first[-1] is ZERO


# The first rule that fits is applied.
RULES: tuple[Callable[[Nest], LibraryCall | None], ...] = (
    gemm,
    gemv_axpy,
    row_dots,
    transpose,
    zero,
    copy,
    conversion,
    function,
)


def select_routines(kernel: Kernel) -> Kernel:
    """The kernel with calls of the library."""
    return kernel.with_body(_selected(kernel.body))


def _selected(s: Stmt) -> Stmt:
    if isinstance(s, Nest):
        for rule in RULES:
            call = rule(s)
            if call is not None:
                return nest(s.heads[: len(s.heads) - len(call.loops)], call)
    return rebuilt(s, _selected)
