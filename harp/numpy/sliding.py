"""Windows that slide along axes, as views: element i of window y is where `stride*y + dilation*i - low` points.

Convolutions, pools, filters and `unfold` are sums, products or extrema over the axes of windows. No buffer is made of
what the windows show, and derivatives are views of cotangents, and sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import attrs

from harp.errors import ArgumentError, ShapeError
from harp.numpy.checks import as_count
from harp.numpy.linalg.order import Labels
from harp.numpy.linalg.pairs import contract
from harp.trace.array.array import Array, node_of
from harp.trace.array.indexing import integer
from harp.trace.array.primitives import as_tuple, emit, map_reduce
from harp.trace.graph.node import MapReduce, Node, View, positions
from harp.trace.graph.view import flatten_index, view
from harp.trace.index.division import ceildiv, floordiv, relu
from harp.trace.index.polynomial import ONE, ZERO, Index, Shape, product
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Const, Expr, Position, apply, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, describe, hint, resolve, unify
from harp.trace.source_locations import plural, where
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.autodiff.view_rules import view_adjoint

Padding = object  # a name, or a pair for each axis


@attrs.frozen
class Window:
    """How windows lie along an axis: the number of their elements, the distance from one to the next, that between
    their elements, how much is before the axis and behind it, and the distance between the elements of the axis."""

    size: Index
    stride: Index = ONE
    dilation: Index = ONE
    low: Index = ZERO
    high: Index = ZERO
    base: Index = ONE

    def count(self, size: Index) -> Index:
        """How many windows there are along an axis of this size. Where the size of the window is a symbol, whether one
        fits is a guard, for expressions are simpler then."""
        room = spread(size, self.base) + self.low + self.high - spread(self.size, self.dilation)
        if self.size.constant is None and hint(room) is not None:
            fits = ask(Relation.NONNEGATIVE, resolve(room), "a window fits into the axis")
            return resolve(floordiv(room, self.stride) + 1) if fits else ZERO
        return resolve(floordiv(relu(room + self.stride), self.stride))


def spread(size: Index, dilation: Index) -> Index:
    """How much an axis or a window covers, whose elements are so far apart."""
    return relu((size - 1) * dilation + 1)


@attrs.frozen
class Plan:
    """The windows along some axes of an array, in their order."""

    axes: tuple[int, ...]
    windows: tuple[Window, ...]

    def view(self, node: Node, fill: Const) -> Node:
        """All windows: their numbers in place of the axes, and their own axes behind all others; `fill` is what is
        before, behind and between the elements."""
        shape = [resolve(size) for size in node.shape]
        for axis, window in zip(self.axes, self.windows, strict=True):
            shape[axis] = window.count(shape[axis])
        rank = len(shape)
        shape += [resolve(window.size) for window in self.windows]
        loops = positions(tuple(shape))
        index, conditions = [*loops[:rank]], list[Index]()
        for axis, inner, w in zip(self.axes, loops[rank:], self.windows, strict=True):
            place = loops[axis] * w.stride + inner * w.dilation - w.low
            index[axis] = floordiv(place, w.base)
            conditions += [place, index[axis] * w.base - place]
            if w.high is not ZERO or w.low is not ZERO:
                conditions.append((resolve(node.shape[axis]) - 1) * w.base - place)
        return view(node, tuple(shape), tuple(index), tuple(conditions), fill)


def padded(size: Index, window: Window, padding: str) -> Window:
    """With what "same", "same_lower" or "valid" puts round an axis of this size: as many windows as elements, over the
    stride, and of an odd number of places the last one is behind, or before; or nothing."""
    name = padding.lower()
    if name not in ("same", "same_lower", "valid"):
        raise ArgumentError(f"padding is 'same', 'same_lower', 'valid' or pairs of numbers, not {padding!r}{where()}")
    if name == "valid":
        return window
    total = relu((ceildiv(size, window.stride) - 1) * window.stride + spread(window.size, window.dilation) - size)
    less = floordiv(total, 2)
    low, high = (less, total - less) if name == "same" else (total - less, less)
    return attrs.evolve(window, low=resolve(low), high=resolve(high))


def plan(
    shape: Shape,
    axes: Sequence[int],
    sizes: Sequence[Index],
    strides: object = None,
    padding: Padding = "valid",
    dilations: object = None,
    bases: object = None,
) -> Plan:
    """Windows of these sizes along these axes. Strides and dilations are one number or one for each axis; the padding
    is a name, a number, one for each axis, or a pair (before, behind) for each.

    Raises ShapeError for another number of them and strides below 1, ArgumentError for other names and no numbers.
    """
    by_axis = [
        each_of(name, given, len(axes), 1)
        for name, given in (
            ("the strides", strides),
            ("the dilation of windows", dilations),
            ("the dilation of the array", bases),
        )
    ]
    windows = [Window(resolve(n), s, d, base=b) for n, s, d, b in zip(sizes, *by_axis, strict=True)]
    if isinstance(padding, str):
        windows = [padded(resolve(shape[axis]), w, padding) for axis, w in zip(axes, windows, strict=True)]
    else:
        pairs = pairs_of(padding, len(axes))
        windows = [attrs.evolve(w, low=low, high=high) for w, (low, high) in zip(windows, pairs, strict=True)]
    return Plan(tuple(axes), tuple(windows))


def each_of(name: str, given: object, count: int, least: int = 0) -> list[Index]:
    """A number for each axis; None is 1, and one number stands for all."""
    values = as_tuple(1 if given is None else given)
    values = values * count if len(values) == 1 and not isinstance(given, (tuple, list)) else values
    if len(values) != count:
        raise ShapeError(f"{name}: {plural(len(values), 'numbers')} for {plural(count, 'axes')}{where()}")
    return [as_count(name, value, least) for value in values]


def pairs_of(padding: object, count: int) -> list[tuple[Index, Index]]:
    """What is before and behind each axis."""
    given = as_tuple(padding)
    given = given * count if not isinstance(padding, (tuple, list)) else given
    pairs = [tuple(pair) if isinstance(pair, (tuple, list)) else (pair, pair) for pair in given]
    if len(pairs) != count or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(
            f"padding is a pair (before, behind) for each of {plural(count, 'axes')}, not {padding!r}{where()}"
        )
    return [(integer(low), integer(high)) for low, high in pairs]


def _no_fit(is_kernel: bool, axis: int) -> str:
    which = "the kernel" if is_kernel else "the array"
    return f"axis {axis} of {which} in a convolution (the array has as many channels as the kernel, times groups)"


def correlate_windows(x: Array, w: Array, windows: Plan, labels: tuple[Labels, Labels], out: Labels) -> Array:
    """The sums over all labels that are not in `out` of products of windows of `x` and elements of `w`.

    The axes of `x` along which windows lie have labels of the numbers of windows; their own axes are labelled "i0",
    "i1" and so on in `w`. Outside of `x` there are zeros. Dtypes agree.
    """
    shown = windows.view(node_of(x), const(0, x.kind))
    inner = tuple(f"i{k}" for k in range(len(windows.axes)))
    terms = [(shown, (*labels[0], *inner)), (node_of(w), labels[1])]
    sizes: dict[str, Index] = {}
    for node, names in terms:
        for axis, (name, size) in enumerate(zip(names, node.shape, strict=True)):
            known = sizes.setdefault(name, resolve(size))
            sizes[name] = unify(known, size, partial(_no_fit, node is not shown, axis))
    spreads = any(window.base is not ONE for window in windows.windows) and x.kind is not bool_
    if spreads and all(map(_is_spread_only, windows.windows)):
        return _spread_products(x, w, windows, labels, out, sizes)
    inner_of = dict(zip(windows.axes, inner, strict=True))
    along = tuple(inner_of.get(axis, name) for axis, name in enumerate(labels[0]))  # as they lie in memory
    return contract([node_of(emit(shown)), node_of(w)], [names for _, names in terms], sizes, out, along)


def _is_spread_only(window: Window) -> bool:
    """Whether windows of an array with zeros between its elements lie everywhere, as in a transposed convolution."""
    return window.stride is ONE and window.dilation is ONE and window.base.constant is not None


def _spread_products(
    x: Array, w: Array, windows: Plan, labels: tuple[Labels, Labels], out: Labels, sizes: dict[str, Index]
) -> Array:
    """`correlate_windows` without the zeros: element z of the array and i of the window are added at base*z - i + low,
    in the gather form that the adjoint of windows with a stride has."""
    names = [labels[0][axis] for axis in windows.axes]
    inner = tuple(f"i{k}" for k in range(len(names)))
    shape = tuple(sizes[name] for name in out)
    before = {name: resolve(node_of(x).shape[axis]) for name, axis in zip(names, windows.axes, strict=True)}
    products = node_of(contract([node_of(x), node_of(w)], labels, {**sizes, **before}, (*out, *inner)))
    loops = positions(products.shape)
    index, conditions = [*loops[: len(out)]], list[Index]()
    for name, i, window in zip(names, loops[len(out) :], windows.windows, strict=True):
        place = window.base * loops[out.index(name)] - i + window.low
        index[out.index(name)] = place
        conditions += [place, sizes[name] - 1 - place]
    zero = const(0, x.kind)
    added = View(MapReduce(shape, (), zero), products.shape, tuple(index), tuple(conditions), zero)
    return emit(view_adjoint(added, products))


def pooled(x: Array, windows: Plan, reduce: Reduce, fill: Const) -> Array:
    """A reduction over each window; outside of `x` is `fill`. The derivative of an extremum is that of the first
    element of the window that is it."""
    if reduce in (Reduce.MAX, Reduce.MIN) and x.kind.is_inexact:
        return _extreme(x, windows, reduce, fill)  # type: ignore[no-any-return]
    return _reduced(x, windows, reduce, fill)


def _reduced(x: Array, windows: Plan, reduce: Reduce, fill: Const) -> Array:
    node = node_of(emit(windows.view(node_of(x), fill)))
    inner = range(len(node.shape) - len(windows.axes), len(node.shape))
    return map_reduce(lambda e: e, [node], node.shape, reduce, inner)


@partial(custom_jvp, nondiff_argnums=(1, 2, 3))
def _extreme(x: Array, windows: Plan, reduce: Reduce, fill: Const) -> Array:
    return _reduced(x, windows, reduce, fill)


@_extreme.defjvp
def _extreme_tangent(
    windows: Plan, reduce: Reduce, fill: Const, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    """The sum over a window of the tangents of the one element at the least place where the extremum is."""
    (x,), (tangent,) = primals, tangents
    value = _extreme(x, windows, reduce, fill)
    shown = node_of(emit(windows.view(node_of(x), fill)))
    moved = node_of(emit(windows.view(node_of(tangent), const(0, tangent.kind))))
    domain = shown.shape
    outer, inner = positions(domain)[: value.ndim], range(value.ndim, len(domain))
    place = Position(flatten_index(positions(domain)[value.ndim :], domain[value.ndim :]))
    behind = Position(product(domain[value.ndim :]))

    def spread_out(array: Array) -> Node:
        return view(node_of(array), domain, outer)

    def where_equal(e: Expr, extreme: Expr) -> Expr:
        nan = ~apply(Op.EQ, e, e) & ~apply(Op.EQ, extreme, extreme)
        return select(apply(Op.EQ, e, extreme) | nan, place, behind)

    first = map_reduce(where_equal, [shown, spread_out(value)], domain, Reduce.MIN, inner)

    def chosen(number: Expr, t: Expr) -> Expr:
        return select(apply(Op.EQ, number, place), t, const(0, t.dtype))

    return value, map_reduce(chosen, [spread_out(first), moved], domain, Reduce.SUM, inner)


def require_fits(windows: Plan, array: Array) -> None:
    """Raise ShapeError where an axis is shorter than a window."""
    for axis, window in zip(windows.axes, windows.windows, strict=True):
        size = resolve(node_of(array).shape[axis])
        if not ask(Relation.NONNEGATIVE, size - window.size, "a window fits into the axis"):
            raise ShapeError(
                f"a window of {describe(window.size)} is longer than axis {axis} of {describe(size)}{where()}"
            )
