"""SciPy's vector quantisation: for each of many points the nearest one of a few.

>>> import numpy as np
>>> vq(np.array([[1.0, 1.0], [5.0, 4.0]]), np.array([[0.0, 1.0], [5.0, 5.0]]))
(Array([0, 1]), Array([1., 1.]))
"""

from __future__ import annotations

from harp.errors import ShapeError
from harp.numpy.elementwise import abs, sqrt, square
from harp.numpy.linalg.products import promoted
from harp.numpy.numerical import as_inexact
from harp.numpy.reductions import argmin, min
from harp.numpy.reductions import sum as sum_
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_named
from harp.trace.sizes.size import require_at_least_one, resolve, unify
from harp.trace.source_locations import where

__all__ = ["vq"]


def vq(obs: object, code_book: object, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation, a row of `obs`, the number of the nearest row of `code_book`, and the distance from it.

    Vectors are rows of one number each. Of rows that are as near, the first one counts. Integers give float64. Raises
    ShapeError for other numbers of axes, for rows of other lengths, and for no rows of `code_book`.

    >>> import numpy as np
    >>> vq(np.array([1.0, 7.0, 4.0]), np.array([0.0, 6.0]))
    (Array([0, 1, 1]), Array([1., 1., 2.]))
    """
    given = (as_inexact(as_named(a, f"argument {name} of vq")) for a, name in ((obs, "obs"), (code_book, "code_book")))
    rows, codes = promoted(tuple(given))
    if rows.ndim != codes.ndim or rows.ndim not in (1, 2):
        raise ShapeError(
            f"obs and code_book of vq are both vectors or matrices, not {rows.ndim}d and {codes.ndim}d{where()}"
        )
    rows, codes = (a[:, None] if a.ndim == 1 else a for a in (rows, codes))
    unify(node_of(rows).shape[1], node_of(codes).shape[1], lambda: "vq: the rows of obs and of code_book")
    require_at_least_one(resolve(node_of(codes).shape[0]), lambda: "vq needs a row of code_book")
    squares = sum_(square(abs(rows[:, None, :] - codes)), -1)
    return argmin(squares, -1), sqrt(min(squares, -1))
