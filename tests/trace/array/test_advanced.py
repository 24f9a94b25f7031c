"""`x[...]` with arrays of indices and masks, beside NumPy: outside of traces, and traced for all sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnps

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ConcretizationError, IndexOutOfRangeError, MutationError, ShapeError
from harp.trace.scalar.dtypes import ALL
from tests.trace.conftest import Program

X = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
ROWS, COLUMN = np.array([0, 2, -1]), np.array([[1], [-3]])

KEYS = [
    (ROWS,),
    (slice(None), ROWS),
    (ROWS, slice(None), 2),
    (0, slice(None), ROWS),
    (slice(None), ROWS, -1),
    (COLUMN, ROWS),
    (ROWS, ROWS, ROWS),
    (slice(1, 4), COLUMN, None, ROWS),
    (None, ROWS, ..., ROWS),
    (ROWS, None, ROWS),
    (slice(None), ROWS, ..., ROWS),
    (..., ROWS, None),
    (slice(None, None, -2), ROWS),
    (ROWS[:, None], slice(None, None, -1), ROWS),
    (np.int32(1), ROWS.astype(np.uint8) % 3),
    ([0, -1], slice(1, 1)),
    ([],),
    (X > 20,),
    (X[:, :, 0] > 20, 1),
    (slice(None), X[0] > 3),
    (X[:, 0, 0] > 20, [0], slice(2)),
    (..., X[0, 0] > 0),
    (True,),
    (False,),
    (np.zeros((5, 4, 3), bool),),
    (np.array(1), slice(None), np.array([1])),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_as_numpy(key):
    expected = X[key]
    np.testing.assert_array_equal(np.asarray(hnp.asarray(X)[key]), expected, strict=True)
    program = Program(lambda x: x[key], X)
    np.testing.assert_array_equal(program(X), expected, strict=True)


@st.composite
def indexed(draw):
    """An array of any small shape, and a key with arrays that NumPy accepts."""
    shape = draw(hnps.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    common = draw(hnps.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    key, axis = [], 0
    while axis < len(shape):
        kind = draw(st.sampled_from(("array", "slice", "integer", "none", "mask", "dots", "part")))
        size = shape[axis]
        if kind == "none":
            key.append(None)
            continue
        if kind == "dots" and Ellipsis not in [k if k is Ellipsis else 0 for k in key]:
            key.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
            continue
        if kind == "integer" and size:
            key.append(draw(st.integers(-size, size - 1)))
        elif kind in ("array", "part") and size:
            its = common if kind == "array" else tuple(draw(st.sampled_from((1, n))) for n in common)
            key.append(draw(hnps.arrays(np.int64, its, elements=st.integers(-size, size - 1))))
        elif kind == "mask" and not common:
            key.append(np.arange(size) == draw(st.integers(0, 4)))
        else:
            key.append(
                slice(*draw(st.tuples(*[st.none() | st.integers(-5, 5)] * 2, st.sampled_from((None, 1, 2, -1)))))
            )
        axis += 1
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape), tuple(key)


@given(indexed())
def test_random_keys(case):
    x, key = case
    np.testing.assert_array_equal(np.asarray(hnp.asarray(x)[key]), x[key], strict=True)


@given(indexed())
def test_random_keys_with_traced_indices(case):
    """The rule for where the axes go is the same where nothing is known of the indices."""
    x, key = case
    places = [k for k, item in enumerate(key) if isinstance(item, np.ndarray) and item.dtype != bool]

    def function(x, *indices):
        items = list(key)
        for place, index in zip(places, indices, strict=True):
            items[place] = index
        return x[tuple(items)]

    arrays = x, *(key[k] for k in places)
    np.testing.assert_array_equal(Program(function, *arrays)(*arrays), x[key], strict=True)


def test_one_trace_serves_all_sizes():
    program = Program(lambda x, i, j: x[i, :, j], X, ROWS, ROWS)
    for shape, count in (((1, 1, 1), 1), ((7, 0, 2), 5), ((2, 3, 1), 0), ((0, 3, 1), 0), ((0, 3, 0), 0)):
        x, i = np.random.default_rng(0).random(shape, np.float32), np.arange(count) - count
        i = i % max(shape[0], 1) if shape[0] else i
        j = np.zeros(count, np.int64)
        np.testing.assert_array_equal(program(x, i, j), x[i, :, j])
    assert not program.accepts((0, 3, 2), (2,), (2,))  # nothing to read, and two that want to


@pytest.mark.parametrize("dtype", [d.numpy for d in ALL], ids=str)
def test_all_dtypes(dtype):
    x = np.arange(6).astype(dtype)
    for index in ALL:
        if index.is_integer:
            i = np.array([1, 5, 0, 5], index.numpy)
            expected = x[i.astype(int)]  # NumPy does not take int4
            np.testing.assert_array_equal(np.asarray(hnp.asarray(x)[i]), expected, strict=True)
            np.testing.assert_array_equal(Program(lambda x, i: x[i], x, i)(x, i), expected, strict=True)


def test_negative_strides_and_read_only_inputs():
    x, i = X[::-1, :, ::-2], ROWS[::-1]
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda x, i: x[i, 1])(x, i)), x[i, 1])


def test_traced_integers():
    program = Program(lambda x, i: x[i, ..., i - 1], X, np.array(2))
    for i in (2, 0, -1):
        np.testing.assert_array_equal(program(X, np.array(i)), X[i, ..., i - 1])


@pytest.mark.parametrize("index", [5, -6, [0, 5], [[-6]]])
def test_known_indices_outside_raise(index):
    with pytest.raises(IndexOutOfRangeError, match="is out of range for axis 0 of size 5"):
        hnp.asarray(X)[np.asarray(index)]
    with pytest.raises(IndexOutOfRangeError, match=r"is out of range for axis 0 of size x.shape\[0\] = 5"):
        harp.jit(lambda x: x[np.asarray(index)])(X)


def test_a_call_that_is_too_small_for_known_indices_raises():
    function = harp.jit(lambda x: x[np.array([0, 4])])
    assert function(X).shape == (2, 4, 3)
    with pytest.raises(IndexOutOfRangeError, match="index 4 is out of range"):
        function(X[:4])


def test_unknown_indices_outside_mean_the_nearest_element():
    i = np.array([-9, -5, 4, 5, 2**62, -(2**63)])
    np.testing.assert_array_equal(harp.jit(lambda x, i: x[i])(X, i), X[[0, 0, 4, 4, 4, 0]])
    u = np.array([2**64 - 1, 2**63, 3], np.uint64)
    np.testing.assert_array_equal(harp.jit(lambda x, i: x[i])(X, u), X[[4, 4, 3]])


def test_an_axis_without_elements():
    with pytest.raises(IndexOutOfRangeError, match="axis 1 has no element"):
        harp.jit(lambda x, i: x[:, i])(X[:, :0], ROWS)
    assert harp.jit(lambda x, i: x[:, i])(X[:, :0], ROWS[:0]).shape == (5, 0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool])
def test_fill(dtype):
    x, i = np.array([1, 0, 1]).astype(dtype), np.array([2, 3, -3, -4])
    default = {"f": np.nan, "i": -(2**15), "u": 255, "b": True}[np.dtype(dtype).kind]
    for value, shown in ((None, default), (1, 1)):
        expected = np.array([x[2], shown, x[0], shown], dtype)
        for mode in ("fill", "drop"):
            np.testing.assert_array_equal(hnp.asarray(x).at[i].get(mode=mode, fill_value=value), expected)
        program = Program(lambda x, i, value=value: x.at[i].get(mode="fill", fill_value=value), x, i)
        np.testing.assert_array_equal(program(x, i), expected)
        np.testing.assert_array_equal(program(x[:0], i), np.full(4, shown, dtype))


def test_clip_is_a_mode_outside_of_traces_too():
    np.testing.assert_array_equal(hnp.asarray(X).at[np.array([9, -9])].get(mode="clip"), X[[4, 0]])
    np.testing.assert_array_equal(hnp.asarray(X).at[1:3].get(), X[1:3])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x, m: x[m], ConcretizationError, r"x.at\[mask\].set\(value\)"),
        (lambda x, m: x[0, :, m[0, 0]], ConcretizationError, "harp.numpy.where"),
        (lambda x, m: x.at[m, 0].set(1), ConcretizationError, "known only when the program runs"),
        (lambda x, m: x[x], ArgumentError, "not supported as an index"),
        (lambda x, m: x.at[0].get(mode="wild"), ArgumentError, "mode must be one of 'clip'"),
        (lambda x, m: x.at[ROWS].get(mode="fill", fill_value="a"), ArgumentError, "fill_value must be a number"),
        (lambda x, m: x[ROWS, ROWS, ROWS, ROWS], IndexOutOfRangeError, "4 indices for an array with 3 axes"),
        (lambda x, m: x[..., ROWS, ...], IndexOutOfRangeError, "one `...` only"),
        (lambda x, m: x[ROWS, np.arange(2)], ShapeError, "do not broadcast"),
        (lambda x, m: x[[[1, 0], [1]]], ShapeError, "no array of indices: .* inhomogeneous"),
        (lambda x, m: x[np.ones(3, bool)], ShapeError, "a mask has the sizes of the axes that it selects from: axis 0"),
        (lambda x, m: x[:, :, np.ones((3, 3), bool)], IndexOutOfRangeError, "too m"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        harp.jit(call)(X, X > 1)


def test_item_assignment_points_to_at():
    with pytest.raises(MutationError, match=r"x.at\[index\].set\(value\)"):
        hnp.zeros(3)[np.array([1])] = 2.0


def test_the_largest_unsigned_index_is_no_negative_one():
    huge = np.array([2**64 - 1], np.uint64)
    for read in (lambda x: x[huge], lambda x: x[hnp.asarray(huge)], lambda x: x.at[huge].set(0.0)):
        with pytest.raises(IndexOutOfRangeError, match="18446744073709551615 is out of range"):
            read(hnp.arange(3.0))
    np.testing.assert_array_equal(hnp.arange(3.0)[np.array([2, 0], np.uint64)], [2.0, 0.0])


def test_an_unknown_mode_of_take_names_all_of_them():
    with pytest.raises(ArgumentError, match=r"'clip'.*'wrap', not 'bogus'"):
        hnp.take(np.ones(3), np.array([0]), mode="bogus")


def test_indices_that_others_broadcast_to_nothing():
    """As in NumPy: four rows and no columns are no positions, and no element is asked for."""
    rows, columns = np.full((4, 1), 2), np.zeros((1, 0), int)
    f = harp.jit(lambda x, i, j: x[i, j])
    known = harp.jit(lambda x, j: x[rows, j])
    x = np.arange(9.0).reshape(3, 3)
    for source, j in ((x, np.array([[0, 1]])), (x[:0], columns), (x[:, :0], columns), (x, columns)):
        np.testing.assert_array_equal(np.asarray(f(source, rows, j)), source[rows, j], strict=True)
        np.testing.assert_array_equal(np.asarray(known(source, j)), source[rows, j], strict=True)
        np.testing.assert_array_equal(np.asarray(hnp.asarray(source)[rows, j]), source[rows, j], strict=True)
        gradient = harp.grad(lambda x, i, j: hnp.sum(x[i, j]))(source, rows, j)
        exact = np.zeros(source.shape)
        np.add.at(exact, (rows, j), 1.0)
        np.testing.assert_array_equal(np.asarray(gradient), exact)
    assert f.compilations <= 2  # where an axis is broadcast
    for wrong in (f, lambda x, i, j: known(x, j)):
        with pytest.raises(IndexOutOfRangeError, match="axis 0"):
            wrong(x[:0], rows, np.array([[0, 1]]))


def test_a_single_integer_is_held_to_its_axis_beside_no_indices():
    """NumPy raises as well: an integer is a position of its own."""
    with pytest.raises(IndexError):
        X[:0][0, ROWS[:0]]
    for index in (0, np.array(0)):
        with pytest.raises(IndexOutOfRangeError, match="axis 0"):
            harp.jit(lambda x, i, j: x[i, j])(X[:0], index, ROWS[:0])


def test_known_indices_for_which_there_is_no_memory():
    with pytest.raises(IndexOutOfRangeError, match="axis 1"):
        hnp.asarray(np.empty((2**60, 0), np.int8))[:, np.arange(3)]
