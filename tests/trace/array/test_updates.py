"""`x.at[...]` beside NumPy's item assignment and `ufunc.at`: outside of traces, traced, and compiled."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ConcretizationError, DTypeError, IndexOutOfRangeError, MutationError, ShapeError
from harp.trace.scalar.dtypes import ALL, bool_
from tests.trace.array.test_advanced import KEYS, indexed
from tests.trace.conftest import Program

X = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
BASIC = [
    (),
    (2,),
    (..., -1),
    (slice(1, 3),),
    (slice(None, None, -1), None, slice(0, 4, 2)),
    (slice(4, 0, -3), slice(None, 2), 1),
    (slice(9, 12), 0),
    (slice(None, None, 2), slice(None, None, -2), slice(1, None)),
]
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def updated(x, key, values, how):
    """What NumPy makes of it, in place of a copy."""
    result = x.copy()
    if how == "set":
        result[key] = values
    else:
        UFUNCS[how].at(result, key, values)
    return result


@pytest.mark.parametrize("key", [key for key in KEYS + BASIC if not key or not isinstance(key[0], bool)], ids=repr)
@pytest.mark.parametrize("how", ["set", *UFUNCS])
def test_as_numpy(key, how):
    values = np.random.default_rng(0).integers(-9, 9, X[key].shape).astype(np.float32)
    expected = updated(X, key, values, how)
    found = getattr(hnp.asarray(X).at[key], how)(values)
    np.testing.assert_array_equal(np.asarray(found), expected, strict=True)
    program = Program(lambda x, v: getattr(x.at[key], how)(v), X, values)
    np.testing.assert_array_equal(program(X, values), expected, strict=True)


@given(indexed(), st.sampled_from(("set", "add", "max")), st.booleans())
def test_random_keys(case, how, narrow):
    x, key = case
    shape = x[key].shape
    shape = tuple(1 if narrow and k % 2 else n for k, n in enumerate(shape))
    values = np.arange(np.prod(shape), dtype=x.dtype).reshape(shape) * 7 - 3
    found = getattr(hnp.asarray(x).at[key], how)(values)
    np.testing.assert_array_equal(np.asarray(found), updated(x, key, values, how), strict=True)


@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
def test_compiled_with_indices_that_only_the_program_knows(how):
    """One program for all sizes; indices that repeat take turns in order."""
    function = harp.jit(lambda x, i, j, v: getattr(x.at[i, :, j], how)(v))
    rng = np.random.default_rng(1)
    for shape, count in (((5, 4, 3), 6), ((1, 1, 1), 4), ((2, 200, 2), 9), ((3, 4, 5), 0), ((3, 0, 5), 2)):
        x, v = rng.random(shape, np.float32), rng.random((count, shape[1]), np.float32)
        i, j = (rng.integers(-n, n, count) for n in (shape[0], shape[2]))
        expected = updated(x, (i, slice(None), j), v, how)
        np.testing.assert_array_equal(np.asarray(function(x, i, j, v)), expected, strict=True)
    assert function.compilations == 1


@pytest.mark.parametrize("dtype", [d.numpy for d in ALL], ids=str)
def test_all_dtypes(dtype):
    x, i = np.array([3, 0, 1]).astype(dtype), np.array([2, 0, 2])
    v = np.array([1, 1, 0]).astype(dtype)
    ordered = ("min", "max") if np.dtype(dtype).kind != "c" else ()
    for how in ("set", *ordered, *(() if np.dtype(dtype) == bool_.numpy else ("add", "multiply"))):
        wide = np.float32 if np.dtype(dtype).itemsize == 2 and np.dtype(dtype).kind not in "iu" else dtype
        expected = updated(x.astype(wide), i, v.astype(wide), how).astype(dtype)
        np.testing.assert_array_equal(np.asarray(getattr(hnp.asarray(x).at[i], how)(v)), expected, strict=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "complex128"])
def test_compiled_halves_and_complex_numbers(dtype):
    """Sums of halves are rounded once, in the end."""
    kind = next(d.numpy for d in ALL if d.numpy.name == dtype)
    rng = np.random.default_rng(3)
    x, v = (rng.normal(1, 0.1, (n, 3)).astype(kind) for n in (4, 50))
    if kind.kind == "c":
        x, v = x * kind.type(1 + 0.5j), v * kind.type(1 - 0.1j)
    i, wide = rng.integers(0, 4, 50), np.float32 if kind.itemsize == 2 else kind
    for how in ("set", "add", "multiply"):
        found = harp.jit(lambda x, i, v, how=how: getattr(x.at[i[:12]], how)(v[:12])[i])(x, i, v)
        expected = updated(x.astype(wide), i[:12], v[:12].astype(wide), how).astype(kind)[i]
        at_once = getattr(hnp.asarray(x).at[i[:12]], how)(v[:12])[i]
        tolerance = 0 if wide is np.float32 else 1e-6  # a product of complex numbers is fused
        assert at_once.dtype == kind  # sums of complex64 go in complex128 there
        np.testing.assert_allclose(np.asarray(at_once).astype(np.complex128), expected.astype(np.complex128), tolerance)
        np.testing.assert_allclose(np.asarray(found).astype(np.complex128), expected.astype(np.complex128), tolerance)


@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
def test_traced_masks(how):
    def function(x, m, v):
        return getattr(x.at[m], how)(v)

    values = np.arange(3, dtype=np.float32) - 1
    for mask, v in ((X % 2 == 0, np.float32(2)), (X[:, :, 0] % 2 == 0, values), (X[:, 0, 0] > 20, values[1:2])):
        expected = updated(X, mask, v, how)
        np.testing.assert_array_equal(Program(function, X, mask, v)(X, mask, v), expected, strict=True)
        np.testing.assert_array_equal(np.asarray(function(hnp.asarray(X), mask, v)), expected, strict=True)


@pytest.mark.parametrize("how", ["add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_without_elements_stay_halves(dtype, how):
    x, none = hnp.zeros((0, 3), dtype), np.zeros(0, int)
    assert np.asarray(getattr(x.at[none], how)(x)).dtype == x.dtype
    gradient = harp.grad(lambda x: hnp.sum(x[none]))(x)
    assert np.asarray(gradient).dtype == x.dtype


def test_a_mask_of_no_axes():
    x = hnp.asarray(np.float32(3))
    np.testing.assert_array_equal(np.asarray(x.at[x > 2].set(7.0)), np.float32(7), strict=True)
    np.testing.assert_array_equal(np.asarray(x.at[x > 4].set(7.0)), np.float32(3), strict=True)


def test_single_bools_and_elements_along_their_axis():
    x = np.arange(3.0)
    for condition, key in ((True, np.bool_(True)), (False, np.bool_(False))):
        for values in (5.0, np.array([7.0, 8.0, 9.0]), np.ones((int(condition), 3))):
            expected = x.copy()
            expected[key] = values
            np.testing.assert_array_equal(hnp.asarray(x).at[hnp.asarray(key)].set(hnp.asarray(values)), expected)
    np.testing.assert_array_equal(hnp.asarray(2.0).at[hnp.asarray(True)].add(hnp.asarray([3.0])), 5.0)
    np.testing.assert_array_equal(hnp.asarray(x).at[True, 0].set(4.0), [4.0, 1.0, 2.0])
    traced = harp.jit(lambda x, c: x.at[c].set(hnp.ones((1, 3))))
    np.testing.assert_array_equal([traced(x, np.bool_(True)), traced(x, np.bool_(False))], [np.ones(3), x])


def test_outside_the_axis():
    i, v = np.array([0, 5, -6, -5, 4]), np.arange(5, dtype=np.float32)
    x = np.zeros(5, np.float32)
    inside, nearest = updated(x, [0, 0, 4], v[[0, 3, 4]], "add"), updated(x, [0, 4, 0, 0, 4], v, "add")
    for mode, expected in ((None, inside), ("drop", inside), ("fill", inside), ("clip", nearest)):
        program = Program(lambda x, i, v, mode=mode: x.at[i].add(v, mode=mode), x, i, v)
        np.testing.assert_array_equal(program(x, i, v), expected)
        if mode:
            np.testing.assert_array_equal(np.asarray(hnp.asarray(x).at[i].add(v, mode=mode)), expected)
    with pytest.raises(IndexOutOfRangeError, match="index -6 is out of range"):
        _ = hnp.asarray(x).at[i].add(v)
    dropping = Program(lambda x, i, v: x.at[i].set(v), x, i, v)
    np.testing.assert_array_equal(dropping(x[:0], i, v), x[:0])
    with pytest.raises(IndexOutOfRangeError, match="axis 0 has no element"):
        harp.jit(lambda x, i, v: x.at[i].set(v, mode="clip"))(x[:0], i, v)


def test_numbers_take_the_dtype_of_the_array():
    x = hnp.asarray(np.array([1, 2, 3], np.int16))
    np.testing.assert_array_equal(np.asarray(x.at[0].set(7)), np.array([7, 2, 3], np.int16), strict=True)
    np.testing.assert_array_equal(np.asarray(x.at[0].add(np.int64(1))), np.array([2, 2, 3], np.int16), strict=True)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: x.astype(hnp.int32).at[0].set(1.5), DTypeError, "values of float64 do not fit an array of int32"),
        (lambda x: (x > 1).at[0].add(True), DTypeError, ".add does not accept bool arrays"),
        (lambda x: x.at[:, 0].set(np.zeros(4)), ShapeError, "selected do not fit the values"),
        (lambda x: x.at[0].set(np.zeros((1, 4, 3))), ShapeError, "values with 3 axes do not fit 2"),
        (lambda x: x.at[[0, 1]].set(np.zeros((3, 4, 3))), ShapeError, "do not broadcast|do not fit"),
        (lambda x: x.at[:, :1].set(np.zeros((5, 2, 3))), ShapeError, "values do not fit axis 1 of what is selected"),
        (lambda x: x.at[x[:4] > 1].set(1), ShapeError, "a mask does not fit axis 0"),
        (lambda x: x.at[hnp.zeros((1, 1, 1, 1)) > 1].set(1), ShapeError, "a mask with 4 axes"),
        (lambda x: x.at[5].set(1), IndexOutOfRangeError, "index 5 is out of range"),
    ],
)
def test_errors(call, error, match):
    for function in (call, harp.jit(call)):
        with pytest.raises(error, match=match):
            function(hnp.asarray(X))


def test_the_array_itself_stays():
    x = hnp.asarray(X)
    _ = x.at[0].set(1.0).at[[1]].add(2.0)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_masks_behind_whole_axes():
    x, mask = np.arange(24.0).reshape(3, 4, 2), np.random.default_rng(0).random((4, 2)) < 0.5
    columns = harp.jit(lambda x, m: x.at[:, m].set(-1.0))
    pair = harp.jit(lambda x, m, v: x.at[:, m].add(v))
    for lead in (3, 1, 0):
        expected = x[:lead].copy()
        expected[:, mask] = -1
        for found in (columns(x[:lead], mask), hnp.asarray(x[:lead]).at[:, mask].set(-1.0)):
            np.testing.assert_array_equal(found, expected)
        expected = x[:lead].copy()
        expected[:, mask[:, 0]] += np.array([1.0, 2.0])
        np.testing.assert_array_equal(pair(x[:lead], mask[:, 0], np.array([1.0, 2.0])), expected)
    with pytest.raises(ShapeError, match="a mask does not fit axis 1"):
        columns(x, np.ones((5, 2), bool))
    with pytest.raises(ConcretizationError, match=r"x\.at\[:, mask\]\.set\(value\) beside whole axes"):
        harp.jit(lambda x, m: x.at[0, m].set(1.0))(x, mask)


def test_updates_that_are_broadcast_to_nothing():
    rows, columns, x = np.full((4, 1), 2), np.zeros((1, 0), int), np.zeros((0, 3))
    for f in (lambda x, i, j: x.at[i, j].set(2.0), lambda x, i, j: x.at[i, j].add(2.0, mode="clip")):
        for base in (x, x.T, np.ones((3, 3))):
            np.testing.assert_array_equal(np.asarray(f(hnp.asarray(base), rows, columns)), base)
            np.testing.assert_array_equal(np.asarray(harp.jit(f)(base, rows, columns)), base)


@pytest.mark.parametrize("at", [-4, -1, 3, 10**30])
@pytest.mark.parametrize("mode", ["clip", "fill", "drop"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_mode_says_what_known_integers_outside_mean(at, mode, axis):
    """One program for sizes for which the integer is inside, and for which it is outside."""
    key = (slice(None),) * axis + (at,)
    read = harp.jit(lambda x: x.at[key].get(mode=mode, fill_value=-1.0))
    write = harp.jit(lambda x, v: x.at[key].multiply(v, mode=mode))
    for size in (3, 1, 8):
        x, v = np.arange(size * 12.0).reshape(size, 4, 3).swapaxes(0, axis).copy(), np.array([2.0, 3.0, 5.0])
        place = at + size if at < 0 else at
        if mode == "clip":
            place = min(max(place, 0), size - 1)
        is_inside, expected = 0 <= place < size, x.copy()
        if is_inside:
            expected[(slice(None),) * axis + (place,)] *= v
        rows = x.take(place, axis) if is_inside else np.full((4, 3), -1.0)
        for f, g in ((read, write), (read.__wrapped__, write.__wrapped__)):
            np.testing.assert_array_equal(np.asarray(f(hnp.asarray(x))), rows)
            np.testing.assert_array_equal(np.asarray(g(hnp.asarray(x), v)), expected)
    assert read.compilations == write.compilations == 1


def test_known_integers_outside_beside_slices_arrays_and_in_loops():
    x = hnp.asarray(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(np.asarray(x.at[7, 1:3].set(5.0, mode="clip"))[2], [8, 5, 5, 11])
    np.testing.assert_array_equal(np.asarray(x.at[7, [1, 2]].get(mode="clip")), [9, 10])
    np.testing.assert_array_equal(np.asarray(hnp.take(x, 9, axis=1, mode="clip")), [3, 7, 11])
    np.testing.assert_array_equal(np.asarray(x.at[7].apply(hnp.sqrt, mode="clip"))[2], np.sqrt([8, 9, 10, 11]))
    np.testing.assert_array_equal(
        np.asarray(harp.grad(lambda x: hnp.sum(x.at[5, 0].get(mode="clip")))(x)).nonzero()[0], [2]
    )
    step = lambda i, c: c.at[c.shape[0]].add(i, mode="clip")
    np.testing.assert_array_equal(np.asarray(harp.fori_loop(0, 3, step, hnp.zeros(2))), [0, 3])
    assert hnp.zeros((0, 2)).at[1].set(1.0, mode="drop").shape == (0, 2)
    with pytest.raises(IndexOutOfRangeError, match="no element"):
        hnp.zeros((0, 2)).at[1].get(mode="clip")


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("x.at[0] = 5", r"x = x.at\[index\].set\(value\)"),
        ("x.at[0] += 5", r"x = x.at\[index\].add\(value\)"),
        ("x.at[0] -= 5", r"x = x.at\[index\].subtract\(value\)"),
        ("x.at[1:] *= 5", r"x = x.at\[index\].multiply\(value\)"),
        ("x.at[0] /= 5", r"x = x.at\[index\].divide\(value\)"),
        ("x.at[0] **= 5", r"x = x.at\[index\].power\(value\)"),
    ],
)
def test_assignments_say_what_to_write(statement, advice):
    with pytest.raises(MutationError, match=advice):
        exec(statement, {"x": hnp.ones(3)})


def test_a_statement_that_drops_the_update_warns():
    def dropped(x):
        x.at[0].set(5)
        return x

    def kept(x):
        return x.at[0].set(5)

    with pytest.warns(RuntimeWarning, match=r"write x = x.at\[index\].set\(...\)") as caught:
        harp.jit(dropped)(np.ones(3))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        harp.jit(kept)(np.ones(3))
        hnp.linalg.inv(np.eye(2))  # updates inside of harp are no statements of the user
        kept(hnp.ones(3))
