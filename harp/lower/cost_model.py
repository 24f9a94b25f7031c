"""Costs that the scheduler asks for: weights of nodes, and whether a use would compute a value repeatedly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from harp.trace.graph.node import MapReduce, Node, View, positions
from harp.trace.graph.view import multiplies_matrices
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import Index, Loop, loops_in, product, split_linear
from harp.trace.scalar.expr import Apply, Const, Expr, Operand, Position, walk
from harp.trace.scalar.ops import INFO, Op, Reduce

_FREE = {Op.CAST, Op.BITCAST, Op.STOP, Op.OPAQUE}


class Use(NamedTuple):
    """A use of a value: the index of the element, and conditions >= 0, outside of which it does not matter."""

    at: tuple[Index, ...]
    conditions: tuple[Index, ...] = ()

    def __repr__(self) -> str:
        where = f" where {', '.join(f'{c} >= 0' for c in self.conditions)}" if self.conditions else ""
        return f"[{', '.join(map(repr, self.at))}]{where}"


class Frame(NamedTuple):
    """The loops of an inlined reduction, inside of the first `depth` loops of its kernel's root."""

    depth: int
    loops: tuple[Loop, ...]


class Place(NamedTuple):
    """The loops in which a value is computed, from the outside in, and whether they reduce."""

    loops: tuple[Loop, ...]
    reduces: bool


class Nesting:
    """The loops of a kernel: those of its root, and the frames of its reductions."""

    def __init__(self, root: Sequence[Loop]) -> None:
        self.root = tuple(root)
        self._depths = {loop: depth for depth, loop in enumerate(self.root, 1)}
        self._frames: dict[Loop, Frame] = {}

    def add(self, frame: Frame) -> None:
        self._frames |= dict.fromkeys(frame.loops, frame)

    def frame(self, indices: Iterable[Index]) -> Frame:
        """The innermost frame that binds all loops of the indices; outside of reductions it has no loops."""
        depth = 0
        for loop in (loop for p in indices for loop in loops_in(p)):
            if loop in self._frames:
                return self._frames[loop]
            depth = max(depth, self._depths[loop])
        return Frame(depth, ())

    def place(self, use: Use) -> Place:
        """The place where a value for `use` is computed: as far out as its loops allow."""
        frame = self.frame((*use.at, *use.conditions))
        return Place(self.root[: frame.depth] + frame.loops, bool(frame.loops))


def repeats(shape: Sequence[Index], index: Sequence[Index], loops: Sequence[Loop]) -> bool:
    """Whether elements of an array of this shape, read at `index` inside `loops`, are read several times.

    Not if different iterations read different elements, nor if there are no more iterations than elements.
    """
    if _determined(tuple(index)).issuperset(loops):
        return False
    if any(all(loop not in loops_in(p) for p in index) for loop in loops):
        return True
    return not nonnegative(product(shape) - product(loop.extent for loop in loops))


@lru_cache(maxsize=1 << 14)
def _determined(index: tuple[Index, ...]) -> frozenset[Loop]:
    """The loops whose positions an index determines, one after the other: for [i + k, k] first k, then i."""
    known: set[Loop] = set()
    grows = True
    while grows:
        grows = False
        for p in index:
            unknown = loops_in(p) - known
            if len(unknown) != 1:
                continue
            split = split_linear(p, next(iter(unknown)))
            if split is not None and split[0].constant:
                known |= unknown
                grows = True
    return frozenset(known)


def weigh(e: Expr) -> int:
    """A rough cost of one evaluation, an addition being 1; casts are free."""
    return sum(INFO[x.op].weight for x in walk((e,)) if isinstance(x, Apply) and x.op not in _FREE)


def _weigh_undecided(e: Expr) -> int:
    """The same, where selects by position are free, too: loops are split where these change."""
    total = 0
    decided: set[Expr] = set()
    for x in walk((e,)):
        if isinstance(x, Apply):
            if _is_decided(x, decided):
                decided.add(x)
            elif x.op not in _FREE and not (x.op is Op.SELECT and x.operands[0] in decided):
                total += INFO[x.op].weight
    return total


def _is_decided(e: Apply, decided: set[Expr]) -> bool:
    """Whether it compares positions, or combines such comparisons."""
    if e.op in (Op.LT, Op.EQ):
        return all(isinstance(a, (Position, Const)) for a in e.operands)
    return e.op in (Op.NOT, Op.AND, Op.OR) and all(a in decided for a in e.operands)


# Weights of the expressions of nodes, cached.
weight = lru_cache(maxsize=1 << 14)(weigh)
undecided_weight = lru_cache(maxsize=1 << 14)(_weigh_undecided)


def count_operations(e: Expr) -> int:
    """The number of operations that are printed for an expression."""
    return sum(isinstance(x, Apply) for x in walk((e,)))


def code_size(e: Expr) -> int:
    """The amount of code printed for an expression: an operation is 1, a function such as a sine its weight."""
    return sum(max(INFO[x.op].weight, 1) for x in walk((e,)) if isinstance(x, Apply))


node_code = lru_cache(maxsize=1 << 14)(code_size)  # of the expressions of nodes


def is_reduction(node: Node) -> bool:
    return isinstance(node, MapReduce) and node.reduce is not None


def products(nodes: Sequence[Node], users: Mapping[Node, int]) -> set[Node]:
    """Matrix products, and elementwise maps of a product that has no other user."""
    result: set[Node] = set()
    for node in nodes:
        if isinstance(node, MapReduce) and node.reduce is not None:
            if node.reduce is Reduce.SUM and multiplies_matrices(_summed(node, users), node.axes):
                result.add(node)
        elif isinstance(node, (MapReduce, View)):
            if any(users[operand] == 1 and operand in result for operand in node.inputs):
                result.add(node)
    return result


def _summed(node: MapReduce, users: Mapping[Node, int]) -> MapReduce:
    """The node that computes the terms of a sum: a map without other users, or the sum itself."""
    if isinstance(node.expr, Operand):
        (operand,) = node.operands
        if isinstance(operand, MapReduce) and operand.reduce is None and users[operand] == 1:
            return operand
    return node


def reduces_along_memory(node: MapReduce) -> bool | None:
    """Whether the terms of a reduction follow each other in memory: so those of sums of rows, but not of columns. None
    if no operand decides that, or the operands disagree."""
    axes = positions(node.domain)
    reduced = {atom for axis in node.axes if (atom := axes[axis].atom) is not None}
    answers: set[bool] = set()
    for operand in node.operands:
        index = operand.index if isinstance(operand, View) else axes
        moving = {loop for p in index for loop in loops_in(p)}
        if moving & reduced and moving - reduced:
            answers.add(bool(loops_in(index[-1]) & reduced))
    return next(iter(answers)) if len(answers) == 1 else None


def tails(nodes: Sequence[Node], users: Mapping[Node, int]) -> set[Node]:
    """Maps of the result of a reduction without other users: they end its loop nest."""
    result: set[Node] = set()
    for node in nodes:
        if isinstance(node, MapReduce) and node.reduce is None:
            for operand in node.operands:
                if users[operand] == 1 and (is_reduction(operand) or operand in result):
                    result.add(node)
    return result


def count_users(nodes: Sequence[Node], outputs: Sequence[Node]) -> dict[Node, int]:
    """The number of nodes that read each node; being an output counts as one."""
    users = dict.fromkeys(nodes, 0)
    for node in nodes:
        for operand in set(node.inputs):
            users[operand] += 1
    for output in outputs:
        users[output] += 1
    return users
