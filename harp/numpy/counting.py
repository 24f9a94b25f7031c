"""Statistics that count or weigh: averages, covariances, bins and histograms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.checks import as_count
from harp.numpy.complexes import conj, imag, real
from harp.numpy.creation import linspace, zeros
from harp.numpy.cumulative import diff
from harp.numpy.elementwise import clip, logical_and, logical_or, sqrt
from harp.numpy.elementwise import where as choose
from harp.numpy.joining import concatenate
from harp.numpy.linalg.products import diagonal, matmul, promoted
from harp.numpy.manipulation import broadcast_to, flip, ravel, reshape
from harp.numpy.reductions import any as any_
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import mean
from harp.numpy.reductions import min as min_
from harp.numpy.reductions import sum as sum_
from harp.numpy.sorting import of_one_shape, searchsorted
from harp.trace.array.arithmetic import (
    add,
    divide,
    equal,
    greater_equal,
    less,
    less_equal_,
    multiply,
    not_equal,
    subtract,
)
from harp.trace.array.array import Array, node_of
from harp.trace.array.operators import Operand
from harp.trace.array.primitives import (
    Axis,
    as_array,
    as_tuple,
    common_dtype,
    known_numbers,
    normalize_axes,
    require_known,
    to_shape,
)
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DTypeLike, as_dtype, bool_, i64
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, to_index, unify, wrap
from harp.trace.source_locations import plural, where


def ptp(a: Operand, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest element minus the smallest over axes; NaN if there is one. Raises ShapeError over no elements.

    >>> import harp.numpy as hnp
    >>> ptp(hnp.asarray([4.0, 1.0, 2.0]))
    Array(3.)
    """
    return subtract(max_(a, axis, keepdims), min_(a, axis, keepdims))


