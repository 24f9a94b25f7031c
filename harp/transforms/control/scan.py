"""`scan`, `fori_loop`: loops whose number of iterations is known before they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from harp.errors import ArgumentError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_count, as_flag, as_integer, as_named, emit
from harp.trace.graph.node import MapReduce, positions
from harp.trace.graph.view import pad, view
from harp.trace.index.division import floordiv, maximum
from harp.trace.index.polynomial import ZERO, Index
from harp.trace.scalar.expr import Operand, Position, apply, const, select
from harp.trace.scalar.ops import Op
from harp.trace.sizes.ranges import require_int64
from harp.trace.sizes.size import Size, require_at_least_one, resolve, to_index, unify, wrap
from harp.trace.source_locations import where
from harp.trace.tracer import Traced, function_name, require_function
from harp.trace.trees import Tree, children, is_pair, unflatten
from harp.transforms.control.counted import counted
from harp.transforms.control.staging import Leaves, iterate, leaves_of, require_tree, settled, traced
from harp.transforms.staging import shape_of
from harp.transforms.typed import AnArray, Container

# Blocks of the elements of arrays, for loops over blocks of steps.
#
# In reverse mode a loop keeps the carry of each step, but of an inner loop only its arguments:
#
#     scan(f, c, xs)  ->  scan(lambda c, block: scan(f, c, block), c, blocks of xs); scan(f, c, remainder)


def in_blocks(arrays: Sequence[Array], count: Index, every: Index) -> tuple[list[Array], list[Array], Index]:
    """Blocks of elements along the first axis, of size `count`; the elements that remain, and the number of these."""
    blocks = floordiv(count, every)
    remaining = count - blocks * every
    front: list[Array] = []
    rest: list[Array] = []
    for array in arrays:
        node = node_of(array)
        shape = (blocks, every, *node.shape[1:])
        block, place, *others = positions(shape)
        front.append(emit(view(node, shape, (block * every + place, *others))))
        shape = (remaining, *node.shape[1:])
        place, *others = positions(shape)
        rest.append(emit(view(node, shape, (blocks * every + place, *others))))
    return front, rest, remaining


def joined(front: Array, rest: Array | None) -> Array:
    """The elements of blocks, and the remaining ones behind them, in one array."""
    blocks = node_of(front)
    whole = blocks.shape[0] * blocks.shape[1]
    shape = (whole, *blocks.shape[2:])
    place, *along = positions(shape)
    block = floordiv(place, blocks.shape[1])
    flat = view(blocks, shape, (block, place - block * blocks.shape[1], *along))
    if rest is None:
        return emit(flat)
    others = node_of(rest)
    remaining = others.shape[0]
    fill, none = const(0, blocks.dtype), (0,) * (len(shape) - 1)
    first, last = pad(flat, (0, *none), (remaining, *none), fill), pad(others, (whole, *none), (0, *none), fill)
    is_first = apply(Op.LT, Position(positions(first.shape)[0]), Position(whole))
    chosen = select(is_first, Operand(blocks.dtype, 0), Operand(blocks.dtype, 1))
    return emit(MapReduce(first.shape, (first, last), chosen))


Function = Callable[..., Any]


_C = TypeVar("_C")
_X = TypeVar("_X")
_Y = TypeVar("_Y")


@overload
def scan(
    f: Callable[[Array, _X], tuple[_C, _Y]],
    init: AnArray,
    xs: _X,
    length: object = None,
    reverse: bool = False,
    unroll: int = 1,
    *,
    checkpoint_every: object = None,
) -> tuple[_C, _Y]: ...


@overload
def scan(
    f: Callable[[_C, _X], tuple[_C, _Y]],
    init: _C,
    xs: _X,
    length: object = None,
    reverse: bool = False,
    unroll: int = 1,
    *,
    checkpoint_every: object = None,
) -> tuple[_C, _Y]: ...


@overload
def scan(
    f: Callable[..., tuple[_C, _Y]],
    init: AnArray | Container | None,
    xs: Container | None = None,
    length: object = None,
    reverse: bool = False,
    unroll: int = 1,
    *,
    checkpoint_every: object = None,
) -> tuple[_C, _Y]: ...


def scan(
    f: Function,
    init: Tree,
    xs: Tree = None,
    length: object = None,
    reverse: bool = False,
    unroll: int = 1,
    *,
    checkpoint_every: object = None,
) -> tuple[Any, Any]:
    """Run `f(carry, x)`, which returns `(carry, y)`, for each element x along the first axis of `xs`.

    `init` is a tree of arrays: the first carry, which keeps its tree, dtypes and shapes. `xs` is a tree of arrays whose
    first axes have the same size, or None; then `length` is the number of steps. Returns the last carry, and the tree
    of all y, stacked along a new first axis. With `reverse` the steps go from the last element to the first, and each y
    stands at the place of its element. The loop stays a loop: compiling takes as long for ten steps as for a million.
    `unroll` is JAX's, and changes nothing.

    For reverse-mode derivatives the carry of each step is kept. With `checkpoint_every=k` it is every k-th one, and the
    steps between are computed once more: n steps take memory for n/k + k carries, which is least where k is sqrt(n).
    With `checkpoint_every="log"` no more than 64 are kept, however many steps there are, and each step is computed
    again half as often as the binary logarithm of their number says.

    Raises CarryError where the carry changes, ShapeError where the sizes of `xs` differ.

    >>> import harp.numpy as hnp
    >>> last, sums = scan(lambda total, x: (total + x, total + x), 0.0, hnp.arange(1.0, 4.0))
    >>> last, sums
    (Array(6.), Array([1., 3., 6.]))
    """
    require_function("scan", f, ("carry", "x"))
    name = function_name(f)
    as_integer("unroll", unroll)
    reverse = as_flag("reverse", reverse)
    leaves = leaves_of(xs, "xs")
    count = _length(leaves, length, name)
    if checkpoint_every is None or _recomputes(checkpoint_every):
        return _scanned(f, init, leaves, count, reverse, _recomputes(checkpoint_every))
    return _scanned_in_blocks(f, init, leaves, count, _every(checkpoint_every), reverse)


def _scanned_in_blocks(
    f: Function, init: Tree, xs: Leaves, count: Index, every: Index, reverse: bool
) -> tuple[Any, Any]:
    """A scan over blocks of elements, and one over the remaining elements."""
    front, rest, remaining = in_blocks(xs.arrays, count, every)

    def block(carry: Tree, elements: Tree) -> tuple[Any, Any]:
        return _scanned(f, carry, xs._replace(arrays=leaves_of(elements, "xs").arrays), every, reverse)

    def blocks(carry: Tree) -> tuple[Any, Any]:
        return _scanned(block, carry, xs._replace(arrays=front), floordiv(count, every), reverse)

    def others(carry: Tree) -> tuple[Any, Any]:
        return _scanned(f, carry, xs._replace(arrays=rest), remaining, reverse)

    if reverse:
        carry, last = others(init)
        carry, first = blocks(carry)
    else:
        carry, first = blocks(init)
        carry, last = others(carry)
    ys, more = leaves_of(first, "y"), leaves_of(last, "y")
    return carry, unflatten(ys.treedef, [joined(a, b) for a, b in zip(ys.arrays, more.arrays, strict=True)])


def _recomputes(checkpoint_every: object) -> bool:
    """Whether states are recomputed, so that as few as possible are kept."""
    if isinstance(checkpoint_every, str) and checkpoint_every != "log":
        raise ArgumentError(f"checkpoint_every is a number of steps, or 'log', not {checkpoint_every!r}{where()}")
    return isinstance(checkpoint_every, str)


def _every(checkpoint_every: object) -> Index:
    every = as_count("checkpoint_every", checkpoint_every)
    require_at_least_one(every, lambda: "checkpoint_every is 0; it is a number of steps")
    return every


def _scanned(
    f: Function, init: Tree, xs: Leaves, count: Index, reverse: bool, recomputes: bool = False
) -> tuple[Any, Any]:
    """The scan over arrays of this length."""
    name = function_name(f)
    elements = [(f"an element of {n}", a.kind, shape_of(a)[1:]) for a, n in zip(xs.arrays, xs.names, strict=True)]

    def trace(carry: Leaves) -> Traced:
        def call(arrays: Sequence[Array]) -> Tree:
            first = 1 + len(carry.arrays)
            now, x = unflatten(carry.treedef, arrays[1:first]), unflatten(xs.treedef, arrays[first:])
            return f(now, x)

        body = traced(call, carry, elements, resolve(count), name)
        if not is_pair(body.treedef):
            raise ArgumentError(
                f"{name!r} must return a pair (carry, y), where y is what is collected, or None{where()}"
            )
        require_tree(children(body.treedef)[0], carry.treedef, name, "the carry")
        return body

    body, carry = settled(trace, leaves_of(init, "the carry"), name)
    results = iterate(body, resolve(count), carry.arrays, xs.arrays, reverse=reverse, recomputes=recomputes)
    last = unflatten(carry.treedef, results[: len(carry.arrays)])
    return last, unflatten(children(body.treedef)[1], results[len(carry.arrays) :])


def _length(xs: Leaves, length: object, name: str) -> Index:
    sizes = []
    for array, label in zip(xs.arrays, xs.names, strict=True):
        if array.ndim == 0:
            of_list = "; a list is a tree of its elements, and harp.numpy.asarray makes an array of it"
            advice = of_list if label.endswith("]") else "; for a number of steps write length=..., and None for xs"
            raise ArgumentError(f"{label} has no axis to scan along{advice}{where()}")
        sizes.append((label, shape_of(array)[0]))
    if length is not None:
        sizes.append(("length", require_int64(as_count("length", length))))
    if not sizes:
        raise ArgumentError(f"scan of {name!r} has no xs; say how often it runs with length{where()}")
    (first, size), *others = sizes
    for other, same in others:
        unify(size, same, lambda other=other: f"scan of {name!r}: {first} and {other} are of different lengths")  # type: ignore[misc]
    return resolve(size)


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Array, Array], _C],
    init_val: AnArray,
    unroll: object = None,
    *,
    checkpoint_every: object = None,
) -> _C: ...


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Array, _C], _C],
    init_val: _C,
    unroll: object = None,
    *,
    checkpoint_every: object = None,
) -> _C: ...


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[int, Array], _C],
    init_val: AnArray,
    unroll: object = None,
    *,
    checkpoint_every: object = None,
) -> _C: ...


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[int, _C], _C],
    init_val: _C,
    unroll: object = None,
    *,
    checkpoint_every: object = None,
) -> _C: ...


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[..., _C],
    init_val: Container,
    unroll: object = None,
    *,
    checkpoint_every: object = None,
) -> _C: ...


def fori_loop(
    lower: object,
    upper: object,
    body_fun: Function,
    init_val: Tree,
    unroll: object = None,
    *,
    checkpoint_every: object = None,
) -> Any:
    """`carry = body_fun(i, carry)` for i from `lower` to `upper`, which is not reached.

    The bounds are integers, sizes, or arrays of one integer, which the function may compute; then i is int64, or uint64
    if they are. Else, and where the bounds are computed of sizes and of the numbers of other loops, i is an array
    without axes, which takes the dtype of what it meets, as Python's integers do. The carry keeps its tree, dtypes and
    shapes. `unroll` is JAX's, and changes nothing. `checkpoint_every` is that of `scan`.

    >>> float(fori_loop(0, 5, lambda i, product: product * (i + 1), 1.0))
    120.0
    """
    require_function("fori_loop", body_fun, ("i", "carry"))
    if not _is_size(lower) or not _is_size(upper):
        first_and_last = (
            as_named(lower, "the lower bound of fori_loop"),
            as_named(upper, "the upper bound of fori_loop"),
        )
        return counted(*first_and_last, body_fun, init_val)
    start, end = require_int64(to_index(lower)), require_int64(to_index(upper))
    length = require_int64(maximum(resolve(end - start), ZERO))
    if checkpoint_every is None or _recomputes(checkpoint_every):
        return _counted_loop(start, length, body_fun, init_val, _recomputes(checkpoint_every))
    every = _every(checkpoint_every)
    whole = floordiv(length, every) * every

    def block(number: Array, carry: Tree) -> Any:
        before = number * wrap(every)
        return _counted_loop(start, every, lambda i, now: body_fun(before + i, now), carry)

    carry = _counted_loop(ZERO, floordiv(length, every), block, init_val)
    return _counted_loop(start + whole, length - whole, body_fun, carry)


def _counted_loop(start: Index, length: Index, body_fun: Function, init_val: Tree, recomputes: bool = False) -> Any:
    """The loop of this many steps, whose first one has the number `start`."""
    name = function_name(body_fun)
    first = as_array(wrap(start))

    def trace(carry: Leaves) -> Traced:
        def call(arrays: Sequence[Array]) -> Tree:
            i = arrays[0] if start is ZERO else arrays[0] + first
            return body_fun(i, unflatten(carry.treedef, arrays[1:]))

        body = traced(call, carry, (), length, name)
        require_tree(body.treedef, carry.treedef, name, "the carry")
        return body

    body, carry = settled(trace, leaves_of(init_val, "the carry"), name)
    return unflatten(carry.treedef, iterate(body, length, carry.arrays, recomputes=recomputes))


def _is_size(bound: object) -> bool:
    return isinstance(bound, (int, np.integer, Size))
