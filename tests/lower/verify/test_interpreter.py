"""Hand-made programs that cover the loop IR: the interpreter, generated C and NumPy agree; broken ones are caught."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import pytest
from graphs import handmade

from harp.backends import c_family
from harp.backends.c.emit.body import Body as CBody
from harp.backends.c.emit.render import render
from harp.backends.c_family import statements as c_statements
from harp.errors import VerificationError
from harp.lower.kernels.local_functions import local_functions
from harp.lower.library import select_routines
from harp.lower.loopir import text
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.program import Program
from harp.lower.verify import interpreter
from harp.lower.verify.interpreter import execute, iterations, run_kernel
from harp.lower.verify.verify import verify_program
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import ceildiv, floordiv, minimum, mod, relu
from harp.trace.index.polynomial import ZERO, Index, IndexLike, Loop, Symbol, as_index, evaluate, of
from harp.trace.scalar import expr
from harp.trace.scalar.dtypes import ALL, DType, bool_, f32, f64, i32, i64, u64
from harp.trace.scalar.expr import Expr, Position, apply, cast, const, select
from harp.trace.scalar.ops import INFO, Op, Reduce

Array = np.ndarray
FLAGS = (
    *("-std=gnu11", "-O2", "-ftree-vectorize", "-fwrapv", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-trapping-math", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
    f"-I{Path(c_family.__file__).parents[1] / 'c' / 'library'}",
)
n, m, k = (Symbol(0, number, name) for number, name in enumerate("nmk"))
N, M, K = of(n), of(m), of(k)


def buffer(name: str, shape: Sequence[IndexLike], space: Space, dtype: DType = f32) -> Buffer:
    return Buffer(name, dtype, tuple(map(as_index, shape)), space)


def program(inputs: Sequence[Buffer], outputs: Sequence[Buffer], *bodies: Stmt) -> Program:
    return handmade(inputs, outputs, (n, m, k), [Kernel(f"part {number}", body) for number, body in enumerate(bodies)])


def add(a: Expr, b: Expr) -> Expr:
    return a + b


def mul(a: Expr, b: Expr) -> Expr:
    return a * b


def numbers(dtype: DType, *shape: int) -> Array:
    """Small integers of any dtype, the same at each call."""
    values = np.random.default_rng(sum(shape) + 17).integers(-9, 10, shape)
    return np.asarray(values).astype(dtype.numpy)


Reference = Callable[[Sequence[Array], Mapping[Symbol, int]], list[Array]]
Example = tuple[Program, Reference]
EXAMPLES: dict[str, Callable[[], Example]] = {}


def example(make: Callable[[], Example]) -> Callable[[], Example]:
    EXAMPLES[make.__name__] = make
    return make


@example
def matmul_in_a_register() -> Example:
    a, b = buffer("a", (N, K), Space.INPUT), buffer("b", (K, M), Space.INPUT)
    out, acc = buffer("out", (N, M), Space.OUTPUT), buffer("acc", (), Space.REG)
    i, j, c = Loop(0, N), Loop(1, M), Loop(2, K)
    step = apply(Op.FMA, Load(a, (of(i), of(c))), Load(b, (of(c), of(j))), Load(acc, ()))
    body = Seq(
        (
            Store(acc, (), const(0.0, f32)),
            Nest((For(c),), Store(acc, (), step)),
            Store(out, (of(i), of(j)), Load(acc, ())),
        )
    )
    nest = Nest((For(i, LoopKind.PARALLEL), For(j)), Alloc(acc, body))
    return program((a, b), (out,), nest), lambda x, _: [x[0] @ x[1]]


@example
def equal_loops() -> Example:
    a, outs = buffer("a", (N, M), Space.INPUT), [buffer(f"out{k}", (N, M), Space.OUTPUT) for k in range(3)]
    i, lanes = Loop(0, N), [Loop(k, M) for k in range(1, 4)]
    values = [Load(a, (of(i), of(j))) * const(0.5 + k, f32) for k, j in enumerate(lanes)]
    stores = [Store(out, (of(i), of(j)), value) for out, j, value in zip(outs, lanes, values, strict=True)]
    loops = (Nest((For(j, LoopKind.SIMD),), store) for j, store in zip(lanes, stores, strict=True))
    body = local_functions(Kernel("steps", Nest((For(i, LoopKind.PARALLEL),), Seq(tuple(loops))))).body
    return program((a,), outs, body), lambda x, _: [x[0] * np.float32(0.5 + k) for k in range(3)]


@example
def rows_of_a_product_by_the_library() -> Example:
    a, b, out = buffer("a", (N, K), Space.INPUT), buffer("b", (K, M), Space.INPUT), buffer("out", (N, M), Space.OUTPUT)
    i, j, c = Loop(0, N), Loop(1, M), Loop(2, K)
    step = apply(Op.FMA, Load(a, (of(i), of(c))), Load(b, (of(c), of(j))), Load(out, (of(i), of(j))))
    zero = Nest((For(j),), Store(out, (of(i), of(j)), const(0.0, f32)))
    gemv = Nest((For(c), For(j)), Store(out, (of(i), of(j)), step))
    body = select_routines(Kernel("rows", Nest((For(i, LoopKind.PARALLEL),), Seq((zero, gemv))))).body
    return program((a, b), (out,), body), lambda x, _: [x[0] @ x[1]]


@example
def powers_below_a_bound() -> Example:
    """Doubled as long as the first element, if there is one, is below 50, but at most M times."""
    x, out = buffer("x", (N,), Space.INPUT), buffer("out", (N,), Space.OUTPUT)
    goes_on = buffer("goes_on", (), Space.OUTPUT, bool_)
    i, j, t = Loop(0, N), Loop(1, N), Loop(2, M)
    copied = Nest((For(i),), Store(out, (of(i),), Load(x, (of(i),))))
    doubled = Nest((For(j),), Store(out, (of(j),), Load(out, (of(j),)) * 2.0))
    first = Load(out, (ZERO,), (N - 1,), const(99.0, f32))
    below = Store(goes_on, (), first < 50.0)
    body = Seq((copied, below, Repeat(t, Load(goes_on, ()), Seq((doubled, below)))))

    def reference(inputs: Sequence[Array], sizes: Mapping[Symbol, int]) -> list[Array]:
        values = inputs[0].copy()
        for _ in range(sizes[m]):
            if not len(values) or values[0] >= 50:
                break
            values *= 2
        return [values, np.asarray(bool(len(values)) and bool(values[0] < 50))]

    return program((x,), (out, goes_on), body), reference


@example
def search_for_the_first() -> Example:
    """For each column the first row, of three, with a value above 2; 2 if there is none."""
    a, out = buffer("a", (3, N), Space.INPUT), buffer("out", (N,), Space.OUTPUT, i64)
    k, j, first = Loop(0, as_index(3)), Loop(1, N), Loop(2, N)
    fits = const(2.0, f32) < Load(a, (of(k), of(j)))
    found = select(fits, Position(of(k)), const(2, i64))
    search = Nest((For(k, LoopKind.SEARCH), For(j)), Store(out, (of(j),), found, Reduce.MIN))
    start = Nest((For(first),), Store(out, (of(first),), const(9, i64)))

    def reference(x: Sequence[Array], sizes: Mapping[Symbol, int]) -> list[Array]:
        fits = x[0] > 2
        return [np.where(fits.any(0), np.minimum(fits.argmax(0), 2), 2)]

    return program((a,), (out,), Seq((start, search))), reference


@example
def transpose_by_digits() -> Example:
    a, out = buffer("a", (N, M, K), Space.INPUT, i32), buffer("out", (K, M, N), Space.OUTPUT, i32)
    flat, digits = Loop(0, N * M * K), (Loop(1, N), Loop(2, M), Loop(3, K))
    r, s, t = map(of, digits)
    heads = (For(flat, LoopKind.PARALLEL), Digits(digits, of(flat)))
    return program((a,), (out,), Nest(heads, Store(out, (t, s, r), Load(a, (r, s, t))))), lambda x, _: [x[0].T]


@example
def split_with_remainder() -> Example:
    a, out = buffer("a", (N, M), Space.INPUT), buffer("out", (N,), Space.OUTPUT)
    height = Symbol(0, 10, "height")
    p = Loop(0, ceildiv(N, 4))
    i, j = Loop(1, of(height)), Loop(2, M)
    row = 4 * of(p) + of(i)
    heads = (For(p, LoopKind.PARALLEL), Let(height, minimum(4, N - 4 * of(p))))
    start = Nest((For(i),), Store(out, (row,), const(0.0, f32)))
    total = Nest((For(i), For(j)), Store(out, (row,), Load(a, (row, of(j))), Reduce.SUM))
    return program((a,), (out,), Nest(heads, Seq((start, total)))), lambda x, _: [x[0].sum(1)]


@example
def branches() -> Example:
    out = buffer("out", (N,), Space.OUTPUT, i64)
    i = Loop(0, N)
    at = (of(i),)
    outer = If(
        (of(i) - M,),
        Store(out, at, Position(of(i) - M)),
        If((M - of(i) - 2, K - of(i)), Store(out, at, const(-1, i64)), Store(out, at, Position(7 * of(i) + 1))),
    )

    def reference(_: Sequence[Array], s: Mapping[Symbol, int]) -> list[Array]:
        i = np.arange(s[n])
        return [np.where(i >= s[m], i - s[m], np.where((i <= s[m] - 2) & (i <= s[k]), -1, 7 * i + 1))]

    return program((), (out,), Nest((For(i),), outer)), reference


@example
def padded_and_divided() -> Example:
    a, out = buffer("a", (N,), Space.INPUT, f64), buffer("out", (N + K, M), Space.OUTPUT, f64)
    i, j = Loop(0, N + K), Loop(1, M)
    shifted = Load(a, (of(i) - K,), (of(i) - K,), const(-2.5, f64))
    index = floordiv(of(i), 3) + mod(of(i), M) - floordiv(of(j) - N, 2) + relu(of(i) - of(j))
    value = add(shifted, cast(Position(index), f64))
    body = Nest((For(i), For(j)), Store(out, (of(i), of(j)), value))

    def reference(x: Sequence[Array], s: Mapping[Symbol, int]) -> list[Array]:
        i, j = np.meshgrid(np.arange(s[n] + s[k]), np.arange(s[m]), indexing="ij")
        column = np.concatenate([np.full(s[k], -2.5), x[0]])[:, None]
        return [column + (i // 3 + (i % s[m] if s[m] else i) - (j - s[n]) // 2 + np.maximum(i - j, 0))]

    return program((a,), (out,), body), reference


def staged(space: Space, extent: IndexLike, kinds: Sequence[LoopKind]) -> Example:
    """Each row is copied to a buffer, then used twice."""
    a, out = buffer("a", (N, extent), Space.INPUT), buffer("out", (N, extent), Space.OUTPUT)
    rows = buffer("rows", (2, extent), space)
    i, j, h = Loop(0, N), Loop(1, as_index(extent)), Loop(2, as_index(2))
    copy = Store(rows, (of(h), of(j)), mul(Load(a, (of(i), of(j))), cast(Position(of(h) + 1), f32)))
    use = add(Load(rows, (as_index(1), of(j))), Load(rows, (as_index(0), of(j))))
    body = Seq(
        (
            Nest((For(h, kinds[0]), For(j, kinds[1])), copy),
            Nest((For(j, kinds[2]),), Store(out, (of(i), of(j)), use)),
        )
    )
    return program((a,), (out,), Nest((For(i, kinds[3]),), Alloc(rows, body))), lambda x, _: [x[0] * 3]


@example
def staged_in_registers() -> Example:
    return staged(Space.REG, 8, (LoopKind.UNROLL, LoopKind.SIMD, LoopKind.UNROLL, LoopKind.PLAIN))


@example
def staged_in_a_tile() -> Example:
    return staged(Space.LOCAL, M, (LoopKind.PLAIN, LoopKind.SIMD, LoopKind.SIMD, LoopKind.PARALLEL))


@example
def staged_in_an_empty_tile() -> Example:
    return staged(Space.LOCAL, 0, (LoopKind.PLAIN, LoopKind.SIMD, LoopKind.UNROLL, LoopKind.PARALLEL))


@example
def staged_per_thread() -> Example:
    return staged(Space.THREAD, M + K, (LoopKind.PLAIN, LoopKind.PLAIN, LoopKind.SIMD, LoopKind.PARALLEL))


@example
def kernels_share_scratch() -> Example:
    a, out = buffer("a", (N, M), Space.INPUT), buffer("out", (N, M), Space.OUTPUT, f64)
    row = Symbol(0, 10, "row")
    x, y = buffer("x", (N * M,), Space.SCRATCH), buffer("y", (N * M,), Space.SCRATCH)
    z = buffer("z", (N, M), Space.SCRATCH, f64)
    f, i, j = Loop(0, N * M), Loop(1, N), Loop(2, M)
    at = (of(i) * M + of(j),)
    bodies = (
        Nest((For(i), For(j)), Store(x, at, Load(a, (of(i), of(j))))),
        Nest((For(f),), Store(y, (of(f),), mul(Load(x, (of(f),)), const(0.5, f32)))),
        Nest((For(i), For(j)), Store(z, (of(i), of(j)), cast(Load(y, at), f64))),
        Nest((For(i), Let(row, of(i)), For(j)), Store(out, (of(row), of(j)), Load(z, (of(i), of(j))))),
    )
    return program((a,), (out,), *bodies), lambda x, _: [x[0].astype(np.float64) / 2]


@example
def a_recurrence() -> Example:
    x, out, acc = buffer("x", (N, M), Space.INPUT), buffer("out", (N, M), Space.OUTPUT), buffer("acc", (), Space.REG)
    i, j = Loop(0, N), Loop(1, M)
    place = of(i), M - 1 - of(j)
    step = Store(acc, (), add(mul(Load(acc, ()), const(0.5, f32)), Load(x, place)))
    inner = Nest((For(j, LoopKind.SEQUENTIAL),), Seq((step, Store(out, place, Load(acc, ())))))
    body = Nest((For(i),), Alloc(acc, Seq((Store(acc, (), const(0, f32)), inner))))

    def reference(inputs: Sequence[Array], sizes: Mapping[Symbol, int]) -> list[Array]:
        result = np.zeros_like(inputs[0])
        r = np.zeros(len(inputs[0]), np.float32)
        for k in reversed(range(inputs[0].shape[1])):
            r = result[:, k] = r * np.float32(0.5) + inputs[0][:, k]
        return [result]

    return program([x], [out], body), reference


@example
def every_reduction() -> Example:
    """Of every dtype that has it, into one element and along an axis."""
    dtypes = [d for d in ALL if not d.is_stored]  # which no kernel computes with
    inputs = [buffer(f"a{d}", (N, M), Space.INPUT, d) for d in dtypes]
    cases = [(d, r) for d in range(len(dtypes)) for r in Reduce if dtypes[d].kind in INFO[r.value].kinds]
    outputs, bodies = [], []
    i, j = Loop(0, N), Loop(1, M)
    for d, reduce in cases:
        rows, whole = (buffer("out", shape, Space.OUTPUT, dtypes[d]) for shape in ((N,), ()))
        outputs += [rows, whole]
        start = const(reduce.identity(dtypes[d]).item(), dtypes[d])
        for out, at in ((rows, (of(i),)), (whole, ())):
            clear = Store(out, at, start)
            total = Nest((For(i), For(j)), Store(out, at, Load(inputs[d], (of(i), of(j))), reduce))
            bodies.append(Seq((Nest((For(i),), clear) if at else clear, total)))

    def reference(x: Sequence[Array], s: Mapping[Symbol, int]) -> list[Array]:
        found = []
        for d, r in cases:
            dtype, first = dtypes[d].numpy, r.identity(dtypes[d]).item()
            keep = {"dtype": dtype} if r in (Reduce.SUM, Reduce.PROD) else {}
            found.append(np.asarray(r.ufunc.reduce(x[d], axis=1, initial=first, **keep)).astype(dtype))
            found.append(np.asarray(r.ufunc.reduce(x[d], axis=None, initial=first, **keep)).astype(dtype))
        return found

    return program(inputs, outputs, *bodies), reference


@example
def a_long_chain() -> Example:
    """2,000 operations deep, every value used twice: a tree of it would never end."""
    a, out = buffer("a", (N,), Space.INPUT), buffer("out", (N,), Space.OUTPUT)
    i = of(Loop(0, N))
    x: Expr = Load(a, (i,))
    y = x
    for step in range(1000):
        y = mul(add(y, -y if step % 3 else x), const(0.5 + step / 4000, f32))
    deep = y
    for _ in range(2000):
        deep = add(deep, const(1.0, f32))

    def reference(arrays: Sequence[Array], _: Mapping[Symbol, int]) -> list[Array]:
        return [expr.evaluate(deep, lambda _: arrays[0])]

    return program((a,), (out,), Nest((For(Loop(0, N)),), Store(out, (i,), deep))), reference


@example
def rows_in_order() -> Example:
    keys, values = buffer("keys", (N, M), Space.INPUT, i32), buffer("values", (N, M), Space.INPUT)
    out, found = buffer("out", (N, M), Space.OUTPUT), buffer("found", (N, M), Space.OUTPUT, i64)
    ordered, work = buffer("ordered", (N, M), Space.SCRATCH, i32), buffer("work", (2 * M,), Space.THREAD, u64)
    i, part = Loop(0, N), Loop(1, ceildiv(M, 4))
    at, row, rest = (of(i), of(Loop(2, M))), Loop(2, M), Loop(2, minimum(4, M - of(part) * 4))
    parallel = For(i, LoopKind.PARALLEL)
    by = Row(RowOp.SORT_BY, True, out, at, row, (keys, values), work)
    sort = Row(RowOp.SORT, False, ordered, at, row, (keys,), work)
    search = Row(RowOp.SEARCH, True, found, (of(i), of(part) * 4 + of(rest)), rest, (ordered, keys))
    rows = [Nest((parallel,), Alloc(work, body)) for body in (by, sort)]

    def reference(x: Sequence[Array], _: Mapping[Symbol, int]) -> list[Array]:
        order = np.argsort(-x[0], axis=1, kind="stable")
        return [np.take_along_axis(x[1], order, 1), (x[0][:, None, :] <= x[0][:, :, None]).sum(2)]

    return program((keys, values), (out, found), *rows, Nest((parallel, For(part)), search)), reference


class Compiled:
    """A program as a loaded library."""

    def __init__(self, made: Program, folder: Path) -> None:
        self._sizes, self._outputs = made.sizes, made.outputs
        units = render(made).units
        paths = [folder / f"unit{number}.c" for number in range(len(units))]
        for path, unit in zip(paths, units, strict=True):
            path.write_text(unit.text)
        done = subprocess.run(
            ["gcc", *FLAGS, *map(str, paths), "-o", str(folder / "program.so"), "-lm"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        self._run = ctypes.CDLL(str(folder / "program.so")).harp_run

    def __call__(self, inputs: Sequence[Array], sizes: Mapping[Symbol, int]) -> list[Array]:
        outputs = [np.full(shape_of(b, sizes), 77, b.dtype.numpy) for b in self._outputs]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*inputs, *outputs)]
        assert self._run(*pointers, *(ctypes.c_int64(sizes[s]) for s in self._sizes)) == 0
        return outputs


def shape_of(b: Buffer, sizes: Mapping[Symbol, int]) -> tuple[int, ...]:
    return tuple(evaluate(p, dict(sizes).__getitem__) for p in b.shape)  # type: ignore[arg-type]


SIZES = [(3, 5, 2), (1, 1, 1), (0, 4, 3), (6, 0, 2), (2, 7, 0), (9, 16, 4)]


def inputs_of(made: Program, sizes: Mapping[Symbol, int]) -> list[Array]:
    return [numbers(b.dtype, *shape_of(b, sizes)) for b in made.inputs]


@pytest.mark.parametrize("name", EXAMPLES)
def test_interpreter_and_numpy_agree(name: str) -> None:
    made, reference = EXAMPLES[name]()
    for values in SIZES[: 2 if name == "a_long_chain" else None]:
        sizes = dict(zip((n, m, k), values, strict=True))
        inputs = inputs_of(made, sizes)
        for got, expected in zip(execute(made, inputs, sizes), reference(inputs, sizes), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("name", EXAMPLES)
def test_c_and_numpy_agree(name: str, tmp_path: Path) -> None:
    made, reference = EXAMPLES[name]()
    run = Compiled(made, tmp_path)
    for values in [*SIZES, (33, 70, 11)]:
        sizes = dict(zip((n, m, k), values, strict=True))
        inputs = inputs_of(made, sizes)
        for got, expected in zip(run(inputs, sizes), reference(inputs, sizes), strict=True):
            assert got.dtype == expected.dtype or got.dtype == np.float32
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_verify(name: str) -> None:
    made, _ = EXAMPLES[name]()
    assert verify_program(made) == []


def test_tables_cover_the_grammar() -> None:
    for table in (CBody.statements, interpreter.STATEMENTS, text.STATEMENTS):
        assert set(table) == set(Stmt.__subclasses__())
    for heads in (c_statements.HEADS, interpreter.HEADS, text.HEADS):
        assert set(heads) == set(Head.__subclasses__())


def test_examples_cover_the_grammar() -> None:
    statements = [s for make in EXAMPLES.values() for kernel in make()[0].kernels for s in walk(kernel.body)]
    heads = [h for s in statements if isinstance(s, Nest) for h in s.heads]
    # What Python is given by calls is tested in tests/test_debug.py.
    assert {type(s) for s in statements} == set(Stmt.__subclasses__()) - {ForeignCall}
    assert {type(h) for h in heads} == set(Head.__subclasses__())
    # Grids and groups are tested in tests/lower/device.
    assert {h.kind for h in heads if isinstance(h, For)} == set(LoopKind) - {LoopKind.GRID, LoopKind.ITEM}
    spaces = {s.buffer.space for s in statements if isinstance(s, (Alloc, Store))}
    assert spaces == set(Space) - {Space.INPUT, Space.GROUP, Space.WORKSPACE, Space.PRIVATE, Space.LANES}


# --- what the interpreter catches

LOOP = Loop(0, N)
A, OUT = buffer("a", (N,), Space.INPUT), buffer("out", (N,), Space.OUTPUT)


def run(body: Stmt, size: int = 4) -> None:
    arrays = {A: np.arange(size, dtype=np.float32), OUT: np.zeros(size, np.float32)}
    run_kernel(Kernel("broken", body), arrays, {n: size})


def loop_store(index: Index, value: Expr) -> Stmt:
    return Nest((For(LOOP),), Store(OUT, (index,), value))


def test_a_good_kernel_runs_in_place() -> None:
    out = np.zeros(4, np.float32)
    body = loop_store(of(LOOP), Load(A, (N - 1 - of(LOOP),)))
    run_kernel(Kernel("reverse", body), {A: np.arange(4, dtype=np.float32), OUT: out}, {n: 4})
    np.testing.assert_array_equal(out, [3, 2, 1, 0])


TILE = buffer("tile", (4,), Space.LOCAL)
BROKEN = {
    "load of a.* outside": loop_store(of(LOOP), Load(A, (of(LOOP) + 1,))),
    "store of out.* outside": loop_store(of(LOOP) - 1, const(0.0, f32)),
    "before it was written": Alloc(TILE, loop_store(of(LOOP), Load(TILE, (of(LOOP),)))),
    "never stored": Nest((For(Loop(1, N - 1)),), Store(OUT, (of(Loop(1, N - 1)),), const(0.0, f32))),
    "is not allocated": loop_store(of(LOOP), Load(TILE, (of(LOOP),))),
    "nothing binds it": Store(OUT, (of(LOOP),), const(0.0, f32)),
    "stores to the input": Nest((For(LOOP),), Store(A, (of(LOOP),), const(0.0, f32))),
    "out.*before it was written": Nest((For(LOOP),), Store(OUT, (of(LOOP),), const(0.0, f32), Reduce.SUM)),
}


@pytest.mark.parametrize("message", BROKEN)
def test_the_interpreter_catches(message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        run(BROKEN[message])


def test_parallel_loops_run_in_any_order() -> None:
    """A running sum over a parallel loop gives something else than in order."""
    first = Store(OUT, (as_index(0),), const(0.0, f32))
    rest = Loop(1, N - 1)
    step = Store(OUT, (of(rest) + 1,), add(Load(OUT, (of(rest),)), Load(A, (of(rest),))))
    with pytest.raises(VerificationError, match="before it was written"):
        run(Seq((first, Nest((For(rest, LoopKind.PARALLEL),), step))))
    run(Seq((first, Nest((For(rest),), step))))


def test_buffers_of_one_slot_overwrite_each_other() -> None:
    made, _ = kernels_share_scratch()
    slots = made.scratch
    merged = type(slots[0])(tuple(b for s in slots for b in s.buffers), tuple(size for s in slots for size in s.sizes))
    broken = attrs.evolve(made, scratch=(merged,))
    sizes = {n: 2, m: 3, k: 1}
    with pytest.raises(VerificationError, match="before it was written"):
        execute(broken, inputs_of(made, sizes), sizes)
    with pytest.raises(VerificationError, match="live at the same time"):
        verify_program(broken)


def test_iterations_grow_with_the_work() -> None:
    made, _ = matmul_in_a_register()
    assert iterations(made, {n: 10, m: 20, k: 30}) == pytest.approx(10 * 20 * 30 * 5, rel=0.3)
    digits, _ = transpose_by_digits()
    assert iterations(digits, {n: 10, m: 20, k: 3}) == pytest.approx(10 * 20 * 3 * 2, rel=0.1)
