"""The rule of views: in gather form the adjoint is a view of the cotangent and a sum, deterministic and without
atomics.

A view reads src[p(i)] for every position i. Its adjoint at j is the sum of the cotangents of all i with p(i) = j:
the equations p(i) = j are solved for the loops i (`harp.trace.index.solving`), what they leave open is summed, and what
they demand of j becomes conditions with fill 0. Equations that are not solved leave a scatter, in the order of the i.
Of windows with a stride, the sums are made for each phase of the stride on its own, and then interleaved: the polyphase
form of filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations
from itertools import product as pairs

from harp.trace.graph.node import Contiguous, MapReduce, Node, Put, Scatter, View, at, positions
from harp.trace.graph.view import flatten_index, permute, reshape, unflatten_index, view
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Loop,
    Shape,
    loop,
    loops_in,
    of,
    product,
    split_linear,
    value_atoms,
)
from harp.trace.index.solving import Solution, Unsolvable, certain, solve
from harp.trace.scalar.expr import Apply, Expr, Operand, Position, const
from harp.trace.scalar.ops import Op, Reduce
from harp.transforms.autodiff.gather_rules import constant


def sum_over(node: Node, axes: Sequence[int]) -> Node:
    """The sum over some axes; over none, the node itself."""
    if not axes:
        return node
    return MapReduce(node.shape, (node,), Operand(node.dtype, 0), Reduce.SUM, tuple(axes))


def view_adjoint(node: View, cotangent: Node) -> Node:
    """The cotangent of `node.src`, given that of `node`."""
    index, conditions, cotangent = _sum_unused(node, cotangent)
    shape, source = cotangent.shape, node.src.shape
    zero = const(0, node.dtype)
    masked = view(cotangent, shape, positions(shape), conditions, zero)
    divides = any(isinstance(atom, FloorDiv) for p in index for atom in value_atoms(p))
    if product(shape) is product(source):
        # the same elements in the same order, but for the order of axes  ->  transpose, reshape and transpose back
        orders = _orders_of_axes(index, source, shape, divides)
        if orders is not None:
            order, of_view = orders
            back = reshape(permute(masked, of_view), tuple(source[axis] for axis in order))
            return permute(back, [order.index(axis) for axis in range(len(source))])
    elif flatten_index(index, source) is flatten_index(positions(shape), shape):
        if divides:
            # a reshape, of which only a guard says that there are as many elements
            place = flatten_index(positions(source), source)
            return view(masked, source, unflatten_index(place, shape), (product(shape) - 1 - place,), zero)
    for groups in _groupings(len(source)):
        sizes = tuple(product(source[a] for a in group) for group in groups)
        equations = [flatten_index([index[a] for a in group], tuple(source[a] for a in group)) for group in groups]
        try:
            solution = solve(equations, positions(sizes), shape, sizes)
        except Unsolvable:
            continue
        gathered = _by_phase(masked, sizes, solution)
        return reshape(gathered, source) if sizes != source else gathered
    return _scattered(node, index, masked)


# The most axes of which all orders are tried.
_MOST_AXES = 4


def _orders_of_axes(
    index: Sequence[Index], source: Shape, shape: Shape, divides: bool
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The orders of the axes of a source and of its view in which both have the same elements one after the other, if
    there are any; only that in which the axes stand is tried unless it divides: without a quotient the equations are
    solved."""
    loops = positions(shape)
    tried = divides and max(len(source), len(shape)) <= _MOST_AXES

    def orders(count: int) -> Iterable[tuple[int, ...]]:
        return permutations(range(count)) if tried else (tuple(range(count)),)

    places = {flatten_index([loops[a] for a in o], tuple(shape[a] for a in o)): o for o in orders(len(shape))}
    for order in orders(len(source)):
        found = places.get(flatten_index([index[a] for a in order], tuple(source[a] for a in order)))
        if found is not None:
            return order, found
    return None


def _scattered(node: View, index: Sequence[Index], masked: Node) -> Node:
    """Where the equations are not solved: a scatter adds each cotangent to the element that was read, in the order of
    the positions. Cotangents where conditions exclude a read are 0, so their index does not matter."""
    places = tuple(MapReduce(masked.shape, (), Position(p)) for p in index)
    return Scatter(constant(0, node.src), places, masked, Put.ADD)


