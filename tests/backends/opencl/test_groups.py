"""What groups of work-items share is right at all lengths, and has the same bits however many they are."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends import opencl
from harp.backends.opencl import devices, measure
from harp.lower.device import long_sums
from harp.lower.target import Target
from harp.transforms.jit import programs

pytestmark = pytest.mark.parametrize("device", ["opencl wide"], indirect=True)

LENGTHS = (0, 1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4097, 70_001)
FLOATS, WHOLE = ("float32", "float64", "float16"), ("int8", "uint16", "int32", "int64")


def given(length, dtype, rows=3):
    rng = np.random.default_rng(length)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal((rows, length)).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (rows, length), dtype, endpoint=True)


def close(found, wanted, terms, dtype):
    """As far as the order of additions matters."""
    if np.dtype(dtype).kind != "f":
        npt.assert_array_equal(found, wanted)
        return
    room = np.finfo(dtype).eps * 4 * np.maximum(terms, 1)
    assert (np.abs(np.asarray(found, "f8") - wanted) <= room).all()


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_sums_of_rows_and_of_all(device, dtype):
    rows, whole = harp.jit(lambda x: hnp.sum(x, axis=1)), harp.jit(lambda x: hnp.sum(x))
    for length in LENGTHS:
        x = given(length, dtype)
        exact = x.astype("f8") if np.dtype(dtype).kind == "f" else x
        terms = np.abs(exact).astype("f8").sum(1)
        if dtype == "float16" and terms.max(initial=0) > 60_000:
            continue
        close(rows(x), exact.sum(1), terms, dtype)
        close(whole(x), exact.sum(), terms.sum(), dtype)
    assert rows.compilations == whole.compilations == 1


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_extremes_and_their_places(device, dtype):
    f = harp.jit(lambda x: (hnp.max(x, 1), hnp.min(x, 1), hnp.argmax(x, 1), hnp.argmin(x, 1), hnp.any(x > 1, 1)))
    for length in LENGTHS[1:]:
        x = given(length, dtype)
        x[1] = 3  # all alike: the first one
        if dtype == "float32" and length > 2:
            x[2, length // 2] = np.nan
        wanted = x.max(1), x.min(1), x.argmax(1), x.argmin(1), (x > 1).any(1)
        for found, expected in zip(f(x), wanted, strict=True):
            npt.assert_array_equal(found, expected)


def test_rows_with_several_sums(device):
    f = harp.jit(lambda x: (hnp.softmax(x), hnp.var(x, axis=-1)))
    for length in LENGTHS[1:]:
        x = given(length, "float64", 2)
        e = np.exp(x - x.max(-1, keepdims=True))
        found, variance = f(x)
        npt.assert_allclose(found, e / e.sum(-1, keepdims=True), rtol=1e-12)
        npt.assert_allclose(variance, x.var(-1), rtol=1e-12, atol=1e-14)


def layer_norm(x):
    moved = x - hnp.mean(x, axis=-1, keepdims=True)
    return moved / hnp.sqrt(hnp.mean(moved * moved, axis=-1, keepdims=True) + 0.25)


def exact_rows(x, w):
    """Both, and the gradients of their sums with weights w, in float64."""
    x, w = x.astype("f8"), w.astype("f8")
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    p = e / e.sum(-1, keepdims=True)
    n = max(x.shape[-1], 1)
    moved = x - x.sum(-1, keepdims=True) / n
    deviation = np.sqrt((moved * moved).sum(-1, keepdims=True) / n + 0.25)
    y = moved / deviation
    of_p = p * (w - (w * p).sum(-1, keepdims=True))
    of_y = (w - w.sum(-1, keepdims=True) / n - y * (w * y).sum(-1, keepdims=True) / n) / deviation
    return p, y, of_p, of_y


@pytest.mark.parametrize(("dtype", "room"), [("float16", 1e-2), ("float32", 1e-5), ("float64", 1e-12)])
def test_rows_that_are_kept_by_their_group(device, dtype, room):
    """Also those that a group does in turns; a row has the same bits in all batches."""

    def all_of_it(x, w):
        return (
            hnp.softmax(x),
            layer_norm(x),
            harp.grad(lambda x: hnp.sum(w * hnp.softmax(x)))(x),
            harp.grad(lambda x: hnp.sum(w * layer_norm(x)))(x),
        )

    f = harp.jit(all_of_it)
    for length in (0, 1, 127, 128, 129, 1000):
        for rows in (0, 1, 3, 70):
            x, w = given(length, dtype, rows), given(length, dtype, rows)[::-1].copy()
            whole = [np.asarray(found) for found in f(x, w)]
            for found, wanted in zip(whole, exact_rows(x, w), strict=True):
                assert found.dtype == dtype
                npt.assert_allclose(found, wanted, rtol=room, atol=room)
            part = slice(rows // 3, rows - rows // 4)
            for found, one in zip(f(x[part], w[part]), whole, strict=True):
                npt.assert_array_equal(found, one[part])
    assert f.compilations == 1


def test_batches_of_rows_that_are_kept(device):
    """The loops of a grid share one number there."""
    f = harp.jit(hnp.softmax)
    for shape in [(2, 3, 200), (3, 1, 2, 129), (0, 5, 130), (2, 2, 2, 3, 128)]:
        x = np.random.default_rng(0).standard_normal(shape)
        e = np.exp(x - x.max(-1, keepdims=True))
        npt.assert_allclose(f(x), e / e.sum(-1, keepdims=True), rtol=1e-12)


def test_rows_are_kept_for_the_groups_at_work_only(device, monkeypatch):
    """However many rows there are, and with the same bits."""
    taken, take = [], opencl.host_calls.take
    monkeypatch.setattr(opencl.host_calls, "take", lambda run, size: taken.append(size) or take(run, size))
    f, x = harp.jit(hnp.softmax), given(1000, "float32", 70)
    wanted = np.asarray(f(x))
    monkeypatch.setitem(devices.device(int(device.split(":")[1])).__dict__, "cores", 1)
    for items, groups in ((1, 1), (1024, 4), (1 << 30, 70)):
        monkeypatch.setattr(opencl.host_calls, "_AT_WORK", items)
        taken.clear()
        npt.assert_array_equal(f(x), wanted)
        assert max(taken) == groups * 4032  # bytes of a row, to the end of a cache line


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint16"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(device, dtype, reverse):
    f = harp.jit(lambda x: harp.lax.cumsum(x, axis=1, reverse=reverse))
    one = harp.jit(lambda x: harp.lax.cumsum(x, axis=0, reverse=reverse))
    for length in LENGTHS:
        x = given(length, dtype)
        exact = x.astype("f8") if np.dtype(dtype).kind == "f" else x
        around = exact[:, ::-1] if reverse else exact
        wanted = np.cumsum(around, 1, dtype=exact.dtype)[:, :: -1 if reverse else 1]
        terms = np.abs(exact).astype("f8").sum(1, keepdims=True)
        close(f(x), wanted, terms, dtype)
        close(one(x[0]), wanted[0], terms[0], dtype)


def test_running_sums_of_positive_numbers_never_fall(device):
    x = np.random.default_rng(0).random((2, 70_001)).astype("float32")
    assert (np.diff(np.asarray(harp.jit(lambda x: hnp.cumsum(x, axis=1))(x)), axis=1) >= 0).all()


def test_running_sums_of_running_sums(device):
    """What is added up a second time is known to one work-item only."""
    f = harp.jit(lambda x: hnp.cumsum(hnp.cumsum(x, axis=1), axis=1))
    one = harp.jit(lambda x: hnp.cumsum(hnp.cumsum(x)))
    for length in LENGTHS[:-1]:
        x = given(length, "int64")
        npt.assert_array_equal(f(x), np.cumsum(np.cumsum(x, 1), 1))
        npt.assert_array_equal(one(x[0]), np.cumsum(np.cumsum(x[0])))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_products_have_the_bits_of_c(device, dtype):
    def both(x, y):
        return x @ y, hnp.tanh(hnp.matmul(y.T, x.T)) if dtype != "int32" else y.T @ x.T

    f, here = harp.jit(both), harp.jit(both, device="cpu")
    rng = np.random.default_rng(0)
    for m, k, n in [
        (0, 3, 4),
        (3, 0, 4),
        (16, 0, 16),
        (1, 1, 1),
        (16, 1, 16),
        (15, 20, 40),
        (64, 64, 64),
        (65, 33, 130),
    ]:
        x, y = ((rng.standard_normal(s) * 9).astype(dtype) for s in ((m, k), (k, n)))
        for found, wanted in zip(f(x, y), here(x, y), strict=True):
            npt.assert_array_equal(found, wanted)
        npt.assert_allclose(f(x, y)[0], x.astype("f8") @ y.astype("f8"), rtol=1e-4, atol=1e-3)


def test_long_sums_of_products(device):
    """By chunks, which have groups of their own where the result is small: an element has the same bits in both."""
    f, rng = harp.jit(lambda x, y: hnp.tanh(x @ y / 9)), np.random.default_rng(0)
    for k in (256, 257, 1000):
        x, y = rng.standard_normal((300, k)).astype("f4"), rng.standard_normal((k, 300)).astype("f4")
        whole = np.asarray(f(x, y))  # more than 65,536 elements
        npt.assert_allclose(whole, np.tanh(x.astype("f8") @ y / 9), rtol=1e-4, atol=1e-5)
        for m, n in ((1, 1), (3, 300), (300, 5), (17, 16), (100, 300)):
            npt.assert_array_equal(f(x[:m], y[:, :n]), whole[:m, :n])
        npt.assert_array_equal(np.asarray(f(np.tile(x, (20, 1)), y[:, :13]))[:300], whole[:, :13])


@pytest.mark.slow
def test_batches_of_products_and_their_gradients(device):
    f = harp.jit(harp.grad(lambda x, y: hnp.sum(hnp.einsum("bij,bjk->bik", x, y) ** 2), argnums=(0, 1)))
    rng = np.random.default_rng(0)
    for b, m, k, n in [(3, 17, 20, 33), (1, 64, 5, 16), (2, 3, 4, 5)]:
        x, y = rng.standard_normal((b, m, k)), rng.standard_normal((b, k, n))
        z = 2 * (x @ y)
        for found, wanted in zip(f(x, y), (z @ y.swapaxes(1, 2), x.swapaxes(1, 2) @ z), strict=True):
            npt.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_transposes(device, dtype):
    f = harp.jit(lambda x, y: (x.T + y, hnp.swapaxes(hnp.stack([x, y.T, x]), 1, 2)))
    for m, n in [(0, 40), (40, 0), (1, 5), (31, 33), (32, 32), (33, 100), (130, 65)]:
        x, y = given(n, dtype, m), given(m, dtype, n)
        added, swapped = f(x, y)
        npt.assert_array_equal(added, x.T + y)
        npt.assert_array_equal(swapped, np.swapaxes(np.stack([x, y.T, x]), 1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint32", "bool"])
def test_long_rows_are_sorted(device, dtype):
    f = harp.jit(lambda x, v: (hnp.sort(x), hnp.argsort(x), hnp.argsort(x, descending=True), v[hnp.argsort(x[0])]))
    for length in (0, 5, 2047, 2048, 2049, 4096, 70_001):
        x = given(length, "int8" if dtype == "bool" else dtype).astype(dtype)
        if dtype.startswith("float") and length > 9:
            x[0, 3:7] = np.nan, -0.0, 0.0, np.inf
        values = np.arange(length) * 3
        ordered, places, down, taken = f(x, values)
        npt.assert_array_equal(ordered, np.sort(x))
        npt.assert_array_equal(places, np.argsort(x, kind="stable"))
        npt.assert_array_equal(taken, values[np.argsort(x[0], kind="stable")])
        npt.assert_array_equal(np.take_along_axis(x, np.asarray(down), 1), np.sort(x)[:, ::-1])


def test_rows_that_are_not_there_are_not_sorted(device, monkeypatch):
    """A launch has more rows of work-items than it was asked for where these are short."""
    monkeypatch.setattr(devices, "Target", partial(Target, sorted_together=2))
    programs.forget()
    f = harp.jit(lambda x, y: hnp.concatenate([hnp.sort(x), hnp.take_along_axis(y, hnp.argsort(x), 1), y]))
    for length in (2, 33, 200):
        x, y = given(length, "float64", 5), given(length, "int64", 5).astype("float64")
        npt.assert_array_equal(f(x, y), np.concatenate([np.sort(x), np.take_along_axis(y, np.argsort(x), 1), y]))


COLUMNS = (0, 1, 3, 2047, 2048, 2049, 4096, 5000, 70_001)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "complex64"])
def test_sums_of_columns(device, dtype):
    f = harp.jit(lambda x: hnp.sum(x, axis=0))
    for length in COLUMNS:
        x = given(length, "float32" if dtype == "complex64" else dtype, 5).T.astype(dtype)
        x = x * np.asarray([1, 1j, 1, 2j, 1], dtype) if dtype == "complex64" else x
        exact = x.astype("c16" if dtype == "complex64" else "f8") if np.dtype(dtype).kind in "fc" else x
        found = np.asarray(f(x))
        if dtype == "complex64":
            npt.assert_allclose(found, exact.sum(0), rtol=0, atol=1e-5 * (1 + np.abs(exact).sum(0).max(initial=0)))
        else:
            close(found, exact.sum(0), np.abs(exact).astype("f8").sum(0), dtype)
        for columns in range(5):  # how many there are changes no bit
            npt.assert_array_equal(f(x[:, :columns]), found[:columns])
    assert f.compilations == 1


def test_columns_have_the_same_bits_whether_they_are_many_or_few(device, monkeypatch):
    monkeypatch.setattr(long_sums, "_MANY_COLUMNS", 50)
    programs.forget()
    f = harp.jit(lambda x: (hnp.sum(x, axis=0), hnp.var(x, axis=0), hnp.softmax(x, axis=0)))
    for length in (1, 16, 17, 300, 2032, 2033, 2047, 2048, 2049):
        x = given(length, "float32", 60).T
        for few, many in zip(f(x[:, :40]), f(x), strict=True):
            npt.assert_array_equal(few, np.asarray(many)[..., :40])
        npt.assert_allclose(f(x)[1], x.astype("f8").var(0), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_other_reductions_of_columns(device):
    def f(x, v):
        e = hnp.exp(x - hnp.max(x, axis=0))
        return hnp.var(x, axis=0), e / hnp.sum(e, axis=0), hnp.argmax(x, axis=0), x.T @ v, hnp.prod(x, axis=0)

    compiled = harp.jit(f)
    for length in COLUMNS[1:]:
        x, v = given(length, "float64", 4).T, given(length, "float64", 1)[0]
        e = np.exp(x - x.max(0))
        wanted = x.var(0), e / e.sum(0), x.argmax(0), x.T @ v, x.prod(0)
        for found, expected in zip(compiled(x, v), wanted, strict=True):
            npt.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_columns_of_a_batch(device):
    f = harp.jit(lambda x: (hnp.sum(x, axis=1), hnp.sum(x, axis=(0, 1)), hnp.mean(x[:, ::-1, 1:], axis=1)))
    for shape in [(3, 2500, 2), (1, 4097, 3), (2, 70, 5), (3, 2048, 0)]:
        x = np.random.default_rng(0).standard_normal(shape)
        wanted = x.sum(1), x.sum((0, 1)), x[:, :, 1:].mean(1)
        for found, expected in zip(f(x), wanted, strict=True):
            npt.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


UPDATES = (0, 1, 255, 256, 2048, 5000)
HOW = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum, "set": None}


def updated(z, places, v, how):
    """By NumPy, in float64; of those that are set the last one is there, and places outside are left out."""
    z, inside = z.astype("f8") if z.dtype.kind == "f" else z.copy(), (places >= -len(z)) & (places < len(z))
    if HOW[how] is not None:
        HOW[how].at(z, places[inside], v[inside])
    for k in np.flatnonzero(inside) if how == "set" else ():
        z[places[k]] = v[k]
    return z


@pytest.mark.slow
@pytest.mark.parametrize(("how", "dtype"), [*((how, "float32") for how in HOW), ("add", "int32"), ("max", "int32")])
def test_scatters_into_few_rows(device, how, dtype):
    """Their number is one of the program, or a size."""
    rng = np.random.default_rng(0)

    def scatter(z, i, v):
        return getattr(z.at[i], how)(v)

    def both(z, i, v):
        return scatter(z, i, v), scatter(hnp.broadcast_to(z[0], (10, 3)), i, v), scatter(z[:, 0], i, v[:, 0])

    f = harp.jit(both)
    for n in UPDATES:
        v = given(n, dtype, 3).T / 1 if how != "multiply" else 1 + given(n, dtype, 3).T / 1e4
        v = v.astype(dtype)
        for rows in (1, 10, 64, 65):
            z, i = given(3, dtype, rows), rng.integers(-12, 12, n)
            tens = np.broadcast_to(z[0], (10, 3))
            places = [(z, v), (tens, v), (z[:, 0], v[:, 0])]
            for found, (base, updates) in zip(f(z, i, v), places, strict=True):
                terms = np.abs(updates).astype("f8").sum() + np.abs(base).max() + 1
                close(np.asarray(found), updated(base, i, updates, how), terms, dtype)
    assert f.compilations == 1


def test_a_row_of_a_scatter_has_the_same_bits_whatever_the_others_have(device):
    """Its blocks are counted from its first update, and are as accurate as blocked sums are."""
    f = harp.jit(harp.vmap(lambda z, i, v: z.at[i].add(v)))
    rng = np.random.default_rng(0)
    z, i, v = np.zeros((2, 100), "f4"), rng.integers(0, 100, (2, 70_000)), np.full((2, 70_000), 0.1, "f4")
    i[1] = np.where(i[0] == 7, 7, 50)  # the others are in one row
    found = np.asarray(f(z, i, v))
    assert found[0, 7] == found[1, 7]
    npt.assert_array_equal(f(z[:1], i[:1], v[:1]), found[:1])
    npt.assert_array_equal(f(np.zeros((2, 500), "f4"), i, v)[:, :100], found)
    for row in (0, 1):
        npt.assert_allclose(found[row], np.bincount(i[row], v[row].astype("f8"), 100), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_running_sum_has_the_same_bits_in_few_rows_and_in_many(device, dtype):
    """Few long rows go by blocks, which have groups of their own."""
    for f in (harp.lax.cumsum, lambda x, axis: harp.lax.cumsum(x, axis=axis, reverse=True)):
        rows, columns = harp.jit(lambda x, f=f: f(x, axis=1)), harp.jit(lambda x, f=f: f(x, axis=0))
        x = given(5000, dtype, 300)
        npt.assert_array_equal(rows(x[:2]), np.asarray(rows(x))[:2])
        npt.assert_array_equal(columns(x.T[:, :2]), np.asarray(columns(x.T))[:, :2])


def test_a_row_has_the_same_bits_among_few_and_many(device):
    """The number of rows may be that of a batch."""
    f = harp.jit(harp.grad(lambda x, i, w: hnp.sum(x[i] * w)))
    i, w = np.random.default_rng(0).integers(0, 10, 5000), given(5000, "float32", 1)[0]
    few = np.asarray(f(np.zeros(10, "f4"), i, w))
    npt.assert_array_equal(f(np.zeros(1000, "f4"), i, w)[:10], few)
    npt.assert_allclose(few, np.bincount(i, w.astype("f8"), 10), rtol=1e-4)


def test_rows_without_updates_stay_as_they_are(device):
    z = np.array([-0.0, 0.0, np.nan, -np.inf, 5.0, -0.0], "f4")
    i = np.full(3000, 4)
    whole = harp.jit(lambda z, i: (hnp.broadcast_to(z, (6,)).at[i].add(1.0), z.at[i].set(7.0)))
    for found, last in zip(whole(z, i), (3005, 7), strict=True):
        wanted, got = np.where(np.arange(6) == 4, last, z).astype("f4"), np.asarray(found)
        npt.assert_array_equal(got, wanted)  # devices of NVIDIA give one NaN for all
        npt.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_batches_of_scatters_and_two_axes_of_places(device):
    rng = np.random.default_rng(0)
    f = harp.jit(harp.vmap(lambda i, v: hnp.zeros(7).at[i].add(v).at[i[:1]].set(v[0])))
    pairs = harp.jit(lambda i, j, v: hnp.zeros((4, 5)).at[i, j].add(v))
    last = harp.jit(harp.vmap(lambda i, v: hnp.zeros((7, 2)).at[i].set(v)))
    for n in (3, 2500):
        i, j, v = rng.integers(0, 7, (3, n)), rng.integers(0, 5, n), rng.standard_normal((3, n))
        wanted = np.stack([np.bincount(a, b, 7) for a, b in zip(i, v, strict=True)])
        for row, a, b in zip(wanted, i, v, strict=True):
            row[a[0]] = b[0]
        npt.assert_allclose(f(i, v), wanted, rtol=1e-10, atol=1e-10)
        npt.assert_allclose(pairs(i[0] % 4, j, v[0]).ravel(), np.bincount(i[0] % 4 * 5 + j, v[0], 20), atol=1e-10)
        twice = np.stack([v, -v], 2)
        wanted = [updated(np.zeros((7, 2)), a, b, "set") for a, b in zip(i, twice, strict=True)]
        npt.assert_array_equal(last(i, twice), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("items", [1, 5, 64, 256])
def test_bits_do_not_depend_on_the_size_of_a_group(device, items, monkeypatch):
    x = given(5000, "float32")
    functions = [
        lambda x: hnp.sum(x),
        lambda x: hnp.sum(x, 1),
        lambda x: hnp.cumsum(x, 1),
        lambda x: hnp.exp(x / x.sum()),
        lambda x: hnp.var(x.T, 0),
        hnp.softmax,
        lambda x: hnp.zeros(10).at[hnp.arange(5000) % 7].add(x[0]),
    ]
    wanted = [np.asarray(harp.jit(f)(x)) for f in functions]
    monkeypatch.setattr(measure, "sub_group_size", lambda device: 0)  # groups with sub-groups have one size
    monkeypatch.setattr(opencl.host_calls, "_items", lambda device, kernel, most: items if most else 0)
    programs.forget()
    for function, expected in zip(functions, wanted, strict=True):
        npt.assert_array_equal(harp.jit(function)(x), expected)


def test_launches_go_by_slices_where_a_grid_has_many_groups(device, monkeypatch):
    """Devices of NVIDIA launch 65,535 groups at once along the second and third dimension."""
    monkeypatch.setattr(opencl.host_calls, "_MOST_GROUPS", 3)
    monkeypatch.setattr(devices, "Target", partial(Target, sorted_together=2))
    programs.forget()
    x, y = given(6, "float64", 40).reshape(5, 8, 6), given(40, "float64", 8).reshape(5, 8, 8)
    f = harp.jit(lambda x, y: (x * 2 + 1, x.sum(2), y @ x, hnp.transpose(x, (0, 2, 1)) + 0, hnp.sort(x), x.cumsum(2)))
    expected = x * 2 + 1, x.sum(2), y @ x, x.transpose(0, 2, 1), np.sort(x), x.cumsum(2)
    for found, right in zip(f(x, y), expected, strict=True):
        npt.assert_allclose(found, right, rtol=1e-12)
    wide = np.ones((12, 9, 7, 3))
    npt.assert_array_equal(harp.jit(lambda x: hnp.transpose(x, (3, 1, 0, 2)) * 2)(wide), 2 * wide.transpose(3, 1, 0, 2))
    long = given(300, "float64", 30)
    for found, right in zip(
        harp.jit(lambda x: (x.sum(1), x.cumsum(1)))(long), (long.sum(1), long.cumsum(1)), strict=True
    ):
        npt.assert_allclose(found, right, rtol=1e-12)


def test_a_profile_counts_all_slices_of_a_launch(device, monkeypatch):
    f, x = harp.jit(lambda x: x * x[:, :1]), np.ones((40, 100))
    whole = sum(kernel.runs for kernel in f.profile(x).kernels)
    monkeypatch.setattr(opencl.host_calls, "_MOST_GROUPS", 3)
    assert sum(kernel.runs for kernel in f.profile(x).kernels) > whole
