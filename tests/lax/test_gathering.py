"""`gather` and `scatter` beside loops over every element, and beside `jax.lax` where JAX is installed."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5, 3))
# Shape of the array, of the indices, dimension numbers, sizes of windows.
CASES = {
    "rows": ((4, 5), (3, 1), ((1,), (0,), (0,)), (1, 5)),
    "elements": ((4, 5), (2, 3, 2), ((), (0, 1), (0, 1)), (1, 1)),
    "windows": ((4, 5, 3), (2, 2), ((0, 1, 3), (), (1, 0)), (2, 3, 2)),
    "windows behind": ((4, 5, 3), (2, 2, 1), ((1, 3), (1,), (1,)), (3, 1, 2)),
    "batches": ((4, 5, 3), (2, 4, 1), ((1,), (1,), (1,), (0,), (1,)), (1, 1, 3)),
    "no place": ((4, 5), (2,), ((0, 1), (), (0, 1)), (2, 2)),
    "no index": ((4, 5), (3, 0), ((0, 2), (), ()), (2, 5)),
    "empty window": ((4, 5), (3, 1), ((1,), (0,), (0,)), (1, 0)),
    "no row": ((4, 5), (0, 1), ((1,), (0,), (0,)), (1, 5)),
}
MODES = ("clip", "fill", "promise_in_bounds")


def elements(shape, indices, numbers, sizes, clips):
    """(place in the result, element of the array, or None outside) of all, one after the other."""
    offsets, collapsed, mapped, own, others = (*numbers, (), ())[:5]
    windowed = [axis for axis in range(len(shape)) if axis not in collapsed and axis not in own]
    rank = indices.ndim - 1 + len(offsets)
    for place in product(*map(range, indices.shape[:-1])):
        start = dict.fromkeys(range(len(shape)), 0) | {a: int(v) for a, v in zip(mapped, indices[place], strict=True)}
        start |= {axis: place[k] for axis, k in zip(own, others, strict=True)}
        if clips:
            start = {axis: min(max(v, 0), shape[axis] - sizes[axis]) for axis, v in start.items()}
        inside = all(0 <= v <= shape[axis] - sizes[axis] for axis, v in start.items())
        for window in product(*(range(sizes[axis]) for axis in windowed)):
            at = dict(start)
            for axis, step in zip(windowed, window, strict=True):
                at[axis] += step
            left, kept = iter(place), iter(window)
            to = tuple(next(kept) if k in offsets else next(left) for k in range(rank))
            yield to, tuple(at[axis] for axis in range(len(shape))) if inside else None


def of_case(name, mode, dtype=np.float64):
    shape, places, numbers, sizes = CASES[name]
    low, high = (0, 2) if mode == "promise_in_bounds" else (-2, 6)
    x = RNG.normal(size=shape) * 10
    indices = RNG.integers(low, high, size=places)
    if mode == "promise_in_bounds":
        for k, axis in enumerate(numbers[2]):
            indices[..., k] = np.minimum(indices[..., k], shape[axis] - sizes[axis])
    offsets = numbers[0]
    windowed = iter(s for axis, s in enumerate(sizes) if axis not in numbers[1] and axis not in (*numbers, (), ())[3])
    left = iter(places[:-1])
    whole = [next(windowed) if k in offsets else next(left) for k in range(len(places) - 1 + len(offsets))]
    return x.astype(dtype), indices, (RNG.normal(size=whole) * 10).astype(dtype)


def gathered(x, indices, name, mode, shape):
    fill = np.nan if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    result = np.full(shape, fill, x.dtype)
    for to, source in elements(x.shape, indices, CASES[name][2], CASES[name][3], mode == "clip"):
        if source is not None:
            result[to] = x[source]
    return result


UPDATES = {
    "scatter": lambda a, b: b,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}


def scattered(x, indices, updates, name, mode, how):
    result = x.copy()
    for to, target in elements(x.shape, indices, CASES[name][2], CASES[name][3], mode == "clip"):
        if target is not None:
            result[target] = UPDATES[how](result[target], updates[to])
    return result


def all_of(lax, name, mode, x, indices, updates, fill_value=None):
    numbers = CASES[name][2]
    taken = lax.GatherDimensionNumbers(*numbers)
    found = {"gather": lax.gather(x, indices, taken, CASES[name][3], mode=mode, fill_value=fill_value)}
    put = lax.ScatterDimensionNumbers(*numbers)
    return found | {how: getattr(lax, how)(x, indices, updates, put, mode=mode) for how in UPDATES}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32], ids=lambda d: d.__name__)
def test_beside_loops(dtype):
    given = {(name, mode): of_case(name, mode, dtype) for name in CASES for mode in MODES}

    def program(args):
        return [all_of(lax, *key, *args[k]) for k, key in enumerate(given)]

    args = list(given.values())
    compiled, at_once = harp.jit(program)(args), program([[*map(hnp.asarray, arg)] for arg in args])
    for k, ((name, mode), (x, indices, updates)) in enumerate(given.items()):
        for found in (compiled[k], at_once[k]):
            expected = gathered(x, indices, name, mode, updates.shape)
            npt.assert_array_equal(found["gather"], expected, err_msg=f"{name} {mode}")
            for how in UPDATES:
                assert found[how].dtype == dtype
                expected = scattered(x, indices, updates, name, mode, how)
                npt.assert_allclose(found[how], expected, rtol=1e-5, atol=1e-4, err_msg=f"{how} {name} {mode}")


def test_beside_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    for name in CASES:
        for mode in MODES:
            case = of_case(name, mode)
            found, expected = all_of(lax, name, mode, *case), all_of(jax.lax, name, mode, *case)
            for how in found:
                npt.assert_allclose(found[how], expected[how], rtol=1e-12, err_msg=f"{how} {name} {mode}")


def test_sizes_are_free():
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    put = lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def f(x, i):
        rows = lax.gather(x, i, numbers, (1, x.shape[1]), mode="clip")
        return rows, lax.scatter_add(x, i, rows, put)

    compiled = harp.jit(f, signature=[harp.f64["n", "m"], harp.i64["k", 1]])
    for n, m, k in ((4, 3, 2), (1, 1, 1), (3, 0, 2), (3, 2, 0)):
        x, i = RNG.normal(size=(n, m)), RNG.integers(0, n, size=(k, 1))
        rows, sums = compiled(x, i)
        npt.assert_array_equal(rows, x[i[:, 0]])
        np.add.at(expected := x.copy(), i[:, 0], x[i[:, 0]])
        npt.assert_allclose(sums, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("no ", "empty"))])
def test_derivatives_beside_differences(name, mode):
    x, indices, updates = of_case(name, mode)

    def curved(x, updates):
        found = all_of(lax, name, mode, x, indices, updates, fill_value=0.25)
        return {how: hnp.sin(array) for how, array in found.items()}

    check_grads(harp.jit(curved), (x / 10, updates / 10), 2)


def test_extrema_share_slopes_where_they_are_equal():
    put = lax.ScatterDimensionNumbers((), (0,), (0,))
    places, weights = np.array([[0], [0], [2]]), np.array([1.0, 2.0, 4.0])

    for how in (lax.scatter_min, lax.scatter_max):
        slopes = harp.grad(lambda x, u, how=how: hnp.sum(weights * how(x, places, u, put)), argnums=(0, 1))
        of_array, of_updates = slopes(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 3.0]))
        npt.assert_allclose(of_array, [1 / 3, 2, 2])
        npt.assert_allclose(of_updates, [1 / 3, 1 / 3, 2])


@pytest.mark.parametrize("name", ["windows behind", "batches", "no place", "no row"])
def test_batches(name):
    """Of arrays, indices, updates, and each two and all of them, beside one after the other."""
    given = [of_case(name, "fill") for _ in range(3)]
    stacked = [np.stack(arrays) for arrays in zip(*given, strict=True)]
    axes = [axes for axes in product((0, None), repeat=3) if 0 in axes]

    def batches(stacked):
        def each(axes):
            f = partial(all_of, lax, name, "fill")
            return harp.vmap(f, axes)(*(a if axis == 0 else a[0] for a, axis in zip(stacked, axes, strict=True)))

        return list(map(each, axes))

    stacked = [*map(hnp.asarray, stacked)]
    for found in (harp.jit(batches)(stacked), batches(stacked)):
        for own, results in zip(axes, found, strict=True):
            for k in range(3):
                x, i, u = (given[k if axis == 0 else 0][place] for place, axis in enumerate(own))
                expected = gathered(x, i, name, "fill", u.shape)
                npt.assert_array_equal(results["gather"][k], expected, err_msg=str(own))
                for how in UPDATES:
                    expected = scattered(x, i, u, name, "fill", how)
                    npt.assert_allclose(results[how][k], expected, rtol=1e-12, atol=1e-12, err_msg=f"{how} {own}")


def test_derivatives_of_batches():
    given = [of_case("windows", "clip") for _ in range(3)]
    stacked = [hnp.asarray(np.stack(arrays)) for arrays in zip(*given, strict=True)]

    def slopes(x, i, u):
        def loss(x, u):
            return sum(hnp.sum(found**2) for found in all_of(lax, "windows", "clip", x, i, u).values())

        return harp.grad(loss, argnums=(0, 1))(x, u)

    found, one = harp.jit(harp.vmap(slopes))(*stacked), harp.jit(slopes)
    for k, arrays in enumerate(given):
        for batch, alone in zip(found, one(*arrays), strict=True):
            npt.assert_allclose(batch[k], alone, rtol=1e-12)


@pytest.mark.parametrize("name", ["elements", "windows", "batches", "no row"])
@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_scatter_apply(name, mode):
    x, indices, updates = of_case(name, mode)
    put = lax.ScatterDimensionNumbers(*CASES[name][2])

    def halved(x, i):
        return lax.scatter_apply(x, i, lambda v: v / 2 + 1, put, update_shape=updates.shape, mode=mode)

    expected = x.copy()
    for _, target in elements(x.shape, indices, CASES[name][2], CASES[name][3], mode == "clip"):
        if target is not None:
            expected[target] = expected[target] / 2 + 1
    for f in (halved, harp.jit(halved)):
        npt.assert_allclose(f(x, indices), expected, rtol=1e-14)
    check_grads(harp.jit(lambda x: hnp.sin(halved(x, indices))), (x / 10,), 2)
    both = harp.jit(harp.vmap(halved))(np.stack([x, -x]), np.stack([indices, indices]))
    npt.assert_allclose(both[0], expected, rtol=1e-14)
    npt.assert_allclose(both[1], halved(-x, indices), rtol=1e-14)


def test_scatter_apply_of_unique_indices_and_misfits():
    put, x = lax.ScatterDimensionNumbers((), (0,), (0,)), np.array([2, 3, 4])
    places = np.array([[2], [0], [7]])
    found = lax.scatter_apply(x, places, lambda v: v * v, put, update_shape=(3,), unique_indices=True)
    assert found.dtype == x.dtype and found.tolist() == [4, 3, 16]
    with pytest.raises(ShapeError, match="axes of places"):
        lax.scatter_apply(x, places, hnp.square, put)
    with pytest.raises(ShapeError, match="same places"):
        lax.scatter_apply(x, places, hnp.square, put, update_shape=(2,))


def test_what_does_not_fit():
    x, i = hnp.ones((4, 5)), hnp.zeros((3, 1), dtype="int64")
    rows, put = lax.GatherDimensionNumbers((1,), (0,), (0,)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(ShapeError, match="does not fit axis 1"):
        lax.gather(x, i, rows, (1, 6))
    with pytest.raises(ShapeError, match="1 element along axis 0"):
        lax.gather(x, i, rows, (2, 5))
    with pytest.raises(ShapeError, match="slice_sizes has 1"):
        lax.gather(x, i, rows, (1,))
    with pytest.raises(ShapeError, match="last axis of 1"):
        lax.gather(x, hnp.zeros((3, 2), dtype="int64"), rows, (1, 5))
    with pytest.raises(ShapeError, match="each once"):
        lax.gather(x, i, lax.GatherDimensionNumbers((1,), (7,), (0,)), (1, 5))
    with pytest.raises(ShapeError, match="does not fit an array of 2 axes"):
        lax.gather(x, i, lax.GatherDimensionNumbers((), (0,), (0,)), (1, 5))
    with pytest.raises(DTypeError, match="indices are integers"):
        lax.gather(x, hnp.ones((3, 1)), rows, (1, 5))
    with pytest.raises(ArgumentError, match="mode is one of"):
        lax.gather(x, i, rows, (1, 5), mode="wrap")
    with pytest.raises(ShapeError, match="the same places"):
        lax.scatter(x, i, hnp.ones((2, 5)), put)
    with pytest.raises(ShapeError, match="axes of places"):
        lax.scatter(x, i, hnp.ones(5), put)


@pytest.mark.parametrize("compile", [lambda f: f, harp.jit])
def test_unsigned_indices_beyond_signed_ones(compile):
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    x, indices = np.arange(4.0), np.array([[2**63], [1], [2**64 - 1]], np.uint64)
    clipped = compile(lambda x, i: lax.gather(x, i, numbers, (1,), mode="clip"))(x, indices)
    filled = compile(lambda x, i: lax.gather(x, i, numbers, (1,), mode="fill"))(x, indices)
    np.testing.assert_array_equal(clipped, [3.0, 1.0, 3.0])
    np.testing.assert_array_equal(filled, [np.nan, 1.0, np.nan])


@pytest.mark.parametrize("device", ["c", "opencl", "opencl wide"], indirect=True)
def test_many_parts_of_rows(device):
    """Updates of some columns only: on wide devices, too, the others keep their elements."""
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    x, rows, updates = RNG.normal(size=(100, 4)), RNG.integers(-5, 110, size=(300, 1)), RNG.normal(size=(300, 3))
    expected = x.copy()
    for row, update in zip(rows[:, 0], updates, strict=True):
        if 0 <= row < 100:
            expected[row, :3] = update
    npt.assert_array_equal(harp.jit(lambda *a: lax.scatter(*a, numbers, mode="drop"))(x, rows, updates), expected)
