"""Calls of functions of Python: at once, or as nodes of what is being traced, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import emit
from harp.trace.graph.node import HostCall, HostFunction, MapReduce
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import const
from harp.trace.sizes.levels import current


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
