# Written by tests/types/stubs.py.
from harp.lax.arithmetic import (
    RoundingMethod as RoundingMethod,
    clamp as clamp,
    clz as clz,
    complex as complex,
    convert_element_type as convert_element_type,
    div as div,
    integer_pow as integer_pow,
    population_count as population_count,
    reduce_precision as reduce_precision,
    round as round,
    select as select,
    select_n as select_n,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
)
from harp.lax.associative import associative_scan as associative_scan
from harp.lax.bits import bitcast_convert_type as bitcast_convert_type
from harp.lax.collectives import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    axis_index as axis_index,
    axis_size as axis_size,
    pmax as pmax,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    psum as psum,
    psum_scatter as psum_scatter,
)
from harp.lax.convolution import (
    ConvDimensionNumbers as ConvDimensionNumbers,
    conv as conv,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated,
    conv_transpose as conv_transpose,
    conv_with_general_padding as conv_with_general_padding,
)
from harp.lax.folds import reduce as reduce
from harp.lax.gathering import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
)
from harp.lax.mapping import map as map
from harp.lax.padding import pad as pad
from harp.lax.pooling import reduce_window as reduce_window
from harp.lax.products import (
    Precision as Precision,
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
)
from harp.lax.reductions import (
    argmax as argmax,
    argmin as argmin,
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
    sort as sort,
    sort_key_val as sort_key_val,
)
from harp.lax.shapes import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    broadcasted_iota as broadcasted_iota,
    collapse as collapse,
    concatenate as concatenate,
    expand_dims as expand_dims,
    full_like as full_like,
    iota as iota,
    reshape as reshape,
    rev as rev,
    split as split,
    squeeze as squeeze,
    transpose as transpose,
    unstack as unstack,
)
from harp.lax.slicing import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    index_in_dim as index_in_dim,
    slice as slice,
    slice_in_dim as slice_in_dim,
)
from harp.numpy import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_left_shift as _shift_left,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    broadcast_shapes as broadcast_shapes,
    cbrt as cbrt,
    ceil as ceil,
    conj as conj,
    cos as cos,
    cosh as cosh,
    empty as empty,
    equal as _eq,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    fmod as _rem,
    full as full,
    greater as _gt,
    greater_equal as _ge,
    imag as imag,
    isfinite as _is_finite,
    less as _lt,
    less_equal as _le,
    log as log,
    log1p as log1p,
    maximum as _max,
    minimum as _min,
    multiply as _mul,
    negative as _neg,
    nextafter as nextafter,
    not_equal as _ne,
    power as _pow,
    real as real,
    reciprocal as reciprocal,
    rsqrt as rsqrt,
    sigmoid as _logistic,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    stack as stack,
    subtract as _sub,
    tan as tan,
    tanh as tanh,
    tile as tile,
    top_k as top_k,
)
from harp.scipy.special import (
    betainc as betainc,
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    erfinv as _erf_inv,
    gammainc as _igamma,
    gammaincc as _igammac,
    gammaln as _lgamma,
    i0e as _bessel_i0e,
    i1e as _bessel_i1e,
    polygamma as polygamma,
    zeta as zeta,
)
from harp.transforms.autodiff.grad import stop_gradient as stop_gradient
from harp.transforms.control.conditional import cond as cond, switch as switch, while_loop as while_loop
from harp.transforms.control.scan import fori_loop as fori_loop, scan as scan
from harp.transforms.implicit import custom_linear_solve as custom_linear_solve, custom_root as custom_root

eq = _eq
ge = _ge
gt = _gt
is_finite = _is_finite
le = _le
logistic = _logistic
lt = _lt
max = _max
min = _min
mul = _mul
ne = _ne
neg = _neg
pow = _pow
rem = _rem
shift_left = _shift_left
sub = _sub
bessel_i0e = _bessel_i0e
bessel_i1e = _bessel_i1e
erf_inv = _erf_inv
igamma = _igamma
igammac = _igammac
lgamma = _lgamma
