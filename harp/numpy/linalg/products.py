"""Sums of products: matmul, dot, tensordot, einsum. Each is one map, reduced at once, over views of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from functools import reduce as fold

from harp.errors import ArgumentError, ShapeError
from harp.numpy.complexes import conj
from harp.numpy.manipulation import ravel
from harp.numpy.reductions import sum as sum_
from harp.trace import direct, view
from harp.trace.arithmetic import in_common, multiply
from harp.trace.array import OPERATORS, Array, from_numpy, node_of
from harp.trace.division import minimum, relu
from harp.trace.dtypes import Buffer, bool_
from harp.trace.expr import Expr, Operand, apply
from harp.trace.index import Index
from harp.trace.levels import current
from harp.trace.node import Constant, Node, Shape, positions
from harp.trace.ops import Op, Reduce
from harp.trace.primitives import (
    as_array,
    as_integer,
    broadcast_shapes,
    common_dtype,
    emit,
    expand_to,
    join_sizes,
    map_reduce,
    normalize_axis,
)
from harp.trace.sites import where
from harp.trace.sizes import resolve, resolve_all, unify, wrap

Labels = tuple[str, ...]


def contract(nodes: Sequence[Node], labels: Sequence[Labels], sizes: dict[str, Index], out: Labels) -> Array:
    """The sum of products over all labels that are not in `out`; for bool, any of `and`. Dtypes agree."""
    summed = tuple(dict.fromkeys(name for each in labels for name in each if name not in out))
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
        result = direct.aligned(expr, operands, numbers, reduce if axes else None, axes)
        if result is not None:
            return from_numpy(result)
    aligned = [_align(node, each, order, domain) for node, each in zip(nodes, labels, strict=True)]
    if len(aligned) == 1 and not summed:
        return emit(aligned[0])
    return map_reduce(build, aligned, domain, reduce, axes)


def _aligned(node: Node, labels: Labels, order: Labels) -> Buffer:
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


def promoted(values: Sequence[object]) -> list[Array]:
    """The operands as arrays of their common dtype."""
    arrays = [as_array(v) for v in values]
    dtype, _ = common_dtype(arrays)
    return [in_common(a, dtype) for a in arrays]


def matmul(a: object, b: object) -> Array:
    """The matrix product over the last axis of `a` and the last but one of `b`; axes in front broadcast.

    An operand with one axis is a row (left) or a column (right), and its axis is not in the result. For bool it is
    `any` of `and`. Raises ShapeError for operands without axes and for sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> hnp.matmul(hnp.ones((2, 3)), hnp.ones(3))
    Array([3., 3.])
    """
    left, right = promoted((a, b))
    if left.ndim == 0 or right.ndim == 0:
        raise ShapeError(f"matmul needs arrays with axes; for a number, multiply with *{where()}")
    x, y = node_of(left), node_of(right)
    inner = unify(
        x.shape[-1],
        y.shape[-2] if right.ndim > 1 else y.shape[-1],
        lambda: f"matmul: axis {left.ndim - 1} of the first operand and axis {max(right.ndim - 2, 0)} of the second",
    )
    batch = broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    names = tuple(f"batch{k}" for k in range(len(batch)))
    rows, columns = (("rows",) if left.ndim > 1 else ()), (("columns",) if right.ndim > 1 else ())
    sizes = dict(zip(names, batch, strict=True)) | {"inner": inner}
    if rows:
        sizes["rows"] = x.shape[-2]
    if columns:
        sizes["columns"] = y.shape[-1]
    of_left = (*names[len(names) - max(left.ndim - 2, 0) :], *rows, "inner")
    of_right = (*names[len(names) - max(right.ndim - 2, 0) :], "inner", *columns)
    return contract((x, y), (of_left, of_right), sizes, (*names, *rows, *columns))


def tensordot(a: object, b: object, axes: object = 2) -> Array:
    """The sum of products over pairs of axes: the last `axes` of `a` and the first of `b`, or two lists of axes.

    Raises ShapeError for sizes that do not fit, AxisError for axes that are not there.
    """
    left, right = promoted((a, b))
    if isinstance(axes, (tuple, list)):
        pairs = [tuple(e) if isinstance(e, (tuple, list)) else (e,) for e in axes]
        if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
            raise ShapeError(f"tensordot takes two lists of as many axes, not {axes}{where()}")
        of_left = [normalize_axis(k, left.ndim) for k in pairs[0]]
        of_right = [normalize_axis(k, right.ndim) for k in pairs[1]]
    else:
        count = as_integer("axes of tensordot", axes)
        if not 0 <= count <= min(left.ndim, right.ndim):
            raise ShapeError(f"tensordot over {count} axes of arrays with {left.ndim} and {right.ndim} axes{where()}")
        of_left, of_right = list(range(left.ndim - count, left.ndim)), list(range(count))
    x, y = node_of(left), node_of(right)
    names_left = [f"left{k}" for k in range(left.ndim)]
    names_right = [f"right{k}" for k in range(right.ndim)]
    sizes: dict[str, Index] = {}
    for p, q in zip(of_left, of_right, strict=True):
        names_right[q] = names_left[p]
        sizes[names_left[p]] = unify(
            x.shape[p],
            y.shape[q],
            lambda p=p, q=q: f"tensordot: axis {p} of the first operand and axis {q} of the second",  # type: ignore[misc]
        )
    out = [n for k, n in enumerate(names_left) if k not in of_left]
    out += [n for k, n in enumerate(names_right) if k not in of_right]
    for names, node in ((names_left, x), (names_right, y)):
        for name, size in zip(names, node.shape, strict=True):
            sizes.setdefault(name, size)
    return contract((x, y), (tuple(names_left), tuple(names_right)), sizes, tuple(out))


def dot(a: object, b: object) -> Array:
    """The product of numbers, vectors or matrices: over the last axis of `a` and the last but one of `b`."""
    left, right = as_array(a), as_array(b)
    if left.ndim == 0 or right.ndim == 0:
        return multiply(left, right)
    return tensordot(left, right, ([left.ndim - 1], [max(right.ndim - 2, 0)]))


def inner(a: object, b: object) -> Array:
    """The sum of products over the last axes."""
    left, right = as_array(a), as_array(b)
    if left.ndim == 0 or right.ndim == 0:
        return multiply(left, right)
    return tensordot(left, right, ([left.ndim - 1], [right.ndim - 1]))


def vdot(a: object, b: object) -> Array:
    """The sum of products of all elements, flattened; of complex numbers, with the conjugate of `a`."""
    return dot(ravel(conj(a)), ravel(b))


def outer(a: object, b: object) -> Array:
    """All products of an element of `a` and one of `b`, both flattened: a matrix."""
    return tensordot(ravel(a), ravel(b), 0)


def diagonal(x: object, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis; `offset` counts from the main one along `axis2`."""
    array = as_array(x)
    first, second = normalize_axis(axis1, array.ndim), normalize_axis(axis2, array.ndim)
    if first == second:
        raise ShapeError(f"diagonal needs two different axes{where()}")
    node = node_of(array)
    shape = resolve_all(node.shape)
    down, right = max(-offset, 0), max(offset, 0)
    length = relu(minimum(shape[first] - down, shape[second] - right))
    kept = [k for k in range(array.ndim) if k not in (first, second)]
    result = (*(shape[k] for k in kept), length)
    loops = positions(result)
    index = {k: loops[place] for place, k in enumerate(kept)} | {first: loops[-1] + down, second: loops[-1] + right}
    return emit(view.view(node, result, tuple(index[k] for k in range(array.ndim))), array.weak)


