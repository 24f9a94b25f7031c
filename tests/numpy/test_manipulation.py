"""Reordering, reshaping, broadcasting, joining and padding against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, ConcretizationError, ShapeError

SHAPES = [(), (0,), (1,), (6,), (2, 3), (3, 0), (1, 4, 1), (2, 3, 4)]


def numbers(shape, dtype=np.float64):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def same(result, expected):
    np.testing.assert_array_equal(np.asarray(result), expected, strict=True)


@st.composite
def with_order(draw):
    shape = draw(st.sampled_from(SHAPES))
    return numbers(shape), draw(st.permutations(range(-len(shape), 0)))


@given(with_order())
def test_transpose(case):
    x, order = case
    same(hnp.transpose(x, tuple(order)), np.transpose(x, order))
    same(hnp.permute_dims(x, tuple(order)), np.transpose(x, order))
    same(hnp.asarray(x).transpose(*order), np.transpose(x, order if order else None))
    same(hnp.asarray(x).T, x.T)
    same(hnp.moveaxis(x, tuple(range(x.ndim)), tuple(order)), np.moveaxis(x, range(x.ndim), order))
    if x.ndim > 1:
        same(hnp.matrix_transpose(x), np.swapaxes(x, -1, -2))
        same(hnp.asarray(x).mT, np.swapaxes(x, -1, -2))
        same(hnp.swapaxes(x, order[0], order[1]), np.swapaxes(x, order[0], order[1]))
        same(hnp.moveaxis(x, order[0], order[1]), np.moveaxis(x, order[0], order[1]))


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2)])
def test_transpose_errors(axes):
    with pytest.raises(AxisError):
        hnp.transpose(np.zeros((2, 3)), axes)


RESHAPES = [
    ((6,), (2, 3)),
    ((6,), (-1, 2)),
    ((2, 3), (3, -1)),
    ((2, 3), -1),
    ((), (1, 1)),
    ((1,), ()),
    ((2, 3), (1, 6, -1)),
    ((0,), (3, 0)),
    ((0, 3), (-1, 3)),
    ((3, 0), (0, 5)),
    ((2, 3, 4), (4, 3, 2)),
    ((2, 3, 4), (6, 4)),
    ((0,), (-1,)),
]


@pytest.mark.parametrize(("shape", "to"), RESHAPES)
def test_reshape(shape, to):
    x = numbers(shape)
    same(hnp.reshape(x, to), x.reshape(to))
    same(hnp.asarray(x).reshape(to), x.reshape(to))
    same(hnp.asarray(x.T.copy()).T.reshape(to), x.reshape(to))


@pytest.mark.parametrize(
    ("shape", "to"),
    [((6,), (4,)), ((6,), (-1, 4)), ((6,), (-1, 0)), ((0,), (-1, 0)), ((0,), (2,)), ((6,), (-1, -1)), ((4,), (-2, -2))],
)
def test_reshape_errors(shape, to):
    with pytest.raises(ShapeError):
        hnp.reshape(numbers(shape), to)


@pytest.mark.parametrize("shape", SHAPES)
def test_same_elements(shape):
    x = numbers(shape)
    same(hnp.ravel(x), x.ravel())
    same(hnp.asarray(x).flatten(), x.flatten())
    same(hnp.squeeze(x), x.squeeze())
    same(hnp.flip(x), np.flip(x))
    for axis in range(-x.ndim, x.ndim):
        same(hnp.flip(x, axis), np.flip(x, axis))
        if x.shape[axis] == 1:
            same(hnp.asarray(x).squeeze(axis), x.squeeze(axis))
        else:
            with pytest.raises(ShapeError, match="one element"):
                hnp.squeeze(x, axis)
    for axis in (0, -1, (0, 1), (0, -1)):
        if isinstance(axis, int) or x.ndim + 2 > 1:
            same(hnp.expand_dims(x, axis), np.expand_dims(x, axis))


@pytest.mark.parametrize(
    ("shape", "to"),
    [((), (2, 3)), ((3,), (2, 3)), ((1, 3), (2, 3)), ((1,), (0,)), ((0,), (2, 0)), ((2, 3), (2, 3)), ((1, 1), (1, 4))],
)
def test_broadcast_to(shape, to):
    x = numbers(shape)
    same(hnp.broadcast_to(x, to), np.broadcast_to(x, to))
    for ours, theirs in zip(hnp.broadcast_arrays(x, np.zeros(to)), np.broadcast_arrays(x, np.zeros(to)), strict=True):
        same(ours, theirs)


@pytest.mark.parametrize(("shape", "to"), [((3,), (2,)), ((3,), (1,)), ((2, 3), (3,)), ((2,), (2, 3)), ((0,), (1,))])
def test_broadcast_to_errors(shape, to):
    with pytest.raises(ShapeError, match="broadcast_to"):
        hnp.broadcast_to(np.zeros(shape), to)


@given(st.sampled_from(SHAPES), st.integers(-9, 9), st.data())
def test_roll(shape, shift, data):
    x = numbers(shape)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1)) if shape else None
    same(hnp.roll(x, shift, axis), np.roll(x, shift, axis))
    if len(shape) == 2:
        same(hnp.roll(x, (shift, 1), (0, 1)), np.roll(x, (shift, 1), (0, 1)))
        same(hnp.roll(x, shift, (0, 1)), np.roll(x, shift, (0, 1)))


@st.composite
def parts(draw):
    shape = draw(st.sampled_from([s for s in SHAPES if s]))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    dtypes = st.sampled_from(["bool", "int8", "uint8", "int32", "float32", "float64"])
    made = []
    for _ in range(draw(st.integers(1, 4))):
        sizes = list(shape)
        sizes[axis] = draw(st.integers(0, 3))
        made.append(numbers(sizes, draw(dtypes)))
    return made, axis


@given(parts())
def test_concatenate(case):
    arrays, axis = case
    same(hnp.concatenate(arrays, axis), np.concatenate(arrays, axis))
    same(hnp.concatenate(arrays, None), np.concatenate(arrays, None))
    same(hnp.stack([arrays[0]] * 3, axis), np.stack([arrays[0]] * 3, axis))


def test_concatenate_is_exact():
    a, b = np.array([-0.0, np.nan, np.inf]), np.array([-np.inf, -0.0])
    result = np.asarray(hnp.concatenate([a, b]))
    assert result.tobytes() == np.concatenate([a, b]).tobytes()


@pytest.mark.parametrize("shapes", [[(2, 3), (2, 2)], [(2,), (2, 2)], [(), ()]])
def test_concatenate_errors(shapes):
    with pytest.raises(ShapeError):
        hnp.concatenate([np.zeros(s) for s in shapes])
    with pytest.raises(ArgumentError):
        hnp.concatenate([])


def test_numbers_concatenate():
    assert hnp.stack([1, 2.5]).tolist() == [1.0, 2.5]
    with pytest.raises(ShapeError):
        hnp.stack([np.zeros(2), np.zeros(3)])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reps", [2, 0, 1, (2, 3), (1, 0, 2)])
def test_tile(shape, reps):
    same(hnp.tile(numbers(shape), reps), np.tile(numbers(shape), reps))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("times", [0, 1, 3])
def test_repeat(shape, times):
    for axis in [None, *range(-len(shape), len(shape))]:
        same(hnp.repeat(numbers(shape), times, axis), np.repeat(numbers(shape), times, axis))


@pytest.mark.parametrize("sections", [1, 2, 3, [1], [2, 4], [4, 2], [0, 9], []])
def test_split(sections):
    for shape, axis in (((6,), 0), ((2, 6), -1), ((0, 2), 0)):
        for ours, theirs in zip(
            hnp.split(numbers(shape), sections, axis), np.split(numbers(shape), sections, axis), strict=True
        ):
            same(ours, theirs)


def test_split_errors():
    with pytest.raises(ShapeError, match="4 equal sections"):
        hnp.split(np.zeros(6), 4)
    with pytest.raises(ArgumentError):
        hnp.split(np.zeros(6), 0)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
@pytest.mark.parametrize("width", [0, 2, (1, 2), ((0, 3),)])
@pytest.mark.parametrize("value", [0, -1.5, np.nan])
def test_pad(shape, width, value):
    same(hnp.pad(numbers(shape), width, constant_values=value), np.pad(numbers(shape), width, constant_values=value))


def test_pad_by_axis():
    x = numbers((2, 3), np.int8)
    same(hnp.pad(x, ((1, 0), (2, 3))), np.pad(x, ((1, 0), (2, 3))))
    # a pad of a pad with another value
    twice = hnp.pad(hnp.pad(x, 1, constant_values=1), 1, constant_values=2)
    same(twice, np.pad(np.pad(x, 1, constant_values=1), 1, constant_values=2))


def test_pad_errors():
    with pytest.raises(ArgumentError, match=r"'constant', .* not 'other'"):
        hnp.pad(np.zeros(3), 1, mode="other")
    with pytest.raises(ShapeError, match="pad_width of axis 0 must be at least 0, not -1"):
        hnp.pad(np.zeros(3), -1)
    with pytest.raises(ShapeError, match="pad_width of pad has 2 pairs for 1 axis"):
        hnp.pad(np.zeros(3), ((1, 1), (1, 1)))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: hnp.repeat(x, [1.5, 2.0, 3.0]), "repeats is an integer, or a vector"),
        (lambda x: hnp.repeat(x, np.ones((3, 1), int)), "repeats is an integer, or a vector"),
        (lambda x: hnp.split(x, "a"), "sections"),
        (lambda x: hnp.split(x, 1.5), "sections"),
        (lambda x: hnp.sum(x, axis=1.0), "must be an integer, not 1.0 of type float"),
        (lambda x: hnp.sum(x, axis="a"), "must be an integer"),
        (lambda x: hnp.transpose(x, np.array([0.0])), "must be an integer"),
        (lambda x: hnp.einsum(3, x), "einsum takes subscripts"),
        (lambda x: hnp.tensordot(x, x, "a"), "axes of tensordot"),
        (lambda x: hnp.concatenate(3), "concatenate takes a list of arrays, not an int"),
        (lambda x: hnp.concatenate(None), "concatenate takes a list of arrays, not None"),
        (lambda x: hnp.stack("ab"), "stack takes a list of arrays, not a str"),
        (lambda x: hnp.concatenate([[1, 2], [3]]), "list is not an array or a number; convert it with"),
        (lambda x: hnp.sum([1, 2]), "list is not an array or a number; convert it with"),
        (lambda x: hnp.matmul(x, [1, 2, 3]), "list is not an array or a number; convert it with"),
        (lambda x: harp.jit(lambda p: hnp.exp(p))([1.0, 2.0]), "list is not an array or a number; convert it with"),
        (lambda x: harp.jit(lambda p, x: p + x)([1.0, 2.0], x), "list is not an array or a number; convert it with"),
    ],
)
def test_arguments_of_the_wrong_type(call, match):
    with pytest.raises(ArgumentError, match=match) as caught:
        call(np.ones(3))
    assert __file__ in str(caught.value)


def test_shapes_as_arrays():
    assert hnp.zeros(np.array([2, 3])).shape == hnp.zeros((np.int64(2), np.array(3))).shape == (2, 3)
    for shape in (np.array([2.0]), np.array(1.5), (np.array([2]),)):
        with pytest.raises(ShapeError, match="integer"):
            hnp.zeros(shape)


ROLLS = [(2, None), (-7, None), ((1, 2), None), ((1, 2), (0, 1)), ((3, -5), 1), (4, (0, 1)), (2**62, 0), (5, -1)]


@pytest.mark.parametrize(("shift", "axis"), ROLLS)
def test_roll_by_numbers_that_are_computed(shift, axis):
    """One program for all sizes and shifts."""
    function = harp.jit(lambda x, shift: hnp.roll(x, shift, axis))
    for shape in ((3, 4), (0, 2), (1, 1), (7, 3)):
        x = np.arange(np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(np.asarray(function(x, shift)), np.roll(x, shift, axis))
    assert function.compilations == 1


def test_roll_by_data_in_batches_and_backwards():
    x, shifts = np.arange(12.0).reshape(3, 4), np.array([1, -2, 3])
    found = harp.jit(harp.vmap(hnp.roll))(x, shifts)
    np.testing.assert_array_equal(np.asarray(found), [np.roll(row, k) for row, k in zip(x, shifts, strict=True)])
    back = harp.grad(lambda x, k: hnp.sum(hnp.roll(x, k, 1) * np.arange(4.0)))(x, np.array(1))
    np.testing.assert_array_equal(np.asarray(back), np.roll(np.broadcast_to(np.arange(4.0), (3, 4)), -1, 1))
    np.testing.assert_array_equal(np.asarray(hnp.roll(x, np.array([1, 2]), (0, 1))), np.roll(x, (1, 2), (0, 1)))
    np.testing.assert_array_equal(np.asarray(harp.jit(hnp.roll)(x, np.uint64(2**63))), np.roll(x, 2**63 % 12))
    with pytest.raises(ArgumentError, match="float64"):
        harp.jit(hnp.roll)(x, 1.5)


LISTED = {
    "reshape": lambda m, x, given: m.reshape(x, given([3, 2, 1])),
    "method reshape": lambda m, x, given: x.reshape(given([3, -1])),
    "transpose": lambda m, x, given: m.transpose(x, given([2, 0, 1])),
    "method transpose": lambda m, x, given: x.transpose(given([2, 0, 1])),
    "moveaxis": lambda m, x, given: m.moveaxis(x, given([0, 1]), given([1, 2])),
    "flip": lambda m, x, given: m.flip(x, given([0, -1])),
    "expand_dims": lambda m, x, given: m.expand_dims(x, given([0, 2])),
    "squeeze": lambda m, x, given: m.squeeze(x, given([1])),
    "roll": lambda m, x, given: m.roll(x, given([1, 2]), given([0, 2])),
}


@pytest.mark.parametrize("listed", [np.array, hnp.array, lambda axes: range(axes[0], axes[0] + 1)])
@pytest.mark.parametrize("name", LISTED)
def test_sizes_and_axes_that_are_arrays(name, listed):
    function, x = LISTED[name], np.arange(6.0).reshape(2, 1, 3)
    if isinstance(listed([1]), range) and name not in ("moveaxis", "flip", "expand_dims", "squeeze", "roll"):
        pytest.skip("one number does not do")
    expected = function(np, x, lambda axes: tuple(np.array(listed(axes)).tolist()))
    np.testing.assert_array_equal(function(hnp, hnp.asarray(x), listed), expected)
    np.testing.assert_array_equal(harp.jit(lambda x: function(hnp, x, listed))(x), expected)


def test_axes_that_a_program_computes_are_refused():
    with pytest.raises(ConcretizationError, match="sizes and axes must be numbers"):
        harp.jit(lambda x, axes: hnp.transpose(x, axes))(np.ones((2, 3)), np.array([1, 0]))
