"""A tree of arrays as one vector, and back: what an optimiser for vectors needs.

>>> flat, unravel = ravel_pytree({"a": 1.0, "b": [2.0, 3.0]})
>>> flat, unravel(flat * 10)
(Array([1., 2., 3.]), {'a': Array(10.), 'b': [Array(20.), Array(30.)]})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harp.errors import ShapeError
from harp.numpy.creation import zeros
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import ravel, reshape
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.source_locations import plural, where
from harp.tree import flatten, unflatten

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """The elements of all leaves as one vector, in their common dtype; and a function that makes the tree of such a
    vector, with shapes and dtypes as they were. Raises ShapeError for a vector of another length there.

    >>> flat, unravel = ravel_pytree((1.0, 2.0))
    >>> unravel(flat)
    (Array(1.), Array(2.))
    """
    leaves, structure = flatten(pytree)
    arrays = [as_array(leaf) for leaf in leaves]
    flat = concatenate([ravel(array) for array in arrays]) if arrays else zeros(0)
    count = flat.shape[0]

    def unravel(vector: Any) -> Any:
        given = as_array(vector)
        if given.ndim != 1 or given.shape[0] != count:
            shape = "x".join(map(str, given.shape)) or plural(0, "axes")
            raise ShapeError(f"the tree has {count} elements in a vector, but unravel is given {shape}{where()}")
        parts, start = [], 0
        for array in arrays:
            end = start + array.size
            parts.append(reshape(given[start:end], array.shape).astype(array.dtype))
            start = end
        return unflatten(structure, parts)

    return flat, unravel
