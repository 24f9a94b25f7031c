"""The product of two arrays with labelled axes, summed over labels: a product of matrices wherever it is one.

    a[batch..., m..., k...], b[batch..., k..., n...]  ->  out[batch..., m..., n...]      summed over k...

Several summed axes become one, in the same order on both sides. That costs nothing where they lie one after the other
in memory in an operand, whatever its layout; an operand where they do not is copied, if the product reads each of its
elements many times. The same holds for an operand whose innermost axis is of the batch, for backends sum along
neighbouring rows, columns or summed elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce as fold
from itertools import pairwise
from typing import NamedTuple

from harp.numpy.linalg.order import Labels
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import contiguous, emit, expand_to, map_reduce
from harp.trace.eval import eager
from harp.trace.graph import view
from harp.trace.graph.node import Constant, Node, View, positions
from harp.trace.index.polynomial import Index, Loop, Shape, product, split_linear
from harp.trace.scalar.dtypes import NDArray, bool_
from harp.trace.scalar.expr import Expr, Operand, apply
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import hint, resolve, wrap

Sizes = Mapping[str, Index]

# An operand is copied if the other one reads each of its elements at least so often.
_OFTEN = 9


class Term(NamedTuple):
    """An array and the labels of its axes, which differ."""

    node: Node
    labels: Labels


def contract(nodes: Sequence[Node], labels: Sequence[Labels], sizes: Sizes, out: Labels, first: Labels = ()) -> Array:
    """The sum of products over all labels that are not in `out`, over those in `first` from the outside in; for bool,
    any of `and`. Dtypes agree."""
    summed = tuple(dict.fromkeys(name for each in (first, *labels) for name in each if name not in out))
    order = (*out, *summed)
    domain = tuple(resolve(sizes[name]) for name in order)
    is_bool = nodes[0].dtype is bool_
    reduce = Reduce.MAX if is_bool else Reduce.SUM
    axes = tuple(range(len(out), len(order)))

    def build(*factors: Expr) -> Expr:
        return fold(lambda a, b: apply(Op.AND if is_bool else Op.MUL, a, b), factors)

    if current() is None and all(isinstance(node, Constant) for node in nodes):
        operands = [_aligned(node, each, order) for node, each in zip(nodes, labels, strict=True)]
        expr = build(*(Operand(node.dtype, slot) for slot, node in enumerate(nodes)))
        numbers = tuple(int(wrap(size)) for size in domain)
        result = eager.aligned(expr, operands, numbers, reduce if axes else None, axes)
        if result is not None:
            return from_numpy(result)
    aligned = [_align(node, each, order, domain) for node, each in zip(nodes, labels, strict=True)]
    if len(aligned) == 1 and not summed:
        return emit(aligned[0])
    return map_reduce(build, aligned, domain, reduce, axes)


def _aligned(node: Node, labels: Labels, order: Labels) -> NDArray:
    """What `_align` is of numbers: a view of them, not yet repeated along the labels that it lacks."""
    assert isinstance(node, Constant)
    value = node.captured.array.transpose(sorted(range(len(labels)), key=lambda k: order.index(labels[k])))
    return value[tuple(slice(None) if name in labels else None for name in order)]


def _align(node: Node, labels: Labels, order: Labels, domain: Shape) -> Node:
    """A node as a view over the whole domain: its axes in order, and repeated along the labels that it lacks."""
    places = sorted(range(len(labels)), key=lambda k: order.index(labels[k]))
    if places != list(range(len(labels))):
        node = view.permute(node, places)
    missing = [k for k, name in enumerate(order) if name not in labels]
    if missing:
        node = view.insert_axes(node, missing)
    return expand_to(node, domain)


def multiply_pair(x: Term, y: Term, sizes: Sizes, out: Labels) -> Term:
    """The product of two arrays, summed over their labels that are not in `out`; its axes are in the order of `out`
    or in one that is faster to compute.

    No number depends on the order of axes, except that of the terms of a sum.
    """
    summed = tuple(name for name in x.labels if name in y.labels and name not in out)
    if current() is not None and summed:
        if _is_often(x, y, sizes) and _is_often(y, x, sizes):
            return _matrices(x, y, summed, sizes, out)
        x, y = _vector(x, y, summed, sizes), _vector(y, x, summed, sizes)
    return _contracted(x, y, sizes, out)


def _contracted(x: Term, y: Term, sizes: Sizes, out: Labels) -> Term:
    return Term(node_of(contract((x.node, y.node), (x.labels, y.labels), sizes, out)), out)


def in_order(term: Term, labels: Labels) -> Node:
    """The array with its axes in this order."""
    return term.node if term.labels == labels else view.permute(term.node, [term.labels.index(n) for n in labels])


def _free(x: Term, y: Term) -> Labels:
    return tuple(name for name in x.labels if name not in y.labels)


def _is_often(x: Term, y: Term, sizes: Sizes) -> bool:
    """Whether a product with `x` reads each element of `y` often."""
    return _are_many(_free(x, y), sizes)


def _are_many(labels: Labels, sizes: Sizes) -> bool:
    count = product(resolve(sizes[name]) for name in labels).constant
    return bool(labels) and (count is None or count >= _OFTEN)


def _matrices(x: Term, y: Term, summed: Labels, sizes: Sizes, out: Labels) -> Term:
    """A product of matrices: with one summed axis and, where that takes no copy, one of rows and one of columns.

    So the products of its derivatives have one summed axis, too.
    """
    batch = tuple(name for name in out if name in x.labels and name in y.labels)
    last = out[-1]
    if last in batch:
        out = (*batch, *(name for name in out if name not in batch))
    x, y, summed = _laid_out(x, y, summed, sizes, out)
    free = [tuple(name for name in memory_order(a) if name not in b.labels) for a, b in ((x, y), (y, x))]
    single = [_is_one_axis(term, each) for term, each in zip((x, y), free, strict=True)]
    groups = [each for each, one in zip(free, single, strict=True) if one and len(each) > 1]
    if not _are_many(summed, sizes):
        groups = []
    computed = out
    if groups:
        rows, columns = free if out[-1] in y.labels else reversed(free)
        computed = (*batch, *rows, *columns)
    for group in (*groups, *([summed] if len(summed) > 1 else ())):
        sizes = {**sizes, _name(group): product(resolve(sizes[name]) for name in group)}
        x, y = (_merge(term, group) if group[0] in term.labels else term for term in (x, y))
    labels = computed
    for group in groups:
        place = labels.index(group[0])
        labels = (*labels[:place], _name(group), *labels[place + len(group) :])
    node = _contracted(x, y, sizes, labels).node
    if last in batch:  # or it would be computed where its axes are put in order, one element of the batch by another
        node = node_of(contiguous(emit(node)))
    return Term(view.reshape(node, tuple(resolve(sizes[n]) for n in computed)) if groups else node, computed)


def _laid_out(x: Term, y: Term, summed: Labels, sizes: Sizes, out: Labels) -> tuple[Term, Term, Labels]:
    """The operands, copied where need be, and the summed axes in the order in which they lie in memory in both.

    Of the orders in which they lie in either operand, the one that copies fewer elements is taken.
    """
    batch = tuple(name for name in out if name in x.labels and name in y.labels)
    orders = [tuple(name for name in memory_order(term) if name in summed) for term in (x, y)]
    copied = [[_is_scattered(term, batch, order) for term in (x, y)] for order in orders]
    elements = [sum(_estimate(t.labels, sizes) for t, c in zip((x, y), each, strict=True) if c) for each in copied]
    best = 1 if elements[1] < elements[0] else 0
    terms = zip((x, y), copied[best], strict=True)
    x, y = (_copy(term, batch, orders[best], out) if is_copied else term for term, is_copied in terms)
    return x, y, orders[best]


def _vector(x: Term, y: Term, summed: Labels, sizes: Sizes) -> Term:
    """A vector whose axes lie in memory in the order of those of the matrix, along which both are read."""
    memory = memory_order(y)
    wanted = tuple(name for name in memory if name in summed)
    own = tuple(name for name in memory_order(x) if name in summed)
    if not _is_often(y, x, sizes) or memory[-1] not in summed or own == wanted:
        return x
    return _copy(x, tuple(name for name in x.labels if name not in summed), wanted, ())


def _estimate(labels: Labels, sizes: Sizes) -> int:
    return fold(lambda a, b: a * b, (hint(sizes[name]) or 1 for name in labels), 1)


def memory_order(term: Term) -> Labels:
    """The labels from the outermost axis in memory to the innermost, as far as the view at hand tells."""
    if not isinstance(term.node, View):
        return term.labels
    axes = [p.atom.axis for p in term.node.index if isinstance(p.atom, Loop)]
    moved = [term.labels[axis] for axis in dict.fromkeys(axes)]
    return (*(name for name in term.labels if name not in moved), *moved)


def _is_scattered(term: Term, batch: Labels, summed: Labels) -> bool:
    """Whether no row or column of the operand lies in memory, or its summed axes are not one there."""
    return memory_order(term)[-1] in batch or not _is_one_axis(term, summed)


def _is_one_axis(term: Term, labels: Labels) -> bool:
    """Whether a step along each of the axes is as long as all steps along the next."""
    node = term.node
    if len(labels) == 1 or (isinstance(node, View) and node.conditions):  # these are computed into a copy anyway
        return True
    source, index = (node.src.shape, node.index) if isinstance(node, View) else (node.shape, positions(node.shape))
    at = view.flatten_index(index, source)
    steps = []
    for name in labels:
        axis = term.labels.index(name)
        atom = positions(node.shape)[axis].atom
        if atom is None:  # one element
            continue
        split = split_linear(at, atom)
        if split is None:
            return False
        steps.append((split[0], resolve(node.shape[axis])))
    return all(resolve(outer) is resolve(inner * size) for (outer, _), (inner, size) in pairwise(steps))


def _copy(term: Term, batch: Labels, summed: Labels, out: Labels) -> Term:
    """In memory of its own: the batch, then rows and summed axes, or summed axes and columns."""
    free = tuple(name for name in out if name in term.labels and name not in batch)
    inner = (*summed, *free) if out and out[-1] in free else (*free, *summed)
    labels = (*(name for name in batch if name in term.labels), *inner)
    return Term(node_of(contiguous(emit(in_order(term, labels)))), labels)


def _merge(term: Term, group: Labels) -> Term:
    """Some axes as one axis, the last."""
    kept = tuple(name for name in term.labels if name not in group)
    node = in_order(term, (*kept, *group))
    shape = tuple(map(resolve, node.shape))
    merged = (*shape[: len(kept)], product(shape[len(kept) :]))
    return Term(view.reshape(node, merged), (*kept, _name(group)))


def _name(group: Labels) -> str:
    return "*".join(group)
