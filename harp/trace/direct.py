"""What arrays compute outside of a trace, without nodes: a scalar expression over buffers, reduced or not.

It calls what the interpreter calls for a `MapReduce`, so that the numbers are the same. None says that the sizes do not
fit or memory does not suffice; then the interpreter goes the long way, which raises the errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harp.trace import interpret
from harp.trace.dtypes import Buffer
from harp.trace.expr import Expr
from harp.trace.ops import Reduce


def elementwise(expr: Expr, operands: Sequence[Buffer]) -> Buffer | None:
    """The expression for each element of operands that broadcast."""
    try:
        domain = operands[0].shape
        if any(o.shape != domain for o in operands):
            domain = np.broadcast(*operands).shape
            operands = [np.broadcast_to(o, domain) for o in operands]
        return interpret.map_reduce(expr, operands, domain, None, ())
    except (ValueError, MemoryError):
        return None


def reduction(expr: Expr, operand: Buffer, reduce: Reduce, axes: tuple[int, ...], keepdims: bool) -> Buffer | None:
    """The expression for each element, then reduced over the axes, of which there is at least one."""
    try:
        result = interpret.map_reduce(expr, (operand,), operand.shape, reduce, axes)
    except (ValueError, MemoryError):
        return None
    if keepdims:
        return result.reshape([1 if axis in axes else size for axis, size in enumerate(operand.shape)])
    return result
