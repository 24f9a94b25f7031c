"""Sorting and searching against NumPy: every dtype, axis, length and special value; stable; derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, DTypeError, IndexOutOfRangeError, ShapeError
from harp.trace.scalar import dtypes

REAL = [d.numpy for d in dtypes.ALL if d.kind.name != "COMPLEX"]
# On both sides of where the way of sorting changes; all in one program for a dtype.
LENGTHS = [0, 1, 2, 3, 39, 40, 41, 100, 300, 4095, 4096, 9000]

SORT = harp.jit(lambda x: tuple(f(x, descending=d) for d in (False, True) for f in (hnp.sort, hnp.argsort)))
SEARCH = harp.jit(lambda t, v: (hnp.searchsorted(t, v), hnp.searchsorted(t, v, side="right")))


def sample(rng, shape, dtype, most=None):
    """Numbers of all sizes, or few that repeat; floats with NaN of both signs, infinities and both zeros."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = (max(limits.min, -most), min(limits.max, most)) if most else (limits.min, limits.max)
        return rng.integers(low, high, shape, dtype, endpoint=True)
    values = rng.integers(-most, most, shape) * 0.5 if most else rng.normal(size=shape) * 10.0 ** rng.integers(-9, 9)
    special = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
    return np.where(rng.integers(0, 4, shape) == 0, special, values).astype(dtype)


def ordered(x):
    """NumPy does not sort NaN of bfloat16 and float8."""
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float32)


def expected(x):
    keys = ordered(x)
    order = np.argsort(keys, axis=-1, kind="stable")
    back = np.flip(x.shape[-1] - 1 - np.argsort(np.flip(keys, -1), axis=-1, kind="stable"), -1)
    return [y for o in (order, back) for y in (np.take_along_axis(x, o, -1), o)]


def same(results, wanted):
    """Bit by bit: signs of zero and of NaN, too."""
    for a, b in zip(results, wanted, strict=True):
        a = np.asarray(a)
        assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_length_is_sorted_as_in_numpy(dtype):
    rng = np.random.default_rng(5)
    for length in LENGTHS:
        for most in (None, 3):
            x = sample(rng, length, dtype, most)
            same(SORT(x), expected(x))
    assert SORT.compilations <= len(REAL)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "float64", "uint16"])
def test_long_rows_are_dealt_out(dtype):
    """Also where most keys begin with the same bits, or are equal."""
    rng = np.random.default_rng(6)
    n = 70_000
    for x in (
        sample(rng, n, dtype),
        sample(rng, n, dtype, 3),
        np.where(rng.integers(0, 50, n), 1, sample(rng, n, dtype)).astype(dtype),
        rng.integers(2**20, 2**20 + 9000, n).astype(dtype),
    ):
        same(SORT(x), expected(x))


@given(st.sampled_from(REAL), st.lists(st.integers(0, 6), min_size=1, max_size=3), st.data())
def test_axes_and_strides_at_once(dtype, shape, data):
    axis, step = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.sampled_from([1, -1, 2]))
    x = sample(np.random.default_rng(data.draw(st.integers(0, 99))), shape, dtype, 3)[..., ::step]
    wanted = [np.moveaxis(y, -1, axis) for y in expected(np.moveaxis(x, axis, -1))]
    for d, pair in ((False, wanted[:2]), (True, wanted[2:])):
        same((hnp.sort(x, axis, descending=d), hnp.argsort(x, axis, descending=d)), pair)
    flat = expected(x.ravel())
    same((hnp.sort(x, None), hnp.argsort(x, axis=None)), flat[:2])


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_axes_compiled(axis):
    f = harp.jit(lambda x: (hnp.sort(x * 2, axis) + 1, hnp.argsort(x, axis)))
    rng = np.random.default_rng(1)
    for shape in [(3, 4, 5), (1, 1, 1), (0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 70, 1), (50, 1, 6)]:
        x = rng.integers(-5, 5, shape).astype(np.float32)
        value, order = f(x)
        np.testing.assert_array_equal(value, np.sort(x * 2, axis) + 1)
        np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))
    assert f.compilations == 1


def test_axes_of_one_element():
    f = harp.jit(lambda x: (hnp.sort(x[None, :, None, :]), hnp.argsort(x[:, None, None], 0)))
    x = np.random.default_rng(1).normal(size=(3, 5))
    value, order = f(x)
    np.testing.assert_array_equal(value, np.sort(x)[None, :, None, :])
    np.testing.assert_array_equal(order, np.argsort(x, 0)[:, None, None])


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads):
    x = np.random.default_rng(2).normal(size=(400, 3000)).astype(np.float32)
    f = harp.jit(hnp.sort, threads=threads)
    np.testing.assert_array_equal(f(x), np.sort(x))
    np.testing.assert_array_equal(f(x[7:8]), np.asarray(f(x))[7:8])


