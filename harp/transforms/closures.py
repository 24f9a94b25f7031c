"""The traced arrays that functions read without being given them: in their closures, defaults and attributes.

The rule of a function with derivatives of its own is traced when the function that it was defined in has been traced,
perhaps batched, or put into a loop. What it reads of that function by then has another node, so it becomes an argument.
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
    """The arrays of what is being traced that functions, or others that these read, can reach; each once. Of a tree,
    those of all its leaves."""
    here = current()
    found: dict[int, Array] = {}
    seen: dict[int, object] = {}
    left = [functions]
    while left:
        value = left.pop()
        if isinstance(value, Array):
            level = value._level
            if isinstance(level, Level) and level.open and here is not None and here.scope is level.scope:
                found[id(value)] = value
        elif id(value) not in seen:
            seen[id(value)] = value
            left += reversed(_parts(value))
    return list(found.values())


def _parts(value: object) -> list[object]:
    """What can be read through a value: of a function what it closes over, of an object that is called its attributes,
    of a tree its leaves."""
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
    """Within it, whoever reads one of the arrays reads the other one at its place."""
    before = [(array._node, array._level) for array in arrays]
    try:
        for array, other in zip(arrays, others, strict=True):
            array._node, array._level = other._node, other._level
        yield
    finally:
        for array, (node, level) in zip(arrays, before, strict=True):
            array._node, array._level = node, level
