"""Indexing against NumPy: every form, at every size, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, IndexOutOfRangeError, MutationError
from harp.trace.array.array import Array

SHAPES = [(), (0,), (1,), (5,), (1, 4), (3, 0), (2, 3, 4)]
bounds = st.none() | st.integers(-7, 7)
slices = st.builds(slice, bounds, bounds, st.none() | st.integers(-4, 4).filter(bool))


@st.composite
def cases(draw):
    shape = draw(st.sampled_from(SHAPES))
    used = draw(st.integers(0, len(shape)))
    # half of the keys are for the last axes, behind an ellipsis
    from_end = draw(st.booleans())
    axes = shape[len(shape) - used :] if from_end else shape[:used]
    keys = [draw(slices | st.integers(-size, size - 1)) if size else draw(slices) for size in axes]
    for _ in range(draw(st.integers(0, 2))):
        keys.insert(draw(st.integers(0, len(keys))), None)
    if from_end:
        keys.insert(0, ...)
    return np.arange(np.prod(shape, dtype=int)).reshape(shape), tuple(keys)


@given(cases())
def test_any_index(case):
    x, key = case
    result = hnp.asarray(x)[key]
    assert isinstance(result, Array)
    np.testing.assert_array_equal(result, x[key], strict=True)


@given(st.integers(0, 6), slices, slices)
def test_slices_of_slices(size, first, second):
    x = np.arange(size)
    np.testing.assert_array_equal(hnp.asarray(x)[first][second], x[first][second], strict=True)


@pytest.mark.parametrize("index", [0, -1, np.int8(2), np.asarray(1), hnp.asarray(1), hnp.asarray([2, 4])[0]])
def test_integers_of_all_kinds(index):
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(hnp.asarray(x)[index], x[int(index)], strict=True)
    np.testing.assert_array_equal(hnp.asarray(x)[index:, :index], x[int(index) :, : int(index)], strict=True)


@pytest.mark.parametrize(("shape", "key"), [((3,), 3), ((3,), -4), ((0,), 0), ((2, 3), (0, 5)), ((2, 3), (..., -4))])
def test_out_of_range_names_the_axis(shape, key):
    with pytest.raises(IndexOutOfRangeError, match=rf"axis {len(shape) - 1} of size {shape[-1]}"):
        hnp.zeros(shape)[key]


@pytest.mark.parametrize("index", [0, -1, -2])
def test_an_axis_without_elements_has_no_element(index):
    for read in (lambda x: x[index], lambda x: x[None][0, index], lambda x: x.at[index].set(1.0)):
        for function in (read, harp.jit(read), harp.jit(lambda x, read=read: read(x[:0]))):
            with pytest.raises(IndexOutOfRangeError):
                function(hnp.zeros(0))


@pytest.mark.parametrize("key", [(0, 0, 0), (slice(None),) * 3, (..., 0, 0, 0), (..., ...)])
def test_too_many_indices(key):
    with pytest.raises(IndexOutOfRangeError):
        hnp.zeros((2, 3))[key]


@pytest.mark.parametrize(
    "key",
    [1.0, "a", np.array([0.0, 1.0]), [0.5], hnp.asarray(1.0), hnp.asarray([1.0]), (True, 0), (0, np.True_)],
)
def test_what_is_not_supported_says_so(key):
    with pytest.raises(ArgumentError, match="not supported as an index"):
        hnp.zeros((2, 3))[key]


def test_step_zero():
    with pytest.raises(ArgumentError, match="step of a slice is 0"):
        hnp.zeros(3)[::0]


def test_arrays_do_not_change():
    with pytest.raises(MutationError):
        hnp.zeros(3)[0] = 1


def test_iteration():
    assert [float(v) for v in hnp.arange(3)] == [0, 1, 2]
