"""`gather` and `scatter` beside loops over every element, and beside `jax.lax` where JAX is installed."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import ArgumentError, DTypeError, ShapeError

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


def all_of(lax, name, mode, x, indices, updates):
    numbers = CASES[name][2]
    taken = lax.GatherDimensionNumbers(*numbers)
    found = {"gather": lax.gather(x, indices, taken, CASES[name][3], mode=mode)}
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


def test_derivatives_and_batches():
    x, indices, updates = of_case("windows", "fill")
    numbers = lax.GatherDimensionNumbers(*CASES["windows"][2])
    put = lax.ScatterDimensionNumbers(*CASES["windows"][2])
    weights = RNG.normal(size=updates.shape)

    def taken(x):
        return hnp.sum(weights * lax.gather(x, indices, numbers, CASES["windows"][3], fill_value=0.0))

    expected = scattered(np.zeros_like(x), indices, weights, "windows", "fill", "scatter_add")
    npt.assert_allclose(harp.grad(taken)(x), expected)
    outer = RNG.normal(size=x.shape)
    by_updates = harp.grad(lambda u: hnp.sum(outer * lax.scatter_add(x, indices, u, put)))(updates)
    npt.assert_allclose(by_updates, np.nan_to_num(gathered(outer, indices, "windows", "fill", updates.shape)))
    many = np.stack([x, 2 * x, -x])
    found = harp.vmap(lambda a: lax.gather(a, indices, numbers, CASES["windows"][3]))(many)
    for a, b in zip(np.asarray(found), many, strict=True):
        npt.assert_array_equal(a, gathered(b, indices, "windows", "fill", updates.shape))


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
