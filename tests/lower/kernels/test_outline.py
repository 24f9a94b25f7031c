"""Equal kernels become one, different ones never do; and the program computes what it did before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import VerificationError
from harp.lower.kernels.outline import assemble, outline
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, If, Kernel, Load, Nest, Seq, Space, Stmt, Store
from harp.lower.loopir.nests import Renaming
from harp.lower.loopir.program import Call, Program
from harp.lower.schedule.build import Built
from harp.lower.verify.interpreter import execute
from harp.lower.verify.verify import verify_program
from harp.trace.index.division import Substitution, floordiv, relu
from harp.trace.index.polynomial import Index, Indirect, Loop, Symbol, as_index, evaluate, of
from harp.trace.scalar.dtypes import DType, bool_, f32, f64, i32, i64
from harp.trace.scalar.expr import Const, Expr, Position, apply, cast, const
from harp.trace.scalar.ops import Op, Reduce

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
    return Nest((For(i), For(j)), Store(y, at, Load(x, at) * const(factor, f32)))


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
    place = Indirect(index, (of(i),), rows, misses)
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
    value = Load(x, (of(i) + short,)) + Load(z, (as_index(0),), (short - 1,), const(0.0, f32))
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
    "indirect": (gathered(N, M), gathered(K, N), gathered(M, L)),
    "indirect that miss": (gathered(N, M, True), gathered(K, N, True)),
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
    return elementwise(lambda x: x * value, value.dtype)


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
    return Nest((For(i),), Store(out, at, Load(first, at) * Load(second, at)))


def reduced(reduce: Reduce | None) -> Stmt:
    i, y = Loop(0, N), target()
    return Seq((Store(y, (), const(0.0, f32)), Nest((For(i),), Store(y, (), Load(source(N), (of(i),)), reduce))))


def swapped(order: int) -> Stmt:
    """Which of the two arrays is read is all that differs."""
    i = Loop(0, N)
    first, second = source(N), source(N, name="z")
    loads = Load(first, (of(i),)), Load(second, (of(i),))
    value = loads[0] + loads[1] * loads[order]
    return Nest((For(i),), Store(target(N), (of(i),), value))


def shifted(index: Callable[[Index], Index], rows: Index = N, columns: Index = M) -> Stmt:
    i = Loop(0, rows)
    return Nest((For(i),), Store(target(rows), (of(i),), Load(source(rows, columns), (of(i), index(of(i))))))


def linear(factor: float, term: float) -> Stmt:
    return elementwise(lambda x: apply(Op.SIN, x * const(factor, f32)) + const(term, f32))


# One kernel, which gets the numbers that differ.
NUMBERS: dict[str, tuple[Stmt, ...]] = {
    "a bit of a constant": tuple(map(constant, bits(0x3F800001, 0x3F800002))),
    "zeros of either sign": tuple(map(constant, ZEROS)),
    "one NaN and another": tuple(map(constant, NANS)),
    "double precision": tuple(constant(const(value, f64)) for value in (0.1, -0.1, np.inf)),
    "one of two": (linear(2.0, 1.0), linear(2.0, 3.0), linear(2.0, 1.0)),
    "both of two": (linear(2.0, 3.0), linear(3.0, 2.0)),
    "of a function": tuple(elementwise(lambda x, c=c: x * apply(Op.EXP, const(c, f32))) for c in (0.5, 1.0)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_differ_are_parameters(name: str) -> None:
    assert are_one(*NUMBERS[name])


def test_numbers_that_all_kernels_share_stay_in_them() -> None:
    made = outlined(*NUMBERS["one of two"])
    assert [b.shape for b in made.kernels[0].buffers].count(()) == 1
    assert sorted(c.value for c in made.constants.values()) == [1.0, 3.0]
    assert not outlined(linear(2.0, 1.0), linear(2.0, 1.0)).constants


X, Z, Y = source(N), source(N, name="z"), target(N)
DIFFERENT: dict[str, tuple[Stmt, ...]] = {
    "exponents": tuple(elementwise(lambda x, n=n: apply(Op.POW, x, const(n, f32))) for n in (2.0, 3.0, 2.5)),
    "a bit of a fill": tuple(map(filled, ONE_BIT)),
    "fills of either sign": tuple(map(filled, ZEROS)),
    "fills that are NaN": tuple(map(filled, NANS)),
    "dtypes": tuple(elementwise(lambda x: -x, dtype) for dtype in (f32, f64, i32, i64)),
    "one number and two": (linear(2.0, 2.0), linear(2.0, 3.0)),
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
    "indirect": (gathered(N, M), gathered(N, M, True), gathered(N, N)),
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
    negated = lambda x: elementwise_from(x, lambda e: -e, f32)
    assert are_one(*(negated(source(N, space=s)) for s in (Space.INPUT, Space.SCRATCH, Space.OUTPUT)))


def elementwise_from(x: Buffer, value: Callable[[Load], Expr], result: DType) -> Stmt:
    i = Loop(0, N)
    return Nest((For(i),), Store(target(N, dtype=result), (of(i),), value(Load(x, (of(i),)))))


# --- programs of kernels made by hand


VALUES = {n: 5, m: 3, k: 6, l: 4}


def numbers(buffer: Buffer, seed: int) -> Array:
    """Random numbers; small integers, which are places in arrays of any of the sizes."""
    shape = tuple(evaluate(p, lambda atom: VALUES[cast_to_symbol(atom)]) for p in buffer.shape)
    rng = np.random.default_rng(seed)
    values = rng.uniform(-2, 2, shape) if buffer.dtype.is_float else rng.integers(0, 3, shape)
    return np.asarray(values).astype(buffer.dtype.numpy)


def cast_to_symbol(atom: object) -> Symbol:
    assert isinstance(atom, Symbol)
    return atom


def moved(body: Stmt, number: int) -> tuple[Stmt, Buffer]:
    """The body with an array of its own to store to."""
    (old,) = effects(body).writes
    new = Buffer(f"out{number}", old.dtype, old.shape, Space.OUTPUT)
    return Renaming(Substitution({}), {old: (new, ())}).statement(body), new


# Those that store every element, from arrays that they do not store to, and stay inside for any sizes.
WHOLE = [
    *SAME.values(),
    *NUMBERS.values(),
    *(
        DIFFERENT[name]
        for name in DIFFERENT
        if name not in ("columns and rows", "in place and beside", "sides of a branch")
    ),
]


@pytest.mark.parametrize("number", range(len(WHOLE)))
def test_the_program_computes_what_the_separate_kernels_do(number: int) -> None:
    bodies = [moved(body, place) for place, body in enumerate(WHOLE[number])]
    kernels = tuple(Kernel("k", body) for body, _ in bodies)
    outputs = tuple(out for _, out in bodies)
    read = dict.fromkeys(b for kernel in kernels for b in effects(kernel.body).touched if b.space is Space.INPUT)
    plain = Built(kernels, tuple(read), outputs, ())
    given = [numbers(buffer, seed) for seed, buffer in enumerate(read)]
    separate, shared = assemble(plain, SIZES), assemble(outline(plain), SIZES)
    verify_program(shared)
    assert len(shared.kernels) == (1 if number < len(SAME) + len(NUMBERS) else len(kernels)) and len(
        separate.kernels
    ) == len(kernels)
    for a, b in zip(execute(separate, given, VALUES), execute(shared, given, VALUES), strict=True):
        assert a.tobytes() == b.tobytes() and a.shape == b.shape


# --- programs that are traced, against NumPy

rng = np.random.default_rng(0)


def distinct(f: Callable[..., object], *arrays: Array) -> tuple[int, int]:
    """The numbers of kernels and of calls of the program, which computes in C and in Python what NumPy does."""
    compiled = harp.jit(lambda *given: f(hnp, *given))
    stages = compiled.lower(*arrays)
    program = stages._program
    verify_program(program)
    captured = [c.captured.array for c in stages.graph.captured]
    sizes = dict(zip(program.sizes, stages._given, strict=True))
    expected = [np.asarray(a) for a in flat(f(np, *arrays))]
    for found in (flat(compiled(*arrays)), execute(program, [*arrays, *captured], sizes)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-5)
    return len(program.kernels), len(program.calls)


def flat(result: object) -> Sequence[object]:
    return result if isinstance(result, (tuple, list)) else [result]


def perceptron(xp: object, x: Array, *weights: Array) -> Array:
    for w in weights:
        x = xp.tanh(x @ w)  # type: ignore[attr-defined]
    return x


def matrices(*widths: int) -> list[Array]:
    return [rng.normal(size=pair).astype("f4") / 3 for pair in itertools.pairwise(widths)]


def test_layers_are_one_kernel_whatever_their_widths() -> None:
    few, _ = distinct(perceptron, *matrices(2, 3, 4, 5))
    many, calls = distinct(perceptron, *matrices(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4))
    assert many == few and calls >= 9


def test_gradients_of_layers_are_as_few_kernels() -> None:
    """By finite differences, in float64."""

    def loss(*weights: Array) -> object:
        return hnp.sum(perceptron(hnp, *weights) ** 2)

    def counts(depth: int) -> int:
        widths = [2, *range(3, 3 + depth), 2]
        arrays = [rng.normal(size=pair) / 2 for pair in itertools.pairwise(widths)]
        gradient = harp.jit(harp.grad(loss, argnums=1))
        found = np.asarray(gradient(*arrays))
        exact = lambda w: float((perceptron(np, arrays[0], w, *arrays[2:]) ** 2).sum())
        for place in np.ndindex(arrays[1].shape):
            step = np.zeros(arrays[1].shape)
            step[place] = 1e-6
            slope = (exact(arrays[1] + step) - exact(arrays[1] - step)) / 2e-6
            np.testing.assert_allclose(found[place], slope, rtol=1e-5, atol=1e-8)
        program = gradient.lower(*arrays)._program
        verify_program(program)
        assert len(program.calls) >= depth
        return len(program.kernels)

    assert counts(6) == counts(10)


PAIRS: dict[str, tuple[Callable[..., object], tuple[Array, ...], int]] = {
    "sorts": (
        lambda xp, x, y: (xp.sort(x, axis=1), xp.sort(y, axis=1)),
        (rng.normal(size=(3, 5)).astype("f4"), rng.normal(size=(4, 7)).astype("f4")),
        1,
    ),
    "sorts of three axes": (
        lambda xp, x, y: (xp.sort(x, axis=2), xp.sort(y, axis=2)),
        (rng.normal(size=(2, 3, 5)), rng.normal(size=(3, 2, 4))),
        1,
    ),
    "sorts of two dtypes": (
        lambda xp, x, y: (xp.sort(x, axis=1), xp.sort(y, axis=1)),
        (rng.normal(size=(3, 5)).astype("f4"), rng.normal(size=(3, 5))),
        2,
    ),
    "gathers": (
        lambda xp, x, i, j: (x[i], x[j]),
        (rng.normal(size=(5, 3)), np.array([4, 0, 2]), np.array([1, 1, 0, -1])),
        1,
    ),
    "running sums": (
        lambda xp, x, y: (xp.cumsum(x, axis=1), xp.cumsum(y, axis=1)),
        (rng.normal(size=(3, 5)), rng.normal(size=(2, 6))),
        1,
    ),
    "truth values": (
        lambda xp, p, q, x, y: (xp.where(p, x, 0.0), xp.where(q, y, 0.0)),
        (np.eye(3) > 0, np.ones((2, 4)) > 0, rng.normal(size=(3, 3)), rng.normal(size=(2, 4))),
        1,
    ),
    "slices both ways": (
        lambda xp, x, y: (x[y.shape[0] :] * 2, y[x.shape[0] :] * 2),
        (np.arange(5.0), np.arange(3.0)),
        1,
    ),
    "float32 and float64": (lambda xp, x, y: (x * 3, y * 3), (np.ones(3, "f4"), np.ones(3)), 2),
    "constants": (lambda xp, x, y: (x * 3, y * 3.0000000001), (rng.normal(size=3), rng.normal(size=4)), 1),
    "signs of zero": (
        lambda xp, x, y: (xp.copysign(x, 0.0), xp.copysign(y, -0.0)),
        (rng.normal(size=3), rng.normal(size=4)),
        1,
    ),
    "a square and a product": (
        lambda xp, x, y, z: (x * x, y * z),
        (rng.normal(size=3), rng.normal(size=4), rng.normal(size=4)),
        2,
    ),
    "long sums": (
        lambda xp, x, y: (xp.sum(x), xp.sum(y), xp.sum(x[:100_001])),
        (rng.normal(size=200_003), rng.normal(size=300_001)),
        2,
    ),
    "sums of long rows": (
        lambda xp, x, y: (xp.sum(x, axis=1), xp.sum(y, axis=1)),
        (rng.normal(size=(2, 200_003)), rng.normal(size=(3, 70_001))),
        1,
    ),
}


def recurrent(xp: object, x: Array, w: Array) -> Array:
    """Steps that Python has unrolled."""
    h, states = x[0] * 0, []
    for step in range(6):
        h = xp.tanh(x[step] @ w + h)  # type: ignore[attr-defined]
        states.append(h)
    return xp.stack(states)  # type: ignore[attr-defined, no-any-return]


PARTS: dict[str, tuple[Callable[..., object], Array, int]] = {
    "sums": (lambda xp, x: [xp.sum(x[k]) for k in range(6)], rng.normal(size=(6, 7)), 1),
    "sums of long rows": (lambda xp, x: [xp.sum(x[0]), xp.sum(x[2])], rng.normal(size=(3, 200_003)), 1),
    "elements": (lambda xp, x: [xp.sin(x[k, 3 - k]) for k in range(4)], rng.normal(size=(4, 4)), 1),
    "rows of rows": (lambda xp, x: [xp.cumsum(x[k, 1]) for k in range(3)], rng.normal(size=(3, 2, 5)), 1),
    "rows from the end": (lambda xp, x: [xp.cumsum(x[-1]), xp.cumsum(x[0])], rng.normal(size=(3, 4)), 1),
    "a part and the whole": (
        lambda xp, x: [xp.cumsum(x[0]), xp.cumsum(x[1] + xp.sum(x))],
        rng.normal(size=(3, 4)),
        1,
    ),
    "one part twice": (
        lambda xp, x: [xp.cumsum(x[0] * x[0]), xp.cumsum(x[0] * x[1]), xp.cumsum(x[2] * x[1])],
        rng.normal(size=(3, 4)),
        1,
    ),
    "no columns": (lambda xp, x: [xp.sum(x[0]), xp.sum(x[2])], np.ones((3, 0)), 1),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_arrays(name: str) -> None:
    function, x, kernels = PARTS[name]
    compiled = harp.jit(lambda x: function(hnp, x))
    for a, b in zip(compiled(x), function(np, x), strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-9)
    program = compiled.lower(x)._program
    verify_program(program)
    assert len(program.kernels) == kernels


@pytest.mark.parametrize("shape", [(6, 3, 4), (6, 0, 4), (6, 1, 1)])
def test_unrolled_steps(shape: tuple[int, ...]) -> None:
    kernels, calls = distinct(recurrent, rng.normal(size=shape), rng.normal(size=shape[2:] * 2))
    assert kernels <= 4 and calls >= 6


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_of_steps(device: str, dtype: str) -> None:
    """Numbers that follow from the step are parameters: ten steps are as few kernels as four."""

    def steps(xp: object, x: Array, count: int) -> Array:
        for k in range(count):
            x = xp.sin(x) * (1 + 0.1 * k) - x / (xp.sum(x) + k) + xp.exp(-0.1 * k)  # type: ignore[attr-defined]
        return x

    x = rng.uniform(0.1, 1, 37).astype(dtype)
    kernels = []
    for count in (4, 10):
        compiled = harp.jit(lambda x, count=count: steps(hnp, x, count))
        expected = steps(np, x, count)
        tolerance = 1e-4 if dtype == "f4" else 1e-12
        np.testing.assert_allclose(np.asarray(compiled(x)), expected, rtol=tolerance)
        np.testing.assert_allclose(np.asarray(compiled(x[:1])), steps(np, x[:1], count), rtol=tolerance)
        assert np.asarray(compiled(x[:0])).shape == (0,)
        kernels.append(len(compiled.lower(x)._program.kernels))
    assert max(kernels) <= 4


def test_rows_of_masks() -> None:
    """A row of the caller's truth values, and one of the program's."""
    mask = np.array([[0, 1, 2], [255, 0, 3]], np.uint8).view(bool)
    truth = np.array([[False, True, True], [True, False, True]])
    found = harp.jit(lambda m: (hnp.cumsum(m[0]), hnp.cumsum(m[1]), hnp.cumsum(hnp.sort(m, axis=1)[0])))(mask)
    for a, b in zip(found, (truth[0].cumsum(), truth[1].cumsum(), np.sort(truth, axis=1)[0].cumsum()), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    function, arrays, kernels = PAIRS[name]
    if sum(array.size for array in arrays) < 1000:
        assert distinct(function, *arrays)[0] == kernels
        return
    compiled = harp.jit(lambda *given: function(hnp, *given))
    for a, b in zip(compiled(*arrays), function(np, *arrays), strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-9)
    assert len(compiled.lower(*arrays)._program.kernels) == kernels


@pytest.mark.parametrize("times", [1, 1000])
def test_masks_of_the_caller_and_of_the_program(times: int) -> None:
    """Any byte but 0 of a caller is true, also where the caller gives the array up."""
    mask = np.array([0, 1, 2, 255] * times, np.uint8).view(bool)
    x = np.array([1.0, 2.0, 3.0, 4.0] * times)
    truth = np.array([False, True, True, True] * times)
    function = lambda xp, m, x: (
        xp.cumsum(m),
        xp.cumsum(xp.sort(x > 2.5)),
        xp.sort(m),
        xp.cumsum(xp.sort(m)),
        ~m,
        m ^ True,
        xp.argsort(m, stable=True),
        m,
    )
    for donated in ((), (0,)):
        compiled = harp.jit(lambda m, x: function(hnp, m, x), donate_argnums=donated)
        for a, b in zip(compiled(mask.copy(), x), function(np, truth, x), strict=True):
            found = np.asarray(a)
            np.testing.assert_array_equal(found.view(np.uint8) if b.dtype == bool else found, b)
    changed = harp.jit(lambda m, i: (m.at[i].set(True), hnp.cumsum(m.at[i].set(True))))
    expected = np.concatenate([[True], truth[1:]])
    results = [np.asarray(a) for a in changed(mask, np.array([0]))]
    np.testing.assert_array_equal(results[0].view(np.uint8), expected)
    np.testing.assert_array_equal(results[1], np.cumsum(expected))


def test_each_call_has_memory_of_its_own() -> None:
    """The partial sums of a kernel, which is called twice with other sizes, where both results live."""
    f = harp.jit(lambda x, y: hnp.sum(x) * hnp.sum(y) + hnp.sum(x * y[: x.shape[0]]))
    x, y = rng.normal(size=200_003), rng.normal(size=300_001)
    np.testing.assert_allclose(np.asarray(f(x, y)), x.sum() * y.sum() + (x * y[: len(x)]).sum(), rtol=1e-9)
    program = f.lower(x, y)._program
    private = [b for call in program.calls for b in call.buffers[len(program.kernels[call.kernel].buffers) :]]
    assert private and len(set(private)) == len(private)
    assert {b for slot in program.scratch for b in slot.buffers} >= set(private)


# --- random programs of repeated blocks

BLOCKS: tuple[Callable[[object, Array], Array], ...] = (
    lambda xp, x: xp.sin(x) * 0.5,  # type: ignore[attr-defined]
    lambda xp, x: x - xp.max(x, axis=1, keepdims=True),  # type: ignore[attr-defined]
    lambda xp, x: x / (1 + xp.sum(xp.abs(x), axis=1, keepdims=True)),  # type: ignore[attr-defined]
    lambda xp, x: xp.sort(x, axis=1),  # type: ignore[attr-defined]
    lambda xp, x: xp.cumsum(x, axis=1) / 3,  # type: ignore[attr-defined]
    lambda xp, x: xp.cumsum(x, axis=0) / 3,  # type: ignore[attr-defined]
    lambda xp, x: x.T @ x / 4,
    lambda xp, x: x.T,
    lambda xp, x: xp.where(x > 0, x, -0.25 * x),  # type: ignore[attr-defined]
    lambda xp, x: xp.where(xp.sort(x > 0.1, axis=1), x, 1.0),  # type: ignore[attr-defined]
    lambda xp, x: xp.flip(x, axis=0) + x,  # type: ignore[attr-defined]
    lambda xp, x: xp.concatenate([x, x[:1]], axis=0),  # type: ignore[attr-defined]
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(range(len(BLOCKS))), min_size=1, max_size=4),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=3),
)
def test_random_programs(blocks: list[int], times: int, shapes: list[tuple[int, int]]) -> None:
    def function(xp: object, *arrays: Array) -> list[Array]:
        results = []
        for x in arrays:
            for _ in range(times):
                for block in blocks:
                    x = BLOCKS[block](xp, x)
            results.append(x)
        return results

    arrays = [np.random.default_rng(seed).uniform(-1, 1, shape) for seed, shape in enumerate(shapes)]
    compiled = harp.jit(lambda *given: function(hnp, *given))
    state = compiled.lower(*arrays)
    program = state._program
    verify_program(program)
    sizes = dict(zip(program.sizes, state._given, strict=True))
    captured = [c.captured.array for c in state.graph.captured]
    for a, b in zip(execute(program, [*arrays, *captured], sizes), function(np, *arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    once = outline(state._algorithm)
    again = outline(attrs.evolve(once, calls=()))
    assert len(again.kernels) == len(once.kernels) == len(program.kernels)
    assert len(once.calls) == len(state._algorithm.kernels)


# --- what the verifier says of calls


def two_calls() -> Program:
    """y = 2x and w = 2z, by one kernel."""
    z, w = source(K, L, name="z"), target(K, L, name="w")
    first = scaled(N, M)
    second = Renaming(Substitution({}), {}).statement(scaled(K, L))
    buffers = [effects(body).touched for body in (first, second)]
    inputs, outputs = zip(*buffers, strict=True)
    assert z.shape == inputs[1].shape and w.shape == outputs[1].shape
    kernels = Kernel("double", first), Kernel("double", second)
    return assemble(outline(Built(kernels, inputs, outputs, ())), SIZES)


def with_call(change: Callable[[Program, Call], Call]) -> Program:
    program = two_calls()
    first, second = program.calls
    return attrs.evolve(program, calls=(first, change(program, second)))


def with_buffer(place: int, buffer: Callable[[Program], Buffer]) -> Callable[[Program, Call], Call]:
    def change(program: Program, call: Call) -> Call:
        buffers = list(call.buffers)
        buffers[place] = buffer(program)
        return attrs.evolve(call, buffers=tuple(buffers))

    return change


CALLS: dict[str, Callable[[Program, Call], Call]] = {
    r"has \(1, 2\) arguments": lambda _, call: attrs.evolve(call, buffers=call.buffers[:1]),
    r"has \(3, 2\) arguments": lambda _, call: attrs.evolve(call, buffers=(*call.buffers, call.buffers[0])),
    r"has \(2, 1\) arguments": lambda _, call: attrs.evolve(call, sizes=call.sizes[:1]),
    "gives one buffer for two": with_buffer(0, lambda program: program.outputs[1]),
    "x is another kind of array than in0": with_buffer(0, lambda program: program.inputs[0]),
    "y is another kind of array than out0": with_buffer(1, lambda program: program.outputs[0]),
    "is no buffer of the program": with_buffer(1, lambda _: target(K, L)),
    "x is another kind of array than in0.*": lambda _, call: attrs.evolve(call, sizes=call.sizes[::-1]),
    "which the program does not know": lambda _, call: attrs.evolve(call, sizes=(K, of(Symbol(0, 9, "z")))),
}


def test_a_good_program() -> None:
    program = two_calls()
    assert verify_program(program) == []
    assert [call.kernel for call in program.calls] == [0, 0] and len(program.kernels) == 1


@pytest.mark.parametrize("message", CALLS)
def test_bad_calls(message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        verify_program(with_call(CALLS[message]))


def test_a_buffer_of_another_dtype() -> None:
    program = two_calls()
    broken = attrs.evolve(program, inputs=(program.inputs[0], source(K, L, dtype=f64)))
    call = attrs.evolve(program.calls[1], buffers=(broken.inputs[1], program.outputs[1]))
    with pytest.raises(VerificationError, match="x is another kind of array than in0"):
        verify_program(attrs.evolve(broken, calls=(program.calls[0], call)))


def test_an_input_is_not_stored_to() -> None:
    program = two_calls()
    extra = source(K, L, name="extra")
    call = attrs.evolve(program.calls[1], buffers=(program.inputs[1], extra))
    broken = attrs.evolve(program, inputs=(*program.inputs, extra), calls=(*program.calls, call))
    with pytest.raises(VerificationError, match="stores to the input extra"):
        verify_program(broken)


def test_truth_values_of_the_caller_are_not_given_for_those_of_the_program() -> None:
    """The kernel would take any byte for 0 or 1."""
    inside, given = source(N, dtype=bool_, space=Space.SCRATCH), source(N, dtype=bool_, name="given")
    fill = Nest((For(Loop(0, N)),), Store(inside, (of(Loop(0, N)),), const(True, bool_)))
    body = elementwise_from(inside, lambda x: cast(x, i32), i32)
    (out,) = effects(body).writes
    program = assemble(outline(Built((Kernel("fill", fill), Kernel("cast", body)), (given,), (out,), ())), SIZES)
    assert verify_program(program) == []
    call = attrs.evolve(program.calls[1], buffers=(given, out))
    with pytest.raises(VerificationError, match="given may hold any byte"):
        verify_program(attrs.evolve(program, calls=(program.calls[0], call)))


def test_masks_of_the_caller_are_copied_in_one_order():
    """The same program in every process: not in the order in which a set happens to have them."""
    a, v = np.array([False, True]), np.array([True, False])
    texts = {str(harp.jit(lambda a, v: hnp.searchsorted(a, v)).lower(a, v).loops) for _ in range(20)}
    assert len(texts) == 1 and "copy" in next(iter(texts))
