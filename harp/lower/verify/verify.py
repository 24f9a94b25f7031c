"""The static verifier: the rules that every kernel and program obeys, for all sizes.

Names are bound before use, indices have the rank of their buffer and stay inside of it, dtypes agree, inputs are never
stored to, scratch buffers with overlapping lifetimes have different slots, parallel iterations are independent, and no
kernel uses an input that an output lives in. A broken rule raises VerificationError with the kernel's text. Bounds that
are neither proved nor refuted are returned as text; where nobody asks for that, no proof is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from harp.errors import VerificationError
from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.effects import effects, head_indices, head_names, indices, loads
from harp.lower.loopir.loops import (
    MEMORY,
    MOST_NESTED,
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
    Space,
    Stmt,
    Store,
    flat,
    indirect_loads,
    parts,
)
from harp.lower.loopir.program import Call, Program, formals, lifetimes, size_in_bytes
from harp.lower.loopir.text import kernel_text
from harp.lower.verify.lanes import lane_errors
from harp.trace.graph.row_functions import ROWS
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, Symbol, product, value_atoms
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import Operand, walk
from harp.trace.scalar.ops import INFO

# Proofs try the facts one by one, and in pairs where there are only a few.
_FEW_FACTS = 8


class Environment(NamedTuple):
    """The facts at a statement: bound names, lets with their values, facts `p >= 0`, and allocated buffers."""

    names: frozenset[Atom]
    lets: Mapping[Atom, Index]
    expand: Substitution  # of `lets`
    facts: tuple[Index, ...]
    buffers: frozenset[Buffer]


def verify_program(program: Program) -> list[str]:
    """Check a program; returns what could not be proved, one line each."""
    unproven: list[str] = []
    _verify_program(program, unproven)
    return unproven + _check_sizes_of_slots(program)


def require_program(program: Program) -> None:
    """Check a program, and look for no proofs."""
    _verify_program(program, None)


def _verify_program(program: Program, unproven: list[str] | None) -> None:
    scratch = [b for slot in program.scratch for b in slot.buffers]
    known = (*program.inputs, *program.outputs, *program.constants, *scratch)
    _require(len(set(known)) == len(known), "a buffer stands twice among inputs, outputs and slots")
    for buffer in known:
        _require_sizes(program, buffer.shape, f"the shape of {buffer.name}")
    for kernel in program.kernels:
        _Checker(kernel, unproven).check(_start(kernel.sizes, formals(kernel)))
    for call in program.calls:
        _check_call(program, call, frozenset(known))
    _check_donated(program)
    _check_order(program)
    _check_slots(program)


def _require_sizes(program: Program, indices: Iterable[Index], what: str) -> None:
    names = [a for p in indices for a in value_atoms(p) if isinstance(a, (Loop, Symbol)) and a not in program.sizes]
    _require(not names, f"{what} mentions {names}, which the program does not know")


def _check_call(program: Program, call: Call, known: frozenset[Buffer]) -> None:
    """A call passes each parameter an array of its dtype and shape, and no input where the kernel stores."""
    kernel = program.kernels[call.kernel]
    parameters = formals(kernel)
    what = f"the call of {kernel.name} with {[buffer.name for buffer in call.buffers]}"
    counts = (len(call.buffers), len(call.sizes))
    _require(counts == (len(parameters), len(kernel.sizes)), f"{what} has {counts} arguments")
    _require_apart(kernel, call, what)
    _require_sizes(program, call.sizes, what)
    sizes = Substitution(dict(zip(kernel.sizes, call.sizes, strict=True)))
    writes = effects(kernel.body).writes
    for formal, argument in zip(parameters, call.arguments, strict=True):
        actual = argument.buffer
        _require(actual in known, f"{what}: {actual.name} is no buffer of the program")
        _require_sizes(program, argument.at, what)
        fits = actual.dtype is formal.dtype and argument.shape == sizes.each(formal.shape)
        _require(fits, f"{what}: {actual.name} is another kind of array than {formal.name}")
        is_input = actual.space is Space.INPUT
        _require(formal not in writes or not is_input, f"{what} stores to the input {actual.name}")
        anything = formal.dtype is not bool_ or formal.space is Space.INPUT or not is_input
        _require(anything, f"{what}: {formal.name} is 0 or 1, and {actual.name} may hold any byte")


def _require_apart(kernel: Kernel, call: Call, what: str) -> None:
    """No two parameters share memory: parts of one buffer have different constants as indices."""
    writes = effects(kernel.body).writes
    for (one, a), (other, b) in combinations(zip(formals(kernel), call.arguments, strict=True), 2):
        if a.buffer is not b.buffer or (one not in writes and other not in writes and a.at != b.at):
            continue
        apart = any(p is not q and (p - q).constant is not None for p, q in zip(a.at, b.at, strict=False))
        _require(apart, f"{what} gives one buffer for two parameters")


def verify_kernel(kernel: Kernel) -> list[str]:
    """Check a kernel on its own; returns what could not be proved."""
    unproven: list[str] = []
    _verify_kernel(kernel, unproven)
    return unproven


def require_kernel(kernel: Kernel) -> None:
    """Check a kernel on its own, and look for no proofs."""
    _verify_kernel(kernel, None)


def _verify_kernel(kernel: Kernel, unproven: list[str] | None) -> None:
    """A kernel that is not outlined may use any size and any buffer of the program."""
    buffers, sizes = formals(kernel), frozenset[Atom](kernel.sizes)
    if not buffers:
        buffers = effects(kernel.body).touched
        sizes = frozenset(a for p in _all_indices(kernel.body) for a in value_atoms(p) if isinstance(a, Symbol))
        sizes -= frozenset(n for n in _bound(kernel.body))
        sizes |= frozenset(a for b in buffers for p in b.shape for a in value_atoms(p) if isinstance(a, Symbol))
    _Checker(kernel, unproven).check(_start(sizes, buffers))


def _start(sizes: Iterable[Atom], buffers: Iterable[Buffer]) -> Environment:
    return Environment(frozenset(sizes), {}, Substitution({}), (), frozenset(buffers))


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise VerificationError(text)


def _all_indices(stmt: Stmt) -> Iterable[Index]:
    yield from indices(stmt)
    if isinstance(stmt, Nest):
        for head in stmt.heads:
            yield from head_indices(head)
    for part in parts(stmt):
        yield from _all_indices(part)


def _bound(stmt: Stmt) -> Iterable[Atom]:
    if isinstance(stmt, Nest):
        for head in stmt.heads:
            yield from head_names(head)
    elif isinstance(stmt, Repeat):
        yield stmt.loop
    for part in parts(stmt):
        yield from _bound(part)


def _check_donated(program: Program) -> None:
    """An output that lives in an input has its dtype and shape, is the only one, and replaces it in all kernels."""
    touched = {buffer for call in program.calls for buffer in call.buffers}
    for numbers in zip(*program.donated, strict=True):
        _require(len(set(numbers)) == len(numbers), f"of {program.donated}, two share an array")
    for number, output in program.donated:
        source, target = program.inputs[number], program.outputs[output]
        alike = source.dtype is target.dtype and source.shape == target.shape
        _require(alike, f"{target.name} lives in {source.name}, which is another kind of array")
        _require(source not in touched, f"{target.name} lives in {source.name}, which is used beside it")


def _check_order(program: Program) -> None:
    """Outputs are stored, and no buffer is read before it is written, except arrays without elements."""
    written: set[Buffer] = {*program.inputs, *program.constants}
    written |= {program.outputs[output] for _, output in program.donated}
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        used = effects(kernel.body)
        passed = dict(zip(formals(kernel), call.buffers, strict=True))
        for formal in used.reads - used.writes:
            actual = passed[formal]
            if actual not in written and ZERO not in actual.shape:
                raise VerificationError(f"reads {actual.name} before any kernel wrote it\n{kernel_text(kernel)}")
        written |= {passed[formal] for formal in used.writes}
    for buffer in program.outputs:
        _require(buffer in written or ZERO in buffer.shape, f"output {buffer.name} is never stored")


def _check_slots(program: Program) -> None:
    """Buffers with overlapping lifetimes share no memory."""
    lives = lifetimes(call.buffers for call in program.calls)
    for number, slot in enumerate(program.scratch):
        for a, b in combinations(slot.buffers, 2):
            apart = a not in lives or b not in lives or lives[a][1] < lives[b][0] or lives[b][1] < lives[a][0]
            _require(apart, f"slot {number}: {a.name} and {b.name} live at the same time")
        _require(len(slot.sizes) == len(slot.buffers), f"slot {number} gives {len(slot.sizes)} sizes")


def _check_sizes_of_slots(program: Program) -> list[str]:
    """The buffers of which it is not proved that they fit into their slots."""
    return [
        f"slot {number}: {buffer.name} fits into {size} bytes"
        for number, slot in enumerate(program.scratch)
        for buffer, size in zip(slot.buffers, slot.sizes, strict=True)
        if not nonnegative(size - size_in_bytes(buffer))
    ]


class _Checker:
    """Checks the rules for one kernel, and collects what is not proved if anybody asks for it."""

    def __init__(self, kernel: Kernel, unproven: list[str] | None) -> None:
        self.kernel = kernel
        self._unproven = unproven

    def check(self, scope: Environment) -> None:
        for buffer in effects(self.kernel.body).touched:
            outside = buffer.space in MEMORY
            self.require(outside and buffer in scope.buffers, f"{buffer.name} is used where it is not allocated")
        self.statement(self.kernel.body, scope)
        for text in lane_errors(self.kernel.body):
            self.require(False, text)

    def require(self, holds: bool, text: str) -> None:
        if not holds:
            raise VerificationError(f"{text}\n{kernel_text(self.kernel)}")

    def unproven(self, text: str) -> None:
        assert self._unproven is not None
        line = f"kernel {self.kernel.name}: {text}"
        if line not in self._unproven:
            self._unproven.append(line)

    def statement(self, stmt: Stmt, scope: Environment) -> None:
        for p in indices(stmt):
            self.names(p, scope)
        special = RULES.get(type(stmt))
        if special is not None:
            special(self, stmt, scope)
            return
        for part in parts(stmt):
            self.statement(part, scope)

    def names(self, p: Index, scope: Environment) -> None:
        for atom in value_atoms(p):
            if isinstance(atom, (Loop, Symbol)) and atom not in scope.names:
                self.require(False, f"{atom} in {p} is used where nothing binds it")

    def proved(self, p: Index, scope: Environment) -> bool:
        """Whether `p >= 0` follows from the enclosing loops and facts."""
        p = scope.expand(p)
        if nonnegative(p):
            return True
        facts = [scope.expand(fact) for fact in scope.facts]
        if any(nonnegative(p - fact) for fact in facts):
            return True
        return len(facts) <= _FEW_FACTS and any(nonnegative(p - a - b) for a, b in combinations(facts, 2))

    def access(self, buffer: Buffer, index: tuple[Index, ...], scope: Environment) -> None:
        """Check rank and bounds, of each index or of the offset in memory."""
        self.require(buffer in scope.buffers, f"{buffer.name} is used where it is not allocated")
        if len(index) != len(buffer.shape):
            self.require(False, f"{_element_text(buffer, index)}, but {buffer.name} has rank {len(buffer.shape)}")
        if self._unproven is None:
            return
        inside = [
            self.proved(p, scope) and self.proved(extent - 1 - p, scope)
            for p, extent in zip(index, buffer.shape, strict=True)
        ]
        if all(inside):
            return
        whole, size = flat(buffer, index), product(buffer.shape)
        if whole is not None and self.proved(whole, scope) and self.proved(size - 1 - whole, scope):
            return
        self.unproven(f"{_element_text(buffer, index)} is inside {buffer.name}[{', '.join(map(repr, buffer.shape))}]")

    # --- statements

    def store(self, stmt: Store, scope: Environment) -> None:
        buffer = stmt.buffer
        self.require(buffer.space is not Space.INPUT, f"the input {buffer.name} is stored to")
        self.require(
            stmt.value.dtype is buffer.dtype,
            f"a value of {stmt.value.dtype} is stored to {buffer.name}: {buffer.dtype}",
        )
        if stmt.reduce is not None:
            accepted = buffer.dtype.kind in INFO[stmt.reduce.value].kinds
            self.require(accepted, f"{stmt.reduce.name.lower()} does not accept {buffer.dtype}")
        self.require(not any(isinstance(e, Operand) for e in walk((stmt.value,))), "an operand stands in a kernel")
        for load in loads(stmt):
            self.load(load, scope)
        self.access(buffer, stmt.index, scope)

    def row(self, stmt: Row, scope: Environment) -> None:
        """The target, the row of each source, and work memory, which belongs to the kernel."""
        target, info = stmt.target, ROWS[stmt.function]
        self.require(target.space is not Space.INPUT, f"the input {target.name} is stored to")
        self.require(stmt.lane not in scope.names, f"{stmt.lane} is bound twice")
        self.require(len(stmt.sources) == info.arity, f"{len(stmt.sources)} operands of {stmt.function.value}")
        self.require(target not in stmt.sources, f"{target.name} is stored to while its row is read")
        if stmt.work is not None:
            has_memory = stmt.work.space is Space.THREAD and stmt.work in scope.buffers
            self.require(has_memory, f"{stmt.work.name} is no memory of the kernel's own")
        known = scope._replace(names=scope.names | {stmt.lane}, facts=(*scope.facts, stmt.lane.extent - 1))
        self.access(target, stmt.index, known)
        for source in stmt.sources:
            length = info.aligned or source is stmt.sources[-1]
            fits = source.shape[-1] is target.shape[-1] if length else True
            fits &= source.shape[:-1] in (target.shape[:-1], *([] if length else [()]))
            self.require(source in scope.buffers and fits, f"{source.name} has no rows of {target.name}")

    def callback(self, stmt: ForeignCall, scope: Environment) -> None:
        """Whole arrays of the program, whose shapes begin with that of the calls."""
        for target in stmt.targets:
            self.require(target.space is not Space.INPUT, f"the input {target.name} is stored to")
            self.require(target not in stmt.sources, f"{target.name} is stored to while it is read")
        self.require(len({*stmt.targets}) == len(stmt.targets), "two results are stored to the same memory")
        if not stmt.pure:
            (target,), (token, active) = stmt.targets, stmt.sources[:2]
            fits = target.dtype is token.dtype is i64 and active.dtype is bool_
            fits &= target.shape == token.shape == active.shape == stmt.calls
            self.require(fits, f"{target.name} is no token after {token.name}")
        for buffer in (*stmt.targets, *stmt.sources):
            known = buffer in scope.buffers and buffer.shape[: len(stmt.calls)] == stmt.calls
            self.require(known, f"{buffer.name} has no element for each call")
            for extent in buffer.shape:
                self.names(extent, scope)

    def load(self, load: Load, scope: Environment) -> None:
        if load.conditions or load.fill is not None:
            fits = load.fill is not None and load.fill.dtype is load.dtype
            self.require(fits, f"{load!r} needs a fill of {load.dtype}")
        known = scope._replace(facts=scope.facts + load.conditions)
        self.access(load.buffer, load.index, known)

    def nest(self, stmt: Nest, scope: Environment) -> None:
        for position, head in enumerate(stmt.heads):
            scope = self.head(head, scope)
            if isinstance(head, For) and head.kind in (LoopKind.PARALLEL, LoopKind.GRID, LoopKind.ITEM):
                asks = self._unproven is not None
                report = check_parallel(head, stmt.heads[position + 1 :], stmt.body, scope.lets, asks)
                self.require(not report.errors, "; ".join(report.errors))
                for text in report.unproven:
                    self.unproven(text)
        self.statement(stmt.body, scope)

    def branch(self, stmt: If, scope: Environment) -> None:
        for load in loads(stmt):
            self.load(load, scope)
        self.statement(stmt.yes, scope._replace(facts=scope.facts + stmt.conditions))
        if stmt.no is not None:
            negated = tuple(-c - 1 for c in stmt.conditions) if len(stmt.conditions) == 1 else ()
            self.statement(stmt.no, scope._replace(facts=scope.facts + negated))

    def alloc(self, stmt: Alloc, scope: Environment) -> None:
        buffer = stmt.buffer
        local = buffer.space not in MEMORY
        self.require(local, f"{buffer.name} of space {buffer.space.value} is allocated inside a kernel")
        self.require(buffer not in scope.buffers, f"{buffer.name} is allocated twice")
        nested = sum(other.space not in MEMORY for other in scope.buffers)
        self.require(nested < MOST_NESTED, f"{buffer.name} is allocated inside of {nested} others")
        self.statement(stmt.body, scope._replace(buffers=scope.buffers | {buffer}))

    def repeat(self, stmt: Repeat, scope: Environment) -> None:
        self.require(stmt.loop not in scope.names, f"{stmt.loop} is bound twice")
        for load in loads(stmt):
            self.load(load, scope)
        for target, source in stmt.moves:
            alike = target.dtype is source.dtype and target.shape == source.shape
            self.require(alike, f"{source.name} moves to {target.name}, which is another kind of array")
            both = {target, source}
            self.require(both <= scope.buffers, f"{source.name} moves to {target.name}, which is not in memory")
        facts = (*scope.facts, stmt.loop.extent - 1)
        self.statement(stmt.body, scope._replace(names=scope.names | {stmt.loop}, facts=facts))

    # --- heads

    def head(self, head: Head, scope: Environment) -> Environment:
        """The scope behind a head."""
        for p in head_indices(head):
            self.names(p, scope)
        fresh = head_names(head)
        for name in fresh:
            self.require(name not in scope.names, f"{name} is bound twice")
        scope = scope._replace(names=scope.names | set(fresh))
        if isinstance(head, Let):
            for load in indirect_loads((head.index,)):
                self.load(load, scope)
            if self._unproven is not None and not self.proved(head.index, scope):
                self.unproven(f"let {head.symbol} = {head.index} >= 0")
            return _with_let(scope, head.symbol, head.index)
        if isinstance(head, For):
            return scope._replace(facts=(*scope.facts, head.loop.extent - 1))
        assert isinstance(head, Digits)
        everything = product(loop.extent for loop in head.loops)
        sides = () if self._unproven is None else (head.flat, everything - 1 - head.flat)
        if not all(self.proved(p, scope) for p in sides):
            self.unproven(f"digits of {head.flat} are below {everything}")
        return scope


def _element_text(buffer: Buffer, index: tuple[Index, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(repr, index))}]"


def _with_let(scope: Environment, symbol: Symbol, value: Index) -> Environment:
    lets = {**scope.lets, symbol: scope.expand(value)}
    return scope._replace(lets=lets, expand=Substitution(lets))


RULES: Mapping[type[Stmt], Callable[..., None]] = {
    Store: _Checker.store,
    Row: _Checker.row,
    ForeignCall: _Checker.callback,
    Nest: _Checker.nest,
    If: _Checker.branch,
    Alloc: _Checker.alloc,
    Repeat: _Checker.repeat,
}
