"""Which loop nests become calls of the library, and that a call does what its loops did."""

from __future__ import annotations

import re

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.c_family.library import _BUILTINS, SIGNATURES
from harp.lower.library import copy, select_routines, zero
from harp.lower.loopir.loops import (
    _VALUES,
    Buffer,
    For,
    Kernel,
    LibraryCall,
    Load,
    LoopKind,
    Nest,
    Routine,
    Space,
    Store,
    walk,
)
from harp.lower.pipeline import lower
from harp.lower.target import Target
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import bool_, f32
from harp.trace.scalar.expr import const
from harp.trace.sizes.signature import canonical

N, M = of(Symbol(0, 0, "n")), of(Symbol(0, 1, "m"))
ROW, COLUMN = Loop(0, N), Loop(1, M)
HERE, LOOPS = (of(ROW), of(COLUMN)), (For(ROW), For(COLUMN))
TARGET = Target(vector_bytes=64, fma=True)


def calls(function, *args):
    """The routines that a function's program calls."""
    program = lower(canonical(harp.trace(function, *args)), TARGET).program
    return {s.routine for kernel in program.kernels for s in walk(kernel.body) if isinstance(s, LibraryCall)}


def test_every_routine_has_a_meaning_and_is_printed():
    assert {*_VALUES, Routine.MAP} == set(Routine) == {*SIGNATURES, *_BUILTINS}  # a map has a function


def matrix(name, space, dtype=f32, columns=M):
    return Buffer(name, dtype, (N, columns), space)


def fill(dtype, value, index=HERE, heads=LOOPS):
    return Nest(heads, Store(matrix("out", Space.OUTPUT, dtype), index, const(value, dtype)))


@pytest.mark.parametrize(
    "dtype, value, fits", [(f32, 0.0, True), (f32, -0.0, False), (f32, 1.0, False), (bool_, 0, True)]
)
def test_zeros_are_told_by_their_bits(dtype, value, fits):
    assert (zero(fill(dtype, value)) is not None) is fits


def test_zeros_lie_one_after_the_other():
    assert zero(fill(f32, 0.0, heads=(For(COLUMN), For(ROW)))) is None  # down the columns
    assert zero(fill(f32, 0.0, index=(of(ROW), 2 * of(COLUMN)))) is None
    part = Loop(1, M - 1)
    assert zero(fill(f32, 0.0, index=(of(ROW), of(part)), heads=(For(ROW), For(part)))) is None
    parallel = (For(ROW, LoopKind.PARALLEL), For(COLUMN))
    assert zero(fill(f32, 0.0, heads=parallel)) is None
    inner = select_routines(
        Kernel("zeros", fill(f32, 0.0, index=(of(ROW), of(part)), heads=(For(ROW), For(part))))
    ).body
    assert not any(isinstance(s, LibraryCall) for s in walk(inner))


def copied(source, at=HERE, dtype=f32, kind=LoopKind.SIMD, conditions=()):
    load = Load(source, at, conditions, const(0, dtype) if conditions else None)
    return Nest((For(ROW), For(COLUMN, kind)), Store(matrix("out", Space.OUTPUT, dtype), (of(ROW), of(COLUMN)), load))


def test_runs_are_copied():
    given = matrix("x", Space.INPUT)
    call = copy(copied(given))
    assert call is not None and call.loops == (COLUMN,)
    nest = select_routines(Kernel("copy", copied(given))).body
    assert isinstance(nest, Nest) and [h.loop for h in nest.heads] == [ROW] and isinstance(nest.body, LibraryCall)
    assert copy(copied(given, kind=LoopKind.PLAIN)) is None
    assert copy(copied(given, conditions=(of(COLUMN) - 1,))) is None
    assert copy(copied(given, at=(of(ROW), M - 1 - of(COLUMN)))) is None  # reversed
    assert copy(copied(Buffer("x", f32, (M, N), Space.INPUT), at=(of(COLUMN), of(ROW)))) is None
    assert copy(copied(Buffer("x", f32, (N, M), Space.LOCAL))) is None


def test_truth_values_of_a_caller_are_not_copied():
    assert copy(copied(matrix("x", Space.INPUT, bool_), dtype=bool_)) is None
    assert copy(copied(matrix("x", Space.SCRATCH, bool_), dtype=bool_)) is not None


def test_products_use_the_library():
    a = np.ones((70, 80), np.float32)
    assert calls(lambda a, b: a @ b, a, a.T.copy()) >= {Routine.GEMM_PANEL}
    assert Routine.GEMV_AXPY in calls(lambda v, a: v @ a, a[:, 0].copy(), a)
    assert Routine.TRANSPOSE in calls(lambda a: a.T + 1, a)
    assert Routine.COPY in calls(lambda a, b: hnp.concatenate([a, b]), a, a)
    assert calls(lambda a: a + 1, a) == set()


def test_other_dtypes_have_loops():
    a = np.ones((70, 80), np.int32)
    assert not calls(lambda a, b: a @ b, a, a.T.copy()) & {Routine.GEMM_PANEL, Routine.GEMM_MICROKERNEL}


def test_a_call_prints_what_it_stands_for():
    text = lower(canonical(harp.trace(lambda v, a: v @ a, np.ones(5, "f4"), np.ones((5, 7), "f4"))), TARGET).loops
    assert re.search(r"call gemv axpy:\n +for .*:\n +for .*:\n +\S+ = fma\(", text)


def test_axes_that_were_merged_are_one_run():
    """i//m and i%m of a matrix are the element i of its memory."""
    flat = Loop(0, N * M)
    row = floordiv(of(flat), M)
    column = of(flat) - row * M
    out, given = (Buffer(name, f32, (N, M), space) for name, space in (("out", Space.OUTPUT), ("x", Space.INPUT)))
    nest = Nest((For(flat, LoopKind.SIMD),), Store(out, (row, column), Load(given, (row, column))))
    call = copy(nest)
    assert call is not None and call.operands[0].first == (as_index(0), as_index(0))
