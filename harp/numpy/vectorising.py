"""Functions of functions. `vectorize`: a function of numbers, or of arrays of a given number of axes, broadcasts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError, ShapeError
from harp.numpy.choosing import indices
from harp.numpy.manipulation import broadcast_to, expand_dims, moveaxis, shape_of
from harp.numpy.ufuncs import with_methods
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.array.primitives import (
    as_array,
    as_named,
    as_tuple,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
)
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, DTypeLike, as_dtype
from harp.trace.sizes.size import resolve, unify, wrap
from harp.trace.source_locations import plural, where
from harp.trace.tracer import function_name, require_function
from harp.transforms.batching.vmap import vmap

Function = Callable[..., Any]
_LIST = r"\([^()]*\)(?:,\([^()]*\))*"
_SIGNATURE = re.compile(f"({_LIST})?->({_LIST})")


class _Signature(NamedTuple):
    """The names of the axes of each argument and of each result."""

    text: str
    arguments: list[list[str]]
    results: list[list[str]]


def vectorize(
    pyfunc: Function | None = None,
    otypes: str | Sequence[object] | None = None,
    doc: str | None = None,
    excluded: Iterable[int | str] | None = None,
    cache: bool = False,
    signature: str | None = None,
) -> Function:
    """A function of numbers as one of arrays, which broadcast; with a signature, one of arrays of a few axes.

    `signature` is NumPy's: "(m,n),(n)->(m)" is a function of a matrix and a vector that returns a vector; axes in front
    broadcast, and equal names are equal sizes. Without one, arguments and results are numbers. The function is traced
    once for all elements, as by `vmap`: it is written with functions of `harp.numpy`, and has no `if` on numbers.
    `excluded` has the positions and names of arguments that are passed as they are. `otypes` has the dtypes of the
    results, a string of NumPy's characters or a list. `doc` is a docstring; `cache` is NumPy's, and changes nothing.
    Without a function it is a decorator.

    Raises ArgumentError for a signature that makes no sense, or that has another number of arguments or results;
    ShapeError for axes and sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> distance = hnp.vectorize(lambda x, y: hnp.linalg.norm(x - y), signature="(n),(n)->()")
    >>> distance(hnp.zeros((2, 1, 3)), hnp.ones((4, 3))).shape
    (2, 4)
    """
    options = (
        None if otypes is None else [as_dtype(each) for each in _listed("otypes", otypes)],
        doc,
        frozenset(() if excluded is None else _listed("excluded", excluded)),
        None if signature is None else _parse(signature),
    )
    if not all(isinstance(k, (int, str)) for k in options[2]):
        raise ArgumentError(f"excluded has positions and names of arguments, not {excluded!r}{where()}")
    return partial(_Vectorized, options=options) if pyfunc is None else _Vectorized(pyfunc, options)


_Options = tuple[list[DType] | None, str | None, frozenset[int | str], _Signature | None]


def _listed(name: str, given: Iterable[Any]) -> Iterable[Any]:
    """Raises ArgumentError for what is one thing and no list of them."""
    if not isinstance(given, Iterable) or isinstance(given, type):
        text = getattr(given, "__name__", repr(given))
        raise ArgumentError(f"{name} of vectorize is a list, such as [{text}]{where()}")
    return given


class _Vectorized:
    """A function that broadcasts its arguments."""

    def __init__(self, pyfunc: Function, options: _Options) -> None:
        require_function("vectorize", pyfunc)
        update_wrapper(self, pyfunc)
        self._function, self._name = pyfunc, function_name(pyfunc)
        self._otypes, doc, self._excluded, self._signature = options
        self.__doc__ = doc or pyfunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        every: dict[int | str, Any] = dict(enumerate(args))
        every.update(kwargs)
        keys = [k for k in every if k not in self._excluded]
        arrays = [as_named(every[k], f"argument {k} of {self._name!r}") for k in keys]
        sizes: dict[str, Index] = {}
        ranks = self._ranks(arrays, sizes)
        is_tuple = False

        def call(*values: Array) -> tuple[Array, ...]:
            nonlocal is_tuple
            result = _called(self._function, every | dict(zip(keys, values, strict=True)), len(args))
            is_tuple = isinstance(result, tuple)
            return self._checked(result if is_tuple else (result,), sizes)

        shapes = [shape_of(array) for array in arrays]
        cuts = [len(shape) - rank for shape, rank in zip(shapes, ranks, strict=True)]
        batch = broadcast_shapes([shape[:cut] for shape, cut in zip(shapes, cuts, strict=True)])
        mapped: Function = call
        for count in range(1, len(batch) + 1):  # from the last axis of the batch to the first
            mapped = vmap(mapped, in_axes=tuple(0 if cut >= count else None for cut in cuts))
        results = mapped(*(_spread(array, cut, batch) for array, cut in zip(arrays, cuts, strict=True)))
        return tuple(results) if is_tuple else results[0]

    def _ranks(self, arrays: Sequence[Array], sizes: dict[str, Index]) -> list[int]:
        """How many axes the function sees of each argument; their sizes are noted by their names."""
        if self._signature is None:
            return [0] * len(arrays)
        text, cores, _ = self._signature
        if len(cores) != len(arrays):
            raise ArgumentError(
                f"signature {text!r} of {self._name!r} has {plural(len(cores), 'arguments')}, but the call has "
                f"{plural(len(arrays), 'arrays')}{where()}"
            )
        for number, (array, core) in enumerate(zip(arrays, cores, strict=True)):
            what = f"argument {number} of {self._name!r}"
            if array.ndim < len(core):
                raise ShapeError(f"{what} has {plural(array.ndim, 'axes')}, fewer than in signature {text!r}{where()}")
            _note(core, shape_of(array)[array.ndim - len(core) :], sizes, what)
        return list(map(len, cores))

    def _checked(self, results: Sequence[object], sizes: dict[str, Index]) -> tuple[Array, ...]:
        """The results for one element, held to the signature, with the dtypes that are asked for."""
        arrays = [as_array(result) for result in results]
        said = f"by its signature {self._signature.text!r}" if self._signature else "without a signature"
        cores = self._signature.results if self._signature else [[] for _ in arrays]
        dtypes = [a.kind for a in arrays] if self._otypes is None else self._otypes
        for wanted, what in ((len(cores), said), (len(dtypes), "by otypes")):
            if wanted != len(arrays):
                many = plural(len(arrays), "arrays")
                raise ArgumentError(f"{self._name!r} returns {many}, but {wanted} {what}{where()}")
        for number, (array, core) in enumerate(zip(arrays, cores, strict=True)):
            what = f"result {number} of {self._name!r}"
            if array.ndim != len(core):
                raise ShapeError(f"{what} has {plural(array.ndim, 'axes')}, but {len(core)} {said}{where()}")
            _note(core, shape_of(array), sizes, what)
        return tuple(astype(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True))


def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: object = None) -> Function:
    """A function of numbers as one of arrays, as by `vectorize`, with the methods of NumPy's ufuncs if it takes two.

    `identity` is what its `reduce` begins with.

    >>> frompyfunc(lambda x, y: x * y + 1, 2, 1).reduce(np.arange(4))
    Array(10)
    """
    result = vectorize(func)
    if nout == 1:
        with_methods(result, np.frompyfunc(func, nin, nout, identity=identity))
    return result


def fromfunction(function: Function, shape: object, *, dtype: DTypeLike = float, **kwargs: Any) -> Any:
    """The function of the positions along each axis, which it is called with once, as arrays of this shape.

    >>> fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]])
    """
    require_function("fromfunction", function)
    return function(*indices(shape, dtype), **kwargs)


def apply_along_axis(func1d: Function, axis: int, arr: object, *args: Any, **kwargs: Any) -> Array:
    """The function of each row along an axis, whose place the axes of its result take; it is traced once, as by `vmap`.

    >>> apply_along_axis(lambda row: row[::-1], 1, np.arange(4).reshape(2, 2))
    Array([[1, 0],
           [3, 2]])
    """
    require_function("apply_along_axis", func1d)
    array = as_array(arr)
    k, others = normalize_axis(axis, array.ndim), array.ndim - 1
    mapped: Function = lambda row: as_array(func1d(row, *args, **kwargs))  # noqa: E731
    for _ in range(others):
        mapped = vmap(mapped)
    result: Array = mapped(moveaxis(array, k, -1))
    own = result.ndim - others
    return moveaxis(result, tuple(range(others, others + own)), tuple(range(k, k + own)))


def apply_over_axes(func: Function, a: object, axes: object) -> Array:
    """`func(a, axis)` for one axis after the other; an axis that a result lacks is kept, with one element.

    >>> import harp.numpy as hnp
    >>> apply_over_axes(hnp.sum, np.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    require_function("apply_over_axes", func)
    array = as_array(a)
    for axis in normalize_axes(as_tuple(axes), array.ndim):
        result = as_array(func(array, axis))
        array = result if result.ndim == array.ndim else expand_dims(result, axis)
    return array


def _called(function: Function, every: Mapping[int | str, Any], count: int) -> Any:
    """The function of arguments by position, which are the first ones, and by name."""
    named = {k: value for k, value in every.items() if isinstance(k, str)}
    return function(*(every[k] for k in range(count)), **named)


def _parse(signature: str) -> _Signature:
    """Raises ArgumentError."""
    found = _SIGNATURE.fullmatch("".join(str(signature).split()))
    if found is None:
        raise ArgumentError(f"{signature!r} is no signature such as '(m,n),(n)->(m)'{where()}")
    lists = [re.findall(r"\(([^()]*)\)", part or "") for part in found.groups()]
    cores = [[each.split(",") if each else [] for each in part] for part in lists]
    for name in (name for part in cores for core in part for name in core):
        if not name.isidentifier():
            raise ArgumentError(f"signature {signature!r} has {name!r}; axes have names of letters{where()}")
    return _Signature(str(signature), *cores)


def _note(core: Sequence[str], shape: Sequence[Index], sizes: dict[str, Index], what: str) -> None:
    """Hold the sizes of axes of one name to be equal. Raises ShapeError."""
    for name, size in zip(core, shape, strict=True):
        sizes[name] = unify(sizes.get(name, size), size, partial(_differs, what, name))


def _differs(what: str, name: str) -> str:
    return f"{what}: the size of axis {name!r} of the signature"


def _spread(array: Array, cut: int, batch: Sequence[Index]) -> Array:
    """The array with those of its axes that broadcast as large as in the others."""
    shape = (*batch[len(batch) - cut :], *shape_of(array)[cut:])
    return broadcast_to(array, tuple(wrap(resolve(size)) for size in shape))
