"""Tracing: run a Python function once on handles, and take down what it does as a `Graph`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from harp.config import counters, settings
from harp.errors import ArgumentError, ConcretizationError, HarpError, OutputError, SignatureError
from harp.trace.array.array import Array, node_of, traced
from harp.trace.array.foreign import honest, to_numpy
from harp.trace.array.primitives import as_array, python_kind
from harp.trace.array.questions import note_on
from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.node import Input, Node, fresh_input
from harp.trace.graph.verify import verify_graph
from harp.trace.index.polynomial import ONE, Index, Shape, Symbol, as_index, of
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import ArraySignature, DType, NDArray, as_dtype, plain, refuse_masked
from harp.trace.sizes.levels import current, enter
from harp.trace.sizes.scope import Relation, Scope
from harp.trace.sizes.size import Size
from harp.trace.source_locations import kind_of, plural, registering, short, where
from harp.trace.tracebacks import require_no_recursion
from harp.trace.trees import Tree, TreeSpec, flatten, labels, unflatten


class Argument(NamedTuple):
    """One array that a traced function is given: its name for messages, dtype, shape, and whether it is weak; whether
    it `counts` the steps of a loop, and how many there are, if that is known; the `value` that it has in this trace, if
    the trace is for that only."""

    name: str
    dtype: DType
    shape: Shape
    weak: bool = False
    iterations: Index | None = None
    counts: bool = False
    value: Array | None = None


class Traced(NamedTuple):
    """A function as a graph: one output for each leaf of the result tree. `free` are the nodes of the functions round
    it that it reads. `before` is the token that stands for that of the functions round it, where one was given."""

    graph: Graph
    treedef: TreeSpec
    weak: tuple[bool, ...]
    free: tuple[Node, ...] = ()
    before: Input | None = None


def trace_function(
    function: Callable[[Sequence[Array]], Tree],
    arguments: Sequence[Argument],
    scope: Scope,
    name: str,
    before: Input | None = None,
    steps: Index | None = ONE,
) -> Traced:
    """Call `function` with one array for each argument, and return what it did. Nested calls share the scope. Calls of
    Python begin with the token `before`, or with that of the function round it. `steps` says how often the function
    round it computes this one, None that data decides."""
    inputs = [fresh_input(a.name, a.shape, a.dtype) for a in arguments]
    counts = ((i.uid, a.iterations) for i, a in zip(inputs, arguments, strict=True))
    scope.counters.update((uid, count) for uid, count in counts if count is not None)
    with enter(scope, name, any(a.counts for a in arguments), before, steps) as level:
        level.values = {i: a.value for i, a in zip(inputs, arguments, strict=True) if a.value is not None}
        result = _called(function, [traced(i, level, a.weak) for i, a in zip(inputs, arguments, strict=True)], name)
        leaves, treedef = flatten(result)
        arrays = [_output(leaf, name) for leaf in leaves]
        graph = Graph(tuple(inputs), tuple(map(node_of, arrays)), level.sites, level.after)
    counters.add("traces")
    finished = inline(graph, {}, scope.substitution)
    if settings.verify and level.parent is None:
        verify_graph(finished, frozenset(() if before is None else (before,)))
    free = inline(Graph((), tuple(level.free)), {}, scope.substitution).outputs if level.free else ()
    return Traced(finished, treedef, tuple(a.weak for a in arrays), free, before)


def _called(function: Callable[[Sequence[Array]], Tree], arrays: Sequence[Array], name: str) -> Tree:
    """What the function returns. NumPy hides our error where an element of its own array is set, or where it takes a
    shape; here it is shown again."""
    try:
        return function(arrays)
    except TypeError as error:
        note = note_on(str(error))
        if note is not None and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
    except RecursionError as error:
        require_no_recursion(error, name)
        raise
    except ValueError as error:
        if isinstance(error.__cause__, ConcretizationError) and "setting an array element" in str(error):
            raise error.__cause__ from None
        raise


def require_result(result: Tree, function: Callable[..., object]) -> Tree:
    """The result of a user's function. Raises OutputError for None, which a lambda may be meant to return, and a
    function that calls Python."""
    level = current()
    calls = level is not None and level.after is not None
    if result is None and not calls and function_name(function) != "<lambda>":
        code = getattr(function, "__code__", None)
        place = f"\n  at {code.co_filename}:{code.co_firstlineno}" if code else where()
        raise OutputError(
            f"{function_name(function)!r} returned None: a `return` is missing at its end, or in one of its branches; "
            f"a traced function returns arrays, numbers, or tuples, lists and dicts of these{place}"
        )
    return result


def _output(leaf: object, name: str) -> Array:
    leaf = honest(leaf, f"a result of {name!r}")
    if isinstance(leaf, (Array, np.ndarray, np.generic, bool, int, float, complex, Size)):
        return as_array(leaf)
    raise OutputError(
        f"{name!r} returned {leaf!r} of type {type(leaf).__name__}; {registering(leaf, '; ')}a traced function "
        f"returns arrays, numbers, or tuples, lists and dicts of these{where()}"
    )


def leaf_array(leaf: object, name: str) -> tuple[NDArray, bool]:
    """An argument as a NumPy array of a native dtype, and whether it is weak. Nothing is copied that need not be.

    Raises ArgumentError or UnsupportedDTypeError naming the argument.
    """
    leaf = honest(leaf, f"argument {name}")
    if isinstance(leaf, Array):
        return leaf._concrete("a NumPy array of the values"), leaf.weak
    if isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
        try:
            return np.asarray(leaf, dtypes.default_of(python_kind(leaf)).numpy), True
        except OverflowError:
            raise ArgumentError(
                f"argument {name}: the integer {short(leaf)} does not fit int64; pass a float or np.uint64{where()}"  # type: ignore[arg-type]
            ) from None
    found = leaf if isinstance(leaf, (np.ndarray, np.generic)) else to_numpy(leaf, f"argument {name}")
    if found is not None:
        refuse_masked(found, f"argument {name}")
        try:
            native = as_dtype(found.dtype).numpy
            return plain(np.asarray(found), native), False
        except HarpError as error:
            raise type(error)(f"argument {name}: {error}") from None
    if name == "self":
        raise ArgumentError(
            f"argument self is {kind_of(leaf)}; mark it with @harp.jit(static_argnums=0), or compile "
            f"the bound method, harp.jit(object.method){where()}"
        )
    if isinstance(leaf, ArraySignature):
        raise ArgumentError(
            f"argument {name} is a signature where an array is needed; harp.trace, harp.export and "
            f"harp.jit(signature=...) take signatures{where()}"
        )
    raise ArgumentError(
        f"argument {name} is {kind_of(leaf)}; a traced function takes arrays, numbers, and trees of these; "
        f"{registering(leaf, ', ')}mark other arguments with static_argnums or static_argnames{where()}"
    )


def parameter_names(function: Callable[..., object], count: int) -> list[str]:
    """Names of the positional parameters, for messages."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [f"argument {k}" for k in range(count)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{k}]" for k in range(count - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY and parameter.kind is not parameter.VAR_KEYWORD:
            names.append(parameter.name)
    return names + [f"argument {k}" for k in range(len(names), count)]


def leaf_names(function: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]) -> list[str]:
    """What messages call each leaf: `x`, `params['w']`."""
    found = []
    for name, value in [*zip(parameter_names(function, len(args)), args, strict=False), *sorted(kwargs.items())]:
        found += labels(name, value)
    return found


