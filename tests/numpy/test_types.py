"""finfo, iinfo, can_cast, isdtype, astype and result_type: the standard's words, NumPy's numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, UnsupportedDTypeError
from harp.trace.scalar.dtypes import ALL, DType

FLOATS = [d for d in ALL if d.is_inexact]
NATIVE = [d for d in ALL if not d.is_packaged]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_finfo(dtype):
    numpy = ml_dtypes.finfo(dtype.numpy) if dtype.is_packaged else np.finfo(dtype.numpy)
    for given in (dtype, dtype.numpy, dtype.numpy_name, hnp.ones(2, dtype), np.ones(2, dtype.numpy)):
        info = hnp.finfo(given)
        assert (info.bits, info.eps, info.max) == (numpy.bits, float(numpy.eps), float(numpy.max))
        assert (info.min, info.smallest_normal) == (float(numpy.min), float(numpy.smallest_normal))
        assert type(info.max) is float and info.dtype == numpy.dtype


@pytest.mark.parametrize("dtype", [d for d in ALL if d.is_integer], ids=str)
def test_iinfo(dtype):
    numpy = ml_dtypes.iinfo(dtype.numpy) if dtype.is_packaged else np.iinfo(dtype.numpy)
    for given in (dtype, dtype.numpy, hnp.ones(2, dtype)):
        info = hnp.iinfo(given)
        assert (info.bits, info.max, info.min, info.dtype) == (numpy.bits, numpy.max, numpy.min, dtype.numpy)
        assert type(info.max) is int


def test_limits_of_others():
    with pytest.raises(DTypeError, match="finfo is for floating dtypes, not int32; use iinfo") as caught:
        hnp.finfo("int32")
    assert __file__ in str(caught.value)
    for dtype in ("bool", "float32", "complex64"):
        with pytest.raises(DTypeError, match=f"iinfo is for integer dtypes, not {dtype}; use finfo"):
            hnp.iinfo(dtype)


@pytest.mark.parametrize("source", NATIVE, ids=str)
def test_can_cast_is_numpys(source):
    for target in NATIVE:
        expected = np.can_cast(source.numpy, target.numpy)
        assert hnp.can_cast(source, target) == hnp.can_cast(hnp.ones(2, source), target.numpy_name) == expected


def test_can_cast_of_bfloat16():
    assert hnp.can_cast(hnp.bfloat16, "float32") and hnp.can_cast("int8", hnp.bfloat16)
    assert not hnp.can_cast(hnp.bfloat16, "float16") and not hnp.can_cast("float16", hnp.bfloat16)


def test_can_cast_of_what_is_for_storage():
    assert hnp.can_cast("float8_e5m2", "float32") and hnp.can_cast("int4", "int8") and hnp.can_cast("uint4", "float16")
    assert hnp.can_cast("bool", "int4") and hnp.can_cast("int4", "int4")
    for source, target in (("int8", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2"), ("float8_e5m2", "bfloat16")):
        assert not hnp.can_cast(source, target)


def test_isdtype():
    table = {
        "bool": "bool", "signed integer": "i8 i16 i32 i64", "unsigned integer": "u8 u16 u32 u64",
        "integral": "i8 i16 i32 i64 u8 u16 u32 u64", "real floating": "f16 bf16 f32 f64",
        "complex floating": "c64 c128", "numeric": "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
    }  # fmt: skip
    for kind, names in table.items():
        assert {d.name for d in ALL if hnp.isdtype(d, kind) and not d.is_tiny} == set(names.split())
        assert all(hnp.isdtype(d.numpy, (kind, "float64")) == (hnp.isdtype(d, kind) or d.name == "f64") for d in ALL)
    assert hnp.isdtype(hnp.float32, np.float32) and not hnp.isdtype(hnp.float32, hnp.float64)
    with pytest.raises(ArgumentError, match="'floating'"):
        hnp.isdtype(hnp.float32, "floating")
    with pytest.raises(UnsupportedDTypeError):
        hnp.isdtype("nothing", "bool")


def test_kinds_of_numpys_dtypes_agree():
    for dtype in NATIVE:
        for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"):
            assert hnp.isdtype(dtype, kind) == np.isdtype(dtype.numpy, kind)


def test_astype():
    x = np.array([0.0, 1.75, -2.5])
    for target in NATIVE:
        for result in (hnp.astype(x, target), harp.jit(lambda x, t=target: hnp.astype(x, t, copy=False))(x)):
            assert result.dtype == target.numpy
            if target.kind.name != "UINT":
                np.testing.assert_array_equal(np.asarray(result), x.astype(target.numpy))
    z = np.array([1 + 2j, 0])
    np.testing.assert_array_equal(np.asarray(hnp.astype(z, "bool")), [True, False])
    with pytest.raises(DTypeError, match=r"complex128 does not become float64.*harp\.numpy\.real") as caught:
        hnp.astype(z, "float64")
    assert __file__ in str(caught.value)


def test_result_type():
    assert hnp.result_type("float32", 1j) == np.complex64 and hnp.result_type("int64", 1j) == np.complex128
    assert hnp.result_type("bool", 1j) == hnp.result_type(1, 1j) == np.complex128
    assert hnp.result_type("float16", "bfloat16") == np.float32
    assert hnp.result_type(hnp.complex64, "float64") == np.complex128


def test_a_dtype_is_one_object_and_equals_numpys():
    for dtype in ALL:
        assert isinstance(dtype, DType) and hnp.ones(1, dtype).dtype == dtype.numpy
        assert np.dtype(dtype) == dtype.numpy and dtype.numpy == dtype
