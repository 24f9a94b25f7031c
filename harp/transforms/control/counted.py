"""`fori_loop` between bounds that are data: the number of steps is computed first, and a step's number is a position.

for i in range(a, b)  ->  n = b - a; for t < n: i = a + t
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harp.errors import ArgumentError
from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.primitives import common_dtype, emit, map_
from harp.trace.graph.body import first_test, next_test
from harp.trace.graph.node import Node
from harp.trace.index.division import relu
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, i64, u64
from harp.trace.scalar.expr import Expr, apply, cast, const, select
from harp.trace.scalar.ops import Op
from harp.trace.sizes.steps import formula, most
from harp.trace.source_locations import plural, where
from harp.trace.tracer import Traced, function_name
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.control.conditional import with_test
from harp.transforms.control.staging import Leaves, iterate, leaves_of, require_tree, settled, traced

_LARGEST = 2**63 - 1


def counted(lower: Array, upper: Array, body_fun: Callable[..., Any], init: Tree) -> Any:
    """The loop from `lower` to `upper`. Its number is weakly typed, like Python's integers, if both bounds are, and the
    number of steps has a known bound.

    Raises ArgumentError for bounds that are not one integer each.
    """
    if lower.ndim or upper.ndim or not (lower.kind.is_integer and upper.kind.is_integer):
        raise ArgumentError(
            f"the bounds of fori_loop are integers or arrays of one integer, not {lower.dtype} with "
            f"{plural(lower.ndim, 'axes')} and {upper.dtype} with {upper.ndim}; convert them with int() or "
            f".astype(int){where()}"
        )
    name = function_name(body_fun)
    dtype = u64 if common_dtype((lower, upper))[0] is u64 else i64
    distance = map_(lambda a, b: b + -a, lower, upper, to=i64)
    most = _most(node_of(distance)) if dtype is i64 and u64 not in (lower.kind, upper.kind) else None
    count = map_(_steps(dtype), lower, upper, to=(lower.kind, upper.kind)) if most is None else distance
    first = marked(map_(lambda a: _limited(a, dtype), lower, to=lower.kind), most is not None and lower.weak)
    weak = first.weak and upper.weak

    def trace(carry: Leaves) -> Traced:
        def call(arrays: Sequence[Array]) -> Tree:
            number = marked(arrays[0], weak=False)
            i = marked(map_(lambda a, t: a + cast(t, dtype), first, number, to=(dtype, i64)), weak)
            after = body_fun(i, unflatten(carry.treedef, arrays[2:]))
            require_tree(flatten(after)[1], carry.treedef, name, "the carry")
            return emit(next_test(node_of(number), node_of(count))), after

        return traced(call, with_test(carry), (), most, name)

    body, carry = settled(trace, leaves_of(init, "the carry"), name, skipped=1)
    results = iterate(body, None, [emit(first_test(node_of(count))), *carry.arrays], tested=True)
    return unflatten(carry.treedef, results[1:])


def _steps(dtype: DType) -> Callable[[Expr, Expr], Expr]:
    """The number of steps between two bounds, at most the largest int64."""

    def build(lower: Expr, upper: Expr) -> Expr:
        first, last = _limited(lower, dtype), _limited(upper, dtype)
        distance = cast(last + -first, u64)  # exact, though the numbers may be as far apart as 2**64
        largest = const(_LARGEST, u64)
        return select(first < last, cast(apply(Op.MIN, distance, largest), i64), const(0, i64))

    return build


def _limited(bound: Expr, dtype: DType) -> Expr:
    """A bound in the dtype of the loop's number; a bound too large for it becomes the largest number."""
    if bound.dtype is u64 and dtype is i64:
        bound = apply(Op.MIN, bound, const(_LARGEST, u64))
    return cast(bound, dtype)


def _most(count: Node) -> Index | None:
    """The most steps there can be, if that is a formula of sizes and of the numbers of enclosing loops."""
    steps = formula(count)
    largest = None if steps is None else most(steps)
    return None if largest is None else relu(largest)
