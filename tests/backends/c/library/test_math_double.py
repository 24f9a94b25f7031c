"""Functions that generated C computes in double: errors within the stated bounds, vector code, equal bits anywhere."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from accuracy import (
    CLANG,
    FLAGS,
    INSTRUCTIONS,
    NAMES,
    ROOT,
    STRICT,
    errors,
    operands,
    reference,
    samples,
    specials,
    unit,
)

import harp
import harp.numpy as hnp
from harp.backends.c_family import scalar
from harp.backends.toolchain.toolchain import find_toolchain
from harp.trace.scalar.dtypes import DType, f32, f64
from harp.trace.scalar.ops import INFO, Op

# The largest error in ULP of float64: the table of docs/elementwise.md, which benchmarks/ulp.py measures.
BOUNDS = {
    **dict.fromkeys((Op.ASIN, Op.ACOS, Op.ACOSH), 3.0),
    **dict.fromkeys((Op.ATAN, Op.ATAN2, Op.ASINH, Op.ATANH, Op.SINH, Op.COSH), 2.5),
    **dict.fromkeys((Op.HYPOT, Op.CBRT), 1.5),
}
SPECIAL = {Op.ERF: 2.0, Op.ERFC: 4.0, Op.ERFINV: 3.0}  # no NumPy function in more digits: see tests/numpy
OF_F32 = 0.75
OPS = (*BOUNDS, *SPECIAL)
EXACT = (Op.COPYSIGN, Op.NEXTAFTER, Op.RINT)
DTYPES = pytest.mark.parametrize("dtype", [f32, f64], ids=str)

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def function(op: Op) -> object:
    return getattr(hnp.special if op in SPECIAL else hnp, NAMES.get(op, op.value))


@harp.jit
def compute(x, y):
    return {op.value: function(op)(*(x, y)[: INFO[op].arity]) for op in (*OPS, *EXACT)}


def arguments(dtype: DType) -> list[np.ndarray]:
    """Samples, numbers within [-1, 1], pairs of similar and of unrelated size, and all pairs of special values."""
    rng = np.random.default_rng(3)
    x, special = samples(dtype), specials(dtype)
    _, other = operands(Op.ATAN2, x)
    within = rng.uniform(-1, 1, 20_000).astype(dtype.numpy)
    similar = (x * np.exp2(rng.uniform(-4, 4, x.size))).astype(dtype.numpy)
    first = np.concatenate([x, x, within, np.repeat(special, special.size)])
    return [first, np.concatenate([other, similar, within[::-1], np.tile(special, special.size)])]


@needs_compiler
@DTYPES
def test_error_is_within_the_bound(dtype: DType) -> None:
    wide = np.float64 if dtype is f32 else np.longdouble
    if np.finfo(wide).nmant < np.finfo(dtype.numpy).nmant + 8:
        pytest.skip("long double has no more digits than double")
    with np.errstate(all="ignore"):
        given = arguments(dtype)
        found = compute(*given)
        for op, bound in BOUNDS.items():
            arrays = given[: INFO[op].arity]
            got, exact = np.asarray(found[op.value]), reference(op, arrays, wide)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(exact), err_msg=op.value)
            numbers = ~np.isnan(exact)
            np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(exact[numbers]), err_msg=op.value)
            worst = errors(got[numbers], exact[numbers])
            index = int(np.argmax(worst))
            limit = OF_F32 if dtype is f32 else bound
            assert worst[index] <= limit, [op.value, *(float(a[numbers][index]).hex() for a in arrays)]


@needs_compiler
@DTYPES
def test_exact_functions(dtype: DType) -> None:
    x, y = arguments(dtype)
    found = compute(x, y)
    for op in EXACT:
        expected = reference(op, [x, y][: INFO[op].arity], dtype.numpy.type)
        np.testing.assert_array_equal(np.asarray(found[op.value]), expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[op.value])[numbers], np.signbit(expected)[numbers])


@needs_compiler
@DTYPES
def test_the_same_bits_at_every_place(dtype: DType) -> None:
    x, y = (a[:5000] for a in arguments(dtype))
    whole = {name: np.asarray(value) for name, value in compute(x, y).items()}
    for start, size in ((0, 1), (5, 33), (3, 1000)):
        part = slice(start, start + size)
        for name, value in compute(x[part].copy(), y[part].copy()).items():
            np.testing.assert_array_equal(np.asarray(value), whole[name][part])


def loops(dtype: DType) -> str:
    """A unit of C that applies each function to arrays."""
    c = scalar.TYPES[dtype]
    body = "".join(
        f"""
HARP_EXPORT void run_{op.value}(int64_t n, const {c} *restrict a, const {c} *restrict b, {c} *restrict out)
{{
    for (int64_t i = 0; i < n; i++) out[i] = {scalar.operation(op, dtype, ("a[i]", "b[i]")[: INFO[op].arity])};
    (void)b;
}}
"""
        for op in (*OPS, *EXACT)
    )
    return unit(body, (*OPS, *EXACT), dtype)


@needs_gcc
@DTYPES
@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_loops_are_vectorised(dtype: DType, instructions: str, tmp_path: Path) -> None:
    flags = (*FLAGS, "-fvect-cost-model=dynamic", "-fopt-info-vec", *INSTRUCTIONS[instructions])
    command = ["gcc", *flags, *STRICT, "-o", str(tmp_path / "loop.o")]
    source = loops(dtype)
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if "unrecognized" in done.stderr or "bad value" in done.stderr:
        pytest.skip("gcc does not know this instruction set")
    assert done.returncode == 0, done.stderr
    places = {
        int(line.split(":")[1]) for line in done.stderr.splitlines() if re.match("<stdin>.*loop vectorized", line)
    }
    lines = source.splitlines()
    heads = {n for n, line in enumerate(lines, 1) if line.startswith("    for (")}
    if instructions == "baseline":  # which has no comparison of 64-bit integers to choose between neighbours
        heads = {n for n in heads if "nextafter" not in lines[n - 1]}
    assert heads <= places, [lines[n - 1] for n in heads - places]


@DTYPES
def test_clang_takes_it_without_warnings(dtype: DType, tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    command = [*CLANG, *FLAGS, *STRICT, "-o", str(tmp_path / "loop.o")]
    done = subprocess.run(command, input=loops(dtype), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert max(map(len, loops(dtype).splitlines())) <= 120


def test_the_documentation_states_the_bounds() -> None:
    text = (ROOT / "docs" / "elementwise.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    table = {(row[0].strip("`"), row[1]): row for row in rows if len(row) == 6}
    for op, bound in {**BOUNDS, **SPECIAL}.items():
        for dtype, limit in ((f32, OF_F32), (f64, bound)):
            _, _, stated, fused, plain, _ = table[op.value, np.dtype(dtype.numpy).name]
            assert max(float(fused), float(plain)) <= float(stated) == limit, (op, dtype)
