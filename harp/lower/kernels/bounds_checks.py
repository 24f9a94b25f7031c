"""Checked programs: every index is compared with its axis before memory is touched.

    out0[i0] = in0[i0 + 1]
        ->  if i0 + 1 >= 0 and n - 1 - (i0 + 1) >= 0: out0[i0] = in0[i0 + 1]
            else: if fault[0] == 0: fault = (number of the access, i0 + 1, n)

`fault` is one more output of the program, which its first kernel clears. The number of the access, counted from 1, is
its place in the program's table of `Access`es, from which the caller makes the error.

A load under conditions is checked before its statement, under the same conditions, and gets the bounds as further
conditions. An index that is just a loop over its axis is not checked. The proofs of `harp.trace.index.bounds` are not
used, so that a wrong proof is found like any other mistake.

Checked programs skip the passes that optimise loops, which would have to prove that they keep the branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from harp.errors import VerificationError
from harp.lower.loopir.loops import Buffer, For, If, Kernel, Load, Row, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import nest, rebuilt, sequence
from harp.lower.loopir.origin import Origins
from harp.lower.loopir.program import Call
from harp.lower.loopir.text import kernel_text
from harp.lower.schedule.build import Built
from harp.lower.schedule.indirect import is_as_read
from harp.lower.schedule.row_kernels import rows_in
from harp.lower.verify.verify import verify_kernel
from harp.trace.eval.inside import Access, is_plain
from harp.trace.graph.graph import Graph
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ZERO, Index, Indirect, Loop, as_index, indirect_in, of
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Expr, Position, const, rewrite
from harp.trace.source_locations import Site

# The most accesses of a program.
_MOST = 1 << 31
_NOTHING = Seq(())


def check_addresses(built: Built, graph: Graph) -> Built:
    """The kernels with every index checked, and the output that reports the first index outside of its axis."""
    fault = Buffer("fault", i64, (as_index(3),), Space.OUTPUT)
    table: list[Access] = []
    names = _names(built, graph)
    kernels = [_Checked(kernel, fault, table, names, built.origins).kernel() for kernel in built.kernels]
    if not table:
        return built
    place = Loop(0, as_index(3))
    zeros = Kernel("no fault", nest((For(place),), Store(fault, (of(place),), const(0, i64))), (fault,))
    kernels = [zeros, *(attrs.evolve(kernel, buffers=(*kernel.buffers, fault)) for kernel in kernels)]
    calls = [Call(0, (fault,), ())]
    calls += [Call(c.kernel + 1, (*c.buffers, fault), c.sizes) for c in built.calls]
    outputs = (*built.outputs, fault)
    return attrs.evolve(built, kernels=tuple(kernels), calls=tuple(calls), outputs=outputs, accesses=tuple(table))


def verify_checked(kernels: Iterable[Kernel]) -> None:
    """Raise VerificationError unless every access is proved to be inside, given the branches round it."""
    for kernel in kernels:
        unproven = verify_kernel(kernel)
        if unproven:
            raise VerificationError(f"not checked: {'; '.join(unproven)}\n{kernel_text(kernel)}")


def _names(built: Built, graph: Graph) -> dict[Buffer, str]:
    """The names by which the user knows the arrays."""
    names = dict.fromkeys(built.inputs, "a captured array")
    names |= {buffer: node.name for buffer, node in zip(built.inputs, graph.inputs, strict=False)}
    names |= {buffer: f"result {k}" for k, buffer in enumerate(built.outputs)}
    return names


class _Test(NamedTuple):
    """Conditions under which memory is touched; if one fails, `access` is outside, or without an access nothing is
    done."""

    conditions: tuple[Index, ...]
    access: Access | None = None
    size: Index = ZERO


class _Checked:
    """Adds checks to the statements of a kernel."""

    def __init__(
        self, kernel: Kernel, fault: Buffer, table: list[Access], names: Mapping[Buffer, str], origins: Origins
    ) -> None:
        self.original = kernel
        self.fault = fault
        self.table = table
        self.names = names
        self.origins = origins
        parts = list(walk(kernel.body))
        stored = [s.buffer for s in parts if isinstance(s, Store)] + [
            target for s in rows_in(kernel.body) for target in s.targets
        ]
        self.site = next(filter(None, map(origins.of_store, stored)), None)

    def kernel(self) -> Kernel:
        return self.original.with_body(self.statement(self.original.body))

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return self.store(s)
        if isinstance(s, Row):
            return self.chain(_needed_tests(self.row(s)), s)
        inner = rebuilt(s, self.statement)
        return self.branch(inner) if isinstance(inner, If) else inner

    def store(self, s: Store) -> Stmt:
        """The store inside the tests that it always needs, behind the tests of loads that are made under conditions."""
        always: list[_Test] = []
        before: list[Stmt] = []

        def leaf(e: Expr) -> Expr:
            if isinstance(e, Position):
                always.extend(self.indirects(e.index))
            elif isinstance(e, Load) and e.conditions:
                tests = _needed_tests((*self.conditions(e.conditions), *self.inside(e, self.origins.of_load(e))))
                if any(test.access for test in tests):
                    before.append(self.chain(tests, _NOTHING))
                    return Load(e.buffer, e.index, tuple(c for test in tests for c in test.conditions), e.fill)
            elif isinstance(e, Load):
                always.extend(self.inside(e, self.origins.of_load(e)))
            return e

        value = rewrite((s.value,), leaf)[0]
        always += self.inside(Load(s.buffer, s.index), self.origins.of_store(s.buffer), stores=True)
        checked = s if value is s.value else Store(s.buffer, s.index, value, s.reduce)
        # A variable gets a value in any case.
        starts = s.buffer.space is Space.REG and s.reduce is None
        fallback = Store(s.buffer, (), const(0, s.buffer.dtype)) if starts else None
        whole = self.chain(_needed_tests(always), checked, fallback)
        return sequence((*before, whole)) if before else whole

    def branch(self, s: If) -> Stmt:
        tests = _needed_tests(self.conditions(s.conditions))
        if not any(test.access for test in tests):
            return s
        whole = If(tuple(c for test in tests for c in test.conditions), s.yes, s.no)
        return sequence((self.chain(tests, _NOTHING), whole))

    def row(self, s: Row) -> Iterator[_Test]:
        """The bounds of the row in each buffer: the last element, and the part that is read or stored."""
        last = s.start + s.lane.extent - 1
        for buffer in (s.target, *s.sources):
            stores = buffer is s.target
            yield from self.inside(Load(buffer, s.at_of(buffer)), self.site, stores)
            table = s.function is RowOp.SEARCH and buffer is s.sources[0]  # it is read by its own length
            if not table and not (s.start is ZERO and s.lane.extent is buffer.shape[-1]):
                whole = Load(buffer, (*s.at_of(buffer), last))
                yield self.test(whole, len(buffer.shape) - 1, self.site, stores, s.start)

    def inside(self, at: Load, site: Site | None, stores: bool = False) -> Iterator[_Test]:
        """The bounds of an element; first those of the index arrays in its index."""
        yield from self.indirects(*at.index)
        for axis, (p, extent) in enumerate(zip(at.index, at.buffer.shape, strict=False)):
            if not is_plain(p, extent):
                yield self.test(at, axis, site, stores, p)

    def indirects(self, *indices: Index) -> Iterator[_Test]:
        """The bounds of the elements of index arrays that indices contain."""
        in_indices = {indirect for p in indices for indirect in indirect_in(p)}
        for indirect in sorted(in_indices, key=lambda indirect: indirect.key):
            assert isinstance(indirect.array, Buffer)
            at = Load(indirect.array, indirect.at)
            yield from self.inside(at, self.origins.of_load(at))

    def conditions(self, conditions: Sequence[Index]) -> Iterator[_Test]:
        """The conditions in their order, each after the bounds of what it reads."""
        for condition in conditions:
            yield from self.indirects(condition)
            yield _Test((condition,))

    def test(self, at: Load, axis: int, site: Site | None, stores: bool, least: Index) -> _Test:
        """The bounds of one axis: the index is the last position that is accessed, and `least` the first one."""
        name, size = self.names.get(at.buffer, "an intermediate array"), at.buffer.shape[axis]
        access = Access(name, at.index, axis, site or self.site, stores, is_as_read(at.index[axis]))
        return _Test((least, size - 1 - at.index[axis]), access, size)

    def chain(self, tests: Sequence[_Test], body: Stmt, fallback: Stmt | None = None) -> Stmt:
        """The body inside the tests, the first one outermost. A bound that fails is reported."""
        for test in reversed(tests):
            otherwise = None if test.access is None else self.report(test.access, test.size)
            if otherwise is not None and fallback is not None:
                otherwise = sequence((otherwise, fallback))
            body = If(test.conditions, body, otherwise)
        return body

    def report(self, access: Access, size: Index) -> Stmt:
        """fault = (number of the access, index, size), unless there is a fault already."""
        if access not in self.table:
            self.table.append(access)
        number = const(self.table.index(access) + 1, i64)
        values = (number, Position(access.index[access.axis]), Position(size))
        stored = (Store(self.fault, (as_index(k),), value) for k, value in enumerate(values))
        return If((-of(Indirect(self.fault, (ZERO,), as_index(_MOST))),), Seq(tuple(stored)))


def _needed_tests(tests: Iterable[_Test]) -> list[_Test]:
    """The tests without conditions that an earlier test has, and without those that hold for all sizes."""
    known: set[Index] = set()
    needed: list[_Test] = []
    for test in tests:
        fresh = [c for c in test.conditions if c not in known and (c.constant is None or c.constant < 0)]
        known.update(fresh)
        if fresh:
            needed.append(test._replace(conditions=tuple(fresh)))
    return needed
