"""`vmap`: a function of one example becomes a function of a batch of them.

The function is traced on one example, the graph is rewritten by the table of `harp.transforms.batching.rules`, and the
result is put back into whatever is being traced, so that it composes with all other transforms, to any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from harp.errors import BatchError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_count, as_named, emit
from harp.trace.graph.node import MapReduce, positions
from harp.trace.graph.view import permute, view
from harp.trace.index.polynomial import Index
from harp.trace.scalar.expr import Position
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import resolve, unify
from harp.trace.source_locations import plural, where
from harp.trace.tracer import Argument, function_name, leaf_names, require_function, require_result
from harp.trace.trees import Tree, TreeSpec, flatten, spread, tree_text, unflatten
from harp.transforms.batching.rules import batch
from harp.transforms.pickling import derived
from harp.transforms.staging import run, shape_of, stage, with_arrays
from harp.transforms.typed import P, R, Transformed

Function = Callable[..., Any]


class _Mapped(NamedTuple):
    """An argument that differs between examples: its position among all leaves, its name, and the array, whose first
    axis is that of the batch."""

    place: int
    name: str
    array: Array


def vmap(
    function: Callable[P, R],
    in_axes: Tree = 0,
    out_axes: Tree = 0,
    axis_size: object = None,
    axis_name: object = None,
) -> Transformed[P, R]:
    """A function of a batch of examples, given a function of one.

    `in_axes` says which axis of each positional argument is the batch: a number for all of them, or a tuple with an
    entry for each, which is a number, None for what is the same for all examples, or a tree of these that is a prefix
    of the argument's own tree. Negative numbers count from the end. Keyword arguments are mapped along axis 0.
    `out_axes` says the same of the result, where None is for what does not depend on the batch. `axis_size` is the size
    of the batch; it is needed where nothing is mapped. By `axis_name` the function can ask about the other examples:
    `harp.lax.psum` and its kin take it.

    Raises BatchError where axes do not fit the arguments or the result, ShapeError where sizes differ, and
    MissingRuleError for an operation without a rule.

    >>> import harp.numpy as hnp
    >>> vmap(lambda x, y: hnp.sum(x * y), in_axes=(0, None))(hnp.ones((2, 3)), hnp.arange(3))
    Array([3., 3.])
    """
    require_function("vmap", function)
    call_user: Function = function

    @derived(vmap, function, in_axes, out_axes, axis_size, axis_name)
    def batched(*args: Tree, **kwargs: Tree) -> Tree:
        name = function_name(function)
        leaves, treedef = flatten((args, kwargs))
        axes = _in_axes(in_axes, args, kwargs, name)
        mapped = _mapped(leaf_names(function, args, kwargs), leaves, axes)
        size = _batch_size(mapped, axis_size, name)
        if axis_name is not None:
            mapped.append(_Mapped(len(leaves), "the number of the example", _example_numbers(resolve(size))))
        same = [with_arrays(leaf, name) if axis is None else None for leaf, axis in zip(leaves, axes, strict=True)]

        def call(examples: Sequence[Array]) -> Tree:
            level = current()
            assert level is not None, "a function being traced has a level"
            level.examples *= resolve(size)
            level.reach *= resolve(size)
            filled = [*same, None]
            for m, example in zip(mapped, examples, strict=True):
                filled[m.place] = example
            number = filled.pop()
            if number is not None:
                level.named = axis_name, node_of(number), resolve(size)
            again, keywords = unflatten(treedef, filled)
            return require_result(call_user(*again, **keywords), function)

        arguments = [Argument(m.name, m.array.kind, shape_of(m.array)[1:]) for m in mapped]
        traced = stage(call, arguments, name)
        graph, has_axis = batch(traced.graph, [True] * len(arguments), resolve(size))
        results = run(graph, [m.array for m in mapped])
        places = _leaf_axes(out_axes, traced.treedef, f"out_axes of {name!r}", "the result")
        placed = zip(results, has_axis, places, strict=True)
        return unflatten(traced.treedef, [_to_place(*result, resolve(size), name) for result in placed])

    return cast("Transformed[P, R]", batched)


def _in_axes(in_axes: Tree, args: Sequence[Tree], kwargs: dict[str, Tree], name: str) -> list[int | None]:
    """The axis of each leaf of the arguments."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise BatchError(
            f"in_axes has {plural(len(in_axes), 'entries')}, but {name!r} was given "
            f"{plural(len(args), 'arguments')}{where()}"
        )
    listed = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    leaf_axes: list[int | None] = []
    for k, (entry, arg) in enumerate(zip(listed, args, strict=True)):
        leaf_axes += _leaf_axes(entry, flatten(arg)[1], f"entry {k} of in_axes", "the argument")
    return leaf_axes + [0] * len(flatten(kwargs)[0])


