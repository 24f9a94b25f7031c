"""The largest error of each elementwise function of generated C, in units in the last place (ULP) of the exact result.

python benchmarks/ulp.py [--no-fma] [--every N] [function ...]

float32: every bit pattern (or every N-th), against libm in double. float64: random and special samples, against libm
in long double; of functions of two arguments also for float32. NaN, infinities, overflow and the sign of zero count as
infinite errors where they differ.
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from harp.backends.c_family import scalar
from harp.backends.toolchain.toolchain import base_flags, find_toolchain
from harp.trace.scalar.dtypes import DType, f32, f64
from harp.trace.scalar.ops import INFO, Op

OPS = (Op.EXP, Op.EXP2, Op.EXPM1, Op.LOG, Op.LOG2, Op.LOG10, Op.LOG1P, Op.SIN, Op.COS, Op.TAN, Op.TANH, Op.POW)
OPS += (Op.ASIN, Op.ACOS, Op.ATAN, Op.SINH, Op.COSH, Op.ASINH, Op.ACOSH, Op.ATANH, Op.CBRT, Op.ERF, Op.ERFC)
OPS += (Op.ATAN2, Op.HYPOT)
PATTERNS = 1 << 32
CHUNK = 1 << 24
SAMPLES = 1 << 22

# {T}: the type, {W}: a wider one, {w}: the suffix of libm's functions for it, {call}: the function, {x}: its operands.
SOURCE = """
static void values_{name}(int64_t n, const {T} *restrict a, const {T} *restrict b, {T} *restrict out)
{{
    for (int64_t i = 0; i < n; i++) out[i] = {call};
    (void)b;
}}
HARP_EXPORT double worst_{name}(int64_t n, const {T} *restrict a, const {T} *restrict b, int64_t *where)
{{
    double worst = 0;
    {T} out[1024];
    for (int64_t start = 0; start < n; start += 1024) {{
        const int64_t size = n - start < 1024 ? n - start : 1024;
        values_{name}(size, a + start, b + start, out);
        for (int64_t j = 0; j < size; j++) {{
            const int64_t i = start + j;
            const double error = harp_error_{s}(out[j], {libm}{w}({x}));
            if (error > worst) {{
                worst = error;
                *where = i;
            }}
        }}
    }}
    return worst;
}}
"""
ERROR = """
static inline double harp_error_{s}({T} got, {W} exact)
{{
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (!signbit(got) != !signbit(exact)) return INFINITY;
    const {W} end = ldexp{w}(1, {emax} + 1); /* where the next number would be, if the last were not the last */
    const {W} size = fabs{w}(exact) < end ? fabs{w}(exact) : end, other = isinf(got) ? end : fabs{w}(got);
    int exponent = {emin};
    if (size >= ldexp{w}(1, {emin})) frexp{w}(size, &exponent), exponent--;
    exponent = exponent > {emax} ? {emax} : exponent;
    return (double)ldexp{w}(fabs{w}(other - size), {digits} - exponent);
}}
"""
TYPES = {
    f32: {"T": "float", "W": "double", "w": "", "s": "f32", "emax": "127", "emin": "(-126)", "digits": "23"},
    f64: {"T": "double", "W": "long double", "w": "l", "s": "f64", "emax": "1023", "emin": "(-1022)", "digits": "52"},
}

Worst = Callable[[np.ndarray, np.ndarray], tuple[float, int]]


def build(folder: pathlib.Path, ops: tuple[Op, ...] = OPS, *more: str) -> dict[tuple[Op, DType], Worst]:
    """For each function and dtype: what computes the largest error among arguments, and its index."""
    toolchain = find_toolchain()
    assert toolchain, "there is no C compiler"
    body = "".join(ERROR.format(**fields) for fields in TYPES.values())
    for op in ops:
        for dtype, fields in TYPES.items():
            arguments = ("a[i]", "b[i]")[: INFO[op].arity]
            call = scalar.operation(op, dtype, arguments)
            exact = ", ".join(f"({fields['W']}){x}" for x in arguments)
            body += SOURCE.format(**fields, name=f"{op.value}_{dtype.name}", call=call, libm=op.value, x=exact)
    source, library = folder / "ulp.c", folder / "ulp.so"
    headers = sorted({name for op in ops for dtype in TYPES for name in scalar.operation_headers(op, dtype)})
    includes = "".join(f'#include "{name}"\n' for name in ("generated.h", *headers))
    source.write_text("#include <math.h>\n" + includes + body)
    folder = pathlib.Path(scalar.__file__).parents[1] / "library"
    flags = [f"-I{folder}", *base_flags(toolchain), *more, "-Wall", "-Wextra", "-Werror", "-O2", "-shared"]
    subprocess.run([*toolchain.command, *flags, str(source), "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    return {(op, dtype): _worst(loaded[f"worst_{op.value}_{dtype.name}"]) for op in ops for dtype in TYPES}


def _worst(function: Callable[..., float]) -> Worst:
    function.restype = ctypes.c_double  # type: ignore[attr-defined]

    def worst(a: np.ndarray, b: np.ndarray) -> tuple[float, int]:
        where = ctypes.c_int64()
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (a, b))
        return function(ctypes.c_int64(a.size), *pointers, ctypes.byref(where)), where.value

    return worst


def patterns(start: int, stop: int) -> np.ndarray:
    return np.arange(start, stop, dtype=np.uint32).view(np.float32)


def samples(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Random bit patterns, numbers of everyday size, and neighbours of what is special."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype.numpy)
    bits = rng.integers(0, 1 << (8 * dtype.itemsize), count, np.uint64).astype(f"u{dtype.itemsize}")
    plain = [0.0, 0.5, 0.625, 0.5**0.5, 1.0, 2**0.5, np.log(2) / 2, np.log(2), np.pi / 2, np.pi, 2.0, 3.0, 1e5, 2.0**30]
    logs = [np.log(2) * x for x in (info.maxexp, info.minexp, info.minexp - info.nmant)]
    powers = [float(x) for x in (info.maxexp, info.minexp, info.minexp - info.nmant)]
    limits = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
    ends = np.array([*plain, *logs, *powers, *limits], dtype.numpy)
    near = ends.view(f"i{dtype.itemsize}")[:, None] + np.arange(-200, 201)
    near = near.astype(f"i{dtype.itemsize}").view(dtype.numpy)
    scales = [rng.uniform(-size, size, count // 8) for size in (0.01, 0.7, 1.5, 3, 30, 110, 760, 1100)]
    widths = np.exp2(rng.uniform(info.minexp, info.maxexp, count // 4))
    ones = 1 + rng.uniform(-1, 1, count // 4) * np.exp2(rng.uniform(-info.nmant, 0, count // 4))
    parts = (bits.view(dtype.numpy), near, -near, *scales, widths, ones, [np.inf, -np.inf, np.nan, 0.0, -0.0])
    values = np.concatenate([np.ravel(part).astype(dtype.numpy) for part in parts])
    return np.where(np.isnan(values), np.nan, values).astype(dtype.numpy)  # quiet ones: libm's differ about signalling


def powers(dtype: DType, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Operands of pow: at random, whole exponents, and pairs whose power is a number."""
    rng = np.random.default_rng(seed)
    a, b = samples(dtype, count, seed), samples(dtype, count, seed + 1)
    rng.shuffle(b)
    base = np.abs(samples(dtype, count, seed + 2))
    with np.errstate(all="ignore"):
        room = rng.uniform(np.finfo(dtype.numpy).minexp - 60, np.finfo(dtype.numpy).maxexp + 2, base.size)
        fitting = (room / np.log2(base.astype(np.float64))).astype(dtype.numpy)
    whole = rng.integers(-40, 40, a.size).astype(dtype.numpy)
    return np.concatenate([a, base, a]), np.concatenate([b, fitting, whole])


