"""Shapes without numbers."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError


def test_shapes_and_dtypes_of_trees():
    found = harp.eval_shape(
        lambda p, x, *, k: {"y": x @ p["w"], "n": (hnp.argmax(x), k * 2)},
        {"w": harp.f32[3, 4]},
        np.ones((2, 3), "f4"),
        k=1,
    )
    assert found == {"y": harp.f32[2, 4], "n": (harp.i64[()], harp.i64[()])}
    assert harp.eval_shape(lambda x: x[:0], np.ones(3)).shape == (0,)


def test_nothing_is_computed():
    huge = harp.f64[10**6, 10**6]
    assert harp.eval_shape(lambda x: hnp.sum(x @ x, axis=0), huge) == harp.f64[10**6]
    assert harp.eval_shape(harp.grad(lambda x: hnp.sum(x**2)), huge) == huge
    assert harp.eval_shape(lambda x: harp.while_loop(lambda y: y > 0, lambda y: y + 1, x), 1.0).shape == ()


def test_inside_a_trace_sizes_are_symbols():
    @harp.jit
    def f(x):
        rows = harp.eval_shape(lambda x: x.T, x).shape[1]
        return hnp.zeros(rows)

    assert f(np.ones((2, 3))).shape == (2,) and f(np.ones((5, 3))).shape == (5,)
    assert f.compilations == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.eval_shape(lambda x: x, harp.f32["n"]), ArgumentError, "takes numbers for sizes"),
        (lambda: harp.eval_shape(lambda x: x @ x, harp.f32[2, 3]), ShapeError, "matmul"),
        (lambda: harp.eval_shape(lambda x, s: x, harp.f32[2], "s"), ArgumentError, "argument s is a str"),
        (lambda: harp.eval_shape(3), ArgumentError, "takes a function first"),
    ],
)
def test_what_has_no_shape(call, error, words):
    with pytest.raises(error, match=words):
        call()
