"""Equal kernels become one, different ones never do; and the program computes what it did before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np
import pytest
from graphs import FUSED, binary, fold, graph, handmade, parameter, scale, sized, unary
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import VerificationError
from harp.lower.assemble import assemble
from harp.lower.build import Built
from harp.lower.execute import execute
from harp.lower.loops import Alloc, Buffer, Digits, For, If, Kernel, Load, Nest, Seq, Space, Stmt, Store
from harp.lower.outline import outline
from harp.lower.pipeline import lower
from harp.lower.program import Call, Program, Slot
from harp.lower.text import kernel_text
from harp.lower.verify import verify_program
from harp.trace.division import floordiv, relu
from harp.trace.dtypes import DType, bool_, f32, f64, i32, i64
from harp.trace.expr import Const, Expr, Position, apply, cast, const
from harp.trace.index import Index, Loop, Pick, Symbol, as_index, of
from harp.trace.interpret import interpret
from harp.trace.node import MapReduce
from harp.trace.ops import Op, Reduce

n, m, k, l = SIZES = tuple(Symbol(0, number, name) for number, name in enumerate("nmkl"))  # noqa: E741
N, M, K, L = map(of, SIZES)
Array = np.ndarray


def source(*shape: Index, dtype: DType = f32, name: str = "x", space: Space = Space.INPUT) -> Buffer:
    return Buffer(name, dtype, shape, space)


def target(*shape: Index, dtype: DType = f32, name: str = "y") -> Buffer:
    return Buffer(name, dtype, shape, Space.OUTPUT)


def outlined(*bodies: Stmt) -> Built:
    return outline(Built(tuple(Kernel("k", body) for body in bodies), (), (), ()))


def are_one(*bodies: Stmt) -> bool:
    """Whether all of them become one kernel; all others must stay as many as they were."""
    made = outlined(*bodies)
    assert len(made.kernels) in (1, len(bodies)) and len(made.calls) == len(bodies)
    return len(made.kernels) == 1


# --- kernels that are equal up to names


def scaled(rows: Index, columns: Index, first: int = 0, names: str = "xy", factor: float = 2.0) -> Stmt:
    """y[i, j] = factor*x[i, j]"""
    i, j = Loop(first, rows), Loop(first + 1, columns)
    at = of(i), of(j)
    x, y = source(rows, columns, name=names[0]), target(rows, columns, name=names[1])
    return Nest((For(i), For(j)), Store(y, at, apply(Op.MUL, Load(x, at), const(factor, f32))))


def triangle(size: Index, first: int = 0) -> Stmt:
    """y[i] = the sum of x[i, k] for k <= i: the inner extent depends on the outer loop."""
    i = Loop(first, size)
    inner = Loop(first + 1, of(i) + 1)
    x, y, acc = source(size, size), target(size), Buffer("acc", f32, (), Space.REG)
    total = Nest((For(inner),), Store(acc, (), Load(x, (of(i), of(inner))), Reduce.SUM))
    parts = Store(acc, (), const(0.0, f32)), total, Store(y, (of(i),), Load(acc, ()))
    return Nest((For(i),), Alloc(acc, Seq(parts)))


def gathered(count: Index, rows: Index, misses: bool = False) -> Stmt:
    """y[i] = x[index[i]]"""
    i, index, x = Loop(0, count), source(count, dtype=i64, name="index"), source(rows)
    place = Pick(index, (of(i),), rows, misses)
    conditions = (rows - 1 - of(place),) if misses else ()
    load = Load(x, (of(place),), conditions, const(0.0, f32) if misses else None)
    return Nest((For(i),), Store(target(count), (of(i),), load))


def by_digits(rows: Index, columns: Index, first: int) -> Stmt:
    every, i, j = Loop(first, rows * columns), Loop(first + 1, rows), Loop(first + 2, columns)
    x, y = source(rows, columns), target(columns, rows)
    return Nest((For(every), Digits((i, j), of(every))), Store(y, (of(j), of(i)), Load(x, (of(i), of(j)))))


def divided(rows: Index, columns: Index) -> Stmt:
    i = Loop(0, rows * columns)
    row = floordiv(of(i), columns)
    load = Load(source(rows, columns), (row, of(i) - columns * row))
    return Nest((For(i),), Store(target(rows * columns), (of(i),), load))


def clipped(long: Index, short: Index) -> Stmt:
    """y[i] = x[i + the length of z], of which there are max(long - short, 0)"""
    i = Loop(0, relu(long - short))
    x, z, y = source(long), source(short, name="z"), target(relu(long - short))
    value = apply(Op.ADD, Load(x, (of(i) + short,)), Load(z, (as_index(0),), (short - 1,), const(0.0, f32)))
    return Nest((For(i),), Store(y, (of(i),), value))


def branching(size: Index, other: Index) -> Stmt:
    i, y = Loop(0, size), target(size)
    at = (of(i),)
    return Nest((For(i),), If((other - of(i),), Store(y, at, const(1.0, f32)), Store(y, at, const(2.0, f32))))


SAME: dict[str, tuple[Stmt, ...]] = {
    "names of sizes": (scaled(N, M), scaled(K, L), scaled(M, N), scaled(L, M)),
    "names of buffers": (scaled(N, M), scaled(N, M, names="ab"), scaled(N, M, names="yx")),
    "numbers of loops": (scaled(N, M), scaled(N, M, first=7)),
    "constant sizes": (scaled(as_index(3), M), scaled(as_index(3), K)),
    "ragged loops": (triangle(N), triangle(K, first=4)),
    "picks": (gathered(N, M), gathered(K, N), gathered(M, L)),
    "picks that miss": (gathered(N, M, True), gathered(K, N, True)),
    "digits": (by_digits(N, M, 0), by_digits(L, K, 3), by_digits(M, N, 1)),
    "quotients": (divided(N, M), divided(M, N), divided(K, N)),
    "lengths of slices": (clipped(N, M), clipped(M, N), clipped(L, N)),
    "branches": (branching(N, M), branching(M, N), branching(L, K)),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_up_to_names(name: str) -> None:
    assert are_one(*SAME[name])


def test_the_call_gives_what_the_kernel_had() -> None:
    body = scaled(K, N)
    assert isinstance(body, Nest) and isinstance(body.body, Store)
    made = outlined(scaled(N, M), body)
    call = made.calls[1]
    assert call.kernel == 0 and call.sizes == (K, N)
    assert [b.name for b in call.buffers] == ["x", "y"] and call.buffers[1] is body.body.buffer
    names = [buffer.name for buffer in made.kernels[0].buffers]
    assert len(set(names)) == len(names), "parameters have names of their own"


# --- kernels that differ


def elementwise(value: Callable[[Load], Expr], dtype: DType = f32, result: DType | None = None) -> Stmt:
    i = Loop(0, N)
    x, y = source(N, dtype=dtype), target(N, dtype=result or dtype)
    return Nest((For(i),), Store(y, (of(i),), value(Load(x, (of(i),)))))


def constant(value: Const) -> Stmt:
    return elementwise(lambda x: apply(Op.MUL, x, value), value.dtype)


def filled(fill: Const) -> Stmt:
    """y[i] = x[i - 1], and `fill` where there is none."""
    i = Loop(0, N)
    load = Load(source(N, dtype=fill.dtype), (of(i) - 1,), (of(i) - 1,), fill)
    return Nest((For(i),), Store(target(N, dtype=fill.dtype), (of(i),), load))


def bits(*words: int) -> list[Const]:
    return [Const(f32, np.uint32(word).tobytes()) for word in words]


ONE_BIT = bits(0x3F800000, 0x3F800001)
ZEROS = bits(0x00000000, 0x80000000)
NANS = bits(0x7FC00000, 0xFFC00000, 0x7FC00001)


def product(first: Buffer, second: Buffer, out: Buffer) -> Stmt:
    i = Loop(0, N)
    at = (of(i),)
    return Nest((For(i),), Store(out, at, apply(Op.MUL, Load(first, at), Load(second, at))))


def reduced(reduce: Reduce | None) -> Stmt:
    i, y = Loop(0, N), target()
    return Seq((Store(y, (), const(0.0, f32)), Nest((For(i),), Store(y, (), Load(source(N), (of(i),)), reduce))))


def swapped(order: int) -> Stmt:
    """Which of the two arrays is read is all that differs."""
    i = Loop(0, N)
    first, second = source(N), source(N, name="z")
    loads = Load(first, (of(i),)), Load(second, (of(i),))
    value = apply(Op.ADD, loads[0], apply(Op.MUL, loads[1], loads[order]))
    return Nest((For(i),), Store(target(N), (of(i),), value))


def shifted(index: Callable[[Index], Index], rows: Index = N, columns: Index = M) -> Stmt:
    i = Loop(0, rows)
    return Nest((For(i),), Store(target(rows), (of(i),), Load(source(rows, columns), (of(i), index(of(i))))))


X, Z, Y = source(N), source(N, name="z"), target(N)
DIFFERENT: dict[str, tuple[Stmt, ...]] = {
    "a bit of a constant": tuple(map(constant, ONE_BIT)),
    "zeros of either sign": tuple(map(constant, ZEROS)),
    "one NaN and another": tuple(map(constant, NANS)),
    "a bit of a fill": tuple(map(filled, ONE_BIT)),
    "fills of either sign": tuple(map(filled, ZEROS)),
    "fills that are NaN": tuple(map(filled, NANS)),
    "dtypes": tuple(elementwise(lambda x: apply(Op.NEG, x), dtype) for dtype in (f32, f64, i32, i64)),
    "constants of other dtypes": (constant(const(1, i32)), constant(const(1, i64)), constant(const(1.0, f32))),
    "casts": tuple(elementwise(lambda x, d=d: cast(cast(x, d), f64), f32, f64) for d in (i32, i64)),
    "operations": tuple(elementwise(lambda x, op=op: apply(op, x, x)) for op in (Op.ADD, Op.MUL, Op.MAX, Op.MIN)),
    "x*x and x*y": (product(X, X, Y), product(X, Z, Y)),
    "in place and beside": (product(X, X, Y), product(Y, Y, Y)),
    "which array is read": (swapped(0), swapped(1)),
    "reductions": tuple(map(reduced, (None, Reduce.SUM, Reduce.PROD, Reduce.MAX))),
    "square and oblong": (scaled(N, N), scaled(N, M)),
    "a constant size": (scaled(N, as_index(3)), scaled(N, as_index(4)), scaled(N, M)),
    "columns and rows": (
        shifted(lambda i: i),
        shifted(lambda i: i * 0),
        shifted(lambda i: M - 1 - i),
        shifted(lambda i: N - 1 - i),
        shifted(lambda i: 2 * i),
        shifted(lambda i: i * M),
        shifted(lambda i: floordiv(i, 2)),
        shifted(lambda i: floordiv(i, M)),
        shifted(lambda i: floordiv(M, 2)),
        shifted(lambda i: relu(i - M)),
        shifted(lambda i: relu(M - i)),
    ),
    "a position": tuple(elementwise(lambda x, p=p: cast(Position(p), f32)) for p in (of(Loop(0, N)), N, M)),
    "picks": (gathered(N, M), gathered(N, M, True), gathered(N, N)),
    "sides of a branch": (
        branching(N, M),
        Nest((For(Loop(0, N)),), If((M - of(Loop(0, N)),), Store(Y, (of(Loop(0, N)),), const(1.0, f32)))),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_kernels_stay_apart(name: str) -> None:
    bodies = DIFFERENT[name]
    assert len(outlined(*bodies).kernels) == len(bodies)
    assert len(outlined(*bodies, *bodies[::-1]).kernels) == len(bodies)


def test_truth_values_of_the_caller_are_not_those_of_the_program() -> None:
    """A caller's may be any byte, so they are read with care. What else is read or stored may be of any space."""
    count = lambda x: elementwise_from(x, lambda e: cast(e, i32), i32)
    inside, outside = source(N, dtype=bool_, space=Space.SCRATCH), source(N, dtype=bool_)
    result = source(N, dtype=bool_, space=Space.OUTPUT)
    assert not are_one(count(inside), count(outside))
    assert are_one(count(inside), count(result))
    negated = lambda x: elementwise_from(x, lambda e: apply(Op.NEG, e), f32)
    assert are_one(*(negated(source(N, space=s)) for s in (Space.INPUT, Space.SCRATCH, Space.OUTPUT)))


