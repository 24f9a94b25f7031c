"""The loop IR: what a kernel does, as nested loops over buffers. Every pass of `harp.lower` after `build` rewrites it.

    value = Expr of `harp.trace.scalar.expr` over the leaves Const, Position and
            Load(buffer, index, conditions, fill)   the element at `index` where all conditions are >= 0, else `fill`
    head  = For(loop, kind)                 loop 0 <= i < extent; kind: one of `LoopKind`
          | Let(symbol, index)              names an index expression: printed once, expanded only in proofs
          | Digits(loops, flat)             mixed-radix digits of `flat`, last fastest; each loop's extent is its radix
    stmt  = Nest(heads, body)               heads from the outside in
          | Seq(parts)
          | Store(buffer, index, value, reduce)      plain store, or buffer[index] = reduce(buffer[index], value)
          | Row(function, target, index, lane, sources)   a function of `harp.trace.graph.row_functions` on whole rows
          of buffers
          | ForeignCall(routine, calls, targets, sources)   other code, on whole buffers
          | If(conditions, yes, no)         all conditions >= 0
          | Alloc(buffer, body)             a buffer that lives in `body`, in a space that is not of the whole program
          | Repeat(loop, test, body, moves)    whole nests, again and again, as long as the element `test` is true, if
                                            there is one: an iteration reads what those before it stored. In its end
                                            the first buffer of each of `moves` gets what the second one has, which is
                                            lost there
          | LibraryCall(routine, lanes, loops, operands)    a function of the library does what its loops say
          | LocalCall(function, arguments, sizes, body)     a function of the same kernel does what `body` says

Indices have one entry for each axis of the buffer; strides are row-major and derived from the buffer's shape, so
products of composite sizes are never expanded, except where the offset in memory is simpler (`flat`). A `Loop` atom's
`axis` is its number, unique within a kernel. An `Indirect` atom is a load of its own, of an integer from the buffer
that is its array.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Loop,
    Symbol,
    indirect_in,
    loops_in,
    of,
    product,
    value_atoms,
)
from harp.trace.scalar.dtypes import DType
from harp.trace.scalar.expr import Const, Expr, apply, cast, const
from harp.trace.scalar.ops import Op, Reduce


class Space(enum.Enum):
    """Where a buffer lives: in an argument or a result of the program, in scratch memory of a call, in memory that a
    thread allocates for a part of a loop, in an array on the stack, or in a variable; in small, fast memory that the
    work-items of a group share, or in the group's workspace, which may have any size; in private memory, of which each
    work-item has the part that the first axis selects; or in lanes: a variable of each work-item, which others of its
    sub-group can read. The axes of lanes are sub-groups and work-items in them."""

    INPUT = "input"
    OUTPUT = "output"
    SCRATCH = "scratch"
    THREAD = "thread"
    LOCAL = "local"
    REG = "reg"
    GROUP = "group"
    WORKSPACE = "workspace"
    PRIVATE = "private"
    LANES = "lanes"


# The most nested allocations: passes over statements recurse, and compilers limit nested braces.
MOST_NESTED = 200

# The spaces of arrays of the whole program, not of a thread or a kernel.
MEMORY = (Space.INPUT, Space.OUTPUT, Space.SCRATCH)


class LoopKind(enum.Enum):
    """How a loop runs; for a plain one this is not decided yet. A sequential one carries a dependence. The iterations
    of a grid are work-items of a device. A search computes minima of its position in accumulators, and may end when
    none of them is larger (`harp.lower.reductions.accumulators`). If item loops are inside of a grid, each iteration of
    the grid is a group of work-items that share them (`harp.lower.device.groups`)."""

    PLAIN = "plain"
    SEQUENTIAL = "sequential"
    SEARCH = "search"
    PARALLEL = "parallel"
    GRID = "grid"
    ITEM = "item"
    UNROLL = "unroll"
    SIMD = "simd"


@attrs.frozen(eq=False, repr=False)
class Buffer:
    """Memory for `shape` elements, row-major."""

    name: str
    dtype: DType
    shape: tuple[Index, ...]
    space: Space


def offset(buffer: Buffer, index: tuple[Index, ...]) -> Index:
    """The number of elements in front of an element."""
    strides = [product(buffer.shape[axis + 1 :]) for axis in range(len(index))]
    return sum((p * step for p, step in zip(index, strides, strict=True)), ZERO)


def flat(buffer: Buffer, index: tuple[Index, ...]) -> Index | None:
    """The offset of an index in which quotients and remainders cancel, as after loops were coalesced; else None."""
    quotients = _quotients(index)
    if not quotients or len(index) != len(buffer.shape):
        return None
    whole = offset(buffer, index)
    return whole if _quotients((whole,)) < quotients else None


def _quotients(index: tuple[Index, ...]) -> set[Atom]:
    """Those that change from iteration to iteration: quotients of sizes are computed once."""
    return {a for p in index for a in value_atoms(p) if isinstance(a, FloorDiv) and loops_in(of(a))}


def place(buffer: Buffer, index: tuple[Index, ...]) -> str:
    """An element as text."""
    whole = flat(buffer, index)
    return f"{buffer.name}[{', '.join(map(repr, index))}]" if whole is None else f"{buffer.name}.flat[{whole}]"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Load(Expr):
    """An element of a buffer: a leaf of the value language. Conditions are checked before memory is touched."""

    buffer: Buffer
    index: tuple[Index, ...]
    conditions: tuple[Index, ...] = ()
    fill: Const | None = None

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.buffer.dtype

    def __repr__(self) -> str:
        text = place(self.buffer, self.index)
        if self.conditions:
            text = f"({text} if {' and '.join(f'{c} >= 0' for c in self.conditions)} else {self.fill})"
        return text


def indirect_loads(indices: Iterable[Index], conditions: tuple[Index, ...] = ()) -> Iterator[Load]:
    """The loads in index expressions, under these conditions."""
    for p in indices:
        for indirect in indirect_in(p):
            assert isinstance(indirect.array, Buffer)
            yield Load(indirect.array, indirect.at, conditions, const(0, indirect.array.dtype) if conditions else None)


class Head:
    """Base of the heads of a nest."""

    __slots__ = ()


@attrs.frozen(eq=False, repr=False)
class For(Head):
    loop: Loop
    kind: LoopKind = LoopKind.PLAIN


@attrs.frozen(eq=False, repr=False)
class Let(Head):
    symbol: Symbol
    index: Index


@attrs.frozen(eq=False, repr=False)
class Digits(Head):
    loops: tuple[Loop, ...]
    flat: Index


class Stmt:
    """Base of the statements."""

    __slots__ = ()


@attrs.frozen(eq=False, repr=False)
class Nest(Stmt):
    heads: tuple[Head, ...]
    body: Stmt


@attrs.frozen(eq=False, repr=False)
class Seq(Stmt):
    parts: tuple[Stmt, ...]


@attrs.frozen(eq=False, repr=False)
class Store(Stmt):
    buffer: Buffer
    index: tuple[Index, ...]
    value: Expr
    reduce: Reduce | None = None


@attrs.frozen(eq=False, repr=False)
class Row(Stmt):
    """Applies a function to one row of each source, and stores target[index] for all positions of `lane`, a loop in the
    last index.

    Sources are read as whole rows, except the values of a search, which are read at `index`. `work` is memory for the
    time of the call.
    """

    function: RowOp
    reverse: bool
    target: Buffer
    index: tuple[Index, ...]
    lane: Loop
    sources: tuple[Buffer, ...]
    work: Buffer | None = None

    @property
    def targets(self) -> tuple[Buffer, ...]:
        """The buffers that it stores to, without its work memory."""
        return (self.target,)

    @property
    def at(self) -> tuple[Index, ...]:
        """The index of the row."""
        return self.index[:-1]

    def at_of(self, buffer: Buffer) -> tuple[Index, ...]:
        """The index of the row in a buffer, which may have one row for all."""
        return self.at[: len(buffer.shape) - 1]

    @property
    def start(self) -> Index:
        """The first position of the row that is stored."""
        return self.index[-1] - of(self.lane)


@attrs.frozen(eq=False, repr=False)
class ForeignCall(Stmt):
    """Calls other code for each element of the index space `calls`: a function of Python, by its number, a kernel of
    the user, which gets `sizes`, or LAPACK. It is not reordered with other statements.

    The shapes of all buffers begin with `calls`. For a call with side effects, sources are the token, a flag for each
    call, and the operands; the target becomes the token plus 1.
    """

    routine: int | KernelSource | MatrixFunction
    calls: tuple[Index, ...]
    targets: tuple[Buffer, ...]
    sources: tuple[Buffer, ...]
    sizes: tuple[Index, ...] = ()
    pure: bool = True

    @property
    def kept(self) -> tuple[Buffer, ...]:
        """The targets in which it may leave elements unchanged."""
        filled = self.routine.filled if isinstance(self.routine, KernelSource) else ()
        return tuple(target for target, first in zip(self.targets, filled, strict=False) if first)

    @property
    def number(self) -> int:
        """The number of its stand-in."""
        return self.routine if isinstance(self.routine, int) else self.routine.number


@attrs.frozen(eq=False, repr=False)
class If(Stmt):
    conditions: tuple[Index, ...]
    yes: Stmt
    no: Stmt | None = None


@attrs.frozen(eq=False, repr=False)
class Alloc(Stmt):
    buffer: Buffer
    body: Stmt


@attrs.frozen(eq=False, repr=False)
class Repeat(Stmt):
    """Its loop is not a loop of a nest: it is not interchanged with others.

    The buffers of a move have one shape, and are in memory. They are swapped, not copied.
    """

    loop: Loop
    test: Load | None
    body: Stmt
    moves: tuple[tuple[Buffer, Buffer], ...] = ()


# The extent of a loop without a known bound.
WITHOUT_END = 2**62


def is_endless(stmt: Stmt) -> bool:
    """Whether only its test ends it."""
    return isinstance(stmt, Repeat) and stmt.test is not None and stmt.loop.extent.constant == WITHOUT_END


class Routine(enum.Enum):
    """A function of the compiled library."""

    GEMM_MICROKERNEL = "gemm microkernel"
    GEMM_PANEL = "gemm panel"
    GEMM_INTEGERS = "gemm integers"
    GEMV_AXPY = "gemv axpy"
    ROW_DOTS = "row dots"
    DOT = "dot"
    TRANSPOSE = "transpose"
    COPY = "copy"
    ZERO = "zero"
    WIDEN = "widen"
    NARROW = "narrow"
    MAP = "map"


# Routines that accumulate products into rows of vectors.
PRODUCTS = (Routine.GEMM_MICROKERNEL, Routine.GEMM_PANEL, Routine.GEMM_INTEGERS)


@attrs.frozen(eq=False, repr=False)
class LibraryOperand:
    """An element of a buffer in loops: `first` is its index at their start, and each loop moves it by its entry in
    `steps`.

    If quotients in `index` cancel in the offset, these count elements along the last axis.
    """

    buffer: Buffer
    index: tuple[Index, ...]
    first: tuple[Index, ...]
    steps: tuple[tuple[Index, ...], ...]

    def moves(self, loop: int) -> bool:
        """Whether it moves with the loop of this number."""
        return any(step is not ZERO for step in self.steps[loop])

    def is_along(self, loop: int) -> bool:
        """Whether this loop moves it along memory by one element; a variable does not move."""
        step = self.steps[loop]
        return step[-1:] == (ONE,) and all(p is ZERO for p in step[:-1])


@attrs.frozen(eq=False, repr=False)
class LibraryCall(Stmt):
    """A call of a library function for vectors of this many lanes. `body` are the loops that it stands for.

    The last operand is stored to. A `MAP` applies its `function` to each element of the others.
    """

    routine: Routine
    lanes: int
    loops: tuple[Loop, ...]
    operands: tuple[LibraryOperand, ...]
    function: Op | None = None

    body: Stmt = attrs.field(init=False)

    @body.default
    def _body(self) -> Stmt:
        *sources, target = (Load(operand.buffer, operand.index) for operand in self.operands)
        function = self.function
        value = _VALUES[self.routine](*sources, target) if function is None else apply(function, *sources)
        return Nest(tuple(map(For, self.loops)), Store(target.buffer, target.index, value))


# The value that a routine stores, given its sources and the target.
_VALUES: dict[Routine, Callable[..., Expr]] = {
    Routine.GEMM_MICROKERNEL: lambda a, b, c: apply(Op.FMA, a, b, c),
    Routine.GEMM_PANEL: lambda a, b, c: apply(Op.FMA, a, b, c),
    Routine.GEMM_INTEGERS: lambda a, b, c: apply(Op.FMA, cast(a, c.dtype), cast(b, c.dtype), c),
    Routine.GEMV_AXPY: lambda a, b, c: apply(Op.FMA, a, b, c),
    Routine.ROW_DOTS: lambda a, b, c: apply(Op.FMA, a, b, c),
    Routine.DOT: lambda a, b, c: apply(Op.FMA, a, b, c),
    Routine.TRANSPOSE: lambda a, c: a,
    Routine.COPY: lambda a, c: a,
    Routine.ZERO: lambda c: const(0, c.dtype),
    Routine.WIDEN: lambda a, c: cast(a, c.dtype),
    Routine.NARROW: lambda a, c: cast(a, c.dtype),
}


@attrs.frozen(eq=False, repr=False)
class Kernel:
    """A function that reads and writes buffers of the spaces input, output and scratch only.

    `buffers` and `sizes` are its parameters, and `scratch` is further memory that a call provides. A kernel that is not
    outlined yet has no parameters: it uses the buffers and sizes of its program.
    """

    name: str
    body: Stmt
    buffers: tuple[Buffer, ...] = ()
    sizes: tuple[Symbol, ...] = ()
    scratch: tuple[Buffer, ...] = ()

    def with_body(self, body: Stmt) -> Kernel:
        """The kernel with this body; the same object if that is its body already."""
        return self if body is self.body else attrs.evolve(self, body=body)


@attrs.frozen(eq=False, repr=False)
class LocalCall(Stmt):
    """Calls a function that belongs to the kernel, with buffers, numbers and sizes in the order of its parameters.
    `body` is what the call does."""

    function: Kernel
    arguments: tuple[Buffer | Const, ...]
    sizes: tuple[Index, ...]
    body: Stmt


_PARTS: dict[type[Stmt], Callable[[Any], tuple[Stmt, ...]]] = {
    Nest: lambda s: (s.body,),
    Alloc: lambda s: (s.body,),
    Repeat: lambda s: (s.body,),
    Seq: lambda s: s.parts,
    If: lambda s: (s.yes,) if s.no is None else (s.yes, s.no),
    LibraryCall: lambda s: (s.body,),
    LocalCall: lambda s: (s.body,),
}


def parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside of a statement."""
    inner = _PARTS.get(type(stmt))
    return () if inner is None else inner(stmt)


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and all statements inside of it, in order of execution."""
    stack = [stmt]
    while stack:
        s = stack.pop()
        yield s
        inner = _PARTS.get(type(s))
        if inner is not None:
            stack.extend(reversed(inner(s)))