def size_arguments(names: Sequence[str], arrays: Sequence[tuple[NDArray, bool]], scope: Scope) -> list[Argument]:
    """Arguments whose every axis is a new size, with the call's own sizes as hints."""
    result = []
    for name, (array, weak) in zip(names, arrays, strict=True):
        short = "".join(c if c.isalnum() else "_" for c in name).strip("_")
        shape = tuple(
            of(scope.symbol(f"{short}_{axis}", f"{name}.shape[{axis}]", size)) for axis, size in enumerate(array.shape)
        )
        dtype = as_dtype(array.dtype)
        scope.arrays.append((shape, dtype.itemsize))
        result.append(Argument(name, dtype, shape, weak))
    return result


def declare(argument: Argument, signature: ArraySignature, scope: Scope, named: dict[str, Index]) -> None:
    """Hold an argument to a declared signature: equal names are equal sizes, numbers are fixed."""
    name, shape = argument.name, argument.shape
    if len(signature.shape) != len(shape) or signature.dtype is not argument.dtype:
        raise SignatureError(
            f"argument {name} is declared {signature}, but is {argument.dtype} with "
            f"{plural(len(shape), 'axes')}{where()}"
        )
    for axis, (declared, size) in enumerate(zip(signature.shape, shape, strict=True)):
        if isinstance(declared, str):
            target = named.setdefault(declared, size)
        else:
            target = as_index(declared)
        if not scope.decide(Relation.ZERO, size - target, f"{name} is declared {signature}"):
            raise SignatureError(
                f"argument {name} is declared {signature}, but axis {axis} is {scope.describe(size)}, "
                f"not {scope.describe(target)}{where()}"
            )


