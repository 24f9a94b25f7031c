"""Which nests groups of work-items share, and how: each pass is run before and after, on random data."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.config import settings
from harp.lower.loopir.text import program_text
from harp.lower.pipeline import lower
from harp.lower.target import Target
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
    long, short = text.split("  else:")[:2]
    assert "s1 - 65536 >= 0" in long and "s1 - 128 >= 0" in short
    assert "for item i" in text and "group v0_parts: f64[256]" in text
    assert "item" not in text.rsplit("else:", 1)[1]


def test_everything_that_a_row_needs_is_done_by_its_group():
    text = loops(lambda x: hnp.exp(x - hnp.max(x, axis=1, keepdims=True)) / hnp.sum(x * x, axis=1, keepdims=True), X)
    assert text.count("for item") >= 5


def test_short_columns_stay_with_their_work_items_and_long_ones_go_by_parts():
    text = loops(lambda x: hnp.sum(x, axis=0), X)
    assert "s0 - 2048 >= 0" in text and "parts0: f64[32*(s0//2048), s1]" in text
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
    sized = loops(lambda z, i: z.at[i].add(1.0), X[0], i)
    assert "-s1 + 64 >= 0" in sized and "item" not in sized  # in the order of many rows
    assert "item" not in loops(lambda z, i: z.at[i].multiply(2.0), X[0], i)


def test_products_are_made_by_squares():
    text = loops(lambda x, y: hnp.tanh(x @ y + 1), X, X.T)
    assert "private v0: f64[256, 4, 4]" in text and "group v0_a: f64[16, 64]" in text and "for grid" in text
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
    text = loops(lambda x: hnp.sort(x), X)
    assert "s1 - 2048 >= 0" in text


def test_long_rows_that_are_fewer_than_cores_are_sorted_by_all_of_them():
    cores = Target(fma=True, grid=True, cores=4)
    assert "s1 - 65536 >= 0 and -s0 + 3 >= 0" in loops(lambda x: hnp.sort(x), X, target=cores)
    assert "65536" not in loops(lambda x: hnp.sort(x), X[0], target=Target(fma=True, grid=True, cores=1))
    assert "item" not in loops(lambda x: hnp.sum(x, axis=1), X, target=cores)
