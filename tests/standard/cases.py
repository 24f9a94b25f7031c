"""How each function of the standard is called in the differential tests: one row each.

A row draws positional arguments and keywords; arrays are `Drawn`. `tolerance` is relative; 0 asks for equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from draws import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REAL,
    Drawn,
    arrays,
    axes_of,
    axis_of,
    broadcasting,
    filled_shapes,
    shapes,
)
from hypothesis import strategies as st

Arguments = tuple[list[Any], dict[str, Any]]


class Case(NamedTuple):
    """How to draw the arguments of a function, and how exact it is."""

    draw: st.SearchStrategy[Arguments]
    tolerance: float = 0.0


@st.composite
def _call(draw, make: Callable[..., Arguments]) -> Arguments:
    return make(draw)


def call(make: Callable[..., Arguments], tolerance: float = 0.0) -> Case:
    """A case whose arguments `make(draw)` draws."""
    return Case(_call(make), tolerance)


def each(dtypes: tuple[str, ...], tolerance: float = 0.0) -> Case:
    """A function of one array, element by element."""
    return call(lambda draw: ([draw(arrays(dtypes))], {}), tolerance)


def pair(dtypes: tuple[str, ...], tolerance: float = 0.0, tame: bool = False) -> Case:
    """A function of two arrays that broadcast."""
    return call(lambda draw: (draw(broadcasting(2, dtypes, tame)), {}), tolerance)


def fold(dtypes: tuple[str, ...], tolerance: float = 0.0, filled: bool = False, one: bool = False, **more: Any) -> Case:
    """A reduction, over any axes or one, of arrays that may be empty or not."""

    def make(draw: Any) -> Arguments:
        x = draw(arrays(dtypes, filled_shapes if filled else shapes, tame=tolerance > 0))
        rank = len(x.shape)
        axis = draw(st.none() if one and not rank else axis_of(rank) if one else axes_of(rank))
        options = {name: draw(strategy) for name, strategy in more.items()}
        return [x], {"axis": axis, "keepdims": draw(st.booleans()), **options}

    return call(make, tolerance)


def along(dtypes: tuple[str, ...], tolerance: float = 0.0, **more: Any) -> Case:
    """A function along one axis."""

    def make(draw: Any) -> Arguments:
        x = draw(arrays(dtypes, least=1, tame=tolerance > 0))
        return [x], {"axis": draw(axis_of(len(x.shape))), **{name: draw(s) for name, s in more.items()}}

    return call(make, tolerance)


def _of_shape(*more: Any) -> Case:
    return call(lambda draw: ([draw(shapes), *(draw(m) for m in more)], {"dtype": draw(st.sampled_from([None, *ALL]))}))


def _like(*more: Any) -> Case:
    return call(
        lambda draw: (
            [draw(arrays()), *(draw(m) for m in more)],
            {"dtype": draw(st.sampled_from([None, *ALL])), "device": None},
        )
    )


def _triangle(draw: Any) -> Arguments:
    return [draw(arrays(least=2))], {"k": draw(st.integers(-5, 5))}


def _matrices(draw: Any) -> Arguments:
    m, n, k = (draw(st.integers(0, 4)) for _ in range(3))
    dtype = (draw(st.sampled_from(NUMERIC)),)
    batch = draw(st.sampled_from([((), ()), ((2,), (2,)), ((1,), (3,)), ((0,), ()), ((2, 1), (3,))]))
    left = draw(st.sampled_from([(*batch[0], m, k), (k,)]))
    right = draw(st.sampled_from([(*batch[1], k, n), (k,)]))
    return [draw(arrays(dtype, left, tame=True)), draw(arrays(dtype, right, tame=True))], {}


def _tensordot(draw: Any) -> Arguments:
    dtype = (draw(st.sampled_from(NUMERIC)),)
    p, q, r, s = (draw(st.integers(0, 3)) for _ in range(4))
    axes, left, right = draw(
        st.sampled_from(
            [
                (1, (p, q), (q, r)),
                (0, (p,), (q, r)),
                (2, (p, q, r), (q, r, s)),
                (((0, 1), (1, 0)), (p, q, r), (q, p)),
                (((-1,), (0,)), (p, q), (q,)),
            ]
        )
    )
    return [draw(arrays(dtype, left, tame=True)), draw(arrays(dtype, right, tame=True))], {"axes": axes}


def _vecdot(draw: Any) -> Arguments:
    x, y = draw(broadcasting(2, NUMERIC, tame=True))
    n = draw(st.integers(0, 4))
    dtype = (x.value.dtype.name,)
    return [draw(arrays(dtype, (*x.shape, n), tame=True)), draw(arrays(dtype, (*y.shape, n), tame=True))], {"axis": -1}


def _cross(draw: Any) -> Arguments:
    x, y = draw(broadcasting(2, NUMERIC, tame=True))
    dtype = (x.value.dtype.name,)
    return [draw(arrays(dtype, (*x.shape, 3), tame=True)), draw(arrays(dtype, (*y.shape, 3), tame=True))], {"axis": -1}


def _vectors(draw: Any) -> Arguments:
    dtype = (draw(st.sampled_from(NUMERIC)),)
    return [draw(arrays(dtype, (draw(st.integers(0, 4)),), tame=True)) for _ in range(2)], {}


def _vector_norm(draw: Any) -> Arguments:
    x = draw(arrays(INEXACT, filled_shapes, tame=True))
    ord = draw(st.sampled_from([0, 1, 2, 3, 2.5, -1, -2, float("inf"), float("-inf")]))
    axis = draw(st.sampled_from([None, *range(len(x.shape)), *([(0, 1)] if len(x.shape) > 1 else [])]))
    return [x], {"ord": ord, "axis": axis, "keepdims": draw(st.booleans())}


def _matrix_norm(draw: Any) -> Arguments:
    ord = draw(st.sampled_from(["fro", 1, -1, float("inf"), float("-inf")]))
    return [draw(arrays(INEXACT, filled_shapes, tame=True, least=2))], {"ord": ord, "keepdims": draw(st.booleans())}


def _matrix_power(draw: Any) -> Arguments:
    n = draw(st.integers(0, 3))
    return [draw(arrays(INEXACT, draw(st.sampled_from([(n, n), (2, n, n)])), tame=True)), draw(st.integers(0, 3))], {}


_FREQUENCIES = ("fftfreq", "rfftfreq")
_NORMS = st.sampled_from(["backward", "ortho", "forward"])
_transformable = st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple)


def _transformed(dtypes: tuple[str, ...], draw: Any) -> Arguments:
    x = draw(arrays(dtypes, _transformable, tame=True))
    return [x], {"axis": draw(axis_of(len(x.shape))), "n": draw(st.sampled_from([None, 1, 3, 6])), "norm": draw(_NORMS)}


def _transformed_along_all(dtypes: tuple[str, ...], draw: Any) -> Arguments:
    return [draw(arrays(dtypes, _transformable, tame=True))], {"norm": draw(_NORMS)}


def _regular(draw: Any, dtypes: tuple[str, ...], least: int = 0) -> Drawn:
    """Matrices whose diagonals outweigh the rest."""
    n = draw(st.integers(least, 3))
    x = draw(arrays(dtypes, draw(st.sampled_from([(n, n), (2, n, n)])), tame=True))
    return x._replace(value=x.value / 8 + (4 * n * np.eye(n)).astype(x.value.dtype))


def _positive(draw: Any) -> Arguments:
    x = _regular(draw, FLOATS)
    symmetric = x.value + np.swapaxes(x.value, -1, -2)
    return [x._replace(value=symmetric)], {"upper": draw(st.booleans())}


def _system(draw: Any) -> Arguments:
    x = _regular(draw, INEXACT)
    shape = x.shape[:-1] if len(x.shape) == 2 and draw(st.booleans()) else (*x.shape[:-1], draw(st.integers(0, 2)))
    return [x, draw(arrays((x.value.dtype.name,), shape, tame=True))], {}


def _diagonal(draw: Any) -> Arguments:
    x = draw(arrays(NUMERIC, least=2, tame=True))
    m, n = x.shape[-2:]
    return [x], {"offset": draw(st.integers(-m, n))}


def _several(draw: Any, stacked: bool) -> Arguments:
    dtypes, shape = draw(st.sampled_from([BOOL, INTEGERS, FLOATS])), draw(shapes)
    shape = shape if stacked or shape else (2,)
    axis = draw(axis_of(len(shape) + stacked))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        sizes = list(shape)
        if not stacked:
            sizes[axis] = draw(st.integers(0, 3))
        found.append(draw(arrays(dtypes if dtypes != INTEGERS else ("int8", "int32"), tuple(sizes))))
    return [found], {"axis": axis}


def _moved(draw: Any) -> Arguments:
    x = draw(arrays(least=1))
    rank = len(x.shape)
    count = draw(st.integers(1, rank))
    source, target = (draw(st.permutations(range(rank)))[:count] for _ in range(2))
    return [x, tuple(source), tuple(target)], {}


def _rolled(draw: Any) -> Arguments:
    x = draw(arrays())
    rank = len(x.shape)
    if not rank or draw(st.booleans()):
        return [x, draw(st.integers(-6, 6))], {"axis": None}
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, unique=True))
    return [x, tuple(draw(st.integers(-6, 6)) for _ in axes)], {"axis": tuple(axes)}


def _reshaped(draw: Any) -> Arguments:
    x = draw(arrays())
    count = int(x.value.size)
    targets = [(count,), (1, count), (count, 1, 1)]
    if count:
        targets += [(-1,), (-1, 1)]
    if count and count % 2 == 0:
        targets += [(2, count // 2), (-1, 2)]
    return [x, draw(st.sampled_from(targets))], {}


def _repeated(draw: Any) -> Arguments:
    x = draw(arrays())
    rank = len(x.shape)
    axis = draw(axis_of(rank)) if rank and draw(st.booleans()) else None
    n = x.shape[axis] if axis is not None else int(x.value.size)
    counts: Any = draw(st.integers(0, 3)) if draw(st.booleans()) else draw(arrays(("int64",), (n,), tame=True))
    if isinstance(counts, Drawn):
        counts = Drawn(abs(counts.value) % 3, counts.reversed)
    return [x, counts], {"axis": axis}


def _squeezed(draw: Any) -> Arguments:
    shape = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4))
    ones = [k for k, n in enumerate(shape) if n == 1]
    axes = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    return [draw(arrays(shape=tuple(shape))), tuple(axes)], {}


def _expanded(draw: Any) -> Arguments:
    x = draw(arrays())
    return [x], {"axis": draw(axis_of(len(x.shape) + 1))}


def _broadcast_to(draw: Any) -> Arguments:
    (x,) = draw(broadcasting(1))
    shape = tuple(draw(st.integers(0, 3)) if n == 1 else n for n in x.shape)
    return [x, (*draw(shapes)[:2], *shape)], {}


def _permuted(draw: Any) -> Arguments:
    x = draw(arrays())
    return [x, tuple(draw(st.permutations(range(len(x.shape)))))], {}


def _indices(draw: Any) -> Arguments:
    x = draw(arrays(shape=filled_shapes, least=1))
    axis = draw(axis_of(len(x.shape)))
    n = x.shape[axis]
    picks = draw(st.lists(st.integers(-n, n - 1), max_size=4))
    return [x, picks, axis], {}


def _take(draw: Any) -> Arguments:
    (x, picks, axis), _ = _indices(draw)
    return [x, Drawn(_np(picks, "int64"), False)], {"axis": axis}


def _take_along_axis(draw: Any) -> Arguments:
    (x, _, axis), _ = _indices(draw)
    n = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = draw(st.integers(0, 3))
    count = int(_np(shape, "int64").prod())
    picks = draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
    return [x, Drawn(_np(picks, "int64").reshape(shape), False)], {"axis": axis}


def _np(values: Any, dtype: str) -> Any:
    import numpy as np

    return np.asarray(values, dtype)


def _searchsorted(draw: Any) -> Arguments:
    dtype = (draw(st.sampled_from(REAL)),)
    x = draw(arrays(dtype, (draw(st.integers(0, 5)),), tame=True))
    ordered = Drawn(_np(sorted(x.value.tolist()), dtype[0]), x.reversed)
    return [ordered, draw(arrays(dtype, tame=True))], {"side": draw(st.sampled_from(["left", "right"]))}


def _where(draw: Any) -> Arguments:
    condition, a, b = draw(broadcasting(3))
    return [Drawn(condition.value.astype(bool), condition.reversed), a, b], {}


def _clipped(draw: Any) -> Arguments:
    x, low = draw(broadcasting(2, REAL, tame=True))
    low = Drawn(low.value.clip(None, 3), low.reversed)
    return [x, draw(st.sampled_from([None, low, -1 if x.value.dtype.kind != "u" else 1])), 3], {}


def _powers(draw: Any) -> Arguments:
    a, b = draw(broadcasting(2, NUMERIC, tame=True))
    if a.value.dtype.kind in "iu":
        b = Drawn(abs(b.value), b.reversed)
    return [a, b], {}


def _shifts(draw: Any) -> Arguments:
    a, b = draw(broadcasting(2, INTEGERS))
    bits = 8 * a.value.dtype.itemsize
    return [a, Drawn((b.value % _np(bits, b.value.dtype.name)).astype(b.value.dtype), b.reversed)], {}


def _divided(draw: Any) -> Arguments:
    a, b = draw(broadcasting(2, REAL))
    if b.value.dtype.kind in "iu":
        b = Drawn(b.value | _np(1, b.value.dtype.name), b.reversed)  # NumPy warns of zeros
    return [a, b], {}


def _arange(draw: Any) -> Arguments:
    number = st.integers(-9, 9) if draw(st.booleans()) else st.integers(-18, 18).map(lambda n: n / 4)
    step = draw(number.filter(bool))
    return [draw(number), draw(number), step], {"dtype": draw(st.sampled_from([None, "float32", "float64"]))}


def _linspace(draw: Any) -> Arguments:
    a, b = (draw(st.integers(-20, 20)) / 4 for _ in range(2))
    return [a, b, draw(st.integers(0, 9))], {
        "endpoint": draw(st.booleans()),
        "dtype": draw(st.sampled_from([None, "float32"])),
    }


def _eye(draw: Any) -> Arguments:
    n, m = draw(st.integers(0, 4)), draw(st.sampled_from([None, 0, 1, 3]))
    return [n, m], {"k": draw(st.integers(-4, 4)), "dtype": draw(st.sampled_from([None, *ALL]))}


def _meshgrid(draw: Any) -> Arguments:
    dtype = (draw(st.sampled_from(ALL)),)
    vectors = [draw(arrays(dtype, (draw(st.integers(0, 3)),))) for _ in range(draw(st.integers(1, 3)))]
    return vectors, {"indexing": draw(st.sampled_from(["xy", "ij"]))}


def _diff(draw: Any) -> Arguments:
    x = draw(arrays(REAL, least=1))
    return [x], {"axis": draw(axis_of(len(x.shape))), "n": draw(st.integers(0, 3))}


_corrections = st.sampled_from([0, 1, 0.0, 1.0, 0.5])
_filling = st.sampled_from([True, 0, 3, -0.5])

_MATHS = "cos exp expm1 log log1p log2 log10 sin sqrt tan tanh reciprocal"
_REAL_MATHS = "acos acosh asin asinh atan atanh cosh sinh"

CASES: dict[str, Case] = {
    **{name: each(INEXACT, 3e-7) for name in _MATHS.split()},
    **{name: each(FLOATS, 3e-7) for name in _REAL_MATHS.split()},
    **{name: each(NUMERIC) for name in ("isfinite", "isinf", "isnan", "square")},
    **{name: each(REAL) for name in ("ceil", "floor", "trunc")},
    **{name: pair(FLOATS, 3e-7) for name in ("atan2", "hypot", "logaddexp")},
    **{name: pair(FLOATS) for name in ("copysign", "nextafter")},
    **{name: pair(NUMERIC) for name in ("add", "subtract", "multiply")},
    **{name: pair(REAL) for name in ("greater", "greater_equal", "less", "less_equal", "maximum", "minimum")},
    **{name: pair(ALL) for name in ("equal", "not_equal")},
    **{f"logical_{name}": pair(BOOL) for name in ("and", "or", "xor")},
    **{f"bitwise_{name}": pair(BOOL + INTEGERS) for name in ("and", "or", "xor")},
    **{f"bitwise_{name}_shift": call(_shifts) for name in ("left", "right")},
    **{name: call(_divided) for name in ("floor_divide", "remainder")},
    "abs": each(NUMERIC, 3e-7),
    "bitwise_invert": each(BOOL + INTEGERS),
    "divide": pair(INEXACT, 3e-7),
    "round": each(REAL),
    "sign": each(NUMERIC, 3e-7),
    "conj": each(NUMERIC),
    "imag": each(COMPLEX),
    "logical_not": each(BOOL),
    "negative": each(NUMERIC),
    "positive": each(NUMERIC),
    "pow": call(_powers, 3e-7),
    "real": each(NUMERIC),
    "signbit": each(FLOATS),
    "clip": call(_clipped),
    # creation
    "arange": call(_arange, 1e-6),
    "asarray": call(lambda draw: ([draw(arrays())], {"dtype": None, "copy": None, "device": None})),
    "empty": _of_shape(),
    "empty_like": _like(),
    "eye": call(_eye),
    "from_dlpack": each(REAL),
    "full": call(lambda draw: ([draw(shapes), draw(_filling)], {"device": None})),
    "full_like": call(lambda draw: ([draw(arrays(FLOATS)), draw(_filling)], {})),
    "linspace": call(_linspace, 1e-6),
    "meshgrid": call(_meshgrid),
    "ones": _of_shape(),
    "ones_like": _like(),
    "tril": call(_triangle),
    "triu": call(_triangle),
    "zeros": _of_shape(),
    "zeros_like": _like(),
    # manipulation
    "broadcast_arrays": call(lambda draw: (draw(broadcasting(3)), {})),
    "broadcast_to": call(_broadcast_to),
    "concat": call(lambda draw: _several(draw, False)),
    "expand_dims": call(_expanded),
    "flip": call(lambda draw: ([x := draw(arrays())], {"axis": draw(axes_of(len(x.shape)))})),
    "moveaxis": call(_moved),
    "permute_dims": call(_permuted),
    "repeat": call(_repeated),
    "reshape": call(_reshaped),
    "roll": call(_rolled),
    "squeeze": call(_squeezed),
    "stack": call(lambda draw: _several(draw, True)),
    "tile": call(lambda draw: ([draw(arrays()), tuple(draw(st.lists(st.integers(0, 2), max_size=3)))], {})),
    "unstack": along(ALL),
    # linear algebra
    "matmul": call(_matrices, 1e-6),
    "matrix_transpose": call(lambda draw: ([draw(arrays(least=2))], {})),
    "tensordot": call(_tensordot, 1e-6),
    "vecdot": call(_vecdot, 1e-6),
    "linalg.cholesky": call(_positive, 1e-5),
    "linalg.cross": call(_cross, 1e-6),
    "linalg.det": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.diagonal": call(_diagonal),
    "linalg.eigh": call(lambda draw: (_positive(draw)[0], {}), 1e-5),
    "linalg.eigvalsh": call(lambda draw: (_positive(draw)[0], {}), 1e-5),
    "linalg.inv": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.matmul": call(_matrices, 1e-6),
    "linalg.matrix_norm": call(_matrix_norm, 1e-6),
    "linalg.matrix_power": call(_matrix_power, 1e-6),
    "linalg.matrix_rank": call(lambda draw: ([_regular(draw, INEXACT, 1)], {})),
    "linalg.matrix_transpose": call(lambda draw: ([draw(arrays(least=2))], {})),
    "linalg.outer": call(_vectors, 1e-6),
    "linalg.pinv": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.qr": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.slogdet": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.solve": call(_system, 1e-5),
    "linalg.svd": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.svdvals": call(lambda draw: ([_regular(draw, INEXACT)], {}), 1e-5),
    "linalg.tensordot": call(_tensordot, 1e-6),
    "linalg.trace": call(_diagonal, 1e-6),
    "linalg.vecdot": call(_vecdot, 1e-6),
    "linalg.vector_norm": call(_vector_norm, 1e-5),
    # Fourier transforms
    **{f"fft.{name}": call(partial(_transformed, COMPLEX), 1e-5) for name in ("fft", "ifft", "irfft", "hfft")},
    **{f"fft.{name}": call(partial(_transformed, FLOATS), 1e-5) for name in ("rfft", "ihfft")},
    **{f"fft.{name}": call(partial(_transformed_along_all, COMPLEX), 1e-5) for name in ("fftn", "ifftn", "irfftn")},
    "fft.rfftn": call(partial(_transformed_along_all, FLOATS), 1e-5),
    **{f"fft.{name}": call(lambda draw: ([draw(st.integers(1, 9))], {"d": 0.5}), 1e-6) for name in _FREQUENCIES},
    **{f"fft.{name}": call(lambda draw: ([draw(arrays(INEXACT, least=1))], {})) for name in ("fftshift", "ifftshift")},
    # indexing, searching, sorting, sets
    "take": call(_take),
    "take_along_axis": call(_take_along_axis),
    "argmax": fold(REAL, filled=True, one=True),
    "argmin": fold(REAL, filled=True, one=True),
    "count_nonzero": fold(ALL),
    "nonzero": call(lambda draw: ([draw(arrays(least=1))], {})),
    "searchsorted": call(_searchsorted),
    "where": call(_where),
    **{name: along(REAL, descending=st.booleans(), stable=st.just(True)) for name in ("sort", "argsort")},
    **{f"unique_{name}": each(ALL) for name in ("all", "counts", "inverse", "values")},
    "diff": call(_diff),
    # statistics
    "cumulative_prod": along(NUMERIC, 1e-6, include_initial=st.booleans()),
    "cumulative_sum": along(NUMERIC, 1e-6, include_initial=st.booleans()),
    "max": fold(REAL, filled=True),
    "mean": fold(INEXACT, 1e-6, filled=True),
    "min": fold(REAL, filled=True),
    "prod": fold(NUMERIC, 1e-6),
    "std": fold(FLOATS, 1e-5, filled=True, correction=_corrections),
    "sum": fold(NUMERIC, 1e-6, dtype=st.sampled_from([None, "complex128"])),
    "var": fold(FLOATS, 1e-5, filled=True, correction=_corrections),
    "all": fold(ALL),
    "any": fold(ALL),
}
