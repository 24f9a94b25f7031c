"""Reductions of a few terms, whose number is known, have the numbers of longer ones and no inner loop."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

FUNCTIONS = {
    "sum": lambda np, x: x.sum(axis=0),
    "of what is computed": lambda np, x: (abs(x) * 2 - 1).sum(axis=0),
    "maximum": lambda np, x: x.max(axis=0),
    "what follows": lambda np, x: x.sum(axis=0) / (abs(x).max(axis=0) + 1),
    "product": lambda np, x: (x * x[::-1]).sum(axis=0),
    "two axes": lambda np, x: x[:, None].min(axis=(0, 1)),
}


DTYPES = {"float32": harp.f32, "float64": harp.f64, "int32": harp.i32}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", [1, 2, 3, 16, 17])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, terms: int, dtype: str) -> None:
    compiled = harp.jit(lambda x: FUNCTIONS[name](hnp, x), signature=(DTYPES[dtype][terms, "n"],))
    rng = np.random.default_rng(0)
    for columns in (0, 1, 7, 64, 1000):
        x = (9 * rng.standard_normal((terms, columns))).astype(dtype)
        np.testing.assert_allclose(np.asarray(compiled(x)), FUNCTIONS[name](np, x), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("terms", [2, 16])
def test_same_bits_as_more_terms(terms: int) -> None:
    """More terms, of which the last are zeros, are added in a loop, in the same order."""

    def total(terms: int) -> harp.JitFunction:
        return harp.jit(lambda x: (x * 1.5).sum(axis=0), signature=(harp.f64[terms, "n"],))

    x = np.random.default_rng(0).standard_normal((terms, 100))
    taller = np.concatenate([x, np.zeros((20, 100))])
    np.testing.assert_array_equal(np.asarray(total(terms)(x)), np.asarray(total(terms + 20)(taller)))


def test_which_reductions_are_written_out() -> None:
    def loops(function, *signature) -> str:
        arrays = (np.ones([n if isinstance(n, int) else 9 for n in s.shape], s.dtype.numpy) for s in signature)
        return harp.jit(function, signature=signature).lower(*arrays).loops

    few = loops(lambda x: x.sum(axis=0), harp.f64[4, "n"])
    assert "local" not in few and few.count("for") == 2, "strips of a loop along memory"
    assert "local" in loops(lambda x: x.sum(axis=0), harp.f64[40, "n"]), "there are many terms"
    assert "local" in loops(lambda x: x.sum(axis=0), harp.f64["m", "n"]), "nobody knows how many"
    twice = loops(lambda x: hnp.repeat(x, 2).reshape(-1, 2).sum(1), harp.f64["n"])
    assert "local" not in twice
