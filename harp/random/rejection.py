"""Rejection: each element is made from the first of a fixed number of attempts that is accepted.

Every attempt of every element has counters of its own. A compiled program stops when all numbers of a vector have been
accepted: lowering knows the least position of the attempts that fit for a search. Outside of traces one attempt after
the other is made, for those that have none yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from harp.numpy.creation import arange
from harp.numpy.manipulation import broadcast_to, expand_dims
from harp.random.eager import Build
from harp.random.streams import checked, draw, key_numbers
from harp.trace.array.array import Array, from_numpy
from harp.trace.index.polynomial import Shape, as_index
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Expr, const, select
from harp.trace.scalar.ops import Reduce


def accepted(
    key: object,
    shape: Shape,
    build: Build,
    lanes: Sequence[int],
    accepts: Build,
    lane: int,
    parameters: Sequence[Array],
    attempts: int,
) -> Array:
    """`build` of the words of the first attempt that is accepted, or of the last one, and of the parameters.

    `accepts` has the words of one more lane, between the others and the parameters. These have the array's shape.
    Functions are kept, so they should be few.
    """
    search = _first if key_numbers(checked(key)) is None else _first_at_once
    place = search(key, shape, accepts, (*lanes, lane), parameters, attempts)
    return draw(key, shape, _without_last(build), lanes, (*parameters, place), _number(attempts))


def _first(
    key: object, shape: Shape, accepts: Build, lanes: Sequence[int], parameters: Sequence[Array], attempts: int
) -> Array:
    """The place of the first attempt that is accepted, or of the last one: lowering knows it for a search."""
    whole = (*shape, as_index(attempts))
    operands = [broadcast_to(expand_dims(p, -1), whole) for p in parameters]
    places = broadcast_to(arange(attempts), whole)
    return draw(key, whole, _attempt(accepts, attempts), lanes, (*operands, places), reduce=Reduce.MIN)


def _first_at_once(
    key: object, shape: Shape, accepts: Build, lanes: Sequence[int], parameters: Sequence[Array], attempts: int
) -> Array:
    """The same outside of a trace: one attempt after the other, for those that have none yet."""
    given = [np.asarray(p).reshape(-1) for p in parameters]
    first = np.full(given[0].size, attempts - 1, np.int64)
    left = np.arange(first.size)
    for attempt in range(attempts - 1):
        if left.size == 0:
            break
        operands = [from_numpy(p[left]) for p in given] + [from_numpy(left * attempts + attempt)]
        counted = draw(key, (as_index(left.size),), _without_last(accepts), lanes, operands, _last)
        good = np.asarray(counted, np.bool_)
        first[left[good]] = attempt
        left = left[~good]
    return from_numpy(first.reshape(tuple(map(int, parameters[0].shape))))


@cache
def _attempt(accepts: Build, attempts: int) -> Build:
    """The place of an attempt that is accepted; that of the last one for others."""
    return lambda *given: select(accepts(*given[:-1]), given[-1], const(attempts - 1, i64))


@cache
def _without_last(build: Build) -> Build:
    return lambda *given: build(*given[:-1])


@cache
def _number(attempts: int) -> Build:
    """That of an attempt among all attempts of all elements."""
    return lambda here, *given: here * attempts + given[-1]


def _last(here: Expr, *given: Expr) -> Expr:
    return given[-1]
