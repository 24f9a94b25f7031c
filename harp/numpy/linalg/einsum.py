"""Einstein summation: subscripts, diagonals, and products of pairs in the order with the fewest operations."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from harp.errors import ArgumentError, ConcretizationError, ShapeError
from harp.numpy.linalg.order import Labels, Order, Orders, numbers
from harp.numpy.linalg.pairs import Sizes, Term, contract, multiply_pair
from harp.numpy.linalg.products import preferred, promoted
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, join_sizes, map_
from harp.trace.graph import view
from harp.trace.graph.node import Node, positions
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ZERO, Index, product
from harp.trace.scalar.dtypes import DTypeLike
from harp.trace.scalar.expr import Position, const, overwritten
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import is_one, resolve, unify
from harp.trace.source_locations import plural, where

_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # in the order of their codes
# What `optimize` chooses: the order for so many operands.
_ORDERS: dict[object, Callable[[Orders], Order]] = {
    True: Orders.best,
    "auto": Orders.best,
    "optimal": Orders.optimal,
    "greedy": Orders.greedy,
    False: Orders.written,
}


def einsum(
    subscripts: object,
    *operands: object,
    optimize: bool | str = True,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Einstein summation, by NumPy's notation: explicit or implicit output, `...`, and repeated labels as diagonals.

    In place of a string each operand may be followed by a list of its labels, integers below 52 and `...`, and the last
    one by that of the output: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Operands are multiplied in pairs, in the order with the fewest operations: `optimize=False` asks for that of the
    subscripts instead, "greedy" and "optimal" for the search that NumPy calls so. What only one operand has is summed
    first, and operands broadcast where they have one element along a label. Sums of floats in another order differ in
    their last bits. One program uses one order: a row of a batch has the same bits in batches of all sizes.

    `precision` and `preferred_element_type` are those of `matmul`.

    Raises ArgumentError for subscripts that make no sense and for other values of `optimize`, ShapeError for ranks
    and sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> hnp.einsum("ij,j->i", hnp.ones((2, 3)), hnp.ones(3))
    Array([3., 3.])
    """
    if not isinstance(subscripts, str) and operands and isinstance(operands[0], (list, tuple)):
        subscripts, operands = _from_lists((subscripts, *operands))
    if not isinstance(subscripts, str):
        raise ArgumentError(
            f"einsum takes subscripts such as 'ij,jk->ik' first, not a {type(subscripts).__name__}{where()}"
        )
    if not operands:
        raise ArgumentError(f"einsum needs at least one operand{where()}")
    if not isinstance(optimize, (bool, str)) or optimize not in _ORDERS:
        raise ArgumentError(f"einsum: optimize is True, False, 'greedy' or 'optimal', not {optimize!r}{where()}")
    arrays = promoted(operands, preferred_element_type)
    labels, out = _parse(subscripts, [a.ndim for a in arrays])
    nodes = [node_of(a) for a in arrays]
    sizes = _label_sizes(labels, nodes, subscripts)
    terms = [_distinct(Term(node, each), sizes) for node, each in zip(nodes, labels, strict=True)]
    orders = Orders([term.labels for term in terms], out, sizes)
    if len(terms) == 1:
        result = terms[0]
    else:
        result = _multiplied(_ORDERS[optimize](orders), terms, sizes, out)
    total = _or_zero(contract([result.node], [result.labels], sizes, out), _summed_terms(terms, sizes, out))
    return preferred(total, preferred_element_type)


