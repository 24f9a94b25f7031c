"""Which loops become the grid of a launch, and what stays with the host."""

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

WIDE, CORES = Target(fma=True, grid=True, wide=True), Target(64, True, 2, grid=True)
X = np.ones((5, 7))


@pytest.fixture(autouse=True)
def verified(monkeypatch):
    """Each pass is run before and after, on random data."""
    monkeypatch.setattr(settings, "verify", 3)


def loops(function, *arguments, target=WIDE):
    return program_text(lower(canonical(harp.jit(function).lower(*arguments).graph), target).program)


def test_elements_are_work_items():
    assert "for grid i2 < s0*s1:\n    out0.flat[i2]" in loops(lambda x: x + 1, X)
    assert loops(lambda x: x + x[0], X).count("for grid") == 2


def test_columns_of_a_scatter_go_outside():
    text = loops(lambda x: x.at[np.array([0, 3, 1])].add(1.0), X)
    grid = text[text.index("kernel 1 scatter") :]
    assert grid.index("for grid") < grid.index("for i0 < 3") < grid.index("if s0 -")


def test_sums_of_everything_are_parts_and_their_sum():
    text = loops(lambda x: hnp.sum(x), X)
    assert text.count("for grid") == 1 and "between" not in text  # the sum of the parts is a variable


def test_what_passes_between_launches_is_in_memory():
    text = loops(lambda x: (x - hnp.mean(x)) / hnp.sum(x * x), X)
    assert "between" in text and text.count("for grid") == 3


def test_small_steps_are_done_by_one_work_item_and_large_ones_by_launches():
    small = loops(lambda x: harp.scan(lambda c, r: (hnp.tanh(c + r), None), hnp.zeros(7), x)[0], X)
    large = loops(lambda x: harp.fori_loop(0, 5, lambda i, c: c * 0.5 + 1, x), X)
    assert "grid" not in small[small.index("repeat i") :].split("for grid")[0]
    assert "for grid" in large[large.index("repeat i") :]


def test_cores_keep_their_loops():
    text = loops(lambda x: x + 1, X, target=CORES)
    assert "for grid" in text and "for simd" in text


FUNCTIONS = {
    "rows": lambda x: hnp.exp(x - hnp.max(x, 1, keepdims=True)) / hnp.sum(x, 1, keepdims=True),
    "running sums": lambda x: (hnp.cumsum(x, 1), hnp.cumsum(x)),
    "sort": lambda x: hnp.sort(x, 1),
    "product": lambda x: x @ x.T,
    "branch": lambda x: harp.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x - 1, x),
    "until data ends it": lambda x: harp.while_loop(lambda c: hnp.sum(c) < 50, lambda c: c * 2, x),
    "gradient": harp.grad(lambda x: hnp.sum(hnp.tanh(x @ x.T) ** 2)),
    "steps": harp.grad(lambda x: hnp.sum(harp.scan(lambda c, r: (hnp.tanh(c * r), c), x[0], x)[0])),
}


@pytest.mark.parametrize("target", [WIDE, CORES], ids=["wide", "cores"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_it_makes_computes_the_same(name, target):
    loops(FUNCTIONS[name], X + np.arange(7), target=target)
