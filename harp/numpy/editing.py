"""Elements put in, taken out and replaced, by positions or by a mask. Arrays do not change: results are new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from harp.errors import ArgumentError, ConcretizationError, IndexOutOfRangeError, ShapeError
from harp.numpy.checks import as_positions, require_held, require_in_new_array, require_kind
from harp.numpy.choosing import select
from harp.numpy.creation import arange, ones
from harp.numpy.cumulative import cumsum
from harp.numpy.elementwise import clip, remainder
from harp.numpy.elementwise import where as choose_
from harp.numpy.indexing import take
from harp.numpy.joining import concatenate, resize
from harp.numpy.manipulation import broadcast_to, expand_dims, moveaxis, ravel, reshape
from harp.numpy.sets import flatnonzero
from harp.numpy.sorting import argsort, of_one_shape
from harp.trace.array.arithmetic import less, multiply
from harp.trace.array.array import Array
from harp.trace.array.index_plan import as_index_array, is_data
from harp.trace.array.primitives import Axis, as_array, known_numbers, map_, normalize_axis, require_known
from harp.trace.array.updates import put as at_put
from harp.trace.scalar.dtypes import bool_
from harp.trace.sizes.size import Size
from harp.trace.source_locations import plural, where


def _along(x: object, axis: Axis) -> tuple[Array, int]:
    """The array and an axis of it; flattened, and its one axis, for None."""
    array = ravel(x) if axis is None else as_array(x)
    return array, normalize_axis(0 if axis is None else axis, array.ndim)


def _places(name: str, obj: object, size: Size | int, ends: int) -> Array | None:
    """The positions, as int64, that a slice, integers or a mask say of an axis; None for one that is no data, the
    end of the axis among them where `ends` is 1.

    Raises IndexOutOfRangeError.
    """
    if isinstance(obj, slice):
        return as_array(np.arange(size)[obj]) if isinstance(size, int) else arange(size)[obj]
    obj = list(obj) if isinstance(obj, tuple) else obj
    if not is_data(obj):
        arange(size + ends)[obj]
        return None
    given = as_index_array(obj)
    if given.kind is bool_:
        return flatnonzero(given)
    known, places = known_numbers(given), as_positions("the positions", given)
    if (
        known is not None
        and known.size
        and isinstance(size, int)
        and not -size <= known.min() <= known.max() < size + ends
    ):
        raise IndexOutOfRangeError(f"a position of {name} is outside an axis of size {size}: {known}{where()}")
    return places


def insert(arr: object, obj: object, values: object, axis: int | None = None) -> Array:
    """The array with values before the elements at these positions along an axis; flattened first if it is None.

    `obj` is a position, which may be the size, several of them, a slice or a mask; a single position takes in as many
    values as there are, several take one each. Values broadcast, and are converted. Positions that are data and lie
    outside mean the nearest end. Raises IndexOutOfRangeError, ShapeError, DTypeError for floats among integers.

    >>> insert(arange(3), 1, 9), insert(arange(3), [0, 2], 9)
    (Array([0, 9, 1, 2]), Array([9, 0, 1, 9, 2]))
    """
    array, k = _along(arr, axis)
    size, before = array.shape[k], (slice(None),) * k
    require_kind("the values of insert", as_array(values), array.kind)
    given = map_(lambda e: e, values, to=array.kind)
    given = expand_dims(given, tuple(range(array.ndim - given.ndim))) if given.ndim < array.ndim else given
    places = _places("insert", obj, size, 1)
    given = given if places is not None and places.ndim else moveaxis(given, 0, k)
    count = given.shape[k] if places is None or not places.ndim or places.shape == (1,) else places.shape[0]
    block = broadcast_to(given, (*array.shape[:k], count, *array.shape[k + 1 :]))
    if places is None:
        return concatenate([array[(*before, slice(None, obj))], block, array[(*before, slice(obj, None))]], k)
    places = broadcast_to(choose_(less(places, 0), places + size, places), (count,))
    order = argsort(concatenate([multiply(2, arange(size)) + 1, multiply(2, clip(places, 0, size))]))
    return take(concatenate([array, block], k), order, k)


def delete(arr: object, obj: object, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """The array without the elements at these positions along an axis; flattened first if it is None.

    `obj` is a position, several of them, a slice or a mask. Positions that are data are held to differ by
    `assume_unique_indices`, for how many results there are depends on that. Raises IndexOutOfRangeError, and
    ConcretizationError where the number of results is not known.

    >>> delete(arange(4), 1), delete(arange(4), slice(0, 4, 2))
    (Array([0, 2, 3]), Array([1, 3]))
    """
    array, k = _along(arr, axis)
    size, before = array.shape[k], (slice(None),) * k
    places = _places("delete", obj, size, 0)
    if places is None:
        rest = array[(*before, slice(obj, None))]
        return concatenate([array[(*before, slice(None, obj))], rest[(*before, slice(1, None))]], k)
    known: Any = known_numbers(places)
    alike = known is not None and (isinstance(size, int) or (known < 0).all() or (known >= 0).all())
    if alike:  # each position once; of a size that is not known only those of one sign are comparable
        known = np.unique(known + size * (known < 0) if isinstance(size, int) else known)
        places = as_array(known)
    if not (isinstance(obj, slice) or assume_unique_indices or not places.ndim or alike):
        raise ConcretizationError(
            f"how many results delete has depends on numbers that are not known while a function is traced; say "
            f"assume_unique_indices=True if all positions differ{where()}"
        )
    if known is not None and isinstance(size, int):
        return take(array, np.delete(np.arange(size), known), k)
    kept = at_put(ones((size,), bool_), (places,), False, "set", None, False)
    return take(array, flatnonzero(kept, size=size - places.size), k)


def compress(
    condition: object, a: object, axis: int | None = None, *, size: object = None, fill_value: object = 0
) -> Array:
    """The slices along an axis for which a vector is not zero; flattened first if it is None; see `nonzero` for `size`.

    >>> compress([False, True], arange(3))
    Array([1])
    """
    array, k = _along(a, axis)
    mask = as_array(np.asarray(condition) if isinstance(condition, (list, tuple)) else condition)
    if mask.ndim != 1:
        raise ShapeError(f"the condition of compress is a vector, not {plural(mask.ndim, 'axes')}{where()}")
    if size is None:
        return take(array, flatnonzero(mask), k)
    return take(array, flatnonzero(mask, size=size, fill_value=array.shape[k]), k, "fill", fill_value)


def place(arr: object, mask: object, vals: object, *, inplace: bool = False) -> Array:
    """The array with values, one after the other and again from the first, where a mask of its shape holds.

    Arrays do not change, so it is returned. Raises ArgumentError for `inplace=True`, ShapeError for another shape.

    >>> place(ones(4), arange(4) != 1, 5)
    Array([5., 1., 5., 5.])
    """
    require_in_new_array("place", inplace)
    array, held = of_one_shape("place, for arr and mask,", as_array(arr), as_array(mask).astype(bool_))
    require_held("the values of place", vals, array.kind)
    values = take(ravel(map_(lambda e: e, vals, to=array.kind)), cumsum(ravel(held)) - 1, mode="wrap")
    return choose_(held, reshape(values, array.shape), array)


def put(a: object, ind: object, v: object, mode: str | None = None, *, inplace: bool = False) -> Array:
    """The array with values, again from the first where there are fewer, at these positions of the flattened one.

    Arrays do not change, so it is returned. Positions outside are as in `x.at[...].set`; `mode` is "clip", "drop" or
    "wrap". Raises ArgumentError for `inplace=True`, IndexOutOfRangeError.

    >>> put(ones(4), [0, 2], 5)
    Array([5., 1., 5., 1.])
    """
    require_in_new_array("put", inplace)
    array, places = as_array(a), ravel(as_positions("the positions of put", as_index_array(ind)))
    if mode == "wrap":
        places, mode = remainder(places, array.size), None
    updates = resize(ravel(as_array(v)), places.shape)
    return reshape(at_put(ravel(array), (places,), updates, "set", mode, False), array.shape)


def choose(a: object, choices: Sequence[object] | Array, mode: str = "raise") -> Array:
    """Elementwise the element of the choice, an array of a list, that an integer says; all broadcast.

    `mode` says what integers outside mean: "clip" the nearest choice, "wrap" counts around; "raise" is an error where
    they are known, and clips in traced functions. Raises IndexOutOfRangeError, ArgumentError for other modes.

    >>> choose(arange(2), [7, 10 * ones(2)])
    Array([ 7., 10.])
    """
    if mode not in ("raise", "clip", "wrap"):
        raise ArgumentError(f"mode is 'raise', 'clip' or 'wrap', not {mode!r}{where()}")
    listed, places = list(choices), as_positions("the integers of choose", a)
    known = known_numbers(places)
    if mode == "raise" and known is not None and known.size and not 0 <= known.min() <= known.max() < len(listed):
        raise IndexOutOfRangeError(f"an integer of choose is outside {plural(len(listed), 'choices')}{where()}")
    places = remainder(places, len(listed)) if mode == "wrap" else clip(places, 0, len(listed) - 1)
    return select([places == k for k in range(len(listed))], listed)


def trim_zeros(filt: object, trim: Literal["f", "b", "fb", "bf"] = "fb") -> Array:
    """A vector without the zeros at its front, its back, or both ("f", "b", "fb").

    Raises ConcretizationError in a traced function, where the number of results is not known.

    >>> trim_zeros(arange(3))
    Array([1, 2])
    """
    reason = "how many elements trim_zeros keeps depends on numbers that are not known yet"
    numbers = require_known(as_array(filt), reason)
    if numbers.ndim != 1 or trim not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros takes a vector, and trims 'f', 'b' or 'fb', not {trim!r}{where()}")
    return as_array(np.trim_zeros(numbers, trim))
