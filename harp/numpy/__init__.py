"""The array namespace: NumPy's names and semantics, composed from a few primitives, for traced functions and at once.

>>> import harp.numpy as hnp
>>> hnp.arange(3) + 0.5
Array([0.5, 1.5, 2.5])
"""

from __future__ import annotations

from importlib import import_module as _import_module

import numpy as _np

from harp.lazy import Names as _Names
from harp.lazy import namespace as _namespace

# All names; each is imported when it is first asked for.
_NAMES = _Names(
    {
        "harp.numpy.": "fft lib linalg",
        "harp.numpy.activation": "log_softmax logsumexp relu sigmoid softmax softplus",
        "harp.numpy.choosing": "array_equal array_equiv diag diag_indices diag_indices_from diagflat fill_diagonal "
        "indices ix_ piecewise ravel_multi_index select tril_indices tril_indices_from triu_indices triu_indices_from "
        "unravel_index",
        "harp.numpy.closeness": "allclose fmod heaviside isclose nan_to_num",
        "harp.numpy.complexes": "angle conj conjugate=conj imag iscomplexobj isrealobj real",
        "harp.numpy.counting": "average bincount corrcoef cov digitize histogram histogram2d "
        "histogram_bin_edges histogramdd ptp",
        "harp.numpy.creation": "arange array asarray empty empty_like eye full full_like identity linspace ones "
        "ones_like result_type tri tril triu zeros zeros_like",
        "harp.numpy.cumulative": "cummax cummin cumprod cumsum cumulative_prod cumulative_sum diff",
        "harp.numpy.editing": "choose compress delete insert place put trim_zeros",
        "harp.numpy.elementwise": "abs absolute add around=round bitwise_and bitwise_invert bitwise_left_shift "
        "bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clip cos divide equal exp exp2 expm1 floor "
        "floor_divide greater greater_equal invert=bitwise_not isfinite isinf isnan left_shift=bitwise_left_shift "
        "less less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor maximum minimum mod "
        "multiply negative not_equal positive pow power reciprocal remainder right_shift=bitwise_right_shift round "
        "rsqrt sign sin sqrt square subtract tan tanh true_divide trunc where",
        "harp.numpy.floats": "bitwise_count divmod fabs fix float_power fmax fmin frexp gcd iscomplex isneginf "
        "isposinf isreal lcm ldexp modf packbits rint unpackbits",
        "harp.numpy.index_tricks": "c_ index_exp mgrid ogrid r_ s_",
        "harp.numpy.indexing": "put_along_axis take take_along_axis",
        "harp.numpy.inspection": "copy isscalar ndim shape size",
        "harp.numpy.interchange": "__array_api_version__ __array_namespace_info__ from_dlpack frombuffer "
        "fromfile fromiter fromstring load",
        "harp.numpy.joining": "concat=concatenate concatenate repeat resize roll split stack tile",
        "harp.numpy.linalg.einsum": "einsum einsum_path",
        "harp.numpy.linalg.matrices": "vecdot",
        "harp.numpy.linalg.products": "cross diagonal dot inner matmul matvec outer tensordot trace vdot vecmat",
        "harp.numpy.manipulation": "broadcast_arrays broadcast_shapes broadcast_to expand_dims flatten flip "
        "matrix_transpose meshgrid moveaxis permute_dims ravel reshape squeeze swapaxes transpose unstack",
        "harp.numpy.mathematical": "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan "
        "atan2 atanh cbrt copysign cosh deg2rad degrees hypot logaddexp logaddexp2 nextafter rad2deg radians signbit "
        "sinc sinh spacing",
        "harp.numpy.nans": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum "
        "nanvar",
        "harp.numpy.numerical": "convolve correlate ediff1d geomspace gradient interp logspace polymul=convolve "
        "polyval trapezoid unwrap vander",
        "harp.numpy.padding": "pad",
        "harp.numpy.polynomials": "poly polyadd polyder polydiv polyfit polyint polysub roots",
        "harp.numpy.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
        "harp.numpy.reductions": "all amax amin any argmax argmin max mean min prod std sum var",
        "harp.numpy.sets": "argwhere count_nonzero extract flatnonzero intersect1d isin mask_indices nonzero setdiff1d "
        "setxor1d union1d unique unique_all unique_counts unique_inverse unique_values",
        "harp.numpy.sorting": "argpartition argsort lexsort partition searchsorted sort sort_complex top_k",
        "harp.numpy.stacking": "append array_split atleast_1d atleast_2d atleast_3d block column_stack dsplit dstack "
        "fliplr flipud hsplit hstack kron rollaxis rot90 vsplit vstack",
        "harp.numpy.types": "astype can_cast finfo iinfo isdtype issubdtype promote_types",
        "harp.numpy.vectorising": "apply_along_axis apply_over_axes fromfunction frompyfunc vectorize",
        "harp.scipy.special.bessel": "i0",
        "harp.scipy.windows": "bartlett blackman hamming hanning kaiser",
        "harp.trace.array.array": "ndarray=Array",
        "harp.trace.scalar.dtypes": "bfloat16=bf16 bool=bool_ bool_ cdouble=c128 complex128=c128 complex64=c64 "
        "complex_=c128 csingle=c64 double=f64 float16=f16 float32=f32 float64=f64 float8_e3m4=f8_e3m4 "
        "float8_e4m3=f8_e4m3 float8_e4m3b11fnuz=f8_e4m3b11fnuz float8_e4m3fn=f8_e4m3fn float8_e4m3fnuz=f8_e4m3fnuz "
        "float8_e5m2=f8_e5m2 float8_e5m2fnuz=f8_e5m2fnuz float_=f64 int16=i16 int32=i32 int4=i4 int64=i64 int8=i8 "
        "int_=i64 intp=i64 single=f32 uint=u64 uint16=u16 uint32=u32 uint4=u4 uint64=u64 uint8=u8",
        "harp.scipy.": "special",
        "math": "e inf nan pi",
        "numpy": "array2string array_repr array_str character complexfloating dtype euler_gamma flexible floating "
        "generic get_printoptions inexact integer iterable newaxis number object_ printoptions save savez "
        "set_printoptions signedinteger unsignedinteger",
        "numpy.exceptions": "ComplexWarning",
    }
)


def _with_methods(name: str, value: object) -> None:
    """Gives a function the methods of a ufunc if NumPy's function of that name is one."""
    ufunc = getattr(_np, name, None)
    if isinstance(ufunc, _np.ufunc) and ufunc.nout == 1 and not ufunc.signature:
        _import_module("harp.numpy.ufuncs").with_methods(value, ufunc)


__getattr__, __dir__, __all__ = _namespace(globals(), _NAMES, _with_methods)
