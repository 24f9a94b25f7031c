"""Arrays and other libraries: memory is shared where it can be, and nobody may write to it."""

from __future__ import annotations

import array
import copy
import ctypes
import operator
import pickle
import sys

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ConcretizationError, DeviceError, InterchangeError, MutationError
from harp.trace.scalar.dtypes import ALL

DLPACK = [d for d in ALL if not d.is_packaged]


@pytest.mark.parametrize("dtype", DLPACK, ids=str)
def test_dlpack_shares_memory(dtype):
    for x in (hnp.ones((2, 3), dtype), hnp.ones((4, 3), dtype)[::-2, 1:], hnp.ones((), dtype), hnp.ones((0, 2), dtype)):
        shared = np.from_dlpack(x)
        assert shared.dtype == dtype.numpy and not shared.flags.writeable
        np.testing.assert_array_equal(shared, np.asarray(x))
        assert not x.size or np.shares_memory(shared, np.asarray(x))


class Consumer:
    """Asks as another library would, and looks at what it was given."""

    def __init__(self, x, **options):
        self.options = options
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**self.options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack_copies_for_those_who_might_write():
    x = hnp.arange(3)
    old = np.from_dlpack(Consumer(x))
    assert old.tolist() == [0, 1, 2] and not np.shares_memory(old, np.asarray(x))
    new = np.from_dlpack(Consumer(x, max_version=(1, 0)))
    assert np.shares_memory(new, np.asarray(x)) and not new.flags.writeable
    own = np.from_dlpack(Consumer(x, max_version=(1, 0), copy=True))
    assert not np.shares_memory(own, np.asarray(x))
    assert x.__dlpack_device__() == (1, 0)
    for options in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": False}, {"copy": False, "max_version": (0, 8)}):
        with pytest.raises(BufferError) as caught:
            x.__dlpack__(**options)
        assert isinstance(caught.value, InterchangeError) and __file__ in str(caught.value)


def test_dlpack_does_not_know_bfloat16():
    pytest.importorskip("ml_dtypes")
    with pytest.raises(InterchangeError, match="bfloat16"):
        hnp.ones(2, "bfloat16").__dlpack__(max_version=(1, 0))


def test_from_dlpack():
    source = np.arange(6.0).reshape(2, 3)
    x = hnp.from_dlpack(source)
    assert np.shares_memory(np.asarray(x), source) and source.flags.writeable
    with pytest.raises(ValueError):
        np.asarray(x)[0, 0] = 1.0
    assert not np.shares_memory(np.asarray(hnp.from_dlpack(source, copy=True)), source)
    assert hnp.from_dlpack(x) is x and hnp.from_dlpack(x, device="cpu", copy=False) is x
    assert hnp.from_dlpack(source[::-1, ::2]).tolist() == source[::-1, ::2].tolist()

    class Elsewhere:
        def __dlpack__(self, **options):
            raise BufferError

        def __dlpack_device__(self):
            return (2, 0)

    for wrong, error in ((Elsewhere(), InterchangeError), ([1.0], ArgumentError)):
        with pytest.raises(error) as caught:
            hnp.from_dlpack(wrong)
        assert __file__ in str(caught.value)
    with pytest.raises(InterchangeError, match="'gpu'"):
        hnp.from_dlpack(source, device="gpu")


def test_asarray_of_other_things():
    class Convertible:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    for value in (
        Convertible(),
        array.array("d", [0, 1, 2]),
        memoryview(np.arange(3.0)),
        (ctypes.c_double * 3)(0, 1, 2),
    ):
        x = hnp.asarray(value)
        assert x.tolist() == [0.0, 1.0, 2.0] and x.dtype == np.float64
    for value in ("text", b"text", object(), None, {}):
        with pytest.raises((ArgumentError, TypeError)):
            hnp.asarray(value)


def test_copies_of_asarray():
    x = hnp.arange(3)
    assert hnp.asarray(x) is x and hnp.asarray(x, copy=False) is x
    assert not np.shares_memory(np.asarray(hnp.asarray(x, copy=True)), np.asarray(x))
    for wrong in (lambda: hnp.asarray([1], copy=False), lambda: hnp.asarray(x, dtype="int8", copy=False)):
        with pytest.raises(ValueError, match="leave out copy=False"):
            wrong()
    y = hnp.asarray(np.arange(6).reshape(2, 3))
    assert np.shares_memory(np.asarray(hnp.reshape(y, (3, 2), copy=False)), np.asarray(y))
    assert not np.shares_memory(np.asarray(hnp.reshape(y, (3, 2), copy=True)), np.asarray(y))
    with pytest.raises(ValueError, match="leave out copy=False"):
        hnp.reshape(y.T, (6,), copy=False)
    assert hnp.reshape(y.T, (6,), copy=True).tolist() == [0, 3, 1, 4, 2, 5]


