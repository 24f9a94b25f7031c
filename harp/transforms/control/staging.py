"""The shared parts of control flow: tracing functions to bodies, and putting iterations into the current trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harp.config import settings
from harp.errors import CarryError
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import as_named, emit, map_
from harp.trace.eval.not_finite import require_finite
from harp.trace.graph.body import close
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Iteration, Node
from harp.trace.index.polynomial import Index, Shape
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import describe, unify
from harp.trace.source_locations import plural, where
from harp.trace.tracer import Argument, Traced
from harp.trace.trees import Tree, TreeSpec, alike, flatten, labels, spec_text, tree_text
from harp.transforms.running import values_of
from harp.transforms.staging import fresh_token, note_token, shape_of, stage, token_now


class Leaves(NamedTuple):
    """A tree as arrays with names for messages."""

    arrays: list[Array]
    names: list[str]
    treedef: TreeSpec


def leaves_of(tree: Tree, name: str) -> Leaves:
    """The leaves of a tree. Raises ArgumentError for what is no array or number."""
    leaves, treedef = flatten(tree)
    names = labels(name, tree)
    return Leaves([as_named(leaf, label) for leaf, label in zip(leaves, names, strict=True)], names, treedef)


def traced(
    function: Callable[[Sequence[Array]], Tree],
    carried: Leaves,
    elements: Sequence[tuple[str, DType, Shape]],
    count: Index | None,
    name: str,
) -> Traced:
    """Trace a body: a function of the step's number, below `count`, of carried values and of elements of arrays. The
    number is weakly typed, like Python's integers."""
    arguments = [Argument("the iteration", dtypes.i64, (), weak=True, iterations=count, counts=True)]
    arguments += [Argument(n, a.kind, shape_of(a), a.weak) for a, n in zip(carried.arrays, carried.names, strict=True)]
    arguments += [Argument(*element) for element in elements]
    return stage(function, arguments, name, fresh_token(), count)


def settled(trace: Callable[[Leaves], Traced], carried: Leaves, name: str, skipped: int = 0) -> tuple[Traced, Leaves]:
    """The traced body and its carry, in which Python's numbers have taken the dtypes that the body gives them.

    The outputs of the body behind the `skipped` first ones are the new carry. Raises CarryError where these differ from
    the carry in dtype or shape.
    """
    for _ in range(1 + len(dtypes.Kind) * len(carried.arrays)):  # each round, one of them becomes another kind
        body = trace(carried)
        outputs = body.graph.outputs[skipped : skipped + len(carried.arrays)]
        changed = [a.weak and a.kind is not o.dtype for a, o in zip(carried.arrays, outputs, strict=True)]
        if not any(changed):
            break
        arrays = [
            map_(lambda x: x, a, to=o.dtype) if c and _may_become(a.kind, o.dtype) else a
            for a, o, c in zip(carried.arrays, outputs, changed, strict=True)
        ]
        carried = carried._replace(arrays=arrays)
    for array, label, output in zip(carried.arrays, carried.names, outputs, strict=True):
        _require_same(label, array.kind, shape_of(array), output, name)
    return body, carried


def _may_become(weak: DType, dtype: DType) -> bool:
    return dtypes.promote_weak(dtype, weak.kind) is dtype


def _changes(label: str, axis: int, name: str) -> str:
    return (
        f"{label} changes its size along axis {axis} in {name!r} (what is carried keeps its shape: begin with all of "
        "it, and fill it with .at[i].set; what a scan collects is returned as y)"
    )


def _require_same(label: str, dtype: DType, shape: Shape, output: Node, name: str) -> None:
    """Compare a new carry with the old. Raises CarryError, or ShapeError for sizes."""
    if output.dtype is not dtype or len(output.shape) != len(shape):
        raise CarryError(
            f"{name!r} is given {label} as {dtype.numpy} with {plural(len(shape), 'axes')}, but returns it as "
            f"{output.dtype.numpy} with {plural(len(output.shape), 'axes')}; what is carried keeps its dtype and "
            f"shape: {_advice(dtype, shape, output)}{where()}"
        )
    for axis, (before, after) in enumerate(zip(shape, output.shape, strict=True)):
        unify(before, after, lambda axis=axis: _changes(label, axis, name))  # type: ignore[misc]


def _advice(dtype: DType, shape: Shape, output: Node) -> str:
    """Advice for a carry whose dtype or shape changes."""
    kind = output.dtype.numpy.name
    if len(output.shape) > len(shape):
        sizes = ", ".join(map(describe, output.shape))
        return f"begin with an array of those sizes ({sizes}), harp.numpy.full(sizes, start, {kind!r})"
    if len(output.shape) < len(shape):
        return "return it with all of its axes"
    return f"begin with it as {kind}, by .astype({kind!r}), or return it with .astype({dtype.numpy.name!r})"


def require_tree(found: TreeSpec, wanted: TreeSpec, name: str, what: str) -> None:
    """Raise CarryError for a tree of another shape."""
    if not alike(found, wanted):
        raise CarryError(
            f"{name!r} returns {spec_text(found)} for {what}, which is {tree_text(wanted)}; return the same "
            f"tree{where()}"
        )


def iterate(
    body: Traced,
    length: Index | None,
    carried: Sequence[Array],
    arrays: Sequence[Array] = (),
    *,
    tested: bool = False,
    reverse: bool = False,
    hoists: bool = True,
    recomputes: bool = False,
) -> list[Array]:
    """The results of an iteration. It `hoists` loop invariants out of the body. For its derivative it `recomputes` the
    carried values of its steps, or else keeps them."""
    count, graph, operands = len(carried), body.graph, [*map(node_of, (*carried, *arrays))]
    if graph.token is not None:
        graph = _carrying_token(body, count)
        operands.insert(count, token_now())
        count += 1
    closed, same = close(graph, count, len(arrays), body.free, hoists, recomputes)
    operands += same
    assert all(o.dtype is i.dtype for o, i in zip(operands, closed.inputs[1:], strict=True))
    every = Iteration(length, tuple(operands), closed, tested, reverse).parts
    kept = [k for k in range(len(every)) if not len(carried) <= k < count]
    if current() is not None:
        note_token(every[len(carried)] if graph is not body.graph else None)
        return [emit(every[k]) for k in kept]
    # The token is computed too, for what depends on nothing but calls of Python.
    values = values_of(Graph((), every), ())
    if settings.nans:
        require_finite(Graph((), every), (), {}, values)
    return [from_numpy(values[k]) for k in kept]


def _carrying_token(body: Traced, carried: int) -> Graph:
    """The graph of a body that calls Python, with the token carried behind the other arrays."""
    graph, before = body.graph, body.before
    assert before is not None and graph.token is not None
    first = 1 + carried
    inputs = (*graph.inputs[:first], before, *graph.inputs[first:])
    outputs = (*graph.outputs[:carried], graph.token, *graph.outputs[carried:])
    return Graph(inputs, outputs, graph.sites)