def einsum_path(subscripts: object, *operands: object, optimize: Any = "greedy") -> tuple[list[object], str]:
    """NumPy's order of products of pairs, and a table of their costs, for arrays of these shapes.

    `einsum` itself looks for an order of its own. Raises ArgumentError where NumPy does, ConcretizationError for sizes
    that are not known.

    >>> import harp.numpy as hnp
    >>> hnp.einsum_path("ij,jk,kl->il", hnp.ones((2, 9)), hnp.ones((9, 9)), hnp.ones((9, 2)))[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    given: list[Any] = []
    for operand in (subscripts, *operands):
        shape = () if isinstance(operand, (str, list, tuple)) else as_array(operand).shape
        if not all(isinstance(size, int) for size in shape):
            raise ConcretizationError(f"einsum_path needs the sizes of its operands, not {shape}{where()}")
        given.append(operand if isinstance(operand, (str, list, tuple)) else np.broadcast_to(0.0, shape))
    try:
        path, text = np.einsum_path(*given, optimize=optimize)
    except (TypeError, ValueError, KeyError) as error:
        raise ArgumentError(f"einsum_path: {error}{where()}") from None
    return path, text


def _summed_terms(terms: Sequence[Term], sizes: Sizes, out: Labels) -> Index:
    """How many terms a sum over the labels that one operand alone has, has."""
    every = [name for term in terms for name in term.labels] if len(terms) > 1 else []
    return product(sizes[name] for name in every if name not in out and every.count(name) == 1)


def _or_zero(result: Array, count: Index) -> Array:
    """The result, or zeros where it is a sum of nothing: the other operands were multiplied by the 0 of such a sum,
    which is not 0 for infinities."""
    if nonnegative(count - 1):
        return result
    return map_(lambda e: overwritten(Position(count) < 1, const(0, e.dtype), e), result)


def _from_lists(arguments: Sequence[object]) -> tuple[str, tuple[object, ...]]:
    """Operands and lists of their labels in turns, as one string and the operands."""
    count = len(arguments) // 2
    terms = [_letters(labels) for labels in arguments[1 : 2 * count : 2]]
    out = f"->{_letters(arguments[-1])}" if len(arguments) % 2 else ""
    return ",".join(terms) + out, tuple(arguments[: 2 * count : 2])


def _letters(labels: object) -> str:
    if isinstance(labels, (list, tuple)):
        if all(n is ... or (isinstance(n, (int, np.integer)) and 0 <= n < len(_LETTERS)) for n in labels):
            return "".join("..." if n is ... else _LETTERS[n] for n in labels)
        labels = [n for n in labels if n is not ...]
    raise ArgumentError(
        f"einsum takes a list of labels after each operand, integers from 0 to {len(_LETTERS) - 1} and `...`, not "
        f"{labels!r}{where()}"
    )


def _multiplied(order: Order, terms: Sequence[Term], sizes: Sizes, wanted: Labels) -> Term:
    """The product of some operands, with those of the wanted labels that they have."""
    if isinstance(order, int):
        return _summed_alone(terms[order], sizes, wanted)
    inside = [{name for k in numbers(part) for name in terms[k].labels} for part in order]
    every = tuple(dict.fromkeys(name for term in terms for name in term.labels))
    kept = [tuple(n for n in every if n in own and (n in wanted or n in other)) for own, other in permutations(inside)]
    x, y = (_multiplied(part, terms, sizes, each) for part, each in zip(order, kept, strict=True))
    return multiply_pair(x, y, sizes, tuple(n for n in wanted if n in x.labels or n in y.labels))


def _summed_alone(term: Term, sizes: Sizes, wanted: Labels) -> Term:
    """An operand with the labels summed that only it has: before the product, which is then smaller."""
    kept = tuple(name for name in term.labels if name in wanted)
    return term if kept == term.labels else Term(node_of(contract([term.node], [term.labels], sizes, kept)), kept)


def _distinct(term: Term, sizes: Sizes) -> Term:
    """An operand whose axes have different labels, of which none repeats its one element."""
    node, labels = term
    unique = tuple(dict.fromkeys(labels))
    if len(unique) < len(labels):
        shape = tuple(resolve(node.shape[labels.index(name)]) for name in unique)
        loops = dict(zip(unique, positions(shape), strict=True))
        node = view.view(node, shape, tuple(loops[name] for name in labels))
    if current() is None:
        return Term(node, unique)
    repeated = {k: ZERO for k, n in enumerate(unique) if is_one(node.shape[k]) and not is_one(sizes[n])}
    kept = tuple(name for k, name in enumerate(unique) if k not in repeated)
    return Term(view.drop_axes(node, repeated), kept) if repeated else Term(node, unique)


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(
            f"einsum {subscripts!r} has {plural(len(terms), 'terms')} for {plural(len(ranks), 'operands')}{where()}"
        )
    labels = [_expand(terms[k], rank, k, subscripts) for k, rank in enumerate(ranks)]
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


def _expand(term: str, rank: int, place: int, subscripts: str) -> Labels:
    """The labels of a term; the axes of `...` are numbered from the right, where they align."""
    head, ellipsis, tail = term.partition("...")
    free = rank - len(head) - len(tail)
    is_word = all(c.isalpha() for c in head + tail)
    if not is_word or free < 0 or (free and not ellipsis):
        raise (ShapeError if is_word else ArgumentError)(
            f"einsum {subscripts!r}: {term!r} does not fit operand {place}, which has {plural(rank, 'axes')}{where()}"
        )
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