def _leaf_axes(axes: Tree, spec: TreeSpec, name: str, what: str) -> list[int | None]:
    """An axis for each leaf of a tree, given a tree of axes that is a prefix of it."""
    leaves, prefix = flatten(axes, none_is_leaf=True)
    leaf_axes = spread(prefix, leaves, spec)
    if leaf_axes is None:
        raise BatchError(f"{name} is {tree_text(prefix)}, but {what} is {tree_text(spec)}{where()}")
    for axis in leaf_axes:
        if axis is not None and (not isinstance(axis, (int, np.integer)) or isinstance(axis, bool)):
            raise BatchError(f"{name} has {axis!r}; an axis is an integer, or None for what is not mapped{where()}")
    return [None if axis is None else int(axis) for axis in leaf_axes]  # type: ignore[call-overload]


def _mapped(names: Sequence[str], leaves: Sequence[object], axes: Sequence[int | None]) -> list[_Mapped]:
    chosen = enumerate(zip(names, leaves, axes, strict=True))
    return [_Mapped(k, name, _to_front(leaf, axis, name)) for k, (name, leaf, axis) in chosen if axis is not None]


def _to_front(leaf: object, axis: int, name: str) -> Array:
    """The argument with the axis of the batch in front."""
    advice = "what is no array is the same for all examples: its entry of in_axes is None"
    array = as_named(leaf, f"argument {name}", advice)
    if not -array.ndim <= axis < array.ndim:
        raise BatchError(
            f"argument {name} has {plural(array.ndim, 'axes')}, but in_axes maps axis {axis} of it; where it is the "
            f"same for all examples, its entry is None{_of_list(name)}{where()}"
        )
    return _moved(array, axis % array.ndim, 0)


def _of_list(name: str) -> str:
    """Advice about an element of a list that was meant to be an array."""
    return "; a list is a tree of its elements, and harp.numpy.asarray makes an array of it" if name[-1:] == "]" else ""


def _moved(array: Array, source: int, target: int) -> Array:
    if source == target:
        return array
    order = [axis for axis in range(array.ndim) if axis != source]
    order.insert(target, source)
    return emit(permute(node_of(array), order))


def _batch_size(mapped: Sequence[_Mapped], axis_size: object, name: str) -> Index:
    """The size that the axes of all mapped arguments share."""
    sizes = [(f"argument {m.name}", shape_of(m.array)[0]) for m in mapped]
    if axis_size is not None:
        sizes.append(("axis_size", as_count("axis_size", axis_size)))
    if not sizes:
        raise BatchError(f"{name!r} has no argument to map over; say how large the batch is with axis_size{where()}")
    (first, size), *others = sizes
    for other, same in others:
        unify(size, same, lambda other=other: f"vmap of {name!r}: {first} and {other} have batches of different sizes")  # type: ignore[misc]
    return resolve(size)


def _example_numbers(size: Index) -> Array:
    """The numbers of the examples of a batch."""
    return emit(MapReduce((size,), (), Position(positions((size,))[0])))


def _to_place(result: Array, batched: bool, axis: int | None, size: Index, name: str) -> Array:
    """The result with the axis of the batch at `axis`."""
    if axis is None:
        if batched:
            raise BatchError(
                f"out_axes is None for a result of {name!r} that differs between examples; give its axis a place, or "
                f"reduce it{where()}"
            )
        return result
    if not batched:
        node = node_of(result)
        shape = (size, *node.shape)
        result = emit(view(node, shape, positions(shape)[1:]))
    if not -result.ndim <= axis < result.ndim:
        raise BatchError(f"out_axes has {axis}, but the result of {name!r} has {plural(result.ndim, 'axes')}{where()}")
    return _moved(result, 0, axis % result.ndim)
