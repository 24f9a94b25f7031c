"""In a loop, the cotangent of an array of which a step reads a part is added to in place.

Outside of loops, the cotangent of a view's source is that of the view, padded with zeros. In a step this would be a
whole array, although only a few elements were read. So the cotangent of an array that a step reads is zeros with
updates added where it was read, which are added to other cotangents in place. That is done for views that read each
element of an array at most once, as x[0], x[2:5], w[:, 1] and x[::-1] do.

    x[0] with cotangent u       ->  zeros with u added at [0]
    w[:, 1][i] with cotangent u ->  zeros with u added at [i, 1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harp.trace.graph.node import Input, Iteration, MapReduce, Node, Part, Put, Scatter, View, at, positions
from harp.trace.graph.view import flatten_index, view
from harp.trace.index.bounds import bounded
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Loop,
    loops_in,
    occurs,
    of,
    product,
    split_linear,
)
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Expr, Operand, Position, apply, cast, const, select
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.cotangents import added_to_zeros
from harp.transforms.autodiff.gather_rules import constant, elementwise
from harp.transforms.autodiff.view_rules import sum_over


def is_narrow(node: View) -> bool:
    """Whether a view reads a part that is smaller than its source by a symbolic size: one index along an axis, or a
    bounded number of indices along an axis of symbolic size."""
    if product(node.src.shape).constant is not None:
        return False
    return any(_is_few(p, size) for p, size in zip(node.index, node.src.shape, strict=True))


def _is_few(p: Index, size: Index) -> bool:
    extents = [found.extent for found in loops_in(p)]
    return size is not ONE and (not extents or (not bounded(size) and bounded(product(extents))))


def _shows_once(node: View) -> bool:
    """Whether a view reads no element twice: each axis of the source is indexed by a constant, or by its own axis of
    the view; or the flat index is a constant multiple of the view's own flat index, plus a constant."""
    loops = [found for p in node.index for found in loops_in(p)]
    alone = all(len(loops_in(p)) <= 1 and all(_slope(p, found) for found in loops_in(p)) for p in node.index)
    if alone and len(loops) == len(set(loops)):
        return True
    flat, own = flatten_index(node.index, node.src.shape), flatten_index(positions(node.shape), node.shape)
    last = max(loops_in(own), key=lambda found: found.axis)
    return not loops_in(flat - own * _slope(flat, last)) if _slope(flat, last) else False


def _slope(p: Index, atom: Atom) -> int:
    """The slope of an index along a loop, if it is a number; else 0."""
    parts = split_linear(p, atom)
    return parts[0].constant or 0 if parts is not None else 0


# -- cotangents in a step -----------------------------------------------------------------------------------------


def put_back(node: View, cotangent: Node) -> Node | None:
    """The cotangent of a view's source as zeros with updates; None if it may be the whole array, or the source is not
    an array that a loop passes to its step."""
    if node.conditions or not _is_given(node.src):
        return None
    part, axes = _without_repeats(node)
    if not isinstance(part, View) or not _shows_once(part):
        return None
    puts = added_to_zeros(cotangent) if part is node else ()
    total: Node = constant(0, node.src)
    if not puts:
        return _add_through_view(total, part, (), _sum_along(cotangent, axes)) if is_narrow(part) else None
    if not all(put.clips or _is_whole(part, len(put.indices)) for put in puts):
        return None
    for put in puts:
        total = _add_through_view(total, part, put.indices, put.updates, put.clips, put.unique)
    return total


def _without_repeats(node: View) -> tuple[Node, tuple[int, ...]]:
    """The view without axes along which it is constant, and the axes that remain."""
    axes = tuple(sorted({found.axis for p in node.index for found in loops_in(p)}))
    shape = tuple(node.shape[axis] for axis in axes)
    places = dict(zip(axes, positions(shape), strict=True))
    under = at(node.shape, tuple(places.get(axis, ZERO) for axis in range(len(node.shape))))
    return view(node.src, shape, under.each(node.index)), axes


def _is_given(node: Node) -> bool:
    """Whether an array is an input of a loop's body, or such an input updated in place."""
    while isinstance(node, (Scatter, Part)):
        if isinstance(node, Scatter):
            node = node.base
        elif isinstance(node.whole, Iteration) and node.number < node.whole.body.carried:
            node = node.whole.operands[node.number]
        else:
            return False
    return isinstance(node, Input) and node.uid < 0


