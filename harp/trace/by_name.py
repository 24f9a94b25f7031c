"""The functions of higher layers that sizes, dtypes and arrays look up by name when they run.

Arithmetic, indices and the array namespace are composed from the primitives and know arrays; arrays, sizes and dtypes
know these names only.
"""

from __future__ import annotations

from harp.lazy import Names

FUNCTIONS = Names(
    {
        "harp.trace.array.arithmetic": "add subtract multiply divide floor_divide remainder power negative positive "
        "abs=absolute real imag equal not_equal less less_equal=less_equal_ greater greater_equal astype "
        "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift",
        "harp.trace.array.advanced": "getitem",
        "harp.trace.array.updates": "at_get=get at_put=put",
        "harp.trace.array.numpy_functions": "__array_ufunc__=of_elements __array_function__=of_arrays",
        "harp.backends.devices": "to_device",
        "harp.numpy.creation": "asarray",
        "harp.numpy.cumulative": "cumsum cumprod",
        "harp.numpy.elementwise": "clip round",
        "harp.numpy.linalg.products": "matmul dot",
        "harp.numpy.manipulation": "transpose matrix_transpose reshape squeeze ravel",
        "harp.numpy.reductions": "sum prod max min mean var std any all argmax argmin",
        "harp.": "numpy",
    }
)
