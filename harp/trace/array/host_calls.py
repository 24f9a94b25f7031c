"""Calls of functions of Python: at once, or as nodes of what is being traced, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, emit
from harp.trace.graph.node import HostCall, MapReduce
from harp.trace.graph.routines import HostFunction
from harp.trace.scalar.dtypes import NDArray, bool_
from harp.trace.scalar.expr import const
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import Size
from harp.trace.trees import Tree, flatten, unflatten

_ARRAYS = (Array, np.ndarray, np.generic, bool, int, float, complex, Size)


def is_array(leaf: object) -> bool:
    """Whether an argument is passed as an array."""
    return isinstance(leaf, _ARRAYS)


def taking_arrays(
    function: Callable[..., object], args: Sequence[Tree], kwargs: Mapping[str, Tree]
) -> tuple[Callable[..., object], list[Array]]:
    """A function of NumPy arrays, which calls the function with them in place of arrays and numbers among its arguments
    and with all others as they are; and these arrays."""
    leaves, treedef = flatten((tuple(args), dict(kwargs)))
    arrays = {k: as_array(leaf) for k, leaf in enumerate(leaves) if is_array(leaf)}

    def call(*values: NDArray) -> object:
        given = [*leaves]
        for k, value in zip(arrays, values, strict=True):
            given[k] = value
        again, keywords = unflatten(treedef, given)
        return function(*again, **keywords)

    return call, list(arrays.values())


def call_python(function: Callable[..., object], arrays: Sequence[Array]) -> None:
    """Call a function with NumPy arrays, after all calls before; what it returns is ignored."""
    level = current()
    if level is None:
        function(*(np.array(a) for a in arrays))
        return
    always = MapReduce((), (), const(True, bool_))
    node = HostCall(level.token, always, tuple(map(node_of, arrays)), HostFunction(function))
    emit(node)
    level.after = node
