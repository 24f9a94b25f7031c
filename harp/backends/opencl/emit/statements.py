"""Statements of OpenCL C: those of one work-item, and those of a group that shares loops.

for item i1 < n { s }        ->  for (int64_t i1 = get_local_id(0); i1 < n; i1 += get_local_size(0)) { s }
                                 barrier(CLK_LOCAL_MEM_FENCE);

and if work-items read the variables of others, and are as many as such a loop has iterations:

for item i1 < 256 { s }      ->  const int64_t item = get_sub_group_id()*16 + get_sub_group_local_id();
                                 { s }
acc = parts[i2, 3]           ->  const float lane0 = harp_shuffle_f32(lanes0, 3);
                                 acc = lane0;
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harp.backends.c_family.custom_kernels import HEADER, buffers_of, own_rank, point, point_call, source_of
from harp.backends.c_family.scalar import TYPES
from harp.backends.c_family.statements import STATEMENTS, Statements
from harp.backends.c_family.values import bare
from harp.errors import VerificationError
from harp.lower.device.groups import ARRAYS, ITEMS, has_workspace, is_item, is_shared
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    For,
    ForeignCall,
    LibraryCall,
    LoopKind,
    Nest,
    Routine,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.lower.loopir.nests import nest
from harp.lower.loopir.program import size_in_bytes
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, of, product, value_atoms

# The functions of this library, by the memory that they may store to; they read global memory.
_GLOBAL, _PRIVATE = frozenset({*ARRAYS, Space.THREAD}), frozenset({Space.REG, Space.LOCAL})
_ROUTINES = {
    Routine.GEMM_PANEL: _GLOBAL,
    Routine.GEMM_MICROKERNEL: _GLOBAL,
    Routine.GEMV_AXPY: _GLOBAL,
    Routine.ROW_DOTS: _PRIVATE,
    Routine.DOT: _PRIVATE,
}
# Memory that the work-items of a group share.
_SHARED = frozenset({*ARRAYS, Space.GROUP})
_GROUP_NUMBER = "get_group_id(0)"
_SUB_GROUP_HEADER = "sub_group.h"
# The number of the first loop over the points of a user's kernel; loops of the host have smaller ones.
_POINTS = 1 << 20
# Dimensions of a grid.
DIMENSIONS = 3


def points(stmt: ForeignCall) -> tuple[For, ...]:
    """The grid of a kernel of the user: its calls, and the points of each."""
    extents = (*stmt.calls, *stmt.sizes[: len(source_of(stmt).grid)])
    return tuple(For(Loop(_POINTS + k, extent), LoopKind.GRID) for k, extent in enumerate(extents))


def is_called(stmt: LibraryCall) -> bool:
    """Whether this library has the function."""
    *sources, target = (operand.buffer.space for operand in stmt.operands)
    return target in _ROUTINES.get(stmt.routine, ()) and {*sources} <= _GLOBAL


class WorkItem(Statements):
    """Prints the statements of one work-item. `room` are the sizes of the parts of its, or its group's, workspace."""

    def __init__(self, buffers: dict[Buffer, str], names: dict[Atom, str], constant: frozenset[Buffer]) -> None:
        super().__init__(buffers, names, constant)
        self.room: list[Index] = []
        self.name = ""  # of the launch
        self.functions: list[str] = []  # definitions of points of the user's kernels
        self.number = "harp_work_item()"  # the number of the work-item or group that owns a workspace

    def iteration(self, grid: tuple[For, ...], stmt: Stmt) -> None:
        """Print the statements for one iteration of the grid."""
        depth = self.lines.depth
        self._place_in_grid(grid, stmt)
        self.statement(stmt, True)
        self._close(depth)
        if self.room:
            size = " + ".join(f"harp_slot({self._index.text(p)})" for p in self.room)
            self._at_start(f"__global char *const mine = harp_room + {self.number} * ({size});")

    def _place_in_grid(self, grid: tuple[For, ...], stmt: Stmt) -> None:
        """Compute the positions of a work-item, and leave if there is no such iteration."""
        self.lines.loops += grid
        self._positions(grid, "get_global_id({})")
        for head in (*grid[::-1][: DIMENSIONS - 1], *grid[:1]) if len(grid) >= DIMENSIONS else grid:
            extent = bare(self._index.text(head.loop.extent))
            self.lines.add(f"if (harp_is_beyond({self._bind(head.loop)}, {extent})) return;")

    def _positions(self, grid: tuple[For, ...], number: str) -> None:
        """The innermost loops have a dimension each, the others share the last one."""
        inner, outer = grid[::-1][: DIMENSIONS - 1], grid[::-1][DIMENSIONS - 1 :]
        for dimension, head in enumerate(inner):
            self.lines.add(f"const int64_t {self._bind(head.loop)} = {number.format(dimension)};")
        if not outer:
            return
        self._digits_of(number.format(DIMENSIONS - 1), outer)

    def _digits_of(self, number: str, heads: tuple[For, ...]) -> None:
        """The positions of loops that share a number, from the inside out."""
        rest = "flat"
        self.lines.add(f"int64_t {rest} = {number};")
        for head in heads[:-1]:
            name, extent = self._bind(head.loop), self._index.factor(head.loop.extent)
            self.lines.add(f"const int64_t {name} = {rest} % ({extent});")
            self.lines.add(f"{rest} /= {extent};")
        self.lines.add(f"const int64_t {self._bind(heads[-1].loop)} = {rest};")

    def _hint(self, head: For, body: Stmt) -> None:
        if head.kind is LoopKind.SEQUENTIAL:
            self.lines.add("HARP_IN_ORDER")
        super()._hint(head, body)

    def _independent(self, body: Stmt) -> None:
        super()._independent(body)
        widest = max((buffer.dtype.itemsize for buffer in effects(body).touched), default=0)
        if widest:
            self.lines.add(f"HARP_VECTORS_OF({widest})")

    def _alloc(self, stmt: Alloc, block: bool) -> None:
        if stmt.buffer.space not in (Space.THREAD, Space.WORKSPACE):
            super()._alloc(stmt, block)
            return
        self._buffers[stmt.buffer] = name = self._fresh(stmt.buffer.space.value)
        self.lines.open("")
        self._large(stmt, TYPES[stmt.buffer.dtype], name)
        self.lines.close()

    def _library_call(self, stmt: LibraryCall, block: bool) -> None:
        """A function of this library, or the loops that the call stands for."""
        if is_called(stmt):
            super()._library_call(stmt, block)
        else:
            self.statement(stmt.body, block)

    def _point(self, stmt: ForeignCall, block: bool) -> None:
        """Call a kernel of the user for the point of this work-item."""
        name, positions = f"{self.name}_point", [of(head.loop) for head in points(stmt)]
        calls, place = positions[: len(stmt.calls)], positions[len(stmt.calls) :]
        firsts = ((*calls, *(ZERO,) * own_rank(stmt, buffer)) for buffer in buffers_of(stmt))
        at = [f"&{self._element(buffer, first)}" for buffer, first in zip(buffers_of(stmt), firsts, strict=True)]
        numbers = map(self._index.text, (*stmt.sizes[len(place) :], *place))
        self.functions.append(point(stmt, name, "opencl", "void", "__global "))
        self.lines.uses.add(HEADER)
        self.lines.add(point_call(stmt, name, at, [*numbers], "__global "), stores=True)

    def _large(self, stmt: Alloc, ctype: str, name: str) -> None:
        """A part of the workspace of each work-item or group."""
        size = size_in_bytes(stmt.buffer)
        if (stmt.buffer.space is Space.WORKSPACE) != (self.number == _GROUP_NUMBER):
            raise VerificationError(f"{stmt.buffer.name}: a launch has memory of work-items or of groups, and not both")
        if any(isinstance(atom, Loop) for atom in value_atoms(size)):
            raise VerificationError(f"{stmt.buffer.name}: the memory of a work-item depends on a loop")
        place = " + ".join(["mine", *(f"harp_slot({self._index.text(p)})" for p in self.room)])
        self.room.append(size)
        self.lines.add(f"__global {ctype} *const {name} = (__global {ctype} *)({place});")
        self.statement(stmt.body, True)


