# Written by tests/types/stubs.py.
from harp.numpy import fft as fft, lib as lib, linalg as linalg
from harp.numpy.activation import (
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    relu as relu,
    sigmoid as sigmoid,
    softmax as softmax,
    softplus as softplus,
)
from harp.numpy.choosing import (
    array_equal as array_equal,
    array_equiv as array_equiv,
    diag as diag,
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    diagflat as diagflat,
    fill_diagonal as fill_diagonal,
    indices as indices,
    ix_ as ix_,
    piecewise as piecewise,
    ravel_multi_index as ravel_multi_index,
    select as select,
    tril_indices as tril_indices,
    tril_indices_from as tril_indices_from,
    triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
    unravel_index as unravel_index,
)
from harp.numpy.closeness import (
    allclose as allclose,
    fmod as fmod,
    heaviside as heaviside,
    isclose as isclose,
    nan_to_num as nan_to_num,
)
from harp.numpy.complexes import (
    angle as angle,
    conj as _conjugate,
    conj as conj,
    imag as imag,
    iscomplexobj as iscomplexobj,
    isrealobj as isrealobj,
    real as real,
)
from harp.numpy.counting import (
    average as average,
    bincount as bincount,
    corrcoef as corrcoef,
    cov as cov,
    digitize as digitize,
    histogram as histogram,
    histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
    ptp as ptp,
)
from harp.numpy.creation import (
    arange as arange,
    array as array,
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    full as full,
    full_like as full_like,
    identity as identity,
    linspace as linspace,
    ones as ones,
    ones_like as ones_like,
    result_type as result_type,
    tri as tri,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
from harp.numpy.cumulative import (
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
)
from harp.numpy.editing import (
    choose as choose,
    compress as compress,
    delete as delete,
    insert as insert,
    place as place,
    put as put,
    trim_zeros as trim_zeros,
)
from harp.numpy.elementwise import (
    abs as abs,
    absolute as absolute,
    add as add,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as _left_shift,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as _invert,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as _right_shift,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    cos as cos,
    divide as divide,
    equal as equal,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    mod as mod,
    multiply as multiply,
    negative as negative,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    power as power,
    reciprocal as reciprocal,
    remainder as remainder,
    round as _around,
    round as round,
    rsqrt as rsqrt,
    sign as sign,
    sin as sin,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    true_divide as true_divide,
    trunc as trunc,
    where as where,
)
from harp.numpy.floats import (
    bitwise_count as bitwise_count,
    divmod as divmod,
    fabs as fabs,
    fix as fix,
    float_power as float_power,
    fmax as fmax,
    fmin as fmin,
    frexp as frexp,
    gcd as gcd,
    iscomplex as iscomplex,
    isneginf as isneginf,
    isposinf as isposinf,
    isreal as isreal,
    lcm as lcm,
    ldexp as ldexp,
    modf as modf,
    packbits as packbits,
    rint as rint,
    unpackbits as unpackbits,
)
from harp.numpy.index_tricks import c_ as c_, index_exp as index_exp, mgrid as mgrid, ogrid as ogrid, r_ as r_, s_ as s_
from harp.numpy.indexing import put_along_axis as put_along_axis, take as take, take_along_axis as take_along_axis
from harp.numpy.inspection import copy as copy, isscalar as isscalar, ndim as ndim, shape as shape, size as size
from harp.numpy.interchange import (
    __array_api_version__ as __array_api_version__,
    __array_namespace_info__ as __array_namespace_info__,
    from_dlpack as from_dlpack,
    frombuffer as frombuffer,
    fromfile as fromfile,
    fromiter as fromiter,
    fromstring as fromstring,
    load as load,
)
from harp.numpy.joining import (
    concatenate as _concat,
    concatenate as concatenate,
    repeat as repeat,
    resize as resize,
    roll as roll,
    split as split,
    stack as stack,
    tile as tile,
)
from harp.numpy.linalg.einsum import einsum as einsum, einsum_path as einsum_path
from harp.numpy.linalg.matrices import vecdot as vecdot
from harp.numpy.linalg.products import (
    cross as cross,
    diagonal as diagonal,
    dot as dot,
    inner as inner,
    matmul as matmul,
    matvec as matvec,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vdot as vdot,
    vecmat as vecmat,
)
from harp.numpy.manipulation import (
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flatten as flatten,
    flip as flip,
    matrix_transpose as matrix_transpose,
    meshgrid as meshgrid,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
    unstack as unstack,
)
from harp.numpy.mathematical import (
    acos as acos,
    acosh as acosh,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cbrt as cbrt,
    copysign as copysign,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    hypot as hypot,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    nextafter as nextafter,
    rad2deg as rad2deg,
    radians as radians,
    signbit as signbit,
    sinc as sinc,
    sinh as sinh,
    spacing as spacing,
)
from harp.numpy.nans import (
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
)
from harp.numpy.numerical import (
    convolve as _polymul,
    convolve as convolve,
    correlate as correlate,
    ediff1d as ediff1d,
    geomspace as geomspace,
    gradient as gradient,
    interp as interp,
    logspace as logspace,
    polyval as polyval,
    trapezoid as trapezoid,
    unwrap as unwrap,
    vander as vander,
)
from harp.numpy.padding import pad as pad
from harp.numpy.polynomials import (
    poly as poly,
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyfit as polyfit,
    polyint as polyint,
    polysub as polysub,
    roots as roots,
)
from harp.numpy.quantiles import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from harp.numpy.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    std as std,
    sum as sum,
    var as var,
)
from harp.numpy.sets import (
    argwhere as argwhere,
    count_nonzero as count_nonzero,
    extract as extract,
    flatnonzero as flatnonzero,
    intersect1d as intersect1d,
    isin as isin,
    mask_indices as mask_indices,
    nonzero as nonzero,
    setdiff1d as setdiff1d,
    setxor1d as setxor1d,
    union1d as union1d,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from harp.numpy.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    lexsort as lexsort,
    partition as partition,
    searchsorted as searchsorted,
    sort as sort,
    sort_complex as sort_complex,
    top_k as top_k,
)
from harp.numpy.stacking import (
    append as append,
    array_split as array_split,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    block as block,
    column_stack as column_stack,
    dsplit as dsplit,
    dstack as dstack,
    fliplr as fliplr,
    flipud as flipud,
    hsplit as hsplit,
    hstack as hstack,
    kron as kron,
    rollaxis as rollaxis,
    rot90 as rot90,
    vsplit as vsplit,
    vstack as vstack,
)
from harp.numpy.types import (
    astype as astype,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    issubdtype as issubdtype,
    promote_types as promote_types,
)
from harp.numpy.vectorising import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    fromfunction as fromfunction,
    frompyfunc as frompyfunc,
    vectorize as vectorize,
)
from harp.scipy import special as special
from harp.scipy.special.bessel import i0 as i0
from harp.scipy.windows import (
    bartlett as bartlett,
    blackman as blackman,
    hamming as hamming,
    hanning as hanning,
    kaiser as kaiser,
)
from harp.trace.array.array import Array as _ndarray
from harp.trace.scalar.dtypes import (
    bf16 as _bfloat16,
    bool_ as _bool,
    bool_ as bool_,
    c128 as _cdouble,
    c128 as _complex128,
    c128 as _complex_,
    c64 as _complex64,
    c64 as _csingle,
    f16 as _float16,
    f32 as _float32,
    f32 as _single,
    f64 as _double,
    f64 as _float64,
    f64 as _float_,
    f8_e3m4 as _float8_e3m4,
    f8_e4m3 as _float8_e4m3,
    f8_e4m3b11fnuz as _float8_e4m3b11fnuz,
    f8_e4m3fn as _float8_e4m3fn,
    f8_e4m3fnuz as _float8_e4m3fnuz,
    f8_e5m2 as _float8_e5m2,
    f8_e5m2fnuz as _float8_e5m2fnuz,
    i16 as _int16,
    i32 as _int32,
    i4 as _int4,
    i64 as _int64,
    i64 as _int_,
    i64 as _intp,
    i8 as _int8,
    u16 as _uint16,
    u32 as _uint32,
    u4 as _uint4,
    u64 as _uint,
    u64 as _uint64,
    u8 as _uint8,
)
from math import e as e, inf as inf, nan as nan, pi as pi
from numpy import (
    array2string as array2string,
    array_repr as array_repr,
    array_str as array_str,
    character as character,
    complexfloating as complexfloating,
    dtype as dtype,
    euler_gamma as euler_gamma,
    flexible as flexible,
    floating as floating,
    generic as generic,
    get_printoptions as get_printoptions,
    inexact as inexact,
    integer as integer,
    iterable as iterable,
    newaxis as newaxis,
    number as number,
    object_ as object_,
    printoptions as printoptions,
    save as save,
    savez as savez,
    set_printoptions as set_printoptions,
    signedinteger as signedinteger,
    unsignedinteger as unsignedinteger,
)
from numpy.exceptions import ComplexWarning as ComplexWarning

conjugate = _conjugate
around = _around
invert = _invert
left_shift = _left_shift
right_shift = _right_shift
concat = _concat
polymul = _polymul
ndarray = _ndarray
bfloat16 = _bfloat16
bool = _bool
cdouble = _cdouble
complex128 = _complex128
complex64 = _complex64
complex_ = _complex_
csingle = _csingle
double = _double
float16 = _float16
float32 = _float32
float64 = _float64
float8_e3m4 = _float8_e3m4
float8_e4m3 = _float8_e4m3
float8_e4m3b11fnuz = _float8_e4m3b11fnuz
float8_e4m3fn = _float8_e4m3fn
float8_e4m3fnuz = _float8_e4m3fnuz
float8_e5m2 = _float8_e5m2
float8_e5m2fnuz = _float8_e5m2fnuz
float_ = _float_
int16 = _int16
int32 = _int32
int4 = _int4
int64 = _int64
int8 = _int8
int_ = _int_
intp = _intp
single = _single
uint = _uint
uint16 = _uint16
uint32 = _uint32
uint4 = _uint4
uint64 = _uint64
uint8 = _uint8
