"""The traced arrays that functions read without getting them as arguments: from closures, defaults and attributes.

The derivative rules of a function are traced after the function round it, which may then be batched, or in a loop. An
array of that function, which a rule reads, has another node by then: so it becomes an argument of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import CellType, FunctionType, MethodType

from harp.trace.array.array import Array
from harp.trace.sizes.levels import Level, current
from harp.trace.trees import flatten


def closed_over(functions: object) -> list[Array]:
    """The arrays of the current trace that functions, or functions that these read, can reach, each once; of a tree,
    those of its leaves."""
    here = current()
    arrays: dict[int, Array] = {}
    seen: dict[int, object] = {}
    stack = [functions]
    while stack:
        value = stack.pop()
        if isinstance(value, Array):
            level = value._level
            if isinstance(level, Level) and level.open and here is not None and here.scope is level.scope:
                arrays[id(value)] = value
        elif id(value) not in seen:
            seen[id(value)] = value
            stack += reversed(_readable(value))
    return list(arrays.values())


def _readable(value: object) -> list[object]:
    """The values that can be read through a value: what a function closes over, the attributes of a callable object,
    the leaves of a tree."""
    if isinstance(value, CellType):
        try:
            return [value.cell_contents]
        except ValueError:  # nothing has been assigned yet
            return []
    if isinstance(value, FunctionType):
        return [*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__, vars(value).get("__wrapped__")]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__, *_attributes(value.__self__)]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if callable(value):
        return _attributes(value)
    leaves, spec = flatten(value)
    return leaves if spec else []


def _attributes(value: object) -> list[object]:
    return [] if isinstance(value, type) else [*getattr(value, "__dict__", {}).values()]


@contextmanager
def standing_for(arrays: Sequence[Array], others: Sequence[Array]) -> Iterator[None]:
    """Within it, each array has the node and the trace of its counterpart in `others`."""
    before = [(array._node, array._level) for array in arrays]
    try:
        for array, other in zip(arrays, others, strict=True):
            array._node, array._level = other._node, other._level
        yield
    finally:
        for array, (node, level) in zip(arrays, before, strict=True):
            array._node, array._level = node, level
