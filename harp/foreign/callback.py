"""`pure_callback`: a function of Python inside a program, which returns arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harp.errors import ArgumentError, CallbackError
from harp.trace.array.array import from_numpy, node_of
from harp.trace.array.host_calls import taking_arrays
from harp.trace.array.primitives import emit
from harp.trace.eval.host_calls import call_pure
from harp.trace.graph.node import Foreign
from harp.trace.graph.routines import PureFunction
from harp.trace.index.polynomial import Shape, as_index
from harp.trace.scalar.dtypes import ArraySignature, DType, NDArray, as_dtype
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import Size, resolve
from harp.trace.source_locations import where
from harp.trace.tracer import function_name, require_function
from harp.trace.trees import Tree, alike, flatten, spec_text, unflatten

_METHODS = ("sequential", "broadcast_all", "expand_dims")


def pure_callback(
    function: Callable[..., Any], result: Tree, *args: Tree, vmap_method: str = "sequential", **kwargs: Tree
) -> Any:
    """What `function(*args, **kwargs)` returns, which gets NumPy arrays in place of arrays, whenever the program runs.

    `result` is a tree of signatures, such as `harp.f64[x.shape[0], 3]`, or of anything that has a shape and a dtype:
    the tree that the function returns. Sizes are numbers or sizes of arrays, and may change from call to call.

    The function must be pure: its result depends on nothing but its arguments, and whether and how often it is called
    does not matter. A call whose result nobody reads does not happen, one in a loop happens in each step. In a batch
    it is called for each example; with `vmap_method="broadcast_all"` once for all, with an axis in front of each array,
    and of each result ("expand_dims" is the same here, though JAX makes the axis of unbatched arrays 1 long). No
    derivative flows through it: wrap it in a function with a `harp.custom_vjp`.

    What it raises is raised by the call of the program. That raises CallbackError if the function returns something
    else than was declared. Numbers of Python take on the dtype that was declared, if that is of their kind.

    Raises ArgumentError for what is no function, no signature or no method.

    >>> import harp, numpy as np, math
    >>> @harp.jit
    ... def gamma_of_sum(x):
    ...     return pure_callback(lambda s: math.gamma(s), harp.f64[()], x.sum())
    >>> float(gamma_of_sum(np.array([2.0, 3.0])))
    24.0
    """
    require_function("pure_callback", function)
    if vmap_method not in _METHODS:
        raise ArgumentError(f"vmap_method is {vmap_method!r}; it is one of {', '.join(map(repr, _METHODS))}{where()}")
    name = f"pure_callback of {function_name(function)}"
    signatures, treedef = flatten(result)
    results = tuple(_declared(s, name) for s in signatures)
    call, arrays = taking_arrays(function, args, kwargs)

    def leaves(*values: NDArray) -> list[object]:
        found, made = flatten(call(*values))
        if not alike(made, treedef):
            raise CallbackError(f"{name} was declared to return {spec_text(treedef)}, but returns {spec_text(made)}")
        return found

    routine = PureFunction(leaves, name, vmap_method != "sequential")
    if current() is not None:
        parts = Foreign(routine, (), tuple(map(node_of, arrays)), results).parts
        return unflatten(treedef, [emit(part) for part in parts])
    numbers = [(tuple(p.constant for p in shape if p.constant is not None), dtype) for shape, dtype in results]
    found = call_pure(routine, (), [np.asarray(a) for a in arrays], numbers)
    return unflatten(treedef, [from_numpy(np.array(value)) for value in found])


def _declared(signature: object, name: str) -> tuple[Shape, DType]:
    """Shape and dtype of a result."""
    shape, kind = getattr(signature, "shape", None), getattr(signature, "dtype", None)
    if shape is None or kind is None:
        raise ArgumentError(
            f"{name}: a result is declared by a signature such as harp.f64[3], or something else with a shape and a "
            f"dtype, not by {signature!r}{where()}"
        )
    dtype = kind if isinstance(kind, DType) else as_dtype(kind)
    return tuple(_extent(size, name, ArraySignature(dtype, tuple(shape))) for size in shape), dtype


def _extent(size: object, name: str, signature: ArraySignature) -> Any:
    if isinstance(size, Size):
        return resolve(size.index)
    if isinstance(size, str):
        raise ArgumentError(
            f"{name}: the result {signature} has a name for a size; write the size itself, such as x.shape[0]{where()}"
        )
    return as_index(size)  # type: ignore[arg-type]
