"""JAX's names: what `jax.lax` has and harp has as well, for code that was written for it.

Functions are NumPy's by another name, or take their arguments and treat integers, ends and ties as JAX does. Dtypes
promote and shapes broadcast as in `harp.numpy`.

>>> from harp import lax
>>> import harp.numpy as hnp
>>> lax.dynamic_slice_in_dim(hnp.arange(6), 4, 3)
Array([3, 4, 5])
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.lax.arithmetic": "clamp clz complex convert_element_type div integer_pow population_count "
        "reduce_precision round RoundingMethod select select_n shift_right_arithmetic shift_right_logical",
        "harp.lax.associative": "associative_scan",
        "harp.lax.bits": "bitcast_convert_type",
        "harp.lax.collectives": "all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute psum psum_scatter",
        "harp.lax.convolution": "conv conv_dimension_numbers conv_general_dilated conv_transpose "
        "conv_with_general_padding ConvDimensionNumbers",
        "harp.lax.gathering": "gather GatherDimensionNumbers GatherScatterMode scatter scatter_add scatter_apply "
        "scatter_max scatter_min scatter_mul scatter_sub ScatterDimensionNumbers",
        "harp.lax.mapping": "map",
        "harp.lax.padding": "pad",
        "harp.lax.pooling": "reduce_window",
        "harp.lax.products": "batch_matmul dot dot_general Precision",
        "harp.lax.reductions": "argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce_and reduce_max "
        "reduce_min reduce_or reduce_prod reduce_sum reduce_xor sort sort_key_val",
        "harp.lax.shapes": "broadcast broadcast_in_dim broadcasted_iota collapse concatenate expand_dims full_like "
        "iota reshape rev split squeeze transpose unstack",
        "harp.lax.slicing": "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim "
        "dynamic_update_slice dynamic_update_slice_in_dim index_in_dim slice slice_in_dim",
        "harp.lax.folds": "reduce",
        "harp.numpy": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor "
        "broadcast_shapes cbrt ceil conj cos cosh empty eq=equal exp exp2 expm1 floor full ge=greater_equal "
        "gt=greater imag is_finite=isfinite le=less_equal log log1p logistic=sigmoid lt=less max=maximum min=minimum "
        "mul=multiply ne=not_equal neg=negative nextafter pow=power real reciprocal rem=fmod rsqrt "
        "shift_left=bitwise_left_shift sign sin sinh sqrt square stack sub=subtract tan tanh tile top_k",
        "harp.scipy.special": "bessel_i0e=i0e bessel_i1e=i1e betainc digamma erf erf_inv=erfinv erfc igamma=gammainc "
        "igammac=gammaincc lgamma=gammaln polygamma zeta",
        "harp.transforms.autodiff.grad": "stop_gradient",
        "harp.transforms.implicit": "custom_linear_solve custom_root",
        "harp.transforms.control.conditional": "cond switch while_loop",
        "harp.transforms.control.scan": "fori_loop scan",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
