"""Sums through the lanes of sub-groups, on a device that has some: right, and of the bits that they have without."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends.opencl import devices, measure
from harp.transforms.jit import programs

LENGTHS = (0, 1, 127, 128, 129, 255, 256, 257, 4096 + 3, 100_000)
wide = pytest.mark.parametrize("device", ["opencl wide"], indirect=True)


@pytest.fixture(params=[16, 32])
def lanes(device, request, monkeypatch):
    """So many in each sub-group."""
    own = devices.device(int(device.partition(":")[2]))
    if not measure.sub_group_size(own) or not measure.has_sub_groups(own, request.param):
        pytest.skip(f"{own!r} has no sub-groups of {request.param}")
    monkeypatch.setattr(measure, "sub_group_size", lambda device: request.param)
    programs.forget()
    return request.param


def given(dtype, length, rows=3):
    rng = np.random.default_rng(length)
    if dtype == "bool":
        return rng.random((rows, length)) > 0.5 / max(length, 1)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, (rows, length), dtype, endpoint=True)
    x = rng.standard_normal((rows, length))
    return (x + 1j * rng.standard_normal((rows, length)) if dtype[0] == "c" else x).astype(dtype)


def with_and_without(monkeypatch, function, arguments):
    """What a function says of each, with sub-groups and without, and what is compiled for them."""
    f = harp.jit(function)
    assert "shuffle" in f.lower(*arguments[-1]).source
    found = [np.asarray(f(*given)) for given in arguments]
    with monkeypatch.context() as patch:
        patch.setattr(measure, "sub_group_size", lambda device: 0)
        programs.forget()
        f = harp.jit(function)
        assert "shuffle" not in f.lower(*arguments[-1]).source
        others = [np.asarray(f(*given)) for given in arguments]
    programs.forget()
    for one, other in zip(found, others, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return found


SUMMED = ("float32", "float64", "float16", "complex64", "complex128")
WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@wide
@pytest.mark.parametrize("dtype", [*SUMMED, *WHOLE])
def test_sums(device, lanes, dtype, monkeypatch):
    arrays = [given(dtype, length) for length in LENGTHS]
    if dtype == "float16":
        arrays = [(x / 100).astype(dtype) for x in arrays]
    for axis in (1, None):
        found = with_and_without(monkeypatch, lambda x, axis=axis: hnp.sum(x, axis=axis), [(x,) for x in arrays])
        for x, sums in zip(arrays, found, strict=True):
            if np.dtype(dtype).kind in "iu":
                npt.assert_array_equal(sums, np.sum(x, axis))
                continue
            exact = x.astype("c16" if dtype[0] == "c" else "f8")
            rounding = np.finfo(dtype).eps * 8 * max(np.abs(exact).sum(1).max(initial=0), 1)
            assert (np.abs(sums.astype(exact.dtype) - exact.sum(axis)) <= 3 * rounding).all()


REDUCTIONS = [
    (hnp.prod, np.prod, "float64"),
    (hnp.prod, np.prod, "int32"),
    (hnp.max, np.max, "float32"),
    (hnp.max, np.max, "int16"),
    (hnp.min, np.min, "float64"),
    (hnp.min, np.min, "uint64"),
    (hnp.any, np.any, "bool"),
    (hnp.all, np.all, "bool"),
    (hnp.argmax, np.argmax, "float32"),
    (hnp.argmin, np.argmin, "int8"),
]


@wide
@pytest.mark.parametrize(("ours", "numpy", "dtype"), REDUCTIONS, ids=lambda value: getattr(value, "__name__", value))
def test_other_reductions(device, lanes, ours, numpy, dtype, monkeypatch):
    arrays = [given(dtype, length) for length in LENGTHS[1:]]
    if ours is hnp.prod and dtype == "float64":
        arrays = [1 + x / 1000 for x in arrays]
    if dtype == "float32":
        for x in arrays[2:]:
            x[1, 100], x[2, 60:] = np.nan, 7.0
    found = with_and_without(monkeypatch, lambda x: ours(x, axis=1), [(x,) for x in arrays])
    for x, reduced in zip(arrays, found, strict=True):
        npt.assert_allclose(reduced, numpy(x, axis=1), rtol=1e-11 if dtype == "float64" else 0)


@wide
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(device, lanes, dtype, reverse, monkeypatch):
    arrays = [given(dtype, length) for length in LENGTHS]
    found = with_and_without(monkeypatch, lambda x: harp.lax.cumsum(x, axis=1, reverse=reverse), [(x,) for x in arrays])
    for x, sums in zip(arrays, found, strict=True):
        around = (x.astype("f8") if dtype[0] == "f" else x)[:, :: -1 if reverse else 1]
        wanted = np.cumsum(around, axis=1, dtype=around.dtype)[:, :: -1 if reverse else 1]
        if dtype[0] == "f":
            rounding = np.finfo(dtype).eps * 8 * np.abs(around).sum(1).max(initial=1)
            npt.assert_allclose(sums, wanted, rtol=0, atol=rounding)
        else:
            npt.assert_array_equal(sums, wanted)


@wide
def test_long_columns_and_scatters_and_rows_with_several_sums(device, lanes, monkeypatch):
    x, i = given("float32", 5000), np.random.default_rng(0).integers(0, 10, 5000)
    columns, scattered, several = (
        lambda x, i: hnp.var(x.T, axis=0),
        lambda x, i: hnp.zeros(10).at[i].add(x[0]),
        lambda x, i: hnp.exp(x - hnp.max(x, axis=1, keepdims=True)) / hnp.sum(x * x, axis=1, keepdims=True),
    )
    exact = x.astype("f8")
    wanted = [
        exact.var(1),
        np.bincount(i, exact[0], 10),
        np.exp(exact - exact.max(1, keepdims=True)) / (exact * exact).sum(1, keepdims=True),
    ]
    for function, right in zip((columns, scattered, several), wanted, strict=True):
        (found,) = with_and_without(monkeypatch, function, [(x, i)])
        npt.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


@wide
def test_infinities_and_zeros_with_signs(device, lanes, monkeypatch):
    x = np.full((3, 300), -0.0, "f4")
    x[1, 7], x[2, 9:11] = np.inf, (np.inf, -np.inf)
    (found,) = with_and_without(monkeypatch, lambda x: hnp.sum(x, axis=1), [(x,)])
    npt.assert_array_equal(found, [0, np.inf, np.nan])


class Device:
    """What a device says that it has."""

    def __init__(self, extensions, items):
        self.device = SimpleNamespace(extensions=extensions, max_work_group_size=items)


@pytest.mark.parametrize("extensions", ["", "cl_khr_subgroup_shuffle", "cl_intel_required_subgroup_size"])
def test_devices_without(extensions):
    """They cannot ask for a size, or read what others have."""
    assert measure.sub_group_size(Device(extensions, 1024)) == 0


@pytest.mark.parametrize("device", ["opencl"], indirect=True)
def test_a_device_whose_driver_refuses_them(device, monkeypatch):
    """It says that it has some: what a kernel finds counts."""
    own = devices.device(int(device.partition(":")[2]))
    assert not measure.has_sub_groups(own, 24)
    monkeypatch.setattr(measure, "has_sub_groups", lambda device, lanes: lanes == 32)
    extensions = "cl_intel_required_subgroup_size cl_khr_subgroup_shuffle"
    assert [measure.sub_group_size(Device(extensions, items)) for items in (256, 128)] == [32, 0]


@pytest.mark.parametrize("device", ["opencl"], indirect=True)
def test_cores_need_none(device):
    """Their kernels have no groups that share."""
    source = harp.jit(lambda x: hnp.sum(x, axis=1)).lower(np.ones((3, 3))).source
    assert "sub_group" not in source
