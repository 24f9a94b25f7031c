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


def flags(value):
    """Those of a loop that stores the value, of which the first makes no vectors of conditional loads, and the second
    leaves loads in front of the choices that need them."""
    out = Buffer("out", value.dtype, (N,), Space.OUTPUT)
    return flags_of(Kernel("map", Nest((For(ROW),), Store(out, (AT,), value))), set())


def one_by_one(value):
    return "-fno-tree-loop-if-convert" in flags(value)


def in_front(value):
    return "-fno-tree-sink" in flags(value)


def load(*index, dtype=f64, shape=(N,), conditions=()):
    fill = const(0, dtype) if conditions else None
    return Load(Buffer("x", dtype, shape, Space.INPUT), index, conditions, fill)


def chosen(value):
    mask = Load(Buffer("mask", bool_, (N,), Space.INPUT), (AT,))
    return select(mask, value, const(0, value.dtype))


X = Buffer("x", f64, (N, as_index(2)), Space.INPUT)
FIRST, SECOND = (Load(X, (AT, as_index(k))) for k in range(2))


def test_elements_that_only_some_iterations_read():
    assert in_front(chosen(FIRST) + chosen(SECOND)) and in_front(chosen(FIRST - SECOND))
    assert in_front(chosen(load(AT, dtype=c64))) and not one_by_one(chosen(load(AT, dtype=c64)))
    both = [Load(X, (AT - 1, as_index(k)), (AT - 1,), const(0.0, f64)) for k in range(2)]
    assert one_by_one(both[0] * both[1])


def test_others_have_vectors():
    square, row = (Buffer("x", f64, shape, Space.INPUT) for shape in ((N, N), (N,)))
    for value in (
        *(chosen(load(AT)), chosen(load(N - 1 - AT) - load(AT)), FIRST - SECOND, chosen(FIRST), load(AT, dtype=c64)),
        chosen(Load(square, (AT, as_index(0))) + Load(square, (AT, as_index(1)))),
        Load(row, (AT - 1,), (AT - 1,), const(0.0, f64)) + Load(row, (AT,)),
    ):
        assert not flags(value)


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
