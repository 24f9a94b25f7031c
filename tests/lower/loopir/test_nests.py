"""Renaming in statements, which the rewrites of loop nests are made of."""

from __future__ import annotations

import numpy as np

import harp
import harp.numpy as hnp
from harp.lower.loopir.loops import Buffer, Digits, For, Kernel, Let, Nest, Space, Store
from harp.lower.loopir.nests import nest, renamed
from harp.lower.loopir.text import kernel_text
from harp.lower.verify.verify import verify_kernel
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.expr import const

n = Symbol(0, 0, "n")
OUT = Buffer("out", f64, (of(n), of(n)), Space.OUTPUT)
ROW = Loop(0, of(n))


def blocked(make):
    """`make(row, column loop)` of blocks of four rows."""
    block, lane = Loop(8, floordiv(of(n), 4)), Loop(9, as_index(4))
    made = renamed(make(), {ROW: of(block) * 4 + of(lane)})
    kernel = Kernel("rows", nest((For(block), For(lane)), made), (OUT,), (n,))
    verify_kernel(kernel)
    return kernel_text(kernel)


def store(row, column):
    return Store(OUT, (row, column), const(1.0, f64))


def test_loops_whose_extents_name_the_renamed_loop():
    """for i, j < i + 1: out[i, j]  ->  for b, l, j < 4*b + l + 1: out[4*b + l, j]"""
    column = Loop(1, of(ROW) + 1)
    text = blocked(lambda: Nest((For(column),), store(of(ROW), of(column))))
    assert "< 4*i8 + i9 + 1" in text
    inner = Loop(2, of(column) + 1)  # the extent of a loop that is renamed itself
    text = blocked(lambda: Nest((For(column), For(inner)), store(of(ROW), of(inner))))
    assert "i2 < i1 + 1" in text


def test_digits_and_names_of_the_renamed_loop():
    high, low = Loop(1, of(ROW) + 1), Loop(2, as_index(1))
    size = Symbol(1, 7, "m")
    assert "4*i8" in blocked(lambda: Nest((Digits((high, low), of(ROW)),), store(of(ROW), of(high))))
    assert "4*i8" in blocked(lambda: Nest((Let(size, of(ROW)),), store(of(ROW), of(ROW))))


def test_a_loop_of_one_iteration_has_no_head():
    column = Loop(1, of(ROW) + 1)
    assert renamed(Nest((For(column),), store(of(ROW), of(column))), {ROW: as_index(0)}).index == (as_index(0),) * 2


def test_an_offset_may_have_quotients_of_sizes():
    """The rows behind whole blocks lie without gaps: positions by quotients took five times as long."""

    def shares(x, y):
        rest = (x * y[..., None])[:, :, x.shape[2] // 8 * 8 :]
        powers = hnp.exp(rest - hnp.max(rest, axis=-1, keepdims=True, initial=-1.0))
        return powers, hnp.sum(powers, axis=-1)

    text = harp.jit(shares).lower(np.ones((2, 3, 13)), np.ones((2, 3))).loops
    assert "out0.flat[" in text
    assert "out0[((" not in text