def declared_arguments(names: Sequence[str], signatures: Sequence[ArraySignature], scope: Scope) -> list[Argument]:
    """Arguments with declared sizes and no call at hand."""
    named: dict[str, Symbol] = {}
    result = []
    for name, signature in zip(names, signatures, strict=True):
        shape: list[Index] = []
        for axis, dim in enumerate(signature.shape):
            if isinstance(dim, str):
                if dim not in named:
                    named[dim] = scope.symbol(dim, f"{name}.shape[{axis}]", None)
                shape.append(of(named[dim]))
            else:
                shape.append(as_index(dim))
        scope.arrays.append((tuple(shape), signature.dtype.itemsize))
        result.append(Argument(name, signature.dtype, tuple(shape)))
    return result


def trace(function: Callable[..., Tree], *arguments: object) -> Graph:
    """The graph of a function, for declared signatures or for example arrays.

    With arrays every axis becomes a size of its own, and questions about sizes are answered by the example. With
    signatures such as `harp.f32["batch", 784]` there is no example: an undecided question raises
    InconclusiveSizeError and names the constraint to declare.

    >>> print(trace(lambda x: x * 2.0, dtypes.f32["n"]))
    %0 = f32[n] input x
    %1 = f32[n] map (%0) -> mul(x0, 2.0:f32)
    return %1
    """
    return trace_with("trace", function, arguments)[2].graph


def trace_with(
    caller: str, function: Callable[..., Tree], arguments: Sequence[object]
) -> tuple[Scope, list[Argument], Traced]:
    """The trace of a function for signatures or arrays, its scope and its arguments. `caller` is who asks for it."""
    require_function(caller, function)
    leaves, treedef = flatten(tuple(arguments))
    names = leaf_names(function, arguments, {})
    declared = [leaf for leaf in leaves if isinstance(leaf, ArraySignature)]
    if len(declared) == len(leaves):
        scope = Scope(concrete=False)
        specs = declared_arguments(names, declared, scope)
    elif declared:
        raise ArgumentError(f"{caller} takes either signatures or arrays for all arguments, not both{where()}")
    else:
        scope = Scope()
        specs = size_arguments(names, [leaf_array(leaf, n) for leaf, n in zip(leaves, names, strict=True)], scope)

    def call(arrays: Sequence[Array]) -> Tree:
        return function(*unflatten(treedef, arrays))

    return scope, specs, trace_function(call, specs, scope, function_name(function))


def require_function(name: str, function: object, parameters: Sequence[str] | None = None) -> None:
    """Raise ArgumentError for what cannot be called, or not with arguments for these parameters."""
    if not callable(function):
        takes = "is a function" if name.startswith("the ") else "takes a function first"
        raise ArgumentError(f"{name} {takes}, not {kind_of(function)}{where()}")
    if parameters is None:
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        given = ", ".join(parameters)
        raise ArgumentError(
            f"{name} calls {function_name(function)!r} with ({given}), but its parameters are {signature}: "
            f"{error}{where()}"
        ) from None


def function_name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", type(function).__name__)