def _sum_unused(node: View, cotangent: Node) -> tuple[tuple[Index, ...], tuple[Index, ...], Node]:
    """Index map, conditions and cotangent after a sum over the axes that no index or condition uses."""
    used = {loop_of_axis.axis for p in (*node.index, *node.conditions) for loop_of_axis in loops_in(p)}
    unused = [axis for axis, size in enumerate(node.shape) if axis not in used and size is not ONE]
    if not unused:
        return node.index, node.conditions, cotangent
    kept = [axis for axis in range(len(node.shape)) if axis not in unused]
    moved = [node.shape[0]] * len(node.shape)  # the summed axes do not occur, so their places do not matter
    for place, axis in enumerate(kept):
        moved[axis] = loop(place, node.shape[axis])
    renumber = at(node.shape, tuple(moved))
    return renumber.each(node.index), renumber.each(node.conditions), sum_over(cotangent, unused)


def _groupings(rank: int) -> Iterator[list[range]]:
    """The ways to merge neighbouring axes, those that merge least first."""
    for cuts in range(max(rank - 1, 0), -1, -1):
        for inner in combinations(range(1, rank), cuts):
            ends = (0, *inner, rank)
            yield [range(a, b) for a, b in pairwise(ends)] if rank else []


def _gathered(masked: Node, sizes: Shape, solution: Solution) -> Node:
    """The sum of the cotangents that the solution names for each position of the source.

    Conditions on axes of the source that are not read and not summed are applied after the sum: if a view reads one
    element many times, the cotangents are summed once, and the sum is put at that element.
    """
    read = {axis: atom for axis, p in enumerate(positions(sizes)) if (atom := p.atom) and _is_read(atom, solution)}
    unknowns = sorted(solution.unknowns, key=lambda unknown: unknown.axis)
    shape = (*(sizes[axis] for axis in read), *(unknown.extent for unknown in unknowns))
    numbered = {atom: loop(place, shape[place]) for place, atom in enumerate((*read.values(), *unknowns))}
    renumber = Substitution(numbered)
    placing = {c for c in solution.conditions if any(a.axis < len(sizes) and a.axis not in read for a in loops_in(c))}
    selecting = tuple(c for c in solution.conditions if c not in placing)
    zero = const(0, masked.dtype)
    gathered = view(masked, shape, renumber.each(solution.index), renumber.each(selecting), zero)
    total = _sum_behind(gathered, len(read))
    outer = tuple(c for c in solution.conditions if c in placing)
    return view(total, sizes, tuple(map(of, read.values())), outer, zero)


def _by_phase(masked: Node, sizes: Shape, solution: Solution) -> Node:
    """As `_gathered`, but positions x of which the solution reads (x + c) // s - u for an unknown u, as it does for
    windows with stride s, are s*q + p - c first, for each phase p of its own, where nothing is divided:

    sum over u of g[(x + c) // s - u]*w[s*u + (x + c) % s]
        ->  t[p, q] = sum over u of g[q - u]*w[s*u + p]; view t[(x + c) % s, (x + c) // s]
    """
    phases = _phases(sizes, solution)
    if not phases:
        return _gathered(masked, sizes, solution)
    first, count = min(position.axis for position in phases), len(phases)
    least = {x: floordiv(Substitution({x: ZERO})(d.num), d.den) for x, d in phases.items()}
    most = {x: floordiv(Substitution({x: x.extent - 1})(d.num), d.den) for x, d in phases.items()}
    axes = [Loop(axis, size) for axis, size in enumerate(sizes)]
    quotients = [most[x] - least[x] + 1 if x in phases else x.extent for x in axes]
    shape = (*sizes[:first], *(d.den for d in phases.values()), *quotients[first:])
    loops = positions(shape)
    places: dict[Atom, Index] = {x: loops[x.axis + (count if x.axis >= first else 0)] for x in axes}
    for phase, (x, d) in zip(loops[first:], phases.items(), strict=False):
        places[x] = d.den * (places[x] + least[x]) + phase - (d.num - of(x))
    unknowns = {u: Loop(u.axis + count, u.extent) for u in solution.unknowns}
    moved = Substitution(places | {old: of(new) for old, new in unknowns.items()})
    masked, solution = _unmasked(masked, solution)
    index = moved.each(solution.index)
    inside = (c for p, size in zip(index, masked.shape, strict=True) for c in (p, size - 1 - p))
    conditions = tuple(dict.fromkeys(c for c in (*moved.each(solution.conditions), *inside) if not certain(c)))
    split = _gathered(masked, shape, Solution(index, conditions, tuple(unknowns.values())))
    numbers = [d.num - d.den * of(d) for d in phases.values()]
    found = [of(phases[x]) - least[x] if x in phases else of(x) for x in axes]
    return view(Contiguous(split), sizes, (*found[:first], *numbers, *found[first:]))