def pairs(dtype: DType, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of unrelated and of similar size."""
    rng = np.random.default_rng(seed)
    a, b = samples(dtype, count, seed), samples(dtype, count, seed + 1)
    rng.shuffle(b)
    with np.errstate(all="ignore"):
        similar = (a * np.exp2(rng.uniform(-5, 5, a.size))).astype(dtype.numpy)
    return np.concatenate([a, a]), np.concatenate([b, similar])


def measure(op: Op, dtype: DType, worst: Worst, every: int = 1) -> tuple[float, str]:
    """The largest error, and where it is."""

    def one(start: int) -> tuple[float, str]:
        if INFO[op].arity == 2:
            a, b = (powers if op is Op.POW else pairs)(dtype, CHUNK // 16, start)
        else:
            a = patterns(start, start + CHUNK)[::every].copy() if dtype is f32 else samples(dtype, CHUNK // 16, start)
            b = a
        error, index = worst(a, b)
        return error, " ".join(float(x[index]).hex() for x in (a, b)[: INFO[op].arity])

    exhaustive = dtype is f32 and INFO[op].arity == 1
    starts = range(0, PATTERNS, CHUNK) if exhaustive else range(SAMPLES // (CHUNK // 16))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(one, starts))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-fma", action="store_true", help="as on a machine without a fused multiply-add")
    parser.add_argument("--every", type=int, default=1, help="of float32, every N-th bit pattern")
    parser.add_argument("functions", nargs="*", help="as the scalar operations are named")
    given = parser.parse_args()
    ops = tuple(op for op in OPS if not given.functions or op.value in given.functions)
    more = ("-mno-fma",) if given.no_fma else ()
    with tempfile.TemporaryDirectory(prefix="harp-ulp-") as name, np.errstate(all="ignore"):
        for (op, dtype), worst in build(pathlib.Path(name), ops, *more).items():
            error, where = measure(op, dtype, worst, given.every)
            print(f"{op.value:6} {dtype.name} {error:8.3f} at {where}", flush=True)


if __name__ == "__main__":
    main()