def elementwise_from(x: Buffer, value: Callable[[Load], Expr], result: DType) -> Stmt:
    i = Loop(0, N)
    return Nest((For(i),), Store(target(N, dtype=result), (of(i),), value(Load(x, (of(i),)))))


# --- programs of kernels made by hand


def test_outlined_kernels_compute_the_same() -> None:
    """Each body on arrays of its own, of sizes that differ, in one program."""
    sizes = {n: 5, m: 3, k: 4, l: 6}
    for bodies in (*SAME.values(), *DIFFERENT.values()):
        separate, shared = (run(bodies, rewrite, sizes) for rewrite in (lambda b: b, outline))
        for a, b in zip(separate, shared, strict=True):
            assert a.tobytes() == b.tobytes()


def run(bodies: Sequence[Stmt], rewrite: Callable[[Built], Built], sizes: Mapping[Symbol, int]) -> list[Array]:
    """The outputs, in the order of the bodies; those whose accesses are outside for these sizes are left out."""
    found = []
    for body in bodies:
        used = outlined(body).calls[0].buffers
        inputs, outputs = ([b for b in used if b.space is space] for space in (Space.INPUT, Space.OUTPUT))
        kernels = tuple(Kernel("k", b) for b in (body,))
        program = assemble(rewrite(Built(kernels, tuple(inputs), tuple(outputs), ())), SIZES)
        arrays = [random(b, sizes) for b in inputs]
        try:
            found += execute(program, arrays, sizes)
        except VerificationError as error:
            found.append(np.array([len(str(error)) > 0]))
    return found


def random(buffer: Buffer, sizes: Mapping[Symbol, int]) -> Array:
    from harp.trace.index import evaluate

    shape = tuple(evaluate(p, lambda atom: sizes[atom]) for p in buffer.shape)  # type: ignore[index]
    values = np.random.default_rng(0).uniform(-2, 2, shape)
    return np.asarray(values * (1 if buffer.dtype.is_float else 2)).astype(buffer.dtype.numpy)
