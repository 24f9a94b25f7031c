"""Kernels that gcc would make wrong loads for are compiled without these."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.c.emit.render import flags_of
from harp.lower.loopir.loops import Buffer, For, Kernel, Load, Nest, Space, Store
from harp.trace.index.polynomial import Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import bool_, c64, f64
from harp.trace.scalar.expr import const, select

N = of(Symbol(0, 0, "n"))
ROW = Loop(0, N)
AT = of(ROW)


def one_by_one(value):
    """Whether a loop that stores the value is compiled without vectors of choices."""
    out = Buffer("out", value.dtype, (N,), Space.OUTPUT)
    return "-fno-tree-loop-if-convert" in flags_of(Kernel("map", Nest((For(ROW),), Store(out, (AT,), value))), set())


def load(*index, dtype=f64, shape=(N,), conditions=()):
    fill = const(0, dtype) if conditions else None
    return Load(Buffer("x", dtype, shape, Space.INPUT), index, conditions, fill)


def chosen(value):
    mask = Load(Buffer("mask", bool_, (N,), Space.INPUT), (AT,))
    return select(mask, value, const(0, value.dtype))


X = Buffer("x", f64, (N, as_index(2)), Space.INPUT)
FIRST, SECOND = (Load(X, (AT, as_index(k))) for k in range(2))


def test_elements_that_only_some_iterations_read():
    assert one_by_one(chosen(FIRST) + chosen(SECOND)) and one_by_one(chosen(FIRST - SECOND))
    assert one_by_one(chosen(load(AT, dtype=c64)))
    both = [Load(X, (AT - 1, as_index(k)), (AT - 1,), const(0.0, f64)) for k in range(2)]
    assert one_by_one(both[0] * both[1])


def test_others_have_vectors():
    assert not one_by_one(chosen(load(AT))) and not one_by_one(chosen(load(N - 1 - AT) - load(AT)))
    assert not one_by_one(FIRST - SECOND) and not one_by_one(chosen(FIRST))
    assert not one_by_one(load(AT, dtype=c64))
    square = Buffer("x", f64, (N, N), Space.INPUT)
    assert not one_by_one(chosen(Load(square, (AT, as_index(0))) + Load(square, (AT, as_index(1)))))
    row = Buffer("x", f64, (N,), Space.INPUT)
    assert not one_by_one(Load(row, (AT - 1,), (AT - 1,), const(0.0, f64)) + Load(row, (AT,)))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "c8", "c16"])
def test_pairs_that_are_exchanged_where_a_mask_says_so(dtype):
    of = {"f4": harp.f32, "f8": harp.f64, "i4": harp.i32, "i8": harp.i64, "c8": harp.c64, "c16": harp.c128}[dtype]
    zero = np.zeros((), dtype)

    def exchanged(np, x, mask):
        pairs = np.where(mask[:, None], x[:, ::-1], zero)
        sums = np.stack([np.sum(np.where(mask, x[:, 1], zero)), np.sum(np.where(mask, x[:, 0], zero))])
        stacked = np.stack([np.where(mask, x[:, 1], zero), np.where(mask, x[:, 0], zero)], axis=1)
        return pairs + stacked, sums

    compiled = harp.jit(lambda x, mask: exchanged(hnp, x, mask), signature=(of["n", 2], harp.bool_["n"]))
    for n in (0, 1, 12, 33):
        x = (np.arange(2 * n).reshape(n, 2) + 1).astype(dtype)
        for mask in (np.ones(n, bool), np.arange(n) % 3 == 0):
            for found, expected in zip(compiled(x, mask), exchanged(np, x, mask), strict=True):
                np.testing.assert_array_equal(found, expected)