def average(
    a: object, axis: Axis = None, weights: object = None, returned: bool = False, *, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """The mean over axes, with weights: of the shape of `a`, or a vector along the one axis.

    With `returned` also the sum of the weights. Raises ShapeError for weights that do not fit.

    >>> import harp.numpy as hnp
    >>> average(hnp.asarray([1.0, 4.0]), weights=hnp.asarray([2.0, 1.0]))
    Array(2.)
    """
    array = as_array(a)
    if weights is None:
        result = mean(array, axis, keepdims=keepdims)
        count = divide(array.size, result.size) if result.ndim else as_array(array.size).astype(result.kind)
        return (result, broadcast_to(count.astype(result.kind), result.shape)) if returned else result
    given = _spread(as_array(weights), array, axis)
    dtype = common_dtype((array, given))[0]
    dtype = dtype if dtype.is_inexact else dtypes.f64
    total = sum_(given, axis, dtype, keepdims=keepdims)
    result = divide(sum_(multiply(array.astype(dtype), given.astype(dtype)), axis, keepdims=keepdims), total)
    return (result, broadcast_to(total, result.shape)) if returned else result


def _spread(weights: Array, array: Array, axis: Axis) -> Array:
    """The weights in the shape of the array, of which they may have the one axis only."""
    axes = normalize_axes(axis, array.ndim)
    if weights.ndim == array.ndim:
        return of_one_shape("average, for x and weights,", array, weights)[1]
    if weights.ndim != 1 or len(axes) != 1:
        raise ShapeError(
            f"the weights of average, with {plural(weights.ndim, 'axes')}, do not fit an array with {array.ndim}: "
            "they have its "
            f"shape, or are a vector along the one axis{where()}"
        )
    sizes = node_of(weights).shape[0], node_of(array).shape[axes[0]]
    unify(*sizes, lambda: f"average needs as many weights as elements along axis {axes[0]}")
    return broadcast_to(reshape(weights, (-1, *(1,) * (array.ndim - 1 - axes[0]))), array.shape)


def cov(
    m: object,
    y: object = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: object = None,
    fweights: object = None,
    aweights: object = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of variables, which are rows (or columns, without `rowvar`), each a sequence of observations.

    `y` has further variables. Sums are divided by n - 1, by n with `bias`, or by n - ddof. A vector is one variable.
    An observation counts as often as `fweights` says, and weighs as much as `aweights` says: vectors of an integer and
    of a number for each. Raises ShapeError for more than two axes, DTypeError for integers as `dtype` and for other
    `fweights`.

    >>> import harp.numpy as hnp
    >>> cov(hnp.asarray([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]))
    Array([[ 1. , -0.5],
           [-0.5,  1. ]])
    """
    rows = _variables(m, rowvar)
    if y is not None:
        rows = concatenate(promoted((rows, _variables(y, rowvar))), 0)
    if dtype is not None and not as_dtype(dtype).is_inexact:
        raise DTypeError(f"cov is computed in floats, not in {as_dtype(dtype)}{where()}")
    if dtype is not None or not rows.kind.is_inexact:
        rows = rows.astype(dtypes.f64 if dtype is None else dtype)
    less_than_n = (0 if bias else 1) if ddof is None else ddof
    weights = [_weights(name, w, rows) for name, w in (("fweights", fweights), ("aweights", aweights)) if w is not None]
    if not weights:
        centred = weighted = subtract(rows, mean(rows, 1, keepdims=True))
        count = clip(subtract(rows.shape[1], less_than_n), 0)
    else:
        w = math.prod(weights[1:], start=weights[0])
        total = sum_(w)
        centred = subtract(rows, divide(sum_(multiply(rows, w), 1, keepdims=True), total))
        weighted = multiply(centred, w)
        spread = total if aweights is None else divide(sum_(multiply(w, weights[-1])), total)
        count = clip(subtract(total, less_than_n if aweights is None else multiply(less_than_n, spread)), 0)
    products = matmul(centred, conj(weighted).T)
    result = divide(products, count.astype(dtypes.real_of(rows.kind)))
    return reshape(result, ()) if as_array(m).ndim < 2 and y is None else result


def _weights(name: str, weights: object, rows: Array) -> Array:
    array = as_array(weights)
    if name == "fweights" and not array.kind.is_integer:
        raise DTypeError(f"fweights of cov are integers, not {array.dtype}{where()}")
    if array.ndim != 1:
        raise ShapeError(f"{name} of cov is a vector, a number for each observation{where()}")
    unify(node_of(array).shape[0], node_of(rows).shape[1], lambda: f"{name} of cov has a number for each observation")
    return array.astype(dtypes.real_of(rows.kind))


def _variables(m: object, rowvar: bool) -> Array:
    array = as_array(m)
    if array.ndim > 2:
        raise ShapeError(f"cov takes vectors and matrices, not {plural(array.ndim, 'axes')}{where()}")
    if array.ndim < 2:
        return reshape(array, (1, -1))
    return array if rowvar else array.T


def corrcoef(x: object, y: object = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables, given as in `cov`: between -1 and 1; NaN for a constant variable.

    >>> import harp.numpy as hnp
    >>> corrcoef(hnp.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return divide(c, c)
    deviations = sqrt(real(diagonal(c)))
    result = divide(divide(c, deviations[:, None]), deviations[None])
    if result.kind.is_complex:
        return add(clip(real(result), -1, 1), multiply(clip(imag(result), -1, 1), 1j))
    return clip(result, -1, 1)


def bincount(x: object, weights: object = None, minlength: object = 0, *, length: object = None) -> Array:
    """How often each of the integers 0, 1, ... occurs in a vector, or the sums of weights at its places.

    There are as many as the largest one needs, at least `minlength`. With `length`, which must be given in a traced
    function, there are so many: other integers are left out. Raises ArgumentError for negative integers and for floats,
    ShapeError unless there is a weight for each, ConcretizationError where the number of results is not known.

    >>> import harp.numpy as hnp
    >>> bincount(hnp.asarray([0, 2, 2]))
    Array([1, 0, 2])
    """
    places = as_array(x)
    if places.ndim != 1 or not (places.kind.is_integer or places.kind is bool_):
        raise ArgumentError(
            f"bincount takes a vector of integers, not {places.dtype} with {plural(places.ndim, 'axes')}{where()}"
        )
    size = _bins(places, minlength) if length is None else wrap(as_count("the length of bincount", length))
    places = places.astype(i64)  # in which the size fits
    places = choose(less(places, 0), size, places)  # a negative index counts from the end
    if weights is None:
        return zeros((size,), i64).at[places].add(1, mode="drop")
    given = as_array(weights)
    given = given if given.kind.is_inexact else given.astype(dtypes.f64)
    places, given = of_one_shape("bincount, for x and weights,", places, given)
    return zeros((size,), given.kind).at[places].add(given, mode="drop")


def _bins(places: Array, minlength: object) -> int:
    known = require_known(
        places,
        "how many results bincount has depends on numbers that are not known while a function is traced; say how many "
        "are wanted, bincount(..., length=n)",
    )
    if known.size and int(known.min()) < 0:
        raise ArgumentError(f"bincount counts integers from 0 on, not {int(known.min())}{where()}")
    return max(int(known.max()) + 1 if known.size else 0, int(wrap(as_count("the minlength of bincount", minlength))))


def digitize(x: object, bins: object, right: bool = False) -> Array:
    """Into which bin each element falls (int64): between bins[i-1] and bins[i], the lower end in it, or the upper one
    if `right`. The bins increase or decrease; NaN is the largest.

    >>> import harp.numpy as hnp
    >>> digitize(hnp.asarray([0.5, 2.0]), hnp.asarray([0.0, 1.0, 2.0]))
    Array([1, 3])
    """
    edges = as_array(bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize takes a vector of bins, not {plural(edges.ndim, 'axes')}{where()}")
    side = "left" if right else "right"
    up = searchsorted(edges, x, side=side)
    known = known_numbers(edges)
    # NaN is the largest, as in `sort`.
    if known is not None and (known.size < 2 or known[0] <= known[-1] or known[-1] != known[-1]):
        return up
    down = subtract(edges.shape[0], searchsorted(flip(edges), x, side=side))
    if known is not None:
        return down
    rise = logical_or(less_equal_(edges[:1], edges[-1:]), not_equal(edges[-1:], edges[-1:]))
    return choose(any_(rise), up, down)  # any, as there may be no edges


def histogram_bin_edges(a: object, bins: object = 10, range: object = None, weights: object = None) -> Array:
    """The edges of `bins` bins of equal width from the smallest to the largest element, or over a range (low, high).

    Those of no elements go from 0 to 1. An array of edges is returned as it is. Raises ShapeError for no bins,
    ArgumentError for rules by name; where they are known, for a range that is not finite or decreases, for edges that
    decrease, and for more bins than there are numbers for their edges. Edges from unknown NaN are NaN. Edges have the
    dtype of a floating array; between the Python numbers of a range they are computed in float64, as in NumPy.

    >>> import harp.numpy as hnp
    >>> hnp.histogram_bin_edges(hnp.asarray([0.0, 1.0, 4.0]), bins=4)
    Array([0., 1., 2., 3., 4.])
    """
    if isinstance(bins, str):
        raise ArgumentError(f"bins are a number, or an array of edges, not the rule {bins!r}{where()}")
    array = as_array(a)
    edges = as_array(np.asarray(bins) if isinstance(bins, (list, tuple)) else bins)
    if edges.ndim == 1:
        _require_rising(edges, False, "the edges of histogram increase: sort them")
        return edges
    number = wrap(as_count("the bins of histogram", bins, 1) + 1)
    target = array.kind if array.kind.is_float else dtypes.f64
    if range is None and ask(Relation.ZERO, to_index(array.size), "histogram asks whether there are elements"):
        range = (0.0, 1.0)
    low, high = (min_(array), max_(array)) if range is None else _range(range)
    # Python's numbers are float64, as in NumPy: only the edges are rounded.
    inner = common_dtype((low, high))[0] if range is not None else target
    low, high = (end.astype(inner if inner.is_float else dtypes.f64) for end in (low, high))
    first, last = known_numbers(low), known_numbers(high)
    if not all(end is None or np.isfinite(end) for end in (first, last)):
        raise ArgumentError(f"histogram needs a finite range, not ({low}, {high}); give range=(low, high){where()}")
    if first is not None and last is not None and float(first) > float(last):
        raise ArgumentError(f"the range of histogram, ({low}, {high}), decreases{where()}")
    same = equal(low, high)
    low, high = choose(same, subtract(low, 0.5), low), choose(same, add(high, 0.5), high)
    edges = linspace(low, high, number).astype(target)
    _require_rising(edges, True, f"{edges.dtype} has too few numbers from {low} to {high} for {bins} bins of histogram")
    return edges


def _range(range: object) -> tuple[Array, Array]:
    ends = tuple(as_array(range)) if isinstance(range, (np.ndarray, Array)) else as_tuple(range)
    if len(ends) != 2:
        raise ArgumentError(f"the range of histogram is (low, high), not {range!r}{where()}")
    return as_array(ends[0]), as_array(ends[1])


def _require_rising(edges: Array, strictly: bool, complaint: str) -> None:
    """Raise ArgumentError for known edges that are not in order, or where there are equal ones."""
    known = known_numbers(edges)
    compare = np.less if strictly else np.less_equal
    if known is not None and not np.all(compare(known[:-1], known[1:])):
        raise ArgumentError(f"{complaint}{where()}")


def histogram(
    a: object, bins: object = 10, range: object = None, density: bool = False, weights: object = None
) -> tuple[Array, Array]:
    """How many elements fall into each bin, and the edges: the upper end of the last bin is in it.

    See `histogram_bin_edges`, also for what it raises. With weights, of the shape of `a`, their sums; with `density`
    divided by those of all and the widths. NaN are in no bin. Raises ShapeError for weights of another shape.

    >>> import harp.numpy as hnp
    >>> histogram(hnp.asarray([1.0, 2.0, 2.5]), bins=2, range=(0.0, 4.0))
    (Array([1, 2]), Array([0., 2., 4.]))
    """
    array, edges = ravel(a), histogram_bin_edges(a, bins, range)
    place, bin_count = _bin_of(array, edges)
    given = None
    if weights is not None:
        given = ravel(of_one_shape("histogram, for a and weights,", as_array(a), as_array(weights))[1])
    dtype: DTypeLike = i64 if given is None else given.kind if given.kind.is_inexact else dtypes.f64
    counts = (
        zeros((bin_count,), dtype).at[place].add(1 if given is None else given.astype(as_dtype(dtype)), mode="drop")
    )
    if density:
        widths = diff(edges)
        counts = divide(divide(counts, widths), sum_(counts))
    return counts, edges


def _bin_of(array: Array, edges: Array) -> tuple[Array, Any]:
    """In which bin each element is, and how many there are, which is the place of elements outside."""
    (edge_count,) = to_shape(edges.shape)
    bin_count = wrap(edge_count - 1)
    place = subtract(searchsorted(edges, array, side="right"), 1)
    place = choose(equal(array, edges[-1]), bin_count - 1, place)
    inside = logical_and(greater_equal(array, edges[0]), less_equal_(array, edges[-1]))
    return choose(inside, place, bin_count), bin_count


def histogram2d(
    x: object, y: object, bins: object = 10, range: object = None, density: bool = False, weights: object = None
) -> tuple[Array, Array, Array]:
    """How many points (x, y) fall into each bin of a grid (float64), and the edges along both axes.

    `bins` is a number or edges for both axes, or a list with those of each; see `histogramdd`.

    >>> histogram2d(linspace(0, 1, 2), linspace(0, 4, 2), bins=2)[0]
    Array([[1., 0.],
           [0., 1.]])
    """
    both = isinstance(bins, (list, tuple)) and len(bins) == 2
    counts, edges = histogramdd([x, y], bins if both else [bins, bins], range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: object, bins: object = 10, range: object = None, density: bool = False, weights: object = None
) -> tuple[Array, list[Array]]:
    """How many points fall into each bin of a grid (float64), and the edges along each axis.

    `sample` has a row for each point, or is a list of the coordinates. `bins` is a number, or a list of numbers and
    edges, one for each axis; so is `range`, of pairs or None. With weights their sums; with `density` divided by the
    sum of all and the volumes. Raises ArgumentError for another number of bins or ranges; see `histogram`.

    >>> histogramdd(zeros((5, 3)), bins=2)[0].shape
    (2, 2, 2)
    """
    given = sample if isinstance(sample, (list, tuple)) else as_array(sample).T
    columns = of_one_shape("histogramdd", *map(as_array, given))
    listed = [list(g) if isinstance(g, (list, tuple)) else [g] * len(columns) for g in (bins, range)]
    if any(len(given) != len(columns) for given in listed):
        raise ArgumentError(f"histogramdd has bins and ranges for each of {plural(len(columns), 'axes')}{where()}")
    # Not rounded to float32 over a range, as in NumPy, whose `histogram` rounds them.
    rows = zip(columns, *listed, strict=True)
    edges = [histogram_bin_edges(c if r is None else c.astype(dtypes.f64), b, r) for c, b, r in rows]
    flat, outside = as_array(0), as_array(False)
    counts: list[Any] = []
    for column, along in zip(columns, edges, strict=True):
        place, count = _bin_of(column, along)
        flat, outside = add(multiply(flat, count), place), logical_or(outside, equal(place, count))
        counts.append(count)
    whole = math.prod(counts)
    added = 1.0 if weights is None else of_one_shape("histogramdd", columns[0], as_array(weights))[1]
    found = reshape(zeros((whole,)).at[choose(outside, whole, flat)].add(added, mode="drop"), tuple(counts))
    if density:
        total = sum_(found)
        for k, along in enumerate(edges):
            found = divide(found, reshape(diff(along), (-1, *(1,) * (len(edges) - 1 - k))))
        found = divide(found, total)
    return found, edges
