"""Every rule of the static verifier, with a kernel that breaks it and one that obeys it."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest
from graphs import handmade

import harp
from harp.errors import VerificationError
from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Nest,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.lower.loopir.program import Program, Slot
from harp.lower.loopir.text import program_text
from harp.lower.verify import verify as verifier
from harp.lower.verify.verify import require_kernel, verify_kernel, verify_program
from harp.trace.index.division import ceildiv, floordiv, minimum
from harp.trace.index.polynomial import Index, IndexLike, Indirect, Loop, Symbol, as_index, of
from harp.trace.scalar.dtypes import DType, bool_, f32, f64, i32, i64
from harp.trace.scalar.expr import Const, Expr, Operand, const
from harp.trace.scalar.ops import Reduce

n, m = Symbol(0, 0, "n"), Symbol(0, 1, "m")
N, M = of(n), of(m)
i, j = Loop(0, N), Loop(1, M)
AT_I, AT_J = of(i), of(j)
ZERO = const(0.0, f32)


def buffer(name: str, *shape: IndexLike, space: Space = Space.INPUT, dtype: DType = f32) -> Buffer:
    return Buffer(name, dtype, tuple(map(as_index, shape)), space)


A, OUT = buffer("a", N), buffer("out", N, space=Space.OUTPUT)
GRID = buffer("grid", N, M, space=Space.OUTPUT)
TILE = buffer("tile", 4, space=Space.LOCAL)
FLAGS = buffer("flags", N, space=Space.OUTPUT, dtype=bool_)


def rows(body: Stmt, kind: LoopKind = LoopKind.PLAIN) -> Nest:
    return Nest((For(i, kind),), body)


def copy(
    index: Index = AT_I, source: Index = AT_I, conditions: tuple[Index, ...] = (), fill: Const | None = None
) -> Stmt:
    return rows(Store(OUT, (index,), Load(A, (source,), conditions, fill)))


def verify(body: Stmt) -> list[str]:
    return verify_kernel(Kernel("k", body))


FREE = Symbol(0, 9, "free")
BROKEN: dict[str, Stmt] = {
    "i0 in i0 is used where nothing binds it": Store(OUT, (AT_I,), ZERO),
    "free in free is used where nothing binds it": Seq(
        (Nest((Let(FREE, as_index(0)),), Store(OUT, (of(FREE),), ZERO)), Store(OUT, (of(FREE),), ZERO))
    ),
    "i0 is bound twice": rows(copy()),
    "n is bound twice": rows(Nest((Let(n, AT_I),), Store(OUT, (AT_I,), ZERO))),
    "tile is used where it is not allocated": rows(Store(TILE, (as_index(0),), ZERO)),
    "tile is allocated twice": Alloc(TILE, Alloc(TILE, copy())),
    "of space output is allocated inside": Alloc(OUT, copy()),
    "has rank 1": rows(Store(OUT, (AT_I, AT_I), ZERO)),
    "the input a is stored to": rows(Store(A, (AT_I,), ZERO)),
    "a value of f64 is stored to out: f32": rows(Store(OUT, (AT_I,), const(0.0, f64))),
    "sum does not accept bool": rows(Store(FLAGS, (AT_I,), const(True, bool_), Reduce.SUM)),
    "needs a fill of f32": copy(conditions=(AT_I,), fill=const(0, i32)),
    "needs a fill": copy(conditions=(AT_I,)),
    "an operand stands in a kernel": rows(Store(OUT, (AT_I,), Operand(f32, 0))),
    "all iterations of parallel i0 meet at out": rows(Store(OUT, (as_index(0),), ZERO), LoopKind.PARALLEL),
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_kernels(message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        verify(BROKEN[message])
    assert "\nkernel k\n" in str(caught.value), "the text of the kernel is shown"


def test_where_nobody_asks_no_proof_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise AssertionError

    kernel = Kernel("rows", copy())
    monkeypatch.setattr(verifier, "nonnegative", refuse)
    require_kernel(kernel)
    with pytest.raises(AssertionError):
        verify_kernel(kernel)


def test_a_parallel_read_of_what_others_store() -> None:
    total = Store(OUT, (AT_I,), Load(OUT, (as_index(0),)))
    with pytest.raises(VerificationError, match=r"meet at out\[0\]"):
        verify(rows(total, LoopKind.PARALLEL))


def test_a_parallel_read_behind_an_index_that_each_iteration_has_for_itself() -> None:
    """v = b[i]; grid[v, i] = grid[v + 1, 0]: the next row of one iteration may be the row of another one."""
    place, numbers = Buffer("v", i64, (), Space.REG), buffer("b", N, dtype=i64)
    at = of(Indirect(place, (), N, False))
    changed = Store(GRID, (at, AT_I), Load(GRID, (at + 1, as_index(0))))
    body = Alloc(place, Seq((Store(place, (), Load(numbers, (AT_I,))), changed)))
    report = check_parallel(For(i, LoopKind.PARALLEL), (), body, {})
    assert report.errors or report.unproven


def test_a_parallel_loop_of_one_iteration_by_a_derived_size() -> None:
    alone = Loop(3, of(HEIGHT))
    stored = Store(OUT, (as_index(0),), ZERO)
    assert check_parallel(For(alone, LoopKind.PARALLEL), (), stored, {HEIGHT: as_index(1)}) == ([], [])
    assert check_parallel(For(alone, LoopKind.PARALLEL), (), stored, {HEIGHT: N}).errors


# --- bounds: proved, and reported where not

HEIGHT = Symbol(0, 11, "height")
BLOCK = Loop(2, ceildiv(N, 4))
INNER = Loop(3, of(HEIGHT))
PROVED: dict[str, Stmt] = {
    "identity": copy(),
    "reversed": copy(source=N - 1 - AT_I),
    "first row where the loop runs": copy(source=as_index(0)),
    "last row where the loop runs": copy(source=N - 1),
    "guarded by conditions": copy(source=AT_I - M, conditions=(AT_I - M,), fill=ZERO),
    "guarded on both sides": copy(source=AT_I + M - 2, conditions=(AT_I + M - 2, N - 1 - AT_I - M + 2), fill=ZERO),
    "inside a branch": rows(If((AT_I - M,), Store(OUT, (AT_I - M,), ZERO))),
    "inside the other branch": rows(If((AT_I - 3,), Store(OUT, (AT_I - 3,), ZERO), Store(OUT, (N - 1,), ZERO))),
    "blocks with a ragged end": Nest(
        (For(BLOCK), Let(HEIGHT, minimum(4, N - 4 * of(BLOCK))), For(INNER)),
        Store(OUT, (4 * of(BLOCK) + of(INNER),), ZERO),
    ),
    "digits": Nest((For(Loop(5, N * M)), Digits((i, j), of(Loop(5, N * M)))), Store(GRID, (AT_I, AT_J), ZERO)),
}


@pytest.mark.parametrize("name", PROVED)
def test_proved(name: str) -> None:
    assert verify(PROVED[name]) == []


UNPROVEN: dict[str, Stmt] = {
    "a[i0 + 1] is inside a[n]": copy(source=AT_I + 1),
    "out[i0 - 1] is inside out[n]": copy(index=AT_I - 1),
    "a[m] is inside a[n]": copy(source=M),
    "let free = n - m >= 0": rows(Nest((Let(FREE, N - M),), Store(OUT, (AT_I,), ZERO))),
    "digits of i5 are below n*m": Nest(
        (For(Loop(5, N * M * 2)), Digits((i, j), of(Loop(5, N * M * 2)))), Store(GRID, (AT_I, AT_J), ZERO)
    ),
}


@pytest.mark.parametrize("message", UNPROVEN)
def test_unproven(message: str) -> None:
    assert verify(UNPROVEN[message]) == [f"kernel k: {message}"]


# --- parallel loops

FLAT, PAIR = Loop(5, N * M), Loop(0, floordiv(N, 2))
APART: dict[str, Stmt] = {
    "the loop is an index": rows(Store(OUT, (AT_I,), Load(OUT, (AT_I,)), Reduce.SUM), LoopKind.PARALLEL),
    "a row each": Nest((For(i, LoopKind.PARALLEL), For(j)), Store(GRID, (AT_I, AT_J), ZERO)),
    "a column each": Nest((For(j, LoopKind.PARALLEL), For(i)), Store(GRID, (AT_I, AT_J), ZERO)),
    "a block each": Nest(
        (For(BLOCK, LoopKind.PARALLEL), Let(HEIGHT, minimum(4, N - 4 * of(BLOCK))), For(INNER)),
        Store(OUT, (4 * of(BLOCK) + of(INNER),), ZERO),
    ),
    "a pair each": Nest(
        (For(PAIR, LoopKind.PARALLEL),),
        Seq((Store(OUT, (2 * of(PAIR) + 1,), ZERO), Store(OUT, (2 * of(PAIR),), ZERO))),
    ),
    "digits of the loop": Nest(
        (For(FLAT, LoopKind.PARALLEL), Digits((i, j), of(FLAT))), Store(GRID, (AT_I, AT_J), ZERO)
    ),
    "one digit, where the other one is 0": Nest(
        (For(FLAT, LoopKind.PARALLEL), Digits((i, j), of(FLAT))), If((-AT_J,), Store(OUT, (AT_I,), ZERO))
    ),
    "own tile": rows(
        Alloc(TILE, Seq((Store(TILE, (as_index(0),), ZERO), Store(OUT, (AT_I,), Load(TILE, (as_index(0),)))))),
        LoopKind.PARALLEL,
    ),
}
TOGETHER: dict[str, Stmt] = {
    "halves": rows(Store(OUT, (floordiv(AT_I, 2),), ZERO), LoopKind.PARALLEL),
    "neighbours": rows(Store(OUT, (AT_I,), Load(OUT, (N - 1 - AT_I,))), LoopKind.PARALLEL),
    "sum over the other axis": Nest((For(i, LoopKind.PARALLEL), For(j)), Store(OUT, (AT_I + AT_J,), ZERO)),
    "pairs that overlap": rows(
        Seq((Store(OUT, (2 * AT_I,), ZERO), Store(OUT, (2 * AT_I + 2,), ZERO))), LoopKind.PARALLEL
    ),
    "one digit, where the other one is 0 or 1": Nest(
        (For(FLAT, LoopKind.PARALLEL), Digits((i, j), of(FLAT))), If((1 - AT_J,), Store(OUT, (AT_I,), ZERO))
    ),
    "one digit of two": Nest((For(FLAT, LoopKind.PARALLEL), Digits((i, j), of(FLAT))), Store(OUT, (AT_I,), ZERO)),
}


@pytest.mark.parametrize("name", APART)
def test_iterations_that_stay_apart(name: str) -> None:
    assert verify(APART[name]) == []


@pytest.mark.parametrize("name", TOGETHER)
def test_iterations_that_may_meet(name: str) -> None:
    assert any("iterations stay apart" in line for line in verify(TOGETHER[name]))


def test_the_serial_loop_may_meet() -> None:
    assert verify(rows(Store(OUT, (as_index(0),), ZERO))) == []


# --- programs

S, T = buffer("s", N, space=Space.SCRATCH), buffer("t", N, space=Space.SCRATCH)


def fill(out: Buffer, *sources: Buffer) -> Kernel:
    value: Expr = ZERO
    for source in sources:
        value = value + Load(source, (AT_I,))
    return Kernel(f"fill {out.name}", rows(Store(out, (AT_I,), value)))


def program(
    *kernels: Kernel,
    slots: tuple[Slot, ...] = (Slot((S,), (N * 4,)), Slot((T,), (N * 4,))),
    inputs: tuple[Buffer, ...] = (A,),
) -> Program:
    return attrs.evolve(handmade(inputs, (OUT,), (n,), kernels), scratch=slots)


GOOD = (fill(S, A), fill(T, S), fill(OUT, T))
BROKEN_PROGRAMS: dict[str, Callable[[], Program]] = {
    "reads s before any kernel wrote it": lambda: program(fill(T, S), fill(S, A), fill(OUT, T)),
    "output out is never stored": lambda: program(fill(S, A)),
    "live at the same time": lambda: program(*GOOD, slots=(Slot((S, T), (N * 4, N * 4)),)),
    "stands twice": lambda: program(*GOOD, slots=(Slot((S,), (N * 4,)), Slot((S, T), (N * 4, N * 4)))),
    "gives 0 sizes": lambda: program(*GOOD, slots=(Slot((S,), ()), Slot((T,), (N * 4,)))),
    "shape of b mentions .m.": lambda: program(*GOOD, inputs=(A, buffer("b", M))),
    "t is no buffer of the program": lambda: program(*GOOD, slots=(Slot((S,), (N * 4,)),)),
}


@pytest.mark.parametrize("message", BROKEN_PROGRAMS)
def test_broken_programs(message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        verify_program(BROKEN_PROGRAMS[message]())


def test_a_good_program() -> None:
    assert verify_program(program(*GOOD)) == []
    small = program(*GOOD, slots=(Slot((S,), (N,)), Slot((T,), (N * 4,))))
    assert verify_program(small) == ["slot 0: s fits into n bytes"]


def test_the_text_of_a_program_is_stable() -> None:
    made = program(*GOOD)
    assert program_text(made) == program_text(made)
    assert program_text(made).splitlines()[:6] == [
        "program(n)",
        "  input a: f32[n]",
        "  output out: f32[n]",
        "  slot 0: s: f32[n], 4*n bytes",
        "  slot 1: t: f32[n], 4*n bytes",
        "kernel 0 fill s(a: f32[n], s: f32[n], n)",
    ]
    assert program_text(made).splitlines()[-3:] == [
        "call 0 fill s(a, s, n)",
        "call 1 fill t(s, t, n)",
        "call 2 fill out(t, out, n)",
    ]


# --- outputs that live in inputs


def sharing(
    *kernels: Kernel, shape: tuple[IndexLike, ...] = (N,), pairs: tuple[tuple[int, int], ...] = ((0, 0),)
) -> str:
    """What the verifier says of a program whose output out0 lives in its input in0; empty if nothing."""
    inputs = buffer("in0", *shape), buffer("in1", N)
    program = attrs.evolve(handmade(inputs, (SHARED,), (n, m), kernels), donated=pairs)
    try:
        verify_program(program)
    except VerificationError as error:
        return str(error)
    return ""


SHARED = buffer("out0", N, space=Space.OUTPUT)


def updating(source: Buffer) -> Kernel:
    return Kernel("k", Nest((For(i),), Store(SHARED, (AT_I,), Load(source, (AT_I,)))))


def test_an_output_that_lives_in_an_input_is_there_from_the_start() -> None:
    assert sharing(updating(SHARED)) == "" == sharing()
    assert "never stored" in sharing(pairs=())


def test_it_is_like_the_input_and_used_in_its_place() -> None:
    assert "another kind of array" in sharing(updating(SHARED), shape=(N, M))
    assert "two share an array" in sharing(updating(SHARED), pairs=((0, 0), (1, 0)))
    program = attrs.evolve(handmade((IN0,), (SHARED,), (n,), (updating(IN0),)), donated=((0, 0),))
    with pytest.raises(VerificationError, match="used beside it"):
        verify_program(program)
    text = program_text(program)
    assert "output out0: f32[n], holds in0 at the start" in text


IN0 = buffer("in0", N)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_arrays_without_elements_need_not_be_stored(dtype):
    f = harp.jit(lambda a, b: ((a[:0, :2] @ b[:2, :1]).sum(axis=1) * 2, (a[:0, :2] + 1) @ b[:2]))
    first, second = f(np.ones((6, 6), dtype), np.ones((6, 5), dtype))
    assert first.shape == (0,) and second.shape == (0, 5)
