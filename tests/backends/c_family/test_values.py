"""Loops with choices are vectors: what only one side of a choice needs is computed for all elements."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.compilers import Family
from harp.backends.toolchain.toolchain import find_toolchain
from harp.scipy import special, stats

X = np.linspace(-2.9, 3.0, 12).reshape(3, 4)
LOOPS = {
    "one number": (lambda x, s, r, m: hnp.where(x > 0, s * x, s), lambda x, s, r, m: np.where(x > 0, s * x, s)),
    "a number for each row": (
        lambda x, s, r, m: hnp.where(x > 0, r[:, None] * x, 0),
        lambda x, s, r, m: np.where(x > 0, r[:, None] * x, 0),
    ),
    "a call": (
        lambda x, s, r, m: hnp.where(x > 0, hnp.exp(s * x), x),
        lambda x, s, r, m: np.where(x > 0, np.exp(s * x), x),
    ),
    "choices of choices": (
        lambda x, s, r, m: hnp.where(x > 0, hnp.where(x > 1, x / s, hnp.where(x > 2, x * s, x)), -x),
        lambda x, s, r, m: np.where(x > 0, np.where(x > 1, x / s, np.where(x > 2, x * s, x)), -x),
    ),
    "sums under masks": (lambda x, s, r, m: hnp.sum(x, where=m), lambda x, s, r, m: np.sum(x, where=m)),
    "means of masks": (lambda x, s, r, m: hnp.mean(m), lambda x, s, r, m: np.mean(m)),
    "gamma": (lambda x, s, r, m: special.gamma(x), None),
    "gammaln": (lambda x, s, r, m: special.gammaln(x), None),
    "densities": (lambda x, s, r, m: stats.expon.logpdf(x, s), None),
    "remainders": (lambda x, s, r, m: x % s, lambda x, s, r, m: np.remainder(x, s)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOOPS)
def test_choices_become_vectors(name, dtype, tmp_path):
    toolchain = find_toolchain()
    if toolchain is None or toolchain.family is not Family.GCC or toolchain.vector_bytes < 32:
        pytest.skip("gcc and vectors of AVX are needed")
    function, reference = LOOPS[name]
    report = tmp_path / "vectors.txt"
    # -O3, for some runs of the tests take -O2 away.
    options = harp.CompileOptions(extra_flags=("-O3", f"-fopt-info-vec-optimized={report}"))
    x = X.astype(dtype)
    arguments = x, np.asarray(1.5, dtype), x[:, 1].copy(), x > 0.5
    result = harp.jit(function, options=options)(*arguments)
    assert "loop vectorized" in report.read_text()
    wanted = reference(*arguments) if reference else harp.jit(function)(*arguments)
    np.testing.assert_allclose(result, wanted, rtol=2e-6)
