"""The public names of jax.numpy are in harp.numpy, but for those in a table of reasons. And what few of them do."""

from __future__ import annotations

import io

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors


def words(text):
    return text.split()


# Of JAX 0.10: what a newer one adds is seen where JAX is installed.
NAMES = words("""
    ComplexWarning abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes
    arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array
    array_equal array_equiv array_repr array_split array_str asarray asin asinh astype atan atan2 atanh atleast_1d
    atleast_2d atleast_3d average bartlett bfloat16 bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman block bool bool_ broadcast_arrays broadcast_shapes
    broadcast_to c_ can_cast cbrt cdouble ceil character choose clip column_stack complex128 complex64 complex_
    complexfloating compress concat concatenate conj conjugate convolve copy copysign corrcoef correlate cos cosh
    count_nonzero cov cross csingle cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag
    diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e
    ediff1d einsum einsum_path empty empty_like equal euler_gamma exp exp2 expand_dims expm1 extract eye fabs fft
    fill_diagonal finfo flatnonzero flexible flip fliplr flipud float16 float32 float64 float_ float_power floating
    floor floor_divide fmax fmin fmod frexp from_dlpack frombuffer fromfile fromfunction fromiter frompyfunc fromstring
    full full_like gcd generic geomspace get_printoptions gradient greater greater_equal hamming hanning heaviside
    histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag index_exp indices
    inexact inf inner insert int16 int32 int64 int8 int_ integer interp intersect1d invert isclose iscomplex
    iscomplexobj isdtype isfinite isin isinf isnan isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_
    kaiser kron lcm ldexp left_shift less less_equal lexsort linalg linspace load log log10 log1p log2 logaddexp
    logaddexp2 logical_and logical_not logical_or logical_xor logspace mask_indices matmul matrix_transpose matvec max
    maximum mean median meshgrid mgrid min minimum mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin
    nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray
    ndim negative newaxis nextafter nonzero not_equal number object_ ogrid ones ones_like outer packbits pad partition
    percentile permute_dims pi piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval
    positive pow power printoptions prod promote_types ptp put put_along_axis quantile r_ rad2deg radians ravel
    ravel_multi_index real reciprocal remainder repeat reshape resize result_type right_shift rint roll rollaxis roots
    rot90 round s_ save savez searchsorted select set_printoptions setdiff1d setxor1d shape sign signbit signedinteger
    sin sinc single sinh size sort sort_complex spacing split sqrt square squeeze stack std subtract sum swapaxes take
    take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros
    triu triu_indices triu_indices_from true_divide trunc uint uint16 uint32 uint64 uint8 union1d unique unique_all
    unique_counts unique_inverse unique_values unpackbits unravel_index unsignedinteger unstack unwrap vander var vdot
    vecdot vecmat vectorize vsplit vstack where zeros zeros_like
""")
REASONS = {
    "ufunc": "functions of elements are functions, with the methods of ufuncs; no class tells them from others",
    **dict.fromkeys(words("int1 int2 uint1 uint2"), "dtypes of less than 4 bits are not computed with"),
    **dict.fromkeys(
        words("float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e8m0fnu"),
        "floats without NaN, or without a sign, are not computed with",
    ),
}


def test_all_names_are_there():
    assert [name for name in NAMES if not hasattr(hnp, name)] == []


@pytest.mark.filterwarnings("ignore")
def test_jax_has_no_other_names():
    jnp = pytest.importorskip("jax.numpy")
    assert [n for n in dir(jnp) if not n.startswith("_") and n not in REASONS and not hasattr(hnp, n)] == []


def test_what_numpy_reads_and_writes(tmp_path):
    x = hnp.arange(3.0)
    hnp.save(tmp_path / "x.npy", x)
    hnp.savez(tmp_path / "x.npz", x=x, y=x[1:])
    np.asarray(x).tofile(tmp_path / "x")
    found = hnp.load(tmp_path / "x.npz")
    read = [hnp.load(tmp_path / "x.npy"), found["x"], hnp.fromfile(tmp_path / "x"), hnp.fromstring("0 1 2", sep=" ")]
    read += [hnp.frombuffer(x.tobytes()), hnp.fromiter(range(3), "float64")]
    for one in read:
        assert isinstance(one, harp.Array)
        np.testing.assert_array_equal(one, x, strict=True)
    np.testing.assert_array_equal(found["y"], [1, 2])
    for write in (hnp.array_str, hnp.array2string):
        assert write(x) == write(np.asarray(x))
    with hnp.printoptions(precision=1):
        assert hnp.array_str(x / 3) == "[0.  0.3 0.7]"
    with pytest.raises(errors.ArgumentError, match="frombuffer: buffer size"):
        hnp.frombuffer(b"123")
    with pytest.raises(errors.UnsupportedDTypeError):
        hnp.load(io.BytesIO(_saved(np.array(["a"]))))


