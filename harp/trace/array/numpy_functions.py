"""NumPy's functions of harp's arrays: `np.sin(x)` is `harp.numpy.sin(x)`, by the protocols that NumPy has for that.

Functions of traced arrays go to the function of the same name in harp.numpy, and what there is not is an error that
says so. Of arrays that have their numbers NumPy computes what harp.numpy has not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harp.errors import ArgumentError, ConcretizationError, MutationError
from harp.lazy import FUNCTIONS
from harp.trace.array.operators import is_operand
from harp.trace.sizes.size import Size
from harp.trace.source_locations import where

# NumPy's functions that change an argument.
_CHANGES_ARGUMENT = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
# Their results are often written to.
_TO_BE_CHANGED = frozenset(("copy", "empty_like", "full_like", "ones_like", "zeros_like"))
# Python's methods for operators of sizes: of the first operand, and of the second.
_OF_SIZES = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "divmod": ("__divmod__", "__rdivmod__"),
    "power": ("__pow__", "__rpow__"),
    "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
}


class NumpyFunctions:
    """The two protocols by which NumPy hands its functions on."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        return of_elements(ufunc, method, inputs, options)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        arguments: Sequence[object],
        options: Mapping[str, object],
    ) -> object:
        return of_arrays(function, types, arguments, options)


def of_elements(ufunc: np.ufunc, method: str, inputs: Sequence[object], options: Mapping[str, object]) -> object:
    """A ufunc, or a method of it such as `np.add.reduce`, of arrays and sizes."""
    if not all(is_operand(value) and not _is_of_time(value) for value in inputs) and method != "at":
        # No time equals a size or an array, as Python has it.
        return {"equal": False, "not_equal": True}.get(ufunc.__name__, NotImplemented)
    name = f"np.{ufunc.__name__}" if method == "__call__" else f"np.{ufunc.__name__}.{method}"
    asked = {key: value for key, value in options.items() if not _is_default(key, value)}
    if method == "__call__" and not asked and ufunc.__name__ in _OF_SIZES and len(inputs) == 2:
        if any(isinstance(value, Size) for value in inputs):
            return _of_sizes(ufunc.__name__, *inputs)
    outputs = options.get("out")
    changed = (inputs[0],) if method == "at" else outputs if isinstance(outputs, tuple) else ()
    if not is_traced(inputs) and any(isinstance(value, NumpyFunctions) for value in changed):
        advice = "write x = x.at[index].add(value)" if method == "at" else "use the result instead of out"
        raise MutationError(f"{name} would change an array of harp, and those do not change; {advice}{where()}")
    function = _of_elements(ufunc, method)
    allowed = _KEYWORDS.get(method, set())
    if method == "__call__" and function is not None and asked:
        allowed = {*inspect.signature(function).parameters} & {"axis", "keepdims"}
    if function is None or not set(asked) <= allowed:
        if not is_traced(inputs) and not is_traced(tuple(options.values())):
            return getattr(ufunc, method)(*map(_numbers, inputs), **options)
        in_place = isinstance(outputs, tuple) and outputs[0] is inputs[0]  # which is what x += y does
        if method == "at" or in_place:
            change = "x = x.at[index].add(value)" if method == "at" else "x = x + y instead of x += y"
            raise MutationError(f"{name} cannot change a NumPy array by traced numbers; write {change}{where()}")
        if function is None:
            raise _missing(name, f"harp.numpy has no {name.removeprefix('np.')} yet")
        raise _unknown_option(name, next(key for key in asked if key not in allowed))
    return function(*[_array(value) for value in inputs], **asked)


_KEYWORDS: dict[str, set[str]] = {
    "reduce": {"axis", "keepdims", "dtype", "initial", "where"},
    "accumulate": {"axis", "dtype"},
    "reduceat": {"axis", "dtype"},
}
_DEFAULTS: dict[str, object] = {"where": True, "casting": "same_kind", "order": "K", "subok": True, "keepdims": False}


def _is_default(option: str, value: object) -> bool:
    if option == "axis":  # None means all axes
        return False
    if option == "kind":  # the algorithm
        return True
    return value is None or value is np._NoValue or (option in _DEFAULTS and value is _DEFAULTS[option])


def _of_sizes(name: str, a: object, b: object) -> object:
    """The operator of sizes, as if NumPy's numbers and arrays had left it to them."""
    # NumPy makes arrays without axes of its numbers before it asks.
    a, b = (value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value for value in (a, b))
    of_first, of_second = _OF_SIZES[name]
    result: object = getattr(a, of_first)(b) if isinstance(a, Size) else getattr(b, of_second)(a)
    return result


def _of_elements(ufunc: np.ufunc, method: str) -> Callable[..., Any] | None:
    """The function of harp.numpy that computes it."""
    namespace, name = FUNCTIONS["numpy"], ufunc.__name__
    own = getattr(np, name, None) is ufunc  # scipy's have names of their own
    found: Callable[..., Any] | None = getattr(namespace if own else namespace.special, name, None)
    if method == "__call__":
        return found
    # NumPy's `at` changes its argument.
    return getattr(found, method, None) if own and method != "at" else None