def _sum_along(cotangent: Node, axes: Sequence[int]) -> Node:
    """The sum over all but these axes."""
    others = [axis for axis in range(len(cotangent.shape)) if axis not in axes]
    total = sum_over(cotangent, [axis for axis in others if cotangent.shape[axis] is not ONE])
    left = [axis for axis in range(len(cotangent.shape)) if axis in axes or cotangent.shape[axis] is ONE]
    shape = tuple(cotangent.shape[axis] for axis in axes)
    loops = dict(zip(axes, positions(shape), strict=True))
    return view(total, shape, tuple(loops.get(axis, ZERO) for axis in left))


def _add_through_view(
    total: Node, part: View, indices: Sequence[Node], updates: Node, clips: bool = False, unique: bool = True
) -> Node:
    """`total` with updates added through a view: at `indices` along its first axes, and everywhere along the others."""
    first, whole = len(indices), _whole_axes(part, len(indices))
    rows = part.shape[first : len(part.shape) - whole]
    given = indices[0].shape if indices else ()
    shape = (*given, *rows)
    loops = positions(shape)
    under = {axis: loops[len(given) + k] for k, axis in enumerate(range(first, first + len(rows)))}
    renamed = at(part.shape, tuple(under.get(axis, ZERO) for axis in range(len(part.shape))))
    data = [view(index, shape, loops[: len(given)]) for index in indices]
    inside = [_clipped_index(index, size, k) for k, (index, size) in enumerate(zip(data, part.shape, strict=False))]
    places: list[Node] = []
    for p, size in list(zip(part.index, part.src.shape, strict=True))[: len(part.src.shape) - whole]:
        loops_of_data = [found for found in loops_in(p) if found.axis < first]
        if not loops_of_data:
            places.append(MapReduce(shape, (), Position(renamed(p))))
        elif p.atom is loops_of_data[0] and size is loops_of_data[0].extent:
            places.append(data[loops_of_data[0].axis])
        else:
            numbers = {found: inside[found.axis] for found in loops_of_data}
            places.append(elementwise(shape, data, _formula(p, numbers, renamed)))
    return Scatter(total, tuple(places), updates, Put.ADD, clips, unique)


def _clipped_index(index: Node, size: Index, slot: int) -> Expr:
    """An index along an axis of this size, with NumPy's meaning of negative values, clipped to the axis."""
    i, zero = cast(Operand(index.dtype, slot), i64), const(0, i64)
    i = select(apply(Op.LT, i, zero), i + Position(size), i)
    return apply(Op.MAX, apply(Op.MIN, i, Position(size - 1)), zero)


def _formula(p: Index, known: Mapping[Loop, Expr], others: Substitution) -> Expr:
    """An index as an expression, in which the loops of `known` are replaced by expressions."""
    total: Expr = const(0, i64)
    for monomial, coefficient in p.terms:
        term: Expr = const(coefficient, i64)
        for atom in monomial:
            term = term * _atom(atom, known, others)
        total = total + term
    return total


def _atom(atom: Atom, known: Mapping[Loop, Expr], others: Substitution) -> Expr:
    if isinstance(atom, Loop) and atom in known:
        return known[atom]
    if isinstance(atom, FloorDiv) and any(occurs(found, atom) for found in known):
        num, den = (_formula(p, known, others) for p in (atom.num, atom.den))
        return apply(Op.FLOORDIV, num, den)
    return Position(others(of(atom)))


def _whole_axes(part: View, first: int) -> int:
    """How many last axes of the view are last axes of its source: an update covers them whole."""
    count, source = 0, part.src.shape
    most = min(len(part.shape) - first, len(source) - 1)
    while count < most:
        axis, place = len(part.shape) - 1 - count, len(source) - 1 - count
        if part.shape[axis] is not source[place] or part.index[place] is not positions(part.shape)[axis]:
            break
        count += 1
    return count


def _is_whole(part: View, first: int) -> bool:
    """Whether each of the first axes of a view is a whole axis of its source."""
    for p, size in zip(part.index, part.src.shape, strict=True):
        if any(found.axis < first and (p.atom is not found or size is not found.extent) for found in loops_in(p)):
            return False
    return True
