"""The sizes of a reshape: that both shapes have as many elements, as the strongest simple facts about their axes.

Where the whole numbers of elements are not equal for certain, both shapes are read from the left and from the right, in
groups of axes that have as many elements as each other in the call at hand. Groups are equated, not their product:

    (h, w) -> (h//2, 2, w//2, 2)    h == 2*(h//2)  and  w == 2*(w//2)      not  h*w == 4*(h//2)*(w//2)
    (b, d) -> (b, 4, -1)            d == 4*(d//4)                          not  b*d == 4*b*((b*d)//(4*b))

So equal axes become one size, and the view of an array that is split into parts is affine. A call for which only the
product holds gets a trace of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harp.trace.index.bounds import exact_quotient
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import ZERO, Index, Shape, product, symbols_in
from harp.trace.sizes.size import hint, is_solvable, require_at_least_one, resolve, resolve_all, unify

What = Callable[[], str]


class _Group(NamedTuple):
    """Neighbouring axes of either shape, with as many elements."""

    old: Shape
    new: Shape


def new_shape(old: Shape, new: Shape, free: int | None, what: What) -> Shape:
    """The new shape, of as many elements; axis `free`, which is given as 1, takes the remainder.

    Raises ShapeError, with `what()`, if that is not so.
    """
    if free is None:
        _equate(old, new, what)
        return resolve_all(new)
    rest = _rest(old, new, free, what)
    return resolve_all((*new[:free], rest, *new[free + 1 :]))


def _equate(old: Shape, new: Shape, what: What) -> None:
    difference = _count(old) - _count(new)
    groups = [] if difference is ZERO or is_solvable(difference) else _groups(old, new)
    for group in groups:
        unify(_count(group.old), _count(group.new), what)
    unify(_count(old), _count(new), what)


def _count(shape: Shape) -> Index:
    return resolve(product(resolve_all(shape)))


def _rest(old: Shape, new: Shape, free: int, what: What) -> Index:
    """What is left for the free axis, by a guard where the expressions do not show that it comes out even.

    Where another size is 0 any size would do, so there is none, as in NumPy: `x.reshape(n, -1)` of a program for all
    sizes must not have an answer that the same line has not for a number n. Declared sizes are taken not to be 0.
    """
    known = _count(new)
    quotient = None if known is ZERO else exact_quotient(_count(old), known)
    if quotient is None or hint(known) is not None:
        require_at_least_one(
            known, lambda: f"{what()}: where another size is 0, -1 could be any; write the size itself"
        )
    if quotient is not None:
        return resolve(quotient)
    remaining, before = _without_same(old, new[:free], what)
    remaining, after = _without_same(remaining[::-1], new[free + 1 :][::-1], what)  # from the right
    total, known = _count(remaining), _count((*before, *after))
    rest = floordiv(total, known)
    unify(total, rest * known, what)
    return resolve(rest)


def _without_same(old: Shape, new: Shape, what: What) -> tuple[Shape, Shape]:
    """What is left of both shapes behind groups that are equal. A group of the new shape is taken for one of the old
    where it was computed from its sizes; a number may be equal by accident."""
    for group in _groups(old, new):
        sizes = symbols_in(_count(group.old))
        if _count(group.old) is not _count(group.new) and sizes.isdisjoint(symbols_in(_count(group.new))):
            break
        unify(_count(group.old), _count(group.new), what)
        old, new = old[len(group.old) :], new[len(group.new) :]
    return old, new


def _groups(old: Shape, new: Shape) -> list[_Group]:
    """Both shapes in groups, from the left, as far as they go."""
    found: list[_Group] = []
    while (group := _first_group(old, new)) is not None:
        found.append(group)
        old, new = old[len(group.old) :], new[len(group.new) :]
    return found


def _first_group(old: Shape, new: Shape) -> _Group | None:
    """The fewest first axes with as many elements in both shapes; None without a call at hand, or for a size of 0."""
    left = right = 1
    i = j = 0
    while i == 0 or j == 0 or left != right:
        takes_old = i == 0 or (j > 0 and left < right)
        axes, place = (old, i) if takes_old else (new, j)
        size = hint(axes[place]) if place < len(axes) else None
        if not size:
            return None
        left, right = (left * size, right) if takes_old else (left, right * size)
        i, j = i + takes_old, j + (not takes_old)
    return _Group(old[:i], new[:j])
