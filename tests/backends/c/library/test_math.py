"""Elementwise functions of generated C: special values as NumPy's, errors within the stated bounds, vector code."""

from __future__ import annotations

import ctypes
import importlib.util
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

# The largest error in ULP: the table of docs/elementwise.md, which benchmarks/ulp.py measures.
_BOTH = {
    **dict.fromkeys((Op.EXP, Op.EXP2), 1.25),
    **dict.fromkeys((Op.EXPM1, Op.LOG1P), 1.5),
    Op.TANH: 1.75,
    **dict.fromkeys((Op.LOG, Op.LOG2, Op.LOG10), 1.0),
}
_OF_F64 = {Op.SIN: 1.0, Op.COS: 1.0, Op.TAN: 1.5, Op.POW: 1.5}
_OF_F32 = {Op.SIN: 1.25, Op.COS: 1.25, Op.TAN: 1.5, Op.POW: 0.75}
BOUNDS: dict[tuple[Op, DType], float] = {
    **{(op, dtype): bound for op, bound in _BOTH.items() for dtype in (f32, f64)},
    **{(op, f32): bound for op, bound in _OF_F32.items()},
    **{(op, f64): bound for op, bound in _OF_F64.items()},
}
CASES = pytest.mark.parametrize(("op", "dtype"), BOUNDS, ids=lambda x: str(getattr(x, "value", x)))

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def run(op: Op, arrays: list[np.ndarray]) -> np.ndarray:
    return np.asarray(harp.jit(getattr(hnp, NAMES.get(op, op.value)))(*arrays))


@needs_compiler
@CASES
def test_special_values(op: Op, dtype: DType) -> None:
    values = specials(dtype)
    arrays = [values]
    if INFO[op].arity == 2:
        arrays = [np.repeat(values, values.size), np.tile(values, values.size)]
    got, expected = run(op, arrays), reference(op, arrays, dtype.numpy)
    special = ~np.isfinite(expected) | (expected == 0) | (np.abs(expected) == 1)
    np.testing.assert_array_equal(got[special], expected[special])
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@needs_compiler
@CASES
def test_error_is_within_the_bound(op: Op, dtype: DType) -> None:
    wide = np.float64 if dtype is f32 else np.longdouble
    if np.finfo(wide).nmant < np.finfo(dtype.numpy).nmant + 8:
        pytest.skip("long double has no more digits than double")
    arrays = operands(op, samples(dtype))
    got, exact = run(op, arrays), reference(op, arrays, wide)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    numbers = ~np.isnan(exact)
    worst = errors(got[numbers], exact[numbers])
    index = int(np.argmax(worst))
    assert worst[index] <= BOUNDS[op, dtype], [float(a[numbers][index]).hex() for a in arrays]


@needs_compiler
def test_next_to_a_multiple_of_a_right_angle() -> None:
    """The double that comes closest to one (J.-M. Muller, Elementary Functions, on range reduction)."""
    x = np.array([1.0, -1.0]) * np.ldexp(6381956970095103.0, 797)
    np.testing.assert_allclose(run(Op.COS, [x]), [-4.68716592425462761112e-19] * 2, rtol=3e-16)
    np.testing.assert_array_equal(run(Op.SIN, [x]), [1.0, -1.0])
    np.testing.assert_allclose(run(Op.TAN, [x]), np.array([-1.0, 1.0]) / 4.68716592425462761112e-19, rtol=3e-16)


@needs_compiler
@CASES
def test_the_same_bits_at_every_place(op: Op, dtype: DType) -> None:
    """Vectors and the rest of a loop compute alike."""
    arrays = operands(op, samples(dtype)[:10_000])
    whole = run(op, arrays)
    for start, size in ((0, 1), (1, 7), (5, 33), (3, 1000)):
        part = run(op, [np.ascontiguousarray(a[start : start + size]) for a in arrays])
        same = (part == whole[start : start + size]) | np.isnan(part)
        assert same.all() and np.array_equal(np.isnan(part), np.isnan(whole[start : start + size]))


def loop(op: Op, dtype: DType) -> str:
    """A unit of C that applies the function to arrays."""
    c = scalar.TYPES[dtype]
    body = f"""
HARP_EXPORT void run(int64_t n, const {c} *restrict a, const {c} *restrict b, {c} *restrict out)
{{
    for (int64_t i = 0; i < n; i++) out[i] = {scalar.operation(op, dtype, ("a[i]", "b[i]")[: INFO[op].arity])};
    (void)b;
}}
"""
    return unit(body, [op], dtype)


@needs_gcc
@CASES
@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_loops_are_vectorised(op: Op, dtype: DType, instructions: str, tmp_path: Path) -> None:
    flags = (*FLAGS, "-fvect-cost-model=dynamic", "-fopt-info-vec", *INSTRUCTIONS[instructions])
    command = ["gcc", *flags, *STRICT, "-o", str(tmp_path / "loop.o")]
    done = subprocess.run(command, input=loop(op, dtype), capture_output=True, text=True, check=False)
    if "unrecognized" in done.stderr or "bad value" in done.stderr:
        pytest.skip("gcc does not know this instruction set")
    assert done.returncode == 0, done.stderr
    assert "loop vectorized" in done.stderr


@needs_gcc
@CASES
def test_error_without_instructions_of_this_machine(op: Op, dtype: DType, tmp_path: Path) -> None:
    """In particular without a fused multiply-add, for which products are then split."""
    wide = np.float64 if dtype is f32 else np.longdouble
    if np.finfo(wide).nmant < np.finfo(dtype.numpy).nmant + 8:
        pytest.skip("long double has no more digits than double")
    library = tmp_path / "loop.so"
    command = ["gcc", *FLAGS, "-fPIC", "-shared", "-x", "c", "-", "-o", str(library), "-lm"]
    subprocess.run(command, input=loop(op, dtype), text=True, check=True)
    arrays = [np.ascontiguousarray(a) for a in operands(op, samples(dtype))]
    got = np.empty_like(arrays[0])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (arrays[0], arrays[-1], got)]
    ctypes.CDLL(str(library)).run(ctypes.c_int64(got.size), *pointers)
    exact = reference(op, arrays, wide)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    numbers = ~np.isnan(exact)
    assert errors(got[numbers], exact[numbers]).max() <= BOUNDS[op, dtype]


@CASES
def test_clang_takes_it_without_warnings(op: Op, dtype: DType, tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    command = [*CLANG, *FLAGS, *STRICT, "-o", str(tmp_path / "loop.o")]
    done = subprocess.run(command, input=loop(op, dtype), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@CASES
def test_lines_are_short(op: Op, dtype: DType) -> None:
    assert max(map(len, loop(op, dtype).splitlines())) <= 120


def test_the_documentation_states_the_bounds() -> None:
    text = (ROOT / "docs" / "elementwise.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    table = {(row[0].strip("`"), row[1]): row for row in rows if len(row) == 6}
    for (op, dtype), bound in BOUNDS.items():
        _, _, stated, fused, plain, _ = table[op.value, np.dtype(dtype.numpy).name]
        assert max(float(fused), float(plain)) <= float(stated) == bound, (op, dtype)