def of_arrays(
    function: Callable[..., Any], types: Iterable[type], arguments: Sequence[object], options: Mapping[str, object]
) -> object:
    """Another function of NumPy: harp's for traced arrays and sizes, else what NumPy itself makes of the arrays, as
    arrays of harp."""
    if not all(issubclass(kind, (NumpyFunctions, Size, np.ndarray)) for kind in types):
        return NotImplemented
    if not is_traced((*arguments, *options.values())):
        implementation: Callable[..., Any] = getattr(function, "_implementation", function)
        result = implementation(*arguments, **options)
        return result if function.__name__ in _TO_BE_CHANGED else _kept(result)
    path = [*function.__module__.split(".")[1:], function.__name__]
    name = ".".join(path)
    if function.__name__ in _CHANGES_ARGUMENT:
        raise MutationError(
            f"np.{name} changes an array, and arrays of harp do not change; write x = x.at[index].set(value){where()}"
        )
    found: Any = FUNCTIONS["numpy"]
    for part in path:
        found = getattr(found, part, None)
    if not callable(found) or found is function:
        has = f"NumPy's {name}" if callable(found) else f"no {name} yet"
        raise _missing(f"np.{name}", f"harp.numpy has {has}")
    if name in ("shape", "ndim", "size"):
        return found(*arguments, **options)
    given, named = _translated(f"np.{name}", function, found, arguments, options)
    return found(*given, **named)


def _kept(result: Any) -> Any:
    """The result of a function of NumPy with arrays of harp in place of arrays of numbers: copies, for it may be a view
    of an array that is written to."""
    if type(result) is np.ndarray and result.dtype.kind in "biufc":
        return FUNCTIONS["asarray"](result)
    if isinstance(result, (list, tuple)):
        parts = map(_kept, result)
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def _translated(
    name: str,
    function: Callable[..., Any],
    ours: Callable[..., Any],
    arguments: Sequence[object],
    options: Mapping[str, object],
) -> tuple[list[object], dict[str, object]]:
    """The arguments as our function takes them: parameters that it has not are left out where they ask for nothing."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some of C have none
        return list(arguments), _known(name, {k: v for k, v in options.items() if v is not None}, ours, [])
    theirs, names = [*parameters], [*inspect.signature(ours).parameters]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return list(arguments), _known(name, options, ours, theirs)
    # From the first parameter on that stands elsewhere in our list, those of the same name are given by it.
    pairs = enumerate(zip(theirs, names, strict=False))
    place = next((k for k, (a, b) in pairs if a != b and (a in names or b in theirs)), len(names))
    options = {**dict(zip(theirs[place:], arguments[place:], strict=False)), **options}
    return list(arguments[:place]), _known(name, options, ours, theirs)


_ALIASES = {"a_min": "min", "a_max": "max"}


def _known(
    name: str, options: Mapping[str, object], ours: Callable[..., Any], theirs: Sequence[str]
) -> dict[str, object]:
    """The options under our names. Raises ArgumentError for one that is not there and asks for something."""
    parameters = inspect.signature(ours).parameters
    names, takes_all = [*parameters], any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known: dict[str, object] = {}
    for key, value in options.items():
        if value is np._NoValue:
            continue
        key = _ALIASES.get(key, key)
        place = theirs.index(key) if key in theirs else len(names)
        if key in names or takes_all:
            known[key] = value
        elif place < len(names) and names[place] not in theirs:
            known[names[place]] = value
        elif not _is_default(key, value) or key == "axis":
            raise _unknown_option(name, key)
    return known


def _unknown_option(name: str, option: str) -> ArgumentError:
    advice = {
        "out": "arrays do not change, so use the result",
        "where": "use harp.numpy.where on the argument or on the result",
        "initial": "combine it with the result",
        "dtype": "convert with .astype",
    }.get(option, "leave it out")
    return ArgumentError(f"{name} of a traced array has no {option}; {advice}{where()}")


def _missing(name: str, why: str) -> ConcretizationError:
    return ConcretizationError(
        f"{name} needs the numbers of a traced array: {why}; compose it from functions that are there, or call {name} "
        f"outside of the traced function{where()}"
    )


def _is_of_time(value: object) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "mM"


def is_traced(value: object) -> bool:
    """Whether there is a traced array or a size in it, also in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return any(map(is_traced, value))
    return isinstance(value, Size) or (isinstance(value, NumpyFunctions) and getattr(value, "_value", None) is None)


def _numbers(value: object) -> object:
    return np.asarray(value) if isinstance(value, NumpyFunctions) else value


def _array(value: object) -> object:
    """NumPy's functions take lists, which are arrays here only if they are said to be."""
    return FUNCTIONS["numpy"].asarray(value) if isinstance(value, (list, tuple)) else value
