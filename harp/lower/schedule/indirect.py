"""Indices that are data, as index expressions: the arrays that hold them, and the indices of their elements.

    x[idx]                 reads x[idx[i0]]            an element of an index array: `Indirect`
    x[idx[::2]]            reads x[idx[2*i0]]          views of index arrays become index expressions
    x[arange(n), idx]      reads x[i0, idx[i0]]        positions that are certain to be inside, or not below 0 where
                                              an index may miss, are used as they are

A checked program must see an index outside before it is clipped. There an element is used unclipped: as an `Indirect`
of an axis longer than any array, from which the offset for negative indices is subtracted again.

A schedule has no buffers yet: its indirect indices refer to stand-ins, which `Binding` replaces by buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harp.lower.loopir.loops import Buffer, Space
from harp.trace.graph.node import Gather, MapReduce, Node, Scatter, View, at, positions
from harp.trace.index.bounds import below, nonnegative
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import Index, Indirect, as_index, indirect_in, of
from harp.trace.scalar.expr import Position

# The length of an axis longer than any array's, a power of two.
_LONG = 1 << 60


class Places(NamedTuple):
    """One index for each of the first axes, and conditions >= 0 under which all are inside."""

    at: tuple[Index, ...]
    conditions: tuple[Index, ...]


class IndirectIndices:
    """The index arrays of a graph: `arrays` are those that must be in memory, with their stand-ins. With `checks` the
    indices of strict nodes are not clipped."""

    def __init__(self, nodes: Iterable[Node], checks: bool = False) -> None:
        self.checks = checks
        self.arrays: dict[Node, Buffer] = {}
        for node in nodes:
            if isinstance(node, (Gather, Scatter)):
                self.places(node, positions(node.indices[0].shape))

    def places(self, node: Gather | Scatter, position: tuple[Index, ...]) -> Places:
        """The indices at which a node reads or writes for this position of its index arrays."""
        array, misses = (node.src, node.fill is not None) if isinstance(node, Gather) else (node.base, not node.clips)
        strict = self.checks and node.strict
        index = tuple(
            self._place(index, position, size, misses, strict)
            for index, size in zip(node.indices, array.shape, strict=False)
        )
        if strict:
            return Places(index, ())
        unsure = {p: size - 1 - p for p, size in zip(index, array.shape, strict=False) if not below(p, size)}
        return Places(index, tuple(unsure.values()) if misses else ())

    def _place(self, index: Node, position: tuple[Index, ...], size: Index, misses: bool, strict: bool) -> Index:
        while isinstance(index, View) and not index.conditions:
            position = at(index.shape, position).each(index.index)
            index = index.src
        if isinstance(index, MapReduce) and isinstance(index.expr, Position) and index.reduce is None:
            known = at(index.domain, position)(index.expr.index)
            if below(known, size) or (misses and not strict and nonnegative(known)):
                return known
        stand_in = self.arrays.get(index)
        if stand_in is None:
            stand_in = Buffer(f"index{len(self.arrays)}", index.dtype, index.shape, Space.SCRATCH)
            self.arrays[index] = stand_in
        if not strict:
            return of(Indirect(stand_in, position, size, misses))
        read = of(Indirect(stand_in, position, as_index(_LONG), True))
        return read + (size - _LONG) * floordiv(read, _LONG // 2)  # 1 for negative indices, which count from the end


def is_as_read(p: Index) -> bool:
    """Whether an index is an unclipped element of an index array."""
    return any(indirect.size.constant == _LONG for indirect in indirect_in(p))


class Binding(Substitution):
    """Replaces the stand-ins of index arrays by buffers."""

    def __init__(self, buffers: Mapping[Buffer, Buffer]) -> None:
        super().__init__({})
        self._buffers = buffers

    def indirect(self, atom: Indirect) -> Indirect:
        found = super().indirect(atom)
        assert isinstance(found.array, Buffer)
        return Indirect(self._buffers.get(found.array, found.array), found.at, found.size, found.misses)
