"""`while_loop`, `cond`, `switch`: computations that run only where data says so.

A branch is an iteration that runs once or not at all. It carries its result, and leaves the carry as it is where it
does not run.

    cond(p, f, g)  ->  r = 0; while p, at most once: r = f(); while not p, at most once: r = g(); r
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, TypeVarTuple, Unpack, overload

import numpy as np

from harp.errors import ArgumentError, CarryError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_named, from_positions, known_numbers, map_
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import MapReduce, Node, fresh_input
from harp.trace.index.polynomial import ONE, as_index
from harp.trace.scalar.dtypes import DType, bool_, default_of, i64, promote_weak
from harp.trace.scalar.expr import Const, Expr, Operand, apply, cast, const
from harp.trace.scalar.ops import Op
from harp.trace.sizes.size import unify
from harp.trace.source_locations import kind_of, plural, where
from harp.trace.tracer import Argument, Traced, function_name, require_function
from harp.trace.trees import Tree, flatten, spec_text, unflatten
from harp.transforms.control.staging import Leaves, iterate, leaves_of, require_tree, settled, traced
from harp.transforms.staging import fresh_token, stage, with_arrays
from harp.transforms.typed import AnArray, Container

Function = Callable[..., Any]


_R = TypeVar("_R")
_C = TypeVar("_C")
_Operands = TypeVarTuple("_Operands")
_OfOne: TypeAlias = Callable[[Array], _R]
# The default of `operand`: no operand was passed by name.
_NO_OPERAND = object()
_OfTwo: TypeAlias = Callable[[Array, Array], _R]
_OfThree: TypeAlias = Callable[[Array, Array, Array], _R]


@overload
def while_loop(cond_fun: Callable[[Array], object], body_fun: Callable[[Array], _C], init_val: AnArray) -> _C: ...


@overload
def while_loop(cond_fun: Callable[[_C], object], body_fun: Callable[[_C], _C], init_val: _C) -> _C: ...


@overload
def while_loop(cond_fun: Callable[..., object], body_fun: Callable[..., _C], init_val: Container) -> _C: ...


def while_loop(cond_fun: Function, body_fun: Function, init_val: Tree) -> Any:
    """`carry = body_fun(carry)` as long as `cond_fun(carry)`, which is one truth value.

    The carry keeps its tree, dtypes and shapes. Its derivative in forward mode runs along with it. In reverse mode the
    loop runs again, up to three times where it has less than a million steps, and keeps what it carried at some of them
    and between two of these (`harp.transforms.autodiff.loops.tested`).

    Raises CarryError where the carry changes, or the condition is no truth value.

    >>> float(while_loop(lambda x: x < 100, lambda x: x * 3, 1.0))
    243.0
    """
    require_function("while_loop", cond_fun, ("carry",))
    require_function("while_loop", body_fun, ("carry",))
    name, asked = function_name(body_fun), function_name(cond_fun)

    def trace(carry: Leaves) -> Traced:
        def call(arrays: Sequence[Array]) -> Tree:
            after = body_fun(unflatten(carry.treedef, arrays[2:]))
            _, treedef = flatten(after)
            require_tree(treedef, carry.treedef, name, "the carry")
            return _truth(cond_fun(after), asked), after

        return traced(call, with_test(carry), (), None, name)

    leaves = leaves_of(init_val, "the carry")
    body, carry = settled(trace, leaves, name, skipped=1)
    first = _truth(cond_fun(unflatten(carry.treedef, carry.arrays)), asked)
    results = iterate(body, None, [first, *carry.arrays], tested=True)
    return unflatten(carry.treedef, results[1:])


def with_test(carry: Leaves) -> Leaves:
    """The carry of a loop, behind the value that says whether the loop goes on."""
    test = _truth(False, "")
    return carry._replace(arrays=[test, *carry.arrays], names=["the condition", *carry.names])


def _truth(value: object, name: str) -> Array:
    array = as_array(value)
    if array.ndim or array.kind is not bool_:
        raise CarryError(
            f"{name!r} must return one truth value, not {array.dtype} with {plural(array.ndim, 'axes')}; compare, "
            "or use "
            f"harp.numpy.any or all{where()}"
        )
    return map_(lambda x: x, array, to=bool_)


@overload
def cond(pred: object, true_fun: _OfOne[_R], false_fun: _OfOne[_R], operand: AnArray, /) -> _R: ...


@overload
def cond(pred: object, true_fun: _OfTwo[_R], false_fun: _OfTwo[_R], a: AnArray, b: AnArray, /) -> _R: ...


@overload
def cond(
    pred: object, true_fun: _OfThree[_R], false_fun: _OfThree[_R], a: AnArray, b: AnArray, c: AnArray, /
) -> _R: ...


@overload
def cond(
    pred: object,
    true_fun: Callable[[Unpack[_Operands]], _R],
    false_fun: Callable[[Unpack[_Operands]], _R],
    *operands: *_Operands,
) -> _R: ...


@overload
def cond(pred: object, true_fun: Callable[..., _R], false_fun: Callable[..., _R], *operands: Container) -> _R: ...


@overload
def cond(pred: object, true_fun: Callable[..., _R], false_fun: Callable[..., _R], *, operand: object) -> _R: ...


def cond(pred: object, true_fun: Function, false_fun: Function, *operands: Tree, operand: Tree = _NO_OPERAND) -> Any:
    """`true_fun(*operands)` where `pred`, one truth value or number, holds, else `false_fun(*operands)`.

    Only one of the two is computed. Both return the same tree with the same dtypes and shapes. A single operand may be
    given as `operand`, as in older programs for JAX.

    Raises CarryError where the branches differ.

    >>> float(cond(True, lambda x: x + 1, lambda x: x * 2, 5.0))
    6.0
    """
    if operand is not _NO_OPERAND:
        operands = (*operands, operand)
    for label, function in (("true_fun", true_fun), ("false_fun", false_fun)):
        if not callable(function):
            raise ArgumentError(
                f"{label} of cond must be a function of the operands, not {kind_of(function)}; between two values "
                f"harp.numpy.where(condition, a, b) chooses{where()}"
            )
        require_function("cond", function, ["an operand"] * len(operands))
    holds = as_named(pred, "the condition of cond")
    if holds.ndim:
        raise ArgumentError(
            f"the condition of cond has {plural(holds.ndim, 'axes')}; use harp.numpy.any, all or where{where()}"
        )
    chooser = pred if isinstance(pred, (bool, int, float)) else holds  # numbers of Python stay known
    tests = [map_(lambda x: x, chooser, to=bool_), map_(lambda x: ~x, chooser, to=bool_)]
    return _run_branches(tests, (("true_fun", true_fun), ("false_fun", false_fun)), operands)


@overload
def switch(index: object, branches: Sequence[_OfOne[_R]], operand: AnArray, /) -> _R: ...


@overload
def switch(index: object, branches: Sequence[_OfTwo[_R]], a: AnArray, b: AnArray, /) -> _R: ...


@overload
def switch(index: object, branches: Sequence[_OfThree[_R]], a: AnArray, b: AnArray, c: AnArray, /) -> _R: ...


@overload
def switch(index: object, branches: Sequence[Callable[[Unpack[_Operands]], _R]], *operands: *_Operands) -> _R: ...


@overload
def switch(index: object, branches: Sequence[Callable[..., _R]], *operands: Container) -> _R: ...


def switch(index: object, branches: Sequence[Function], *operands: Tree) -> Any:
    """`branches[index](*operands)`: only that one is computed. An index outside takes the nearest branch.

    All branches return the same tree with the same dtypes and shapes. Raises CarryError where they differ.

    >>> float(switch(1, [lambda x: x, lambda x: x * 2], 5.0))
    10.0
    """
    number = as_array(index)
    if number.ndim or not number.kind.is_integer:
        raise ArgumentError(
            f"the index of switch is one integer, not {number.dtype} with {plural(number.ndim, 'axes')}{where()}"
        )
    if not isinstance(branches, Sequence):
        raise ArgumentError(f"switch takes a tuple or list of functions second, not {kind_of(branches)}{where()}")
    if not branches:
        raise ArgumentError(f"switch has no branches{where()}")
    last = len(branches) - 1
    chooser = index if isinstance(index, int) else number  # a number of Python stays known

    def nearest(x: Expr) -> Expr:
        return apply(Op.MIN, apply(Op.MAX, x, const(0, i64)), const(last, i64))

    tests = [
        map_(lambda x, k=k: apply(Op.EQ, nearest(x), const(k, i64)), chooser, to=i64) for k in range(len(branches))
    ]
    for branch in branches:
        require_function("switch", branch, ["an operand"] * len(operands))
    return _run_branches(tests, [(f"branches[{k}]", branch) for k, branch in enumerate(branches)], operands)


class _Branch(NamedTuple):
    """A branch that was traced; its name, or that of the argument if it has none."""

    name: str
    test: Array
    traced: Traced


def _run_branches(tests: Sequence[Array], branches: Sequence[tuple[str, Function]], operands: tuple[Tree, ...]) -> Any:
    """The result of the branch whose test holds: one iteration for each branch, one after the other."""
    operands = with_arrays(operands, function_name(branches[0][1]))
    names = [label if function_name(f) == "<lambda>" else function_name(f) for label, f in branches]
    traced_branches = [
        _Branch(name, test, _traced_branch(f, operands, test))
        for name, test, (_, f) in zip(names, tests, branches, strict=True)
    ]
    dtypes = _result_dtypes(traced_branches)
    _require_same_shapes(traced_branches)
    treedef = traced_branches[0].traced.treedef
    shapes = [o.shape for o in traced_branches[0].traced.graph.outputs]
    results = [from_positions(shape, const(0, dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    for branch in traced_branches:
        graph = branch.traced.graph
        carried = [fresh_input(f"result {k}", a.shape, a.dtype) for k, a in enumerate(map(node_of, results))]
        outputs = [_converted(o, dtype) for o, dtype in zip(graph.outputs, dtypes, strict=True)]
        test = fresh_input("the condition", (), bool_)
        never_again = MapReduce((), (), const(False, bool_))
        whole = Graph((*graph.inputs, test, *carried), (never_again, *outputs), graph.sites, graph.token)
        body = branch.traced._replace(graph=whole)
        results = iterate(body, ONE, [branch.test, *results], tested=True, hoists=False)[1:]
    return unflatten(treedef, results)


def _traced_branch(function: Function, operands: tuple[Tree, ...], test: Array) -> Traced:
    """A branch as a graph without operands: it closes over them, as over all other arrays."""
    number = Argument("the iteration", i64, ())
    node, known = node_of(test), known_numbers(test)
    if isinstance(node, MapReduce) and isinstance(node.expr, Const):
        known = np.asarray(node.expr.value)
    steps = None if known is None else as_index(int(known))
    return stage(lambda arrays: function(*operands), [number], function_name(function), fresh_token(), steps)


def _result_dtypes(branches: Sequence[_Branch]) -> list[DType]:
    """The dtype of each result; Python's numbers take that of another branch.

    Raises CarryError where branches return other trees, or other dtypes: none of them is converted in silence.
    """
    first, *others = branches
    for branch in others:
        if branch.traced.treedef != first.traced.treedef:
            texts = f"{first.name!r} returns {spec_text(first.traced.treedef)}, but {branch.name!r} returns "
            raise CarryError(f"{texts}{spec_text(branch.traced.treedef)}; branches return the same tree{where()}")
    dtypes = []
    for k, output in enumerate(first.traced.graph.outputs):
        strong = {b.traced.graph.outputs[k].dtype: b.name for b in branches if not b.traced.weak[k]}
        weak = [b.traced.graph.outputs[k].dtype.kind for b in branches if b.traced.weak[k]]
        if len(strong) > 1:
            texts = ", ".join(f"{name!r} returns {dtype.numpy}" for dtype, name in strong.items())
            raise CarryError(f"result {k}: {texts}; branches return the same dtypes: convert one by .astype{where()}")
        dtype = next(iter(strong), None) or default_of(max(weak, default=output.dtype.kind))
        dtypes.append(promote_weak(dtype, max(weak)) if weak else dtype)
    return dtypes


def _require_same_shapes(branches: Sequence[_Branch]) -> None:
    """Raises CarryError for results with other numbers of axes, and ShapeError for other sizes."""
    first, *others = branches
    for branch in others:
        outputs = zip(first.traced.graph.outputs, branch.traced.graph.outputs, strict=True)
        for k, (a, b) in enumerate(outputs):
            if len(a.shape) != len(b.shape):
                raise CarryError(
                    f"result {k} has {plural(len(a.shape), 'axes')} in {first.name!r}, but {len(b.shape)} in "
                    f"{branch.name!r}; "
                    f"branches return the same shapes{where()}"
                )
            for axis, (size, other) in enumerate(zip(a.shape, b.shape, strict=True)):
                text = f"result {k} of {first.name!r} and {branch.name!r} differs along axis {axis}"
                unify(size, other, lambda text=text: text)  # type: ignore[misc]


def _converted(node: Node, dtype: DType) -> Node:
    return node if node.dtype is dtype else MapReduce(node.shape, (node,), cast(Operand(node.dtype, 0), dtype))