def test_device():
    x = hnp.ones(2)
    assert x.device == "cpu" and x.to_device("cpu") is x and x.to_device("cpu", stream=None) is x
    for make in (hnp.ones, hnp.zeros, hnp.empty, hnp.arange, hnp.eye):
        assert make(2, device="cpu").device == "cpu"
        with pytest.raises(InterchangeError, match="'tpu'"):
            make(2, device="tpu")
    with pytest.raises(DeviceError, match="this machine has cpu"):
        x.to_device("gpu")
    for wrong in (
        lambda: x.to_device("cpu", stream=1),
        lambda: hnp.asarray([1], device="gpu"),
        lambda: hnp.zeros_like(x, device="gpu"),
        lambda: hnp.full(2, 1, device="gpu"),
        lambda: hnp.linspace(0, 1, 2, device="gpu"),
        lambda: hnp.astype(x, "int8", device="gpu"),
    ):
        with pytest.raises(InterchangeError):
            wrong()


def test_numbers():
    x = hnp.asarray([[1.5, 2.0]])
    assert x.item(0, 1) == x.item(1) == 2.0
    one = hnp.asarray(1.5)
    assert (complex(one), float(one), int(one), bool(one)) == (1.5 + 0j, 1.5, 1, True)
    assert operator.index(hnp.asarray(7, dtype="uint8")) == 7 and range(3)[hnp.asarray(1)] == 1
    for use in (complex, float, int, bool, np.asarray, pickle.dumps, lambda x: x.__dlpack__(), lambda x: x.tolist()):
        with pytest.raises(ConcretizationError):
            harp.trace(use, np.float64(1.0))


def test_text():
    assert repr(hnp.ones(2, "float32")) == "Array([1., 1.], dtype=float32)" and str(hnp.ones(2)) == "[1. 1.]"
    page = hnp.asarray([1.0, 2.0])._repr_html_()
    assert page.startswith("<pre style=") and page.endswith(">Array([1., 2.])</pre>") and "monospace" in page
    assert "..." in hnp.ones((100, 3))._repr_html_() and len(hnp.ones((100, 3))._repr_html_().splitlines()) < 25
    harp.jit(lambda x: x if "&lt;" in x._repr_html_() or "traced" in x._repr_html_() else None)(np.ones(2))


def test_copy_and_pickle():
    x = hnp.asarray(np.arange(12.0).reshape(3, 4))[::-2, 1:]
    for again in (copy.copy(x), copy.deepcopy({"x": x})["x"]):
        assert np.shares_memory(np.asarray(again), np.asarray(x))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(x, protocol))
        assert again.tolist() == x.tolist() and not np.asarray(again).flags.writeable


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the protocol in Python came with 3.12")
def test_buffer():
    x = hnp.arange(4)[::2]
    view = memoryview(x)
    assert view.tolist() == [0, 2] and view.readonly and np.shares_memory(np.asarray(view), np.asarray(x))


def test_namespace():
    x = hnp.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is hnp
    assert x.__array_namespace__() is harp.numpy
    with pytest.raises(ArgumentError, match=r"2019\.12"):
        x.__array_namespace__(api_version="2019.12")
    inside = harp.jit(lambda x: x.__array_namespace__().exp(x).to_device("cpu").realize())
    assert np.asarray(inside(np.zeros(2))).tolist() == [1.0, 1.0]


def test_in_place_operators_bind_a_new_array():
    for operation in (
        operator.iadd,
        operator.isub,
        operator.imul,
        operator.itruediv,
        operator.ifloordiv,
        operator.imod,
    ):
        x = before = hnp.asarray([3.0, 4.0])
        x = operation(x, 2.0)
        assert x is not before and before.tolist() == [3.0, 4.0]
    x = before = hnp.asarray([[1, 2], [3, 4]])
    x @= x
    x <<= 1
    x >>= 1
    x |= 8
    x &= 15
    x ^= 1
    x **= 2
    assert before.tolist() == [[1, 2], [3, 4]] and x.dtype == np.int64
    with pytest.raises(MutationError, match=r"x\.at\[index\]\.set"):
        x[0] = 1


def test_what_prints_numbers_cannot_change_them():
    given = []
    result = harp.jit(lambda x: x + 1)(np.zeros(3))
    np.set_printoptions(override_repr=lambda a: given.append(a) or "numbers")
    try:
        repr(result), str(result)
    finally:
        np.set_printoptions(override_repr=None)
    assert given and not any(a.flags.writeable for a in given)