def test_sorted_and_equal_and_reversed_inputs():
    n = 5000
    for x in (np.arange(n), np.arange(n)[::-1], np.zeros(n, int), np.arange(n) % 7, np.arange(n) * 2**40):
        same(SORT(x), expected(x))
        same(SORT(x.astype(np.float64)), expected(x.astype(np.float64)))


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4))
def test_several_keys(keys):
    np.testing.assert_array_equal(hnp.lexsort([np.array(k) for k in keys]), np.lexsort(keys))
    np.testing.assert_array_equal(hnp.lexsort(np.array(keys)), np.lexsort(keys))


def test_several_keys_compiled():
    f = harp.jit(lambda a, b: hnp.lexsort((a, b), axis=0))
    for shape in [(3, 2), (1, 1), (40, 3), (0, 2)]:
        a, b = np.random.default_rng(3).integers(0, 3, (2, *shape))
        np.testing.assert_array_equal(f(a, b), np.lexsort((a, b), axis=0))
    assert f.compilations == 1
    with pytest.raises(ShapeError, match="sizes differ along axis 1"):
        f(np.zeros((3, 2), int), np.zeros((3, 3), int))


def test_top_k():
    f = harp.jit(lambda x: hnp.top_k(x, 3, axis=0))
    for shape in [(3, 2), (8, 1), (50, 4)]:
        x = np.random.default_rng(3).integers(0, 9, shape).astype(np.float32)
        order = np.argsort(-x, axis=0, kind="stable")[:3]
        for values, places in (f(x), hnp.top_k(x, 3, axis=0)):
            np.testing.assert_array_equal(places, order)
            np.testing.assert_array_equal(values, np.take_along_axis(x, order, 0))
    with pytest.raises(ShapeError, match=r"top_k of 3 elements along axis 0 of size .*2"):
        f(np.zeros((2, 2), np.float32))


# --- searching


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_search_as_in_numpy(dtype):
    rng = np.random.default_rng(7)
    for length, shape in [(0, 3), (1, 5), (7, 0), (100, 2000), (33, 50)]:
        table, values = expected(sample(rng, length, dtype, 20))[0], sample(rng, shape, dtype, 25)
        wanted = [np.searchsorted(ordered(table), ordered(values), side) for side in ("left", "right")]
        same(SEARCH(table, values), wanted)
        same((hnp.searchsorted(table, values), hnp.searchsorted(table, values, side="right")), wanted)


def test_search_in_common_dtype_and_any_shape():
    table = np.array([1, 3, 3, 7], np.int8)
    for values in (3, 2.5, 300.5, np.float32(3), np.arange(12).reshape(2, 3, 2), np.array([[1.0]]), np.array(3)):
        found = hnp.searchsorted(table, values)
        np.testing.assert_array_equal(found, np.searchsorted(table, values))
        assert found.shape == np.shape(values)
    f = harp.jit(lambda t, v: hnp.searchsorted(t, v))
    for shape in [(2, 3, 2), (1, 1, 1), (0, 2, 1), (4, 1, 2000)]:
        v = np.random.default_rng(1).normal(size=shape).astype(np.float32) * 5
        np.testing.assert_array_equal(f(table.astype(np.float32), v), np.searchsorted(table.astype(np.float32), v))
    assert f.compilations == 1


def test_search_with_sorter():
    table, values = np.array([5.0, 1.0, 3.0]), np.array([0.0, 3.0, 6.0])
    wanted = np.searchsorted(table, values, sorter=np.argsort(table))
    f = harp.jit(lambda t, v: hnp.searchsorted(t, v, sorter=hnp.argsort(t)))
    np.testing.assert_array_equal(f(table, values), wanted)
    np.testing.assert_array_equal(hnp.searchsorted(table, values, sorter=np.argsort(table)), wanted)


# --- derivatives


@pytest.mark.parametrize("descending", [False, True])
def test_gradient_goes_back_through_the_order(descending):
    """Ties are resolved as in the sort: JAX's convention."""
    f = harp.jit(harp.grad(lambda x, w: hnp.sum(hnp.sort(x, 0, descending=descending) * w)))
    rng = np.random.default_rng(4)
    for shape in [(6, 2), (1, 1), (60, 3), (0, 2)]:
        x, w = rng.integers(0, 5, shape).astype(np.float64), rng.normal(size=shape)
        order = np.argsort(-x if descending else x, axis=0, kind="stable")
        wanted = np.zeros_like(x)
        np.put_along_axis(wanted, order, w, 0)
        np.testing.assert_array_equal(f(x, w), wanted)


