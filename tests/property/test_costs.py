"""The costs of random programs and of their gradients are what their loop nests do when they run."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from steps import examples
from test_programs import SIZES, Program, programs

import harp
import harp.numpy as hnp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lower"))

from counting import compare_function

FEW = st.lists(SIZES.filter(lambda n: n < 9), min_size=3, max_size=3)


@examples(40)
@given(programs("f"), FEW)
def test_programs_cost_what_they_do(program: Program, sizes):
    arguments = [np.random.default_rng(0).normal(size=tuple(sizes[: program.rank])) for _ in range(2)]
    compare_function(lambda x, y: program.run([x, y], 0), arguments)


@examples(40)
@given(programs("f"), FEW)
def test_gradients_cost_what_they_do(program: Program, sizes):
    def loss(x, y):
        values = [v for v in program.run([x, y], 0) if v.dtype.kind == "f"]
        return sum((hnp.sum(v * v) for v in values), hnp.sum(x))

    arguments = [np.random.default_rng(0).normal(size=tuple(sizes[: program.rank])) for _ in range(2)]
    compare_function(harp.grad(loss), arguments)
