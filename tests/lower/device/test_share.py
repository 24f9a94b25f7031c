"""Which nests groups of work-items share, and how: each pass is run before and after, on random data."""

from __future__ import annotations

import re

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.config import settings
from harp.lower.device.rows import shared_rows
from harp.lower.loopir.loops import Alloc, Buffer, Kernel, Load, Nest, Space, Store
from harp.lower.loopir.nests import FreshLoops, nest, sequence, start
from harp.lower.loopir.text import program_text
from harp.lower.pipeline import lower
from harp.lower.target import Target
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Symbol, as_index, of
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.ops import Reduce
from harp.trace.sizes.signature import canonical

WIDE = Target(fma=True, grid=True, wide=True, group=1024)
CORES = Target(fma=True, grid=True, cores=4)
X = np.ones((5, 7))


@pytest.fixture(autouse=True)
def verified(monkeypatch):
    monkeypatch.setattr(settings, "verify", 3)


def loops(function, *arguments, target=WIDE):
    return program_text(lower(canonical(harp.jit(function).lower(*arguments).graph), target).program)


def test_long_rows_are_shared_and_short_ones_are_not():
    text = loops(lambda x: hnp.sum(x, axis=1), X)
    assert "s1 - 4097 >= 0" in text and "parts0: f64[s0, ((s1 + 4095)//4096)]" in text
    row = text.split("s1 - 128 >= 0:")[1]
    assert "for item i" in row and "group v0_parts: f64[256]" in row
    assert "item" not in text.rsplit("else:", 1)[1]


def test_everything_that_a_row_needs_is_done_by_its_group():
    text = loops(lambda x: hnp.exp(x - hnp.max(x, axis=1, keepdims=True)) / hnp.sum(x * x, axis=1, keepdims=True), X)
    assert text.count("for item") >= 5


def softmax(x):
    e = hnp.exp(x - hnp.max(x, axis=-1, keepdims=True))
    return e / hnp.sum(e, axis=-1, keepdims=True)


def layer_norm(x):
    moved = x - hnp.mean(x, axis=-1, keepdims=True)
    return moved / hnp.sqrt(hnp.mean(moved * moved, axis=-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (softmax, 1),
        (hnp.softmax, 1),
        (hnp.log_softmax, 0),
        (layer_norm, 0),
        (lambda x: hnp.std(x, axis=-1), 0),
        (harp.grad(lambda x: hnp.sum(softmax(x) * hnp.sin(x))), 2),
        (harp.grad(lambda x: hnp.sum(hnp.tanh(layer_norm(x)))), 2),
        (harp.vmap(lambda row: softmax(row) * hnp.arange(row.shape[0])), 1),
        (lambda x: softmax(softmax(x)), 2),
    ],
)
def test_rows_that_are_read_several_times_belong_to_their_group(function, kept):
    """Behind the test of a row's length no loop along it is left to one work-item, and no array."""
    text = loops(function, X)
    rows = text.split("s1 - 128 >= 0:")[1:]
    assert rows and text.count("workspace ") == kept
    for long in rows:
        long = long.split("  else:")[0]
        assert "for item" in long and "thread " not in long and not re.search(r"for i\d+ < s1:", long)


def test_rows_of_a_batch_and_of_half_precision_are_kept_by_their_group():
    batch = loops(softmax, np.ones((2, 3, 5)))
    assert "workspace v0: f64[s2]" in batch and batch.index("grid i1 < s1") < batch.index("workspace")
    assert "workspace v0: f16[s1]" in loops(softmax, X.astype("f2"))
    assert "workspace" not in loops(softmax, X, target=CORES)


def test_memory_for_all_rows_is_there_for_long_rows_only():
    kernel = lower(canonical(harp.jit(softmax).lower(X).graph), WIDE).program.kernels[0]
    rows = next(b for b in kernel.scratch if b.name.startswith("rows"))
    count = next(b for b in kernel.scratch if b.name.startswith("columns")).shape[0]
    length = rows.shape[1].atom
    for n, taken in ((5, 0), (4096, 0), (4097, 1), (9000, 1)):
        assert Substitution({length: as_index(n)})(rows.shape[0]) is count * taken


def test_a_launch_has_memory_of_groups_or_of_work_items():
    """A row that is kept, where each work-item would keep one of its own besides, stays with one work-item."""
    s0, s1 = (of(Symbol(number, 0, f"s{number}")) for number in (0, 1))
    x, out = (Buffer(name, f64, (s0, s1), space) for name, space in (("x", Space.INPUT), ("out", Space.OUTPUT)))
    e, own = (Buffer(name, f64, (s1,), Space.THREAD) for name in ("e", "own"))
    acc = Buffer("acc", f64, (), Space.REG)

    def given(inner):
        fresh = FreshLoops(Kernel("k", sequence(())))
        (row, i), (adds, k), (last, j), (third, m) = (fresh.loop(extent) for extent in (s0, s1, s1, s1))
        store = Store(out, (i, j), Load(e, (j,)))
        steps = (
            start(acc, Reduce.SUM),
            nest(third, Store(e, (m,), Load(x, (i, m)))),
            nest(adds, Store(acc, (), Load(x, (i, k)), Reduce.SUM)),
            nest(last, Alloc(own, sequence((Store(own, (j,), Load(acc, ())), store))) if inner else store),
        )
        return fresh, Nest(row, Alloc(e, Alloc(acc, sequence(steps))))

    assert shared_rows(*given(inner=False), 0) is not None
    assert shared_rows(*given(inner=True), 0) is None


