"""Calls of the library in C.

gemm panel     ->  harp_gemm_panel_f32_x16(rows, columns, depth, &a, a_row, a_step, &b, b_step, b_column, &c, c_row)
gemv axpy      ->  harp_gemv_axpy_f32(columns, depth, &a, a_step, &b, b_step, &c)
row dots       ->  harp_row_dots_f32(rows, depth, &a, a_row, &b, b_row, &c)
dot            ->  harp_row_dots_f32(1, depth, &a, 0, &b, 0, &c)
transpose      ->  harp_transpose_32_x16(rows, columns, &b, b_row, &tile, width)
widen          ->  harp_widen_f16(count, &x, &wide)
copy and zero  ->  __builtin_memcpy(&target, &source, bytes), __builtin_memset(&target, 0, bytes)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from harp.backends.c_family.library_routines import (
    NARROW,
    WIDEN,
    gemm_microkernel,
    gemm_panel,
    gemv_axpy,
    row_dots,
    transpose,
)
from harp.backends.c_family.scalar import TYPES
from harp.lower.loopir.loops import Buffer, LibraryCall, LibraryOperand, Routine
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import DType


class CallPrinter(NamedTuple):
    """How an index, an element of a buffer, and its distance from the first one are printed."""

    text: Callable[[Index], str]
    element: Callable[[Buffer, tuple[Index, ...]], str]
    offset: Callable[[Buffer, tuple[Index, ...]], str]

    def pointer(self, operand: LibraryOperand) -> str:
        """To the element at the start of the loops."""
        return f"&{self.element(operand.buffer, operand.first)}"


class Called(NamedTuple):
    """A call as text, and the kernels of the library that it needs."""

    text: str
    kernels: tuple[str, ...]


class Signature(NamedTuple):
    """What a kernel is given: extents, by the numbers of their loops, and each operand's steps with these loops. There
    is no loop `ALONE`, of one iteration."""

    name: Callable[[DType, int], str]
    extents: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]


ALONE = -1


# The loops of a product are depth, row and column; of a row vector times a matrix, depth and column; of a
# transposition, rows and columns of what is read; of dots of rows, row and depth.
SIGNATURES: Mapping[Routine, Signature] = {
    Routine.GEMM_MICROKERNEL: Signature(gemm_microkernel, (1, 2, 0), ((1, 0), (0,), (1,))),
    Routine.GEMM_PANEL: Signature(gemm_panel, (1, 2, 0), ((1, 0), (0, 2), (1,))),
    Routine.GEMV_AXPY: Signature(lambda dtype, _: gemv_axpy(dtype), (1, 0), ((0,), (0,), ())),
    Routine.ROW_DOTS: Signature(lambda dtype, _: row_dots(dtype), (0, 1), ((0,), (0,), ())),
    Routine.DOT: Signature(lambda dtype, _: row_dots(dtype), (ALONE, 0), ((ALONE,), (ALONE,), ())),
    Routine.TRANSPOSE: Signature(transpose, (0, 1), ((0,), (1,))),
    Routine.WIDEN: Signature(lambda *_: WIDEN, (0,), ((), ())),
    Routine.NARROW: Signature(lambda *_: NARROW, (0,), ((), ())),
}


def call(stmt: LibraryCall, prints: CallPrinter) -> Called:
    """The call of a kernel, or of a function that compilers know."""
    signature = SIGNATURES.get(stmt.routine)
    if signature is None:
        return Called(_BUILTINS[stmt.routine](stmt, prints), ())
    name = signature.name(stmt.operands[-1].buffer.dtype, stmt.lanes)
    given = ["1" if number == ALONE else prints.text(stmt.loops[number].extent) for number in signature.extents]
    for operand, numbers in zip(stmt.operands, signature.steps, strict=True):
        steps = ("0" if n == ALONE else prints.offset(operand.buffer, operand.steps[n]) for n in numbers)
        given += [prints.pointer(operand), *steps]
    return Called(f"{name}({', '.join(given)});", (name,))


def _bytes(stmt: LibraryCall, prints: CallPrinter) -> str:
    """Of all elements of the target."""
    factors = [f"(size_t)({prints.text(loop.extent)})" for loop in stmt.loops if loop.extent is not ONE]
    return "*".join([*factors, f"sizeof({TYPES[stmt.operands[-1].buffer.dtype]})"])


def _copy(stmt: LibraryCall, prints: CallPrinter) -> str:
    source, target = map(prints.pointer, stmt.operands)
    return f"__builtin_memcpy({target}, {source}, {_bytes(stmt, prints)});"


def _zero(stmt: LibraryCall, prints: CallPrinter) -> str:
    return f"__builtin_memset({prints.pointer(stmt.operands[0])}, 0, {_bytes(stmt, prints)});"


_BUILTINS: Mapping[Routine, Callable[[LibraryCall, CallPrinter], str]] = {Routine.COPY: _copy, Routine.ZERO: _zero}
