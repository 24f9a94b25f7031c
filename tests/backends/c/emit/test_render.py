"""Generated C against NumPy: every operation and dtype at the values where they can go wrong; the source as text.

Statements and heads of the loop IR are tested with the interpreter, in tests/lower/verify/test_interpreter.py.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

from harp import backends
from harp.backends.c.emit.render import render
from harp.backends.c_family import scalar
from harp.backends.options import CompileOptions
from harp.backends.runtime.load import pointer
from harp.errors import HarpError, VerificationError
from harp.lower.graph import complex as by_parts
from harp.lower.kernels.outline import assemble
from harp.lower.library import select_routines
from harp.lower.loopir.loops import Buffer, For, Kernel, Let, Load, LoopKind, Nest, Seq, Space, Store
from harp.lower.loopir.program import Program
from harp.lower.schedule.build import Built
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Captured, Constant, MapReduce, View, fresh_input
from harp.trace.index.polynomial import Index, Loop, Symbol, as_index, evaluate, of
from harp.trace.scalar import expr
from harp.trace.scalar.dtypes import ALL, DType, Kind, bf16, bool_, c64, f8_e5m2, f16, f32, f64, i32, u8, u16, u32, u64
from harp.trace.scalar.expr import Apply, Expr, Operand, apply, const
from harp.trace.scalar.ops import GIVEN, INFO, Op, result_dtype

FLAGS = (
    *("-std=gnu11", "-O2", "-ftree-vectorize", "-fwrapv", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-trapping-math", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
    f"-I{Path(backends.__file__).parent / 'c/library'}",
)
GCC = ("gcc",)
CLANG = (sys.executable, "-m", "ziglang", "cc")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

n, m = Symbol(0, 0, "n"), Symbol(0, 1, "m")
N, M = of(n), of(m)


def handmade(inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[Symbol], *kernels: Kernel) -> Program:
    """The program of kernels that no schedule made, one called after the other."""
    return assemble(Built(kernels, tuple(inputs), tuple(outputs), ()), sizes)


class Compiled:
    """A program as a loaded library; with `joined` a compiler sees all units as one, for most of what it does with a
    small one is to start and to read headers."""

    def __init__(
        self,
        program: Program,
        folder: Path,
        compiler: Sequence[str] = GCC,
        flags: Sequence[str] = (),
        joined: bool = False,
    ) -> None:
        self.program = program
        source = render(program)
        self.source = str(source)
        texts = [unit.text for unit in source.units]
        texts = ["#undef harp_kernel\n".join(reversed(texts))] if joined else texts  # the calls define pointers first
        paths = [folder / f"unit{number}.c" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        command = [*compiler, *FLAGS, *flags, *map(str, paths), "-o", str(folder / "program.so"), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + self.source
        self._library = ctypes.CDLL(str(folder / "program.so"))

    def _sizes(self, sizes: Mapping[Symbol, int]) -> list[ctypes.c_int64]:
        return [ctypes.c_int64(sizes[s]) for s in self.program.sizes]

    def scratch(self, sizes: Mapping[Symbol, int]) -> int:
        function = self._library.harp_scratch
        function.restype = ctypes.c_int64
        return int(function(*self._sizes(sizes)))

    def status(self, pointers: Sequence[int], sizes: Mapping[Symbol, int]) -> int:
        return int(self._library.harp_run(*map(ctypes.c_void_p, pointers), *self._sizes(sizes)))

    def __call__(self, inputs: Sequence[np.ndarray], sizes: Mapping[Symbol, int]) -> list[np.ndarray]:
        outputs = []
        for buffer in self.program.outputs:
            shape = [value_of(extent, sizes) for extent in buffer.shape]
            outputs.append(np.full(shape, 77, buffer.dtype.numpy))
        assert self.status([a.ctypes.data for a in (*inputs, *outputs)], sizes) == 0
        return outputs


def value_of(p: Index, sizes: Mapping[Symbol, int]) -> int:
    return evaluate(p, dict(sizes).__getitem__)  # type: ignore[arg-type]


# --- operations


def specials(dtype: DType) -> np.ndarray:
    """The values at which an operation can go wrong."""
    if dtype is bool_:
        return np.array([False, True])
    if dtype.is_stored and dtype.is_integer:
        return np.arange(-8, 16).astype(dtype.numpy)
    if dtype.is_stored:  # and around their own limits
        with np.errstate(all="ignore"):
            limits = np.array([65504, 65519, 6.1e-5, 6e-8, 2.9e-8, 3.39e38, 1.2e-38, 1 + 2**-11, 1 + 2**-8], np.float32)
            return np.concatenate([specials(f32), limits, -limits]).astype(dtype.numpy)
    if dtype.is_complex:
        few = [0.0, -0.0, 1.0, -2.5, np.inf, np.nan]
        return np.array([complex(a, b) for a, b in itertools.product(few, few)], dtype.numpy)
    if dtype.is_float:
        info = np.finfo(dtype.numpy)
        plain = [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 7.0, 0.1, 3.14159, 88.5, 1e-3, 1e10, 2.0**31, 2.0**63]
        limits = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps), np.inf]
        both = [sign * x for x in plain + limits for sign in (1.0, -1.0)]
        return np.array([*both, np.nan], dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    small = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 100, limits.max, limits.max - 1]
    signed = [-1, -2, -3, -5, -7, -8, -64, limits.min, limits.min + 1] if limits.min < 0 else []
    return np.array(small + signed, dtype.numpy)


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    a, b = (np.array(side) for side in zip(*itertools.product(specials(dtype), repeat=2), strict=True))
    return a.astype(dtype.numpy), b.astype(dtype.numpy)


LENGTHS = {d: Symbol(1, n, f"length{n}") for n, d in enumerate(ALL)}
OPERANDS = {d: tuple(Buffer(f"{d}_{side}", d, (of(LENGTHS[d]),), Space.INPUT) for side in ("a", "b", "c")) for d in ALL}


def operand_arrays(dtype: DType) -> list[np.ndarray]:
    a, b = pairs(dtype)
    return [a, b, np.ascontiguousarray(np.roll(b, 3))]


def case(op: Op, dtype: DType, cast_to: DType | None = None) -> tuple[Expr, DType]:
    """(expression over the operand buffers of its length, the dtype that gives the length)."""
    position = of(Loop(0, of(LENGTHS[dtype])))
    a, b, c = (Load(buffer, (position,)) for buffer in OPERANDS[dtype])
    if op is Op.SELECT:
        sides = [apply(Op.REAL, x) if dtype.is_complex else x for x in (a, b)]
        return Apply(op, dtype, (Apply(Op.LT, bool_, tuple(sides)), b, c)), dtype
    args = (a, b, c)[: INFO[op].arity]
    return Apply(op, cast_to or result_dtype(op, tuple(a.dtype for a in args)), args), dtype


def has_case(op: Op, dtype: DType) -> bool:
    """Of dtypes for storage there are casts only, and complex numbers are mostly gone when programs are printed."""
    return op not in GIVEN and not dtype.is_stored and dtype.kind in scalar.ROWS[op]


CASES = [
    *(case(op, d) for op in Op for d in ALL if has_case(op, d)),
    *(case(Op.BITCAST, *pair) for pair in ((f32, u32), (u32, f32), (f64, u64), (u64, f64), (f16, u16), (u8, f8_e5m2))),
    *(case(Op.CAST, source, target) for source in ALL for target in ALL if not source.is_complex | target.is_complex),
]


def operations_program() -> Program:
    outputs, kernels = [], []
    for e, dtype in CASES:
        loop = Loop(0, of(LENGTHS[dtype]))
        out = Buffer("out", e.dtype, (of(LENGTHS[dtype]),), Space.OUTPUT)
        outputs.append(out)
        kernels.append(Kernel(expr.text(e), Nest((For(loop),), Store(out, (of(loop),), e))))
    inputs = tuple(b for d in ALL for b in OPERANDS[d])
    return handmade(inputs, outputs, tuple(LENGTHS.values()), *kernels)


def test_tables_cover_the_language() -> None:
    assert set(scalar.ROWS) == set(Op) - set(GIVEN)
    for op, row in scalar.ROWS.items():
        assert set(row) <= INFO[op].kinds <= {*row, Kind.COMPLEX}, op
        assert Kind.COMPLEX in row or op in by_parts.ROWS or Kind.COMPLEX not in INFO[op].kinds, op
    assert set(scalar.CASTS) == set(itertools.product(type(f32.kind), repeat=2))
    assert set(scalar.TYPES) == set(ALL)
    for e, _ in CASES:
        assert ("harp_" in scalar.application(e, "abc")) == bool(scalar.headers(e)), expr.text(e)


COMPILERS = {"gcc": (GCC, ()), "native": (GCC, ("-march=native", "-O3")), "clang": (CLANG, ("-fno-sanitize=all",))}


# Within 2 ULP of the exact result, as NumPy's and libm's are within 2 (tests/backends/c/library/test_math.py).
NEAR = {op for op, info in INFO.items() if info.weight >= 12}


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("name", COMPILERS)
def test_operations(name: str, tmp_path: Path) -> None:
    compiler, flags = COMPILERS[name]
    if importlib.util.find_spec("ziglang") is None and compiler is CLANG:
        pytest.skip("ziglang is not installed")
    compiled = Compiled(operations_program(), tmp_path, compiler, flags, joined=True)
    operands = {d: operand_arrays(d) for d in ALL}
    arrays = [a for d in ALL for a in operands[d]]
    results = compiled(arrays, {LENGTHS[d]: len(specials(d)) ** 2 for d in ALL})
    wrong = []
    for (e, dtype), got in zip(CASES, results, strict=True):
        try:
            check_operation(e, dtype, operands[dtype], got)
        except AssertionError as error:
            wrong.append(f"{expr.text(e)}: {error}")
    assert not wrong, "\n".join(wrong)


def check_operation(e: Expr, dtype: DType, operands: Sequence[np.ndarray], got: np.ndarray) -> None:
    assert isinstance(e, Apply)
    arrays = dict(zip(OPERANDS[dtype], operands, strict=True))
    expected = expr.evaluate(e, lambda x: arrays[x.buffer])  # type: ignore[attr-defined]
    if e.op is Op.FMA and dtype.is_float:
        return check_fma(got, *arrays.values())
    if e.dtype.is_stored:  # their bits, and those of NaN
        if e.dtype.is_integer and dtype.is_float:  # what NaN becomes is open, and by way of int8
            return np.testing.assert_array_equal(got, expected)
        got, expected = (x.view(f"u{e.dtype.itemsize}") for x in (got, expected))
    if e.dtype.is_complex and e.op is Op.MUL:
        return np.testing.assert_allclose(got, expected, rtol=1e-6)
    if e.op is Op.CAST and dtype.is_float and e.dtype.is_integer:
        inside = in_range(next(iter(arrays.values())), e.dtype)
        got, expected = got[inside], expected[inside]
    if e.op in NEAR and dtype.is_float:
        assert_close(got, expected, 4)
    else:
        zero_signs = e.op not in (Op.MAX, Op.MIN)  # of max(0.0, -0.0) NumPy's own loops give either
        assert_same(got, expected, zero_signs)
    return None


def in_range(values: np.ndarray, target: DType) -> np.ndarray:
    """Where a cast to this integer dtype is defined."""
    limits = np.iinfo(target.numpy)
    truncated = np.trunc(values.astype(np.float64))
    return np.isfinite(values) & (truncated >= limits.min) & (truncated < float(limits.max) + (target.itemsize < 8))


def assert_same(got: np.ndarray, expected: np.ndarray, zero_signs: bool = True) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f" and zero_signs:
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


def assert_close(got: np.ndarray, expected: np.ndarray, ulp: int) -> None:
    finite = np.isfinite(expected) & np.isfinite(got)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    np.testing.assert_array_max_ulp(got[finite], expected[finite], ulp, dtype=got.dtype)


def check_fma(got: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    for value, *operands in zip(got, a, b, c, strict=True):
        if not np.all(np.isfinite(operands)):
            plain = float(operands[0]) * float(operands[1]) + float(operands[2])
            assert np.isnan(value) == np.isnan(plain) and (np.isnan(plain) or value == plain)
            continue
        x, y, z = map(Fraction, map(float, operands))
        exact = x * y + z
        distance = abs(Fraction(float(value)) - exact) if np.isfinite(value) else None
        if distance is not None:
            for neighbour in (np.nextafter(value, -np.inf), np.nextafter(value, np.inf)):
                assert not np.isfinite(neighbour) or distance <= abs(Fraction(float(neighbour)) - exact)
        else:
            assert abs(exact) > Fraction(float(np.finfo(value.dtype).max))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """y = exp(x) + log(x), through a scratch buffer."""
    return Compiled(small_program(), tmp_path_factory.mktemp("small"))


def small_program(names: str = "xyzn", shift: int = 0) -> Program:
    size = Symbol(0, shift, names[3])
    shape = (of(size), of(size))
    x, y = Buffer(names[0], f64, shape, Space.INPUT), Buffer(names[1], f64, shape, Space.OUTPUT)
    z = Buffer(names[2], f64, shape, Space.SCRATCH)
    i, j = Loop(0, of(size)), Loop(1, of(size))
    at = (of(i), of(j))
    first = Nest((For(i), For(j)), Store(z, at, apply(Op.EXP, Load(x, at))))
    value = Load(z, at) + apply(Op.LOG, Load(x, at))
    kernels = (Kernel("first", first), Kernel("second", Nest((For(i), For(j)), Store(y, at, value))))
    return handmade((x,), (y,), (size,), *kernels)


@needs_gcc
def test_scratch_memory(small: Compiled) -> None:
    (size,) = small.program.sizes
    assert small.scratch({size: 0}) == 0
    assert small.scratch({size: 3}) == 128
    assert small.scratch({size: 1 << 20}) == 8 << 40
    assert small.scratch({size: 1 << 40}) == -1
    for side in (3, 100):  # on the stack, and on the heap
        x = np.linspace(1, 2, side * side).reshape(side, side)
        np.testing.assert_allclose(small([x], {size: side})[0], np.exp(x) + np.log(x), rtol=1e-15)


@needs_gcc
def test_no_memory_is_a_status(small: Compiled) -> None:
    (size,) = small.program.sizes
    for side in (1 << 25, 1 << 40):  # 2**53 bytes, which there are not, and more than can be counted
        assert small.status([0, 0], {size: side}) == 1


def test_same_bytes_for_the_same_program() -> None:
    assert render(small_program()).units == render(small_program()).units
    assert render(small_program("abcd", shift=5)).units == render(small_program()).units, (
        "the user's names are not in the source"
    )
    assert render(operations_program()).units == render(operations_program()).units


def test_only_what_is_used_is_printed() -> None:
    source = str(render(small_program()))
    assert '#include "generated.h"' in source and "pow" not in source
    assert "int harp_kernel(const double *restrict in0, " in source and "int64_t s0)" in source
    assert max(map(len, source.splitlines())) <= 120


@pytest.mark.parametrize("dtype", [d for d in ALL if not d.is_stored and not d.is_complex], ids=str)
def test_literals_are_exact(dtype: DType) -> None:
    for value in specials(dtype).tolist():
        text = scalar.literal(const(value, dtype)).strip("()f").replace("INT32_MIN", str(-(2**31)))
        if dtype.is_float and np.isfinite(value):
            parse = float.fromhex if "0x" in text else float
            assert parse(text) == value
        elif dtype.is_integer and "MIN" not in text:
            assert int(text.replace("INT64_C(", "").replace("U", "").strip("u()")) == value


def test_literals_of_parts_and_of_bits() -> None:
    assert scalar.literal(const(1.5 - 2j, c64)) == "harp_complex_c64(1.5f, (-2.0f))"
    assert scalar.literal(const(1, f16)) == str(0x3C00) and scalar.literal(const(-1, bf16)) == str(0xBF80)


@needs_gcc
def test_bools_of_any_byte(tmp_path: Path) -> None:
    """NumPy can view any byte as a bool; True is what is not zero."""
    a, out = Buffer("a", bool_, (N,), Space.INPUT), Buffer("out", bool_, (N,), Space.OUTPUT)
    count = Buffer("count", i32, (), Space.OUTPUT)
    i = of(Loop(0, N))
    loads = Load(a, (i,))
    first = Nest((For(Loop(0, N)),), Store(out, (i,), loads ^ const(True, bool_)))
    total = Nest((For(Loop(0, N)),), Store(count, (), Load(count, ()) + expr.cast(loads, i32)))
    body = Seq((first, Store(count, (), const(0, i32)), total))
    compiled = Compiled(handmade((a,), (out, count), (n,), Kernel("k", body)), tmp_path)
    values = np.array([0, 1, 2, 255], np.uint8).view(bool)
    inverted, number = compiled([values], {n: 4})
    assert inverted.tolist() == [True, False, False, False] and number == 3


def branching_program() -> Program:
    """Kinds of loops, small and large local memory, division, and comparisons that a compiler could warn about."""
    a, out = Buffer("a", u8, (N, M), Space.INPUT), Buffer("out", u8, (N, M), Space.OUTPUT)
    i, j = Loop(0, N), Loop(1, M)
    at = (of(i), of(j))
    x = Load(a, at)
    low = (x < const(0, u8)) & (apply(Op.POW, x, x) < x)
    value = expr.select(low, x // const(0, u8), x % const(7, u8))
    heads = (For(i, LoopKind.PARALLEL), For(j, LoopKind.SIMD))
    return handmade((a,), (out,), (n, m), Kernel("branches", Nest(heads, Store(out, at, value))))


def check_branching(compiled: Compiled) -> None:
    x = np.arange(35, dtype=np.uint8).reshape(5, 7)
    np.testing.assert_array_equal(compiled([x], {n: 5, m: 7})[0], x % 7)


@needs_gcc
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_no_warnings_from_gcc(level: str, tmp_path: Path) -> None:
    check_branching(Compiled(branching_program(), tmp_path, flags=[level]))


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_no_warnings_from_clang(tmp_path: Path) -> None:
    check_branching(Compiled(branching_program(), tmp_path, CLANG))


@pytest.mark.slow
@needs_gcc
def test_no_undefined_behaviour(tmp_path: Path) -> None:
    """The operations once more, with every kind of undefined behaviour turned into a trap."""
    flags = ["-O1", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize=float-divide-by-zero"]
    compiled = Compiled(operations_program(), tmp_path, flags=[*flags, "-fsanitize-undefined-trap-on-error"])
    compiled([a for d in ALL for a in operand_arrays(d)], {LENGTHS[d]: len(specials(d)) ** 2 for d in ALL})


BROKEN = {
    "no loop or let binds": lambda a, out: Store(out, (of(Loop(0, N)),), const(0.0, f32)),
    "rank 1 is indexed": lambda a, out: Store(out, (), const(0.0, f32)),
    "b is none of its parameters": lambda a, out: Store(Buffer("b", f32, (), Space.SCRATCH), (), const(0.0, f32)),
    "cannot stand in a kernel": lambda a, out: Store(out, (as_index(0),), Operand(f32, 0)),
    "has conditions but no fill": lambda a, out: Store(out, (as_index(0),), Load(a, (as_index(0),), (N - 1,))),
}


@pytest.mark.parametrize("message", BROKEN)
def test_what_cannot_be_printed(message: str) -> None:
    a, out = Buffer("a", f32, (N,), Space.INPUT), Buffer("out", f32, (N,), Space.OUTPUT)
    good = handmade((a,), (out,), (n,), Kernel("k", Store(out, (N - 1,), Load(a, (N - 1,)))))
    (kernel,) = good.kernels
    program = attrs.evolve(good, kernels=(kernel.with_body(BROKEN[message](a, out)),))
    with pytest.raises(VerificationError, match=message):
        str(render(program))


def test_derived_sizes_are_named_once() -> None:
    out, size = Buffer("out", f32, (N * M,), Space.OUTPUT), Symbol(0, 9, "size")
    loop = Loop(0, of(size))
    body = Nest((Let(size, N * M), For(loop)), Store(out, (of(loop),), const(1.0, f32)))
    source = str(render(handmade((), (out,), (n, m), Kernel("ones", body))))
    assert source.count("s0*s1") == 2, "in the title and in the let"
    assert "int harp_kernel(float *restrict out0, int64_t s0, int64_t s1)" in source


def test_backends_by_name() -> None:
    assert backends.get("c").name == "c" and backends.get("numpy").name == "numpy"
    with pytest.raises(HarpError, match="there is no backend 'fortran'; there are c, numpy"):
        backends.get("fortran")
    graph = Graph((), ())
    with pytest.raises(HarpError, match="lowered programs"):
        backends.get("c").compile(None, graph, CompileOptions())


@needs_gcc
def test_the_c_backend_compiles_and_calls() -> None:
    program = small_program()
    kernel = backends.get("c").compile(program, Graph((), ()), CompileOptions(optimize=1))
    x, out = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))
    assert kernel([x], [out], [2]) == 0
    np.testing.assert_allclose(out, np.exp(x) + np.log(x), rtol=1e-15)
    assert kernel.function is not None
    again = np.zeros((2, 2))
    assert kernel.function(pointer(x), pointer(again), 2) == 0
    np.testing.assert_array_equal(again, out)
    empty = np.zeros((0, 0))
    assert kernel([empty], [empty.copy()], [0]) == 0
    assert kernel([x], [out], [1 << 40]) == 1


def test_the_numpy_backend_takes_captured_arrays_as_inputs() -> None:
    """Programs are shared by graphs that differ only in what they captured."""
    x = fresh_input("x", (of(n),), f64)
    weights = Constant(Captured(np.array([1.0, 2.0, 3.0])))
    scalar_sum = Operand(f64, 0) + Operand(f64, 1)
    graph = Graph(
        (x,), (MapReduce((as_index(3),), (View(x, (as_index(3),), (of(Loop(0, as_index(3))),)), weights), scalar_sum),)
    )
    kernel = backends.get("numpy").compile(None, graph, CompileOptions())
    out = np.zeros(3)
    assert kernel.function is None
    assert kernel([np.arange(3.0), np.array([10.0, 20.0, 30.0])], [out], [3]) == 0
    np.testing.assert_array_equal(out, [10, 21, 32])


@pytest.mark.slow
@needs_gcc
def test_each_kernel_is_a_unit(tmp_path: Path) -> None:
    sources = [Buffer(f"x{k}", f64, (N,), Space.INPUT) for k in range(40)]
    outs = [Buffer(f"y{k}", f64, (N,), Space.OUTPUT) for k in range(40)]
    kernels = []
    for k, (x, y) in enumerate(zip(sources, outs, strict=True)):
        statements = []
        for j in range(12):
            loop = Loop(j, N)
            value = Load(x, (of(loop),)) * const(float(k), f64) + const(float(j), f64)
            statements.append(Nest((For(loop),), Store(y, (of(loop),), value)))
        kernels.append(Kernel(f"kernel {k}", Seq(tuple(statements))))
    program = handmade(sources, outs, (n,), *kernels)
    units = [unit.text for unit in render(program).units]
    assert len(units) == 40 + 1
    assert [sum(f"kernel {k}:" in unit for unit in units) for k in range(40)] == [1] * 40
    compiled = Compiled(program, tmp_path, flags=("-O0",))
    values = [np.full(3, float(k)) for k in range(40)]
    results = [np.empty(3) for _ in range(40)]
    assert compiled.status([array.ctypes.data for array in (*values, *results)], {n: 3}) == 0
    for k in range(40):
        np.testing.assert_array_equal(results[k], np.full(3, float(k * k + 11)))


def test_loops_that_set_zeros_are_one_call() -> None:
    out, i, j = Buffer("out", f32, (N, as_index(8)), Space.OUTPUT), Loop(0, N), Loop(1, as_index(8))

    def source(*heads: For, value: float = 0.0, index: tuple[Index, ...] = (of(i), of(j))) -> str:
        body = Nest(heads, Store(out, index, const(value, f32)))
        return str(render(handmade((), (out,), (n,), select_routines(Kernel("fill", body)))))

    assert "__builtin_memset(&out0[0], 0, (size_t)(s0)*(size_t)(8)*sizeof(float));" in source(For(i), For(j))
    for text in (
        source(For(i), For(j), value=-0.0),
        source(For(i), For(j), value=1.0),
        source(For(j), For(i), index=(of(i), of(j))),
        source(For(i), For(Loop(2, as_index(7))), index=(of(i), of(Loop(2, as_index(7))))),
    ):
        assert "memset" not in text.split("fill:")[1].split("harp_scratch")[0].replace("7", "") or "for" in text


@needs_gcc
def test_a_row_times_a_matrix_is_one_call(tmp_path: Path) -> None:
    a, b = Buffer("a", f32, (N,), Space.INPUT), Buffer("b", f32, (N, M), Space.INPUT)
    out, k, j = Buffer("out", f32, (M,), Space.OUTPUT), Loop(1, N), Loop(2, M)
    sums = apply(Op.FMA, Load(a, (of(k),)), Load(b, (of(k), of(j))), Load(out, (of(j),)))
    zero = Nest((For(Loop(0, M)),), Store(out, (of(Loop(0, M)),), const(0.0, f32)))
    body = Seq((zero, Nest((For(k), For(j)), Store(out, (of(j),), sums))))
    program = handmade((a, b), (out,), (n, m), select_routines(Kernel("row", body)))
    assert "harp_gemv_axpy_f32(s0, s1, &in0[0], 1, &in1[0], s0, &out0[0]);" in str(render(program))
    compiled = Compiled(program, tmp_path, flags=("-march=native", "-ffp-contract=fast"))
    rng = np.random.default_rng(0)
    for depth, columns in ((0, 5), (1, 1), (4, 33), (7, 16), (9, 40)):
        x, w = rng.normal(size=depth).astype("f4"), rng.normal(size=(depth, columns)).astype("f4")
        found = np.empty(columns, "f4")
        assert compiled.status([x.ctypes.data, w.ctypes.data, found.ctypes.data], {n: depth, m: columns}) == 0
        np.testing.assert_allclose(found, x.astype("f8") @ w.astype("f8"), rtol=1e-4, atol=1e-5)