def _saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_kinds_of_objects():
    assert [hnp.isscalar(v) for v in (3, hnp.asarray(3), [3], np.ones(1))] == [True, True, False, False]
    assert hnp.iterable(hnp.ones(2)) and not hnp.iterable(hnp.float32(1))
    assert hnp.isrealobj(hnp.ones(1)) and not hnp.isrealobj(1j)
    assert not hnp.issubdtype(hnp.float32, hnp.flexible) and hnp.issubdtype(hnp.csingle, hnp.complexfloating)


def test_einsum_path_is_that_of_numpy():
    a, b, c = np.ones((2, 9)), np.ones((9, 8)), np.ones((8, 3))
    for given in (("ij,jk,kl->il", a, b, c), (a, [0, 1], b, [1, 2], c, [2, 3])):
        assert hnp.einsum_path(*given) == np.einsum_path(*given)
    np.testing.assert_array_equal(hnp.einsum(a, [0, 1], b, [1, 2], [0, 2], optimize="auto"), a @ b)
    with pytest.raises(errors.ArgumentError, match="einsum_path: "):
        hnp.einsum_path("ij,jk", a)
    with pytest.raises(errors.ConcretizationError, match="sizes of its operands"):
        harp.jit(lambda x: hnp.einsum_path("ij,jk", x, x)[0])(b)


def test_cross_of_two_and_three_elements():
    rng = np.random.default_rng(0)
    x, y, flat = rng.normal(size=(4, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    level = np.concatenate([flat, np.zeros((4, 1))], 1)
    program = harp.jit(lambda x, y, f: [
        hnp.cross(x, y, axisb=0), hnp.cross(x, y, axisb=0, axisc=0), hnp.cross(x[0], y[:, :1], axis=0)[:, 0],
        hnp.cross(x, f), hnp.cross(f, f[::-1]),
    ])  # fmt: skip
    wanted = [
        np.cross(x, y, axisb=0), np.cross(x, y, axisb=0, axisc=0), np.cross(x[0], y[:, 0]),
        np.cross(x, level), np.cross(level, level[::-1])[:, 2],
    ]  # fmt: skip
    for found, expected in zip(program(x, y, flat), wanted, strict=True):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(errors.ShapeError, match="two or three elements along axis 1"):
        hnp.cross(np.ones((2, 4)), x[:2])


def test_functions_of_python_have_the_methods_of_ufuncs():
    mix, rng = (lambda a, b: 0.5 * a + b), np.random.default_rng(1)
    ours, theirs, x = hnp.frompyfunc(mix, 2, 1), np.frompyfunc(mix, 2, 1), rng.normal(size=(3, 4))
    np.testing.assert_allclose(ours(x, x[0]), theirs(x, x[0]).astype(float))
    for method in ("reduce", "accumulate"):
        np.testing.assert_allclose(getattr(ours, method)(x), getattr(theirs, method)(x).astype(float))
    np.testing.assert_allclose(ours.outer(x[0], x), theirs.outer(x[0], x).astype(float))
    assert hnp.frompyfunc(mix, 2, 1, identity=3.0).reduce(x[:0, 0]) == 3.0
    first, second = hnp.frompyfunc(lambda a: (a + 1, a * a), 1, 2)(x)
    np.testing.assert_allclose([first, second], [x + 1, x * x])


def test_positions_by_a_function():
    np.testing.assert_array_equal(hnp.mask_indices(3, hnp.tril, -1), np.mask_indices(3, np.tril, -1))
    program = harp.jit(lambda x: hnp.mask_indices(3, hnp.triu, size=4))
    np.testing.assert_array_equal(program(1.0), [[0, 0, 0, 1], [0, 1, 2, 1]])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_an_exponential_of_complex_numbers(dtype):
    z = np.array([0, 1 + 1j, -2j, 0.5 - 3j], dtype)
    found = hnp.exp2(z)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, 2**z, rtol=1e-6 if dtype == "complex64" else 1e-14)
