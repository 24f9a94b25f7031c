"""JAX's names: what `jax.lax` has and harp has as well, for code that was written for it.

Functions are NumPy's by another name, or take their arguments and treat integers, ends and ties as JAX does. Dtypes
promote and shapes broadcast as in `harp.numpy`.

>>> from harp import lax
>>> import harp.numpy as hnp
>>> lax.dynamic_slice_in_dim(hnp.arange(6), 4, 3)
Array([3, 4, 5])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harp.lax.arithmetic import (
    RoundingMethod,
    clamp,
    complex,
    convert_element_type,
    div,
    integer_pow,
    population_count,
    round,
    select,
    select_n,
    shift_right_arithmetic,
    shift_right_logical,
)
from harp.lax.associative import associative_scan
from harp.lax.mapping import map
from harp.lax.padding import pad
from harp.lax.products import (
    Precision,
    batch_matmul,
    dot,
    dot_general,
)
from harp.lax.reductions import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from harp.lax.shapes import (
    broadcast,
    broadcast_in_dim,
    broadcasted_iota,
    collapse,
    concatenate,
    expand_dims,
    full_like,
    iota,
    reshape,
    rev,
    split,
    squeeze,
    transpose,
    unstack,
)
from harp.lax.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
    slice,
    slice_in_dim,
)
from harp.lax.sorting import (
    sort,
    sort_key_val,
)
from harp.numpy.activation import sigmoid as logistic
from harp.numpy.closeness import fmod as rem
from harp.numpy.complexes import (
    conj,
    imag,
    real,
)
from harp.numpy.creation import (
    empty,
    full,
)
from harp.numpy.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceil,
    cos,
    exp,
    exp2,
    expm1,
    floor,
    log,
    log1p,
    reciprocal,
    rsqrt,
    sign,
    sin,
    sqrt,
    square,
    tan,
    tanh,
)
from harp.numpy.elementwise import (
    bitwise_left_shift as shift_left,
)
from harp.numpy.elementwise import (
    equal as eq,
)
from harp.numpy.elementwise import (
    greater as gt,
)
from harp.numpy.elementwise import (
    greater_equal as ge,
)
from harp.numpy.elementwise import (
    isfinite as is_finite,
)
from harp.numpy.elementwise import (
    less as lt,
)
from harp.numpy.elementwise import (
    less_equal as le,
)
from harp.numpy.elementwise import (
    maximum as max,
)
from harp.numpy.elementwise import (
    minimum as min,
)
from harp.numpy.elementwise import (
    multiply as mul,
)
from harp.numpy.elementwise import (
    negative as neg,
)
from harp.numpy.elementwise import (
    not_equal as ne,
)
from harp.numpy.elementwise import (
    power as pow,
)
from harp.numpy.elementwise import (
    subtract as sub,
)
from harp.numpy.joining import (
    stack,
    tile,
)
from harp.numpy.manipulation import (
    broadcast_shapes,
)
from harp.numpy.mathematical import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cosh,
    nextafter,
    sinh,
)
from harp.numpy.sorting import top_k
from harp.numpy.special import (
    digamma,
    erf,
    erfc,
)
from harp.numpy.special import (
    erfinv as erf_inv,
)
from harp.numpy.special import (
    gammaln as lgamma,
)
from harp.transforms.autodiff.grad import stop_gradient
from harp.transforms.control.conditional import (
    cond,
    switch,
    while_loop,
)
from harp.transforms.control.scan import (
    fori_loop,
    scan,
)

__all__ = [
    "Precision",
    "RoundingMethod",
    "abs",
    "acos",
    "acosh",
    "add",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "associative_scan",
    "atan",
    "atan2",
    "atanh",
    "batch_matmul",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcasted_iota",
    "cbrt",
    "ceil",
    "clamp",
    "collapse",
    "complex",
    "concatenate",
    "cond",
    "conj",
    "convert_element_type",
    "cos",
    "cosh",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "digamma",
    "div",
    "dot",
    "dot_general",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "empty",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "floor",
    "fori_loop",
    "full",
    "full_like",
    "ge",
    "gt",
    "imag",
    "index_in_dim",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "lt",
    "map",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "pad",
    "population_count",
    "pow",
    "real",
    "reciprocal",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
    "rem",
    "reshape",
    "rev",
    "round",
    "rsqrt",
    "scan",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "sort",
    "sort_key_val",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "sub",
    "switch",
    "tan",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "unstack",
    "while_loop",
]

if not TYPE_CHECKING:  # for whom there is no other name than those above

    def __getattr__(name: str) -> object:
        raise import_module("harp.numpy.missing").no_such_name(__name__, name, __all__)
