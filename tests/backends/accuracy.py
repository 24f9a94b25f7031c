"""Samples for elementwise functions of generated C, and errors in units in the last place (ULP)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from harp.backends.c_family import scalar
from harp.trace.scalar.dtypes import DType
from harp.trace.scalar.ops import INFO, Op

NAMES = {
    Op.POW: "power",
    Op.ASIN: "arcsin",
    Op.ACOS: "arccos",
    Op.ATAN: "arctan",
    Op.ATAN2: "arctan2",
    Op.ASINH: "arcsinh",
    Op.ACOSH: "arccosh",
    Op.ATANH: "arctanh",
}
LIBRARY = Path(scalar.__file__).parents[1] / "c" / "library"
FLAGS = (
    f"-I{LIBRARY}",
    "-std=gnu11",
    "-O2",
    "-ftree-vectorize",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
)
STRICT = ("-fwrapv", "-Wall", "-Wextra", "-Werror", "-c", "-x", "c", "-")
ROOT = Path(__file__).resolve().parents[2]
CLANG = (sys.executable, "-m", "ziglang", "cc")
INSTRUCTIONS = {"baseline": (), "avx2": ("-mavx2", "-mfma"), "avx512": ("-march=x86-64-v4",)}


def unit(body: str, ops: Iterable[Op], *dtypes: DType) -> str:
    """A unit of C that uses these operations."""
    headers = sorted({name for op in ops for dtype in dtypes for name in scalar.operation_headers(op, dtype)})
    return "".join(f'#include "{name}"\n' for name in ("generated.h", *headers)) + body


def specials(dtype: DType) -> np.ndarray:
    info = np.finfo(dtype.numpy)
    plain = [0.0, 1.0, 2.0, 3.0, 0.5, 2.5, 88.0, 100.0, 750.0, 1e-30, 1e30, np.inf]
    limits = [float(x) for x in (info.max, info.tiny, info.smallest_subnormal, info.eps, info.tiny / 3)]
    whole = [float(n) for n in (info.maxexp, info.minexp, info.nmant + 1, info.nmant, 2**31 - 1)]
    return np.array([s * x for x in plain + limits + whole for s in (1, -1)] + [np.nan], dtype.numpy)


def samples(dtype: DType) -> np.ndarray:
    """Dense around 0, 1, thresholds and where polynomials meet; random bits; numbers of everyday size."""
    rng = np.random.default_rng(7)
    info = np.finfo(dtype.numpy)
    log_2 = float(np.log(2))
    meet = [0.0, 1.0, 2.0, 0.5, 0.625, 0.5**0.5, 2**0.5 - 1, 0.5**0.5 - 1, *(log_2 * (n + 0.5) for n in range(-3, 4))]
    ends = [float(n) for n in (info.maxexp, info.minexp, info.minexp - info.nmant - 1)]
    turns = [np.pi / 4 * n for n in (1, 2, 3, 4, 6, 11, 1001)]
    near = np.array([*meet, *ends, *(log_2 * n for n in ends), *turns, float(info.tiny), float(info.max)], dtype.numpy)
    steps = near.view(f"i{dtype.itemsize}")[:, None] + np.arange(-50, 51)
    dense = steps.astype(f"i{dtype.itemsize}").view(dtype.numpy).ravel()
    bits = rng.integers(0, 1 << (8 * dtype.itemsize), 20_000, np.uint64).astype(f"u{dtype.itemsize}")
    plain = [rng.uniform(-size, size, 10_000) for size in (0.01, 1, 3, 30, 110, 760, 1100)]
    parts = [dense, -dense, bits.view(dtype.numpy), *plain, specials(dtype)]
    values = np.concatenate([np.asarray(part).astype(dtype.numpy) for part in parts])
    return np.where(np.isnan(values), np.nan, values).astype(dtype.numpy)  # quiet ones: libm's differ about signalling


def operands(op: Op, values: np.ndarray) -> list[np.ndarray]:
    """One or two arrays; of two, every other pair has a power that is a number."""
    if INFO[op].arity == 1:
        return [values]
    rng = np.random.default_rng(8)
    others = rng.permutation(values)
    fitting = rng.uniform(-150, 130, values.size) / np.log2(np.abs(values.astype(np.float64)))
    return [values, np.where(rng.integers(0, 2, values.size) == 1, others, fitting.astype(values.dtype))]


def reference(op: Op, arrays: list[np.ndarray], wide: type) -> np.ndarray:
    return np.asarray(getattr(np, NAMES.get(op, op.value))(*(a.astype(wide) for a in arrays)))


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """In ULP of `exact`, which has more digits, for results that are numbers; past the largest one comes infinity."""
    info = np.finfo(got.dtype)
    end = np.exp2(exact.dtype.type(info.maxexp))
    size, other = (np.minimum(np.abs(x.astype(exact.dtype)), end) for x in (exact, got))
    exponent = np.clip(np.frexp(size)[1] - 1, info.minexp, info.maxexp - 1)
    return np.ldexp(np.abs(size - other), info.nmant - exponent)
