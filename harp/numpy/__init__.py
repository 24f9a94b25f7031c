"""The array namespace: NumPy's names and semantics, composed from a few primitives, for traced functions and at once.

>>> import harp.numpy as hnp
>>> hnp.arange(3) + 0.5
Array([0.5, 1.5, 2.5])
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING

from harp.numpy import special
from harp.numpy.activation import relu, sigmoid, softplus
from harp.numpy.closeness import allclose, fmod, heaviside, isclose, nan_to_num
from harp.numpy.complexes import angle, conj, imag, iscomplexobj, real
from harp.numpy.creation import (
    arange,
    array,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    linspace,
    ones,
    ones_like,
    result_type,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from harp.numpy.cumulative import cummax, cummin, cumprod, cumsum, cumulative_prod, cumulative_sum, diff
from harp.numpy.elementwise import (
    abs,
    absolute,
    add,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    cos,
    divide,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    positive,
    pow,
    power,
    reciprocal,
    remainder,
    round,
    rsqrt,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from harp.numpy.joining import (
    concatenate,
    pad,
    repeat,
    roll,
    split,
    stack,
    tile,
)
from harp.numpy.linalg import (
    diagonal,
    dot,
    einsum,
    inner,
    matmul,
    outer,
    tensordot,
    trace,
    vdot,
)
from harp.numpy.manipulation import (
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    flatten,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    squeeze,
    swapaxes,
    transpose,
)
from harp.numpy.mathematical import (
    acos,
    acosh,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    copysign,
    cosh,
    deg2rad,
    degrees,
    hypot,
    logaddexp,
    logaddexp2,
    nextafter,
    rad2deg,
    radians,
    signbit,
    sinc,
    sinh,
)
from harp.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    prod,
    softmax,
    std,
    sum,
    var,
)
from harp.numpy.types import astype, can_cast, finfo, iinfo, isdtype
from harp.trace.dtypes import bf16 as bfloat16
from harp.trace.dtypes import bool_
from harp.trace.dtypes import c64 as complex64
from harp.trace.dtypes import c128 as complex128
from harp.trace.dtypes import f16 as float16
from harp.trace.dtypes import f32 as float32
from harp.trace.dtypes import f64 as float64
from harp.trace.dtypes import i8 as int8
from harp.trace.dtypes import i16 as int16
from harp.trace.dtypes import i32 as int32
from harp.trace.dtypes import i64 as int64
from harp.trace.dtypes import u8 as uint8
from harp.trace.dtypes import u16 as uint16
from harp.trace.dtypes import u32 as uint32
from harp.trace.dtypes import u64 as uint64

if TYPE_CHECKING:
    from harp.numpy.quantiles import median, percentile, quantile
    from harp.numpy.sets import (
        argwhere,
        count_nonzero,
        extract,
        flatnonzero,
        intersect1d,
        isin,
        nonzero,
        setdiff1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from harp.numpy.sorting import argsort, lexsort, searchsorted, sort, top_k

pi = math.pi
e = math.e
inf = math.inf
nan = math.nan
newaxis = None

# Modules that are imported when a name of theirs is first asked for.
_LATER = {
    "quantiles": "median percentile quantile",
    "sets": "argwhere count_nonzero extract flatnonzero intersect1d isin nonzero setdiff1d union1d unique unique_all "
    "unique_counts unique_inverse unique_values",
    "sorting": "argsort lexsort searchsorted sort top_k",
}
_MODULES = {name: module for module, names in _LATER.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


# fmt: off
__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any", "arange",
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort",
    "argwhere", "array", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bfloat16", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "bool_", "broadcast_arrays", "broadcast_to", "can_cast", "cbrt", "ceil", "clip", "complex64", "complex128",
    "concatenate", "conj", "copysign", "cos", "cosh", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "diagonal", "diff", "divide", "dot", "e", "einsum",
    "empty", "empty_like", "equal", "exp", "exp2", "expand_dims", "expm1", "extract", "eye", "finfo", "flatnonzero",
    "flatten", "flip", "float16", "float32", "float64", "floor", "floor_divide", "fmod", "full", "full_like",
    "greater", "greater_equal", "heaviside", "hypot", "identity", "iinfo", "imag", "inf", "inner", "int8", "int16",
    "int32", "int64", "intersect1d", "isclose", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan",
    "less", "less_equal", "lexsort", "linspace", "log", "log1p", "log2", "log10", "log_softmax", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "matmul",
    "matrix_transpose", "max", "maximum", "mean", "median", "min", "minimum", "mod", "moveaxis", "multiply", "nan",
    "nan_to_num", "negative", "nextafter", "nonzero", "not_equal", "ones", "ones_like", "outer", "pad",
    "percentile", "permute_dims", "pi", "positive", "pow", "power", "prod", "quantile", "rad2deg", "radians",
    "ravel", "real", "reciprocal", "relu", "remainder", "repeat", "reshape", "result_type", "roll", "round",
    "rsqrt", "searchsorted", "setdiff1d", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "softmax",
    "softplus", "sort", "special", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum",
    "swapaxes", "tan", "tanh", "tensordot", "tile", "top_k", "trace", "transpose", "tri", "tril", "triu",
    "true_divide", "trunc", "uint8", "uint16", "uint32", "uint64", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "var", "vdot", "where", "zeros", "zeros_like",
]
# fmt: on
