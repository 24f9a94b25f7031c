"""The arguments by which a function is differentiated, and the tangents or cotangents that are given for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from harp.errors import ArgumentError, GradientError, IntegerGradientError
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_named, map_
from harp.trace.graph.node import Node
from harp.trace.sizes.size import to_index, unify
from harp.trace.source_locations import plural, where
from harp.trace.tracer import Argument, Traced, function_name, parameter_names, require_result
from harp.trace.trees import Tree, TreeSpec, flatten, labels, unflatten
from harp.transforms.staging import shape_of, stage, with_arrays


def argument_numbers(argnums: object) -> tuple[int, ...]:
    """`argnums` as a tuple. Raises ArgumentError for what is no number."""
    listed = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    for k in listed:
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
            call = "; arguments are passed to what this returns, as in harp.grad(f)(x)" if hasattr(k, "dtype") else ""
            raise ArgumentError(f"argnums must be a number or a tuple of numbers, not {argnums!r}{call}{where()}")
    return tuple(map(int, listed))


class Staged(NamedTuple):
    """A function traced with respect to some of its arguments."""

    traced: Traced
    primals: list[Array]
    treedef: TreeSpec  # of the tuple of differentiated arguments


def stage_arguments(
    function: Callable[..., Tree], argnums: Sequence[int], args: Sequence[Tree], kwargs: dict[str, Tree]
) -> Staged:
    """Trace a function of the arguments that `argnums` names; it closes over the others.

    Raises ArgumentError where `argnums` does not fit, IntegerGradientError for arrays that have no derivative.
    """
    name = function_name(function)
    parameters = parameter_names(function, len(args))
    for k in argnums:
        if not -len(args) <= k < len(args):
            raise ArgumentError(
                f"argnums names argument {k}, but {name!r} was given {plural(len(args), 'arguments')} by position; "
                f"arguments that are given by name are not differentiated{where()}"
            )
    positions = [k % len(args) for k in argnums]
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"argnums {tuple(argnums)} names an argument of {name!r} twice{where()}")
    chosen = tuple(args[k] for k in positions)
    leaves, treedef = flatten(chosen)
    names = [label for k, tree in zip(positions, chosen, strict=True) for label in labels(parameters[k], tree)]
    primals = [_differentiable(leaf, label) for leaf, label in zip(leaves, names, strict=True)]

    others, keywords = with_arrays(([None if k in positions else arg for k, arg in enumerate(args)], kwargs), name)

    def call(arrays: Sequence[Array]) -> Tree:
        replaced = list(others)
        for k, value in zip(positions, unflatten(treedef, arrays), strict=True):
            replaced[k] = value
        return require_result(function(*replaced, **keywords), function)

    arguments = [
        Argument(label, array.kind, shape_of(array), array.weak, value=array)
        for array, label in zip(primals, names, strict=True)
    ]
    return Staged(stage(call, arguments, name), primals, treedef)


def _differentiable(leaf: object, name: str) -> Array:
    array = as_named(leaf, f"argument {name}", "choose other arguments with argnums, or close over it")
    if not array.kind.is_inexact:
        change = f"write {leaf}.0" if type(leaf) is int else "convert it with .astype"
        raise IntegerGradientError(
            f"argument {name} has dtype {array.dtype}, which has no derivative; {change}, "
            f"or choose other arguments with argnums{where()}"
        )
    return array


def fitting(leaf: object, like: Node, name: str, what: str, error: type[GradientError]) -> Array:
    """A tangent or cotangent as an array of the dtype and shape of a node. Raises `error`."""
    array = as_named(leaf, f"the {name}")
    if array.weak and array.kind is not like.dtype:
        array = map_(lambda x: x, array, to=like.dtype)
    if array.kind is not like.dtype or array.ndim != len(like.shape):
        raise error(
            f"the {name} is {array.dtype} with {plural(array.ndim, 'axes')}, but {what} is {like.dtype.numpy} with "
            f"{plural(len(like.shape), 'axes')}; pass one of the same shape and dtype, as harp.numpy.ones_like makes "
            f"it{where()}"
        )
    for axis, (size, wanted) in enumerate(zip(map(to_index, array.shape), like.shape, strict=True)):
        unify(size, wanted, lambda axis=axis: f"the {name} does not fit {what} along axis {axis}")  # type: ignore[misc]
    return array
