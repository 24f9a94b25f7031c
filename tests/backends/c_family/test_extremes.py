"""max and min in C: one instruction and a blend, NaN handed on from every place, the first of two zeros."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from accuracy import LIBRARY, unit

import harp
import harp.numpy as hnp
from harp.backends.c_family import scalar
from harp.backends.toolchain.toolchain import find_toolchain
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.ops import Op

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@harp.jit
def extremes(x):
    return [getattr(hnp, name)(x, axis=axis) for name in ("max", "min") for axis in (None, 0, 1)]


def expected(x):
    return [getattr(np, name)(x, axis=axis) for name in ("max", "min") for axis in (None, 0, 1)]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_handed_on_from_every_place(dtype):
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (1, 77), (5, 40), (70, 3), (9, 130)):
        x = rng.normal(size=(rows, columns)).astype(dtype)
        x[rng.integers(rows), rng.integers(columns)] = np.inf
        for place in [None, *range(0, x.size, 1 if x.size < 250 else 7)]:
            y = x.copy()
            if place is not None:
                y.flat[place] = np.nan
            for got, wanted in zip(extremes(y), expected(y), strict=True):
                np.testing.assert_array_equal(np.asarray(got), wanted)
    assert extremes.compilations <= 2  # one for each dtype


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64"])
def test_elementwise(dtype):
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0] if dtype.startswith("f") else [0, 1, 7, 100, 127]
    a, b = (np.ravel(m) for m in np.meshgrid(np.array(special, dtype), np.array(special, dtype)))
    for function in (hnp.maximum, hnp.minimum):
        got = np.asarray(harp.jit(function)(a, b))
        np.testing.assert_array_equal(got, getattr(np, function.__name__)(a, b))
        zeros = (a == 0) & (b == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(a[zeros]))


@needs_gcc
@pytest.mark.parametrize(("dtype", "instruction"), [(f32, "ps"), (f64, "pd")], ids=["float32", "float64"])
@pytest.mark.parametrize("isa", [("-mavx2", "-mfma"), ("-march=x86-64-v4", "-mprefer-vector-width=512")])
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN])
def test_one_instruction(op, isa, dtype, instruction):
    c = scalar.TYPES[dtype]
    body = f"""
HARP_EXPORT void run(int64_t n, const {c} *restrict a, {c} *restrict out)
{{
    for (int64_t i = 0; i < n; i++) out[i] = {scalar.operation(op, dtype, ("out[i]", "a[i]"))};
}}
"""
    flags = (f"-I{LIBRARY}", "-std=gnu11", "-O2", "-ftree-vectorize", "-fno-trapping-math", "-fvect-cost-model=dynamic")
    command = ["gcc", *flags, *isa, "-S", "-x", "c", "-o", "-", "-"]
    done = subprocess.run(command, input=unit(body, [op], dtype), capture_output=True, text=True, check=False)
    if "unrecognized" in done.stderr or "bad value" in done.stderr:
        pytest.skip("gcc does not know this instruction set")
    assert f"v{op.value}{instruction}" in done.stdout