WorkItem.statements = {
    **STATEMENTS,
    Alloc: WorkItem._alloc,
    LibraryCall: WorkItem._library_call,
    ForeignCall: WorkItem._point,
}


class WorkGroup(WorkItem):
    """Prints the statements of a group's work-items. `_within` says whether the current statement is in a loop that
    they share, or run by each of them. `_since` is the shared memory read since the last barrier; None if some was
    stored to, or that is unknown. `lanes` is the size of a sub-group if work-items read each other's variables: the
    lane of a work-item does not follow from its number in the group."""

    def __init__(
        self, buffers: dict[Buffer, str], names: dict[Atom, str], constant: frozenset[Buffer], lanes: int = 0
    ) -> None:
        super().__init__(buffers, names, constant)
        self._lanes = lanes
        self._item = "item" if lanes else "get_local_id(0)"
        self._within = False
        self._since: frozenset[str] | None = frozenset()
        self._parts: dict[Buffer, Buffer] = {}  # of an array that is split over work-items, the part of one
        self._free: dict[tuple[str, int], list[str]] = {}  # memory of the group that can be reused

    def _place_in_grid(self, grid: tuple[For, ...], stmt: Stmt) -> None:
        """Compute the number of the work-item and the positions of the group: each iteration of the grid has a group. A
        launch may be a slice of the grid along the second and third dimension, in which a group is one work-item wide.

        Groups with a workspace may be fewer than iterations: each then runs several iterations."""
        if self._lanes:
            number = f"get_sub_group_id()*{self._lanes} + get_sub_group_local_id()"
            self.lines.add(f"const int64_t item = {number};")
        if not has_workspace(stmt):
            self.lines.loops += grid
            self._positions(grid, "get_group_id({0}) + get_global_offset({0})")
            return
        count = "*".join(self._index.factor(head.loop.extent) for head in grid) or "1"
        self.lines.open(f"for (int64_t turn = {_GROUP_NUMBER}; turn < {count}; turn += get_num_groups(0))", *grid)
        if grid:
            self._digits_of("turn", grid[::-1])
        self._since = None  # the iteration before may have read anything
        self.number = _GROUP_NUMBER

    def statement(self, stmt: Stmt, block: bool = False) -> None:
        """Print a statement, with barriers where other work-items read what it stores."""
        if self._within or isinstance(stmt, (Alloc, Seq)):
            super().statement(stmt, block)
        elif is_shared(stmt) and not (isinstance(stmt, Nest) and is_item(stmt.heads[0])):
            self._of_all(stmt, block)
        else:
            self._of_each(stmt, block)

    def _of_all(self, stmt: Stmt, block: bool) -> None:
        """Loops and branches that all work-items run alike, round loops that they share."""
        self._since = None
        if isinstance(stmt, Nest):
            first = next((place for place, head in enumerate(stmt.heads) if is_item(head)), len(stmt.heads))
            stmt = Nest(stmt.heads[:first], nest(stmt.heads[first:], stmt.body))
        super().statement(stmt, block)
        self._since = None

    def _else(self) -> None:
        """A barrier in one branch says nothing about the other."""
        super()._else()
        self._since = None

    def _of_each(self, stmt: Stmt, block: bool) -> None:
        """A loop that work-items share; a store to shared memory, by the first one; or a statement that each runs."""
        used, shared = effects(stmt), is_shared(stmt)
        spaces = {b.space for b in used.writes}
        stores = bool(spaces & _SHARED)
        if Space.REG in spaces and (stores or shared):
            raise VerificationError("work-items of a group store to memory and to their variables in one statement")
        if stores or shared:
            self._barrier(self._shared_names(used.writes))
        depth = self.lines.depth
        if stores and not shared:
            self.lines.open(f"if ({self._item} == 0)")
        self._within = True
        super().statement(stmt, block)
        self._within = False
        self._close(depth)
        if stores:
            self._since = None
            self._barrier(frozenset())
        elif self._since is not None:
            self._since |= self._shared_names(used.reads)

    def _shared_names(self, buffers: Iterable[Buffer]) -> frozenset[str]:
        """The names of shared memory among these buffers; buffers of a group may share memory one after the other."""
        return frozenset(self._buffers[b] for b in buffers if b.space in _SHARED)

    def _barrier(self, stored: frozenset[str]) -> None:
        """Wait, if other work-items may still read the memory that is stored to next."""
        if self._since is None or self._since & stored:
            self.lines.add("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")
            self._since = frozenset()

    def _loop(self, head: For, name: str) -> str:
        if head.kind is not LoopKind.ITEM:
            return super()._loop(head, name)
        if self._lanes and head.loop.extent.constant == ITEMS:
            self._names[head.loop] = self._item
            return ""
        end = bare(self._index.text(head.loop.extent))
        return f"for (int64_t {name} = {self._item}; {name} < {end}; {name} += get_local_size(0))"

    def _offset(self, buffer: Buffer, index: tuple[Index, ...]) -> str:
        """The offset in a private array; its first axis is the work-item, of which each has one element."""
        if buffer.space is not Space.PRIVATE:
            return super()._offset(buffer, index)
        return super()._offset(self._parts[buffer], index[1:])

    def _element(self, buffer: Buffer, index: tuple[Index, ...]) -> str:
        """An element of an array in lanes is the variable of a work-item, which the whole sub-group reads at once."""
        if buffer.space is not Space.LANES:
            return super()._element(buffer, index)
        self.lines.uses.add(_SUB_GROUP_HEADER)
        name, place = self._fresh("lane"), bare(self._index.text(index[1]))
        exchanged = f"harp_shuffle_{buffer.dtype.name}({self._buffers[buffer]}, {place})"
        self.lines.add(f"const {TYPES[buffer.dtype]} {name} = {exchanged};")
        return name

    def _store(self, stmt: Store, block: bool) -> None:
        """A store to an array in lanes: each work-item stores to its own variable."""
        if stmt.buffer.space is not Space.LANES:
            super()._store(stmt, block)
            return
        if stmt.reduce is not None:
            raise VerificationError(f"{stmt.buffer.name} is added to, which is an exchange besides")
        self.lines.add(f"{self._buffers[stmt.buffer]} = {bare(self._values.text(stmt.value))};", stores=True)

    def _alloc(self, stmt: Alloc, block: bool) -> None:
        buffer = stmt.buffer
        if buffer.space not in (Space.GROUP, Space.PRIVATE, Space.LANES):
            super()._alloc(stmt, block)
            return
        array = buffer
        if buffer.space is not Space.GROUP:
            shape_of_part = buffer.shape[1:] if buffer.space is Space.PRIVATE else ()
            array = self._parts[buffer] = attrs.evolve(buffer, shape=shape_of_part)
        if not array.shape:
            self._scalars.add(buffer)
        count, ctype = product(array.shape).constant, TYPES[buffer.dtype]
        if count is None:
            raise VerificationError(f"the size of {buffer.name} is no number")
        free = self._free.setdefault((f"{buffer.space.value} {ctype}", count), [])
        if free:
            name = free.pop()
        else:
            name = self._fresh(buffer.space.value)
            where = "__local " if buffer.space is Space.GROUP else ""
            self._at_start(f"{where}{ctype} {name}{f'[{count}]' if array.shape else ''};")
        self._buffers[buffer] = name
        self.statement(stmt.body, block)
        free.append(name)


WorkGroup.statements = {**WorkItem.statements, Alloc: WorkGroup._alloc, Store: WorkGroup._store}