def _unmasked(masked: Node, solution: Solution) -> tuple[Node, Solution]:
    """The array that a masked cotangent shows, and the solution for it: conditions of the mask, as that x is inside of
    an array, are decided while x is one position."""
    if not isinstance(masked, View) or masked.fill is not const(0, masked.dtype):
        return masked, solution
    composed = at(masked.shape, solution.index)
    conditions = (*solution.conditions, *(c for c in composed.each(masked.conditions) if not certain(c)))
    return masked.src, Solution(composed.each(masked.index), conditions, solution.unknowns)


def _phases(sizes: Shape, solution: Solution) -> dict[Loop, FloorDiv]:
    """The division (x + c) // s for each such position x."""
    divisions: dict[Loop, set[FloorDiv]] = {}
    apart = set[Loop]()
    for p in solution.index:
        for atom in value_atoms(p):
            if isinstance(atom, FloorDiv):
                for x in loops_in(atom.num):
                    divisions.setdefault(x, set()).add(atom)
                apart |= loops_in(atom.num) if not loops_in(p).isdisjoint(solution.unknowns) else set()
    return {
        x: d
        for axis, size in enumerate(sizes)
        if (x := Loop(axis, size)) in apart and len(divisions[x]) == 1
        for d in divisions[x]
        if d.den.constant is not None and (parts := split_linear(d.num, x)) is not None and parts[0] is ONE
        if not loops_in(parts[1])
    }


def _sum_behind(gathered: Node, kept: int) -> Node:
    """The sum over the axes from `kept` on. An axis that conditions fix at one position is indexed, not summed: at 0 by
    -i >= 0, as for every second element, or at p by i - p >= 0 and p - i >= 0, as on a diagonal."""
    for axis in range(kept, len(gathered.shape)):
        gathered = _windowed(gathered, axis)
    conditions = gathered.conditions if isinstance(gathered, View) else ()
    pinned: dict[int, Index] = {}
    for axis, p in list(enumerate(positions(gathered.shape)))[kept:]:
        place = _pinned(p, conditions, kept) if p is not ZERO else None
        if place is not None:
            pinned[axis] = place
    if not pinned:
        return _joint_sum(gathered, kept)
    shape = tuple(n for axis, n in enumerate(gathered.shape) if axis not in pinned)
    loops = iter(positions(shape))
    index = tuple(pinned[axis] if axis in pinned else next(loops) for axis in range(len(gathered.shape)))
    ends = ((p, gathered.shape[axis] - 1 - p) for axis, p in pinned.items() if p is not ZERO)
    indexed = view(gathered, shape, index, tuple(c for pair in ends for c in pair), const(0, gathered.dtype))
    return _joint_sum(indexed, kept)


def _joint_sum(gathered: Node, kept: int) -> Node:
    """The sum over the axes behind the first ones. Of a sum of products, as the cotangent of what a convolution reads
    is one over output features, it is one sum over all of their axes, for which nothing is kept in memory.

    Where conditions do not hold, a factor is 0. Where positions are divided, or move by a size, most would be such:
    there the products are summed first, once for each element of a window.
    """
    total = gathered.src if isinstance(gathered, View) and len(gathered.shape) > kept else None
    terms = _terms(total) if isinstance(total, MapReduce) and total.reduce is Reduce.SUM else None
    if (
        not isinstance(gathered, View)
        or not isinstance(total, MapReduce)
        or terms is None
        or not all(_moves_by_number(p, position) for p in gathered.index for position in loops_in(p))
    ):
        return sum_over(gathered, range(kept, len(gathered.shape)))
    over = tuple(total.domain[axis] for axis in total.axes)
    shape = (*gathered.shape[:kept], *over, *gathered.shape[kept:])
    loops = positions(shape)
    summed, behind = iter(loops[kept : kept + len(over)]), kept + len(over)
    moved = at(gathered.shape, (*loops[:kept], *loops[behind:]))
    others = iter(moved.each(gathered.index))
    index = tuple(next(summed) if axis in total.axes else next(others) for axis in range(len(total.domain)))
    plain = [view(factor, shape, index) for factor in terms.operands]
    outside = [k for k, factor in enumerate(plain) if not _is_inside(factor)] or [0]
    factors = list(plain)
    conditions = moved.each(gathered.conditions)
    asked = {k: [c for c in conditions if _is_along(terms.operands[k], index, c)] for k in outside}
    left = [c for c in conditions if not any(c in own for own in asked.values())]
    for k, own in asked.items():
        extra = left if k == outside[0] else []
        factors[k] = view(terms.operands[k], shape, index, (*own, *extra), const(0, gathered.dtype))
    return _as_windows_lie(
        MapReduce(shape, tuple(factors), terms.expr, Reduce.SUM, tuple(range(kept, len(shape)))), kept
    )