def trace(x: object, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The sum of the diagonal of two axes."""
    return sum_(diagonal(x, offset, axis1, axis2), -1)


def einsum(subscripts: str, *operands: object) -> Array:
    """Einstein summation, by NumPy's notation: explicit or implicit output, `...`, and repeated labels as diagonals.

    Operands are multiplied in pairs from left to right, and broadcast where one of them has one element along a label.
    Raises ArgumentError for subscripts that make no sense,
    ShapeError for sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> hnp.einsum("ij,j->i", hnp.ones((2, 3)), hnp.ones(3))
    Array([3., 3.])
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(
            f"einsum takes subscripts such as 'ij,jk->ik' first, not a {type(subscripts).__name__}{where()}"
        )
    if not operands:
        raise ArgumentError(f"einsum needs at least one operand{where()}")
    arrays = promoted(operands)
    labels, out = _parse(subscripts, [a.ndim for a in arrays])
    nodes = [node_of(a) for a in arrays]
    sizes = _label_sizes(labels, nodes, subscripts)
    terms = [_take_diagonals(node, each, sizes) for node, each in zip(nodes, labels, strict=True)]
    while len(terms) > 2:
        later = {name for _, each in terms[2:] for name in each}
        terms = [_multiply(terms[:2], sizes, later, out), *terms[2:]]
    if len(terms) == 2:
        terms = [_sum_alone(terms, k, sizes, out) for k in range(2)]
    return contract([node for node, _ in terms], [each for _, each in terms], sizes, out)


Term = tuple[Node, Labels]


def _multiply(pair: Sequence[Term], sizes: dict[str, Index], later: set[str], out: Labels) -> Term:
    kept = tuple(dict.fromkeys(name for _, each in pair for name in each if name in later or name in out))
    pair = [_sum_alone(pair, k, sizes, kept) for k in range(2)]
    result = contract([node for node, _ in pair], [each for _, each in pair], sizes, kept)
    return node_of(result), kept


def _sum_alone(pair: Sequence[Term], k: int, sizes: dict[str, Index], out: Labels) -> Term:
    """A factor with the labels summed that only it has: before the product, which is then smaller."""
    node, labels = pair[k]
    kept = tuple(name for name in labels if name in out or name in pair[1 - k][1])
    return (node, labels) if kept == labels else (node_of(contract([node], [labels], sizes, kept)), kept)


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(f"einsum {subscripts!r} has {len(terms)} terms for {len(ranks)} operands{where()}")
    labels = [_expand(term, rank, subscripts) for term, rank in zip(terms, ranks, strict=True)]
    dots = sorted({n for each in labels for n in each if n.startswith(".")}, key=lambda n: -int(n[1:]))
    if not arrow:
        counts = [n for each in labels for n in each]
        return labels, (*dots, *sorted(n for n in set(counts) if counts.count(n) == 1 and not n.startswith(".")))
    head, ellipsis, tail = right.partition("...")
    out = (*head, *(dots if ellipsis else ()), *tail)
    known = {n for each in labels for n in each}
    if len(set(out)) != len(out) or not set(out) <= known or (dots and not ellipsis):
        raise ArgumentError(
            f"einsum {subscripts!r}: the output has labels of the inputs, each once, and `...` if they do{where()}"
        )
    return labels, out


def _expand(term: str, rank: int, subscripts: str) -> Labels:
    """The labels of a term; the axes of `...` are numbered from the right, where they align."""
    head, ellipsis, tail = term.partition("...")
    free = rank - len(head) - len(tail)
    if any(not c.isalpha() for c in head + tail) or free < 0 or (free and not ellipsis):
        raise ArgumentError(f"einsum {subscripts!r}: {term!r} does not fit an operand with {rank} axes{where()}")
    return (*head, *(f".{k}" for k in range(free, 0, -1)), *tail)


def _label_sizes(labels: Sequence[Labels], nodes: Sequence[Node], subscripts: str) -> dict[str, Index]:
    """The size of each label: operands broadcast along all of them, but a diagonal has its sizes equal."""
    sizes: dict[str, Index] = {}
    for each, node in zip(labels, nodes, strict=True):
        own: dict[str, Index] = {}
        for name, size in zip(each, node.shape, strict=True):
            own[name] = unify(own.get(name, size), size, partial(_mismatch, subscripts, name))
        for name, size in own.items():
            sizes[name] = join_sizes(sizes.get(name, size), size, partial(_mismatch, subscripts, name))
    return sizes


def _mismatch(subscripts: str, name: str) -> str:
    return f"einsum {subscripts!r}: sizes of {'`...`' if name.startswith('.') else f'label {name!r}'}"


def _take_diagonals(node: Node, labels: Labels, sizes: dict[str, Index]) -> Term:
    unique = tuple(dict.fromkeys(labels))
    if len(unique) == len(labels):
        return node, labels
    shape = tuple(resolve(node.shape[labels.index(name)]) for name in unique)
    loops = dict(zip(unique, positions(shape), strict=True))
    return view.view(node, shape, tuple(loops[name] for name in labels)), unique


OPERATORS.update(matmul=matmul, dot=dot)