def test_short_columns_stay_with_their_work_items_and_long_ones_go_by_parts():
    text = loops(lambda x: hnp.sum(x, axis=0), X)
    assert "s0 - 17 >= 0" in text and re.search(r"parts0: f64\[.*s0.*, s1\]", text)
    assert "item" not in text.rsplit("else:", 1)[1]
    assert "item" not in loops(lambda x: hnp.sum(x, axis=0), X, target=CORES)


def test_what_later_sums_of_columns_need_is_in_memory():
    text = loops(lambda x: hnp.exp(x - hnp.max(x, axis=0)) / hnp.var(x, axis=0), X)
    assert text.count("digits") >= 3 and "columns" in text


def test_scatters_into_few_rows_are_looked_for():
    i = np.zeros(5, int)
    known = loops(lambda i: hnp.zeros(10).at[i].add(1.0), i)
    assert "s0 - 2048 >= 0" in known and "parts" in known and "item" in known
    assert "parts" not in loops(lambda i: hnp.zeros(65).at[i].add(1.0), i)
    assert "last" in loops(lambda i, x: hnp.zeros((10, 7)).at[i].set(x), i, X)


def test_scatters_into_many_rows_are_sorted():
    i = np.zeros(5, int)
    for text in (
        loops(lambda z, i: z.at[i].add(1.0), X[0], i),
        loops(lambda i: hnp.zeros(65).at[i].add(1.0), i),
    ):
        assert "- 256 >= 0" in text and "= order(keys" in text and text.count("sums") > 4
    product = loops(lambda z, i: z.at[i].multiply(2.0), X[0], i)
    assert "= order(keys" in product and "sums" not in product  # in their order


def test_products_are_made_by_squares():
    text = loops(lambda x, y: hnp.tanh(x @ y + 1), X, X.T)
    assert "private v0: f64[256, 4, 4]" in text and "group v0_part_a: f64[16, 64]" in text and "for grid" in text
    assert "s0 - 16 >= 0 and" in text


@pytest.mark.parametrize("group", [0, 64, 128])
def test_products_without_squares_where_groups_are_small(group):
    target = Target(fma=True, grid=True, wide=True, group=group)
    assert "private" not in loops(lambda x, y: x @ y, X, X.T, target=target)


def test_transposes_go_through_tiles():
    text = loops(lambda x, y: x.T * 2 + y, X, X.T)
    assert "group tile0: f64[32, 33]" in text and "s0 - 32 >= 0" in text
    assert "tile0" in loops(lambda x: hnp.transpose(x, (1, 0, 2, 3)[::-1]), np.ones((2, 3, 4, 5)))


def test_batches_and_sums_over_two_axes():
    text = loops(lambda x, y: hnp.einsum("bij,bjk->bik", x, y), np.ones((2, 3, 4)), np.ones((2, 4, 5)))
    assert "private" in text
    loops(lambda x, y: hnp.tensordot(x, y, 2), np.ones((2, 3, 4)), np.ones((3, 4, 5)))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_go_by_blocks(reverse):
    function = harp.jit(lambda x: harp.lax.cumsum(x, axis=1, reverse=reverse))
    text = loops(function, X)
    assert "v0_starts" in text and "for item" in text


def test_products_of_floats_run_alone():
    """A part may overflow where the product of all is 0."""
    assert "item" not in loops(lambda x: hnp.cumprod(x, axis=1), X)


def test_long_rows_are_sorted_by_many():
    for text in (loops(lambda x: hnp.sort(x), X), loops(lambda x: hnp.sort(x), X, target=CORES)):
        many, one = text.split("else:")
        assert "sort(in0[" in many and "thread" not in many and "thread" in one


def test_long_rows_that_are_fewer_than_cores_are_sorted_by_all_of_them():
    cores = Target(fma=True, grid=True, cores=4)
    assert "s1 - 65536 >= 0 and -s0 + 3 >= 0" in loops(lambda x: hnp.sort(x), X, target=cores)
    assert "65536" not in loops(lambda x: hnp.sort(x), X[0], target=Target(fma=True, grid=True, cores=1))
    assert "item" not in loops(lambda x: hnp.sum(x, axis=1), X, target=cores)
