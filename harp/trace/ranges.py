"""Sizes as numbers: that the exact value of an index expression fits the integers that the program computes with.

An `Index` never wraps, but a program holds it as an int64, and an array that it meets gives it its own dtype. Where
bounds do not show that it fits, the call at hand does: a guard, or an IntegerRangeError.
"""

from __future__ import annotations

import numpy as np

from harp.errors import IntegerRangeError
from harp.trace.dtypes import DType, i64
from harp.trace.expr import Expr, Position, cast
from harp.trace.index import ZERO, Atom, FloorDiv, Index, Loop, Monomial, Relu, as_index, divide_term, product
from harp.trace.levels import current
from harp.trace.scope import Relation, Scope
from harp.trace.sites import where
from harp.trace.sizes import ask, describe, hint, resolve

_INT64 = 2**63 - 1
# Elements of one array: more than any machine can address, and few enough that small multiples fit an int64.
_LARGEST_ARRAY = 2**48
_REASON = "fits the integers"


def size_value(p: Index, dtype: DType) -> Expr:
    """The value of an index expression in a dtype. Raises IntegerRangeError if it does not fit there."""
    p = require_int64(p)
    if dtype.is_integer and dtype is not i64:
        limits = np.iinfo(dtype.numpy.name)
        for room in (as_index(int(limits.max)) - p, p - int(limits.min)):
            if hint(room) is not None and not ask(Relation.NONNEGATIVE, room, f"{_REASON} of {dtype.numpy}"):
                raise IntegerRangeError(f"{describe(p)} does not fit {dtype.numpy}; convert the array first{where()}")
    return cast(Position(p), dtype)


def require_int64(p: Index) -> Index:
    """`p`, which fits an int64, and so does what it is computed from."""
    p = resolve(p)
    level = current()
    if _bound(p, None if level is None else level.scope) <= _INT64:
        return p
    room = as_index(_INT64) - _magnitude(p)
    if hint(room) is not None and not ask(Relation.NONNEGATIVE, room, f"{_REASON} of int64"):
        way_out = "" if p.constant is not None else "; make a float of it before it grows, as in 1.0 * x.shape[0]"
        raise IntegerRangeError(f"{describe(p)} does not fit int64{way_out}{where()}")
    return p


def _bound(p: Index, scope: Scope | None) -> int:
    """What neither |p| nor anything that it is computed from exceeds, for all sizes that arrays can have."""
    return sum(abs(c) * _bound_of_product(m, scope) for m, c in p.terms)


def _bound_of_product(monomial: Monomial, scope: Scope | None) -> int:
    if len(monomial) > 1 and scope is not None:
        # Axes of one array together count its elements.
        for shape in scope.shapes:
            whole = scope.resolve(product(shape))
            if len(whole.terms) == 1 and divide_term(whole.terms[0], (monomial, 1)) is not None:
                return _LARGEST_ARRAY
    result = 1
    for atom in monomial:
        result *= max(_bound_of_atom(atom, scope), 1)
    return result


def _bound_of_atom(atom: Atom, scope: Scope | None) -> int:
    if isinstance(atom, FloorDiv):  # divisors are at least 1
        return max(_bound(atom.num, scope), _bound(atom.den, scope))
    if isinstance(atom, Relu):
        return _bound(atom.arg, scope)
    return _bound(atom.extent, scope) if isinstance(atom, Loop) else _LARGEST_ARRAY


def _magnitude(p: Index) -> Index:
    """The same bound as an expression of the sizes."""
    result = ZERO
    for monomial, coefficient in p.terms:
        factor = product(map(_magnitude_of_atom, monomial))
        # A coefficient that is no int64 cannot be multiplied with, not even by 0.
        result += (factor if abs(coefficient) <= _INT64 else factor + 1) * abs(coefficient)
    return result


def _magnitude_of_atom(atom: Atom) -> Index:
    if isinstance(atom, FloorDiv):
        return _magnitude(atom.num) + _magnitude(atom.den)
    if isinstance(atom, Relu):
        return _magnitude(atom.arg)
    return _magnitude(atom.extent) if isinstance(atom, Loop) else Index((((atom,), 1),))
