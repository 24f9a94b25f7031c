"""Stores that nothing needs are left out, and nothing else."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt

import harp
import harp.numpy as hnp
from harp.lower.loopir.conditions import without_dead_stores
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Load, Nest, Seq, Space, Store, walk
from harp.trace.index.polynomial import Loop, Symbol, of
from harp.trace.scalar.dtypes import f64, i64
from harp.trace.scalar.expr import Const, const
from harp.trace.scalar.ops import Reduce

N = of(Symbol(0, 0, "n"))
ROW, TERM = Loop(0, N), Loop(1, N)
X, Y = (Buffer(name, f64, (N,), Space.OUTPUT) for name in "xy")
V, W = (Buffer(name, f64, (), Space.REG) for name in "vw")
ZERO = const(0.0, f64)
AT = (of(ROW),)


def rows(*steps, variable=V):
    return Nest((For(ROW),), Alloc(variable, Seq(steps)))


def stored(s):
    return [part.buffer.name for part in walk(s) if isinstance(part, Store)]


def test_sums_that_nothing_reads():
    total = Nest((For(TERM),), Store(V, (), Load(X, (of(TERM),)), Reduce.SUM))
    found = without_dead_stores(rows(Store(V, (), ZERO), total, Store(Y, AT, const(1.0, f64))))
    assert stored(found) == ["y"] and not any(isinstance(part, Alloc) for part in walk(found))
    needed = rows(Store(V, (), ZERO), total, Store(Y, AT, Load(V, ())))
    assert without_dead_stores(needed) is needed


def test_a_variable_of_one_name_may_be_dead_in_one_place_only():
    dead = rows(Store(V, (), Load(X, AT)), Store(Y, AT, ZERO))
    live = rows(Store(V, (), Load(X, AT)), Store(Y, AT, Load(V, ())))
    assert stored(without_dead_stores(Seq((dead, live)))) == ["y", "v", "y"]


def test_chains_of_variables():
    inner = Alloc(W, Seq((Store(W, (), Load(V, ())), Store(Y, AT, ZERO))))
    assert stored(without_dead_stores(rows(Store(V, (), Load(X, AT)), inner))) == ["y"]


def test_constants_are_written_down():
    found = without_dead_stores(rows(Store(V, (), ZERO), Store(Y, AT, Load(V, ()) * Load(X, AT))))
    (store,) = [part for part in walk(found) if isinstance(part, Store)]
    assert any(isinstance(e, Const) for e in store.value.args)
    twice = rows(Store(V, (), ZERO), Store(V, (), Load(X, AT)), Store(Y, AT, Load(V, ())))
    assert stored(without_dead_stores(twice)) == ["v", "v", "y"]
    branch = rows(If((of(ROW) - 1,), Store(V, (), ZERO), Store(V, (), Load(X, AT))), Store(Y, AT, Load(V, ())))
    assert stored(without_dead_stores(branch)) == ["v", "v", "y"]
    place = Buffer("p", i64, (), Space.REG)
    whole = rows(Store(place, (), const(0, i64)), Store(Y, AT, Load(place, ())), variable=place)
    assert stored(without_dead_stores(whole)) == ["p", "y"], "an integer may be a place"


def test_what_is_there_already():
    same = Nest((For(ROW),), Store(X, AT, Load(X, AT)))
    moved = Nest((For(ROW),), Store(X, AT, Load(X, (of(ROW) + 1,))))
    added = Nest((For(ROW),), Store(X, AT, Load(X, AT), Reduce.SUM))
    found = without_dead_stores(Seq((same, moved, If((N - 3,), same), added)))
    assert isinstance(found, Seq) and found.parts == (moved, added)


def test_a_mask_hides_sums_and_what_is_stored():
    """Rows above the diagonal stay, or lose a product with zero, which may be NaN."""

    def program(a):
        k = hnp.arange(a.shape[0])

        def step(i, a):
            length = hnp.where(k > i, hnp.sum(a * a[i], axis=1), 0.0)
            return a - length[:, None] * hnp.where(k > i, a[i], 0.0)

        return harp.fori_loop(0, a.shape[0], step, a)

    compiled = harp.jit(program)
    assert compiled.lower(np.ones((5, 5))).loops.count("call row dots") == 1
    for n in (0, 1, 2, 7, 40):
        a = np.random.default_rng(n).normal(size=(n, n)) / (n + 1)
        for special in (None, np.inf, np.nan):
            if special is not None and n > 2:
                a[n // 2, n // 2] = special
            expected, k = a, np.arange(n)
            for i in range(n):
                with np.errstate(invalid="ignore"):
                    length = np.where(k > i, np.sum(expected * expected[i], axis=1), 0.0)
                    expected = expected - length[:, None] * np.where(k > i, expected[i], 0.0)
            npt.assert_allclose(compiled(a), expected, rtol=1e-9, atol=1e-12)
