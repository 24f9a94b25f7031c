"""`eval_shape`: the shapes and dtypes of results, without computing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harp.errors import ArgumentError
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_named
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import ArraySignature
from harp.trace.sizes.size import wrap
from harp.trace.source_locations import where
from harp.trace.tracer import Argument, function_name, leaf_names, require_function
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.staging import shape_of, stage


def eval_shape(function: Callable[..., Tree], *args: Tree, **kwargs: Tree) -> Any:
    """The tree that `function(*args, **kwargs)` returns, with the signature of each array, dtype and shape, instead.

    Arguments are arrays, numbers, and signatures such as `harp.f32[2, 3]`, whose sizes are numbers. Nothing is
    computed. Raises ArgumentError for signatures with names for sizes, and what the function itself raises.

    >>> import harp
    >>> eval_shape(lambda x: (x.T, x.sum()), harp.f32[2, 3])
    (f32[3, 2], f32[])
    """
    require_function("eval_shape", function)
    leaves, treedef = flatten((args, kwargs))
    named = zip(leaf_names(function, args, kwargs), leaves, strict=True)

    def call(arrays: Sequence[Array]) -> Tree:
        again, keywords = unflatten(treedef, arrays)
        return function(*again, **keywords)

    traced = stage(call, [_argument(leaf, name) for name, leaf in named], function_name(function))
    found = [ArraySignature(o.dtype, tuple(map(wrap, o.shape))) for o in traced.graph.outputs]  # type: ignore[arg-type]
    return unflatten(traced.treedef, found)


def _argument(leaf: object, name: str) -> Argument:
    if not isinstance(leaf, ArraySignature):
        array = as_named(leaf, f"argument {name}", "close over it")
        return Argument(name, array.kind, shape_of(array), array.weak)
    if any(isinstance(size, str) for size in leaf.shape):
        raise ArgumentError(f"argument {name} is {leaf}, but eval_shape takes numbers for sizes{where()}")
    return Argument(name, leaf.dtype, tuple(map(as_index, leaf.shape)))  # type: ignore[arg-type]
