"""Functions of whole rows: what needs all elements along the last axis at once, and cannot be composed in linear time.

    sort(keys)              the keys in ascending order
    order(keys)             the positions of the keys in ascending order
    sort_by(keys, values)   the values in the order of their keys
    search(table, values)   how many elements of a sorted table, one for all rows or one for each, are below each value

`reverse` means descending, or for a search: how many are not above. Order is NumPy's: equal keys stay in the order in
which they are, also descending; -0.0 and 0.0 are equal; NaN are equal and above all numbers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs
import numpy as np
import numpy.typing as npt

from harp.trace.scalar.dtypes import NDArray


class RowOp(enum.Enum):
    """The closed set of functions of rows. The value is the name in printed graphs."""

    SORT = "sort"
    ORDER = "order"
    SORT_BY = "sort_by"
    SEARCH = "search"

    __hash__ = object.__hash__  # by C, as keys of nodes need it


@attrs.frozen
class RowInfo:
    """One row: operand count, whether results are positions (int64), whether rows of operands are of one length, and
    the meaning in NumPy, given the operands and `reverse`. The result has the shape of the last operand."""

    arity: int
    positions: bool
    aligned: bool
    numpy: Callable[..., NDArray]


def _comparable(keys: NDArray) -> NDArray:
    """NumPy has no order with NaN for the dtypes of ml_dtypes, of which each number is one of float32."""
    return keys if keys.dtype.isbuiltin == 1 else keys.astype(np.float32)


def _order(keys: NDArray, reverse: bool) -> npt.NDArray[np.int64]:
    """Descending is ascending from the back: the last of equal ones first, and then all turned round."""
    keys = _comparable(keys)
    if not reverse:
        return np.argsort(keys, axis=-1, kind="stable").astype(np.int64, copy=False)
    from_behind: npt.NDArray[np.int64] = np.flip(_order(np.flip(keys, -1), False), -1)
    return np.asarray(keys.shape[-1] - 1 - from_behind, np.int64)


def _sort_by(keys: NDArray, values: NDArray, reverse: bool) -> NDArray:
    return np.take_along_axis(values, _order(keys, reverse), axis=-1)


def _sort(keys: NDArray, reverse: bool) -> NDArray:
    return _sort_by(keys, keys, reverse)


def _search(table: NDArray, values: NDArray, reverse: bool) -> NDArray:
    table, values = _comparable(table), _comparable(values)
    result = np.empty(values.shape, np.int64)
    for row in np.ndindex(*values.shape[:-1]):
        result[row] = np.searchsorted(table[row[: table.ndim - 1]], values[row], "right" if reverse else "left")
    return result


ROWS: dict[RowOp, RowInfo] = {
    RowOp.SORT: RowInfo(1, False, True, _sort),
    RowOp.ORDER: RowInfo(1, True, True, _order),
    RowOp.SORT_BY: RowInfo(2, False, True, _sort_by),
    RowOp.SEARCH: RowInfo(2, True, False, _search),
}