def test_second_derivatives_against_differences():
    def loss(x):
        return hnp.sum(hnp.sort(x) ** 3 * hnp.arange(5))

    x, v, h = np.array([0.3, -1.0, 2.0, 0.9, -0.2]), np.array([1.0, 0.5, -1.0, 2.0, 0.1]), 1e-5
    gradient = harp.grad(loss)
    product = harp.grad(lambda x: hnp.sum(gradient(x) * v))(x)
    numeric = [(gradient(x + e) - gradient(x - e)) @ v / (2 * h) for e in np.eye(5) * h]
    np.testing.assert_allclose(product, np.asarray(numeric, float), rtol=1e-6, atol=1e-6)


def test_positions_and_keys_have_no_derivative():
    g = harp.grad(lambda x: hnp.sum(x * hnp.argsort(x)))(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(g, [1.0, 2.0, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "of"), [("complex64", "eager"), ("complex128", "eager"), ("complex128", "jit")])
def test_complex_numbers_by_real_parts_then_imaginary_ones(dtype, of):
    nan = np.nan
    parts = np.random.default_rng(2).integers(-2, 3, (2, 4, 9)).astype(float)
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    z[1, 2:6] = [complex(nan, 1), complex(0, nan), complex(nan, nan), complex(nan, -1)]

    def every(z):
        return (
            *(hnp.sort(z), hnp.argsort(z, 0), hnp.sort(z, None), hnp.sort_complex(hnp.real(z)), hnp.partition(z, 1)),
            *(hnp.max(z, 1), hnp.min(z), hnp.argmax(z), hnp.argmin(z, 1)),
            *(
                hnp.max(z, (0, 1), True),
                hnp.min(z, 0, initial=1 - 5j, where=hnp.real(z) > 0),
                hnp.argsort(z, descending=True),
            ),
        )

    *found, backwards = (harp.jit(every) if of == "jit" else every)(z)
    wanted = (
        *(np.sort(z), np.argsort(z, 0, kind="stable"), np.sort(z, None), np.sort_complex(z.real), np.sort(z)),
        *(np.max(z, 1), np.min(z), np.argmax(z), np.argmin(z, 1)),
        *(np.max(z, (0, 1), keepdims=True), np.min(z, 0, initial=1 - 5j, where=z.real > 0)),
    )
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), str(k))
        np.testing.assert_array_equal(np.nan_to_num(a), np.where(np.isnan(b), np.nan_to_num(a), b), str(k))
    whole = np.delete(z, 1, 0)
    rows = np.take_along_axis(z, np.asarray(backwards), 1)
    np.testing.assert_array_equal(np.delete(rows, 1, 0), np.sort(whole)[:, ::-1])


def test_complex_keys_among_others():
    z = np.array([1 + 1j, 2 - 1j, 0.5j, complex(np.nan, 0), complex(0, np.nan), 0.5j, 1])
    group, back = np.arange(7) % 2, -np.arange(7.0)
    for keys in ((back, z), (z, group), (z, group, z.real > 0)):
        np.testing.assert_array_equal(hnp.lexsort(keys), np.lexsort(keys))
    ordered, values = harp.jit(harp.lax.sort_key_val)(z, back)
    np.testing.assert_array_equal(ordered, np.sort(z))
    np.testing.assert_array_equal(values, back[np.argsort(z, kind="stable")])


def test_an_extremum_of_complex_numbers_has_the_gradient_of_its_element():
    z = np.array([1 + 2j, 1 + 5j, 0 + 9j])
    slope = harp.grad(lambda z: hnp.abs(hnp.max(z)) ** 2)(z)
    np.testing.assert_allclose(np.abs(slope), [0, 2 * abs(z[1]), 0])


# --- errors


def test_errors_say_what_to_do():
    with pytest.raises(AxisError, match="axis 1"):
        hnp.sort(np.zeros(3), axis=1)
    with pytest.raises(DTypeError, match="complex numbers have no order"):
        hnp.searchsorted(np.zeros(3, complex), 1j)
    with pytest.raises(IndexOutOfRangeError, match="kth of partition is 3, along axis 0 of size 3"):
        hnp.partition(np.zeros(3), 3)
    with pytest.raises(ShapeError, match="reshape it to"):
        hnp.argsort(np.float64(3))
    with pytest.raises(ArgumentError, match="'left' or 'right'"):
        hnp.searchsorted(np.zeros(3), 1.0, side="middle")
    with pytest.raises(ShapeError, match="of one axis"):
        hnp.searchsorted(np.zeros((3, 1)), 1.0)
    with pytest.raises(ShapeError, match="sorter"):
        hnp.searchsorted(np.zeros(3), 1.0, sorter=np.arange(2))
    with pytest.raises(ArgumentError, match="at least one key"):
        hnp.lexsort(())
    with pytest.raises(ShapeError, match="one shape"):
        hnp.lexsort((np.zeros(2), np.zeros(3)))