def _as_windows_lie(total: MapReduce, kept: int) -> MapReduce:
    """A sum of products with its axes in the order in which a factor that shows windows has them in memory."""
    views = [factor for factor in total.operands if isinstance(factor, View)]
    windows = [v for v in views if any(len({x.axis < kept for x in loops_in(p)}) == 2 for p in v.index)]
    if not windows or len(views) < len(total.operands):
        return total
    read = [x.axis for p in windows[0].index for x in sorted(loops_in(p), key=lambda x: x.axis) if x.axis >= kept]
    axes = (*range(kept), *dict.fromkeys((*read, *total.axes)))
    shape = tuple(total.domain[axis] for axis in axes)
    loops = positions(shape)
    moved = at(total.domain, tuple(loops[axes.index(axis)] for axis in range(len(axes))))
    factors = [View(v.src, shape, moved.each(v.index), moved.each(v.conditions), v.fill) for v in views]
    return MapReduce(shape, tuple(factors), total.expr, Reduce.SUM, total.axes)


def _is_along(operand: Node, index: Sequence[Index], condition: Index) -> bool:
    """Whether a condition is one on positions at which a factor of a product is read."""
    used: Iterable[int] = range(len(index))
    if isinstance(operand, View):
        used = {x.axis for p in (*operand.index, *operand.conditions) for x in loops_in(p)}
    return loops_in(condition) <= {x for axis in used for x in loops_in(index[axis])}


def _moves_by_number(p: Index, position: Loop) -> bool:
    parts = split_linear(p, position)
    return parts is not None and parts[0].constant is not None


def _terms(total: MapReduce) -> MapReduce | None:
    """The products that a sum is one of: those of its operand, or its own."""
    if _is_product(total.expr):
        return total
    terms = total.operands[0] if isinstance(total.expr, Operand) else None
    return terms if isinstance(terms, MapReduce) and terms.reduce is None and _is_product(terms.expr) else None


def _is_product(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is Op.MUL and all(isinstance(factor, Operand) for factor in e.args)


def _is_inside(node: Node) -> bool:
    """Whether a view reads inside its array by its index alone."""
    if not isinstance(node, View):
        return True
    pairs = zip(node.index, node.src.shape, strict=True)
    return all(nonnegative(p) and nonnegative(size - 1 - p) for p, size in pairs)


def _windowed(gathered: Node, axis: int) -> Node:
    """Where conditions restrict a position i to a <= i <= b with b - a the same everywhere, a slice: the elements at a
    + j for j <= b - a. So the gradient of a filter is a filter."""
    i = positions(gathered.shape)[axis]
    if not isinstance(gathered, View) or i.atom is None:
        return gathered
    parts = [split for c in gathered.conditions if (split := split_linear(c, i.atom)) is not None]
    starts = [-rest for slope, rest in parts if slope is ONE]  # i - a >= 0
    ends = [rest for slope, rest in parts if slope is -ONE]  # b - i >= 0
    for a, b in pairs(starts, ends):
        length = b - a + 1
        inside = nonnegative(a) and nonnegative(gathered.shape[axis] - 1 - b)
        if inside and not loops_in(length) and nonnegative(length) and length is not gathered.shape[axis]:
            shape = (*gathered.shape[:axis], length, *gathered.shape[axis + 1 :])
            index = tuple(a + p if k == axis else p for k, p in enumerate(positions(shape)))
            return view(gathered, shape, index)
    return gathered


def _pinned(position: Index, conditions: Sequence[Index], kept: int) -> Index | None:
    """The position at which two opposite conditions fix an axis, as an expression of the kept axes."""
    if -position in conditions:
        return ZERO
    atom = position.atom
    for c in conditions:
        parts = split_linear(c, atom) if atom is not None and -c in conditions else None
        if parts is not None and parts[0] in (ONE, -ONE):
            place = -(parts[0] * parts[1])
            if all(loop.axis < kept for loop in loops_in(place)):
                return place
    return None


def _is_read(position: Atom, solution: Solution) -> bool:
    """Whether the index into the cotangent, or the range of the sum, depends on this position of the source."""
    return any(position in loops_in(p) for p in solution.index) or any(
        position in loops_in(c) and not loops_in(c).isdisjoint(solution.unknowns) for c in solution.conditions
    )
